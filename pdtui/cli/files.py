"""Reading documents from files: a broken or hostile one is told by its line and harms nothing."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from backend.domain.errors import Invalid

MOST_BYTES = 4 << 20
MOST_NODES = 200_000
"""Values of a document once every alias is written out."""


def read_documents(path: Path) -> list[Any]:
    """The YAML or JSON documents of a file, `-` for stdin.

    Raises Invalid (`file.unreadable`, `file.yaml`, `file.too_large`, `file.empty`) naming the file
    and, where there is one, the line.
    """
    try:
        found = load_all(read_text(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        why = getattr(error, "problem", None) or "it is not YAML"
        raise Invalid.of(
            "file.yaml",
            f"{path} is not readable YAML{at}: {why}.",
            values={"file": str(path), "line": mark.line + 1 if mark else 0},
            remedy="Correct that line; a tab or a missing quote is the usual cause.",
        ) from None
    if not found:
        raise Invalid.of(
            "file.empty",
            f"{path} holds no document.",
            values={"file": str(path)},
            remedy="Start from the example in the README.",
        )
    return found


def load_all(text: str) -> list[Any]:
    """Every document of a text that is not empty. Raises yaml.YAMLError, also for a key written
    twice and for aliases that write out to more than `MOST_NODES` values."""
    found = [d for d in yaml.load_all(text, Loader=_Loader) if d is not None]
    sizes: dict[int, int] = {}
    if sum(_nodes(d, sizes) for d in found) > MOST_NODES:
        raise yaml.constructor.ConstructorError(
            problem=f"it is more than {MOST_NODES} values once its aliases are written out"
        )
    return [_joined(d) for d in found]


def read_text(path: Path) -> str:
    """The text of a file, `-` for stdin. Raises Invalid (`file.unreadable`, `file.too_large`)."""
    try:
        raw = sys.stdin.buffer.read(MOST_BYTES + 1) if str(path) == "-" else _bytes(path)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid.of(
            "file.unreadable",
            f"{path} cannot be read: {error}.",
            values={"file": str(path)},
            remedy="Check the path, its permissions, and that it is UTF-8.",
        ) from None
    if len(raw) > MOST_BYTES:
        raise Invalid.of(
            "file.too_large",
            f"{path} is too large to be a deployment: more than {MOST_BYTES >> 20} MiB.",
            values={"file": str(path)},
            remedy="Split it.",
        )
    return text


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


class _Loader(yaml.SafeLoader):
    """Refuses a key that is written twice in one mapping: the first would silently be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is written twice", key_node.start_mark
                )
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)


def _nodes(value: Any, sizes: dict[int, int]) -> int:
    """How many values this is with aliases written out; each shared part is counted once."""
    if not isinstance(value, dict | list):
        return 1
    known = sizes.get(id(value))
    if known is not None:
        return known
    sizes[id(value)] = MOST_NODES + 1  # an alias to what holds it: endless
    inner = value.values() if isinstance(value, dict) else value
    total = 1 + sum(_nodes(v, sizes) for v in inner)
    sizes[id(value)] = total
    return total


def _joined(value: Any) -> Any:
    """The value with the surrogate pairs of JSON's `\\ud83c\\udf89` joined to one character."""
    if isinstance(value, str):
        if value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value):
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_joined(k): _joined(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_joined(v) for v in value]
    return value
