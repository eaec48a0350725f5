"""The backend's own log: one rotating file, owner-readable, without anything that looks secret."""

from __future__ import annotations

import datetime
import json
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

from backend.domain.errors import Invalid
from backend.redaction import PROCESS

MOST_BYTES = 10_000_000
KEPT = 5


class Redacting(logging.Formatter):
    """Masks the whole line, tracebacks included, as it would be written."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without secrets."""
        return PROCESS.hide(super().format(record))


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the traceback if there is
    one; without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.datetime.fromtimestamp(record.created, tz=datetime.UTC)
        body = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": PROCESS.hide(record.getMessage()),
        }
        if record.exc_info:
            body["traceback"] = PROCESS.hide(self.formatException(record.exc_info))
        return json.dumps(body, ensure_ascii=False)


class OwnLog(RotatingFileHandler):
    """Rotates by renaming, so no byte is lost; a file that something else renamed or removed
    (logrotate, a person) is made anew before the next line, not written to unseen."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line to the file that is at the path now. A full disk loses the line only."""
        try:
            if self.stream is not None and not self._still_ours():
                self.stream.close()
                self.stream = None
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """A line that cannot be written is not worth a traceback on a screen."""

    def _open(self):  # type: ignore[no-untyped-def]
        return open(self.baseFilename, self.mode, encoding="utf-8", opener=_private)

    def _still_ours(self) -> bool:
        if self.stream is None:
            return False
        try:
            there, ours = os.stat(self.baseFilename), os.fstat(self.stream.fileno())
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def log_to(path: Path, level: int = logging.INFO, *, form: str = "") -> None:
    """Send all logging to `path` (10 MB, five kept), mode 0600; as lines, or (`form` json) as one
    JSON object a line. Raises Invalid for another form."""
    if form not in ("", "text", "json"):
        raise Invalid.of(
            "settings.log_format",
            f"PDTUI_LOG_FORMAT is {form!r}; it may be text or json.",
            values={"value": form},
            remedy="Set it to text or json, or leave it unset.",
        )
    handler = OwnLog(path, maxBytes=MOST_BYTES, backupCount=KEPT)
    os.chmod(path, 0o600)
    lines = Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else lines)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("asyncssh", "httpx", "httpcore", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
