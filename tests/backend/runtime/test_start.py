"""Starting: once and only once, nothing leaked, nothing secret shown."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from backend.adapters.process import ProcessRuntime
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import Conflict, NotFound
from backend.domain.instance import LaunchFile
from tests.backend.runtime.conftest import Rig, alive, in_home
from tests.backend.ssh.conftest import Machine


async def test_it_runs_in_its_directory_with_files_and_environment(rig: Rig) -> None:
    script = 'pwd; cat "my cfg.json"; printf "%s\\n" "$ODD" "$PDTUI_INSTANCE" "$PDTUI_ROLE"; umask'
    status = await rig.start(
        script + "; ls -l /proc/self/fd | wc -l; trap; exec sleep 60",
        env={"ODD": "a 'b' $c\n`d`\\"},
        files=(LaunchFile(name="my.json", content="{}"), LaunchFile(name="cfg", content="é\n")),
    )
    assert status.state == "running"
    assert (status.owner, status.generation) == ("me", 1)
    text = await rig.says("prefill\n")
    assert text.startswith(f"{rig.folder()}\n")
    assert "a 'b' $c\n`d`\\\na\nprefill\n" in text
    stat = Path(f"/proc/{status.pid}/stat").read_text().rpartition(") ")[2].split()
    assert int(stat[19]) == status.start_ticks
    assert (rig.folder() / "cfg").read_text() == "é\n"
    modes = {p.name: p.stat().st_mode & 0o777 for p in rig.folder().iterdir() if p.is_file()}
    assert set(modes.values()) == {0o600}


async def test_nothing_is_inherited_that_should_not_be(rig: Rig) -> None:
    status = await rig.start("umask; exec sleep 60")
    assert (await rig.says("\n")).strip() == "0022"
    fds = {int(p.name): os.readlink(p) for p in Path(f"/proc/{status.pid}/fd").iterdir()}
    log = str(rig.folder() / "g1" / "log")
    assert fds == {0: "/dev/null", 1: log, 2: log}
    ignored = next(
        int(line.split()[1], 16)
        for line in Path(f"/proc/{status.pid}/status").read_text().splitlines()
        if line.startswith("SigIgn")
    )
    # Above 31 are the C library's own: a child of its posix_spawn, as under make, ignores those.
    assert ignored & 0x7FFF_FFFF == 0, "an engine must be able to take SIGINT"


async def test_secrets_are_in_no_command_line_and_not_in_the_spec(rig: Rig) -> None:
    env = {"HF_TOKEN": "tell-nobody", "NCCL_DEBUG": "INFO"}
    await rig.start("exec sleep 60", env=env)
    for pid in in_home(rig.home):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended since
            assert b"tell-nobody" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    spec = (rig.folder() / "spec.json").read_text()
    assert "tell-nobody" not in spec
    assert json.loads(spec)["launch"]["env"] == {"NCCL_DEBUG": "INFO"}
    (found,) = await rig.runtime.adoptable(rig.host)
    assert found["launch"]["env"] == env
    assert (found["owner"], found["role"], found["generation"]) == ("me", "prefill", 1)


async def test_twice_at_once_is_one_process(rig: Rig) -> None:
    await rig.claim()
    spec = rig.spec("echo started; exec sleep 60")
    first, *rest = await asyncio.gather(
        *(rig.runtime.start(rig.host, "a", 1, spec, {}) for _ in range(5))
    )
    assert all(s == first for s in rest)
    assert await rig.says("started") == "started\n"


async def test_a_start_whose_answer_was_lost_is_found(
    rig: Rig, machine: Machine, tmp_path: Path
) -> None:
    first = await rig.start("echo started; exec sleep 60")
    pool = SshPool(tmp_path / "known_hosts", user_ssh_config=tmp_path / "c", user_known_hosts=[])
    try:
        other = ProcessRuntime(pool, "me")
        assert await other.start(rig.host, "a", 1, rig.spec("exit 9"), {}) == first
        assert await other.statuses(rig.host, owner="me") == [first]
    finally:
        await pool.close()
    assert await rig.text() == "started\n"


async def test_it_outlives_the_connection(rig: Rig, pool: SshPool) -> None:
    status = await rig.start("exec sleep 60")
    pool.forget(rig.host.name)
    assert await rig.runtime.status(rig.host, "a") == status


async def test_a_start_cut_off_before_its_record_is_done_again(rig: Rig) -> None:
    await rig.claim()
    half = rig.folder() / "g1"
    half.mkdir()
    (half / "launch").write_text("some-older-id\n")
    assert (await rig.runtime.status(rig.host, "a")).state == "absent"
    status = await rig.runtime.start(rig.host, "a", 1, rig.spec("exec sleep 60"), {})
    assert status.state == "running"


async def test_a_late_leader_of_a_start_that_was_replaced_does_nothing(rig: Rig) -> None:
    """Its launch was taken over while it slept: it must end without becoming the program."""
    await rig.start("exec sleep 60")
    record = (rig.folder() / "g1" / "run").read_text()
    command = ["sh", "g1/lead", f"{rig.folder()}/g1", str(rig.folder()), "0022", str(os.getpid())]
    env = {**os.environ, "PDTUI_RUN_ID": "the-older-one"}
    late = await asyncio.to_thread(
        subprocess.run, [*command, "touch", "ran"], cwd=rig.folder(), env=env, check=False
    )
    same = {**os.environ, "PDTUI_RUN_ID": (rig.folder() / "g1" / "launch").read_text().strip()}
    twice = await asyncio.to_thread(
        subprocess.run, [*command, "touch", "ran"], cwd=rig.folder(), env=same, check=False,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert (late.returncode, twice.returncode) == (125, 125)
    assert not (rig.folder() / "ran").exists()
    assert (rig.folder() / "g1" / "run").read_text() == record


async def test_a_port_that_a_stranger_listens_on(rig: Rig) -> None:
    await rig.claim()
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        port = listener.getsockname()[1]
        spec = rig.spec("exec sleep 60", port=port, ports=(port,))
        with pytest.raises(Conflict, match=rf"{port} by .* \(pid {os.getpid()}\)") as caught:
            await rig.runtime.start(rig.host, "a", 1, spec, {})
    assert caught.value.problem.values["ports"] == [port]
    assert not in_home(rig.home)
    assert (await rig.runtime.start(rig.host, "a", 1, spec, {})).state == "running"


async def test_an_earlier_generation_that_lives_and_a_later_one(rig: Rig) -> None:
    first = await rig.start("exec sleep 60")
    with pytest.raises(Conflict, match="processes of generation 1 still live") as caught:
        await rig.start("exec sleep 60", generation=2)
    assert caught.value.problem.values["pids"] == [first.pid]
    await rig.runtime.stop(rig.host, "a", 5)
    assert (await rig.start("exec sleep 60", generation=2)).generation == 2
    await rig.runtime.stop(rig.host, "a", 5)
    (rig.folder() / "g1").rename(rig.folder() / "g9")
    with pytest.raises(Conflict, match="generation 9 was started already"):
        await rig.start("exec sleep 60", generation=3)


async def test_no_claim_and_anothers_claim(rig: Rig, rival: Rig) -> None:
    with pytest.raises(Conflict, match="holds no claim"):
        await rig.runtime.start(rig.host, "b", 1, rig.spec("true"), {})
    await rival.start("exec sleep 60", "b")
    spec = rig.spec("true")
    for act in (
        rig.runtime.start(rig.host, "b", 1, spec, {}),
        rig.runtime.stop(rig.host, "b", 1),
        rig.runtime.remove(rig.host, "b"),
    ):
        with pytest.raises(Conflict, match="belongs to another backend"):
            await act
    assert (await rival.runtime.status(rig.host, "b")).state == "running"
    assert await rig.runtime.statuses(rig.host, owner="me") == []


async def test_a_program_that_is_not_there(rig: Rig) -> None:
    await rig.start("", argv=("vllm-missing", "serve"))
    status = await rig.until("exited")
    assert status.exit_code == 127
    assert "program not found on this host: vllm-missing" in await rig.text()


async def test_exit_codes(rig: Rig) -> None:
    for number, (script, code) in enumerate(
        {"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -SEGV $$": 139}.items(), 1
    ):
        await rig.start(script, f"x{number}")
        assert (await rig.until("exited", f"x{number}")).exit_code == code
        code_text, when = (rig.folder(f"x{number}") / "g1" / "exit").read_text().split()
        assert int(code_text) == code
        assert abs(int(when) - time.time()) < 3600


async def test_old_generations_are_pruned(rig: Rig) -> None:
    for generation in range(1, 6):
        await rig.start("echo hi", generation=generation)
        await rig.until("exited")
        await rig.runtime.stop(rig.host, "a", 1)
    assert sorted(p.name for p in rig.folder().glob("g*")) == ["g3", "g4", "g5"]
    assert (await rig.runtime.log(rig.host, "a", generation=3)).text == "hi\n"
    with pytest.raises(NotFound, match="of generation 1"):
        await rig.runtime.log(rig.host, "a", generation=1)


async def test_many_at_once(rig: Rig) -> None:
    names = [f"n{i}" for i in range(12)]
    started = await asyncio.gather(*(rig.start("exec sleep 60", n) for n in names))
    assert len({s.pid for s in started}) == 12
    assert {s.instance for s in await rig.runtime.statuses(rig.host)} == set(names)
    stopped = await asyncio.gather(*(rig.runtime.stop(rig.host, n, 5) for n in names))
    assert all(r.gone and not r.killed for r in stopped)
    assert not any(alive(s.pid) for s in started)
