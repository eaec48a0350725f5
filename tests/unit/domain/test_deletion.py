"""What taking one instance out means, by policy."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.decide import Picture
from backend.domain.deletion import consequences
from backend.domain.telling import all_told, told
from tests.unit.domain.pictures import endpoint, group, one, picture

P, D, R = one("p1"), one("d1"), one("r")
EXTRA = one("p2")


def about(victim: str, *more: Any, membership: str = "dynamic", **g: Any) -> str:
    p: Picture = picture(group(endpoint=endpoint(), **g), P, D, *more, R, membership=membership)
    return all_told(consequences(p, next(i for i in p.instances if i.id == victim)), "en")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (about("p1", EXTRA), ""),
        (about("p1"), "No prefill member is left"),
        (about("p1", EXTRA, membership="restart"), "The router is replaced for it"),
        (about("p1", EXTRA, membership="manual"), "tell it to forget http://10.0.0.1:40000"),
        (about("p1", EXTRA, revision="r2"), "will not be re-created before the restart"),
        (about("d1", revision="r2"), "until the restart"),
        (about("r"), "The endpoint answers nothing until the new router serves"),
    ],
)
def test_a_deletion_says_what_it_means(said: str, expected: str) -> None:
    assert said.startswith(expected) if not expected else expected in said
    if not expected:
        assert said == ""


def test_a_silent_host_is_named_with_what_force_would_do() -> None:
    p = picture(group(endpoint=endpoint()), P, EXTRA, D, R, membership="dynamic")
    (waits,) = consequences(p, EXTRA, silent=True)
    assert told(waits, "en").startswith("h-p2 does not answer: p2 is given up only once")
    (forced,) = consequences(p, EXTRA, silent=True, force=True)
    assert "p2 may go on there unseen until it is killed" in told(forced, "en")
    assert len(consequences(p, R, silent=True)) == 2
