"""What happens on one session of an open connection: exchange, follow, kill, replace a file."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import posixpath
import secrets
import stat
from collections.abc import AsyncIterator, Callable

import asyncssh

from backend.adapters.ssh import wire
from backend.adapters.ssh.errors import lost
from backend.domain.errors import HostDenied, NotFound, PdError, TimedOut
from backend.domain.host import Host

SLACK_S = 4.0
"""How much longer than the remote deadline we wait for its verdict."""
_CHUNK = 1 << 16
PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Waits between tries to open a session on a server that allows fewer than we use."""


class Unruly(Exception):
    """A command that has to be killed from here; `reply` is what it had said."""

    def __init__(self, reply: wire.Reply) -> None:
        super().__init__()
        self.reply = reply


class Overdue(Unruly):
    """The remote end did not even report its own deadline."""


class TooMuch(Unruly):
    """More output than allowed."""


class _Full(Exception):
    """A stream went over its limit."""


async def _collect(reader: asyncssh.SSHReader[bytes], into: bytearray, limit: int) -> None:
    while chunk := await reader.read(_CHUNK):
        into += chunk
        if len(into) > limit:
            raise _Full


async def exchange(
    conn: asyncssh.SSHClientConnection,
    sent: wire.Payload,
    timeout: float,
    max_output: int,
    refused: Callable[[], None] = lambda: None,
) -> wire.Reply:
    """Send the payload and collect the reply; `timeout` seconds are the remote deadline.
    `refused` is called when the server has no session left for us, once.

    Raises Overdue, TooMuch, and what asyncssh raises when no session can be opened.
    """
    out, err = bytearray(), bytearray()
    try:
        async with asyncio.timeout(timeout + SLACK_S):
            process = await opened(conn, sent.command, refused)
            try:
                process.stdin.write(sent.stdin)
                process.stdin.write_eof()
                await _both(process, out, err, max_output)
                await process.wait_closed()
            finally:
                process.close()
    except TimeoutError:
        reply = wire.parse(sent.token, bytes(out), bytes(err))
        if reply.exit is None:
            raise Overdue(reply) from None
        return reply  # it has ended; something it left behind holds the channel
    except _Full:
        raise TooMuch(wire.parse(sent.token, bytes(out), bytes(err))) from None
    reply = wire.parse(sent.token, bytes(out), bytes(err))
    if reply.exit is None and process.exit_status in wire.KILLED:
        return wire.Reply(True, reply.stdout, reply.stderr, -1)
    if not reply.begun and process.exit_status is not None:
        return wire.Reply(False, reply.stdout, reply.stderr, process.exit_status)
    return reply


async def opened(
    conn: asyncssh.SSHClientConnection, command: str, refused: Callable[[], None] = lambda: None
) -> asyncssh.SSHClientProcess[bytes]:
    """A session that runs `command`; tried again while the server has none left for us.

    Raises ChannelOpenError when it goes on having none, and when the connection is closed.
    """
    for pause in PAUSES_S:
        try:
            return await conn.create_process(command, encoding=None)
        except asyncssh.ChannelOpenError:
            if conn.is_closed():
                raise
            if pause == PAUSES_S[0]:
                refused()
            await asyncio.sleep(pause)
    return await conn.create_process(command, encoding=None)


async def _both(
    process: asyncssh.SSHClientProcess[bytes], out: bytearray, err: bytearray, limit: int
) -> None:
    other = asyncio.create_task(_collect(process.stderr, err, limit))
    try:
        await _collect(process.stdout, out, limit)
        await other
    finally:
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)


def verdict(host: Host, reply: wire.Reply, timeout: float) -> int:
    """The script's exit status. Raises TimedOut, HostUnreachable (lost), HostDenied (no shell)."""
    if reply.exit is None:
        raise lost(host, "a command ran")
    if reply.begun and reply.exit < 0:
        raise TimedOut.of(
            "host.overdue",
            f"host {host.name}: a command did not end within {timeout:g} s and was killed.",
            remedy="Look whether the host is overloaded or a tool on it hangs.",
            values={"host": host.name, "seconds": timeout},
        )
    if not reply.begun:
        said = (reply.stdout + reply.stderr).decode("utf-8", "replace").strip()[-300:]
        raise HostDenied.of(
            "host.shell",
            f"host {host.name}: the login runs no commands (exit status {reply.exit}): {said}",
            remedy="Give the user a login shell there; a forced command will not do.",
            values={"host": host.name, "exit": reply.exit, "said": said},
        )
    return reply.exit


