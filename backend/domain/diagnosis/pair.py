"""Logs of a group read together: one cause, told once, at the member it lies with. Pure.

A failed request shows in three logs: decode cannot shake hands, prefill's lease expires, the router
passes a 500 on. Only one of them is the cause, and often it stands in none of these lines: the
prefill that decode could not reach has died of something of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from backend.domain.diagnosis.model import Diagnosis, Finding
from backend.domain.diagnosis.places import Scene, target
from backend.domain.diagnosis.table import BY_ID
from backend.domain.instance import MEMBER_ROLES
from backend.domain.words import Words

EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "pairing.": (
        "pairing.handshake", "pairing.load_failed", "transfer.lease_expired",
        "transfer.late_read", "timeout.forced_release", "router.decode_error",
        "router.decode_unreachable", "transfer.waiting_timeout", "transfer.bootstrap_timeout",
    ),
    "transfer.": (
        "pairing.handshake", "pairing.load_failed", "transfer.lease_expired",
        "transfer.late_read", "timeout.forced_release", "router.decode_error",
        "transfer.nixl_backend", "transfer.mooncake_failed", "transfer.sglang_failed",
        "transfer.waiting_timeout", "transfer.bootstrap_timeout",
    ),
    "network.": (
        "pairing.handshake", "pairing.load_failed", "transfer.nixl_backend",
        "transfer.lease_expired", "router.decode_error", "transfer.waiting_timeout",
        "transfer.side_channel_silent",
    ),
    "": (
        "pairing.handshake", "pairing.load_failed", "transfer.side_channel_silent",
        "transfer.remote_gone", "transfer.session_dead", "transfer.bootstrap_timeout",
        "transfer.waiting_timeout", "transfer.sglang_failed", "transfer.mooncake_failed",
        "router.prefill_unreachable", "router.decode_unreachable", "router.prefill_error",
        "router.no_workers", "router.peer_down", "router.peers_late", "router.decode_error",
        "router.bootstrap_query",
    ),
}  # fmt: skip
"""By the beginning of a cause's rule: what peers tell because of it. The empty one stands for a
member that has ended, of whatever cause."""

FACTORS = (
    "model", "dtype", "kv_cache_dtype", "block_size", "attention_backend", "speculative_config",
    "disable_hybrid_kv_cache_manager", "max_model_len",
)  # fmt: skip
"""What vLLM's start log tells of the parameters that both sides must share."""

_VERSION = re.compile(r"Initializing a V1 LLM engine \(v([\w.+]{1,40})\)")
_ARGS = re.compile(r"non-default args: \{(.{1,4000})")


def facts(log: str) -> dict[str, str]:
    """The factors of pairing that a vLLM start log tells: those of FACTORS, and `version`."""
    head = log[: 1 << 17]
    found: dict[str, str] = {}
    if version := _VERSION.search(head):
        found["version"] = version[1]
    if args := _ARGS.search(head):
        for name in FACTORS:
            told = re.search(rf"'{name}': ('[^']{{0,200}}'|[\w.]{{1,40}})", args[1])
            if told:
                found[name] = told[1].strip("'")
    return found


def differences(here: Mapping[str, str], there: Mapping[str, str], other: str) -> tuple[Words, ...]:
    """What differs between two members' facts, a sentence each; a silent side has the default."""
    if not here or not there:
        return ()
    return tuple(
        Words(
            en=f"{name} differs: {ours.en} here, {theirs.en} on {other}.",
            zh=f"{name} 不同：本侧为{ours.zh}，{other} 为{theirs.zh}。",
        )
        for name in ("version", *FACTORS)
        if here.get(name) != there.get(name)
        for ours, theirs in [(_value(here, name), _value(there, name))]
    )


def _value(told: Mapping[str, str], name: str) -> Words:
    value = told.get(name)
    return (
        Words(en="the default", zh="默认值") if value is None else Words(en=value, zh=f" {value}")
    )


