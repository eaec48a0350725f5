"""Key files with a passphrase, and the ssh configuration as a source of inventory entries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from backend.adapters.ssh.importing import aliases, entry_name
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import HostDenied, Invalid, NotFound
from backend.domain.host import NAME
from tests.backend.ssh.conftest import Machine, Trust


@pytest.fixture(params=["openssh", "pkcs8-pem"])
def locked(request: pytest.FixtureRequest, client_key: Path, tmp_path: Path) -> Path:
    """The accepted key, in a file with a passphrase."""
    path = tmp_path / "locked"
    key = asyncssh.read_private_key(client_key)
    key.write_private_key(path, request.param, passphrase="open sesame", rounds=50)
    return path


async def test_a_locked_key_is_named_and_serves_once_it_is_unlocked(
    pool: SshPool, machine: Machine, trusted: Trust, locked: Path
) -> None:
    await trusted(pool, machine)
    host = machine.host("with-locked", identity_files=(str(locked),))
    with pytest.raises(HostDenied, match="locked by a passphrase") as caught:
        await pool.run(host, "true")
    assert caught.value.problem.rule == "host.passphrase"
    assert caught.value.problem.values["identities"] == [str(locked)]
    with pytest.raises(HostDenied, match="is wrong"):
        await pool.unlock(str(locked), "sesame")
    with pytest.raises(HostDenied, match="is wrong"):
        await pool.unlock(str(locked), "")
    fingerprint = await pool.unlock(str(locked), "open sesame")
    assert fingerprint == asyncssh.read_private_key(locked, "open sesame").get_fingerprint()
    assert (await pool.run(host, "echo in")).stdout == "in\n"


async def test_a_default_key_may_be_unlocked_too(
    pool: SshPool, machine: Machine, trusted: Trust, locked: Path, own_home: Path
) -> None:
    """Nothing names an identity file: those of ~/.ssh count."""
    await trusted(pool, machine)
    folder = own_home / ".ssh"
    folder.mkdir(mode=0o700)
    (folder / "id_ed25519").write_bytes(locked.read_bytes())
    host = machine.host("by-default", identity_files=())
    with pytest.raises(HostDenied) as caught:
        await pool.run(host, "true")
    assert caught.value.problem.values["identities"] == [str(folder / "id_ed25519")]
    await pool.unlock("~/.ssh/id_ed25519", "open sesame")
    assert (await pool.run(host, "echo in")).stdout == "in\n"


@pytest.fixture
async def agent(client_key: Path, tmp_path: Path, needs) -> AsyncIterator[str]:  # type: ignore[no-untyped-def]
    """An ssh agent that holds the accepted key; its socket."""
    needs("ssh-agent", "ssh-add")
    socket, held = tmp_path / "agent", tmp_path / "held"
    held.touch(0o600)
    held.write_bytes(client_key.read_bytes())
    process = await asyncio.create_subprocess_exec(
        "ssh-agent", "-D", "-a", str(socket), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(10):
            while not socket.exists():
                await asyncio.sleep(0.02)
        adding = await asyncio.create_subprocess_exec(
            "ssh-add", "-q", str(held), env={"SSH_AUTH_SOCK": str(socket)}
        )
        assert await adding.wait() == 0
        yield str(socket)
    finally:
        process.terminate()
        await process.wait()


async def test_the_agent_opens_what_is_locked_here(
    pool: SshPool,
    machine: Machine,
    trusted: Trust,
    locked: Path,
    agent: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await trusted(pool, machine)
    monkeypatch.setenv("SSH_AUTH_SOCK", agent)
    host = machine.host("by-agent", identity_files=(str(locked),))
    assert (await pool.run(host, "echo in")).stdout == "in\n"


async def test_what_is_no_private_key_is_refused(pool: SshPool, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await pool.unlock(str(tmp_path / "none"), "x")
    (tmp_path / "text").write_text("no key\n")
    with pytest.raises(Invalid):
        await pool.unlock(str(tmp_path / "text"), "x")


CONFIG = """\
# a comment
Include conf.d/*.conf
Host gpu1 GPU_2 *.lab !bad
  HostName 10.0.0.1
Host=quoted
    user = "some one"
Include only-for-quoted
Match host gpu1 user root
  Port 2200
Host gpu1
  User root
  ProxyJump ops@bastion:2222,inner
Host *
  User everyone
  IdentityFile ~/.ssh/special
  ProxyJump none
"""


def test_aliases_are_the_names_a_person_could_type(own_home: Path) -> None:
    folder = own_home / ".ssh"
    (folder / "conf.d").mkdir(parents=True)
    (folder / "config").write_text(CONFIG)
    (folder / "conf.d" / "a.conf").write_text("Host included\n  HostName ten.example\n")
    (folder / "only-for-quoted").write_text("Host quoted unheard-of\n  Port 77\n")
    found = {a.alias: a for a in aliases(None)}
    assert list(found) == ["included", "gpu1", "GPU_2", "quoted"]
    assert found["quoted"].port == 77
    assert {k: a.name for k, a in found.items()} == {
        "gpu1": "gpu1", "GPU_2": "gpu-2", "quoted": "quoted", "included": "included",
    }  # fmt: skip
    first = found["gpu1"]
    assert (first.hostname, first.user, first.jump) == (
        "10.0.0.1",
        "root",
        "ops@bastion:2222,inner",
    )
    assert found["included"].hostname == "ten.example"
    assert found["GPU_2"].user == "everyone"
    assert [Path(f).name for f in first.identity_files] == ["special"]
    assert [a.alias for a in aliases(None, ["gpu*", "in?luded"])] == ["included", "gpu1"]


def test_an_alias_that_cannot_be_resolved_says_why(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host broken\n  Port many\n")
    (only,) = aliases(config)
    assert "many" in only.note
    config.write_text(f"Host circle\n  Port 1\nInclude {config}\n")
    assert "leads back" in aliases(config)[0].note
    assert aliases(tmp_path / "absent") == []


@pytest.mark.parametrize(
    "alias", ["A", "10.0.0.1", "web_1", "___", "x" * 90, "ü-host", "-a-", "a."]
)
def test_entry_names_are_valid_and_free(alias: str) -> None:
    name = entry_name(alias)
    other = entry_name(alias, {name})
    assert NAME.match(name)
    assert NAME.match(other)
    assert name != other
