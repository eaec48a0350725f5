"""The whole life of groups against a model of hosts, routers and a backend that is killed.

`Walk(seed).run(steps)` repeats one walk exactly; a seed that ever broke a promise is kept in FOUND.
"""

from __future__ import annotations

import pytest

from tests.unit.domain.walk import Walk

FOUND: tuple[int, ...] = ()
"""Seeds beyond the usual ones whose walk once broke a promise, each with a word on what it was."""


@pytest.mark.parametrize("seed", sorted({*range(32), *FOUND}))
def test_a_walk_keeps_every_promise(seed: int) -> None:
    Walk(seed).run(400)