_KILL = """\
IFS= read -r s </proc/$1/stat || exit 0
s=${s##*) }
p=$1
set -f
set -- $s
[ "${20}" = "$START" ] || exit 0
if [ "$3" = "$p" ] || [ "$3" = "$2" ]; then kill -KILL "-$3"; else kill -KILL "$p"; fi
"""


async def kill(conn: asyncssh.SSHClientConnection, reply: wire.Reply) -> None:
    """Kill a script's process group, known by pid and start time, as well as we can.

    Bounded, and silent about a connection that does not answer, since the caller reports trouble
    already.
    """
    if not reply.begun or not reply.start:
        return
    sent = wire.payload(f"START={reply.start}\n{_KILL}", [str(reply.pid)], limit_s=3.0)
    with contextlib.suppress(Overdue, OSError, asyncssh.Error):
        await exchange(conn, sent, 1.0, _CHUNK)


async def fenced(
    process: asyncssh.SSHClientProcess[bytes], token: str, host: Host
) -> AsyncIterator[bytes]:
    """The process's output between the markers, as it comes.

    Raises HostUnreachable when it ends without its end marker.
    """
    held, begun = b"", False
    while chunk := await _next(process, host):
        held += chunk
        if not begun:
            found = wire.begun(held, token)
            if not found:
                continue
            held, begun = held[found.end() :], True
        ended = wire.ended(held, token)
        if ended:
            if ended.start():
                yield held[: ended.start()]
            return
        cut = wire.clear_of_end(held, token)
        if cut:
            yield held[:cut]
            held = held[cut:]
    raise lost(host, "its output was followed")


async def _next(process: asyncssh.SSHClientProcess[bytes], host: Host) -> bytes:
    try:
        return await process.stdout.read(_CHUNK)
    except (OSError, asyncssh.Error) as exc:
        raise lost(host, "its output was followed") from exc


async def decoded(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """UTF-8 text, decoded across chunk borders; what is no UTF-8 becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    async for chunk in chunks:
        text = decoder.decode(chunk)
        if text:
            yield text
    rest = decoder.decode(b"", True)
    if rest:
        yield rest


async def hang_up(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """Close the stream's input, which ends its script, and then the channel."""
    with contextlib.suppress(OSError, asyncssh.Error, TimeoutError):
        process.stdin.write_eof()
        async with asyncio.timeout(2.0):
            await process.wait_closed()
    process.close()


MOST_NAMES = 20_000


async def listing(sftp: asyncssh.SFTPClient, path: str) -> dict[str, tuple[int, int]]:
    """Size and time of change of everything in a folder; links that lead nowhere are left out."""
    found: dict[str, tuple[int, int]] = {}
    async for entry in sftp.scandir(path):
        name, attrs = entry.filename, entry.attrs
        assert isinstance(name, str)
        if name in (".", ".."):
            continue
        if attrs.permissions is not None and stat.S_ISLNK(attrs.permissions):
            try:
                attrs = await sftp.stat(posixpath.join(path, name))
            except asyncssh.SFTPNoSuchFile:
                continue
        found[name] = (attrs.size or 0, int(attrs.mtime or 0))
        if len(found) >= MOST_NAMES:
            break
    return found


async def replace_file(sftp: asyncssh.SFTPClient, path: str, data: bytes, mode: int) -> None:
    """Write beside `path`, then rename over it; the temporary file is removed on failure."""
    folder, name = posixpath.split(path)
    temporary = posixpath.join(folder, f".{name}.{secrets.token_hex(4)}")
    try:
        attrs = asyncssh.SFTPAttrs(permissions=mode)
        async with sftp.open(temporary, "wb", attrs) as file:
            await file.write(data)
        await sftp.chmod(temporary, mode)
        await sftp.posix_rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError, asyncssh.Error):
            await sftp.remove(temporary)
        raise


def no_such_file(host: Host, path: str) -> PdError:
    """The remote path, or its folder, does not exist."""
    return NotFound.of(
        "host.file",
        f"host {host.name}: {path} does not exist there.",
        remedy="Check the path on that host.",
        values={"host": host.name, "path": path},
    )
