"""The backend's own log: one rotating file, owner-readable, without anything that looks secret."""

from __future__ import annotations

import logging
import os
import re
from logging.handlers import RotatingFileHandler
from pathlib import Path

SECRET = re.compile(
    r"(?i)\b([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|private[_-]?key)[\w-]*)"
    r"(\s*[=:]\s*|\s+)(\"[^\"]*\"|'[^']*'|[^\s,;}\"']+)"
)


class Redacted(logging.Filter):
    """Masks `NAME=value` and `NAME: value` where the name looks like a secret's."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask in place; every record passes."""
        record.msg, record.args = SECRET.sub(r"\1\2***", record.getMessage()), ()
        return True


def log_to(path: Path, level: int = logging.INFO) -> None:
    """Send all logging to `path` (10 MB, five kept), mode 0600."""
    path.touch(mode=0o600, exist_ok=True)
    os.chmod(path, 0o600)
    handler = RotatingFileHandler(path, maxBytes=10_000_000, backupCount=5)
    handler.addFilter(Redacted())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("asyncssh", "httpx", "httpcore", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
