"""Pure: how each kind of field is written on one line, and read back.

Reading never fails: what has no sense stays as it was typed, and the rules say what is wrong with
it at its field.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from backend.domain import references
from backend.domain.engine_args import flatten, is_flag, normal
from backend.domain.rows import Row, strip_unmodified
from pdtui.state.document import get, put, without

if TYPE_CHECKING:
    from backend.domain.views import ModeView

Kind = Literal[
    "text", "number", "choice", "command", "list", "env", "hosts", "placement", "cache", "labels",
    "json",
]  # fmt: skip
ROUTER = "spec.roles.router"
_INTEGER = re.compile(r"^-?\d+$")
_ENTRY = re.compile(r"^\[(\d+)\]|^\.(.+)$")
_EMPTY: Mapping[str, Any] = {
    "number": 0, "command": [], "list": [], "env": {}, "hosts": {}, "placement": [],
    "cache": {"kind": "none"}, "labels": {}, "json": {},
}  # fmt: skip


def empty(kind: Kind) -> Any:
    """An explicit nothing of that kind."""
    found = _EMPTY.get(kind, "")
    return type(found)(found)


def written(kind: Kind, value: Any) -> str:
    """A value on one line, as `read` takes it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    match kind:
        case "command" if isinstance(value, list):
            return " ".join(_word(str(v)) for v in value)
        case "hosts" if isinstance(value, Mapping):
            labels = [f"{k}={v}" for k, v in (value.get("labels") or {}).items()]
            return " ".join([*(value.get("names") or []), *labels])
        case "placement" if isinstance(value, list):
            return " ".join(_pin(p) for p in value)
        case "cache" if isinstance(value, Mapping):
            return " ".join(str(v) for v in (value.get("kind"), value.get("service")) if v)
        case "labels" if isinstance(value, Mapping):
            return " ".join(f"{k}={v}" for k, v in value.items())
        case "json":
            return json.dumps(value, ensure_ascii=False)
        case "list" | "env" if isinstance(value, list | Mapping):
            return ""
        case _:
            return str(value)


def read(kind: Kind, text: str, before: Any = None) -> Any:
    """The value a line stands for; None for an empty line."""
    text = text.strip()
    if not text:
        return None
    match kind:
        case "number":
            return int(text) if _INTEGER.match(text) else text
        case "command":
            try:
                return shlex.split(text)
            except ValueError:
                return text.split()
        case "hosts":
            words = text.replace(",", " ").split()
            names = [w for w in words if "=" not in w]
            labels = _pairs(words)
            return ({"names": names} if names else {}) | ({"labels": labels} if labels else {})
        case "placement":
            return [_read_pin(w) for w in text.split()]
        case "cache":
            name, _, service = text.partition(" ")
            same = isinstance(before, Mapping) and before.get("kind") == name
            rest = {k: v for k, v in before.items() if k != "service"} if same else {}
            return {**rest, "kind": name} | ({"service": service.strip()} if service else {})
        case "labels":
            return _pairs(text.replace(",", " ").split())
        case "json":
            try:
                return json.loads(text)
            except ValueError:
                return text
        case _:
            return text


def rows(kind: Kind, value: Any) -> list[tuple[tuple[int, int], str, str]]:
    """The entries of a list or an environment: what each covers, its name, its text."""
    if isinstance(value, Mapping):
        return [
            ((i, i + 1), str(k), f"{k}={_variable(v)}") for i, (k, v) in enumerate(value.items())
        ]
    if not isinstance(value, list):
        return []
    items = [str(v) for v in value]
    out: list[tuple[tuple[int, int], str, str]] = []
    at = 0
    while at < len(items):
        stop = at + 1 + _takes_next(items, at)
        text = " ".join(_quoted(t) if i else t for i, t in enumerate(items[at:stop]))
        out.append(((at, stop), re.split(r"[\s=]", items[at], maxsplit=1)[0], text))
        at = stop
    return out


def _variable(value: Any) -> str:
    """A variable's value; a reference as `{from_env: NAME}`."""
    known = isinstance(value, Mapping) and len(value) == 1 and set(value) <= set(references.KINDS)
    return references.written(value) if known else str(value)


def spliced(kind: Kind, base: Any, at: tuple[int, int], text: str) -> Any:
    """The entries with those at `at` replaced by what `text` says; empty text takes them out."""
    start, stop = at
    if kind == "env":
        pairs = list(base.items()) if isinstance(base, Mapping) else []
        name, _, value = text.strip().partition("=")
        pairs[start:stop] = [(name.strip(), references.read(value))] if name.strip() else []
        return dict(pairs)
    items = [str(v) for v in base] if isinstance(base, list) else []
    items[start:stop] = flatten([text.strip()]) if text.strip() else []
    return items


def entry_of(rest: str) -> int | str | None:
    """Which entry the rest of a path (`[3]`, `.NAME`) names."""
    if not (match := _ENTRY.match(rest)):
        return None
    return int(match[1]) if match[1] else match[2]


def same_name(one: str, other: str) -> bool:
    """Whether two flags, or two variables, are the same in any spelling."""
    flags = one.startswith("-") and other.startswith("-")
    return normal(one) == normal(other) if flags else one == other


def strip_router(document: dict[str, Any], mode: ModeView | None) -> dict[str, Any]:
    """The document without router rows that only repeat what the mode generates."""
    if mode is None:
        return document
    made = [
        Row("env" if r.kind == "env" else "argument", r.name, r.text, r.locked) for r in mode.rows
    ]
    parameters, env = get(document, f"{ROUTER}.parameters"), get(document, f"{ROUTER}.env")
    if not isinstance(parameters, list | None) or not isinstance(env, Mapping | None):
        return document
    left, left_env = strip_unmodified(made, parameters, env)
    for name, before, after in (("parameters", parameters, left), ("env", env, left_env)):
        path = f"{ROUTER}.{name}"
        if after is None and before is not None:
            document = without(document, path)
        elif after != before:
            document = put(document, path, after)
    return document


def _pin(pin: Any) -> str:
    if not isinstance(pin, Mapping):
        return str(pin)
    chips = pin.get("accelerators")
    return str(pin.get("host", "")) + (
        "" if chips is None else ":" + ",".join(str(c) for c in chips)
    )


def _read_pin(word: str) -> dict[str, Any]:
    host, colon, chips = word.partition(":")
    found = [int(c) if c.isdecimal() else c for c in chips.split(",") if c]
    return {"host": host} | ({"accelerators": found} if colon else {})


def _pairs(words: Sequence[str]) -> dict[str, str]:
    return {k: v for k, equals, v in (w.partition("=") for w in words) if equals}


def _takes_next(items: Sequence[str], at: int) -> bool:
    token = items[at]
    bare = is_flag(token) and "=" not in token and not re.search(r"\s", token)
    return bare and at + 1 < len(items) and not is_flag(items[at + 1])


def _quoted(token: str) -> str:
    plain = not re.search(r"[\s'\"\\]", token) or token[:1] in "{["
    return token if plain and token else shlex.quote(token)


def _word(token: str) -> str:
    return shlex.quote(token) if not token or re.search(r"[\s'\"\\]", token) else token
