"""Rules on two sides that do not fit each other."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

PAIRING: tuple[Rule, ...] = (
    Rule(
        id="pairing.nixl_hash",
        severity="fatal",
        ends=False,
        needles=("NIXL compatibility hash mismatch",),
        cause=both(
            "Prefill and decode do not agree in what NIXL hashes: engine version, model path, "
            "dtype, KV dtype, attention backend, hybrid cache manager or speculation.",
            "prefill 与 decode 在 NIXL 校验项上不一致：引擎版本、模型路径、dtype、KV dtype、"
            "注意力后端、混合缓存管理器或投机解码。",
        ),
        remedy=both(
            "Make both roles the same in these. The model counts by its path's text: the same "
            "weights in two folders differ.",
            "使两个角色在这些项上一致。模型按路径文本比较：相同权重放在不同目录也算不同。",
        ),
        sample=(
            "(Worker pid=32731) ERROR 11-30 04:56:06 [base_worker.py:1318] RuntimeError: NIXL "
            "compatibility hash mismatch. Local: "
            "ef46e48ffd35012908efd974dd75c815d63b1e1b5916ff0600cd4c42b37c56e1, Remote: "
            "89758e4ee421a9483110b92f9f8265f26ce12c9b4a1da239f7614eb293d0a373."
        ),
        source="vLLM 0.32 with NIXL, run for this project",
    ),
    Rule(
        id="pairing.block_size",
        severity="fatal",
        ends=False,
        needles=("is not divisible by remote block size",),
        pattern=(
            r"Local block size (?P<ours>\d+) is not divisible by remote block size (?P<theirs>\d+)"
        ),
        cause=both(
            "The roles' KV block sizes do not fit each other: {ours} here, {theirs} on the "
            "other side.",
            "两个角色的 KV 块大小不匹配：本侧 {ours}，对侧 {theirs}。",
        ),
        remedy=both(
            "Set the same --block-size on both roles.",
            "为两个角色设置相同的 --block-size。",
        ),
        sample=(
            "(Worker pid=6356) ERROR 11-30 04:58:52 [base_worker.py:1318] AssertionError: Local "
            "block size 32 is not divisible by remote block size 128 or vice versa."
        ),
        source="vLLM 0.32 with NIXL, run for this project",
    ),
    Rule(
        id="pairing.tensor_parallel",
        severity="fatal",
        ends=False,
        needles=("is not divisible by remote tensor parallel size",),
        pattern=(
            r"Local tensor parallel size (?P<ours>\d+) is not divisible by remote tensor parallel "
            r"size (?P<theirs>\d+)"
        ),
        cause=both(
            "The roles' tensor parallel sizes do not divide each other: {ours} here, {theirs} "
            "on the other side.",
            "两个角色的张量并行大小不能整除：本侧 {ours}，对侧 {theirs}。",
        ),
        remedy=both(
            "Choose sizes of which one divides the other; decode at least prefill's, except on "
            "Ascend.",
            "选择可互相整除的大小；除昇腾外，decode 不应小于 prefill。",
        ),
        sample=(
            "AssertionError: Local tensor parallel size 4 is not divisible by remote tensor "
            "parallel size 3."
        ),
        source="vLLM 0.32, nixl/utils.py",
    ),
    Rule(
        id="pairing.kv_layout",
        severity="fatal",
        ends=False,
        needles=(
            "Heterogeneous TP expects same kv_cache_layout",
            "requires contiguous heads",
        ),
        cause=both(
            "With different tensor parallel sizes both roles need the same, head-contiguous KV "
            "cache layout.",
            "张量并行大小不同时，两个角色必须使用相同且按头连续的 KV 缓存布局。",
        ),
        remedy=both(
            "Set VLLM_KV_CACHE_LAYOUT=HND (LBHNC) on both roles, or the same tensor parallel size.",
            "两个角色都设置 VLLM_KV_CACHE_LAYOUT=HND（LBHNC），或使用相同的张量并行大小。",
        ),
        sample=(
            "RuntimeError: Heterogeneous TP head-dimension splitting requires contiguous heads. "
            "Use a block-contiguous layout (e.g. LBHNC) on the prefill side."
        ),
        source="vLLM 0.32, nixl/base_worker.py",
    ),
    Rule(
        id="pairing.kv_shape",
        severity="fatal",
        ends=False,
        needles=("Remote P worker KV layer cache must be of shape",),
        cause=both(
            "Prefill's KV cache has another shape than decode expects: too wide a tensor "
            "parallel size repeats KV heads.",
            "prefill 的 KV 缓存形状与 decode 期望不符：张量并行过大时 KV 头会被复制。",
        ),
        remedy=both(
            "Keep decode's tensor parallel size within the model's num_key_value_heads.",
            "使 decode 的张量并行大小不超过模型的 num_key_value_heads。",
        ),
        sample=(
            "AssertionError: Remote P worker KV layer cache must be of shape [2, N, "
            "local_kv_heads*tp_ratio, page_size, head_dim] and same dtype."
        ),
        source="vllm-project/vllm#45330",
    ),
    Rule(
        id="pairing.data_parallel",
        severity="fatal",
        needles=("onflicting data parallel size",),
        cause=both(
            "The connector's data parallel size is not the engine's.",
            "连接器中的数据并行大小与引擎不一致。",
        ),
        remedy=both(
            "Make dp_size in the transfer config equal to --data-parallel-size of that role.",
            "使传输配置中的 dp_size 等于该角色的 --data-parallel-size。",
        ),
        sample=(
            "ValueError: KV transfer 'prefill' config has a conflicting data parallel size. "
            "Expected 1, but got 2."
        ),
        source="vllm-ascend 0.23, mooncake_connector.py",
    ),
    Rule(
        id="pairing.hybrid_state",
        severity="fatal",
        ends=False,
        needles=("PD Disaggregation does NOT support PD",),
        cause=both(
            "SGLang cannot move this model's hybrid state between different tensor parallel sizes.",
            "SGLang 无法在不同张量并行大小之间传输该模型的混合状态。",
        ),
        remedy=both(
            "Use the same tensor parallel size on both roles.",
            "两个角色使用相同的张量并行大小。",
        ),
        sample=(
            "RuntimeError: PD Disaggregation does NOT support PD different TP sizes for non-MLA "
            "SWA hybrid models yet."
        ),
        source="llm-d/llm-d#2433",
    ),
    Rule(
        id="pairing.two_producers",
        severity="fatal",
        needles=("Only one connector can produce KV transfer params",),
        cause=both(
            "Two connectors of a MultiConnector both produce transfer parameters.",
            "MultiConnector 中的两个连接器同时产生传输参数。",
        ),
        remedy=both(
            "Let the mode compose the PD connector with the cache; take an engine version the "
            "mode names.",
            "由模式组合 PD 连接器与缓存；使用模式列出的引擎版本。",
        ),
        sample="RuntimeError: Only one connector can produce KV transfer params",
        source="LMCache/LMCache#3866",
    ),
    Rule(
        id="pairing.context_length",
        severity="warning",
        ends=False,
        needles=("maximum context length is",),
        pattern=(
            r"maximum context length is (?P<limit>\d+) tokens.{0,60}(?:prompt contains at "
            r"least|requested) (?P<asked>\d+)"
        ),
        cause=both(
            "A request of {asked} tokens is longer than this member's context length of "
            "{limit}: prefill has computed it in vain.",
            "请求的 {asked} 个 token 超过该成员的上下文长度 {limit}：prefill 已白白计算。",
        ),
        remedy=both(
            "Give both roles the same --max-model-len.",
            "为两个角色设置相同的 --max-model-len。",
        ),
        sample=(
            "This model's maximum context length is 1000 tokens. However, your prompt contains at "
            "least 1001 input tokens"
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="pairing.transfer_id",
        severity="warning",
        ends=False,
        needles=("Missing transfer_id in kv_transfer_params",),
        cause=both(
            "The router sends no transfer_id, so no KV is moved and decode computes every "
            "prompt again.",
            "Router 未发送 transfer_id，因此不会传输 KV，decode 会重新计算每个提示词。",
        ),
        remedy=both(
            "Use a router that knows this connector (--kv-connector mooncake); a toy proxy "
            "does not.",
            "使用支持该连接器的 router（--kv-connector mooncake）；示例代理不支持。",
        ),
        sample="Missing transfer_id in kv_transfer_params from router!",
        source="kvcache-ai/Mooncake#4071",
    ),
    Rule(
        id="pairing.engine_id",
        severity="fatal",
        ends=False,
        needles=("engine ID mismatch",),
        pattern=(
            r"Remote NIXL agent engine ID mismatch\. Expected (?P<expected>[\w-]{1,80}), ?"
            r"received (?P<received>[\w-]{1,80})"
        ),
        cause=both(
            "Decode was sent to a prefill's earlier life: engine {expected} is wanted, {received} "
            "lives there now.",
            "decode 被指向某个 prefill 之前的实例：期望引擎 {expected}，当前为 {received}。",
        ),
        remedy=both(
            "The prefill restarted and somebody still hands out its old id: replace the router, "
            "then restart the prefill that does.",
            "该 prefill 已重启，但仍有一方提供其旧 ID：先替换 router，再重启该 prefill。",
        ),
        sample=(
            "RuntimeError: Remote NIXL agent engine ID mismatch. Expected "
            "64818783-a96b-4a4a-b04f-4cdeecdc1410, received 5c2b7ab9-5f7e-4c0f-9f51-7c9be8a4b1d2."
        ),
        source="vLLM 0.32, its NIXL handshake",
    ),
    Rule(
        id="pairing.handshake",
        severity="fatal",
        symptom=True,
        ends=False,
        needles=("NIXL transfer failure: handshake",),
        pattern=(
            r"NIXL transfer failure: (?P<kind>handshake\w*)(?:.{0,700}?'remote_host': "
            r"'(?P<addr>[^']{1,60})', 'remote_port': (?P<port>\d+))?"
        ),
        cause=both(
            "Decode could not agree with a prefill ({kind}); what follows in its log says why.",
            "decode 与某个 prefill 握手失败（{kind}）；日志后文说明原因。",
        ),
        remedy=both(
            "Look at the prefill it names: it may be gone, unreachable or configured differently.",
            "检查其指名的 prefill：可能已退出、不可达或配置不同。",
        ),
        sample=(
            "(Worker pid=26549) ERROR 11-30 04:56:45 [base_worker.py:1318] NIXL transfer failure: "
            "handshake_setup_failed | Context: {'failure_type': 'handshake_setup_failed', "
            "'request_id': None, 'engine_id': '64818783-a96b-4a4a-b04f-4cdeecdc1410', "
            "'remote_engine_id': 'dead'}"
        ),
        source="vLLM 0.32 with NIXL, run for this project",
    ),
    Rule(
        id="pairing.load_failed",
        severity="fatal",
        symptom=True,
        ends=False,
        needles=("due to KV load failure",),
        pattern=(
            r"Failing (?P<count>\d+) request\(s\) due to KV load failure "
            r"\(failure_policy=(?P<policy>\w+)"
        ),
        cause=both(
            "Decode could not load a prompt's KV and failed the request (policy {policy}).",
            "decode 无法加载提示词的 KV，请求失败（策略 {policy}）。",
        ),
        remedy=both(
            "Look for the transfer error above it, and at the prefill that served the request.",
            "查看其上方的传输错误，以及处理该请求的 prefill。",
        ),
        sample=(
            "(EngineCore pid=32657) ERROR 11-30 04:56:06 [scheduler.py:3417] Failing 1 request(s) "
            "due to KV load failure (failure_policy=fail, 246 tokens affected)."
        ),
        source="vLLM 0.32 with NIXL, run for this project",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
