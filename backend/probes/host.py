"""One look at a host: a script of independent sections, and the pure reading of its output.

Each section is run on its own, so that a tool that fails or is missing costs only its own facts.
Nothing is invented: a tool's error becomes `accelerator_note`, never a device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address

from backend.domain.host import HostFacts, Interface
from backend.probes import gpus, network, npu, uses
from backend.steps import status
from backend.steps.common import LIB

SECTION = "== pdtui "

SCRIPT = (
    LIB
    + rf"""
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH
LC_ALL=C
export LC_ALL
work "$1"
bounded() {{ # SECONDS COMMAND...: with a deadline of its own, where the host can set one
  s=$1
  shift
  if command -v timeout >/dev/null 2>&1; then timeout -k 1 "$s" "$@"; else "$@"; fi
}}
part() {{ printf '\n{SECTION}%s\n' "$1"; }}
one() {{ # FILE: its only line, without a process for it; no file of numbers in /proc/sys, of which
  # a shell that reads byte by byte sees one digit
  line=
  {{ IFS= read -r line <"$1"; }} 2>/dev/null
  printf '%s\n' "$line"
}}
part boot
echo "$BOOT"
part hostname
one /proc/sys/kernel/hostname
part ssh
echo "${{SSH_CONNECTION:-}}"
part home
printf '%s\n' "$HOME"
part tools
for tool in flock setsid awk grep; do
  command -v "$tool" >/dev/null 2>&1 || echo "$tool"
done
part ephemeral
cat /proc/sys/net/ipv4/ip_local_port_range
part reserved
cat /proc/sys/net/ipv4/ip_local_reserved_ports 2>/dev/null
part tcp
awk '$4 == "0A" {{ n = split($2, a, ":"); print a[n] }}' /proc/net/tcp /proc/net/tcp6 2>/dev/null
"""
    + network.SCRIPT
    + r"""
part net
for i in /sys/class/net/*; do
  name=${i##*/} state= type=
  { IFS= read -r state <"$i/operstate"; IFS= read -r type <"$i/type"; } 2>/dev/null
  kind=
  if [ -e "$i/bridge" ]; then kind=bridge; elif [ -e "$i/bonding" ]; then kind=bond
  elif [ ! -e "$i/device" ]; then kind=virtual; fi
  echo "$name $type $state $kind"
done
part speed
for i in /sys/class/net/*; do
  speed=
  { IFS= read -r speed <"$i/speed"; } 2>/dev/null
  echo "${i##*/} $speed"
done
part claims
if cd "$W/instances" 2>/dev/null; then
  set +f
  grep -H '' */claim /dev/null 2>/dev/null | sed 's/^/F /'
fi
"""
    + gpus.SCRIPT
    + r"""
part npu
if command -v npu-smi >/dev/null 2>&1; then
  said=$(bounded 15 npu-smi info 2>&1)
  printf '%s\n\n== status %s\n' "$said" "$?"
  bounded 15 npu-smi info -m 2>&1
  part npu-uses
  printf '%s\n' "$said" | awk -F'|' '"""
    + uses.NPU_APPS_AWK
    + r"""' | whose
fi
part files
shift
for f in "$@"; do
  cat "$f" >/dev/null 2>&1 && printf '%s\n' "$f"
done
part end
exit 0
"""
)
"""Arguments: the work directory, and files whose presence is asked for."""

_COUNTED = re.compile(r"^\d+$")
_RANGE = re.compile(r"^(\d+)(?:-(\d+))?$")
_HEX = re.compile(r"(?<!\S)[0-9A-Fa-f]{4}(?!\S)")


def sections(stdout: str) -> dict[str, str]:
    """The script's output by section; a section that was cut off holds what came of it."""
    found: dict[str, str] = {}
    for part in ("\n" + stdout).split("\n" + SECTION)[1:]:
        name, _, body = part.partition("\n")
        found[name.strip()] = body.strip("\n")
    return found


