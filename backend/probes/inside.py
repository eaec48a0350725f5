"""Reading what a container that was started to look around has seen of its accelerators."""

from __future__ import annotations

import re
from collections.abc import Sequence

from backend.domain.inside import Inside
from backend.steps.inside import PART

TIMED_OUT = (124, 137)
"""Exit codes of a client that was ended for taking too long."""
_LISTED = re.compile(r"^GPU \d+: .*\(UUID: (GPU-[0-9A-Za-z-]+)\)\s*$")
_HEAD = re.compile(rf"^{PART}([a-z]+) ?(\S*)$")
SAID = 400
"""Characters that are kept of a client's complaint."""


def parse(stdout: str, asked: Sequence[str], wanted: Sequence[str] = ()) -> Inside | None:
    """What was seen; None where nothing could be tried, or the answer was cut off.

    `asked` are the cards that the container was given: NVIDIA's UUIDs, Ascend's device files.
    """
    parts: dict[str, str] = {}
    said: dict[str, list[str]] = {}
    at = ""
    for line in stdout.splitlines():
        if head := _HEAD.match(line.strip()):
            at = head[1]
            parts[at] = head[2]
            said[at] = []
        elif at:
            said[at].append(line.rstrip())
    if "end" not in parts or not said.get("image"):
        return None
    (image, *_), ran = said["image"], _number(parts.get("ran", ""))
    began = "began" in parts
    seen = said.get("began", [])
    tool = said.get("smi")
    return Inside(
        image=image,
        wanted=image in wanted,
        asked=tuple(asked),
        late=ran in TIMED_OUT,
        began=began,
        said="" if began else _last(said.get("ran", [])),
        bare=_number(parts["bare"]) == 0 if "bare" in parts else None,
        bare_said=_last(said.get("bare", [])),
        devices=tuple(x.removeprefix("device ") for x in seen if x.startswith("device ")),
        files=tuple(x.removeprefix("has ") for x in seen if x.startswith("has ")),
        listed=None if tool is None else tuple(m[1] for x in tool if (m := _LISTED.match(x))),
        tool="" if tool is None or parts.get("status") == "0" else _last(tool),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() else None


def _last(lines: Sequence[str]) -> str:
    """The end of what was said, in one line."""
    told = [x.strip() for x in lines if x.strip()]
    return " ".join(told)[-SAID:]
