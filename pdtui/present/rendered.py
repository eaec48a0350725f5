"""The command of one role, whole and in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.present.cells import Line, Span, line
from pdtui.present.detail import fact, section
from pdtui.present.numbers import NONE

if TYPE_CHECKING:
    from backend.domain.views import RenderedView


def page(view: RenderedView) -> list[Line]:
    """What it is an example of, the shell's line, then its words, environment and ports."""
    out: list[Line] = [
        line(Span(word("role", view.role), "strong"), Span(f"  {tr('rendered.means')}", "dim")),
        (),
        line(Span(view.command, "accent")),
    ]
    out += section(tr("rendered.where"))
    out += [
        fact(tr("col.host"), view.host),
        fact(tr("field.image"), view.image or NONE),
        *(fact(b.name, str(b.base) if b.count == 1 else f"{b.base}-{b.base + b.count - 1}")
          for b in view.bands),
        *(fact(tr("rendered.file"), name) for name in view.files),
    ]  # fmt: skip
    out += section(tr("rendered.words"))
    out += [line(f"  {word_}") for word_ in _paired(view.argv)]
    if view.env:
        out += section(tr("field.env"))
        out += [line(f"  {k}={v}") for k, v in view.env.items()]
    return out


def _paired(argv: tuple[str, ...]) -> list[str]:
    """A flag and its value on one line."""
    out: list[str] = []
    for token in argv:
        open_flag = out and out[-1].startswith("--") and " " not in out[-1] and "=" not in out[-1]
        if open_flag and not token.startswith("--"):
            out[-1] += f" {token}"
        else:
            out.append(token)
    return out
