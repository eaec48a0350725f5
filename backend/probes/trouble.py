"""What drivers and links complain of: the kernel's log of Xids, the NPUs' own network ports."""

from __future__ import annotations

import re
from collections.abc import Iterable

from backend.domain.checkup import NpuPort, Xid

SCRIPT = r"""
part xid
bounded 5 dmesg 2>/dev/null | grep -a 'NVRM: Xid' | tail -n 200
part npu-net
tool=$(command -v hccn_tool 2>/dev/null)
for f in /usr/local/Ascend/driver/tools/hccn_tool /usr/local/bin/hccn_tool; do
  [ -n "$tool" ] || { [ -x "$f" ] && tool=$f; }
done
if [ -n "$tool" ]; then
  set +f
  for d in /dev/davinci[0-9]*; do
    n=${d#/dev/davinci}
    case $n in ''|*[!0-9]*) continue ;; esac
    for what in ip link tls; do
      echo "--- hccn_tool -i $n -$what -g"
      bounded 4 "$tool" -i "$n" "-$what" -g 2>&1 </dev/null
    done
  done
fi
"""
"""Sections of the deeper look; `bounded` and `part` are its own."""

_XID = re.compile(r"NVRM: Xid \(PCI:([0-9A-Fa-f:.]+)\): (\d{1,4}), (.*)$")
_PID = re.compile(r"^(?:pid=[^,]*, )?(?:name=[^,]*, )?(?:channel [^,]*, )?")
_ASKED = re.compile(r"^--- hccn_tool -i (\d{1,3}) -(\w+) -g")
_IP = re.compile(r"^\s*ipaddr:(\S+)")
_LINK = re.compile(r"link status:\s*(\w+)", re.I)
_TLS = re.compile(r"tls switch\s*\[(\d)\]")


def xids(text: str) -> tuple[Xid, ...]:
    """Driver errors by card and number, the most frequent first; the text is the latest's."""
    counted: dict[tuple[str, int], tuple[int, str]] = {}
    for line in text.splitlines():
        if found := _XID.search(line):
            key = found[1], int(found[2])
            counted[key] = counted.get(key, (0, ""))[0] + 1, _PID.sub("", found[3])[:200]
    rows = [Xid(card=c, number=n, count=k, text=t) for (c, n), (k, t) in counted.items()]
    return tuple(sorted(rows, key=lambda x: (-x.count, x.card, x.number)))


def npu_ports(text: str) -> tuple[NpuPort, ...]:
    """The NPUs' network ports; what a tool did not say of one stays empty."""
    found: dict[int, NpuPort] = {}
    asked: int | None = None
    for line in text.splitlines():
        if head := _ASKED.match(line):
            asked = int(head[1])
            continue
        said = dict(_said(line)) if asked is not None else {}
        if said and asked is not None:
            port = found.get(asked) or NpuPort(device=asked)
            found[asked] = port.model_copy(update=said)
    return tuple(found[n] for n in sorted(found))


def _said(line: str) -> Iterable[tuple[str, object]]:
    if address := _IP.match(line):
        yield "address", address[1]
    if link := _LINK.search(line):
        yield "link", link[1].upper()
    if tls := _TLS.search(line):
        yield "tls", tls[1] == "1"
