"""Look-up of shown text: the chosen language first, English where it has no entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pdtui.i18n.en import TEXT as _EN

Language = Literal["en", "zh"]

_current: Language = "en"
_table: Mapping[str, str] = _EN


def use(language: Language) -> None:
    """Choose the language of everything drawn from now on."""
    global _current, _table
    _current = language
    if language == "zh":
        from pdtui.i18n.zh import TEXT

        _table = TEXT
    else:
        _table = _EN


def current() -> Language:
    """The language in use."""
    return _current


def pick(environ: Mapping[str, str], setting: str = "") -> Language:
    """As set (PDTUI_LANGUAGE, `zh` or `en`), else by the locale."""
    for name in (setting, environ.get("PDTUI_LANGUAGE", "")):
        if name:
            return "zh" if name.lower().startswith("zh") else "en"
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environ[n] for n in names if environ.get(n)), "")
    return "zh" if locale.lower().startswith("zh") else "en"


def tr(key: str, /, **values: object) -> str:
    """The text of `key` with its `{placeholders}` filled. KeyError: nobody wrote it."""
    text = _table.get(key)
    if text is None:
        text = _EN[key]
    return text.format(**values) if values else text


def word(prefix: str, name: str) -> str:
    """The text of `prefix.name`, or `name` itself when the catalogue does not know it."""
    return word_or(f"{prefix}.{name}", name)


def word_or(key: str, text: str) -> str:
    """The text of `key`; `text` as it came where the language has no words of its own for it."""
    return tr(key) if key in _table or key in _EN else text
