"""Host keys: unknown, accepted, changed and revoked are told apart; nothing is ever unverified."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import asyncssh
import pytest

from backend.adapters.ssh.hostkeys import HostKeys
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import HostKeyChanged, HostKeyUnknown, Refused
from backend.domain.host import Host
from tests.backend.ssh.conftest import Machine, MakeMachine


def public(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode().strip()


async def test_an_unknown_key_is_shown_and_accepted_once(
    pool: SshPool, machine: Machine, tmp_path: Path
) -> None:
    host = machine.host()
    with pytest.raises(HostKeyUnknown, match="never accepted") as caught:
        await pool.run(host, "true")
    values = caught.value.problem.values
    assert values["type"] == "ssh-ed25519"
    assert values["fingerprint"] == machine.key.get_fingerprint()
    await pool.accept_key(host, values["fingerprint"])
    assert (await pool.run(host, "echo in")).stdout == "in\n"
    own = tmp_path / "known_hosts"
    assert own.stat().st_mode & 0o777 == 0o600
    assert own.read_text().startswith(f"[127.0.0.1]:{machine.port} ssh-ed25519 ")
    await pool.accept_key(host, values["fingerprint"])
    assert len(own.read_text().splitlines()) == 1


async def test_only_the_shown_fingerprint_is_accepted(
    pool: SshPool, machine: Machine, tmp_path: Path
) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").get_fingerprint()
    with pytest.raises(Refused, match="now shows the key"):
        await pool.accept_key(machine.host(), other)
    assert not (tmp_path / "known_hosts").exists()


async def test_a_changed_key_is_refused_with_both_fingerprints(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    await pool.run(host, "true")
    before = machine.key.get_fingerprint()
    await machine.stop()
    machine.key = asyncssh.generate_private_key("ssh-ed25519")
    await machine.start()
    pool.forget(host.name)
    with pytest.raises(HostKeyChanged) as caught:
        await pool.run(host, "true")
    values = caught.value.problem.values
    assert (values["fingerprint"], values["accepted"]) == (machine.key.get_fingerprint(), before)
    removed = shlex.split(caught.value.problem.remedy.partition("remove the old key: ")[2])
    subprocess.run(removed, check=True, capture_output=True)
    pool.forget(host.name)
    with pytest.raises(HostKeyUnknown) as unknown:
        await pool.run(host, "true")
    assert machine.key.get_fingerprint() in unknown.value.problem.remedy


async def test_a_changed_key_is_not_accepted(pool: SshPool, host: Host, machine: Machine) -> None:
    await pool.run(host, "true")
    await machine.stop()
    machine.key = asyncssh.generate_private_key("ssh-ed25519")
    await machine.start()
    pool.forget(host.name)
    with pytest.raises(HostKeyChanged):
        await pool.accept_key(host, machine.key.get_fingerprint())


async def test_a_revoked_key_is_refused_though_accepted(
    pool: SshPool, host: Host, machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "user_known_hosts").write_text(f"@revoked * {public(machine.key)}\n")
    with pytest.raises(HostKeyChanged, match="revoked"):
        await pool.run(host, "true")


@pytest.mark.parametrize("form", ["plain", "hashed", "pattern"])
async def test_the_users_known_hosts_count_and_are_only_read(
    pool: SshPool, machine: Machine, tmp_path: Path, form: str
) -> None:
    name = f"[127.0.0.1]:{machine.port}"
    user = tmp_path / "user_known_hosts"
    entry = {"plain": name, "pattern": "[127.0.0.*]:*", "hashed": hashed(name)}[form]
    text = f"# mine\nbroken line\n{entry} {public(machine.key)}\n"
    user.write_text(text)
    assert (await pool.run(machine.host(), "echo in")).stdout == "in\n"
    assert user.read_text() == text
    assert not (tmp_path / "known_hosts").exists()


def hashed(name: str) -> str:
    import base64
    import hmac

    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), "sha1").digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


async def test_a_host_known_by_its_other_key_is_asked_for_that_one(
    pool: SshPool, machine_at: MakeMachine, tmp_path: Path
) -> None:
    machine = machine_at("two-keys")
    ecdsa = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    machine.more_keys = [ecdsa]
    await machine.start()
    (tmp_path / "user_known_hosts").write_text(f"[127.0.0.1]:{machine.port} {public(ecdsa)}\n")
    assert (await pool.run(machine.host(), "echo in")).stdout == "in\n"
    await pool.close()
    await machine.stop()


async def test_the_configuration_cannot_turn_checking_off(machine: Machine, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile none\n")
    pool = SshPool(tmp_path / "known", user_ssh_config=config)
    try:
        with pytest.raises(HostKeyUnknown):
            await pool.run(machine.host(), "true")
    finally:
        await pool.close()


def test_port_22_is_written_plain(tmp_path: Path) -> None:
    keys = HostKeys(tmp_path / "deep" / "known_hosts", [])
    key = asyncssh.generate_private_key("ssh-ed25519")
    keys.add("node", 22, key)
    keys.add("node", 2222, key)
    lines = (tmp_path / "deep" / "known_hosts").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["node", "[node]:2222"]
    found = keys.known("node", "10.0.0.1", 22).accepted
    assert [k.get_fingerprint() for k in found] == [key.get_fingerprint()]
    assert not keys.known("other", "", 22).accepted
