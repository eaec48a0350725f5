"""Making connections: the ssh configuration, jump hosts, back-off, and every cause by its name."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import asyncssh
import pytest
from asyncssh.config import ConfigParseError

from backend.adapters.ssh import errors, link, opening
from backend.adapters.ssh.config import hop_host
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import (
    HostDenied,
    HostError,
    HostKeyUnknown,
    HostUnreachable,
    PdError,
)
from backend.domain.host import Host
from tests.backend.ssh.conftest import Machine, MakeMachine, Trust


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


HOST = Host(name="gpu7", address="10.9.8.7", user="ml")
TABLE: list[tuple[BaseException, type[PdError], str, str]] = [
    (asyncssh.PermissionDenied("Permission denied for user ml on host h"),
     HostDenied, "host.login", "refused the login for user ml"),
    (FileNotFoundError(2, "No such file or directory", "/k/id"),
     HostDenied, "host.identity", "/k/id cannot be read"),
    (PermissionError(13, "Permission denied", "/k/id"),
     HostDenied, "host.identity", "/k/id cannot be read"),
    (asyncssh.KeyImportError("Passphrase must be specified to import encrypted private keys"),
     HostDenied, "host.identity", "Passphrase must be"),
    (asyncssh.KeyEncryptionError("Incorrect passphrase"),
     HostDenied, "host.identity", "passphrase is wrong"),
    (ConfigParseError("config line 3: bad"),
     HostError, "host.ssh_config", "config line 3"),
    (ConnectionRefusedError(111, "Connection refused"),
     HostUnreachable, "host.refused", "nothing listens there"),
    (OSError(113, "No route to host"),
     HostUnreachable, "host.route", "no route"),
    (OSError(101, "Network is unreachable"),
     HostUnreachable, "host.route", "no route"),
    (OSError(12, "Out of memory"),
     HostUnreachable, "host.network", "Out of memory"),
    (TimeoutError(),
     HostUnreachable, "host.timeout", "no answer within 5 s"),
    (socket.gaierror(-3, "Temporary failure in name resolution"),
     HostUnreachable, "host.name", "does not resolve"),
    (asyncssh.ConnectionLost("Login timeout expired"),
     HostUnreachable, "host.mute", "said nothing for 5 s"),
    (asyncssh.ConnectionLost("Connection lost"),
     HostUnreachable, "host.dropped", "ended the connection"),
    (ConnectionResetError(104, "Connection reset by peer"),
     HostUnreachable, "host.dropped", "during the handshake"),
    (asyncssh.KeyExchangeFailed("No matching key exchange algorithm found"),
     HostUnreachable, "host.algorithms", "no algorithm in common"),
    (asyncssh.ProtocolNotSupported("Unsupported version"),
     HostUnreachable, "host.protocol", "speaks no SSH"),
    (asyncssh.ChannelOpenError(2, "open failed"),
     HostError, "host.sessions", "no further session"),
    (asyncssh.ChannelOpenError(2, "SSH connection closed"),
     HostUnreachable, "host.lost", "lost while"),
    (asyncssh.SFTPPermissionDenied("Permission denied"),
     HostError, "host.sftp", "Permission denied"),
    (ValueError("odd"),
     HostError, "host.failed", "ValueError: odd"),
]  # fmt: skip


@pytest.mark.parametrize(("raised", "kind", "rule", "says"), TABLE, ids=lambda v: str(v)[:40])
def test_every_cause_is_named(
    raised: BaseException, kind: type[PdError], rule: str, says: str
) -> None:
    error = errors.explain(raised, HOST, timeout=5)
    assert isinstance(error, kind)
    assert error.problem.rule == rule
    assert says in error.problem.message
    assert "gpu7" in error.problem.message
    assert error.problem.values["host"] == "gpu7"
    assert error.problem.remedy


async def test_nothing_listens(pool: SshPool) -> None:
    host = Host(name="off", address="127.0.0.1", port=free_port())
    with pytest.raises(HostUnreachable, match=r"off \(127\.0\.0\.1:\d+\): nothing listens"):
        await pool.run(host, "true")


async def test_the_error_is_the_answer_for_a_while(
    pool: SshPool, machine: Machine, trusted: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await trusted(pool, machine)
    await machine.stop()
    with pytest.raises(HostUnreachable):
        await pool.run(host, "true")
    await machine.start()
    with pytest.raises(HostUnreachable, match="nothing listens"):
        await pool.run(host, "true")
    monkeypatch.setattr(link, "BACK_OFF_S", 0.0)
    assert (await pool.run(host, "echo up")).stdout == "up\n"


async def test_a_mute_server_and_a_stranger(tmp_path: Path) -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    pool = SshPool(tmp_path / "k", user_ssh_config=tmp_path / "c", connect_timeout=0.5)
    for name, answer in (("mute", mute), ("web", web)):
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HostUnreachable, match=name):
            await pool.run(Host(name=name, address="127.0.0.1", port=port), "true")
        server.close()
    await pool.close()


async def test_mute_servers_do_not_delay_another(
    tmp_path: Path, machine: Machine, trusted: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More hung handshakes than the overall cap, and a good host still comes through."""
    monkeypatch.setattr(opening, "OVERALL_WAIT_S", 0.05)
    pool = SshPool(
        tmp_path / "known_hosts", user_ssh_config=tmp_path / "c", user_known_hosts=[],
        connect_timeout=30.0,
    )  # fmt: skip
    host = await trusted(pool, machine)
    servers = [
        await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        for _ in range(opening.OVERALL + 2)
    ]
    ports = [s.sockets[0].getsockname()[1] for s in servers]
    hung = [
        asyncio.create_task(pool.run(Host(name=f"m{p}", address="127.0.0.1", port=p), "true"))
        for p in ports
    ]
    while not pool._opener._overall.locked():
        await asyncio.sleep(0.01)
    assert (await pool.run(host, "echo fine")).stdout == "fine\n"
    assert not any(t.done() for t in hung)
    await pool.close()
    results = await asyncio.gather(*hung, return_exceptions=True)
    assert {type(r) for r in results} == {HostUnreachable}
    for server in servers:
        server.close()


