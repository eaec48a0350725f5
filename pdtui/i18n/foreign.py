"""Short texts of the backend that carry no id (notes, differences, reasons), in the language in use
where it is known how to say them. What is told with an id goes through `pdtui.present.telling`."""

from __future__ import annotations

from functools import lru_cache

from pdtui.i18n.catalog import current


def said_as(text: str) -> str:
    """`text` in the language in use; as it came where nobody has put it into words."""
    if current() == "en" or not text:
        return text
    return _chinese(text)


@lru_cache(maxsize=4096)
def _chinese(text: str) -> str:
    from pdtui.i18n.zh_said import SAID

    for pattern, words in SAID:
        if match := pattern.fullmatch(text):
            parts = {
                k: _chinese(v) if k.startswith("s_") else v or ""
                for k, v in match.groupdict(default="").items()
            }
            return words.format(**parts).rstrip("： ")
    return text
