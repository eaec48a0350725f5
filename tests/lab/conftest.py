"""Four hosts as good as real for a whole file of tests, and this process on their network."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from backend.adapters.ssh.pool import SshPool
from backend.domain.host import Host
from backend.sandbox.plan import HostPlan
from tests.lab.machines import Machine, Rack, require_namespaces
from tests.live.lab import CONFIG


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    """node1 to node3 with two accelerators each, node4 with none; all see the same model."""
    require_namespaces()
    with tempfile.TemporaryDirectory(prefix="pdtui-rack-") as folder:
        root = Path(folder)
        model = root / "models" / "tiny"
        model.mkdir(parents=True)
        (model / "config.json").write_text(json.dumps(CONFIG))
        plans = [HostPlan(f"node{i}", accelerators=2 if i < 4 else 0) for i in range(1, 5)]
        rack = Rack(root, plans, bind=[root / "models"])
        try:
            rack.up()
            with rack.inside():
                yield rack
        finally:
            rack.down()


@pytest.fixture
def node(rack: Rack) -> Machine:
    """The first host."""
    return rack.machines[0]


@pytest.fixture
async def pool(rack: Rack, tmp_path: Path) -> AsyncIterator[SshPool]:
    """Connections that know the hosts' keys."""
    known = tmp_path / "known_hosts"
    known.write_text(rack.known_hosts())
    pool = SshPool(known, user_known_hosts=[], connect_timeout=20, keepalive_s=0.5)
    try:
        yield pool
    finally:
        await pool.close()


def host_of(rack: Rack, machine: Machine, **more: object) -> Host:
    """The machine's inventory entry."""
    return Host.model_validate({**machine.entry(rack.identity), **more})
