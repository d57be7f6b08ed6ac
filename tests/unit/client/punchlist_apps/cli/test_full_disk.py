"""Commands on a full disk: each file is written completely or not at all, and a retry works."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.optional import needs
from punchlist_testing.played import SERVER, program

COMMANDS = {
    "export": ("export", "out.md"),
    "export --force": ("export", "--force", "old.md"),
    "setup": ("setup", "claude-code"),
    "setup of a project": ("setup", "claude-code", "--scope", "project"),
    "setup of an editor": ("setup", "neovim"),
    "mirror of a directory": ("mirror", "add", "mirrored"),
    "mirror of a plan": ("mirror", "add", "PLAN.md"),
    "service": ("daemon", "service", "install"),
    "link of the web": ("web", "--link"),
    "new secret of the web": ("web", "--revoke"),
    "init": ("init", "website"),
}
"""Name of the case → arguments of a command that writes files."""


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a plan, and a `punch` in PATH."""
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    program(home / "bin", "punch", SERVER)
    monkeypatch.setenv("PATH", os.pathsep.join((str(home / "bin"), "/usr/bin", "/bin")))
    project = home / "project"
    (project / "mirrored").mkdir(parents=True)
    (project / "PLAN.md").write_text("- [ ] a\n")
    (project / "old.md").write_text("old\n")
    return project


def read_files(home: Path) -> dict[str, bytes]:
    """Return the contents of all files, except the daemon's files and the markers of allowed lists."""
    contents = {path.relative_to(home): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}
    ours = ("data/log.", "data/lock", "data/daemon.", "data/allowed/", "run/")
    return {str(path): data for path, data in contents.items() if not str(path).startswith(ours)}


def punch(
    project: Path, words: tuple[str, ...], size: int = resource.RLIM_INFINITY
) -> subprocess.CompletedProcess[str]:
    """Run a command with a limit for file sizes, so that writes fail midway as on a full disk."""
    return subprocess.run(
        [sys.executable, "-P", "-B", "-m", "punchlist", *words],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)),  # noqa: PLW1509 - no threads here
    )


def test_a_failed_write_changes_no_file(home: Path, project: Path) -> None:
    with spawned_daemon(home):
        assert punch(project, ("add", "a longer title")).returncode == 0
        for words in COMMANDS.values():
            before = read_files(home)
            for size in (0, 10):
                failed = punch(project, words, size)
                assert failed.returncode != 0 and failed.stderr.startswith("error: "), failed
                assert read_files(home) == before, words
            again = punch(project, words)
            assert again.returncode == 0, again
            assert read_files(home) != before, words


@pytest.mark.parametrize("content", ["", "\n", 'conversation = "', "conversation = 7", "[conversation"])
def test_a_damaged_project_file_is_reported_with_advice(home: Path, project: Path, content: str) -> None:
    (project / ".punchlist.toml").write_text(content)
    for words in (("list",), ("init",), ("add", "a")):
        outcome = punch(project, words)
        assert outcome.returncode == 78, outcome
        assert "remove it and run punch init" in outcome.stderr
    (project / ".punchlist.toml").unlink()
    assert punch(project, ("init",)).returncode == 0


@needs("mount")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_project_is_usable_after_full_disk(home: Path, project: Path) -> None:
    disk = home / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False).returncode:
        pytest.skip("mounting is not allowed")
    try:
        (disk / "filler").write_bytes(b"x" * (64 << 10))
        failed = punch(disk, ("init",))
        assert failed.returncode != 0 and "No space left" in failed.stderr, failed
        assert os.listdir(disk) == ["filler"]
        (disk / "filler").unlink()
        assert punch(disk, ("init",)).returncode == 0
    finally:
        subprocess.run(["umount", disk], check=True)
