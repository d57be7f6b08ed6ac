"""A configuration directory as Claude Code 2.1.197 leaves it: tasks, transcripts and teams."""

import json
from pathlib import Path
from typing import Any


class ClaudeHome:
    """Writes what Claude Code writes, as it does: files are opened and overwritten in place.

    Args:
        root: The configuration directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tasks = root / "tasks"

    def session(self, session: str, cwd: Path) -> None:
        """A transcript: its first lines say nothing of a directory."""
        folder = self.root / "projects" / str(cwd).replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            {"type": "summary", "summary": "A plan", "leafUuid": "0"},
            {"type": "user", "cwd": str(cwd), "sessionId": session, "gitBranch": "main"},
        ]
        (folder / f"{session}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def team(self, name: str, lead: str, cwd: Path) -> None:
        folder = self.root / "teams" / name
        folder.mkdir(parents=True)
        members = [{"agentId": f"team-lead@{name}", "name": "team-lead", "cwd": str(cwd)}]
        (folder / "config.json").write_text(json.dumps({"name": name, "leadSessionId": lead, "members": members}))

    def task(self, folder: str, number: int, subject: str, **more: Any) -> None:
        place = self.tasks / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / ".lock").touch()
        task = {"id": str(number), "subject": subject, "description": "", "activeForm": f"{subject}ing"}
        task |= {"status": "pending", "blocks": [], "blockedBy": [], **more}
        (place / f"{number}.json").write_text(json.dumps(task, indent=2))

    def reset(self, folder: str) -> None:
        """What Claude Code does with a list that is finished: the files go, the highest number stays."""
        files = list((self.tasks / folder).glob("*.json"))
        (self.tasks / folder / ".highwatermark").write_text(str(max(int(path.stem) for path in files)))
        for path in files:
            path.unlink()

    def everything(self) -> dict[str, tuple[bytes, int]]:
        """All bytes below the tasks' directory, and when each file was changed."""
        found = (path for path in sorted(self.root.rglob("*")) if path.is_file())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}