async def test_dropped_handshakes_are_tried_again(
    pool: SshPool, machine: Machine, trusted: Trust
) -> None:
    host = await trusted(pool, machine)
    machine.drop_first = 2
    assert (await pool.run(host, "echo in")).stdout == "in\n"


async def test_login_troubles(
    pool: SshPool, machine: Machine, trusted: Trust, tmp_path: Path
) -> None:
    await trusted(pool, machine)
    wrong = tmp_path / "wrong"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(wrong)
    locked = tmp_path / "locked"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(
        locked, "pkcs8-pem", passphrase="secret"
    )
    cases = {
        str(wrong): "refused the login for user tester",
        str(tmp_path / "none"): "none cannot be read",
        str(locked): "ssh-add",
    }
    for number, (path, says) in enumerate(cases.items()):
        host = machine.host(f"n{number}", identity_files=(path,))
        with pytest.raises(HostDenied, match=says):
            await pool.run(host, "true")


async def test_a_server_that_takes_passwords_only_says_what_it_needs(
    pool: SshPool, machine: Machine
) -> None:
    class Passwords(asyncssh.SSHServer):
        def password_auth_supported(self) -> bool:
            return True

    server = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=Passwords, server_host_keys=[machine.key]
    )
    try:
        host = machine.host(port=server.get_port())
        await pool.accept_key(host, machine.key.get_fingerprint())
        with pytest.raises(HostDenied, match="takes no keys, only passwords") as caught:
            await pool.run(host, "true")
        assert caught.value.problem.rule == "host.password_only"
        assert "ssh-copy-id" in caught.value.problem.remedy
    finally:
        server.close()
        await server.wait_closed()


