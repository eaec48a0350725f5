"""What a connector hashes and compares by itself: a difference lets both sides start, report
healthy, and fail every request.

Source: the engine's own list of hashed factors, tried on real engines. With
`enforce_handshake_compat: false` the connector does not compare, so nothing is proven by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from backend.domain.errors import Problem, Severity
from backend.domain.rules.sides import Side
from backend.domain.rules.subject import Subject
from backend.domain.rules.transfer import enforced
from backend.domain.rules.words import finding

BACKENDS = frozenset(
    {
        "FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "FLASH_ATTN_MLA",
        "FLASHINFER_MLA", "TRITON_MLA", "CUTLASS_MLA", "FLASHMLA",
    }
)  # fmt: skip
MODEL_FREE = frozenset({"ngram", "[ngram]", "suffix"})
"""Speculation without a draft model: it adds nothing to the KV cache."""
DRAFT_KEYS = ("model", "revision", "draft_kv_cache_dtype")
"""What a draft model adds to the method: its KV has to be the same on both sides."""


def _hashed(s: Subject, factor: str) -> bool:
    return s.mode is not None and factor in s.mode.pairing.handshake


def engine_version(s: Subject) -> Iterator[Problem]:
    """Both sides run the same engine version: pinned ones, images, and what hosts have."""
    if not _hashed(s, "engine_version"):
        return
    rule, p, d = "pairing.engine_version", s.prefill, s.decode
    path = s.path(field="engine_version")
    hosts = _by_host(s)
    if len(set(hosts.values())) > 1:
        first, other = _apart(hosts)
        yield finding(rule, "hosts", "spec.hosts", host=first, version=hosts[first],
                      other_host=other, other_version=hosts[other])  # fmt: skip
    if p.version is not None and d.version is not None:
        if p.version != d.version:
            verdict: Severity = "unverified" if enforced(s) is False else "refused"
            yield finding(rule, "differ", path, verdict, prefill=str(p.version),
                          decode=str(d.version))  # fmt: skip
        return
    for field in ("image", "executable", "engine_version"):
        mine, theirs = getattr(p.role, field), getattr(d.role, field)
        if mine != theirs:
            yield finding(rule, "unknown", s.path(field=field), "unverified", field=field,
                          prefill=mine, decode=theirs)  # fmt: skip
            return


def _by_host(s: Subject) -> dict[str, str]:
    """The installed version on every host that a member without a pinned image may run on."""
    found: dict[str, str] = {}
    for side in s.sides:
        if side.role.image is None and side.role.executable is None:
            for host in s.known.eligible(side.role):
                version = s.known.versions.get((host, side.program))
                if version:
                    found[host] = version
    return found


def _apart(hosts: dict[str, str]) -> tuple[str, str]:
    first = min(hosts)
    return first, min(h for h, v in hosts.items() if v != hosts[first])


def model_path(s: Subject) -> Iterator[Problem]:
    """Both sides name the model by the same text and revision."""
    if not s.paired:
        return
    rule, p, d = "pairing.model_path", s.prefill, s.decode
    if p.model != d.model:
        proven = _hashed(s, "model_path") and enforced(s) is not False
        found = d.flag("--model", "--model-path") or p.flag("--model", "--model-path")
        yield finding(rule, "differ" if proven else "may_differ", found.path if found else "",
                      "refused" if proven else "unverified", prefill=p.model,
                      decode=d.model)  # fmt: skip
    elif p.revision != d.revision:
        found = d.flag("--revision") or p.flag("--revision")
        yield finding(rule, "revision", found.path if found else "",
                      "refused" if p.revision and d.revision else "unverified",
                      model=p.model, prefill=p.revision, decode=d.revision)  # fmt: skip


def attention_backend(s: Subject) -> Iterator[Problem]:
    """Both sides compute attention with the same backend; the choice is the engine's unless set."""
    if not _hashed(s, "attention_backend"):
        return
    rule, factor = "pairing.attention_backend", "attention_backend"
    p, d = _backend(s.prefill), _backend(s.decode)
    path = s.path(factor)
    if p is None and d is None:
        mine, theirs = _invariant(s.prefill), _invariant(s.decode)
        if mine != theirs:
            yield finding(rule, "invariant", s.path(field="env"), "unverified", prefill=mine,
                          decode=theirs)  # fmt: skip
        return
    if p == d:
        return
    if p in BACKENDS and d in BACKENDS and enforced(s):
        yield finding(rule, "differ", path, prefill=p, decode=d)
    else:
        yield finding(rule, "unknown", path, "unverified", prefill=p, decode=d)


def _backend(side: Side) -> str | None:
    found = side.written("attention_backend")
    return found.value.strip().upper() if found and found.value else None


def _invariant(side: Side) -> bool | None:
    """Whether batch invariance, which restricts the backends, is asked for; unset is off."""
    text = side.role.env.get("VLLM_BATCH_INVARIANT", "0")
    try:
        return bool(int(text))
    except ValueError:
        return None


def speculative(s: Subject) -> Iterator[Problem]:
    """Both sides speculate with the same draft model, or neither with one."""
    if _hashed(s, "speculative"):
        yield from _same_draft(s)
    if s.mode is not None and s.mode.pairing.prefill_draft_tokens is not None:
        yield from _draft_tokens(s, s.mode.pairing.prefill_draft_tokens)


def _same_draft(s: Subject) -> Iterator[Problem]:
    rule, path = "pairing.speculative", s.path("speculative")
    try:
        p, d = _draft(s.prefill), _draft(s.decode)
    except ValueError:
        if _text(s.prefill) != _text(s.decode):
            yield finding(rule, "unreadable", path, "unverified", prefill=_text(s.prefill),
                          decode=_text(s.decode))  # fmt: skip
        return
    if p == d:
        return
    shown = {"prefill": _said(p), "decode": _said(d)}
    if {p, d} & {None} and _free(p) and _free(d):
        yield finding(rule, "model_free", path, "unverified", **shown)
    else:
        yield finding(rule, "differ", path, **shown)


def _text(side: Side) -> str | None:
    found = side.written("speculative")
    return found.value if found else None


def _draft(side: Side) -> tuple[Any, ...] | None:
    """The factors of a role's speculation; None without any. Raises ValueError."""
    found = side.json("speculative")
    if not found:
        return None
    method = str(found.get("method") or "").lower()
    model = found.get("model")
    if not method:
        method = "ngram" if model in MODEL_FREE else "draft_model"
    if method in MODEL_FREE:
        return (method,)
    return (method, *(str(found.get(k) or "") for k in DRAFT_KEYS))


def _free(draft: tuple[Any, ...] | None) -> bool:
    return draft is None or draft[0] in MODEL_FREE


def _said(draft: tuple[Any, ...] | None) -> str | None:
    return None if draft is None else " ".join(t for t in draft if t)


def _draft_tokens(s: Subject, wanted: int) -> Iterator[Problem]:
    """Prefill drafts so many tokens where decode drafts any."""
    p, d = _tokens(s.prefill), _tokens(s.decode)
    if d and p != wanted:
        yield finding("pairing.speculative", "tokens", s.path("speculative"), "warning",
                      prefill=p, decode=d, wanted=wanted)  # fmt: skip


def _tokens(side: Side) -> int | None:
    try:
        found = (side.json("speculative") or {}).get("num_speculative_tokens")
    except ValueError:
        return None
    return found if isinstance(found, int) else None
