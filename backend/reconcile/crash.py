"""Points where a test may kill the backend, to prove that it converges whatever it lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

VARIABLE = "PDTUI_CRASH_FILE"
"""Names a file: at the first point whose name is not in it, the name is added and we die."""


def reached(point: str) -> None:
    """Die here with SIGKILL, once per point, when a test asks for it; else do nothing."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    file = Path(path)
    past = file.read_text().splitlines() if file.exists() else []
    if point in past:
        return
    with file.open("a") as out:
        out.write(point + "\n")
        out.flush()
        os.fsync(out.fileno())
    os.kill(os.getpid(), signal.SIGKILL)
