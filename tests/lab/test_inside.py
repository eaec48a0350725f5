"""What the doctor sees from inside containers, on hosts whose cards are device files."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from backend.adapters.facts import look
from backend.adapters.inside import look_inside
from backend.adapters.ssh.pool import SshPool
from backend.domain.doctor import Finding
from backend.domain.host import Host
from backend.domain.inside import Inside
from backend.sandbox.plan import HostPlan
from tests.lab.conftest import host_of
from tests.lab.containers import IMAGE, OWN_DEVICES, cdi_spec, with_podman
from tests.lab.machines import FAST_NIC, Machine, Rack, require_namespaces
from tests.lab.test_doctor import refused
from tests.lab.test_group import RackLab
from tests.live.lab import CONFIG, deployment

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(200),
    pytest.mark.needs("podman", "runc"),
]
CHIPS = r"""
for f in davinci0 davinci1 davinci_manager devmm_svm hisi_hdc; do mknod "/dev/$f" c 1 3; done
mkdir -p /usr/local/Ascend/driver/lib64
touch /usr/local/Ascend/driver/lib64/libascend_hal.so
"""


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    """A host of GPUs and one of NPUs, both with podman."""
    require_namespaces()
    with tempfile.TemporaryDirectory(prefix="pdtui-rack-") as folder:
        npus = HostPlan("npu1", vendor="ascend", accelerator_type="Ascend910B3", memory_mib=65536)
        model = Path(folder, "models", "tiny")
        model.mkdir(parents=True)
        (model / "config.json").write_text(json.dumps(CONFIG))
        rack = Rack(Path(folder), [HostPlan("pod1"), npus], bind=[model.parent])
        try:
            rack.up()
            for machine in rack.machines:
                machine.sh(OWN_DEVICES)
                with_podman(machine, sys.executable)
            rack.machines[1].sh(CHIPS)
            with rack.inside():
                yield rack
        finally:
            rack.down()


async def seen(pool: SshPool, host: Host, images: tuple[str, ...] = ()) -> Inside:
    """What a container on the host sees; nothing of it is left behind."""
    found = await look_inside(pool, host, await look(pool, host), images=images)
    assert found is not None
    left = await pool.run(host, "podman ps -aq")
    assert left.stdout == ""
    return found


@pytest.fixture
async def lab(rack: Rack, tmp_path: Path) -> AsyncIterator[RackLab]:
    lab = RackLab(tmp_path, rack)
    await lab.up()
    for entry in lab.inventory:
        entry |= {"kv_transfer_ifname": FAST_NIC, "runtime": "podman"}
    await lab.add_hosts()
    try:
        yield lab
    finally:
        await lab.down()


def specify(machine: Machine, spec: str) -> None:
    machine.sh("printf '%s' \"$1\" >/etc/cdi/nvidia.json", spec)


async def test_a_container_sees_the_cards_that_it_was_given(rack: Rack, pool: SshPool) -> None:
    machine = rack.machines[0]
    host = host_of(rack, machine, runtime="podman")
    whole = await seen(pool, host, (IMAGE,))
    uuids = (machine.plan.uuid(0), machine.plan.uuid(1))
    assert (whole.image, whole.wanted, whole.began, whole.listed) == (IMAGE, True, True, uuids)
    facts = await look(pool, host)
    one = await look_inside(pool, host, facts, images=("localhost/absent:1",), only=(1,))
    assert one is not None
    assert (one.image, one.wanted, one.listed) == (IMAGE, False, uuids[1:])


async def test_a_specification_whose_order_is_stale_gives_the_same_card_by_its_uuid(
    rack: Rack, pool: SshPool
) -> None:
    """By index it gives another card, and the look inside tells."""
    machine = rack.machines[0]
    host = host_of(rack, machine, runtime="podman")
    facts = await look(pool, host)
    swapped = cdi_spec(machine, (0, 1)).replace('"name": "0"', '"name": "x"')
    swapped = swapped.replace('"name": "1"', '"name": "0"').replace('"name": "x"', '"name": "1"')
    try:
        specify(machine, swapped)
        one = await look_inside(pool, host, facts, only=(1,))
        assert one is not None
        assert one.listed == (machine.plan.uuid(1),)
        bare = cdi_spec(machine, (0, 1), uuids=False).replace('"name": "0"', '"name": "x"')
        bare = bare.replace('"name": "1"', '"name": "0"').replace('"name": "x"', '"name": "1"')
        specify(machine, bare)
        other = await look_inside(pool, host, facts, only=(1,))
        assert other is not None
        assert other.listed == (machine.plan.uuid(0),)
        assert other.asked == (machine.plan.uuid(1),)
    finally:
        specify(machine, cdi_spec(machine, (0, 1)))


async def test_npus_are_seen_with_the_driver_or_what_is_missing_is_named(
    rack: Rack, pool: SshPool
) -> None:
    host = host_of(rack, rack.machines[1], runtime="podman")
    whole = await seen(pool, host)
    assert {"/dev/davinci0", "/dev/davinci1"} <= set(whole.devices)
    assert {"/dev/hisi_hdc", "/usr/local/Ascend/driver/lib64"} <= set(whole.files)
    rack.machines[1].sh("rm /dev/davinci1")
    try:
        assert "/dev/davinci1" not in (await seen(pool, host)).devices
    finally:
        rack.machines[1].sh("mknod /dev/davinci1 c 1 3")


def inside(found: tuple[Finding, ...], host: str) -> Finding:
    (only,) = [f for f in found if (f.host, f.check) == (host, "inside")]
    return only


async def test_the_doctor_names_what_a_container_does_not_get(lab: RackLab, rack: Rack) -> None:
    client = await lab.client()
    well = await client.doctor()
    assert {inside(well, h).verdict for h in ("pod1", "npu1")} == {"pass"}
    first = rack.machines[0]
    try:
        specify(first, cdi_spec(first, (0,)))
        found = inside(await client.doctor(["pod1"]), "pod1")
        assert found.verdict == "fail"
        assert "nvidia.com/gpu=1" in found.seen
        assert "nvidia-ctk cdi generate" in found.remedy

        specify(first, cdi_spec(first, (0, 1)).replace("/run/cards/nvidia-smi", "/run/cards/old"))
        found = inside(await client.doctor(["pod1"]), "pod1")
        assert found.verdict == "fail"
        assert "stale" in found.remedy

        specify(first, cdi_spec(first, (0, 1)))
        first.sh(
            "cd /usr/local/bin; mv runc-lab away; "
            "printf '#!/bin/sh\\necho no room >&2; exit 1\\n' >runc-lab; chmod 755 runc-lab"
        )
        found = inside(await client.doctor(["pod1"]), "pod1")
        assert found.verdict == "fail"
        assert "starts no container of" in found.seen
        assert "with 2" not in found.seen
    finally:
        first.sh("[ ! -e /usr/local/bin/away ] || mv /usr/local/bin/away /usr/local/bin/runc-lab")
        specify(first, cdi_spec(first, (0, 1)))
    second = rack.machines[1]
    second.sh("mv /usr/local/Ascend/driver/lib64 /usr/local/Ascend/driver/away")
    try:
        found = inside(await client.doctor(["npu1"]), "npu1")
        assert found.verdict == "fail"
        assert "/usr/local/Ascend/driver/lib64" in found.seen
    finally:
        second.sh("mv /usr/local/Ascend/driver/away /usr/local/Ascend/driver/lib64")


async def test_nothing_is_placed_where_a_container_would_see_no_cards(
    lab: RackLab, rack: Rack
) -> None:
    first = rack.machines[0]
    document = deployment(lab.model, image=IMAGE)
    for role in ("prefill", "decode"):
        document["spec"]["roles"][role]["placement"] = [{"host": "pod1"}]
    specify(first, cdi_spec(first, ()))
    try:
        note = await refused(lab, document)
        assert "pod1" in note
        assert "unresolvable CDI devices" in note
        assert first.sh("podman ps -aq") == ""
    finally:
        specify(first, cdi_spec(first, (0, 1)))
