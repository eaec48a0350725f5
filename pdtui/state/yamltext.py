"""Documents as YAML text: written for people, read back with the line of a mistake, compared."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import yaml


def dump(document: Mapping[str, Any]) -> str:
    """A document as YAML, in its own order."""
    return yaml.safe_dump(
        _plain(document), sort_keys=False, allow_unicode=True, default_flow_style=False
    )


def load(text: str) -> Any:
    """What a text says. Raises ValueError naming line and column."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        where = f"{mark.line + 1}:{mark.column + 1}: " if mark else ""
        raise ValueError(f"{where}{why}") from None


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
