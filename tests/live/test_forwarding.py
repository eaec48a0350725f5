"""A group on hosts whose SSH servers forward nothing: everything is asked through sessions."""

from __future__ import annotations

import pytest

from pdtui.cli.demo import chat
from tests.live.lab import Lab, deployment, serving
from tests.live.test_cli import pdtui

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def test_a_group_lives_where_nothing_is_forwarded(lab: Lab) -> None:
    for entry in lab.inventory:
        await lab.order(entry["name"], faults={"forwarding": False})
    await lab.add_hosts()
    found = await lab.asked(lambda c: c.doctor())
    said = [f for f in found if f.check == "forwarding"]
    assert {f.verdict for f in said} == {"warn"}
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    group = await lab.until("chat", serving(1, 1))
    await chat(group)

    router = next(m for m in group.members if m.role == "router")
    told = await pdtui(lab, "ports", router.host)
    assert told.code == 0
    bands = {x.split()[-1] for x in told.out.splitlines() if router.id in x}
    assert "http" in bands
    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat")
    assert lab.living() == []
