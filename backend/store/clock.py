"""The clock that waits are measured by."""

from __future__ import annotations

import time
from collections.abc import Callable


def steady() -> Callable[[], float]:
    """Epoch seconds that never jump: the wall clock read once, carried on by the monotonic one.

    Waits are measured by it, so that setting the machine's clock neither ends nor prolongs one.
    """
    base = time.time() - time.monotonic()
    return lambda: base + time.monotonic()
