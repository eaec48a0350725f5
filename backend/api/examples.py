"""Bodies that routes read as plain data, since their errors are told by rules of ours."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from backend.api.wire import (
    AdoptBody,
    HandoverBody,
    KeyBody,
    PauseBody,
    RestartBody,
    RollbackBody,
    ScaleBody,
)
from backend.domain.access import NewToken
from backend.domain.caches import CacheDocument
from backend.domain.deployment import Deployment
from backend.domain.host import Host

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "pdtui/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat"},
    "spec": {
        "model": "/models/qwen3-32b",
        "engine": "vllm",
        "parameters": ["--max-model-len", "8192"],
        "disaggregation": {"mode": "vllm-nixl"},
        "roles": {"prefill": {"replicas": 2}, "decode": {"replicas": 1}},
    },
}
HOST: dict[str, Any] = {"name": "gpu-1", "address": "10.0.0.11", "user": "pd"}
CACHE: dict[str, Any] = {
    "apiVersion": "pdtui/v1",
    "kind": "CacheService",
    "metadata": {"name": "shared"},
    "spec": {"provider": "mooncake", "endpoint": "10.0.0.7:50051"},
}

REQUESTS: dict[tuple[str, str], tuple[type[BaseModel], dict[str, Any]]] = {
    ("/v1/deployments/{name}", "put"): (Deployment, DEPLOYMENT),
    ("/v1/check", "post"): (Deployment, DEPLOYMENT),
    ("/v1/plan", "post"): (Deployment, DEPLOYMENT),
    ("/v1/mode-choices", "post"): (Deployment, DEPLOYMENT),
    ("/v1/hosts/{name}", "put"): (Host, HOST),
    ("/v1/caches/{name}", "put"): (CacheDocument, CACHE),
    ("/v1/deployments/{name}/scale", "post"): (ScaleBody, {"counts": {"prefill": 3}}),
    ("/v1/deployments/{name}/restart", "post"): (RestartBody, {"force": False}),
    ("/v1/deployments/{name}/pause", "post"): (PauseBody, {"paused": True}),
    ("/v1/deployments/{name}/rollback", "post"): (RollbackBody, {"version": 1}),
    ("/v1/hosts/{name}/accept-key", "post"): (KeyBody, {"fingerprint": "SHA256:c3Rhcn…"}),
    ("/v1/adopt", "post"): (AdoptBody, {"owner": "0f3a9c51d2e7"}),
    ("/v1/handover", "post"): (HandoverBody, {"version": "1.4.0"}),
    ("/v1/tokens", "post"): (NewToken, {"name": "ci", "role": "operate", "days": 90}),
}
"""Model and example by path and method."""
