"""The one way a value reaches a remote shell."""

from __future__ import annotations

from collections.abc import Iterable

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def quote(value: str) -> str:
    """`value` as exactly one POSIX shell word, whatever it holds.

    Raises ValueError for a NUL character, which no argument can carry.
    """
    if "\0" in value:
        raise ValueError("an argument cannot hold a NUL character")
    if value and all(c in _PLAIN for c in value):
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"


def join(argv: Iterable[str]) -> str:
    """The words of `argv`, each quoted, with single spaces between."""
    return " ".join(quote(a) for a in argv)
