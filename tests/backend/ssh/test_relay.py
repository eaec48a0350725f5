"""HTTP to members of a host whose SSH server forwards nothing: a program there dials."""

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import Any

import pytest

from backend.adapters.http import HostHttp, MemberUnreachable
from backend.adapters.ssh.errors import DialFailed
from backend.adapters.ssh.link import RELAYS
from backend.adapters.ssh.pool import SshPool
from backend.adapters.ssh.relay import command
from backend.domain.errors import HostError
from backend.domain.host import Host
from tests.backend.ssh.conftest import Machine
from tests.backend.ssh.test_http import Site, Url, http, site, url

__all__ = ["http", "site", "url"]
TELLING = ("bash", "python3")
"""Those that tell a refused connection from one that was closed."""


@pytest.fixture
def only(machine: Machine, needs: Any) -> Any:
    """`only("nc")`: the machine forwards nothing and has these programs, beside a plain shell."""

    def restrict(*tools: str) -> None:
        folder = machine.home / "only"
        folder.mkdir()
        for tool in ("cat", *tools):
            if tool == "nc" and not shutil.which("nc"):
                needs("busybox")
                (folder / "nc").write_text('#!/bin/sh\nexec /bin/busybox nc "$@"\n')
                (folder / "nc").chmod(0o755)
                continue
            needs(tool)
            (folder / tool).write_text(f'#!/bin/sh\nexec {real(tool)} "$@"\n')
            (folder / tool).chmod(0o755)
        machine.path = str(folder)
        machine.shell = ("/bin/sh", "-c")
        machine.forwarding = False

    return restrict


def real(tool: str) -> str:
    """The program itself: a version manager's stand-in wants a shell of the user's."""
    if tool == "python3":
        return sys.executable
    found = shutil.which(tool, path="/usr/bin:/bin:/usr/local/bin") or shutil.which(tool)
    assert found
    return found


@pytest.mark.parametrize("tool", ["bash", "python3", "socat", "nc"])
async def test_whatever_can_dial_there_does(
    http: HostHttp, host: Host, url: Url, site: Site, only: Any, tool: str, machine: Machine
) -> None:
    only(tool)
    ok = await http.request(host, "GET", url("/health"), timeout=30)
    assert (ok.status_code, ok.json()) == (200, {"path": "/health"})
    await http.request(host, "POST", url("/w?x=1"), json={"a": "ü" * 9}, timeout=30)
    assert site.requests[-1][0] == "POST /w?x=1 HTTP/1.1"
    assert "ü" * 9 in site.requests[-1][1].decode()
    async with http.stream(host, "GET", url("/chunks")) as answer:
        assert await answer.aread() == b"onetwo"
    with pytest.raises(MemberUnreachable):
        await http.request(host, "GET", url("/half"), timeout=30)
    with pytest.raises(MemberUnreachable) as caught:
        await http.request(host, "GET", "http://127.0.0.1:1/health", timeout=30)
    assert caught.value.problem.values["closed"] is (tool not in TELLING)
    if tool in TELLING:
        assert "refused" in caught.value.problem.message
    async with asyncio.timeout(30):
        while machine.open_sessions:
            await asyncio.sleep(0.02)
    assert machine.tcp_dialled == 0


async def test_many_at_once_wait_for_their_turn_and_commands_go_on(
    http: HostHttp, host: Host, pool: SshPool, url: Url, only: Any, machine: Machine
) -> None:
    only("bash")
    asked = [http.request(host, "GET", url(f"/{i}"), timeout=60) for i in range(30)]
    ran = [pool.run(host, "echo fine", timeout=60) for _ in range(5)]
    answers = await asyncio.gather(*asked)
    assert [a.json()["path"] for a in answers] == [f"/{i}" for i in range(30)]
    assert {r.stdout for r in await asyncio.gather(*ran)} == {"fine\n"}
    assert machine.most_sessions <= 8
    assert RELAYS < 8


@pytest.mark.parametrize("shell", ["fish", "tcsh", "zsh"])
async def test_any_login_shell_takes_the_line(
    http: HostHttp, host: Host, url: Url, machine: Machine, needs: Any, shell: str
) -> None:
    needs(shell)
    machine.forwarding = False
    machine.shell = (real(shell), "-c")
    assert (await http.request(host, "GET", url("/health"), timeout=30)).status_code == 200


async def test_start_up_files_that_print_are_passed_over(
    http: HostHttp, host: Host, url: Url, machine: Machine
) -> None:
    (machine.home / ".bashrc").write_text("printf 'HTTP/1.1 500 Welcome'\n")
    machine.forwarding = False
    assert (await http.request(host, "GET", url("/health"), timeout=30)).status_code == 200


async def test_without_any_of_them_it_is_said(
    http: HostHttp, host: Host, url: Url, only: Any, pool: SshPool
) -> None:
    only()
    with pytest.raises(HostError) as caught:
        await http.request(host, "GET", url("/health"), timeout=30)
    assert caught.value.problem.rule == "host.forwarding"
    assert "AllowTcpForwarding" in caught.value.problem.remedy
    with pytest.raises(HostError) as caught:
        await pool.open_tcp(host, "127.0.0.1", 1)
    assert not isinstance(caught.value, DialFailed)


@pytest.mark.parametrize("dest", ["", "a b", "$(id)", "a;b", "a'b", "-e", "a\nb", "!x"])
def test_what_is_no_address_reaches_no_shell(dest: str) -> None:
    for tool in ("bash", "python3", "socat", "nc"):
        with pytest.raises(ValueError, match="no address"):
            command(tool, dest, 80, "t")
        with pytest.raises(ValueError, match="no address"):
            command(tool, "ok", 0, "t")
    assert "TCP:[fe80::1]:80" in command("socat", "fe80::1", 80, "t")
