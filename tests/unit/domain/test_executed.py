"""What a host without containers executes for each role, as the doctor asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from backend.adapters.recipes import load_catalogue
from backend.domain.deployment import Deployment
from backend.domain.render import executed

CATALOGUE = load_catalogue()


def found(mode: str, role: str, entry: str | None = None, **spec: Any) -> str:
    engines = CATALOGUE.mode(mode).engines or ("custom",)
    body = {"model": "/m", "engine": engines[0], "disaggregation": {"mode": mode}} | spec
    document = Deployment.model_validate({"metadata": {"name": "q"}, "spec": body})
    return executed(CATALOGUE.mode(mode), CATALOGUE, document, role, entry)


@pytest.mark.parametrize(
    ("mode", "role", "entry", "spec", "program"),
    [
        ("vllm-nixl", "prefill", None, {}, "vllm"),
        ("vllm-nixl", "router", None, {}, "vllm-router"),
        ("vllm-nixl", "router", "/opt/v", {}, "/opt/v/bin/vllm-router"),
        ("vllm-nixl", "router", None, {"executable": "/opt/v/"}, "/opt/v/bin/vllm-router"),
        ("vllm-ascend-mooncake", "decode", "/opt/v", {}, "/opt/v/bin/vllm"),
        ("sglang-nixl", "prefill", None, {}, "python3"),
        ("sglang-nixl", "router", None, {}, "python3"),
        ("sglang-nixl", "router", "/opt/s", {}, "/opt/s/bin/python3"),
        ("custom", "prefill", None, {"run_command": ["serve.sh"]}, ""),
        ("custom", "router", None, {"run_command": ["serve.sh"]}, ""),
        ("vllm-nixl", "router", None, {"roles": {"router": {"run_command": ["mine"]}}}, ""),
    ],
)
def test_the_first_word_of_the_command(
    mode: str, role: str, entry: str | None, spec: dict[str, Any], program: str
) -> None:
    assert found(mode, role, entry, **spec) == program
