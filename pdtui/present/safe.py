"""Foreign text made harmless: what a host sends is shown as it is written, and does nothing."""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]?"
)
_SELECTORS = range(0xFE00, 0xFE10)
TAB = " " * 4
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """`text` as one printable line.

    Escape sequences, control and format characters (bidi overrides, zero-width ones) are dropped,
    line breaks and odd spaces become spaces, and what has no shape becomes U+FFFD.
    """
    if text.isprintable() and not any(0xFE00 <= ord(c) < 0xFE10 for c in text if c > "\ufdff"):
        return text
    return "".join(_shown(c) for c in _ESCAPES.sub("", text))


def lines(text: str) -> list[str]:
    """`text` split at line ends, each line cleaned; a carriage return leaves what came last."""
    return [clean(_last_overwrite(part)) for part in text.split("\n")]


def _last_overwrite(line: str) -> str:
    """Progress bars rewrite their line with carriage returns: only the last writing is shown."""
    parts = [p for p in line.split("\r") if p]
    return parts[-1] if parts else ""


def _shown(char: str) -> str:
    if char == "\t":
        return TAB
    if char in "\n\r\v\f\x85\u2028\u2029":
        return " "
    if ord(char) in _SELECTORS:
        return ""
    if char.isprintable():
        return char
    match unicodedata.category(char):
        case "Zs":
            return " "
        case "Cc" | "Cf":
            return ""
        case _:
            return UNKNOWN
