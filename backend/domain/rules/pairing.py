"""Pairing rules that hold for every mode: what prefill and decode must have alike.

Source: the user's document, "constraints"; the decision tables of the reference implementation.
Each compares effective values: a role's own flag in any spelling, else what follows from the
model's configuration where that was read. Both silent is agreement; a value that cannot be known is
`unverified`, never refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from backend.domain.engine_args import flatten, value
from backend.domain.errors import Problem
from backend.domain.inherit import effective
from backend.domain.rules.lengths import Length, length_of
from backend.domain.rules.sides import Side
from backend.domain.rules.subject import Subject
from backend.domain.rules.words import finding

ALIASES = {"half": "float16", "float": "float32", "bf16": "bfloat16", "fp16": "float16"}
MODEL_DTYPES = frozenset({"bfloat16", "float16"})
"""Types of a model's own that `auto` keeps; of others engines choose by the card."""


def max_model_len(s: Subject) -> Iterator[Problem]:
    """Both sides serve the same context length."""
    if not s.compares("max_model_len"):
        return
    p, d = length_of(s.prefill), length_of(s.decode)
    if _lengths_agree(s, p, d):
        return
    path = s.path("max_model_len")
    values: dict[str, Any] = {"prefill": p.shown, "decode": d.shown, "flag": _flag(s)}
    if p.tokens is not None and d.tokens is not None:
        shorter = min(p.tokens, d.tokens)
        yield finding("pairing.max_model_len", "differ", path, shorter=shorter, **values)
        return
    kinds = {p.kind, d.kind}
    case = "unreadable" if "unreadable" in kinds else "auto" if "auto" in kinds else "silent"
    silent = s.prefill.name if p.kind == "silent" else s.decode.name
    yield finding(
        "pairing.max_model_len", case, path, "unverified", silent=silent,
        model=s.prefill.model, **values,
    )  # fmt: skip


def _lengths_agree(s: Subject, p: Length, d: Length) -> bool:
    if p.tokens is not None and d.tokens is not None:
        return p.tokens == d.tokens
    if p.kind != d.kind or p.text != d.text:
        return False
    if p.kind == "auto":  # fitted to the memory that the weights leave, so by degree
        return s.prefill.degree("tensor") == s.decode.degree("tensor")
    alike = [(side.role.engine, side.overrides) for side in s.sides]
    return p.kind != "silent" or alike[0] == alike[1]


def _flag(s: Subject) -> str:
    return (s.decode.flags.get("max_model_len") or ("--max-model-len",))[0]


def dtype(s: Subject) -> Iterator[Problem]:
    """Both sides compute in the same type; `auto` is the model's own where that is known."""
    yield from _typed(s, "dtype", of_model=True)


def kv_cache_dtype(s: Subject) -> Iterator[Problem]:
    """Both sides keep KV in the same type."""
    yield from _typed(s, "kv_cache_dtype", of_model=False)


def _typed(s: Subject, factor: str, *, of_model: bool) -> Iterator[Problem]:
    if not s.compares(factor):
        return
    p, d = _type(s.prefill, factor), _type(s.decode, factor)
    if p == d:
        return
    found = [_model_type(side) if t == "auto" and of_model else t
             for side, t in ((s.prefill, p), (s.decode, d))]  # fmt: skip
    if None not in found and "auto" not in found:
        if found[0] != found[1]:
            yield finding(f"pairing.{factor}", "differ", s.path(factor), prefill=p, decode=d)
        return
    yield finding(f"pairing.{factor}", "auto", s.path(factor), "unverified", prefill=p, decode=d)


def _type(side: Side, factor: str) -> str:
    found = side.written(factor)
    text = found.value.strip().lower() if found and found.value else "auto"
    return ALIASES.get(text, text)


def _model_type(side: Side) -> str | None:
    config = side.config
    if config is None:
        return None
    text = str(config.get("dtype", config.get("torch_dtype"))).removeprefix("torch.")
    return text if text in MODEL_DTYPES else None


def block_size(s: Subject) -> Iterator[Problem]:
    """Both sides cut KV into blocks (pages) of the same size."""
    yield from _same_text(s, "block_size")


def kv_cache_layout(s: Subject) -> Iterator[Problem]:
    """Both sides' layout flags agree; the environment's part is `environment.kv_cache_layout`."""
    yield from _same_text(s, "kv_cache_layout")


def _same_text(s: Subject, factor: str) -> Iterator[Problem]:
    if not s.compares(factor):
        return
    p, d = _text(s.prefill, factor), _text(s.decode, factor)
    if p == d:
        return
    path, rule = s.path(factor), f"pairing.{factor}"
    if p is not None and d is not None:
        yield finding(rule, "differ", path, prefill=p, decode=d)
    else:
        yield finding(rule, "one_side", path, "unverified", prefill=p, decode=d)


