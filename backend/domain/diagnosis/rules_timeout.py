"""Rules on waiting in vain."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

TIMEOUT: tuple[Rule, ...] = (
    Rule(
        id="timeout.engine_ready",
        severity="fatal",
        symptom=True,
        needles=(
            "Timed out waiting for engine core processes to start",
            "Timed out waiting for engines to send initial message",
        ),
        pattern=r"Timed out waiting for engine(?:.{0,200}Waited (?P<seconds>\d+)s)?",
        cause=both(
            "The engine's core was not ready in time ({seconds} seconds); what held it up "
            "stands above, or it is the loading of weights.",
            "引擎核心未在规定时间内就绪（{seconds} 秒）；原因见上文，或是权重加载过慢。",
        ),
        remedy=both(
            "Where nothing is above: raise VLLM_ENGINE_READY_TIMEOUT_S for large weights on a "
            "slow disk.",
            "若上文无异常：权重大而磁盘慢时，调大 VLLM_ENGINE_READY_TIMEOUT_S。",
        ),
        sample=(
            "TimeoutError: Timed out waiting for engines to send initial message on input socket."
        ),
        source="vllm-project/vllm-ascend#7098",
    ),
    Rule(
        id="timeout.rpc",
        severity="fatal",
        symptom=True,
        needles=("RPC call to",),
        pattern=r"RPC call to (?P<name>\w+) timed out",
        cause=both(
            "A worker did not answer ({name}): it hangs, or its accelerator does.",
            "工作进程无应答（{name}）：进程或其加速器挂起。",
        ),
        remedy=both(
            "Look in dmesg for Xid lines and at the card's health before blaming the engine.",
            "先查看 dmesg 中的 Xid 与卡的健康状态，再怀疑引擎。",
        ),
        sample="TimeoutError: RPC call to sample_tokens timed out",
        source="wtdcode/vllm-backport#62",
    ),
    Rule(
        id="timeout.collective",
        severity="fatal",
        symptom=True,
        needles=("Watchdog caught collective operation timeout",),
        cause=both(
            "The ranks of one member waited for one another until the watchdog ended them.",
            "同一成员的各 rank 互相等待，直到看门狗终止。",
        ),
        remedy=both(
            "Find the rank that stopped first, and look at its card and link.",
            "找出最先停止的 rank，检查其卡与链路。",
        ),
        sample=(
            "[rank1]:[E324 13:00:25.428029551 compiler_depend.ts:574] [Rank 1] Watchdog caught "
            "collective operation timeout: WorkHCCL(SeqNum=196, OpType=ALLREDUCE, "
            "Timeout(ms)=3600000) ran for 3600185 milliseconds before timing out."
        ),
        source="vllm-project/vllm-ascend#382",
    ),
    Rule(
        id="timeout.shared_memory_wait",
        severity="warning",
        needles=("No available shared memory broadcast block found",),
        cause=both(
            "A worker has been busy or hanging for a minute: compilation and weight loading "
            "look the same.",
            "工作进程忙碌或挂起已达一分钟：编译与加载权重时也会如此。",
        ),
        remedy=both(
            "Wait while the log goes on; after ten minutes of nothing else, restart it.",
            "日志仍在推进则等待；十分钟无其他输出则重启。",
        ),
        sample=(
            "(EngineCore pid=395) INFO 07-12 02:35:01 [shm_broadcast.py:705] No available shared "
            "memory broadcast block found in 60 seconds. This typically happens when some "
            "processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv "
            "cache quantization)."
        ),
        source="vLLM 0.2x, public deployment notes",
    ),
    Rule(
        id="timeout.forced_release",
        severity="warning",
        ends=False,
        needles=("Force freed expired request",),
        cause=both(
            "Prefill gave up KV that no decode fetched in time.",
            "prefill 释放了 decode 未及时取走的 KV。",
        ),
        remedy=both(
            "Look at decode and at the router's connection to it; this window is "
            "VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT.",
            "检查 decode 以及 router 到它的连接；该时限为 VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT。",
        ),
        sample=(
            "(Worker_DP3_TP7_DCP7_EP31 pid=15787) ERROR 07-20 12:52:44 [mooncake_connector.py:233] "
            "Force freed expired request: chatcmpl-1cd09c04-6209-4f3a-8d51-84278e17a30d-9aef698a. "
            "Reason: Request exceeded timeout threshold (480 seconds)."
        ),
        source="vllm-project/vllm-ascend#12432",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
