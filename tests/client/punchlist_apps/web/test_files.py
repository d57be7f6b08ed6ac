"""The page's own files are for everybody on this machine, and nothing else of the disk is."""

import hashlib
from pathlib import Path

from punchlist_testing.web import served


async def test_the_files_of_the_page_are_served_and_nothing_beside_them(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<!doctype html>")
    (page / "app.js").write_text("export {}")
    (page / "notes.py").write_text("secret")
    (tmp_path / "outside.js").write_text("secret")
    async with served(tmp_path, page=page) as web:
        for path in ("/", "/agent-tasks", "/index.html"):
            found = await web.ask("GET", path, Authorization=None)
            assert (found.status, found.body) == (200, b"<!doctype html>")
            assert "trusted-types 'none'" in found.headers["content-security-policy"]
        script = await web.ask("GET", "/app.js", Authorization=None)
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        assert (await web.ask("GET", "/app.js", If_None_Match=script.headers["etag"])).status == 304
        assert (await web.ask("HEAD", "/app.js")).body == b""
        for path in ("/notes.py", "/outside.js", "/..%2foutside.js", "/%2e%2e/outside.js", "/page/app.js", "/x.js"):
            assert (await web.ask("GET", path)).status == 404, path


async def test_without_a_page_everything_else_is_served(tmp_path: Path) -> None:
    async with served(tmp_path, page=tmp_path / "none") as web:
        assert (await web.ask("GET", "/")).status == 404
        assert (await web.ask("GET", "/api/v1/conversations")).status == 200


async def test_what_was_built_is_served_until_its_sources_change(tmp_path: Path) -> None:
    built = tmp_path / "page" / "built"
    built.mkdir(parents=True)
    source = tmp_path / "page" / "app.js"
    source.write_text("export {};\n")
    (built / "app.js").write_text("export{}")
    (built / "sources.sha256").write_text(hashlib.sha256(source.read_bytes()).hexdigest() + "\n")
    async with served(tmp_path, page=tmp_path / "page") as web:
        assert (await web.ask("GET", "/app.js")).body == b"export{}"
    source.write_text("export const more = 1;\n")
    async with served(tmp_path, page=tmp_path / "page") as web:
        assert (await web.ask("GET", "/app.js")).body == source.read_bytes()
