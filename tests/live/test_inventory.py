"""The inventory by commands: import from the ssh configuration, edit, a key with a passphrase."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import asyncssh
import pytest

from tests.live.lab import Lab
from tests.live.test_cli import Told, pdtui

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


async def told_with(lab: Lab, said: str, *args: str) -> Told:
    """`pdtui ARGS` with a standard input."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pdtui", "--state-dir", str(lab.state), *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    async with asyncio.timeout(100):
        out, err = await process.communicate(said.encode())
    return Told(process.returncode or 0, out.decode(), err.decode())


@pytest.fixture
def ssh_folder(own_home: Path) -> Path:
    folder = own_home / ".ssh"
    folder.mkdir(mode=0o700)
    return folder


def configure(folder: Path, lab: Lab, identity: Path) -> None:
    """gpu-1 and gpu-2 are the laboratory's first two hosts."""
    blocks = [
        f"Host gpu-{i}\n  HostName {h['address']}\n  Port {h['port']}\n  User {h['user']}\n"
        for i, h in enumerate(lab.inventory[:2], 1)
    ]
    (folder / "config").write_text(
        "".join(blocks) + f"Host other\n  HostName 192.0.2.1\nHost *\n  IdentityFile {identity}\n"
    )


async def test_hosts_come_from_the_ssh_configuration_and_follow_it(
    lab: Lab, ssh_folder: Path
) -> None:
    configure(ssh_folder, lab, Path(lab.inventory[0]["identity_files"][0]))
    await lab.client()
    shown = await pdtui(lab, "hosts", "import", "gpu-*", "--dry-run")
    assert shown.code == 0, shown.err
    assert shown.out.count("would be added") == 2
    assert (await pdtui(lab, "hosts", "list", "--json")).json == []

    added = await pdtui(lab, "hosts", "import", "gpu-*", "--label", "zone=a", "--json")
    assert [(a["name"], a["state"]) for a in added.json] == [("gpu-1", "up"), ("gpu-2", "up")]
    again = await pdtui(lab, "hosts", "import", "gpu-*")
    assert again.out.count("is in the inventory") == 2
    nothing = await pdtui(lab, "hosts", "import", "no-such*")
    assert nothing.code == 1

    edited = await pdtui(
        lab, "hosts", "edit", "gpu-1", "kv_transfer_ifname=eth0", "labels.zone=b",
        "service_port_range=41000-41063", "executables.vllm=/opt/vllm", "--json",
    )  # fmt: skip
    assert edited.code == 0, edited.err
    client = await lab.client()
    entry = await client.host_entry("gpu-1")
    assert entry["address"] == "gpu-1"
    assert entry["kv_transfer_ifname"] == "eth0"
    assert entry["labels"] == {"zone": "b"}
    assert entry["service_port_range"] == [41000, 41063]
    assert entry["executables"] == {"vllm": "/opt/vllm"}
    back = await pdtui(lab, "hosts", "edit", "gpu-1", "kv_transfer_ifname=", "--json")
    assert back.code == 0, back.err
    assert (await client.host_entry("gpu-1"))["kv_transfer_ifname"] is None
    wrong = await pdtui(lab, "hosts", "edit", "gpu-1", "colour=red")
    assert wrong.code == 2
    assert "colour" in wrong.err


async def test_a_passphrase_is_asked_for_and_never_kept(lab: Lab, ssh_folder: Path) -> None:
    key = asyncssh.read_private_key(lab.inventory[0]["identity_files"][0])
    locked = ssh_folder / "locked"
    key.write_private_key(locked, passphrase="open sesame", rounds=50)
    configure(ssh_folder, lab, locked)
    await lab.client()
    await pdtui(lab, "hosts", "import", "gpu-1")
    denied = await pdtui(lab, "hosts", "test", "gpu-1")
    assert denied.code == 4
    assert f"{locked} is locked by a passphrase" in denied.err
    assert "pdtui hosts unlock" in denied.err
    wrong = await told_with(lab, "sesame\n", "hosts", "unlock", str(locked))
    assert wrong.code == 4
    assert "passphrase" in wrong.err
    right = await told_with(lab, "open sesame\n", "hosts", "unlock", str(locked))
    assert right.code == 0, right.err
    assert key.get_fingerprint() in right.out
    seen = await pdtui(lab, "hosts", "test", "gpu-1", "--json")
    assert seen.json["state"] == "up"
    kept = [p for p in lab.state.rglob("*") if p.is_file() and b"sesame" in p.read_bytes()]
    assert kept == []
    assert "sesame" not in json.dumps(seen.json)
