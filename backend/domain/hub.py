"""Where the hub's local copies lie for a role, by its own environment."""

from __future__ import annotations

from collections.abc import Mapping

from backend.domain.references import literal


def hub_cache(env: Mapping[str, str]) -> str:
    """The cache folder that a role's environment names; empty for the login's usual one."""
    env = literal(env)
    return env.get("HF_HUB_CACHE") or (f"{env['HF_HOME']}/hub" if env.get("HF_HOME") else "")
