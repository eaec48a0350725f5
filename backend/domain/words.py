"""A sentence in both languages of the console."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backend.domain.value import Value


class Words(Value):
    """The same sentence in English and Simplified Chinese."""

    en: str = ""
    zh: str = ""

    def text(self, language: str) -> str:
        """The sentence in `en` or `zh`."""
        return self.zh if language == "zh" else self.en

    def filled(self, values: Mapping[str, object]) -> Words:
        """With `{placeholders}` filled. Raises KeyError for one that has no value."""
        return Words(en=self.en.format_map(values), zh=self.zh.format_map(values))

    def __bool__(self) -> bool:
        return bool(self.en)


SILENCE = Words()
"""Nothing said."""


def both(en: str, zh: str, /, **values: object) -> Words:
    """A sentence in both languages, its `{placeholders}` filled when values are given."""
    words = Words(en=en, zh=zh)
    return words.filled(values) if values else words


def joined(sentences: Iterable[Words]) -> Words:
    """Sentences after one another."""
    found = [s for s in sentences if s]
    return Words(en=" ".join(s.en for s in found), zh="".join(s.zh for s in found))
