"""What is told of groups and hosts: an id with values, said in the reader's language. Pure.

History lines, marks and warnings are kept as data; the sentence is made where it is read. Values
are shown as `backend.domain.rules.words` shows them; one that is told itself is said in the same
language, and several such are put one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from backend.domain.errors import Problem
from backend.domain.rules.words import Language, say, shown
from backend.domain.telling.text_doctor import TEXT as _DOCTOR
from backend.domain.telling.text_inside import TEXT as _INSIDE
from backend.domain.telling.text_life import TEXT as _LIFE
from backend.domain.telling.text_marks import TEXT as _MARKS
from backend.domain.telling.text_structure import TEXT as _STRUCTURE
from backend.domain.telling.text_watch import TEXT as _WATCH
from backend.domain.value import Value
from backend.domain.words import Words

TEXT: Mapping[str, tuple[str, str]] = {
    **_LIFE,
    **_MARKS,
    **_DOCTOR,
    **_INSIDE,
    **_STRUCTURE,
    **_WATCH,
}
"""id -> the English and the Chinese template."""

PLAIN = "plain"
"""The id of words that are the same in every language: `text`."""
PROBLEM = "problem"
"""The id of a finding or a failure; its values are the `Problem`."""
MEANING = "meaning"
"""The id of a log's `line` with what it means in each language."""
SEVERAL = "several"
"""The id of a list in a sentence: `items`, words or things told."""
LISTED = 6
"""How many of them are named; of the others their number is."""


class Said(Value):
    """One thing told; `values` fill the sentence that `id` names."""

    id: str
    values: dict[str, Any] = Field(default_factory=dict)


def said(key: str, /, **values: Any) -> Said:
    """Something to tell. KeyError: nobody wrote that sentence, or it names another value."""
    made = Said(id=key, values={k: _plain(v) for k, v in values.items()})
    TEXT[key][0].format_map(made.values)
    return made


def plainly(text: str) -> Said:
    """Words that are told as they are: what a program wrote, what a rule said long ago."""
    return Said(id=PLAIN, values={"text": text})


def several(items: Sequence[Said | str]) -> Said:
    """The first few of what is listed, and how many more there are."""
    return Said(id=SEVERAL, values={"items": _plain(items)})


def meaning(line: str, cause: Words) -> Said:
    """A line of a log, and what it means where that is known."""
    if not cause:
        return plainly(line)
    return Said(id=MEANING, values={"line": line, **cause.model_dump()})


def worded(found: Problem) -> tuple[Said, Said]:
    """Message (without its full stop) and remedy of a finding or a failure, each by itself."""
    values = found.model_dump(mode="json")
    return Said(id=f"{PROBLEM}.message", values=values), Said(id=f"{PROBLEM}.remedy", values=values)


def problem(found: Problem) -> Said:
    """A finding or a failure, told with its remedy."""
    return Said(id=PROBLEM, values=found.model_dump(mode="json"))


def told(one: Said, language: Language) -> str:
    """The sentence. An id that this version does not know is shown with its values."""
    return _told(one, language).strip()


def _told(one: Said, language: Language) -> str:
    if one.id == PLAIN:
        return str(one.values.get("text", ""))
    if one.id.partition(".")[0] == PROBLEM:
        found = Problem.model_validate(one.values)
        message, remedy = say(found, language)
        if one.id.endswith(".message"):
            return message.rstrip(".。")
        if one.id.endswith(".remedy"):
            return remedy
        return found.model_copy(update={"message": message, "remedy": remedy}).sentence()
    if one.id == MEANING:
        line, cause = one.values["line"], one.values[language]
        return f"{line}（{cause}）" if language == "zh" else f"{line} ({cause})"
    if one.id == SEVERAL:
        return _listed(one.values.get("items") or [], language)
    values = {k: _shown(v, language) for k, v in one.values.items()}
    if one.id not in TEXT:
        return f"{one.id} {values}"
    template = TEXT[one.id][1 if language == "zh" else 0]
    return template.format_map(values)


def _listed(items: Sequence[Any], language: Language) -> str:
    named = [_shown(item, language) for item in items[:LISTED]]
    more = len(items) - len(named)
    if language == "zh":
        return "、".join(named) + (f" 等，另有 {more} 项" if more else "")
    return ", ".join(named) + (f" and {more} more" if more else "")


def all_told(many: Iterable[Said], language: Language) -> str:
    """Several sentences, one after another."""
    return ("" if language == "zh" else " ").join(told(one, language) for one in many)


def rewritten(one: Said, write: Callable[[str], str]) -> Said:
    """What is told, with every text among its values passed through `write`."""
    return Said(id=one.id, values=_rewritten(one.values, write))


def _rewritten(value: Any, write: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return write(value)
    if isinstance(value, Mapping):
        return {k: v if k == "id" else _rewritten(v, write) for k, v in value.items()}
    if isinstance(value, list):
        return [_rewritten(v, write) for v in value]
    return value


def _plain(value: Any) -> Any:
    """A value as JSON has it, so that what was stored reads as what was told."""
    if isinstance(value, Said):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def _shown(value: Any, language: Language) -> str:
    if isinstance(value, Mapping) and value.keys() == {"id", "values"}:
        return _told(Said.model_validate(value), language)
    if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
        return all_told((Said.model_validate(v) for v in value), language)
    return shown(value, language)
