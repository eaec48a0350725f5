"""Bad input on a living backend: what is said, and that nothing half-made is left."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.errors import Conflict, Invalid, NotFound, PdError, Refused
from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def _edited(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    at: Any = document
    *parents, last = path.split(".")
    for key in parents:
        at = at.setdefault(key, {})
    at[last] = value
    return document


CASES: list[tuple[str, Any, type[PdError], str, str]] = [
    ("spec.modle", "x", Invalid, "structure.unknown_field", "Did you mean 'model'?"),
    ("spec.accelerators", "two", Invalid, "structure.value", "'two'"),
    ("spec.roles.decode.replicas", 0, Invalid, "structure.value", "0"),
    ("spec.engine", "llama", Invalid, "structure.value", "'llama'"),
    ("metadata.name", "No Good", Invalid, "structure.value", "'No Good'"),
    ("spec.disaggregation.mode", "vllm-nix", Refused, "mode.unknown", "vllm-nixl"),
    ("spec.engine", "sglang", Refused, "mode.engine", "sglang"),
    ("spec.hosts", {"names": ["node9"]}, Refused, "host.unknown", "node9"),
    ("spec.accelerators", 3, Refused, "placement.too_wide", "3"),
]


async def test_a_document_is_refused_by_field(lab: Lab) -> None:
    """Each names the field, what was found and a remedy; nothing is stored, nothing started."""
    await lab.add_hosts()
    client = await lab.client()
    for path, value, error, rule, said in CASES:
        document = _edited(deployment(lab.model), path, value)
        with pytest.raises(error) as caught:
            await client.apply(document)
        problem = next(p for p in caught.value.problems if p.rule == rule)
        assert problem.path.startswith(path)
        assert said in problem.sentence()
        assert problem.remedy
    with pytest.raises(NotFound, match="there is no deployment 'nobody'"):
        await client.group("nobody")
    with pytest.raises(NotFound, match="node1, node2, node3"):
        await client.test_host("nobody")
    assert await client.groups() == ()
    assert lab.directories() == set()


async def test_too_few_accelerators_leave_the_group_pending_with_the_reason(lab: Lab) -> None:
    """All or nothing: six accelerators do not carry five prefills and two decodes."""
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model, prefill=5, decode=2)))
    short = await lab.until("chat", lambda g: any(m.id == "placement" for m in g.marks))
    assert short.status == "Pending"
    text = next(m.text for m in short.marks if m.id == "placement")
    for said in ("5 prefill", "2 decode", "6 free", "node1", "node3", "NVIDIA H100"):
        assert said in text
    assert lab.directories() == set()

    await lab.asked(lambda c: c.apply(deployment(lab.model, prefill=1, decode=1)))
    fits = await lab.until("chat", serving(1, 1))
    assert not any(m.id == "placement" for m in fits.marks)

    client = await lab.client()
    with pytest.raises(Refused, match="router has exactly one replica"):
        await client.scale("chat", {"router": 2})
    with pytest.raises(Refused, match="0 is no count"):
        await client.scale("chat", {"decode": 0})
    with pytest.raises(Conflict, match=r"host node\d is to be removed, but it carries"):
        await client.delete_host(fits.members[0].host)


async def test_an_engine_that_dies_at_start_is_a_crash_loop_that_says_why(lab: Lab) -> None:
    """`--no-such-flag` ends the engine at once; three ends without serving stop the restarts."""
    await lab.add_hosts()
    broken = deployment(lab.model, parameters=("--no-such-flag",))
    await lab.asked(lambda c: c.apply(broken))
    failing = await lab.until(
        "chat",
        lambda g: (
            {m.state for m in g.members if m.role != "router"} <= {"exited", "crash_loop"}
            and g.members
        ),
    )
    member = next(m for m in failing.members if m.role != "router")
    assert "ended with exit code 2" in member.note
    told = await lab.until("chat", lambda g: any("--no-such-flag" in m.note for m in g.members))
    assert told.status == "Pending"
    log = await lab.asked(lambda c: c.log(member.id))
    assert "unrecognized arguments: --no-such-flag" in log.text
    assert failing.status == "Pending"
    assert failing.endpoint is None

    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat")
    assert lab.directories() == set()


async def test_a_host_that_refuses_is_named_and_does_not_hold_up_the_others(lab: Lab) -> None:
    await lab.add_hosts()
    await lab.order("node1", faults={"refuse": True})
    await lab.order("node1", drop=True)
    with pytest.raises(PdError) as caught:
        await lab.asked(lambda c: c.test_host("node1"))
    assert "node1" in caught.value.problem.message
    assert caught.value.problem.remedy
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    formed = await lab.until("chat", serving(1, 1))
    assert "node1" not in {m.host for m in formed.members}
