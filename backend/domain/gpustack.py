"""A GPUStack model, as its API gives it, as a deployment document; and what does not carry over.

Fields by the source's own names: `source` with its ids, `backend*`, `image_name`, `run_command`,
`env`, `gpu_selector`, `worker_selector`, `extended_kv_cache`, `disaggregation` and `roles`, whose
overrides mean what ours mean: null inherits, anything else replaces whole. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.domain.errors import Invalid

ENGINES = {"vllm": "vllm", "sglang": "sglang", "custom": "custom"}
ASCEND = "vllm-ascend-mooncake"
ROLES = ("prefill", "decode", "router")
SERVER_WRITTEN = frozenset({
    "id", "created_at", "updated_at", "deleted_at", "state", "state_message", "role_status",
    "stale", "degradations", "restarting_since", "ready_replicas", "meta", "categories",
    "owner_principal_id", "cluster_id", "access_policy", "resolved_path", "spec_digest",
    "model_route_id", "description",
})  # fmt: skip
"""What the source's server or its own catalogue of users keeps; it says nothing of a launch."""
DEFAULTS: Mapping[str, Sequence[Any]] = {
    "restart_on_error": (True,), "distributed_inference_across_workers": (True, False),
    "distributable": (True, False), "placement_strategy": ("spread", "binpack"),
    "generic_proxy": (False,), "native_anthropic_api": (False, True), "cpu_offloading": (False,),
    "enable_model_route": (True, False),
}  # fmt: skip
"""Values that ask for what is done here anyway, or for nothing."""
PLACEHOLDERS = {
    "worker_ip": "host_ip", "gpu_count": "accelerator_count", "gpu_ids": "accelerator_ids",
    "model_path": "model_path", "model_name": "model_name", "port": "port", "role": "role",
}  # fmt: skip
"""What a user's rows may name there, by our names."""
_PLACEHOLDER = re.compile(r"\{\{([\w.]+)\}\}")
_TP = re.compile(r"^(?:--tensor-parallel-size|--tp-size|--tp|-tp)(?:[=\s](\d+))?$")
_PP = re.compile(r"^(?:--pipeline-parallel-size|--pp-size|-pp)(?:[=\s](\d+))?$")
_GPU = re.compile(r"^(?P<host>.+?):(?:(?P<kind>[a-z]+):)?(?P<index>\d+)$")


@dataclass
class Converted:
    """The document, and what of the source has no place in it: path, reason id, its values."""

    document: dict[str, Any]
    dropped: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)


def models_in(data: object) -> list[Mapping[str, Any]]:
    """The models in what was read: one, a list of them, or a page (`items`).

    Raises Invalid (`convert.source`) where there is none.
    """
    found = data.get("items", [data]) if isinstance(data, Mapping) else data
    models = [m for m in found if isinstance(m, Mapping)] if isinstance(found, list) else []
    if not models or any("name" not in m for m in models):
        raise Invalid.of(
            "convert.source",
            "this is no GPUStack model: an object with name, source and backend, or a list of "
            "them.",
            remedy="Save what `GET /v2/models/ID` answers and give that file.",
        )
    return models


def convert(model: Mapping[str, Any]) -> Converted:
    """One model as a deployment document. Raises Invalid (`convert.engine`, `convert.model`)."""
    return _Converter(model).run()