def _text(side: Side, factor: str) -> str | None:
    found = side.written(factor)
    if found is None or found.value is None:
        return None
    text = found.value.strip().lower()
    return str(int(text)) if text.isdecimal() else text


def tensor_parallel(s: Subject) -> Iterator[Problem]:
    """The tensor parallel sizes stand in the direction that the mode's connector takes."""
    direction = s.mode.pairing.tensor_parallel if s.mode else "any"
    if direction == "any":
        return
    p, d = s.prefill.degree("tensor"), s.decode.degree("tensor")
    path = _degree_path(s)
    if p is not None and d is not None:
        wide, narrow = (d, p) if direction == "decode>=prefill" else (p, d)
        if wide < narrow:
            case = "decode_narrower" if direction == "decode>=prefill" else "prefill_narrower"
            yield finding("pairing.tensor_parallel", case, path, prefill=p, decode=d,
                          mode=s.mode.name if s.mode else "")  # fmt: skip
        return
    texts = [p or _text(s.prefill, "tensor_parallel"), d or _text(s.decode, "tensor_parallel")]
    if texts[0] != texts[1]:
        yield finding("pairing.tensor_parallel", "unknown", path, "unverified",
                      prefill=texts[0], decode=texts[1])  # fmt: skip


def _degree_path(s: Subject) -> str:
    wrote = s.prefill.written("tensor_parallel") or s.decode.written("tensor_parallel")
    return s.path("tensor_parallel", "parameters" if wrote else "accelerators")


def uneven_tensor_parallel(s: Subject) -> Iterator[Problem]:
    """Unequal sizes split each transfer head by head where the mode says so: slow under load."""
    p, d = s.prefill.degree("tensor"), s.decode.degree("tensor")
    if s.mode is None or not s.mode.pairing.per_head or p is None or d is None or p == d:
        return
    if s.prefill.is_mla is False:
        yield finding("pairing.tensor_parallel", "per_head", _degree_path(s), "warning",
                      prefill=p, decode=d)  # fmt: skip


def tp_divisibility(s: Subject) -> Iterator[Problem]:
    """Heads can be dealt evenly: over each side's ranks, and from one side's ranks to the other's.

    Source: what the engines assert at their start (heads) and at the first transfer (ranks).
    """
    for side in s.sides:
        size, heads = side.degree("tensor"), side.number("num_attention_heads", "n_head")
        if size is not None and heads is not None and heads % size:
            yield finding("pairing.tp_divisibility", "heads",
                          side.where("tensor_parallel", "accelerators"),
                          role=side.name, size=size, heads=heads)  # fmt: skip
    if s.mode is None or not s.mode.pairing.divisible:
        return
    p, d = s.prefill.degree("tensor"), s.decode.degree("tensor")
    if p is None or d is None or p == d:
        return
    path = _degree_path(s)
    if max(p, d) % min(p, d):
        yield finding("pairing.tp_divisibility", "ranks", path, prefill=p, decode=d)
        return
    kv_heads = s.prefill.number("num_key_value_heads")
    if kv_heads is None or s.prefill.is_mla or max(p, d) <= kv_heads:
        return
    if p > d:
        yield finding("pairing.tp_divisibility", "replicated", path, prefill=p, decode=d,
                      kv_heads=kv_heads)  # fmt: skip
    else:
        yield finding("pairing.tp_divisibility", "few_kv_heads", path, "warning", prefill=p,
                      decode=d, kv_heads=kv_heads)  # fmt: skip


def data_parallel(s: Subject) -> Iterator[Problem]:
    """Data parallel sizes suit the router and, where the mode says so, the kind of model."""
    if s.mode is None:
        return
    if s.mode.pairing.data_parallel == "experts":
        for side in s.sides:
            yield from _dense(s, side)
    yield from _router_ranks(s)


def _dense(s: Subject, side: Side) -> Iterator[Problem]:
    size = side.degree("data")
    if size is None or size < 2:
        return
    path = side.where("data_parallel")
    if side.config is None:
        yield finding("pairing.data_parallel", "dense_unknown", path, "unverified",
                      role=side.name, size=size, model=side.model)  # fmt: skip
    elif side.number(*s.known.catalogue.layouts.expert_fields) is None:
        yield finding("pairing.data_parallel", "dense", path, role=side.name, size=size,
                      model=side.model)  # fmt: skip


def _router_ranks(s: Subject) -> Iterator[Problem]:
    """A router that deals to ranks has one number of ranks for both sides."""
    router = effective(s.spec, "router")
    flag = "--intra-node-data-parallel-size"
    text = value(flatten((*(router.run_command or ()), *router.parameters)), flag)
    if text is None or not text.isdecimal():
        return
    sizes = {side.name: side.degree("data") for side in s.sides}
    wrong = {n: size for n, size in sizes.items() if size is not None and size != int(text)}
    if wrong:
        yield finding("pairing.data_parallel", "router", "spec.roles.router.parameters",
                      ranks=int(text), **sizes)  # fmt: skip
