"""Rules on the memory of accelerators."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

MEMORY: tuple[Rule, ...] = (
    Rule(
        id="memory.cuda",
        severity="fatal",
        needles=(
            "CUDA out of memory",
            "CUDA error: out of memory",
            "HIP out of memory",
        ),
        pattern=(
            r"out of memory(?:\. Tried to allocate (?P<asked>[\d.]+ \w+)\. GPU (?P<index>\d+) has "
            r"a total capacity of (?P<total>[\d.]+ \w+) of which (?P<free>[\d.]+ \w+) is free)?"
        ),
        cause=both(
            "The accelerator's memory is full (asked {asked}, free {free} of {total}).",
            "加速器显存不足（申请 {asked}，剩余 {free}，共 {total}）。",
        ),
        remedy=both(
            "Lower --gpu-memory-utilization, --max-num-seqs or --max-model-len; two roles on "
            "one card each take 0.9 of it by default.",
            "调低 --gpu-memory-utilization、--max-num-seqs 或 --max-model-len；"
            "同一张卡上的两个角色默认各占 0.9。",
        ),
        sample=(
            "(EngineCore pid=112) ERROR 05-01 14:39:06 [core.py:1131] torch.OutOfMemoryError: CUDA "
            "out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 23.56 GiB "
            "of which 21.75 MiB is free."
        ),
        source="noonghunna/club-3090#16",
    ),
    Rule(
        id="memory.npu",
        severity="fatal",
        needles=(
            "NPU out of memory",
            "EL0004",
            "error code is 507899",
            "error code is 207001",
        ),
        pattern=(
            r"(?:NPU out of memory\. Tried to allocate (?P<asked>[\d.]+ \w+) \(NPU (?P<index>\d+); "
            r"(?P<total>[\d.]+ \w+) total capacity.{0,120}?(?P<free>[\d.]+ \w+) free|EL0004|NPU "
            r"out of memory|507899|207001)"
        ),
        cause=both(
            "The NPU's memory is full (asked {asked}, free {free} of {total}).",
            "NPU 显存不足（申请 {asked}，剩余 {free}，共 {total}）。",
        ),
        remedy=both(
            "Lower --gpu-memory-utilization or --max-model-len, set "
            "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, and see who else uses the card.",
            "调低 --gpu-memory-utilization 或 --max-model-len，设置 "
            "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True，并检查卡上其他进程。",
        ),
        sample=(
            "RuntimeError: NPU out of memory. Tried to allocate 3.47 GiB (NPU 0; 60.97 GiB total "
            "capacity; 58.92 GiB already allocated; 58.92 GiB current active; 1.66 GiB free; 58.95 "
            "GiB reserved in total by PyTorch)"
        ),
        source="vllm-project/vllm-ascend#1987",
    ),
    Rule(
        id="memory.taken",
        severity="fatal",
        needles=("on startup is less than desired",),
        pattern=(
            r"Free memory on device (?P<device>[\w:]{1,20}) \((?P<free>[\d.]+)/(?P<total>[\d.]+) "
            r"GiB\) on startup is less than desired"
        ),
        cause=both(
            "Something else holds memory of {device}: {free} of {total} GiB are free at the start.",
            "{device} 的显存被其他进程占用：启动时仅剩 {free}/{total} GiB。",
        ),
        remedy=both(
            "See which process holds it (`pdtui doctor`), often an engine left over from a "
            "killed start; or lower --gpu-memory-utilization.",
            "查看占用者（`pdtui doctor`），常为上次被强行结束的启动遗留的引擎；或调低 "
            "--gpu-memory-utilization。",
        ),
        sample=(
            "(EngineCore_DP0 pid=6940) ValueError: Free memory on device cuda:1 (19.77/22.05 GiB) "
            "on startup is less than desired GPU memory utilization (0.9, 19.84 GiB). Decrease GPU "
            "memory utilization or reduce GPU memory used by other processes."
        ),
        source="pytorch/pytorch#175666",
    ),
    Rule(
        id="memory.no_cache",
        severity="fatal",
        needles=("No available memory for the cache blocks",),
        cause=both(
            "The weights leave no memory for the KV cache.",
            "权重占满显存，没有空间留给 KV 缓存。",
        ),
        remedy=both(
            "Spread the model over more accelerators, take a quantised one, or raise "
            "--gpu-memory-utilization.",
            "将模型分到更多加速器、使用量化模型，或提高 --gpu-memory-utilization。",
        ),
        sample=(
            "ERROR 11-18 18:07:28 engine.py:366] ValueError: No available memory for the cache "
            "blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
        ),
        source="vllm-project/vllm#10439",
    ),
    Rule(
        id="memory.context",
        severity="fatal",
        needles=(
            "To serve at least one request with the model",
            "is larger than the maximum number of tokens that can be stored in KV cache",
        ),
        pattern=(
            r"max seq len \((?P<asked>\d+)\).{0,200}?(?:estimated maximum model length is |stored "
            r"in KV cache \()(?P<most>\d+)"
        ),
        cause=both(
            "One request of {asked} tokens does not fit into the KV cache; {most} would.",
            "长度 {asked} 的单个请求放不进 KV 缓存；最多 {most}。",
        ),
        remedy=both(
            "Lower --max-model-len on both roles, or spread the model over more accelerators.",
            "在两个角色上调低 --max-model-len，或使用更多加速器。",
        ),
        sample=(
            "ValueError: To serve at least one request with the models's max seq len (131072), "
            "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(0.71 GiB). Based on the available memory, the estimated maximum model length is 5632."
        ),
        source="vllm-project/tpu-inference#223",
    ),
    Rule(
        id="memory.sglang",
        severity="fatal",
        needles=("Not enough memory. Please try to increase --mem-fraction-static",),
        cause=both(
            "SGLang has no memory left for the KV cache after the weights.",
            "SGLang 在加载权重后没有剩余内存用于 KV 缓存。",
        ),
        remedy=both(
            "Raise --mem-fraction-static, or spread the model over more accelerators.",
            "提高 --mem-fraction-static，或使用更多加速器。",
        ),
        sample="RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        source="sgl-project/sglang#4330",
    ),
    Rule(
        id="memory.profiling",
        severity="fatal",
        needles=("Error in memory profiling",),
        cause=both(
            "Another process freed memory of the same card while this one measured it.",
            "本进程测量显存时，同一张卡上的其他进程释放了显存。",
        ),
        remedy=both(
            "Start it again; two members of one card must not start at once.",
            "重新启动即可；同一张卡上的两个成员不应同时启动。",
        ),
        sample="AssertionError: Error in memory profiling. Initial free memory 82.94 GiB",
        source="vllm-project/vllm#56830",
    ),
    Rule(
        id="memory.prompt_budget",
        severity="warning",
        ends=False,
        needles=("max_total_num_tokens=",),
        pattern=r"max_total_num_tokens=(?P<most>\d{1,6}), .{0,160}context_len=(?P<asked>\d{6,})",
        cause=both(
            "The KV cache holds {most} tokens and the context length says {asked}: longer "
            "prompts may be answered with garbage.",
            "KV 缓存仅容纳 {most} 个 token，而上下文长度为 {asked}：更长的提示词可能得到错误回答。",
        ),
        remedy=both(
            "Lower the context length on both roles, or raise --mem-fraction-static.",
            "在两个角色上调低上下文长度，或提高 --mem-fraction-static。",
        ),
        sample=(
            "max_total_num_tokens=284928, chunked_prefill_size=8192, max_prefill_tokens=16384, "
            "max_running_requests=128, context_len=1048576, available_gpu_mem=12.73 GB"
        ),
        source="sgl-project/sglang#30233",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
