"""What a group's instances were launched from, as one digest, and how two of them differ.

Counted: the deployment, its roles with the router, and the part of the recipe that shapes a launch.
Not counted: replica counts, `paused`, labels, schedules, host selectors and pins (they only decide
where the next member goes), `disaggregation.allow` and `.canary`, and what a recipe merely shows.
A null equals an absent field; `{}` and `[]` differ from both where a role could inherit.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from backend.domain.caches import CacheDocument, attached
from backend.domain.deployment import Deployment
from backend.domain.inherit import roles_of
from backend.domain.mode import Catalogue
from backend.domain.secrets import HIDDEN, is_secret, masked
from backend.domain.shell import join

_NOWHERE = {"replicas", "hosts", "placement"}
_SHOWN_MODE = {
    "title", "summary", "versions", "preferred", "pairing", "metrics", "canary", "notes", "origin",
}  # fmt: skip
_SHOWN_ROUTER = {
    "api", "membership_update", "metrics_band", "metrics_path", "peer_flags", "owned_flags",
    "policies", "default_policy", "prefill_policy", "decode_policy", "capabilities",
}  # fmt: skip
_SHOWN_ENGINE = {"title", "metrics_path", "known_versions", "owned_flags", "disaggregates"}
_DEGREES = {"tensor_parallel", "data_parallel", "pipeline_parallel", "context_parallel"}


def revision(
    deployment: Deployment,
    catalogue: Catalogue,
    caches: Mapping[str, CacheDocument] | None = None,
) -> str:
    """The SHA-256 of everything that decides how the group's instances are launched, as hex.

    `caches` are the cache services there are; those that the deployment attaches to count.
    Raises NotFound for a mode or engine the catalogue lacks.
    """
    counted = {"deployment": document(deployment), "recipe": recipe(deployment, catalogue)}
    if used := services(deployment, caches or {}):
        counted["services"] = used
    text = json.dumps(counted, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def document(deployment: Deployment) -> dict[str, Any]:
    """The part of the document that counts, defaults left out."""
    spec = deployment.spec.model_dump(mode="json", exclude_defaults=True)
    for name in (*_NOWHERE, "paused", "scaling_schedule"):
        spec.pop(name, None)
    wanted = spec.get("disaggregation")
    if wanted is not None:
        for name in ("allow", "canary"):
            wanted.pop(name, None)
    roles = {
        name: {k: v for k, v in body.items() if k not in _NOWHERE}
        for name, body in (spec.pop("roles", None) or {}).items()
    }
    roles = {name: body for name, body in roles.items() if body}
    return {"name": deployment.name, "spec": spec | ({"roles": roles} if roles else {})}


def recipe(deployment: Deployment, catalogue: Catalogue) -> dict[str, Any]:
    """The part of the catalogue that shapes this deployment's launches."""
    used = catalogue.pin(deployment.spec)
    cached = any(r.extended_kv_cache.kind != "none" for r in roles_of(deployment.spec))
    result: dict[str, Any] = {}
    for mode in used.modes.values():
        drop = _SHOWN_MODE | (set() if cached else {"cache"})
        body = mode.model_dump(mode="json", exclude_defaults=True, exclude=drop)
        body["router"] = {k: v for k, v in body["router"].items() if k not in _SHOWN_ROUTER}
        body["router"]["tunables"] = [
            {"flag": t.flag, "default": t.default}
            for t in mode.router.tunables
            if t.default is not None
        ]
        result["mode"] = body
    for name, engine in used.engines.items():
        body = engine.model_dump(mode="json", exclude_defaults=True, exclude=_SHOWN_ENGINE)
        body["flags"] = {k: v for k, v in body.get("flags", {}).items() if k in _DEGREES}
        result.setdefault("engines", {})[name] = body
    vendors = {k: v.model_dump(mode="json") for k, v in used.vendors.items()}
    return result | ({"vendors": vendors} if vendors else {})


def services(
    deployment: Deployment, caches: Mapping[str, CacheDocument]
) -> dict[str, dict[str, Any]]:
    """What members are told of the cache services that the deployment attaches to, by name."""
    used = attached(deployment, caches)
    return {name: cache.service().model_dump(mode="json") for name, cache in used.items()}


