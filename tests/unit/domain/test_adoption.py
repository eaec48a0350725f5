"""A group rebuilt from what its instances' directories keep."""

from __future__ import annotations

import json
from typing import Any

from backend.domain.adoption import Left, keepsake, rebuild
from backend.domain.decide import wanted_counts
from backend.domain.group import Group, Instance, Restart
from backend.domain.instance import LaunchSpec, ProcessStatus
from tests.unit.domain.pictures import NOW, endpoint, group, one

LAUNCH = LaunchSpec(argv=("vllm",), address="10.0.0.1", port=40000)


def left(g: Group, i: Instance, **more: Any) -> Left:
    about: dict[str, Any] = {
        "host": i.host, "instance": i.id, "owner": "old", "row": json.loads(keepsake(g, i)),
        "launch": LAUNCH.model_dump(mode="json"),
        "process": ProcessStatus(instance=i.id, state="running", generation=3, pid=9),
    }  # fmt: skip
    return Left(**about | more)


def test_rows_come_back_as_right_after_their_start() -> None:
    g = group((2, 1), endpoint=endpoint(), restart=Restart(since=1.0))
    rows = [one("p1", note="x"), one("p2", "draining"), one("d1"), one("r", snapshot=())]
    ((adopted,), lost) = rebuild([left(g, i) for i in rows], NOW)
    assert lost == []
    assert (adopted.group.restart, adopted.group.endpoint) == (None, None)
    assert adopted.group.formed == g.formed
    assert adopted.group.document == g.document
    found = {i.id: i for i in adopted.instances}
    assert set(found) == {"p1", "p2", "d1", "r"}
    assert {i.state for i in found.values()} == {"starting"}
    assert {i.generation for i in found.values()} == {3}
    assert found["p2"].draining_since is None
    assert found["p1"].launch == LAUNCH
    assert found["r"].snapshot == ()


def test_the_newest_word_wins_and_counts_are_what_is_there() -> None:
    older, newer = group((1, 1)), group((3, 1)).model_copy(update={"version": 5})
    ((adopted,), _) = rebuild(
        [left(older, one("p1")), left(newer, one("p2")), left(older, one("d1"))], NOW
    )
    assert adopted.group.version == 5
    assert wanted_counts(adopted.group) == {"prefill": 2, "decode": 1}
    assert adopted.group.applied == {"prefill": 2, "decode": 1}


def test_what_has_no_place_in_the_group_is_left_over() -> None:
    """Another revision, a second router, a directory without a word: never mixed in."""
    g = group((1, 1))
    old = one("p9", revision="r0")
    first = one("r", since=NOW - 50)
    second = first.model_copy(update={"id": "r-2", "since": NOW - 10})
    silent = Left(host="h", instance="x", owner="old")
    ((adopted,), lost) = rebuild(
        [left(g, one("p1")), left(g, old), left(g, one("d1")), left(g, first), left(g, second),
         silent],
        NOW,
    )  # fmt: skip
    assert {i.id for i in adopted.instances} == {"p1", "d1", "r-2"}
    assert {x.instance for x in adopted.rest} == {"p9", "r"}
    assert lost == [silent]
