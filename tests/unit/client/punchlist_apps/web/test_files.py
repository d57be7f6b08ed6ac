"""The page's files are served without a token, and no other file is."""

from pathlib import Path

from punchlist_testing.web import served


async def test_only_the_pages_files_are_served(tmp_path: Path) -> None:
    page = tmp_path / "page"
    built = page / "built"
    built.mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html>")
    (page / "source.js").write_text("export {}")
    (built / "app.js").write_text("export{}")
    (page / "notes.py").write_text("secret")
    (tmp_path / "outside.js").write_text("secret")
    async with served(tmp_path, page=page) as web:
        for path in ("/", "/agent-tasks", "/index.html"):
            response = await web.ask("GET", path, Authorization=None)
            assert (response.status, response.body) == (200, b"<!doctype html>")
            assert "trusted-types 'none'" in response.headers["content-security-policy"]
        script = await web.ask("GET", "/app.js", Authorization=None)
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        assert (await web.ask("GET", "/app.js", If_None_Match=script.headers["etag"])).status == 304
        assert (await web.ask("HEAD", "/app.js")).body == b""
        for path in ("notes.py", "outside.js", "..%2foutside.js", "%2e%2e/outside.js", "built/app.js", "source.js"):
            assert (await web.ask("GET", f"/{path}")).status == 404, path


async def test_upgrade_leaves_a_running_server_its_page(tmp_path: Path) -> None:
    built = tmp_path / "page" / "built"
    built.mkdir(parents=True)
    (built / "app.js").write_text('import "./chunk-A.js"')
    (built / "chunk-A.js").write_text("export {}")
    async with served(tmp_path, page=tmp_path / "page") as web:
        (built / "app.js").write_text('import "./chunk-B.js"')
        (built / "chunk-A.js").unlink()
        assert (await web.ask("GET", "/app.js")).body == b'import "./chunk-A.js"'
        assert (await web.ask("GET", "/chunk-A.js")).status == 200


async def test_api_works_without_a_page(tmp_path: Path) -> None:
    async with served(tmp_path, page=tmp_path / "none") as web:
        assert (await web.ask("GET", "/")).status == 404
        assert (await web.ask("GET", "/api/v1/conversations")).status == 200
