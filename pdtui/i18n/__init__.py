"""Every sentence the console shows, by key; `tr` looks one up and fills in its values."""

from __future__ import annotations

from pdtui.i18n.catalog import Language, current, pick, tr, use

__all__ = ["Language", "current", "pick", "tr", "use"]
