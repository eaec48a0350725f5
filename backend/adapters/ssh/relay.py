"""A TCP connection through a session, for a server that forwards none: a program there dials.

Each is told apart from what start-up files print by a token that comes once the way is open. The
command line holds nothing that a login shell (bash, zsh, fish, tcsh) reads in its own way.
"""

from __future__ import annotations

import asyncio
import base64
import re
import secrets
from collections.abc import Callable

import asyncssh

from backend.adapters.ssh.errors import DialFailed
from backend.adapters.ssh.sessions import opened
from backend.domain.errors import HostError
from backend.domain.host import Host

FIND = """\
if command -v bash >/dev/null 2>&1; then
  said=$(bash -c 'exec 3<>/dev/tcp/127.0.0.1/1' 2>&1)
  case $said in *'No such file'*) ;; *) echo bash; exit ;; esac
fi
for tool in python3 socat nc; do
  if command -v "$tool" >/dev/null 2>&1; then echo "$tool"; exit; fi
done
"""
"""Says which of the programs is there, the one that tells most and costs least first."""

_ADDRESS = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:%-]*$|^:[A-Fa-f0-9:.]+$")

_BASH = (
    "exec 3<>/dev/tcp/{dest}/{port} || exit 1; echo {token}; exec 4<&0; cat <&3 & cat <&4 >&3 & "
    "wait -n 2>/dev/null; [ $? = 2 ] && wait %1; kill $(jobs -p) 2>/dev/null"
)
_PYTHON = """\
import os, socket, sys, threading
try:
    there = socket.create_connection((sys.argv[1], int(sys.argv[2])))
except OSError as error:
    sys.exit(error.strerror or str(error))
os.write(1, (sys.argv[3] + "\\n").encode())
def up():
    while data := os.read(0, 65536):
        there.sendall(data)
    os._exit(0)
threading.Thread(target=up, daemon=True).start()
while data := there.recv(65536):
    while data:
        data = data[os.write(1, data):]
os._exit(0)
"""


def command(tool: str, dest: str, port: int, token: str) -> str:
    """The line that dials with the tool. Raises ValueError for what is no address."""
    if not _ADDRESS.match(dest) or not 0 < port < 65536:
        raise ValueError(f"{dest}:{port} is no address to dial")
    if tool == "bash":
        return f"exec bash -c '{_BASH.format(dest=dest, port=port, token=token)}'"
    if tool == "python3":
        code = base64.b64encode(_PYTHON.encode()).decode()
        run = f'import base64; exec(base64.b64decode("{code}"))'
        return f"exec python3 -c '{run}' {dest} {port} {token}"
    name = f"[{dest}]" if ":" in dest else dest
    dial = {
        "socat": f"socat - TCP:{name}:{port}",
        "nc": f"nc {dest} {port}",
    }[tool]
    return f"exec /bin/sh -c 'echo {token}; exec {dial}'"


def no_tool(host: Host) -> HostError:
    """The server forwards nothing and the host has no program that could dial in its place."""
    return HostError.of(
        "host.forwarding",
        f"host {host.name}: its SSH server forbids TCP forwarding, and there is none of bash, "
        "python3, socat and nc to dial from there.",
        remedy="Set AllowTcpForwarding yes (or local) there; members are probed through it.",
        values={"host": host.name},
    )


async def dial(
    conn: asyncssh.SSHClientConnection,
    host: Host,
    tool: str,
    dest: str,
    port: int,
    refused: Callable[[], None],
) -> asyncssh.SSHClientProcess[bytes]:
    """A session whose output and input are the connection's.

    Raises DialFailed when the port does not answer, as far as the tool tells; ValueError for what
    is no address; what asyncssh raises when no session can be opened.
    """
    token = f"pdtui-relay-{secrets.token_hex(8)}"
    process = await opened(conn, command(tool, dest, port, token), refused)
    try:
        await process.stdout.readuntil(f"{token}\n".encode())
    except asyncio.IncompleteReadError:
        said = (await process.stderr.read(4096)).decode("utf-8", "replace").strip()
        process.close()
        cause = said.splitlines()[-1].rpartition(": ")[2] if said else f"{tool} could not dial it"
        raise DialFailed.of(
            "host.dial",
            f"host {host.name}: {dest}:{port} cannot be reached from it ({cause}).",
            values={"host": host.name, "dest": dest, "port": port, "cause": cause},
        ) from None
    except BaseException:
        process.close()
        raise
    return process
