"""The commands on a living group: words for people, JSON for scripts, exit codes for both."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.live.lab import Lab, deployment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


@dataclass(frozen=True)
class Told:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as JSON."""
        return json.loads(self.out)


async def pdtui(lab: Lab, *args: str) -> Told:
    """`pdtui ARGS` on the laboratory's state directory."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pdtui", "--state-dir", str(lab.state), *args,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    async with asyncio.timeout(240):
        out, err = await process.communicate()
    return Told(process.returncode or 0, out.decode(), err.decode())


async def by_hand(lab: Lab) -> None:
    """What one does to single instances, hosts and routers."""
    one = (await pdtui(lab, "get", "chat", "--json")).json
    decode = next(m["id"] for m in one["members"] if m["role"] == "decode")
    out = await pdtui(lab, "delete-instance", "chat", decode, "--yes")
    assert out.code == 0, out.err
    assert out.out == f"{decode} is to go\n"
    nothing = await pdtui(lab, "told", "chat")
    assert (nothing.code, nothing.out) == (3, "")
    assert "[life.not_manual]" in nothing.err
    answers = await pdtui(lab, "hosts", "fence", "node1", "--yes")
    assert "[host.answers]" in answers.err


async def test_a_group_lives_by_commands_with_a_daemon(lab: Lab) -> None:
    await lab.client()
    for host in lab.inventory:
        identity = host["identity_files"][0]
        ports = "-".join(map(str, host["service_port_range"]))
        added = await pdtui(
            lab, "hosts", "add", host["name"], host["address"], "--port", str(host["port"]),
            "--user", host["user"], "--identity", identity, "--service-port-range", ports, "--json",
        )  # fmt: skip
        assert added.code == 0, added.err
        assert added.json["state"] == "up"
    listed = await pdtui(lab, "hosts", "list")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == ["node1", "node2", "node3"]

    file = lab.root / "chat.yaml"
    file.write_text(yaml.safe_dump(deployment(lab.model)))
    assert (await pdtui(lab, "check", str(file))).code == 0
    applied = await pdtui(lab, "apply", "-f", str(file), "--yes", "--wait", "--json")
    assert applied.code == 0, applied.err
    assert [g["status"] for g in applied.json] == ["Running"]

    table = await pdtui(lab, "get")
    assert table.out.splitlines()[1].split()[:3] == ["chat", "vllm-nixl", "Running"]
    one = (await pdtui(lab, "get", "chat", "--json")).json
    decode = next(m["id"] for m in one["members"] if m["role"] == "decode")
    log = await pdtui(lab, "logs", decode)
    assert "Starting vLLM server" in log.out

    scaled = await pdtui(lab, "scale", "chat", "prefill=2", "--wait", "--json")
    assert scaled.code == 0, scaled.err
    assert scaled.json["roles"]["prefill"]["ready"] == 2

    file.write_text(yaml.safe_dump(deployment(lab.model, prefill=2, parameters=())))
    edited = await pdtui(lab, "apply", "-f", str(file), "--yes")
    assert edited.code == 0
    assert "Config changed" in edited.out
    refused = await pdtui(lab, "scale", "chat", "decode=2")
    assert refused.code == 3
    assert refused.out == ""
    assert "[life.stale]" in refused.err

    unasked = await pdtui(lab, "restart", "chat")
    assert unasked.code != 0
    restarted = await pdtui(lab, "restart", "chat", "--yes", "--wait", "--json")
    assert restarted.code == 0, restarted.err
    assert not restarted.json["config_changed"]
    for phase in ("stop ", "start ", "Running: prefill 2/2, decode 2/2"):
        assert f"  {phase}" in restarted.err

    await by_hand(lab)
    events = (await pdtui(lab, "events", "chat", "--json")).json
    assert "restarted" in {e["kind"] for e in events}

    gone = await pdtui(lab, "delete", "chat", "--yes", "--wait", "--json")
    assert gone.json == {"name": "chat", "deleted": True}
    assert (await pdtui(lab, "get", "chat")).code != 0


async def test_without_a_daemon_a_command_waits_and_says_that_nobody_watches(lab: Lab) -> None:
    await lab.add_hosts()
    await lab.stop_backend()
    file = lab.root / "chat.yaml"
    file.write_text(yaml.safe_dump(deployment(lab.model)))
    applied = await pdtui(lab, "apply", "-f", str(file), "--yes", "--json")
    assert applied.code == 0, applied.err
    assert [g["status"] for g in applied.json] == ["Running"]
    assert "nothing watches the groups now" in applied.err
    seen = await pdtui(lab, "get", "chat", "--json")
    assert {m["state"] for m in seen.json["members"]} == {"ready"}
    deleted = await pdtui(lab, "delete", "chat", "--yes")
    assert deleted.code == 0, deleted.err
    assert lab.directories() == set()


async def test_unreadable_files_and_wrong_fields_leave_with_2(lab: Lab) -> None:
    await lab.client()
    broken = lab.root / "broken.yaml"
    broken.write_text("a: [1,\nb: 2")
    told = await pdtui(lab, "apply", "-f", str(broken))
    assert told.code == 2
    assert "broken.yaml is not readable YAML at line 2" in told.err
    document = deployment(lab.model)
    document["spec"]["modle"] = "x"
    wrong = lab.root / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(document))
    told = await pdtui(lab, "apply", "-f", str(wrong))
    assert told.code == 2
    assert "spec.modle" in told.err
    assert "Did you mean 'model'?" in told.err
    assert (await pdtui(lab, "apply", "-f", str(lab.root / "none.yaml"))).code == 2
    assert "Traceback" not in told.err
