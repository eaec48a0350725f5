"""Keys of members: what the router sends is one key of its own environment, to both sides.

Tried on vllm-router 0.1.15, with static peers and with `--enable-igw`: a client's `Authorization`
is dropped, `Bearer $OPENAI_API_KEY` goes to prefill and decode, and the `api_key` of a registration
is lost.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.domain.rules.conftest import Court, brief

RULE = "router.member_key"
OWN = "spec.roles.router.env.OPENAI_API_KEY"
ROWS: list[tuple[str | None, str | None, str | None, list[tuple[str, str]]]] = [
    (None, None, None, []),
    (None, None, "a", []),
    ("a", "a", "a", []),
    ("a", None, "a", []),
    (None, "a", "a", []),
    ("", "", None, []),
    ("", "a", "a", []),
    ("a", "b", "a", [("refused differ", "spec.roles.decode.env.VLLM_API_KEY")]),
    ("a", "b", None, [("refused differ", "spec.roles.decode.env.VLLM_API_KEY")]),
    ("a", "a", "b", [("refused other", OWN)]),
    ("a", None, "b", [("refused other", OWN)]),
    ("a", "a", None, [("refused unset", OWN)]),
    ("a", "a", "", [("refused unset", OWN)]),
    (None, "a", None, [("refused unset", OWN)]),
]


def env(name: str, value: str | None) -> dict[str, Any]:
    return {"env": {} if value is None else {name: value}}


@pytest.mark.parametrize("mode", ["vllm-nixl", "vllm-mooncake", "vllm-ascend-mooncake"])
@pytest.mark.parametrize(("p", "d", "sent", "expected"), ROWS)
def test_the_key_that_is_sent(
    court: Court, mode: str, p: Any, d: Any, sent: Any, expected: list[tuple[str, str]]
) -> None:
    roles = {"prefill": env("VLLM_API_KEY", p), "decode": env("VLLM_API_KEY", d),
             "router": env("OPENAI_API_KEY", sent)}  # fmt: skip
    found = court.judge(court.document(mode, roles=roles))
    assert [(f"{f.verdict} {f.case}", f.path) for f in found if f.rule == RULE] == expected


def test_inherited_by_all(court: Court) -> None:
    both = {"VLLM_API_KEY": "k1", "OPENAI_API_KEY": "k1"}
    assert court.pair(env=both) == ()
    (other,) = court.pair(env={**both, "OPENAI_API_KEY": "k2"})
    assert (other.case, other.path) == ("other", "spec.env.OPENAI_API_KEY")
    assert other.values["roles"] == ["prefill", "decode"]
    assert "prefill, decode ask" in other.message
    assert not {"k1", "k2"} & set(f"{other.message} {other.remedy} {other.values}".split())
    (one,) = court.pair({"env": {}}, env=both | {"OPENAI_API_KEY": "k2"})
    assert one.values["roles"] == ["decode"]


@pytest.mark.parametrize("mode", ["sglang-nixl", "sglang-mooncake", "custom"])
def test_where_it_means_nothing(court: Court, mode: str) -> None:
    assert brief(court.pair(mode=mode, env={"VLLM_API_KEY": "a"}), RULE) == []


def test_a_router_of_ones_own_may_send_what_it_likes(court: Court) -> None:
    roles = {"prefill": env("VLLM_API_KEY", "a"), "router": {"run_command": ["mine"]}}
    assert brief(court.judge(court.document(roles=roles)), RULE) == []
    assert brief(court.judge(court.document(None, env={"VLLM_API_KEY": "a"})), RULE) == []
