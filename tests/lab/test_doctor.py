"""The doctor on real hosts: what it sees there, and what it keeps from being placed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backend.domain.doctor import Finding
from tests.lab.machines import FAST_NIC, Rack
from tests.lab.test_group import RackLab, pinned
from tests.live.test_cli import pdtui

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(200)]


@pytest.fixture
async def lab(rack: Rack, tmp_path: Path) -> AsyncIterator[RackLab]:
    lab = RackLab(tmp_path, rack)
    await lab.up()
    for entry in lab.inventory:
        entry["kv_transfer_ifname"] = FAST_NIC
    await lab.add_hosts()
    try:
        yield lab
    finally:
        await lab.down()


def of(found: tuple[Finding, ...], check: str) -> dict[str, str]:
    return {f.host: f.verdict for f in found if f.check == check}


def one(found: tuple[Finding, ...], host: str, check: str) -> Finding:
    (only,) = [f for f in found if (f.host, f.check) == (host, check)]
    return only


async def test_the_doctor_sees_what_is_wrong_with_each_host(lab: RackLab, rack: Rack) -> None:
    client = await lab.client()
    well = await client.doctor()
    assert {f.host for f in well} == {"node1", "node2", "node3", "node4"}
    assert [f for f in well if f.verdict == "fail"] == []
    assert of(well, "forwarding") == dict.fromkeys(("node1", "node2", "node3", "node4"), "pass")

    first, second, third, fourth = rack.machines
    first.sh("mount -t tmpfs -o size=1m tmpfs /root/login/.pdtui; "
             "head -c 2m /dev/zero >/root/login/.pdtui/full || :")  # fmt: skip
    second.sshd_extra = "AllowTcpForwarding no\n"
    second.reboot()
    third.sh("setsid sh -c 'exec 3<&0; nc -l -p 40001 || busybox nc -l -p 40001' </dev/null "
             ">/dev/null 2>&1 &")  # fmt: skip
    fourth.die()
    try:
        ill = await client.doctor()
        disk = [f for f in ill if (f.host, f.check) == ("node1", "disk")]
        assert {f.verdict for f in disk} == {"fail"}
        assert any("nothing can be written" in f.seen for f in disk)
        assert one(ill, "node2", "forwarding").verdict == "warn"
        assert "bash there dials instead" in one(ill, "node2", "forwarding").seen
        assert "AllowTcpForwarding" in one(ill, "node2", "forwarding").remedy
        assert "40001 (" in one(ill, "node3", "ports").seen
        assert one(ill, "node4", "ssh").verdict == "fail"
        told = await pdtui(lab, "doctor", "node2", "node3")
        assert told.code == 0
        assert "AllowTcpForwarding" in told.out
        assert "node1" not in told.out
        assert (await pdtui(lab, "doctor", "node1", "--json")).code == 1
        assert (await pdtui(lab, "doctor", "nowhere")).code != 0
    finally:
        first.sh("umount /root/login/.pdtui")
        second.sshd_extra = ""
        second.reboot()
        third.sh("kill $(ss -Htlnp 'sport = 40001' | sed 's/.*pid=\\([0-9]*\\).*/\\1/')")
        fourth.boot_up()
        fourth.wait()


async def refused(lab: RackLab, document: dict[str, Any]) -> str:
    """The note of a group that the doctor does not let form."""
    await lab.asked(lambda c: c.apply(document))
    group = await lab.until(
        "chat", lambda g: any(m.id == "placement" and m.text for m in g.marks), seconds=60
    )
    text = next(m.text for m in group.marks if m.id == "placement")
    assert group.members == ()
    found = await lab.asked(lambda c: c.doctor(deployment="chat"))
    assert any(f.verdict == "fail" and f.seen in text for f in found)
    await lab.asked(lambda c: c.delete("chat"))
    await lab.until_gone("chat")
    return text


async def test_members_are_not_placed_where_they_would_die(lab: RackLab, rack: Rack) -> None:
    """A program that is missing, a model that is not there or differs, a KV network in pieces."""
    second = rack.machines[1]
    second.sh("mv /usr/local/bin/vllm /usr/local/bin/moved")
    note = await refused(lab, pinned(lab))
    assert "node2" in note
    assert "vllm is not there" in note
    second.sh("mv /usr/local/bin/moved /usr/local/bin/vllm")

    second.sh('mount -t tmpfs tmpfs "$1"', str(lab.model.parent))
    note = await refused(lab, pinned(lab))
    assert f"host node2: the model {lab.model} is not there" in note
    second.sh('umount "$1"', str(lab.model.parent))

    rack.ip("link set f2 down")
    try:
        note = await refused(lab, pinned(lab))
        assert "KV" in note
        assert "node2" in note
    finally:
        rack.ip("link set f2 up")
