"""Lines of spans to strips: the one way text reaches the terminal, never parsed as markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from pdtui.present.cells import TONES, Line, Span, Tone, fit
from pdtui.present.status import glyphs

TONE_CLASSES = frozenset(f"tone--{t}" for t in TONES)


class Toned(Widget):
    """A widget that draws spans with the theme's tones."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(TONE_CLASSES)

    def tone(self, tone: Tone) -> Style:
        """The terminal style of a tone on this widget's background."""
        return self.get_component_rich_style(f"tone--{tone}")

    def strip(
        self, spans: Sequence[Span], size: int, over: Style | None = None, *, cut: bool = True
    ) -> Strip:
        """`spans` in exactly `size` cells, with `over` laid upon every tone."""
        fitted = fit(spans, size, more=glyphs().more if cut else "")
        return Strip(
            [
                Segment(s.text, self.tone(s.tone) + over if over else self.tone(s.tone))
                for s in fitted
            ],
            size,
        )


class Lines(Toned):
    """Some lines, as tall as their number; repaints only the lines that differ."""

    DEFAULT_CSS = """
    Lines { height: auto; width: 1fr; }
    """

    def __init__(
        self,
        lines: Iterable[Line] = (),
        *,
        widget_id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=widget_id, classes=classes)
        self._lines: list[Line] = list(lines)

    @property
    def lines(self) -> list[Line]:
        """What is shown."""
        return self._lines

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the lines."""
        new = list(lines)
        old, self._lines = self._lines, new
        if len(new) != len(old):
            self.refresh(layout=True)
            return
        top, left = self.gutter.top, self.gutter.left
        for y, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                self.refresh(Region(left, top + y, self.size.width, 1))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """All there is."""
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One row a line."""
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        """One line, cut to the width."""
        return self.strip(self._lines[y] if y < len(self._lines) else (), self.size.width)
