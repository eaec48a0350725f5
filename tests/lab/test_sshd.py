"""Our SSH against real sshd: looks, limits on sessions and logins, login shells, cut cables."""

from __future__ import annotations

import asyncio

import pytest

from backend.adapters.facts import look
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import HostDenied, HostUnreachable, PdError
from backend.domain.network import candidates
from tests.lab.conftest import host_of
from tests.lab.machines import FAST, FAST_NIC, NIC, Machine, Rack

pytestmark = [pytest.mark.root, pytest.mark.timeout(100)]


async def test_a_look_sees_the_host_itself(rack: Rack, node: Machine, pool: SshPool) -> None:
    facts = await look(pool, host_of(rack, node))
    assert (facts.hostname, facts.address, facts.boot_id) == (node.name, node.address, node.boot)
    assert facts.home == "/root/login"
    assert [a.uuid for a in facts.accelerators] == [node.plan.uuid(0), node.plan.uuid(1)]
    assert {i.name: i.addresses for i in candidates(facts)} == {
        NIC: (node.address,),
        FAST_NIC: (f"{FAST}.{node.number}",),
    }
    assert {"lo", "docker0"} < {i.name for i in facts.interfaces}
    assert 22 in facts.listening
    assert facts.missing_tools == ()


async def test_many_callers_stay_below_the_session_limit(
    rack: Rack, node: Machine, pool: SshPool
) -> None:
    """40 commands at a time on one connection to a server with OpenSSH's MaxSessions of 10."""
    host = host_of(rack, node)
    runs = [pool.run(host, 'sleep 0.05; echo "$1"', args=[str(i)]) for i in range(40)]
    assert [r.stdout for r in await asyncio.gather(*runs)] == [f"{i}\n" for i in range(40)]


async def test_a_server_with_three_sessions_serves_all_the_same(rack: Rack, pool: SshPool) -> None:
    tight = rack.machines[3]
    tight.sshd_extra = "MaxSessions 3\n"
    tight.reboot()
    host = host_of(rack, tight)
    runs = [pool.run(host, 'echo "$1"', args=[str(i)]) for i in range(12)]
    assert [r.stdout for r in await asyncio.gather(*runs)] == [f"{i}\n" for i in range(12)]


async def test_32_entries_of_one_server_all_log_in(rack: Rack, pool: SshPool) -> None:
    """OpenSSH drops handshakes beyond MaxStartups 10:30:100, all beyond 6 on this one."""
    busy = rack.machines[3]
    busy.sshd_extra = "MaxStartups 4:60:6\n"
    busy.reboot()
    entries = [host_of(rack, busy, name=f"entry{i}") for i in range(32)]
    said = await asyncio.gather(*(pool.run(e, "echo hello", timeout=60) for e in entries))
    assert [s.stdout for s in said] == ["hello\n"] * 32


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "fish", "tcsh", "busybox"])
async def test_any_login_shell_will_do(
    rack: Rack, node: Machine, pool: SshPool, shell: str, needs
) -> None:
    """Start-up files that print, in shells that read each line differently."""
    needs(shell)
    user = f"u{shell}"
    node.sh(
        'path=$(command -v "$2")\n'
        'case $2 in busybox) ln -sf "$path" /usr/local/bin/ash; path=/usr/local/bin/ash ;; esac\n'
        'useradd -m -s "$path" -p "*" "$1"\n'
        'for rc in .bashrc .profile .zshenv .cshrc .config/fish/config.fish; do\n'
        '  mkdir -p "$(dirname "/home/$1/$rc")"\n'
        '  echo "echo welcome to $1" >"/home/$1/$rc"\n'
        "done\n"
        'chown -R "$1" "/home/$1"',
        user, shell,
    )  # fmt: skip
    host = host_of(rack, node, name=f"as-{shell}", user=user)
    hard = "a'b\"c $HOME `id` \\ !! %s\nnext *"
    out = await pool.run(host, 'printf "%s|%s" "$1" "$HOME"; exit 3', args=[hard], check=False)
    assert (out.stdout, out.exit) == (f"{hard}|/home/{user}", 3)
    facts = await look(pool, host)
    assert facts.boot_id == node.boot
    assert len(facts.accelerators) == 2


async def test_a_login_without_a_shell_says_so(rack: Rack, node: Machine, pool: SshPool) -> None:
    node.sh('useradd -m -s /usr/sbin/nologin -p "*" locked')
    with pytest.raises(HostDenied) as caught:
        await pool.run(host_of(rack, node, name="locked", user="locked"), "true")
    assert caught.value.problem.rule == "host.shell"
    assert "not available" in caught.value.problem.message


async def test_a_cut_cable_ends_what_ran_and_a_mended_one_serves_again(
    rack: Rack, node: Machine, pool: SshPool
) -> None:
    host = host_of(rack, node)
    await pool.run(host, "true")
    running = asyncio.create_task(pool.run(host, "sleep 100", timeout=90))
    await asyncio.sleep(0.3)
    rack.part(node)
    with pytest.raises(HostUnreachable) as caught:
        await running
    assert caught.value.problem.rule == "host.lost"
    rack.heal(node)
    assert await _again(pool, host) == "hello\n"


async def test_a_host_that_lost_power_is_unreachable_until_it_is_back(
    rack: Rack, pool: SshPool
) -> None:
    machine = rack.machines[3]
    machine.sshd_extra = ""
    host = host_of(rack, machine)
    before = (await look(pool, host)).boot_id
    machine.die()
    with pytest.raises(PdError):
        await pool.run(host, "true")
    machine.boot_up()
    machine.wait()
    machine.reboot()
    assert await _again(pool, host) == "hello\n"
    assert (await look(pool, host)).boot_id == machine.boot != before


async def _again(pool: SshPool, host) -> str:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(60):
        while True:
            try:
                return (await pool.run(host, "echo hello")).stdout
            except HostUnreachable:
                await asyncio.sleep(0.1)