def together(
    found: Sequence[Diagnosis],
    scenes: Mapping[str, Scene],
    ended: Mapping[str, bool],
    told: Mapping[str, Mapping[str, str]],
) -> tuple[Diagnosis, ...]:
    """The same diagnoses, each consequence of a peer's cause named as one.

    `ended` says of which members the process has ended; `told` are their `facts`. A cause lists
    what it explains; a diagnosis whose first finding is explained names that peer.
    """
    causes = [d for d in found if _is_cause(d)]
    explains: dict[str, list[str]] = {d.name: [] for d in causes}
    out: list[Diagnosis] = []
    for diagnosis in found:
        peer = _explained(diagnosis, causes, scenes, ended)
        if peer is not None and diagnosis.first is not None:
            explains[peer].append(f"{diagnosis.name} {diagnosis.first.rule}")
            diagnosis = diagnosis.model_copy(update={"peer": peer})
        out.append(diagnosis)
    return tuple(_with(d, explains.get(d.name, ()), found, told) for d in out)


def _is_cause(diagnosis: Diagnosis) -> bool:
    first = diagnosis.first
    if first is None or first.severity not in ("fatal", "unrecognised"):
        return False
    rule = BY_ID.get(first.rule)
    return rule is None or not rule.symptom


def _explained(
    diagnosis: Diagnosis,
    causes: Sequence[Diagnosis],
    scenes: Mapping[str, Scene],
    ended: Mapping[str, bool],
) -> str | None:
    """The peer whose cause a diagnosis' first finding follows from, or None."""
    first = diagnosis.first
    if first is None or ended.get(diagnosis.name):
        return None
    scene = scenes.get(diagnosis.name)
    aimed = target(first, scene) if scene else None
    for cause in causes:
        assert cause.first is not None
        if cause.name == diagnosis.name:
            continue
        if aimed is not None and aimed.instance != cause.name:
            continue
        dead = ended.get(cause.name, False)
        prefixes = [p for p in EXPLAINS if p and cause.first.rule.startswith(p)]
        if dead:
            prefixes.append("")
        if any(first.rule in EXPLAINS[p] for p in prefixes):
            return cause.name
    return None


def _with(
    diagnosis: Diagnosis,
    explains: Sequence[str],
    found: Sequence[Diagnosis],
    told: Mapping[str, Mapping[str, str]],
) -> Diagnosis:
    first = diagnosis.first
    if first is None:
        return diagnosis
    update: dict[str, object] = {}
    if explains:
        update["explains"] = tuple(explains)
    if first.rule in ("pairing.nixl_hash", "pairing.block_size", "pairing.context_length"):
        notes = _differences(diagnosis, found, told)
        if notes:
            update["notes"] = (*first.notes, *notes)
    return diagnosis.model_copy(update={"first": first.model_copy(update=update)})


def _differences(
    diagnosis: Diagnosis, found: Sequence[Diagnosis], told: Mapping[str, Mapping[str, str]]
) -> tuple[Words, ...]:
    """Where a member differs from the members of the other role."""
    here = told.get(diagnosis.name, {})
    out: dict[str, Words] = {}
    for other in found:
        if other.role not in MEMBER_ROLES or other.role == diagnosis.role:
            continue
        for words in differences(here, told.get(other.name, {}), other.name):
            out.setdefault(words.en, words)
    return tuple(out.values())[:6]


def first_causes(found: Sequence[Diagnosis]) -> tuple[tuple[str, Finding], ...]:
    """The causes of a group, those that explain most first; what a peer explains is left out."""
    rows = [(d.name, d.first) for d in found if d.first is not None and not d.peer]
    rows = [r for r in rows if r[1].severity != "asked"]
    order = {"fatal": 0, "unrecognised": 1, "warning": 2}
    return tuple(sorted(rows, key=lambda r: (order[r[1].severity], -len(r[1].explains), r[0])))