def parse(stdout: str, fallback_address: str = "") -> HostFacts:
    """The facts that the output holds. `fallback_address` stands in where it names no address."""
    part = sections(stdout)
    cards, note = gpus.queried(part.get("nvidia"))
    cards = gpus.with_more(cards, part.get("nvidia-more")) or gpus.tabled(
        part.get("nvidia-table"), part.get("nvidia-list")
    )
    npus, npu_note = npu.parse(part.get("npu"))
    interfaces = network.interfaces(part, by_sys(part.get("net", "")))
    return HostFacts(
        boot_id=part.get("boot", "").strip(),
        hostname=part.get("hostname", "").strip(),
        address=address(part.get("ssh", ""), interfaces, fallback_address),
        home=part.get("home", ""),
        accelerators=cards or npus,
        accelerator_note="; ".join(n for n in (note, npu_note) if n),
        uses=uses.by_uuid(part.get("nvidia-uses"), cards)
        or uses.by_chip(part.get("npu-uses"), part.get("npu", "").partition("== status")[0], npus),
        interfaces=interfaces,
        routes=network.routes(part.get("route", "")),
        listening=frozenset(hex_ports(part.get("tcp", ""))),
        ephemeral=ephemeral(part.get("ephemeral", "")),
        reserved=reserved(part.get("reserved", "")),
        claims=tuple(status.claims(status.parse(part.get("claims", "")))),
        missing_tools=tuple(part.get("tools", "").split()),
        files=frozenset(part.get("files", "").splitlines()),
        speeds=speeds(part.get("speed", "")),
    )


def speeds(text: str) -> dict[str, int]:
    """Mbit/s by interface, of those whose driver tells it (a down link says -1, or nothing)."""
    rows = (line.split() for line in text.splitlines())
    return {r[0]: int(r[1]) for r in rows if len(r) == 2 and r[1].isdecimal() and int(r[1]) > 0}


def by_sys(text: str) -> tuple[Interface, ...]:
    """Interfaces from /sys/class/net: no addresses, and only the kinds that show there."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 3 or words[0] == "*":
            continue
        loopback = words[1] == "772"  # ARPHRD_LOOPBACK
        kind = words[3] if len(words) > 3 and not loopback else ""
        found.append(
            Interface(name=words[0], up=words[2] in ("up", "unknown"), loopback=loopback, kind=kind)
        )
    return tuple(found)


def address(ssh: str, interfaces: Sequence[Interface], fallback: str) -> str:
    """Where the others reach the host: the address our connection arrived at.

    An arrival at a loopback address counts only where we reached the host by one ourselves (it is
    this machine); otherwise a jump ended there, and the fallback or the only routable address is
    better.
    """
    words = ssh.split()
    arrived = words[2] if len(words) == 4 and _is_address(words[2]) else ""
    if arrived and not _is_loopback(arrived):
        return arrived
    if _is_loopback(fallback):
        return arrived or (fallback if _is_address(fallback) else "127.0.0.1")
    if fallback:
        return fallback
    physical = [i for i in interfaces if i.up and not i.loopback and not i.kind]
    routable = [a for i in physical for a in i.addresses]
    return routable[0] if len(routable) == 1 else arrived


def _is_loopback(text: str) -> bool:
    return text == "localhost" or (_is_address(text) and ip_address(text).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def hex_ports(text: str) -> list[int]:
    """Ports from the hexadecimal words of /proc/net/tcp."""
    return [int(word, 16) for word in _HEX.findall(text)]


def reserved(text: str) -> tuple[tuple[int, int], ...]:
    """Ports that are kept from outgoing connections, written like `40000-40063,41000`."""
    found = (_RANGE.match(word) for word in text.strip().split(","))
    return tuple((int(m[1]), int(m[2] or m[1])) for m in found if m)


def ephemeral(text: str) -> tuple[int, int]:
    """The kernel's range for outgoing connections; its default where it is not readable."""
    words = text.split()
    if len(words) == 2 and all(_COUNTED.match(w) for w in words):
        return int(words[0]), int(words[1])
    return 32768, 60999
