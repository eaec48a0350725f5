"""What is told of groups and hosts: an id with values, said in the reader's language. Pure.

History lines, marks and warnings are kept as data; the sentence is made where it is read. Values
are shown as `backend.domain.rules.words` shows them; one that is told itself is said in the same
language, and several such are put one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import Field

from backend.domain.errors import Problem
from backend.domain.rules.words import Language, say, shown
from backend.domain.telling.text_life import TEXT as _LIFE
from backend.domain.telling.text_marks import TEXT as _MARKS
from backend.domain.value import Value

TEXT: Mapping[str, tuple[str, str]] = {**_LIFE, **_MARKS}
"""id -> the English and the Chinese template."""

PLAIN = "plain"
"""The id of words that are the same in every language: `text`."""
PROBLEM = "problem"
"""The id of a finding or a failure; its values are the `Problem`."""


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


def problem(found: Problem) -> Said:
    """A finding or a failure, told with its remedy."""
    return Said(id=PROBLEM, values=found.model_dump(mode="json"))


def told(one: Said, language: Language) -> str:
    """The sentence. An id that this version does not know is shown with its values."""
    return _told(one, language).strip()


def _told(one: Said, language: Language) -> str:
    if one.id == PLAIN:
        return str(one.values.get("text", ""))
    if one.id == PROBLEM:
        found = Problem.model_validate(one.values)
        message, remedy = say(found, language)
        return found.model_copy(update={"message": message, "remedy": remedy}).sentence()
    values = {k: _shown(v, language) for k, v in one.values.items()}
    if one.id not in TEXT:
        return f"{one.id} {values}"
    template = TEXT[one.id][1 if language == "zh" else 0]
    return template.format_map(values)


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
