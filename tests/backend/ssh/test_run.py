"""Running scripts over a real SSH connection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.adapters.ssh import link as links
from backend.adapters.ssh import sessions, wire
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import (
    HostDenied,
    HostError,
    HostUnreachable,
    NotFound,
    RemoteFailed,
    TimedOut,
)
from backend.domain.host import Host
from tests.backend.ssh.conftest import Machine


async def gone(pid: int) -> bool:
    """Whether the process ends within some seconds."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        await asyncio.sleep(0.05)
    return False


async def pid_in(path: Path) -> int:
    """The number that a remote script writes into the file, once it has."""
    while not (path.exists() and path.read_text().strip()):
        await asyncio.sleep(0.01)
    return int(path.read_text())


async def test_output_exit_and_arguments(pool: SshPool, host: Host) -> None:
    out = await pool.run(
        host, 'printf "%s|" "$@"; echo bad >&2; exit 3', args=["a b", "$HOME"], check=False
    )
    assert (out.stdout, out.stderr, out.exit) == ("a b|$HOME|", "bad\n", 3)


async def test_a_failure_names_host_status_and_last_words(pool: SshPool, host: Host) -> None:
    with pytest.raises(RemoteFailed, match=r"node1.*exit status 4: no such thing") as caught:
        await pool.run(host, "echo first >&2; echo no such thing >&2; exit 4")
    assert caught.value.problem.values == {
        "host": "node1", "exit": 4, "stderr": "first\nno such thing",
    }  # fmt: skip


