"""The living tests' laboratory."""

from __future__ import annotations

from tests.live.conftest import lab, pytest_configure

__all__ = ["lab", "pytest_configure"]