class _Converter:
    def __init__(self, model: Mapping[str, Any]) -> None:
        self.model, self.used = model, {"name", "replicas", "roles", "disaggregation"}
        self.out = Converted({})

    def drop(self, path: str, why: str, **values: Any) -> None:
        """Note what does not carry over."""
        self.out.dropped.append((path, why, values))

    def run(self) -> Converted:
        """The whole document."""
        m = self.model
        name = str(m["name"])
        pd = m.get("disaggregation")
        pd = pd if isinstance(pd, Mapping) else None
        spec: dict[str, Any] = {"model": self._model()}
        plain = _plain_name(name)
        if plain != name:
            spec["served_model_name"] = name
            self.drop("name", "renamed", name=name, new=plain)
        spec["engine"] = self._engine(pd)
        spec |= self._overrides(m, "")
        self._replicas(spec, m, roles=bool(m.get("roles")))
        if pd is not None:
            spec["disaggregation"] = self._disaggregation(pd)
        if m.get("roles"):
            spec["roles"] = self._roles(m["roles"])
        self._rest(m, "", self.used)
        spec = self._placeholders(spec)
        self.out.document = {
            "apiVersion": "pdtui/v1", "kind": "Deployment", "metadata": {"name": plain},
            "spec": spec,
        }  # fmt: skip
        return self.out

    def _model(self) -> str:
        m = self.model
        self.used |= {"source", "huggingface_repo_id", "model_scope_model_id", "local_path"}
        found = m.get("local_path") or m.get("huggingface_repo_id") or m.get("model_scope_model_id")
        if not isinstance(found, str):
            raise Invalid.of(
                "convert.model",
                f"{m['name']} names no model: none of local_path, huggingface_repo_id and "
                "model_scope_model_id is set.",
                path="source",
                remedy="Set one of them.",
            )
        if not m.get("local_path"):
            self.drop("source", "hub_id", model=found)
        return found

    def _engine(self, pd: Mapping[str, Any] | None) -> str:
        self.used.add("backend")
        said = str(self.model.get("backend") or "vLLM")
        engine = ENGINES.get(said.casefold())
        if engine is None:
            raise Invalid.of(
                "convert.engine",
                f"the backend {said!r} has no counterpart here.",
                path="backend",
                values={"found": said, "known": sorted(ENGINES)},
                remedy="Make it Custom with an image and a run command first.",
            )
        ascend = pd is not None and pd.get("mode") == ASCEND
        return "vllm-ascend" if ascend and engine == "vllm" else engine

    def _overrides(self, m: Mapping[str, Any], at: str) -> dict[str, Any]:
        """The fields that a deployment and its roles both have; `at` is the path before them."""
        out: dict[str, Any] = {}
        for theirs, ours in (("backend_version", "engine_version"), ("image_name", "image")):
            self._use(at, theirs)
            if m.get(theirs) is not None:
                out[ours] = str(m[theirs])
        for theirs in ("run_command", "backend_parameters"):
            self._use(at, theirs)
            if m.get(theirs) is not None:
                out[theirs.removeprefix("backend_")] = list(_words(m[theirs]))
        self._use(at, "env")
        if isinstance(m.get("env"), Mapping):
            out["env"] = {str(k): str(v) for k, v in m["env"].items()}
        self._scheduling(m, at, out)
        self._cache(m, at, out)
        return out

    def _use(self, at: str, name: str) -> None:
        if not at:
            self.used.add(name)

    def _scheduling(self, m: Mapping[str, Any], at: str, out: dict[str, Any]) -> None:
        self._use(at, "gpu_selector")
        self._use(at, "worker_selector")
        selector = m.get("gpu_selector")
        selector = selector if isinstance(selector, Mapping) else {}
        each = selector.get("gpus_per_replica")
        ids = selector.get("gpu_ids") or []
        if not each and ids and int(m.get("replicas") or 1) == 1:
            each = len(ids)
        degree = _degree(out.get("parameters", []))
        if each or degree > 1:
            out["accelerators"] = int(each or degree)
        if ids:
            pins = _pins([str(i) for i in ids], int(each or degree))
            if pins is None:
                self.drop(f"{at}gpu_selector.gpu_ids", "gpu_ids", ids=", ".join(map(str, ids)))
            else:
                out["placement"] = pins
        labels = m.get("worker_selector")
        if isinstance(labels, Mapping) and labels:
            out["hosts"] = {"labels": {str(k): str(v) for k, v in labels.items()}}
            self.drop(f"{at}worker_selector", "labels", labels=", ".join(map(str, labels)))

    def _cache(self, m: Mapping[str, Any], at: str, out: dict[str, Any]) -> None:
        self._use(at, "extended_kv_cache")
        cache = m.get("extended_kv_cache")
        if not isinstance(cache, Mapping) or not cache:
            return
        rest = dict(cache)
        enabled = rest.pop("enabled", True)
        service = next((rest.pop(k) for k in ("cache_service_name", "service", "cache_service")
                        if isinstance(rest.get(k), str)), None)  # fmt: skip
        body: dict[str, Any] = {"kind": "none"}
        if enabled:
            body = {"kind": "service", "service": service} if service else {"kind": "in_process"}
        for theirs, ours in (("ram_size", "ram_size_gib"), ("ram_ratio", "ram_ratio"),
                             ("chunk_size", "chunk_size")):  # fmt: skip
            value = rest.pop(theirs, None)
            if enabled and value:
                body[ours] = value
        out["extended_kv_cache"] = body
        for key, value in rest.items():
            if enabled and value not in (None, "", {}, []):
                self.drop(f"{at}extended_kv_cache.{key}", "no_place", value=_short(value))

    def _replicas(self, spec: dict[str, Any], m: Mapping[str, Any], *, roles: bool) -> None:
        count = m.get("replicas")
        if count == 0:
            spec["paused"] = True
        elif isinstance(count, int) and not roles and count != 1:
            spec["replicas"] = count

    def _disaggregation(self, pd: Mapping[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {"mode": str(pd.get("mode"))}
        if pd.get("kv_load_failure_policy"):
            out["kv_load_failure_policy"] = pd["kv_load_failure_policy"]
        if pd.get("vendor"):
            self.drop("disaggregation.vendor", "vendor", vendor=pd["vendor"])
        if pd.get("readiness") not in (None, "any_per_role"):
            self.drop("disaggregation.readiness", "readiness", value=pd["readiness"])
        known = {"mode", "kv_load_failure_policy", "vendor", "readiness"}
        self._rest(pd, "disaggregation.", known)
        return out

    def _roles(self, roles: object) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for number, role in enumerate(roles if isinstance(roles, list) else []):
            at = f"roles[{number}]."
            name = role.get("name") if isinstance(role, Mapping) else None
            if name not in ROLES:
                self.drop(at.rstrip("."), "role", name=_short(name))
                continue
            body = self._overrides(role, at)
            if role.get("backend"):
                body["engine"] = ENGINES.get(str(role["backend"]).casefold(), str(role["backend"]))
            if name == "router":
                for unfit in ("engine", "engine_version", "accelerators", "extended_kv_cache"):
                    if body.pop(unfit, None) is not None:
                        self.drop(f"{at}{unfit}", "router")
            else:
                body["replicas"] = int(role.get("replicas") or 1)
            self._rest(role, at, {
                "name", "replicas", "backend", "backend_version", "image_name", "run_command",
                "backend_parameters", "env", "gpu_selector", "worker_selector",
                "extended_kv_cache", "dependencies",
            })  # fmt: skip
            out[str(name)] = body
        return out

    def _placeholders(self, value: Any) -> Any:
        """The value with the source's placeholders under our names."""
        if isinstance(value, dict):
            return {k: self._placeholders(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._placeholders(v) for v in value]
        if not isinstance(value, str):
            return value
        for name in _PLACEHOLDER.findall(value):
            if name not in PLACEHOLDERS and "." not in name:
                self.drop("{{" + name + "}}", "placeholder")
        return _PLACEHOLDER.sub(lambda m: "{{" + PLACEHOLDERS.get(m[1], m[1]) + "}}", value)

    def _rest(self, m: Mapping[str, Any], at: str, known: set[str]) -> None:
        for key, value in m.items():
            if key in known or (not at and key in SERVER_WRITTEN):
                continue
            if value in (None, "", [], {}) or value in DEFAULTS.get(key, ()):
                continue
            self.drop(f"{at}{key}", "no_place", value=_short(value))


def _words(value: object) -> Iterator[str]:
    """Argument tokens of a command line, or of a list whose items may hold a flag and its value."""
    if isinstance(value, str):
        yield from _split(value)
        return
    for item in value if isinstance(value, list) else [value]:
        text = str(item)
        flag, _, rest = text.partition(" ")
        if text.startswith("-") and rest and "=" not in flag:
            yield from _split(text)
        else:
            yield text


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _degree(parameters: Sequence[str]) -> int:
    """Accelerators of one replica by the degrees of parallelism that the parameters name."""
    product = 1
    for pattern in (_TP, _PP):
        for at, word in enumerate(parameters):
            found = pattern.match(word)
            if found is None:
                continue
            number = found[1] or (parameters[at + 1] if at + 1 < len(parameters) else "")
            product *= int(number) if number.isdecimal() and number != "0" else 1
            break
    return product


def _pins(ids: Sequence[str], each: int) -> list[dict[str, Any]] | None:
    """One pin per replica, `each` accelerators of one host; None where they do not come out."""
    hosts: dict[str, list[int]] = {}
    for text in ids:
        found = _GPU.match(text)
        if found is None:
            return None
        hosts.setdefault(found["host"], []).append(int(found["index"]))
    if any(len(cards) % max(each, 1) for cards in hosts.values()):
        return None
    return [
        {"host": host, "accelerators": cards[n : n + each]}
        for host, cards in hosts.items()
        for n in range(0, len(cards), each)
    ]


def _plain_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:40].strip("-") or "model"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
