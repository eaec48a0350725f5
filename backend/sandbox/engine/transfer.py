"""`--kv-transfer-config` as the engine reads it: checked with vLLM's words, defaults filled in."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backend.sandbox.engine.failures import StartFailure, invalid, usage

Family = Literal["nixl", "mooncake", "ascend", "sglang"]

NIXL = ("NixlConnector", "NixlPullConnector", "NixlPushConnector")
MOONCAKE = ("MooncakeConnector",)
ASCEND = ("MooncakeConnectorV1", "MooncakeHybridConnector")
LOCAL_CACHES = (
    "OffloadingConnector", "SimpleCPUOffloadConnector", "LMCacheConnectorV1", "LMCacheMPConnector",
    "MooncakeStoreConnector", "AscendStoreConnector", "ExampleConnector", "DecodeBenchConnector",
)  # fmt: skip
_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(NIXL, "nixl"),
    **dict.fromkeys(MOONCAKE, "mooncake"),
    **dict.fromkeys(ASCEND, "ascend"),
}
_ROLES = ("kv_producer", "kv_both", "kv_consumer")
_POLICIES = ("recompute", "fail")
_KV_FIELDS = {
    "kv_connector", "engine_id", "kv_buffer_device", "kv_buffer_size", "kv_role", "kv_rank",
    "kv_parallel_size", "kv_ip", "kv_port", "kv_connector_extra_config",
    "kv_connector_module_path", "enable_permute_local_kv", "kv_load_failure_policy",
}  # fmt: skip
_NIXL_LEASE_S = 30
_MOONCAKE_LEASE_S = 480
_NIXL_PORT, _BOOTSTRAP_PORT, _ASCEND_PORT = 5600, 8998, 20001


@dataclass(frozen=True)
class KvTransfer:
    """The transfer side of the engine; times in seconds.

    `side_host` and `side_port` are where peers ask: NIXL's side channel, Mooncake's bootstrap
    server, the first of an Ascend engine's rank ports. `sizes` are both roles' tensor parallel
    sizes where the connector is told them.
    """

    connector: str
    role: str
    engine_id: str
    family: Family = "nixl"
    failure_policy: str = "fail"
    lease_s: float = _NIXL_LEASE_S
    enforce_compat: bool = True
    side_host: str = "localhost"
    side_port: int = _NIXL_PORT
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def produces(self) -> bool:
        """Whether it computes prompts for others."""
        return self.role != "kv_consumer"


def _literal(key: str, allowed: tuple[str, ...], value: object) -> StartFailure:
    names = f"{', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}"
    return usage(
        "argument --kv-transfer-config: 1 validation error for KVTransferConfig\n"
        f"{key}\n"
        f"  Input should be {names} [type=literal_error, input_value={value!r}, "
        f"input_type={type(value).__name__}]\n"
        "    For further information visit https://errors.pydantic.dev/2.14/v/literal_error"
    )


def _check(given: Mapping[str, Any]) -> None:
    for key in given:
        if key not in _KV_FIELDS:
            raise usage(
                "argument --kv-transfer-config: 1 validation error for KVTransferConfig\n"
                f"{key}\n  Unexpected keyword argument [type=unexpected_keyword_argument, "
                f"input_value={given[key]!r}, input_type={type(given[key]).__name__}]"
            )
    if "kv_role" in given and given["kv_role"] not in _ROLES:
        raise _literal("kv_role", _ROLES, given["kv_role"])
    policy = given.get("kv_load_failure_policy", "fail")
    if policy not in _POLICIES:
        raise _literal("kv_load_failure_policy", _POLICIES, policy)
    if given.get("kv_connector") and not given.get("kv_role"):
        raise usage(
            "argument --kv-transfer-config: 1 validation error for KVTransferConfig\n"
            "  Value error, Please specify kv_role when kv_connector is set, supported roles are "
            f"{_ROLES} [type=value_error]"
        )


def kv_transfer(given: Any, env: Mapping[str, str], host: str) -> KvTransfer | None:
    """The transfer of an engine that listens on `host`; None where nothing is moved to others.

    Raises StartFailure where vLLM refuses to start.
    """
    if not given:
        return None
    if not isinstance(given, dict):
        raise usage(f"argument --kv-transfer-config: {given!r} is no JSON object")
    _check(given)
    extra = given.get("kv_connector_extra_config") or {}
    parts = [given]
    if given.get("kv_connector") == "MultiConnector":
        parts = [p for p in extra.get("connectors", []) if isinstance(p, dict)]
    for part in parts:
        _check(part)
        if part.get("kv_connector") not in (*_FAMILIES, *LOCAL_CACHES):
            raise invalid("VllmConfig", f"Unsupported connector type: {part.get('kv_connector')}")
    moving = next((p for p in parts if p["kv_connector"] in _FAMILIES), None)
    return None if moving is None else _transfer(given, moving, env, host)


def _transfer(
    given: Mapping[str, Any], moving: Mapping[str, Any], env: Mapping[str, str], host: str
) -> KvTransfer:
    own = moving.get("kv_connector_extra_config") or {}
    family = _FAMILIES[moving["kv_connector"]]
    if family == "nixl":
        lease = float(own.get("kv_lease_duration", _NIXL_LEASE_S))
        side_host = env.get("VLLM_NIXL_SIDE_CHANNEL_HOST") or "localhost"
        side_port = int(env.get("VLLM_NIXL_SIDE_CHANNEL_PORT") or _NIXL_PORT)
    else:
        lease = float(env.get("VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT") or _MOONCAKE_LEASE_S)
        side_host = host
        side_port = int(env.get("VLLM_MOONCAKE_BOOTSTRAP_PORT") or _BOOTSTRAP_PORT)
    if family == "ascend":
        side_host = env.get("HCCL_IF_IP") or host
        side_port = int(moving.get("kv_port") or _ASCEND_PORT)
    return KvTransfer(
        connector=moving["kv_connector"],
        role=str(given["kv_role"]),
        engine_id=str(given.get("engine_id") or uuid.uuid4()),
        family=family,
        failure_policy=given.get("kv_load_failure_policy", "fail"),
        lease_s=lease,
        enforce_compat=own.get("enforce_handshake_compat") is not False,
        side_host=side_host,
        side_port=side_port,
        sizes=_sizes(own) if family == "ascend" else {},
    )


def _sizes(own: Mapping[str, Any]) -> dict[str, int]:
    """Both roles' sizes, which Ascend's connectors are told. Raises StartFailure without them."""
    sizes = {}
    for role in ("prefill", "decode"):
        told = own.get(role)
        if not isinstance(told, dict) or "tp_size" not in told or "dp_size" not in told:
            raise invalid(
                "VllmConfig",
                f"kv_connector_extra_config must hold {role!r} with 'tp_size' and 'dp_size'",
            )
        sizes[role] = int(told["tp_size"])
    return sizes
