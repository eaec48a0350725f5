"""What a finding says, in the reader's language: every sentence is a template over its values.

A template is found by rule and case. Values are shown as they are; None is "not set", truth is on
or off, and a list is joined. A finding without a template says its own message in any language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from backend.domain.errors import Problem, Severity
from backend.domain.rules.text_environment import TEXT as _ENVIRONMENT
from backend.domain.rules.text_hosts import TEXT as _HOSTS
from backend.domain.rules.text_pairing import TEXT as _PAIRING
from backend.domain.rules.text_structure import TEXT as _STRUCTURE

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
TEXT: Mapping[str, Mapping[str, tuple[str, str]]] = {
    **_STRUCTURE,
    **_PAIRING,
    **_ENVIRONMENT,
    **_HOSTS,
}
"""`rule:case` -> language -> message and remedy."""

TOLD = "told"
"""The value that is message and remedy as `Said`, of a finding that no rule has a template for."""

_WORDS: Mapping[Language, Mapping[object, str]] = {
    "en": {None: "not set", True: "on", False: "off"},
    "zh": {None: "未设置", True: "开启", False: "关闭"},
}
_ALLOWED: Mapping[Language, str] = {
    "en": "It is let through by disaggregation.allow.",
    "zh": "已由 disaggregation.allow 放行。",
}


def finding(
    rule: str, case: str, path: str = "", verdict: Severity = "refused", /, **values: Any
) -> Problem:
    """A finding in its English words. KeyError: nobody wrote them, or they name another value."""
    found = Problem(rule=rule, case=case, path=path, verdict=verdict, values=values, message="")
    message, remedy = _filled(TEXT[f"{rule}:{case}"]["en"], values, "en")
    return found.model_copy(update={"message": message, "remedy": remedy})


def allowed(problem: Problem) -> Problem:
    """A refusal that the document lets through: unverified, and said to be."""
    found = problem.model_copy(
        update={"verdict": "unverified", "values": {**problem.values, "allowed": True}}
    )
    return found.model_copy(update={"remedy": say(found, "en")[1]})


def say(problem: Problem, language: Language) -> tuple[str, str]:
    """Message and remedy of a finding in `language`."""
    entry = TEXT.get(f"{problem.rule}:{problem.case}")
    if entry is None:
        return _told(problem, language)
    message, remedy = _filled(entry[language], problem.values, language)
    if problem.values.get("allowed") is True:
        remedy = _ALLOWED[language]
    return message, remedy


def _told(problem: Problem, language: Language) -> tuple[str, str]:
    from backend.domain.telling import Said, told  # which itself tells of problems

    words = problem.values.get(TOLD)
    if not isinstance(words, list) or len(words) != len(("message", "remedy")):
        return problem.message, problem.remedy
    message, remedy = (told(Said.model_validate(w), language) for w in words)
    return message, remedy


def _filled(
    templates: tuple[str, str], values: Mapping[str, Any], language: Language
) -> tuple[str, str]:
    texts = {name: shown(v, language) for name, v in values.items()}
    return templates[0].format_map(texts), templates[1].format_map(texts)


def shown(value: object, language: Language) -> str:
    """A value as a sentence has it."""
    if value is None or isinstance(value, bool):
        return _WORDS[language][value]
    if isinstance(value, list | tuple):
        return ("、" if language == "zh" else ", ").join(shown(v, language) for v in value)
    return str(value)
