"""What a role's environment decides about the KV it sends or expects.

Source: the user's document on `vllm-nixl`, and the decision tables of the reference implementation,
followed row by row. A role's environment is its own, or the deployment's while it is null; `{}` is
empty. Addresses, ports, devices and performance settings are never compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from backend.domain.errors import Problem
from backend.domain.layout import is_recurrent
from backend.domain.rules.sides import Side
from backend.domain.rules.subject import Subject
from backend.domain.rules.transfer import NIXL, transfer_of
from backend.domain.rules.words import finding

LAYOUT = "VLLM_KV_CACHE_LAYOUT"
MLA = "VLLM_MLA_DISABLE"
SSM = "VLLM_SSM_CONV_STATE_LAYOUT"
CHUNKED = "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE"
LAYOUT_ALIASES = {"NHD": "LBNHC", "HND": "LBHNC"}
LAYOUTS = frozenset({"LBNHC", "LBHNC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"})
FULL_ATTENTION = frozenset({"attention", "full_attention"})
FLOOR = Version("0.27.1")
"""The first version whose behaviour these tables describe."""
OFF, ON = "hybrid_kv_cache_manager_off", "hybrid_kv_cache_manager_on"


def _applies(s: Subject, name: str) -> bool:
    return s.mode is not None and name in s.mode.pairing.environment


def _truth(text: str | None) -> bool | None:
    """As the engine reads a switch: a number. None where unset or none."""
    try:
        return None if text is None else bool(int(text))
    except ValueError:
        return None


def _supported(side: Side) -> bool:
    return side.version is not None and side.version >= FLOOR


def _unknown_connector(s: Subject) -> bool:
    found = [transfer_of(side) for side in s.sides]
    return any(t.state != "known" or t.name != NIXL for t in found)


def _set(s: Subject, name: str) -> tuple[str | None, str | None]:
    return s.prefill.role.env.get(name), s.decode.role.env.get(name)


def kv_cache_layout(s: Subject) -> Iterator[Problem]:
    """Both sides lay KV out alike, or in the one pair that can be permuted on arrival."""
    p, d = _set(s, LAYOUT)
    if not _applies(s, LAYOUT) or (p is None and d is None):
        return
    case, refused = _layout_case(s, _layout(p), _layout(d))
    if case:
        yield finding("pairing.kv_cache_layout", case, s.env_path(LAYOUT),
                      "refused" if refused else "unverified", prefill=p, decode=d)  # fmt: skip


def _layout(text: str | None) -> str | None:
    name = (text or "").strip().upper()
    name = LAYOUT_ALIASES.get(name, name)
    return name if name in LAYOUTS else None


def _layout_case(s: Subject, p: str | None, d: str | None) -> tuple[str, bool]:
    """The sentence that says what is wrong, empty for nothing, and whether it is proven."""
    extras = [transfer_of(side).extra for side in s.sides]
    if _unknown_connector(s) or any(e.get("kv_buffer_device") == "cpu" for e in extras):
        return "env_buffer", False
    if p is None or d is None:
        return "env_one_side", False
    if p == d:
        return "", False
    if any(side.config is None for side in s.sides):
        return "env_model_unknown", False
    if all(side.is_mla for side in s.sides):
        off = [_truth(text) for text in _set(s, MLA)]
        if None in off:
            return "env_latent_unknown", False
        if not any(off):
            return "", False
    if (p, d) != ("LBHNC", "LBNHC"):
        return "env_differ", True
    permute = extras[1].get("enable_permute_local_kv")
    if permute is None or permute is False:
        return "env_not_permuted", True
    if permute is not True:
        return "env_permute_unknown", False
    return _permuted_case(s)


def _permuted_case(s: Subject) -> tuple[str, bool]:
    unknown = False
    for side in s.sides:
        if side.raw_config is not None and is_recurrent(side.catalogue.layouts, side.raw_config):
            return "env_recurrent", True
        if _windowed(side):
            manager = _manager(side)
            if manager:
                return "env_windowed", True
            unknown = unknown or manager is None
    return ("env_windowed_unknown", False) if unknown else ("", False)


def _windowed(side: Side) -> bool:
    config = side.config or {}
    kinds = config.get("layer_types")
    listed = isinstance(kinds, list | tuple) and any(k not in FULL_ATTENTION for k in kinds)
    return listed or bool(config.get("sliding_window"))


def mla(s: Subject) -> Iterator[Problem]:
    """Both sides keep a latent model's KV in latent form, or neither does."""
    p, d = _set(s, MLA)
    if not _applies(s, MLA) or (p is None and d is None):
        return
    mine, theirs = _truth(p), _truth(d)
    if mine is not None and mine == theirs:
        return
    path = s.env_path(MLA)
    latent = [side.is_mla for side in s.sides]
    if _unknown_connector(s) or None in latent:
        case = "model_unknown"
    elif not any(latent):
        return
    elif mine is not None and theirs is not None:
        yield finding("pairing.mla", "differ", path, prefill=p, decode=d)
        return
    else:
        case = "one_side"
    yield finding("pairing.mla", case, path, "unverified", prefill=p, decode=d,
                  model=s.prefill.model)  # fmt: skip