async def test_the_ssh_configuration_is_honoured(
    machine: Machine, trusted: Trust, tmp_path: Path, pool: SshPool
) -> None:
    await trusted(pool, machine)
    config = tmp_path / "config"
    config.write_text(
        f"Host gpu-box\n  HostName 127.0.0.1\n  Port {machine.port}\n  User tester\n"
        f"  IdentityFile {machine.client_key}\n  RemoteCommand false\n  RequestTTY force\n"
    )
    other = SshPool(tmp_path / "known_hosts", user_ssh_config=config, user_known_hosts=[])
    try:
        assert (await other.run(Host(name="a", address="gpu-box"), "echo in")).stdout == "in\n"
        config.write_text("Host *\n  Port notanumber\n")
        with pytest.raises(HostError, match="Port integer value"):
            await other.run(Host(name="b", address="gpu-box"), "true")
    finally:
        await other.close()


@pytest.mark.parametrize("by", ["entry", "inventory", "configuration"])
async def test_jump_hosts(
    machine: Machine, machine_at: MakeMachine, tmp_path: Path, by: str, trusted: Trust
) -> None:
    inner = machine_at("inner")
    await inner.start()
    config = tmp_path / "config"
    lines = f"Host hop\n  HostName 127.0.0.1\n  Port {machine.port}\n  User tester\n"
    lines += f"  IdentityFile {machine.client_key}\n"
    if by == "configuration":
        lines += "Host in\n  HostName 127.0.0.1\n  ProxyJump hop\n"
    config.write_text(lines)
    pool = SshPool(
        tmp_path / "known_hosts", user_ssh_config=config, user_known_hosts=[],
        inventory={"bastion": machine.host("bastion")}.get,
    )  # fmt: skip
    jump = {"entry": "hop", "inventory": "bastion", "configuration": None}[by]
    address = "in" if by == "configuration" else "127.0.0.1"
    host = inner.host("inner", jump=jump, address=address)
    await trusted(pool, machine, "bastion")
    await pool.accept_key(host, inner.key.get_fingerprint())
    out = await pool.run(host, 'echo "$HOME"')
    assert out.stdout.strip().endswith("/inner")
    assert machine.tcp_dialled >= 1
    assert await pool.connect(host) == ""
    assert await pool.connect(machine.host("bastion")) == "127.0.0.1"
    gone = inner.host("gone", jump="hop", port=free_port())
    with pytest.raises(HostUnreachable, match="jump host hop cannot reach it"):
        await pool.run(gone, "true")
    await pool.close()
    await inner.stop()


async def test_one_connection_to_the_jump_host_serves_all_behind_it(
    machine: Machine, machine_at: MakeMachine, pool: SshPool, trusted: Trust, tmp_path: Path
) -> None:
    (tmp_path / "ssh_config").write_text(f"Host *\n  IdentityFile {machine.client_key}\n")
    behind = [machine_at(f"b{n}") for n in range(3)]
    jump = f"tester@127.0.0.1:{machine.port}"
    hosts = []
    for made in behind:
        await made.start()
        host = made.host(made.home.name, jump=jump)
        with pytest.raises(HostKeyUnknown) as caught:
            await pool.run(host, "true")
        if made is behind[0]:  # the jump host's own key comes first
            assert caught.value.problem.values["fingerprint"] == machine.key.get_fingerprint()
            await pool.accept_key(host, machine.key.get_fingerprint())
        await pool.accept_key(host, made.key.get_fingerprint())
        hosts.append(host)
    outs = await asyncio.gather(*(pool.run(h, "pwd") for h in hosts))
    assert [o.stdout.strip().rpartition("/")[2] for o in outs] == ["b0", "b1", "b2"]
    assert machine.logins == 1
    for conn in list(machine.connections):
        conn.abort()
    while machine.connections:
        await asyncio.sleep(0.01)
    assert (await pool.run(hosts[1], "echo back")).stdout == "back\n"
    await pool.close()
    for made in behind:
        await made.stop()


