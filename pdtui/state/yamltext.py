"""Documents as YAML text: written for people, read back with the line of a mistake, compared."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

import yaml

from backend.domain import yamlread


def dump(document: Mapping[str, Any]) -> str:
    """A document as YAML, in its own order; text that YAML 1.2 takes for a number is quoted."""
    return yaml.dump(
        _plain(document),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, and quotes what another reader might take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if yamlread.NUMBER.fullmatch(text):
        style = "'"
    elif any(c in _BREAKS for c in text):
        style = '"'
    elif _LINES.fullmatch(text):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BREAKS = "\x85\u2028\u2029\r"
_LINES = re.compile(r"(?:[^\s][ -~]*[!-~]\n)+(?:[^\s][ -~]*[!-~])?")
"""Plain lines that a block shows as they are."""
_Dumper.add_representer(str, _text)


def load(text: str) -> Any:
    """What a text says. Raises ValueError naming line and column."""
    try:
        return yamlread.read_one(text)
    except yamlread.Mistake as mistake:
        raise ValueError(str(mistake)) from None


def diff(before: Mapping[str, Any] | None, after: Mapping[str, Any], context: int = 2) -> list[str]:
    """The lines by which two documents differ, each with its mark (`+`, `-`, space, `@`)."""
    old = dump(before).splitlines() if before else []
    lines = difflib.unified_diff(old, dump(after).splitlines(), n=context, lineterm="")
    out = [text for text in lines if not text.startswith(("---", "+++"))]
    return ["@" if text.startswith("@@") else text for text in out][1:]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
