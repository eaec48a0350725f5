"""No recipe passes or reads a flag that its program does not have.

The lists are the option names of each program's own `--help`, of the release in the file's name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backend.domain.engine_args import is_flag
from backend.domain.mode import Attachment, Mode

FOLDER = Path(__file__).parents[2] / "data" / "flags"
ROUTER_FILES = {
    "vllm-router": ("vllm-router-0.1.15", "vllm-router-0.1.17"),
    "sglang-router": ("sglang-router-0.3.2",),
}
GONE = {"--kv-cache-layout"}
"""Read for old engines and forks, never passed; an environment variable since."""


def flags(name: str) -> set[str]:
    return set((FOLDER / f"{name}.txt").read_text(encoding="utf-8").split())


def attachments(mode: Mode) -> list[Attachment]:
    if mode.cache is None:
        return []
    recipes = [mode.cache.in_process, *mode.cache.service.values()]
    return [a for r in recipes if r is not None for a in r.roles.values()]


@pytest.mark.parametrize("engine", ["vllm", "vllm-ascend"])
def test_vllm(kit: Any, engine: str) -> None:
    known = flags("vllm-0.32")
    recipe = kit.catalogue.engine(engine)
    read = {f for spellings in recipe.flags.values() for f in spellings}
    passed = {*recipe.platform_args, *recipe.auto_parallel, *recipe.owned_flags}
    passed.add(recipe.connector.flag)
    for mode in kit.catalogue.modes.values():
        if engine in mode.engines:
            passed.update(a for r in mode.roles.values() for a in r.args)
            for found in attachments(mode):
                passed.update([*found.args, *(t for g in found.optional_args for t in g)])
    passed = {p for p in passed if is_flag(p)}
    assert passed
    assert passed - known == set()
    assert read - known == GONE


def test_routers(kit: Any) -> None:
    seen = set()
    for mode in kit.catalogue.modes.values():
        if not mode.injects:
            continue
        router = mode.router
        used = {t for t in router.args if is_flag(t)}
        used |= {t.flag for t in router.tunables} | {*router.peer_flags, *router.owned_flags}
        used |= {t for template in router.peers.values() for t in template if is_flag(t)}
        for name in ROUTER_FILES[router.program]:
            assert used - flags(name) == set(), (mode.name, name)
            seen.add(name)
    assert seen == {n for names in ROUTER_FILES.values() for n in names}
