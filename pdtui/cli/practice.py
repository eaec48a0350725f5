"""Hosts to practise on: embedded SSH hosts that stay until they are stopped.

They are a process of their own, with a folder that holds everything of theirs. Its standard input
is a named pipe that it also holds open for writing, so no terminal's end is its end.
"""

from __future__ import annotations

import json as json_
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdtui.cli.common import guarded

if TYPE_CHECKING:
    from backend.domain.errors import Invalid

app = typer.Typer(help="Embedded hosts to practise on.", no_args_is_help=True)
READY_S = 60.0
END_S = 30.0
CHILD, ADD, LOG, ORDERS = "process.json", "add-hosts.sh", "hosts.log", "orders"
Folder = Annotated[Path, typer.Argument(help="Folder for all they need.", show_default=False)]


@guarded
def demo(
    headless: Annotated[
        bool, typer.Option("--headless", help="Run the same story without a screen.")
    ] = False,
    hosts: Annotated[int, typer.Option(help="Embedded hosts.", min=2, max=16)] = 4,
) -> None:
    """A 2P1D group on embedded hosts: no GPU, no sshd, no root. Leaving it cleans everything up."""
    from pdtui.cli.demo import interactive, story

    if headless or not sys.stdout.isatty():
        raise typer.Exit(story(hosts))
    interactive(hosts)


@app.command()
@guarded
def start(
    folder: Folder,
    hosts: Annotated[int, typer.Option(help="How many.", min=1, max=64)] = 2,
    accelerators: Annotated[int, typer.Option(help="Of each host.", min=0, max=16)] = 4,
) -> None:
    """Start embedded hosts with simulated accelerators, and a model folder; stop ends them."""
    if _pid(folder) is not None:
        raise _problem("practice.runs", f"practice hosts run in {folder} already.",
                       f"Use them, or end them: pdtui practice stop {folder}")  # fmt: skip
    if folder.exists() and any(folder.iterdir()) and not (folder / CHILD).exists():
        raise _problem("practice.folder", f"{folder} holds something else.",
                       "Name a folder that does not exist.")  # fmt: skip
    folder = folder.resolve()
    model = folder / "models" / "Qwen3-8B"
    ready = _launch(folder, hosts, accelerators)
    from pdtui.cli.stage import CONFIG

    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json_.dumps(CONFIG, indent=1))
    lines = [_add(h, prints) for h, prints in _with_prints(ready)]
    (folder / ADD).write_text("\n".join(["set -e", *lines, ""]))
    typer.echo(f"{len(lines)} hosts with {accelerators} accelerators each listen on loopback.")
    typer.echo(f"model:      {model}")
    typer.echo(f"to add them: sh {folder / ADD}")


@app.command()
@guarded
def stop(folder: Folder) -> None:
    """End the hosts in a folder and everything that runs on them, and remove the folder."""
    import shutil

    pid = _pid(folder)
    if pid is None and not (folder / CHILD).exists():
        raise _problem("practice.none", f"no practice hosts live in {folder}.",
                       "Name the folder they were started with.")  # fmt: skip
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + END_S
        while _pid(folder) is not None:
            if time.monotonic() > deadline:
                raise _problem("practice.stuck", f"process {pid} has not ended in {END_S:g} s.",
                               f"See {folder / LOG}.")  # fmt: skip
            time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)
    typer.echo(f"ended; {folder} is removed")


def _launch(folder: Path, hosts: int, accelerators: int) -> dict[str, Any]:
    """The hosts' process, once all of them listen: what it says of them. Raises Invalid."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    orders = folder / ORDERS
    if not orders.exists():
        os.mkfifo(orders, 0o600)
    said = folder / "ready.json"
    held = os.open(orders, os.O_RDWR)
    try:
        with said.open("w") as out, (folder / LOG).open("w") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "backend.sandbox", "--root", str(folder / "hosts"),
                 "--hosts", str(hosts), "--accelerators", str(accelerators)],
                stdin=held, stdout=out, stderr=log, cwd=folder, start_new_session=True,
            )  # fmt: skip
    finally:
        os.close(held)
    started = _started(child.pid)
    (folder / CHILD).write_text(json_.dumps({"pid": child.pid, "started": started}))
    deadline = time.monotonic() + READY_S
    while not said.read_text().endswith("\n"):
        if child.poll() is not None or time.monotonic() > deadline:
            child.kill()
            raise _problem("practice.hosts", "the embedded hosts did not start: "
                           + (folder / LOG).read_text().strip()[-600:],
                           "`pip install 'pdtui[demo]'` brings the router they need.")  # fmt: skip
        time.sleep(0.05)
    found: dict[str, Any] = json_.loads(said.read_text().splitlines()[0])
    return found


def _with_prints(ready: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Each host with the fingerprint of its key, as its owner knows it."""
    import asyncssh

    keys = asyncssh.read_known_hosts(ready["known_hosts"])
    found = []
    for host in ready["inventory"]:
        match = keys.match(host["address"], "", host["port"])
        found.append((host, match[0][0].get_fingerprint()))
    return found


def _add(host: dict[str, Any], prints: str) -> str:
    first, last = host["service_port_range"]
    words = ["pdtui", "hosts", "add", host["name"], host["address"], "--port", str(host["port"]),
             "--user", host["user"], "--identity", host["identity_files"][0],
             "--service-port-range", f"{first}-{last}", "--accept-key", prints]  # fmt: skip
    return shlex.join(words)


def _pid(folder: Path) -> int | None:
    """The hosts' process while it lives: it and no other that was given its number since."""
    try:
        kept = json_.loads((folder / CHILD).read_text())
        pid = int(kept["pid"])
        return pid if _started(pid) == kept["started"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _started(pid: int) -> int:
    """When a process started, in ticks since boot; 0 for one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _problem(rule: str, message: str, remedy: str) -> Invalid:
    from backend.domain.errors import Invalid

    return Invalid.of(rule, message, remedy=remedy)
