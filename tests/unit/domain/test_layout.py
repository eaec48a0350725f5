"""The Ascend connector follows the model's config, once."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.layout import choose, is_recurrent, layout_of

QWEN3 = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 64}
DEEPSEEK_V3 = {"model_type": "deepseek_v3", "kv_lora_rank": 512}
GLM5 = {"model_type": "glm_moe_dsa", "architectures": ["GlmMoeDsaForCausalLM"]}
HF = ("--hf-overrides",)


@pytest.mark.parametrize(
    ("config", "layout"),
    [
        (QWEN3, "standard"),
        (DEEPSEEK_V3, "standard"),
        (GLM5, "standard"),
        ({"model_type": "deepseek_v4"}, "hybrid"),
        ({"model_type": "DeepSeek_V4"}, "hybrid"),
        ({"architectures": ["DeepseekV4ProForCausalLM"]}, "hybrid"),
        ({"compress_ratios": 4}, "hybrid"),
        ({"compress_ratios": [0, 4]}, "hybrid"),
        ({"compress_ratios": [0, 0]}, "standard"),
        ({"compress_ratios": [True]}, "standard"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "standard"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "hybrid"),
        ({"layers_block_type": ["attention", "mamba"]}, "hybrid"),
        ({"hybrid_override_pattern": "M-M*"}, "hybrid"),
        ({"hybrid_override_pattern": "-*-*"}, "standard"),
        ({"mamba_d_state": 16}, "hybrid"),
        ({"mamba_d_state": None, "x": 1}, "standard"),
        ({"text_config": {"linear_num_key_heads": 4}}, "hybrid"),
        ({"thinker_config": {"text_config": {"model_type": "deepseek_v4"}}}, "hybrid"),
        ({"text_config": QWEN3}, "standard"),
        (None, None),
        ({}, None),
    ],
)
def test_layouts(kit: Any, config: dict[str, Any] | None, layout: str | None) -> None:
    assert layout_of(kit.catalogue.layouts, config) == layout


def test_overrides_can_prove_hybrid_and_never_standard(kit: Any) -> None:
    facts = kit.catalogue.layouts
    assert layout_of(facts, QWEN3, {"compress_ratios": [4]}) == "hybrid"
    assert layout_of(facts, None, {"compress_ratios": [4]}) == "hybrid"
    assert layout_of(facts, None, {"model_type": "qwen3"}) is None
    assert layout_of(facts, {"mamba_d_state": 16}, {"mamba_d_state": None}) == "standard"


def test_recurrent(kit: Any) -> None:
    assert is_recurrent(kit.catalogue.layouts, {"text_config": {"mamba_expand": 2}})
    assert not is_recurrent(kit.catalogue.layouts, {"compress_ratios": [4]})


def test_a_choice_is_made_once_for_its_inputs(kit: Any) -> None:
    mode, facts = kit.catalogue.mode("vllm-ascend-mooncake"), kit.catalogue.layouts
    spec = kit.document("vllm-ascend-mooncake").spec
    unknown = choose(mode, facts, spec, None)
    assert unknown is not None
    assert (unknown.layout, unknown.proven) == ("hybrid", False)
    assert choose(mode, facts, spec, QWEN3, unknown) == unknown

    fresh = choose(mode, facts, spec, QWEN3)
    assert fresh is not None
    assert (fresh.layout, fresh.proven) == ("standard", True)

    other = kit.document("vllm-ascend-mooncake", model="/data/other").spec
    changed = choose(mode, facts, other, QWEN3, unknown)
    assert changed is not None
    assert changed.layout == "standard"
    more = kit.document("vllm-ascend-mooncake", roles={"decode": {"replicas": 9}}).spec
    assert choose(mode, facts, more, QWEN3, unknown) == unknown


def test_overrides_are_read_from_prefill(kit: Any) -> None:
    mode, facts = kit.catalogue.mode("vllm-ascend-mooncake"), kit.catalogue.layouts

    def layout(parameters: list[str]) -> str:
        document = kit.document("vllm-ascend-mooncake", parameters=parameters)
        found = choose(mode, facts, document.spec, QWEN3, override_flags=HF)
        assert found is not None
        return found.layout

    assert layout(['--hf-overrides={"compress_ratios": [4]}']) == "hybrid"
    assert layout(["--hf-overrides", "broken"]) == "standard"


def test_a_mode_with_one_connector_has_nothing_to_choose(kit: Any) -> None:
    spec = kit.document("vllm-nixl").spec
    assert choose(kit.catalogue.mode("vllm-nixl"), kit.catalogue.layouts, spec, QWEN3) is None