async def test_a_hundred_at_once_share_one_connection(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    logins = machine.logins
    outs = await asyncio.gather(
        *(pool.run(host, 'echo "$1"', args=[str(i)], timeout=60) for i in range(100))
    )
    assert [o.stdout for o in outs] == [f"{i}\n" for i in range(100)]
    assert machine.logins == logins + 1
    assert 1 < machine.most_sessions <= links.SESSIONS


async def test_stdin_is_the_scripts_own(pool: SshPool, host: Host) -> None:
    data = bytes(range(256)) * 40
    raw = await pool.run_raw(host, 'cat; exit "$1"', args=["0"], stdin=data)
    assert raw.stdout == data


async def test_without_stdin_a_reader_sees_the_end(pool: SshPool, host: Host) -> None:
    assert (await pool.run(host, "cat; echo done")).stdout == "done\n"


async def test_rc_files_noise_is_dropped(pool: SshPool, host: Host, machine: Machine) -> None:
    (machine.home / ".bashrc").write_text(
        "echo 'Welcome to the cluster'; printf 'no newline'; echo careful >&2\n"
        "trap 'echo goodbye' EXIT\n"
    )
    out = await pool.run(host, "printf plain; echo err >&2")
    assert (out.stdout, out.stderr) == ("plain", "err\n")


async def test_a_login_shell_that_refuses_is_named(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    machine.shell = ("sh", "-c", "echo 'This account is currently not available.'; exit 1", "x")
    with pytest.raises(HostDenied, match="This account is currently not available"):
        await pool.run(host, "true")


async def test_a_host_too_slow_to_begin_is_overdue_not_refusing(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    machine.shell = ("sh", "-c", "cat >/dev/null; exit 124", "x")
    with pytest.raises(TimedOut):
        await pool.run(host, "true")


async def test_other_login_shells(pool: SshPool, host: Host, machine: Machine) -> None:
    machine.shell = ("dash", "-c")
    assert (await pool.run(host, "x=1; echo $x")).stdout == "1\n"


async def test_the_command_line_holds_nothing_a_shell_reads_differently() -> None:
    for line in (wire.command_line(20), wire.command_line(None)):
        assert not set(line) & set('\\!`$"\n*?[~#')


async def test_bytes_that_are_no_utf8(pool: SshPool, host: Host) -> None:
    out = await pool.run(host, r"printf 'a\377\376b'")
    assert out.stdout == "a��b"
    assert (await pool.run(host, "echo still here")).stdout == "still here\n"


async def test_a_script_cut_off_never_runs_partly(
    machine: Machine, pool: SshPool, host: Host
) -> None:
    mark = machine.home / "ran"
    sent = wire.payload(f"touch {mark}", ["x"] * 5)
    conn = await pool._link(host).connection()
    end = sent.stdin.index(b"pdtui_run\nexit 0")
    for size in (10, len(sent.stdin) // 2, end - 3, end):
        await conn.run(sent.command, input=sent.stdin[:size], encoding=None)
    assert not mark.exists()
    await conn.run(sent.command, input=sent.stdin, encoding=None)
    assert mark.exists()


async def test_a_large_script_and_a_large_argument(pool: SshPool, host: Host) -> None:
    big = "# " + "x" * 300_000 + '\nprintf %s "$1" | wc -c'
    out = await pool.run(host, big, args=["y" * 300_000])
    assert out.stdout.strip() == "300000"


async def test_nul_is_refused(pool: SshPool, host: Host) -> None:
    with pytest.raises(ValueError, match="NUL"):
        await pool.run(host, "true", args=["a\0b"])
    with pytest.raises(ValueError, match="NUL"):
        await pool.run(host, "echo \0")


async def test_any_text_arrives_as_one_argument(pool: SshPool, host: Host) -> None:
    text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
    words: list[list[str]] = []

    @settings(max_examples=300, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(text, max_size=5))
    def collect(args: list[str]) -> None:
        words.append(args)

    # Hypothesis imports modules as it runs, and CPython 3.11 miscounts its recursion when the
    # garbage collector interrupts the compiling of one ("recursion depth mismatch").
    gc.disable()
    try:
        collect()
    finally:
        gc.enable()
    words += [["'"], ['"', "\\", "$(id)", "`id`", "a\nb\r\n", "!!", "-n", "", "é漢\x81\x88"]]
    for start in range(0, len(words), 50):
        batch = words[start : start + 50]
        flat = [a for args in batch for a in args]
        raw = await pool.run_raw(host, r'for a; do printf "%s\0" "$a"; done', args=flat)
        assert raw.stdout.decode().split("\0")[:-1] == flat


async def test_overdue_commands_are_killed_there(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    script = "sleep 300 & echo $! >child; echo $$ >shell; wait"
    with pytest.raises(TimedOut, match=r"node1.*within 0\.3 s"):
        await pool.run(host, script, timeout=0.3)
    for name in ("child", "shell"):
        assert await gone(int((machine.home / name).read_text()))


async def test_overdue_commands_are_killed_without_timeout_program(
    pool: SshPool, host: Host, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("bash", "sh", "sleep"):
        (tools / tool).symlink_to(Path("/bin") / tool)
    machine.path = str(tools)
    monkeypatch.setattr("backend.adapters.ssh.sessions.SLACK_S", 0.2)
    with pytest.raises(TimedOut):
        await pool.run(host, "sleep 300 & echo $! >child; wait", timeout=0.3)
    assert await gone(int((machine.home / "child").read_text()))


async def test_a_script_that_bounds_itself_is_killed_from_here_all_the_same(
    pool: SshPool, host: Host, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.adapters.ssh.sessions.SLACK_S", 0.2)
    with pytest.raises(TimedOut):
        await pool.run(host, "echo $$ >shell; sleep 300; true", timeout=4.0, self_bounded=True)
    assert await gone(int((machine.home / "shell").read_text()))


async def test_a_connection_lost_while_running(pool: SshPool, host: Host, machine: Machine) -> None:
    running = asyncio.create_task(pool.run(host, "echo $$ >pid; sleep 5; echo done", timeout=30))
    await pid_in(machine.home / "pid")
    for conn in list(machine.connections):
        conn.abort()
    with pytest.raises(HostUnreachable, match="lost while a command ran"):
        await running
    assert (await pool.run(host, "echo back")).stdout == "back\n"


async def test_a_shell_killed_halfway_is_lost_not_fine(pool: SshPool, host: Host) -> None:
    with pytest.raises(HostUnreachable, match="outcome is not known"):
        await pool.run(host, "kill -9 $PPID; kill -9 $$; sleep 1", check=False)


async def test_endless_output_is_stopped(tmp_path: Path, host: Host, pool: SshPool) -> None:
    pool._max_output = 100_000
    with pytest.raises(RemoteFailed, match="more than 100000 bytes"):
        await pool.run(host, "while :; do echo 0123456789012345678901234567890123456789; done")
    assert (await pool.run(host, "echo fine")).stdout == "fine\n"


async def test_the_eleventh_session_waits_and_the_twelfth_stream_is_told(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    blocked = [
        asyncio.create_task(pool.run(host, f"echo 1 >b{i}; while [ ! -e go ]; do sleep 0.05; done"))
        for i in range(links.SESSIONS)
    ]
    for i in range(links.SESSIONS):
        await pid_in(machine.home / f"b{i}")
    with pytest.raises(TimedOut, match="all 8 sessions stayed in use"):
        await pool.run(host, "true", timeout=0.2)
    more = [asyncio.create_task(pool.run(host, "echo ran", timeout=30)) for _ in range(3)]
    (machine.home / "go").write_text("")
    assert {(await t).stdout for t in more} == {"ran\n"}
    await asyncio.gather(*blocked)
    assert machine.most_sessions <= links.SESSIONS


async def test_a_session_refused_by_the_server_leaves_the_connection_good(
    pool: SshPool, host: Host, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "PAUSES_S", (0.01,))
    conn = await pool._link(host).connection()
    machine.sessions_cap = 0
    with pytest.raises(HostError, match="MaxSessions"):
        await pool.run(host, "true")
    machine.sessions_cap = 8
    assert await pool._link(host).connection() is conn


async def test_a_server_with_few_sessions_is_waited_for(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    machine.sessions_cap = 2
    outs = await asyncio.gather(*(pool.run(host, f"sleep 0.3; echo {i}") for i in range(8)))
    assert [o.stdout for o in outs] == [f"{i}\n" for i in range(8)]
    refused = machine.refused_sessions
    assert refused > 0
    outs = await asyncio.gather(*(pool.run(host, f"echo {i}") for i in range(16)))
    assert [o.stdout for o in outs] == [f"{i}\n" for i in range(16)]
    assert machine.refused_sessions == refused, "it has learned how many there are"


async def test_cancelling_one_caller_leaves_the_others(pool: SshPool, host: Host) -> None:
    first = asyncio.create_task(pool.run(host, "echo 1"))
    second = asyncio.create_task(pool.run(host, "echo 2"))
    await asyncio.sleep(0)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    assert (await second).stdout == "2\n"


async def test_follow_and_leave(pool: SshPool, host: Host, machine: Machine) -> None:
    log = machine.home / "log"
    log.write_bytes("é one\n".encode())
    seen = ""
    script = 'echo $$ >pid; exec tail -n +1 -F "$1" 2>/dev/null'
    async with pool.stream(host, script, ["log"]) as chunks:
        async for text in chunks:
            seen += text
            if seen.endswith("one\n"):
                with log.open("ab") as file:
                    file.write("漢 two\n".encode())
            if seen.endswith("two\n"):
                break
    assert seen == "é one\n漢 two\n"
    assert await gone(await pid_in(machine.home / "pid"))


async def test_a_stream_ends_with_its_script(pool: SshPool, host: Host) -> None:
    async with pool.stream(host, 'printf "a\n\nb"; exit 0') as chunks:
        assert "".join([c async for c in chunks]) == "a\n\nb"


async def test_a_stream_that_breaks_says_so(pool: SshPool, host: Host, machine: Machine) -> None:
    async def follow() -> None:
        async with pool.stream(host, "echo 1; sleep 30") as chunks:
            async for _ in chunks:
                for conn in list(machine.connections):
                    conn.abort()

    with pytest.raises(HostUnreachable, match="followed"):
        await follow()


async def test_files(pool: SshPool, host: Host, machine: Machine) -> None:
    await pool.write_file(host, "some file", b"one")
    await pool.write_file(host, "some file", b"two\xff", mode=0o640)
    assert await pool.read_file(host, "some file") == b"two\xff"
    assert await pool.read_file(host, "some file", offset=1, limit=2) == b"wo"
    there = machine.home / "some file"
    assert there.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in machine.home.iterdir()] == ["some file"]
    with pytest.raises(NotFound, match="nothing/here"):
        await pool.read_file(host, "nothing/here")
    with pytest.raises(NotFound):
        await pool.write_file(host, "nothing/here", b"")


async def test_files_are_never_seen_half_written(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    (machine.home / "f").write_bytes(b"a" * 100_000)
    writing = asyncio.create_task(pool.write_file(host, "f", b"b" * 100_000))
    while not writing.done():
        assert len(set((machine.home / "f").read_bytes())) == 1
        await asyncio.sleep(0)
    await writing
    assert (machine.home / "f").read_bytes() == b"b" * 100_000


def test_markers_survive_pieces() -> None:
    token = "00"
    out = b"noise\n\npdtui-begin-00 7 S 1 2 3\nbody\npdtui-end-00 5\nbye"
    reply = wire.parse(token, out, b"rc\n\npdtui-begin-00\noops")
    assert (reply.stdout, reply.stderr, reply.exit, reply.pid) == (b"body\n", b"oops", 5, 7)
    assert wire.parse(token, out[:-12], b"").exit is None
