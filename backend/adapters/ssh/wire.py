"""How a script travels: what is written to the remote shell's stdin, and what its output means.

The login shell (any of bash, zsh, fish, tcsh) is only asked to become `/bin/sh -s`, by a constant
line without a character that one of them reads differently. Arguments and script are quoted words
inside what follows on stdin, so there is no limit on their size and nothing of them shows in `ps`.
The body runs only when its last line has arrived: a script cut off half way does nothing. Begin and
end markers fence the output off from what rc files print; the end marker carries the exit status,
and where it is missing the outcome is unknown.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from backend.domain.shell import join, quote

KILLED = (124, 137)
"""Exit statuses of `timeout` when it ended the command, by TERM and by KILL."""


@dataclass(frozen=True)
class Payload:
    """One run's command line and stdin, and the token its markers carry."""

    command: str
    stdin: bytes
    token: str


@dataclass(frozen=True)
class Reply:
    """A run's output between the markers. `exit` is None when no end marker was seen; `pid` and
    `start` name the remote shell for a later kill."""

    begun: bool
    stdout: bytes
    stderr: bytes
    exit: int | None
    pid: int = 0
    start: int = 0


def command_line(limit_s: float | None) -> str:
    """The constant line given to the login shell; `limit_s` is the remote end's own deadline."""
    if limit_s is None:
        return "exec /bin/sh -s"
    whole = max(1, int(limit_s + 0.999))
    return (
        "exec /bin/sh -c 'command -v timeout >/dev/null 2>/dev/null && "
        f"exec timeout -k 2 {whole} /bin/sh -s; exec /bin/sh -s'"
    )


_ANNOUNCE = """\
IFS= read -r pdtui_stat </proc/$$/stat 2>/dev/null || pdtui_stat=
printf '\\n%s %s %s\\n' {begin} "$$" "${{pdtui_stat##*) }}"
printf '\\n%s\\n' {begin} >&2
unset pdtui_stat
"""

_RUN = """\
pdtui_run() {{
{announce}{feed}(
set -- {args}
eval {script}
){source}
printf '%s %s\\n' {end} "$?"
}}
pdtui_run
exit 0
"""

# The body is a background job; reading stdin to its end notices that the caller has gone.
_STREAM = """\
pdtui_run() {{
{announce}(
(
set -- {args}
eval {script}
) </dev/null
printf '%s %s\\n' {end} "$?"
) &
while read -r pdtui_line; do :; done
trap '' TERM
case $pdtui_group in
"$$") kill -TERM 0 ;;
*) kill -TERM "$!" ;;
esac
}}
IFS= read -r pdtui_group </proc/$$/stat
set -- ${{pdtui_group##*) }}
pdtui_group=${{3:-}}
pdtui_run
exit 0
"""


def _encode(text: str) -> bytes:
    if "\0" in text:
        raise ValueError("a remote script cannot hold a NUL character")
    return text.encode("utf-8", "surrogateescape")


def payload(
    script: str, args: Sequence[str], stdin: bytes = b"", *, limit_s: float | None = 20.0
) -> Payload:
    """Wrap `script` so that it sees `args` as its parameters and `stdin` as its input.

    Raises ValueError for a NUL character in script or arguments.
    """
    token = secrets.token_hex(8)
    text = _RUN.format(
        announce=_ANNOUNCE.format(begin=_begin(token)),
        feed="pdtui_input | " if stdin else "",
        args=join(args),
        script=quote(script),
        source="" if stdin else " </dev/null",
        end=_end(token),
    )
    if stdin:
        body = base64.encodebytes(stdin).decode()
        mark = f"PDTUI_INPUT_{token}"
        text = f"pdtui_input() {{\nbase64 -d <<'{mark}'\n{body}{mark}\n}}\n{text}"
    return Payload(command_line(limit_s), _encode(text), token)


def stream_payload(script: str, args: Sequence[str]) -> Payload:
    """Wrap `script` so that it runs until it ends or the caller closes its input."""
    token = secrets.token_hex(8)
    text = _STREAM.format(
        announce=_ANNOUNCE.format(begin=_begin(token)),
        args=join(args),
        script=quote(script),
        end=_end(token),
    )
    return Payload(command_line(None), _encode(text), token)


def _begin(token: str) -> str:
    return f"pdtui-begin-{token}"


def _end(token: str) -> str:
    return f"pdtui-end-{token}"


def clear_of_end(held: bytes, token: str) -> int:
    """How many bytes of `held` are surely no part of an end marker that is still arriving."""
    marker = _end(token).encode()
    at = held.find(marker)
    if at >= 0:
        return at
    longest = min(len(marker) - 1, len(held))
    part = next((n for n in range(longest, 0, -1) if held.endswith(marker[:n])), 0)
    return len(held) - part


_BEGIN = re.compile(rb"\npdtui-begin-([0-9a-f]+) (\d+) ([^\n]*)\n")
_END = re.compile(rb"pdtui-end-([0-9a-f]+) (\d+)\n")


def begun(data: bytes, token: str) -> re.Match[bytes] | None:
    """The begin marker's line; groups: token, the shell's pid, and what holds its start ticks."""
    return next((m for m in _BEGIN.finditer(data) if m[1] == token.encode()), None)


def ended(data: bytes, token: str) -> re.Match[bytes] | None:
    """The end marker, which follows the body's last byte; groups: token and exit status."""
    return next((m for m in _END.finditer(data) if m[1] == token.encode()), None)


def parse(token: str, stdout: bytes, stderr: bytes) -> Reply:
    """What the run said, without what came before and after it."""
    begin = begun(stdout, token)
    errors = stderr.rpartition(b"\n" + _begin(token).encode() + b"\n")[2]
    if begin is None:
        return Reply(False, stdout, errors, None)
    fields = begin[3].split()
    start = int(fields[19]) if len(fields) > 19 else 0
    body = stdout[begin.end() :]
    end = ended(body, token)
    if end is None:
        return Reply(True, body, errors, None, int(begin[2]), start)
    return Reply(True, body[: end.start()], errors, int(end[2]), int(begin[2]), start)
