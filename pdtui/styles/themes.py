"""The two themes. Hues live here and nowhere else; everything else names tones."""

from __future__ import annotations

from textual.theme import Theme

_DARK = {
    "tone-text": "#d3d8de",
    "tone-dim": "#929ca8",
    "tone-strong": "#f2f4f7",
    "tone-accent": "#7fb0e0",
    "tone-ok": "#8cc27c",
    "tone-warn": "#e3b45f",
    "tone-bad": "#ea7a74",
    "tone-busy": "#6fc1cf",
    "tone-off": "#6b7581",
    "bar": "#1d2229",
    "cursor": "#2b3a4c",
    "cursor-blur": "#222831",
    "match": "#4a4020",
    "match-text": "#f2f4f7",
}
_LIGHT = {
    "tone-text": "#2b3138",
    "tone-dim": "#59636e",
    "tone-strong": "#0e1116",
    "tone-accent": "#1a5fa8",
    "tone-ok": "#2a7130",
    "tone-warn": "#8a5a00",
    "tone-bad": "#b3261e",
    "tone-busy": "#0b6b7d",
    "tone-off": "#7f8a95",
    "bar": "#e9ecef",
    "cursor": "#cfe0f3",
    "cursor-blur": "#e6eaee",
    "match": "#fbe7a8",
    "match-text": "#0e1116",
}

DARK = Theme(
    name="pdtui-dark",
    dark=True,
    primary="#7fb0e0",
    secondary="#6fc1cf",
    accent="#7fb0e0",
    foreground="#d3d8de",
    background="#14181d",
    surface="#1a1f26",
    panel="#1d2229",
    success="#8cc27c",
    warning="#e3b45f",
    error="#ea7a74",
    variables={**_DARK, "border": "#3a444f", "footer-key-foreground": "#7fb0e0"},
)
LIGHT = Theme(
    name="pdtui-light",
    dark=False,
    primary="#1a5fa8",
    secondary="#0b6b7d",
    accent="#1a5fa8",
    foreground="#2b3138",
    background="#fbfbf9",
    surface="#f3f4f5",
    panel="#e9ecef",
    success="#2a7130",
    warning="#8a5a00",
    error="#b3261e",
    variables={**_LIGHT, "border": "#b5bec7"},
)
THEMES: dict[str, Theme] = {"dark": DARK, "light": LIGHT}
DEFAULTS: dict[str, str] = _DARK
"""Values of our variables under a theme that does not define them."""


def pick(name: str | None, colorfgbg: str | None) -> str:
    """`dark` or `light`: as asked, else by what the terminal says of its background (COLORFGBG)."""
    if name in THEMES:
        return str(name)
    background = (colorfgbg or "").rpartition(";")[2]
    return "light" if background in ("7", "15") else "dark"
