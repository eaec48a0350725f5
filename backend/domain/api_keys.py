"""The key that a member or a router asks its callers for, read from how it was started."""

from __future__ import annotations

from backend.domain.engine_args import value
from backend.domain.instance import LaunchSpec

KEY_FLAG = "--api-key"
"""Engines and routers take the key by this flag: vLLM, SGLang, sglang-router."""
MEMBER_KEY = "VLLM_API_KEY"
"""What makes a vLLM member ask for a key, beside the flag."""


def own_key(launch: LaunchSpec | None) -> str:
    """The key that its command line names; empty where it names none."""
    return "" if launch is None else value(launch.argv, KEY_FLAG) or ""


def asked_key(launch: LaunchSpec | None) -> str:
    """The key it asks for, or the reference to it (`backend.domain.references`); empty for none."""
    return own_key(launch) or ("" if launch is None else launch.env.get(MEMBER_KEY, ""))


def bearer(key: str) -> dict[str, str]:
    """The header that carries a key; none without one."""
    return {"authorization": f"Bearer {key}"} if key else {}
