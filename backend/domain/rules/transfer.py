"""The KV connector each role ends up with, and the rules on it.

A role's own `--kv-transfer-config` stands in for the mode's descriptor, so it is what is compared;
a transfer inside a MultiConnector counts like one on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backend.domain.connector import merged
from backend.domain.engine_args import json_value, parse_json
from backend.domain.errors import Problem
from backend.domain.mode import ConnectorFlag
from backend.domain.rules.sides import Side, same_json
from backend.domain.rules.subject import Subject
from backend.domain.rules.words import finding
from backend.domain.template import PLACEHOLDER

NIXL = "NixlConnector"
SAME_CONNECTOR = {"NixlPullConnector": NIXL}
"""Names of one and the same connector: the first is what the second starts."""
COMPARED_EXTRA = ("enable_cross_layers_blocks",)
"""Keys of the extra config that the connector's own handshake covers; absent is false."""
ENFORCE = "enforce_handshake_compat"
RULE = "pairing.connector"
ROLES = {"prefill": ("kv_producer", "kv_both"), "decode": ("kv_consumer", "kv_both")}


@dataclass(frozen=True)
class Transfer:
    """What is known of a role's connector.

    `unreadable`: its JSON is no object, `reason` says why. `unknown`: it is a class of the user's
    own. `none`: the engine is given none here.
    """

    state: Literal["known", "unknown", "unreadable", "none"]
    own: bool = False
    name: str = ""
    kv_role: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    @property
    def enforced(self) -> bool:
        """Whether the connector compares both sides' hashes itself."""
        return self.state == "known" and self.extra.get(ENFORCE, True) is not False


def transfer_of(side: Side) -> Transfer:
    """The connector of a role: its own where it writes one, else the mode's."""
    flag = _flag(side)
    recipe = side.mode.role(side.name) if side.mode else None
    if flag is not None and side.flag(flag.flag) is None and not _dotted(side, flag):
        if recipe is None or recipe.connector is None:
            return Transfer("none")
        pd = side.spec.disaggregation
        extra = getattr(pd.connector_extra, side.name) if pd else {}
        return _read(flag, merged(flag, recipe.connector, extra), own=False)
    if flag is None:
        return Transfer("none")
    try:
        found = json_value([_filled(a) for a in side.args], flag.flag)
    except ValueError as error:
        return Transfer("unreadable", own=True, reason=str(error))
    return _read(flag, found or {}, own=True)


def _flag(side: Side) -> ConnectorFlag | None:
    """How the role's engine takes a connector; any engine's way for a command of one's own."""
    engine = side.catalogue.engines.get(side.role.engine)
    if engine is not None and (engine.flags or engine.connector):
        return engine.connector
    return next((e.connector for e in side.catalogue.engines.values() if e.connector), None)


def _dotted(side: Side, flag: ConnectorFlag) -> bool:
    bare = flag.flag.lstrip("-").replace("-", "[-_]")
    return any(re.match(rf"--?{bare}\.", a) for a in side.args)


def _filled(text: str) -> str:
    """Placeholders have no values yet; a number stands for each."""
    return PLACEHOLDER.sub("0", text)


def _read(flag: ConnectorFlag, whole: Mapping[str, Any], *, own: bool) -> Transfer:
    child: Mapping[str, Any] = whole
    if whole.get(flag.name_key) == flag.fold_name:
        inner = whole.get(flag.extra_key)
        children = inner.get(flag.connectors_key) if isinstance(inner, Mapping) else None
        found = [c for c in children or () if isinstance(c, Mapping)]
        if not found:
            return Transfer("unreadable", own, reason=f"{flag.fold_name} has no children")
        child = found[0]
    extra = child.get(flag.extra_key)
    name = str(child.get(flag.name_key, ""))
    if "kv_connector_module_path" in child or not name:
        return Transfer("unknown", own, name, _text(whole.get(flag.role_key)))
    return Transfer(
        "known", own, SAME_CONNECTOR.get(name, name), _text(whole.get(flag.role_key)),
        extra if isinstance(extra, Mapping) else {},
    )  # fmt: skip


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _path(s: Subject, side: Side) -> str:
    flag = _flag(side)
    written = side.flag(flag.flag) if flag else None
    if written is not None:
        return written.path
    pd = s.spec.disaggregation
    if pd is not None and getattr(pd.connector_extra, side.name):
        return f"spec.disaggregation.connector_extra.{side.name}"
    return side.path("parameters")


def _own_path(s: Subject, decode: Transfer) -> str:
    """Where the connectors' difference is written: decode's own, else prefill's."""
    pd = s.spec.disaggregation
    extra = bool(pd and pd.connector_extra.decode)
    return _path(s, s.decode if decode.own or extra else s.prefill)


def connector(s: Subject) -> Iterator[Problem]:
    """Each role's connector can be read and faces the right way, and both are of one kind."""
    if not s.paired:
        return
    found = {side.name: transfer_of(side) for side in s.sides}
    for side in s.sides:
        yield from _one(s, side, found[side.name])
    p, d = found["prefill"], found["decode"]
    if p.state != "known" or d.state != "known":
        if "unknown" in (p.state, d.state) and p.name != d.name:
            path = _own_path(s, d)
            yield finding(RULE, "unknown", path, "unverified", prefill=p.name, decode=d.name)
        return
    path = _own_path(s, d)
    if p.name != d.name:
        yield finding(RULE, "kinds", path, prefill=p.name, decode=d.name)
        return
    for key in COMPARED_EXTRA:
        mine, theirs = p.extra.get(key, False), d.extra.get(key, False)
        if p.name == NIXL and not same_json(mine, theirs):
            yield finding(RULE, "extra", path, key=key, prefill=mine, decode=theirs)


def _one(s: Subject, side: Side, found: Transfer) -> Iterator[Problem]:
    path = _path(s, side)
    if found.state == "unreadable":
        yield finding(RULE, "unreadable", path, role=side.name, reason=found.reason)
        return
    wanted = ROLES[side.name]
    if found.own and found.kv_role is not None and found.kv_role not in wanted:
        yield finding(RULE, "role", path, role=side.name, found=found.kv_role,
                      wanted=list(wanted))  # fmt: skip
    if found.state != "known" or not found.own:
        return
    for other in s.sides:
        told = found.extra.get(other.name)
        size = told.get("tp_size") if isinstance(told, Mapping) else None
        real = other.degree("tensor")
        if isinstance(size, int) and size > 0 and real is not None and size != real:
            yield finding(RULE, "sizes", path, role=side.name, other=other.name, told=size,
                          real=real)  # fmt: skip


def enforced(s: Subject) -> bool | None:
    """Whether the mode's own connector compares both sides itself; None where one is unknown."""
    found = [transfer_of(side) for side in s.sides]
    if any(t.state != "known" or t.name != NIXL for t in found):
        return None
    return all(t.enforced for t in found)


__all__ = ["ENFORCE", "NIXL", "Transfer", "connector", "enforced", "parse_json", "transfer_of"]