async def test_a_jump_host_that_is_not_reached_is_named_beside_the_host_behind_it(
    machine: Machine, tmp_path: Path
) -> None:
    port = free_port()
    listed = Host(name="door", address="127.0.0.1", port=port)
    config = tmp_path / "config"
    config.write_text("")
    pool = SshPool(
        tmp_path / "known_hosts", user_ssh_config=config, user_known_hosts=[],
        inventory={"door": listed}.get,
    )  # fmt: skip
    host = machine.host("inner", jump=f"me@127.0.0.1:{port}")
    with pytest.raises(HostUnreachable) as caught:
        await pool.run(host, "true")
    told = caught.value.problem.message
    assert told.startswith(f"host inner: its jump host 127.0.0.1:{port}: nothing listens there")
    with pytest.raises(HostUnreachable) as caught:
        await pool.run(machine.host("other", jump="door"), "true")
    told = caught.value.problem.message
    assert told.startswith(f"host other: its jump host door (127.0.0.1:{port}): nothing listens")
    await pool.close()


async def test_jump_hosts_in_a_circle(tmp_path: Path) -> None:
    entries = {n: Host(name=n, address=f"{n}.invalid", jump=j) for n, j in (("a", "b"), ("b", "a"))}
    pool = SshPool(tmp_path / "k", user_ssh_config=tmp_path / "c", inventory=entries.get)
    with pytest.raises(HostError, match=r"go in a circle: a < b < a"):
        await pool.run(entries["a"], "true")
    await pool.close()


def test_how_jump_hosts_are_written() -> None:
    hop = hop_host("me@[fd00::1]:2200")
    assert (hop.user, hop.address, hop.port) == ("me", "fd00::1", 2200)
    assert hop_host("fd00::1").address == "fd00::1"
    assert (hop_host("box:2222").port, hop_host("box").user) == (2222, None)


async def test_a_changed_entry_connects_anew(
    pool: SshPool, machine: Machine, machine_at: MakeMachine, trusted: Trust
) -> None:
    host = await trusted(pool, machine)
    await pool.run(host, "true")
    other = machine_at("other")
    await other.start()
    moved = machine_at.entry(other)
    await pool.accept_key(moved, other.key.get_fingerprint())
    assert (await pool.run(moved, "echo $HOME")).stdout.strip().endswith("/other")
    labelled = moved.model_copy(update={"labels": {"rack": "7"}})
    logins = other.logins
    await pool.run(labelled, "true")
    assert other.logins == logins
    await pool.close()
    await other.stop()


async def test_a_dead_peer_is_noticed_and_replaced(
    tmp_path: Path, machine: Machine, trusted: Trust
) -> None:
    """A peer that stops answering without closing: keepalive ends the wait."""
    pool = SshPool(
        tmp_path / "known_hosts", user_ssh_config=tmp_path / "c", user_known_hosts=[],
        keepalive_s=0.1,
    )  # fmt: skip
    host = await trusted(pool, machine)
    running = asyncio.create_task(pool.run(host, "echo $$ >pid; sleep 3"))
    while not (machine.home / "pid").exists():
        await asyncio.sleep(0.01)
    for conn in machine.connections:
        conn.get_extra_info("socket")
        conn._transport.pause_reading()  # type: ignore[union-attr]
    with pytest.raises(HostUnreachable, match="lost"):
        await running
    assert (await pool.run(host, "echo again")).stdout == "again\n"
    await pool.close()


async def test_a_closed_pool_ends_what_runs(pool: SshPool, host: Host, machine: Machine) -> None:
    running = asyncio.create_task(pool.run(host, "echo $$ >pid; sleep 3"))
    while not (machine.home / "pid").exists():
        await asyncio.sleep(0.01)
    await pool.close()
    with pytest.raises(HostUnreachable):
        await running
