"""The stories of containers once more, with a dockerd of the host's own."""

from __future__ import annotations

import pytest

from backend.adapters.checkup import check_up
from backend.adapters.facts import look
from backend.adapters.inside import look_inside
from backend.adapters.ssh.pool import SshPool
from backend.domain.doctor import Finding, Patient
from backend.domain.doctor_checks import examine
from backend.domain.host import Host
from backend.domain.inside import judged
from backend.domain.telling import Said, told
from tests.lab import test_containers as stories
from tests.lab.containers import DOCKERD
from tests.lab.machines import Rack

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(200),
    pytest.mark.needs("docker", "dockerd", "runc"),
]


@pytest.fixture(scope="module")
def client() -> str:
    return "docker"


rack, host, runtime, lab = stories.rack, stories.host, stories.runtime, stories.lab
test_a_life = (
    stories.test_a_container_is_given_its_environment_files_and_cards_and_stops_in_good_order
)
test_an_end = stories.test_how_a_container_ended_is_how_its_instance_ended
test_a_lost_client = stories.test_one_that_ignores_its_end_or_lost_its_client_is_gone_all_the_same
test_memory = stories.test_one_that_the_kernel_killed_for_memory_says_so
test_a_look = stories.test_the_deeper_look_sees_containers_of_ours
test_a_group = stories.test_a_group_of_containers_serves_heals_and_leaves_nothing
test_adoption = stories.test_containers_are_found_again_after_the_store_is_lost


async def test_a_container_sees_its_cards_or_the_toolkit_is_said_to_be_missing(
    rack: Rack, host: Host, pool: SshPool
) -> None:
    """dockerd looks for NVIDIA's hook as it starts: the second host's has none."""
    machine = rack.machines[0]
    facts = await look(pool, host)
    seen = await look_inside(pool, host, facts, only=(1,))
    assert seen is not None
    assert seen.listed == (machine.plan.uuid(1),)
    other = stories.host_of(rack, rack.machines[1], runtime="docker")
    rack.machines[1].sh(WITHOUT_HOOK + DOCKERD)
    seen = await look_inside(pool, other, await look(pool, other))
    assert seen is not None
    ((verdict, said, remedy),) = judged("docker", "nvidia", seen)
    assert verdict == "fail"
    assert isinstance(remedy, Said)
    assert "could not select device driver" in told(said, "en")
    assert "nvidia-ctk runtime configure --runtime=docker" in told(remedy, "en")


WITHOUT_HOOK = r"""
rm /usr/local/bin/nvidia-container-runtime-hook
kill "$(cat /run/docker.pid)"
n=0
while [ -e /run/docker.pid ] && [ "$n" -lt 300 ]; do n=$((n + 1)); sleep 0.1; done
"""


async def test_a_login_without_the_right_to_docker_is_told_how_to_get_it(
    rack: Rack, pool: SshPool
) -> None:
    """Its sudo wants a password: nothing of ours asks for it, so that nothing waits there."""
    node = rack.machines[0]
    node.sh(
        "useradd -m -s /bin/bash -p '*' ops\n"
        "printf '#!/bin/sh\necho asked >>/tmp/asked\nread -r password\n' >/usr/local/bin/sudo\n"
        "chmod 755 /usr/local/bin/sudo"
    )
    try:
        found = await of_runtime(rack, pool, "ops")
        assert found.verdict == "fail"
        assert "permission denied" in found.seen
        assert "usermod -aG docker ops" in found.remedy
        node.sh("groupadd -f docker; usermod -aG docker ops; chgrp docker /run/docker.sock")
        found = await of_runtime(rack, pool, "ops-again")
        assert found.verdict == "pass"
        assert node.sh("cat /tmp/asked 2>/dev/null || :") == ""
    finally:
        node.sh("rm /usr/local/bin/sudo")


async def of_runtime(rack: Rack, pool: SshPool, name: str) -> Finding:
    """What the doctor says of docker to `ops`, in a login of its own."""
    node = rack.machines[0]
    host = stories.host_of(rack, node, name=name, user="ops", runtime="docker")
    facts, checkup = await look(pool, host), await check_up(pool, host, node.address)
    patient = Patient(host=host, port_range=(40000, 40063), facts=facts, checkup=checkup)
    (found,) = [f for f in examine(patient) if f.check == "runtime"]
    return found