def ssm_conv_state_layout(s: Subject) -> Iterator[Problem]:
    """A recurrent model's state travels in layout DS only."""
    p, d = _set(s, SSM)
    if not _applies(s, SSM):
        return
    rule, path = "pairing.ssm_conv_state_layout", s.env_path(SSM)
    if p is None and d is None:
        if _all_recurrent(s):
            yield finding(rule, "unset", path, "warning", prefill=p, decode=d,
                          model=s.prefill.model)  # fmt: skip
        return
    if p == d == "DS":
        return
    values = {"prefill": p, "decode": d, "model": s.prefill.model}
    if _unknown_connector(s) or any(side.raw_config is None for side in s.sides):
        yield finding(rule, "model_unknown", path, "unverified", **values)
    elif not _all_recurrent(s):
        return
    elif not all(_supported(side) for side in s.sides):
        yield finding(rule, "version_unknown", path, "unverified", **values, floor=str(FLOOR))
    elif "SD" in (p, d):
        yield finding(rule, "differ", path, **values)
    else:
        yield finding(rule, "one_side", path, "unverified", **values)


def _all_recurrent(s: Subject) -> bool:
    configs = [side.raw_config for side in s.sides]
    layouts = s.known.catalogue.layouts
    return all(c is not None and is_recurrent(layouts, c) for c in configs)


def hybrid_kv_cache_manager(s: Subject) -> Iterator[Problem]:
    """Both sides run the hybrid KV cache manager, or neither: by flag, version, model, variable."""
    if not s.compares("hybrid_kv_cache_manager"):
        return
    flags = [_switch(side) for side in s.sides]
    env = _set(s, CHUNKED) if _applies(s, CHUNKED) else (None, None)
    if flags == [None, None] and env == (None, None):
        return
    path = _switch_path(s, flags)
    shown = {"prefill": flags[0], "decode": flags[1]}
    rule = "pairing.hybrid_kv_cache_manager"
    if None not in flags:
        if flags[0] != flags[1]:
            yield finding(rule, "differ", path, **shown)
            return
        if flags[0] is False or env == (None, None):
            return
    case, refused = _manager_case(s, flags)
    if case:
        yield finding(rule, case, path, "refused" if refused else "unverified", **shown,
                      model=s.prefill.model, variable=CHUNKED)  # fmt: skip


def _manager_case(s: Subject, flags: list[bool | None]) -> tuple[str, bool]:
    if any(side.config is None for side in s.sides) and not _all_old(s):
        return "model_unknown", False
    chunked = any((side.config or {}).get("attention_chunk_size") for side in s.sides)
    if flags == [None, None] and not chunked:
        return "", False
    found = [_manager(side) for side in s.sides]
    if _unknown_connector(s) or None in found:
        return "unknown", False
    if found[0] != found[1]:
        return "resolved", True
    if any(f and not r for f, r in zip(flags, found, strict=True)):
        return "no_effect", True
    return "", False


def _all_old(s: Subject) -> bool:
    return all(side.version is not None and side.version < FLOOR for side in s.sides)


def _switch(side: Side) -> bool | None:
    """The manager as the role's flags set it; None without one."""
    found = side.switched(OFF, ON)
    return None if found is None else found.key.startswith("no-")


def _switch_path(s: Subject, flags: list[bool | None]) -> str:
    if flags == [None, None]:
        return s.env_path(CHUNKED)
    found = s.decode.switched(OFF, ON) or s.prefill.switched(OFF, ON)
    return found.path if found else s.path()


def _manager(side: Side) -> bool | None:
    """Whether the manager runs in a role; None where it is not known.

    Before the tables' version a connector switched it off unless a flag said otherwise.
    """
    flag = _switch(side)
    if flag is False:
        return False
    if side.version is not None and side.version < FLOOR:
        return bool(flag)
    cached = side.role.extended_kv_cache.kind != "none"
    if cached or side.written("speculative") or not _supported(side) or side.config is None:
        return None
    if not side.config.get("attention_chunk_size"):
        return True
    return _truth(side.role.env.get(CHUNKED))
