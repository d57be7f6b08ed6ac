"""A configuration directory in the format of Claude Code 2.1.197: tasks, transcripts and teams."""

import json
from pathlib import Path
from typing import Any


class ClaudeHome:
    """Writes files as Claude Code does: it overwrites them in place.

    Args:
        root: Configuration directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tasks = root / "tasks"

    def session(self, session: str, cwd: Path) -> None:
        """Write a transcript whose first line has no working directory."""
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
        """Reset a finished list as Claude Code does: remove its tasks and keep the highest number."""
        files = list((self.tasks / folder).glob("*.json"))
        (self.tasks / folder / ".highwatermark").write_text(str(max(int(path.stem) for path in files)))
        for path in files:
            path.unlink()

    def everything(self) -> dict[str, tuple[bytes, int]]:
        """Return content and modification time, in nanoseconds, of each file in the configuration directory."""
        files = (path for path in sorted(self.root.rglob("*")) if path.is_file())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
