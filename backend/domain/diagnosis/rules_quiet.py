"""Lines that are no cause: look-alikes, tails of failures, and requests to end."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

QUIET: tuple[Rule, ...] = (
    Rule(
        id="harmless.ulimit",
        severity="harmless",
        needles=("Found ulimit of",),
        cause=both(
            "A note on a limit that names an error which did not happen.",
            "仅提示限制，所述错误并未发生。",
        ),
        sample=(
            "(APIServer pid=30968) WARNING 11-30 04:47:41 [system_utils.py:255] Found ulimit of "
            "20000 and failed to automatically increase with error current limit exceeds maximum "
            "limit. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`. "
            "Consider increasing with ulimit -n"
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="harmless.no_rdma",
        severity="harmless",
        needles=("No RDMA devices found",),
        cause=both(
            "Mooncake without RDMA hardware: it goes on over TCP.",
            "没有 RDMA 硬件时 Mooncake 会改用 TCP。",
        ),
        sample=(
            "W20250516 09:00:52.240088 45697 topology.cpp:55] No RDMA devices found, check your "
            "device installation"
        ),
        source="kvcache-ai/Mooncake#257",
    ),
    Rule(
        id="harmless.segment",
        severity="harmless",
        needles=("Local segment descriptor not found",),
        cause=both(
            "Logged at level error by a healthy Mooncake on TCP.",
            "健康的 Mooncake（TCP）也会以错误级别记录。",
        ),
        sample=(
            "E0516 09:00:52.240201 45697 transfer_metadata.cpp:514] Local segment descriptor not "
            "found"
        ),
        source="gpustack/gpustack, notes of its mode catalogue",
    ),
    Rule(
        id="harmless.loading",
        severity="harmless",
        needles=(
            "Loading weights",
            "Loading safetensors checkpoint",
            "core engine proc(s) to start",
        ),
        cause=both(
            "Progress of the start.",
            "启动进度。",
        ),
        sample=(
            "(APIServer pid=11) DEBUG 03-17 06:49:52 [v1/engine/utils.py:1000] Waiting for 1 "
            "local, 0 remote core engine proc(s) to start."
        ),
        source="vllm-project/vllm-ascend#7352",
    ),
    Rule(
        id="harmless.failed_zero",
        severity="harmless",
        needles=(
            "Num failed transfers=0",
            "KV Transfer metrics:",
        ),
        cause=both(
            "A periodic line of counters.",
            "周期性的计数行。",
        ),
        sample=(
            "(APIServer pid=26346) INFO 11-30 04:41:10 [metrics.py:103] KV Transfer metrics: Num "
            "successful transfers=5, Avg xfer time (ms)=12.101, P90 xfer time (ms)=31.087, Avg "
            "post time (ms)=0.544, P90 post time (ms)=0.903, Avg MB per transfer=0.225, Throughput "
            "(MB/s)=18.594, Avg number of descriptors=2.0, Num failed transfers=0, Num KV expired "
            "reqs=0, Num notifs after expiry=0"
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="harmless.tokenizer",
        severity="harmless",
        needles=("Failed to load tokenizer for model",),
        cause=both(
            "The SGLang router looks for a tokenizer on the hub and works without one.",
            "SGLang router 尝试从仓库获取分词器，没有也能工作。",
        ),
        sample=(
            "2026-11-30 04:48:23  WARN smg::core::steps::worker::local::register_tokenizer: "
            "src/core/steps/worker/local/register_tokenizer.rs:79: Failed to load tokenizer for "
            "model m1 from /m: Failed to download tokenizer from HuggingFace: Failed to fetch "
            "model '/m' from HuggingFace: request error"
        ),
        source="sglang-router 0.3.2, run for this project",
    ),
    Rule(
        id="harmless.worker_exists",
        severity="harmless",
        needles=(
            "already exists",
            "Workflow failed due to step dependency failure",
        ),
        pattern=r"(?:[Ww]orker \S+ already exists|Workflow failed due to step dependency failure)",
        cause=both(
            "A worker was added twice; the router keeps one.",
            "重复添加对端；router 只保留一个。",
        ),
        sample=(
            "2026-11-30 04:47:42  WARN smg::core::job_queue: src/core/job_queue.rs:809: Failed "
            "job: type=AddWorker, worker=http://127.0.0.1:18022, error=Workflow failed at step "
            "create_worker: Step failed: create_worker - Worker http://127.0.0.1:18022 already "
            "exists"
        ),
        source="sglang-router 0.3.2, run for this project",
    ),
    Rule(
        id="harmless.client_error",
        severity="harmless",
        needles=(
            "request failed with client error",
            "Failed to query server info from",
        ),
        cause=both(
            "A client asked for something the router or engine does not have.",
            "客户端请求了 router 或引擎没有的内容。",
        ),
        sample=(
            "2026-11-30 04:20:37  WARN vllm_router_rs::routers::router_manager: "
            "src/routers/router_manager.rs:176: Failed to query server info from "
            "http://127.0.0.1:18003: Failed to connect to server: error sending request for url "
            "(http://127.0.0.1:18003/get_server_info)"
        ),
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="harmless.leftovers",
        severity="harmless",
        needles=(
            "leaked semaphore",
            "leaked shared_memory",
            "nanobind: ",
            "process group has NOT been destroyed",
            "destroy_process_group() was not called",
            "FutureWarning",
            "DeprecationWarning",
        ),
        cause=both(
            "Python cleaning up, or a note for developers.",
            "Python 清理信息或面向开发者的提示。",
        ),
        sample=(
            "/usr/local/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: "
            "resource_tracker: There appear to be 1 leaked semaphore objects to clean up at "
            "shutdown"
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="harmless.driver_note",
        severity="harmless",
        needles=("is invalid or not supported yet",),
        cause=both(
            "A note of torch_npu on the driver's version.",
            "torch_npu 关于驱动版本的提示。",
        ),
        sample=(
            "[rank0]:[W106 06:43:02.555922410 compiler_depend.ts:117] Warning: Driver Version:  is "
            "invalid or not supported yet. (function operator())"
        ),
        source="vllm-project/vllm-ascend#5635",
    ),
    Rule(
        id="harmless.optional_import",
        severity="harmless",
        needles=("Failed to import from vllm._C",),
        cause=both(
            "A compiled part for another platform; vllm-ascend and CPU builds do without.",
            "其他平台的编译组件；vllm-ascend 与 CPU 构建不需要。",
        ),
        sample=(
            "WARNING 06-16 15:10:59 [_custom_ops.py:21] Failed to import from vllm._C with "
            "ImportError('libcudart.so.12: cannot open shared object file: No such file or "
            "directory')"
        ),
        source="vllm-project/vllm-ascend#1305",
    ),
    Rule(
        id="consequence.engine",
        severity="consequence",
        needles=(
            "Engine core initialization failed",
            "Failed core proc(s)",
            "EngineCore failed to start",
            "Engine process failed to start",
            "EngineDeadError",
            "EngineCore encountered",
            "AsyncLLM output_handler failed",
            "WorkerProc hit an exception",
            "WorkerProc initialization failed",
            "EngineCore hit an exception",
            "Worker failed with error",
            "Process EngineCore",
            "Exception in worker",
        ),
        cause=both(
            "The parent process tells that its engine failed; why stands above.",
            "父进程报告引擎失败；原因见上文。",
        ),
        sample=(
            "(APIServer pid=223598) RuntimeError: Engine core initialization failed. See root "
            "cause above. Failed core proc(s): {}"
        ),
        source="vllm-project/vllm#27508",
    ),
    Rule(
        id="consequence.sglang",
        severity="consequence",
        needles=(
            "hit an exception: Traceback",
            "Received sigquit from a child process",
            "sglang subprocess exited",
        ),
        cause=both(
            "SGLang's main process tells that a child failed; why stands above.",
            "SGLang 主进程报告子进程失败；原因见上文。",
        ),
        sample=(
            "[2026-02-27 15:27:13] Received sigquit from a child process. It usually means the "
            "child failed."
        ),
        source="sgl-project/sglang, public run notes",
    ),
    Rule(
        id="consequence.traceback",
        severity="consequence",
        needles=(
            "Traceback (most recent call last)",
            "TraceBack (most recent call last)",
            "During handling of the above exception",
            "The above exception was the direct cause",
            "CancelledError",
            "For further information visit",
            "validation error for",
            "validation errors for",
            "Exception in thread",
        ),
        cause=both(
            "The frame of a failure, not its cause.",
            "失败的外围信息，而非原因。",
        ),
        sample="pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="consequence.hccl",
        severity="consequence",
        needles=(
            "call trace: hcclRet",
            "hccl initialize failed",
            "HCCL function error",
            "DIST call hccl api failed",
            "call acl api failed",
        ),
        cause=both(
            "The callers of an HCCL or ACL failure.",
            "HCCL 或 ACL 失败的调用栈。",
        ),
        sample=(
            "[ERROR] HCCL(60570,):2025-12-04-14:46:07.911.316 [hccl_socket_manager.cc:54] "
            "[60570][ServerInit]call trace: hcclRet -> 7"
        ),
        source="vllm-project/vllm-ascend#4725",
    ),
    Rule(
        id="consequence.peer_closed",
        severity="consequence",
        needles=(
            "Broken pipe",
            "Connection reset by peer",
            "Connection closed by peer",
            "closed by peer",
        ),
        cause=both(
            "Another process of the same member ended first.",
            "同一成员的另一个进程先退出。",
        ),
        sample="BrokenPipeError: [Errno 32] Broken pipe",
        source="gpustack/gpustack#6019",
    ),
    Rule(
        id="consequence.request",
        severity="consequence",
        needles=(
            "failed with an internal error during generation",
            "500 Internal Server Error",
            "request failed with server error",
            "Skipping KV post-processing for failed request",
            "Failed to connect to segment:",
        ),
        cause=both(
            "A request failed because of what stands above.",
            "请求因上文原因失败。",
        ),
        sample=(
            "(APIServer pid=5443) ERROR 11-30 04:58:52 [serving.py:203] Request "
            "cmpl-faa2f5c7b5c24fdfacade5d9fff2f3fb failed with an internal error during generation"
        ),
        source="vLLM 0.32 with NIXL, run for this project",
    ),
    Rule(
        id="life.asked",
        severity="asked",
        needles=(
            "trigger received signal=SIG",
            "Received terminate signal",
            "API server: shutdown triggered",
            "Gracefully exiting",
            "SIGTERM received",
        ),
        cause=both(
            "It was told to end, and ended.",
            "收到结束请求并退出。",
        ),
        remedy=both(
            "Nothing to mend. Look at who stopped it: the group's events tell.",
            "无需处理。谁停止了它，见组的事件。",
        ),
        sample=(
            "2026-11-30 04:20:00  INFO vllm_router_rs::server: src/server.rs:1070: Received "
            "terminate signal, starting graceful shutdown"
        ),
        source="vllm-router 0.1.15, run for this project",
    ),
)
"""Masks and marks; see `Rule.severity`."""
