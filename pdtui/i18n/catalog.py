"""Look-up of shown text: the chosen language first, English where it has no entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pdtui.i18n.en import TEXT as _EN

Language = Literal["en"]

_TABLES: dict[Language, Mapping[str, str]] = {"en": _EN}
_current: Language = "en"


def use(language: Language) -> None:
    """Choose the language of everything drawn from now on."""
    global _current
    _current = language


def current() -> Language:
    """The language in use."""
    return _current


def tr(key: str, /, **values: object) -> str:
    """The text of `key` with its `{placeholders}` filled. KeyError: nobody wrote it."""
    text = _TABLES[_current].get(key)
    if text is None:
        text = _EN[key]
    return text.format(**values) if values else text


def word(prefix: str, name: str) -> str:
    """The text of `prefix.name`, or `name` itself when the catalogue does not know it."""
    key = f"{prefix}.{name}"
    return tr(key) if key in _EN else name
