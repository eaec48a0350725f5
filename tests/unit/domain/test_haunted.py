"""Where a router may still send to a member that ends, its address is nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain import acts
from backend.domain.peers import Registry, may_send
from tests.unit.domain.pictures import one

P, D = one("p1"), one("d1")
STATIC = one("r", snapshot=(P.record(), D.record()))
LISTED = Registry({P.url: "prefill", D.url: "decode"}, 1)
FORGOTTEN = Registry({D.url: "decode"}, 1)
OLD = Registry({D.url: "decode"}, 0)

CASES: dict[str, tuple[Any, str, Registry, bool, bool]] = {
    "listed": (one("r"), "dynamic", LISTED, False, True),
    "forgotten": (one("r"), "dynamic", FORGOTTEN, False, False),
    "forgotten, but just being told": (one("r"), "dynamic", FORGOTTEN, True, True),
    "not read": (one("r"), "dynamic", Registry(None, 1), False, True),
    "read of an earlier start": (one("r"), "dynamic", OLD, False, True),
    "no router": (None, "dynamic", LISTED, True, False),
    "not started": (one("r", "pending"), "dynamic", LISTED, True, False),
    "ended": (one("r", "exited"), "dynamic", LISTED, True, False),
    "started with it": (STATIC, "restart", Registry(), False, True),
    "started without it": (one("r", snapshot=(D.record(),)), "restart", Registry(), False, False),
    "kept by hand": (one("r"), "manual", Registry(), False, False),
}


@pytest.mark.parametrize("name", CASES)
def test_whether_a_router_may_still_send_to_a_member(name: str) -> None:
    router, membership, registry, told, expected = CASES[name]
    assert may_send(router, P, membership, registry, told) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("router", "sends", "kept"),
    [
        (one("r"), True, True),
        (one("r"), False, False),
        (one("r", "unreachable"), False, True),  # what it lists was read before it was lost
    ],
)
def test_a_member_that_ends_leaves_its_ports_to_nobody_while_it_may_be_sent_to(
    router: Any, sends: bool, kept: bool
) -> None:
    row = acts.bereaved(router, P, sends)
    assert (row is not None) is kept
    if row is not None:
        assert row.haunted == tuple((P.host, port) for port in P.ports)
        again = acts.bereaved(row, D, sends)
        assert again is not None
        assert set(again.haunted) == {(m.host, port) for m in (P, D) for port in m.ports}


def test_a_router_haunts_nobody_with_its_own_address() -> None:
    assert acts.bereaved(one("r"), one("r"), True) is None
