"""Logging setup: text, journal or JSON lines on stderr. Task titles are logged at debug level only."""

import logging
import os
import sys
from collections.abc import Mapping

import msgspec

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _Journal(logging.Formatter):
    """Lines with a priority prefix (sd-daemon(3)). They need no timestamp, because the journal adds its own."""

    def format(self, record: logging.LogRecord) -> str:
        priority = f"<{_PRIORITIES.get(record.levelno, 6)}>"
        return priority + super().format(record).replace("\n", f"\n{priority}")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"at": int(record.created * 1000), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def set_up(level: str, style: str, env: Mapping[str, str]) -> None:
    """Log to stderr.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        style: `human` or `json`.
        env: Environment variables. `JOURNAL_STREAM` identifies the journal's stream (systemd.exec(5)).
    """
    handler = logging.StreamHandler(sys.stderr)
    if style == "json":
        handler.setFormatter(_Json())
    elif _is_journal(env):
        handler.setFormatter(_Journal("%(name)s: %(message)s"))
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(max(logging.WARNING, logging.getLogger().level))
    logging.getLogger("aiosqlite").setLevel(max(logging.INFO, logging.getLogger().level))


def _is_journal(env: Mapping[str, str]) -> bool:
    device, _, inode = env.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino))
