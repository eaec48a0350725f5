"""What saving a document would do, asked before anything is stored."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from backend.domain.deployment import Deployment
from backend.domain.desired import saved
from backend.domain.planning import effects_on
from backend.services.backend import Backend


def document(**spec: Any) -> dict[str, Any]:
    """A deployment that needs no host to be saved."""
    body = {"model": "/m", "engine": "vllm", "run_command": ["x"],
            "disaggregation": {"mode": "custom"}, **spec}  # fmt: skip
    return {"apiVersion": "pdtui/v1", "kind": "Deployment", "metadata": {"name": "chat"},
            "spec": body}  # fmt: skip


async def test_a_plan_stores_nothing_and_then_says_what_differs(
    http: httpx.AsyncClient, backend: Backend
) -> None:
    wanted = document(paused=True, env={"HF_TOKEN": "sekret"})
    first = (await http.post("/plan", json=wanted)).json()
    assert (first["action"], first["saved"], first["changes"]) == ("create", None, [])
    assert not backend.store.groups

    await backend.groups.apply(Deployment.model_validate(wanted), "me")
    same = (await http.post("/plan", json=wanted)).json()
    assert (same["action"], same["effects"]) == ("unchanged", [])

    other = document(paused=True, env={"HF_TOKEN": "other"}, roles={"prefill": {"replicas": 2}})
    changed = (await http.post("/plan", json=other)).json()
    assert changed["action"] == "update"
    assert changed["changes"] == [
        "spec.env.HF_TOKEN: (secret) -> (secret)", "spec.roles.prefill.replicas: added 2",
    ]  # fmt: skip


async def test_a_refused_document_is_a_plan_with_its_verdicts(http: httpx.AsyncClient) -> None:
    both = {"prefill": {"parameters": ["--max-model-len", "8k"]},
            "decode": {"parameters": ["--max-model-len", "16k"]}}  # fmt: skip
    found = (await http.post("/plan", json=document(roles=both))).json()
    assert found["action"] == "refused"
    assert "pairing.max_model_len" in {v["rule"] for v in found["verdicts"]}


@pytest.mark.parametrize(
    ("body", "kind", "changes"),
    [
        ({"kind": "CacheService", "metadata": {"name": "lm"},
          "spec": {"provider": "lmcache", "endpoint": "h:1"}}, "CacheService", []),
        ({"kind": "Host", "metadata": {"name": "gpu-1", "labels": {"rack": "a"}},
          "spec": {"address": "10.0.0.1", "service_port_range": [41000, 41063]}}, "Host", []),
    ],
)  # fmt: skip
async def test_every_kind_can_be_planned(
    http: httpx.AsyncClient, body: dict[str, Any], kind: str, changes: list[str]
) -> None:
    found = (await http.post("/plan", json=body)).json()
    assert (found["kind"], found["action"], found["changes"]) == (kind, "create", changes)
    assert found["document"]["spec"] == body["spec"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"kind": "Deploymnt"}, "kind"),
        ({"kind": "Host", "metadata": {"name": "x"}, "spec": {"addres": "h"}}, "spec.addres"),
        ({"kind": "Host", "metadata": {"name": "A B"}, "spec": {"address": "h"}}, "metadata.name"),
        ({"kind": "Host", "metadata": {"name": "x"}, "spec": {"address": "h", "name": "y"}},
         "spec.name"),
        ({"kind": "CacheService", "metadata": {"name": "x"}, "spec": {"provider": "a\0"}},
         "spec.provider"),
    ],
)  # fmt: skip
async def test_what_is_no_document_is_told_by_its_path(
    http: httpx.AsyncClient, body: dict[str, Any], path: str
) -> None:
    answer = await http.post("/plan", json=body)
    assert answer.status_code == 400
    assert path in {p["path"] for p in answer.json()["problems"]}


def group(**spec: Any) -> Any:
    """A saved group."""
    return saved(None, Deployment.model_validate(document(**spec)), "r1", 1.0)


def effects(old: Any, revision: str = "r1", **spec: Any) -> list[tuple[str, dict[str, Any]]]:
    """What saving a changed document sets in motion."""
    new = Deployment.model_validate(document(**spec))
    return [(e.id, e.values) for e in effects_on(old, new, revision)]


def counts(prefill: int, decode: int = 1) -> dict[str, Any]:
    """Roles with these replicas."""
    return {"prefill": {"replicas": prefill}, "decode": {"replicas": decode}}


def test_what_a_save_sets_in_motion() -> None:
    old = group(roles=counts(2))
    assert effects(None, roles=counts(2)) == [("forms", {"prefill": 2, "decode": 1})]
    assert effects(None, paused=True)[0][0] == "stays_off"
    assert effects(old, roles=counts(3, 1)) == [
        ("scales_up", {"role": "prefill", "before": 2, "after": 3})
    ]
    assert effects(old, roles=counts(1, 1))[0][0] == "scales_down"
    assert effects(old, roles=counts(2), paused=True) == [("stops", {})]
    assert effects(old, roles=counts(2), hosts={"names": ["a"]}) == [("nothing_moves", {})]


def test_a_changed_configuration_waits_and_so_does_a_larger_count() -> None:
    running = group(roles=counts(2))
    running = running.model_copy(update={"formed": _formed(running)})
    assert effects(running, "r2", roles=counts(3)) == [
        ("restart_applies", {}), ("scale_waits", {"role": "prefill", "count": 3}),
    ]  # fmt: skip
    assert [e for e, _ in effects(running, "r2", roles=counts(1))] == [
        "restart_applies", "scales_down",
    ]  # fmt: skip


def _formed(of: Any) -> Any:
    from backend.domain.group import Formed

    return Formed(revision="r1", document=of.document, recipe={})
