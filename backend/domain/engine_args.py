"""Reading an engine's arguments in any spelling a person may write them.

A parameter list holds single tokens (`--k`, `v`), `--k=v`, `--k v` in one string, or a whole pasted
command line. `flatten` turns any of these into argv tokens; everything else here reads such tokens.
Keys are compared without leading dashes and with `-` and `_` taken as equal; the last one wins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NUMBER = re.compile(r"^-\d+(\.\d+)?$")
_PIECE = re.compile(r"""([^\s'"\\]+)|\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)\"""", re.S)
_IN_DOUBLE = re.compile(r'\\(["\\])')
_JSON_BEGIN = re.compile(r"""(?:-[^\s={\['"]*=)?(?=[{\[])""")
_DECODER = json.JSONDecoder()
_LENGTH = re.compile(r"^(\d+(?:\.\d+)?)\s*([kKmMgG]?)$")
_CONTINUED = re.compile(r"\\\r?\n")
_FACTOR = {
    "": 1,
    "k": 10**3, "m": 10**6, "g": 10**9,
    "K": 2**10, "M": 2**20, "G": 2**30,
}  # fmt: skip


def flatten(parameters: Iterable[str]) -> tuple[str, ...]:
    """`parameters` as argv tokens.

    Only an item that starts with a dash is split, by the shell's rules, with JSON kept whole. A
    `--k=v` whose value holds spaces stays one token unless another flag follows it.
    """
    out: list[str] = []
    for item in parameters:
        out.extend(_split(item))
    return tuple(out)


def _split(item: str) -> list[str]:
    text = _CONTINUED.sub(" ", item.strip())
    if not text.startswith("-") or not re.search(r"\s", text):
        return [item]
    try:
        tokens = _shell_words(text)
    except ValueError:  # an unbalanced quote: not a command line, so a flag and its literal value
        return text.split(None, 1)
    head = text.split(None, 1)[0]
    if "=" in head and not any(is_flag(t) for t in tokens[1:]):
        return [text] if len(tokens) > 1 else tokens
    return tokens


def _shell_words(text: str) -> list[str]:
    """Split as a shell does, except that a JSON object or array is taken as it stands.

    Raises ValueError for a quote that is not closed.
    """
    words: list[str] = []
    at = len(text) - len(text.lstrip())
    while at < len(text):
        end = _json_end(text, at)
        if end:
            words.append(text[at:end])
        else:
            word, end = _one_word(text, at)
            words.append(word)
        at = end
        while at < len(text) and text[at].isspace():
            at += 1
    return words


def _json_end(text: str, at: int) -> int:
    """Where the JSON that begins at `at` (or after a `--flag=` there) ends; 0 if none does."""
    begin = _JSON_BEGIN.match(text, at)
    if not begin:
        return 0
    try:
        _, end = _DECODER.raw_decode(text, begin.end())
    except (ValueError, RecursionError):
        return 0
    return end if end == len(text) or text[end].isspace() else 0


def _one_word(text: str, at: int) -> tuple[str, int]:
    pieces: list[str] = []
    while at < len(text) and not text[at].isspace():
        piece = _PIECE.match(text, at)
        if not piece:
            raise ValueError("a quote is not closed")
        plain, escaped, single, double = piece.groups()
        if double is not None:
            plain = _IN_DOUBLE.sub(r"\1", double)
        pieces.append(next(p for p in (plain, escaped, single) if p is not None))
        at = piece.end()
    return "".join(pieces), at


def parse_json(text: str) -> Any:
    """`text` as JSON. Raises ValueError, also for what is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def is_flag(token: str) -> bool:
    """Whether `token` names a flag; a negative number does not, nor does a lone dash."""
    return len(token) > 1 and token.startswith("-") and not _NUMBER.match(token)


def normal(spelling: str) -> str:
    """The form in which two spellings of one flag are equal."""
    return spelling.lstrip("-").replace("_", "-")


@dataclass(frozen=True)
class Occurrence:
    """One flag as written: tokens `[start, stop)`, key, the JSON keys after a dot, value."""

    start: int
    stop: int
    key: str
    subkeys: tuple[str, ...]
    value: str | None


def occurrences(args: Sequence[str], *spellings: str) -> tuple[Occurrence, ...]:
    """Every occurrence in `args` of a flag, or only of those named."""
    wanted = {normal(s) for s in spellings}
    found: list[Occurrence] = []
    index = 0
    while index < len(args):
        token = args[index]
        if not is_flag(token):
            index += 1
            continue
        name, equals, inline = token.partition("=")
        name, *subkeys = name.split(".")
        stop = index + 1
        value: str | None = inline if equals else None
        if not equals and stop < len(args) and not is_flag(args[stop]):
            value, stop = args[stop], stop + 1
        if not wanted or normal(name) in wanted:
            found.append(Occurrence(index, stop, normal(name), tuple(subkeys), value))
        index = stop
    return tuple(found)


def present(args: Sequence[str], *spellings: str) -> bool:
    """Whether any of the spellings occurs, with a value or without."""
    return bool(occurrences(args, *spellings))


def value(args: Sequence[str], *spellings: str) -> str | None:
    """The value of the last occurrence that has one, or None."""
    values = [o.value for o in occurrences(args, *spellings) if not o.subkeys]
    return next((v for v in reversed(values) if v is not None), None)


def without(args: Sequence[str], *spellings: str) -> tuple[str, ...]:
    """`args` with every occurrence of the flags, and their values, taken out."""
    gone = {i for o in occurrences(args, *spellings) for i in range(o.start, o.stop)}
    return tuple(a for i, a in enumerate(args) if i not in gone)


def json_value(args: Sequence[str], *spellings: str) -> dict[str, Any] | None:
    """The JSON object a flag is given, whole or key by key (`--flag.key.sub value`), or None.

    Raises ValueError when a whole value is no JSON object.
    """
    result: dict[str, Any] | None = None
    for seen in occurrences(args, *spellings):
        if seen.value is None:
            continue
        if not seen.subkeys:
            whole = parse_json(seen.value)
            if not isinstance(whole, dict):
                raise ValueError(f"{seen.value!r} is no JSON object")
            result = whole
            continue
        result = {} if result is None else result
        node = result
        for name in seen.subkeys[:-1]:
            inner = node.get(name)
            if not isinstance(inner, dict):
                inner = node[name] = {}
            node = inner
        node[seen.subkeys[-1]] = _loose(seen.value)
    return result


def _loose(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


def integer(args: Sequence[str], *spellings: str) -> int | None:
    """The flag's value as a plain integer; None where it is absent or is none."""
    text = value(args, *spellings)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def parse_length(text: str | int) -> int | None:
    """A context length in tokens: `32768`, `32K` (binary), `128k`, `25.6k` (decimal).

    None for `auto` and -1, which leave the choice to the engine. Raises ValueError for the rest.
    """
    written = str(text).strip()
    if written.lower() == "auto" or written == "-1":
        return None
    match = _LENGTH.match(written)
    if not match:
        raise ValueError(f"{written!r} is no length: write tokens, 128k (decimal) or 32K (binary)")
    number, suffix = match.groups()
    if "." in number and not suffix.islower():
        raise ValueError(f"{written!r}: a fraction takes k, m or g")
    tokens = (
        round(float(number) * _FACTOR[suffix]) if "." in number else int(number) * _FACTOR[suffix]
    )
    if tokens < 1:
        raise ValueError(f"{written!r} is no length: it must be at least 1")
    return tokens


@dataclass(frozen=True)
class Parallel:
    """Degrees as written; None where a role writes none or no plain integer."""

    tensor: int | None = None
    data: int | None = None
    pipeline: int | None = None
    context: int | None = None

    @property
    def written(self) -> bool:
        """Whether any degree is written."""
        return any(d is not None for d in (self.tensor, self.data, self.pipeline, self.context))

    def resolve(self, accelerators: int) -> Parallel:
        """The degrees in effect on `accelerators`: all of them in one tensor group if none is
        written, else 1 for what is not."""
        tensor = max(accelerators, 1) if not self.written else self.tensor or 1
        return Parallel(tensor, self.data or 1, self.pipeline or 1, self.context or 1)


def parallel(args: Sequence[str], flags: Mapping[str, Sequence[str]]) -> Parallel:
    """The degrees that `args` write, by an engine's own flag table (`EngineRecipe.flags`)."""

    def degree(name: str) -> int | None:
        spellings = flags.get(name, ())
        return integer(args, *spellings) if spellings else None

    return Parallel(
        degree("tensor_parallel"),
        degree("data_parallel"),
        degree("pipeline_parallel"),
        degree("context_parallel"),
    )