def changes(
    old: Deployment,
    new: Deployment,
    old_catalogue: Catalogue | None = None,
    new_catalogue: Catalogue | None = None,
    caches: tuple[Mapping[str, CacheDocument], Mapping[str, CacheDocument]] | None = None,
) -> tuple[str, ...]:
    """One line per difference that counts: `spec.roles.decode.parameters[1]: 256 -> 512`.

    With both catalogues the recipe is compared too, and with the old and the new `caches` the cache
    services that members attach to. Values of secret-looking environment
    variables are never written out.
    """
    lines = list(_differ("", document(old), document(new)))
    if old_catalogue is not None and new_catalogue is not None:
        before, after = recipe(old, old_catalogue), recipe(new, new_catalogue)
        if document(old).get("spec", {}).get("disaggregation") == document(new).get("spec", {}).get(
            "disaggregation"
        ):
            lines += _differ("recipe", before, after)
    if caches is not None:
        lines += _differ("services", services(old, caches[0]), services(new, caches[1]))
    return tuple(lines)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """One line per difference of two documents, whether it counts for a revision or not."""
    return tuple(_differ("", old, new))


def changes_beside(old: Deployment, new: Deployment) -> tuple[str, ...]:
    """One line per difference that a revision leaves out, save for counts and the switch: labels,
    where members go, schedules and rules that are let through."""
    return tuple(_differ("", _beside(old), _beside(new)))


def _beside(deployment: Deployment) -> dict[str, Any]:
    spec = deployment.spec.model_dump(mode="json", exclude_defaults=True)
    where = _NOWHERE - {"replicas"}
    kept: dict[str, Any] = {k: spec[k] for k in (*sorted(where), "scaling_schedule") if k in spec}
    allow = (spec.get("disaggregation") or {}).get("allow")
    if allow:
        kept["disaggregation.allow"] = allow
    kept["roles"] = {
        role: {k: v for k, v in body.items() if k in where}
        for role, body in (spec.get("roles") or {}).items()
    }
    return {"metadata": {"labels": deployment.metadata.labels}, "spec": kept}


def _differ(path: str, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(k for k in new if k not in old)]:
            inner = f"{path}.{key}" if path else str(key)
            if _structural(inner):
                yield from _differ(inner, old.get(key, {}), new.get(key, {}))
            elif key not in new:
                yield f"{inner}: removed (was {_show(inner, old[key])})"
            elif key not in old:
                yield f"{inner}: added {_show(inner, new[key])}"
            else:
                yield from _differ(inner, old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(path, old, new)
    else:
        yield f"{path}: {_show(path, old)} -> {_show(path, new)}"


def _structural(path: str) -> bool:
    """Whether a path only groups fields, so that its absence is no value of its own."""
    return path == "spec.roles" or (path.startswith("spec.roles.") and path.count(".") == 2)


def _lists(path: str, old: list[Any], new: list[Any]) -> Iterator[str]:
    before, after = [[json.dumps(v, sort_keys=True) for v in side] for side in (old, new)]
    old, new = masked(old), masked(new)  # what follows a flag that tells a secret
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        if kind == "replace" and b - a == d - c:
            for i, j in zip(range(a, b), range(c, d), strict=True):
                if old[i] == new[j]:
                    yield f"{path}[{j}]: {HIDDEN} -> {HIDDEN}"
                else:
                    yield from _differ(f"{path}[{j}]", old[i], new[j])
            continue
        if b > a:
            yield f"{path}[{a}]: removed {' '.join(_show(path, v) for v in old[a:b])}"
        if d > c:
            yield f"{path}[{c}]: added {' '.join(_show(path, v) for v in new[c:d])}"


def _show(path: str, value: Any) -> str:
    in_env = ".env." in path
    if in_env and is_secret(path.rsplit(".", 1)[-1]):
        return "(secret)"
    if isinstance(value, Mapping) and path.endswith(".env"):
        value = {k: "(secret)" if is_secret(k) else v for k, v in value.items()}
    if (
        isinstance(value, list)
        and value
        and all(isinstance(v, str) and "\0" not in v for v in value)
    ):
        return join(masked(value))
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
