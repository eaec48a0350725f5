"""Interfaces and routes where `ip` speaks no JSON or is not there: older forms, and ifconfig."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from ipaddress import ip_address
from itertools import pairwise
from typing import Any

from backend.domain.host import Interface, Route

SCRIPT = r"""
part ip
if command -v ip >/dev/null 2>&1; then
  bounded 5 ip -d -j addr 2>/dev/null || bounded 5 ip -j addr 2>/dev/null || {
    part ip-lines
    bounded 5 ip -o link 2>/dev/null
    bounded 5 ip -o addr 2>/dev/null
  }
  part route
  bounded 5 ip -j route 2>/dev/null || bounded 5 ip route 2>/dev/null
elif command -v ifconfig >/dev/null 2>&1; then
  part ifconfig
  bounded 5 ifconfig -a 2>/dev/null
fi
"""
"""Sections of the look; `bounded` and `part` are the look's own."""

_LINK = re.compile(r"^\d+: ([^:@\s]+)(?:@\S+)?: <([A-Z0-9_,-]*)>(?:.*\bstate (\S+))?")
_ADDRESS = re.compile(r"^\d+:\s+(\S+?)(?:@\S+)?\s+inet6? (\S+)(?:.*\bscope (\S+))?")
_HEAD = re.compile(r"^([A-Za-z0-9_.@-]+?):?\s+(?:flags=\d+<([A-Z,]*)>|Link encap:)")
_INET = re.compile(r"^\s+inet6? (?:addr:\s*)?(\S+)")


def interfaces(part: dict[str, str], kernel: Sequence[Interface]) -> tuple[Interface, ...]:
    """What the sections say, the best of them first. `kernel` is what /sys knows: kinds that older
    tools do not tell, and all there is where no tool is."""
    found = by_ip(part.get("ip", ""))
    if found:
        return found
    older = by_lines(part.get("ip-lines", "")) or by_ifconfig(part.get("ifconfig", ""))
    known = {i.name: i for i in kernel}
    return tuple(
        i.model_copy(update={"kind": known[i.name].kind}) if i.name in known else i for i in older
    ) or tuple(kernel)


def by_ip(text: str) -> tuple[Interface, ...]:
    """Interfaces from `ip -j addr`, with the link kind where `-d` was understood."""
    found = []
    for row in _rows(text):
        if not row.get("ifname"):
            continue
        flags = row.get("flags") or []
        about = row.get("addr_info")
        addresses = [
            str(a["local"])
            for a in (about if isinstance(about, list) else [])
            if isinstance(a, dict) and a.get("local") and a.get("scope") != "link"
        ]
        link = row.get("linkinfo")
        found.append(
            Interface(
                name=str(row["ifname"]),
                addresses=tuple(addresses),
                up="UP" in flags and row.get("operstate") != "DOWN",
                loopback="LOOPBACK" in flags,
                kind=str(link.get("info_kind", "")) if isinstance(link, dict) else "",
            )
        )
    return tuple(found)


def _rows(text: str) -> list[dict[str, Any]]:
    try:
        rows: Any = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError):
        return []
    return [r for r in rows if isinstance(r, dict)] if isinstance(rows, list) else []


def by_lines(text: str) -> tuple[Interface, ...]:
    """Interfaces from `ip -o link` and `ip -o addr`, as releases without JSON print them."""
    links: dict[str, tuple[set[str], str]] = {}
    addresses: dict[str, list[str]] = {}
    for line in text.splitlines():
        if link := _LINK.match(line):
            links[link[1]] = (set(link[2].split(",")), link[3] or "")
        elif (found := _ADDRESS.match(line)) and found[3] != "link":
            addresses.setdefault(found[1], []).append(found[2].partition("/")[0])
    return tuple(
        Interface(
            name=name,
            addresses=tuple(a for a in addresses.get(name, []) if _is_address(a)),
            up="UP" in flags and state != "DOWN",
            loopback="LOOPBACK" in flags,
        )
        for name, (flags, state) in links.items()
    )


def by_ifconfig(text: str) -> tuple[Interface, ...]:
    """Interfaces from `ifconfig -a`, of net-tools new and old and of busybox."""
    found: list[Interface] = []
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head:
            flags = set((head[2] or "").split(","))
            name = head[1]
            found.append(Interface(name=name, up="UP" in flags, loopback="LOOPBACK" in flags))
            continue
        if not found:
            continue
        last = found[-1]
        update: dict[str, Any] = {}
        address = _INET.match(line)
        if address and "0x20<link>" not in line and "Scope:Link" not in line:
            plain = address[1].partition("/")[0]
            if _is_address(plain):
                update["addresses"] = (*last.addresses, plain)
        elif re.match(r"^\s+[A-Z ]*\b(?:RUNNING|MULTICAST|BROADCAST)\b", line):
            words = line.split()
            update = {"up": "UP" in words, "loopback": last.loopback or "LOOPBACK" in words}
        if update:
            found[-1] = last.model_copy(update=update)
    return tuple(found)


def routes(text: str) -> tuple[Route, ...]:
    """Routes from `ip -j route` or `ip route`, in its order."""
    rows = [
        (str(r.get("dst", "")), str(r.get("dev", "")), str(r.get("gateway", "")))
        for r in _rows(text)
    ]
    if not rows:
        for line in text.splitlines():
            words = line.split()
            after = dict(pairwise(words[1:]))
            rows.append((words[0] if words else "", after.get("dev", ""), after.get("via", "")))
    return tuple(
        Route(to=to, interface=dev, gateway=via if _is_address(via) else "")
        for to, dev, via in rows
        if dev and (to == "default" or _is_address(to.partition("/")[0]))
    )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
