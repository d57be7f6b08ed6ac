"""Each package in a clean environment, used as a reader of the documentation would, without this checkout."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from punchlist_apps.cli.installing.vscode_extension import ID
from punchlist_packages.hatch_build import ROOT

DIST = ROOT / "dist"
PURE, COMPILED = "*-any.whl", "*linux*.whl"
PATH = "/usr/local/bin:/usr/bin:/bin"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "try", "version": "1"}},
}


def made(pattern: str) -> Path:
    """Return the only built package of this kind."""
    (found,) = DIST.glob(pattern)
    return found


@pytest.fixture(scope="module")
def stamp() -> str:
    """Return the version of the packages, which includes their commit."""
    with zipfile.ZipFile(made(PURE)) as wheel:
        text = wheel.read("punchlist/base/__init__.py").decode()
        (stated,) = re.findall(r"^__version__ = \"(.+)\"$", text, re.MULTILINE)
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert re.fullmatch(rf"[\w.]+\+g{commit}(\.changed)?", stated)
    return stated


class User:
    """A user with an empty home and only these variables."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {"HOME": str(home), "PATH": PATH, "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(home)}

    def run(self, *words: str | Path, text: str = "") -> str:
        done = subprocess.run(
            [str(word) for word in words],
            env=self.env,
            cwd=self.home,
            input=text,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{shlex.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    yield User(tmp_path)


def use(user: User, punch: str | Path, stamp: str) -> None:
    """Run a first session: check versions, complete a task, and use the shipped files."""
    assert user.run(punch, "--version").startswith(f"punch {stamp} (build ")
    try:
        user.run(punch, "add", "Write the lexer")
        user.run(punch, "done", "1")
        assert "Write the lexer" in user.run(punch, "list", "--json")
        hello = json.loads(user.run(punch, "daemon", "call", "daemon.hello"))
        assert hello["version"] == stamp
        assert hello["build"].startswith(f"{stamp}+")
        assert "fail" not in user.run(punch, "doctor")
        user.run(punch, "setup", "neovim")
        for shell in ("bash", "zsh", "fish"):
            assert "punch" in user.run(punch, "completion", shell)
        units = user.run(punch, "daemon", "service", "install", "--print", "--web", "--hardened")
        (program,) = re.findall(r"^ExecStart=(.+) -P -m punchlistd ", units, re.MULTILINE)
        user.run("/bin/sh", "-c", f"cd / && {program} -P -m punchlistd --version")
    finally:
        user.run(punch, "daemon", "stop")


def names(wheel: Path) -> set[str]:
    """Return the paths in a wheel, without its .dist-info."""
    with zipfile.ZipFile(wheel) as packed:
        return {name.partition(".data/")[2] or name for name in packed.namelist() if ".dist-info/" not in name}


COMPLETIONS = {
    "data/share/bash-completion/completions/punch",
    "data/share/zsh/site-functions/_punch",
    "data/share/fish/vendor_completions.d/punch.fish",
    *(f"punchlist_apps/shipped/completions/{name}" for name in ("bash/punch", "zsh/_punch", "fish/punch.fish")),
}
BUILT = {f"punchlist_apps/web/page/built/{name}" for name in ("app.js", "chat.js", "page.css", "late.css", "chat.css")}
VSIX = "punchlist_apps/shipped/editors/vscode/punchlist.vsix"
SERVED = """
import asyncio
from punchlist_apps.web.files import PAGE, Files
from starlette.requests import Request
asked = Request({"type": "http", "method": "GET", "headers": [], "path_params": {"name": "app.js"}})
assert asyncio.run(Files().get_file(asked)).body == (PAGE / "built/app.js").read_bytes()
"""


def test_wheel_built_without_node_serves_the_page(user: User, stamp: str) -> None:
    subprocess.run(["git", "clone", "-q", ROOT, user.home / "clone"], check=True)
    (user.home / "bin").mkdir()
    (user.home / "bin/git").symlink_to(str(shutil.which("git")))
    user.env["PATH"] = str(user.home / "bin")
    user.run(sys.executable, "-m", "venv", user.home / "venv")
    pip = user.home / "venv/bin/pip"
    user.run(pip, "wheel", "-qq", "--no-deps", "--wheel-dir", user.home, user.home / "clone")
    (wheel,) = user.home.glob("*.whl")
    assert names(wheel) == names(made(PURE)) - {VSIX} >= {*COMPLETIONS, *BUILT}
    user.run(pip, "install", "-qq", f"{wheel}[web]")
    user.run(user.home / "venv/bin/python", "-c", SERVED)
    done = subprocess.run(
        [user.home / "venv/bin/punch", "setup", "vscode-extension"],
        env=user.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "run make vscode" in done.stderr) == (78, True)


def test_wheels_contain_the_page_and_the_extension(user: User) -> None:
    user.run(sys.executable, "-m", "venv", user.home / "venv")
    pip = user.home / "venv/bin/pip"
    user.run(pip, "wheel", "-qq", "--no-deps", "--wheel-dir", user.home, made("*.tar.gz"))
    (wheel,) = user.home.glob("*.whl")
    assert names(wheel) == names(made(PURE)) >= {*COMPLETIONS, *BUILT, VSIX}
    user.run(pip, "install", "-qq", f"{wheel}[web]")
    user.run(user.home / "venv/bin/python", "-c", SERVED)
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(packed.open(VSIX)) as extension:
        assert sorted(name for name in extension.namelist() if name.startswith("extension/")) == [
            "extension/LICENSE.txt",
            "extension/dist/extension.cjs",
            "extension/media/icon.png",
            "extension/media/list.svg",
            "extension/package.json",
            "extension/readme.md",
        ]
        package = json.loads(extension.read("extension/package.json"))
    assert f"{package['publisher']}.{package['name']}" == ID
    assert "dependencies" not in package


def serves_agents(user: User, punch: str | Path) -> None:
    """Check that `punch agent mcp` answers a host's first request."""
    try:
        answer = json.loads(user.run(punch, "agent", "mcp", text=json.dumps(INITIALIZE) + "\n").splitlines()[0])
        assert answer["result"]["serverInfo"]["name"] == "punchlist"
    finally:
        subprocess.run([str(punch), "daemon", "stop"], env=user.env, check=False)


@pytest.mark.parametrize("package", [PURE, COMPILED, "*.tar.gz"])
def test_wheel_and_sdist_work_in_an_empty_environment(user: User, stamp: str, package: str) -> None:
    user.run(sys.executable, "-m", "venv", user.home / "venv")
    user.run(user.home / "venv/bin/pip", "install", "-qq", made(package))
    use(user, user.home / "venv/bin/punch", stamp)
    compiled = (user.home / "venv/bin/punch").read_bytes().startswith(b"\x7fELF")
    assert compiled == (package != PURE), "a C compiler is installed, as make dist needs"
    assert user.run(user.home / "venv/bin/punchlistd", "--version") == f"punchlistd {stamp}\n"


@pytest.mark.parametrize(
    ("tool", "install"),
    [("pipx", ("pipx", "install", "{wheel}[mcp]")), ("uv", ("uv", "tool", "install", "{wheel}[mcp]"))],
)
def test_pipx_and_uv_install_it(user: User, stamp: str, tool: str, install: tuple[str, ...]) -> None:
    user.run(sys.executable, "-m", "venv", user.home / "tools")
    user.run(user.home / "tools/bin/pip", "install", "-qq", tool)
    words = [word.format(wheel=made(PURE)) for word in install[1:]]
    user.env |= {
        "UV_PYTHON": sys.executable,
        "UV_SYSTEM_CERTS": "1",
    }  # for machines behind a proxy with its own certificate
    user.run(user.home / "tools/bin" / tool, *words)
    use(user, user.home / ".local/bin/punch", stamp)
    serves_agents(user, user.home / ".local/bin/punch")


def test_zipapp_needs_only_python(user: User, stamp: str) -> None:
    use(user, made("*.pyz"), stamp)
    serves_agents(user, made("*.pyz"))
    (unpacked,) = (user.home / ".local/share/punchlist-programs").iterdir()
    assert user.run(unpacked / "bin/punch", "--version").startswith(f"punch {stamp} ")


def others(*wanted: str) -> list[Path]:
    """Return the Pythons of these versions that pyenv has installed."""
    return [
        path
        for one in wanted
        for path in (Path.home() / ".pyenv/versions").glob(f"{one}.*/bin/python")
        if path.exists()
    ]


@pytest.mark.parametrize("python", others("3.12", "3.13", "3.14"), ids=str)
def test_zipapp_works_in_other_python_versions(user: User, stamp: str, python: Path) -> None:
    (user.home / "bin").mkdir()
    (user.home / "bin/python3").symlink_to(python)
    user.env["PATH"] = f"{user.home}/bin:{PATH}"
    use(user, made("*.pyz"), stamp)
    serves_agents(user, made("*.pyz"))


@pytest.mark.parametrize("python", others("3.12", "3.13", "3.14"), ids=str)
def test_debian_package_survives_a_python_upgrade(user: User, stamp: str, python: Path) -> None:
    user.run("dpkg-deb", "-x", made("*.deb"), user.home / "root")
    link = user.home / "root/usr/lib/punchlist/bin/python"
    link.unlink()
    link.symlink_to(python)
    assert user.run(link, "-P", "-m", "punchlist", "--version").startswith(f"punch {stamp} ")
    assert user.run(link, "-P", "-m", "punchlistd", "--version") == f"punchlistd {stamp}\n"
    user.run(link, "-P", "-c", "import mcp, starlette, textual, watchfiles, punchlistd.app.app")


@pytest.mark.parametrize("python", others("3.8", "3.10"), ids=str)
def test_zipapp_rejects_an_old_python(user: User, python: Path) -> None:
    done = subprocess.run([python, made("*.pyz")], env=user.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.startswith("error: this is Python 3.")
    assert "needs Python 3.11 to 3.14 on Linux" in done.stderr
    assert not (user.home / ".local").exists()


def test_zipapp_without_a_writable_directory_reports_it(user: User) -> None:
    (user.home / "full").write_text("a file, no directory")
    user.env["XDG_DATA_HOME"] = f"{user.home}/full"
    done = subprocess.run([made("*.pyz"), "list"], env=user.env, capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert f"can't be unpacked into {user.home}/full/" in done.stderr
    assert done.stderr.endswith("make room there, or set XDG_DATA_HOME\n")
    assert os.listdir(user.home) == ["full"]


def test_zipapp_named_punchlistd_is_the_daemon(user: User, stamp: str) -> None:
    (user.home / "punchlistd").symlink_to(made("*.pyz"))
    assert user.run(user.home / "punchlistd", "--version") == f"punchlistd {stamp}\n"


def test_concurrent_first_runs_unpack_once(user: User, stamp: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(user.run, made("*.pyz"), "--version") for _ in range(4)]
        said = [run.result() for run in runs]
    assert all(line.startswith(f"punch {stamp} ") for line in said)
    assert len(list((user.home / ".local/share/punchlist-programs").iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay a clean file system over this one")
def test_apt_installs_and_removes_the_debian_package(tmp_path: Path, stamp: str) -> None:
    script = (Path(__file__).parent / "in_debian.sh").read_text("utf-8")
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "bash", "-c", script, "in_debian", str(made("*.deb")), str(tmp_path)],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = f"{done.stdout}{done.stderr}"
    assert done.returncode == 0, said
    for expected in (
        f"punch {stamp} (build ",
        f"punchlistd {stamp}\n",
        "#1 Write the lexer",
        "ExecStart=/usr/lib/punchlist/bin/python -P -m punchlistd",
        "punch-add (1)        - Add a task",
        '"name":"punchlist"',
        "removed without a rest",
    ):
        assert expected in said, f"{expected!r} is missing in:\n{said}"
    assert "warning" not in said
