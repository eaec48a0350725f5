"""Rules on routers."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

ROUTER: tuple[Rule, ...] = (
    Rule(
        id="router.no_prefill",
        severity="fatal",
        needles=("PD disaggregation mode requires --prefill",),
        cause=both(
            "vllm-router was started without prefill peers; it refuses that, with --enable-igw "
            "too.",
            "vllm-router 启动时没有 prefill 对端；即使使用 --enable-igw 也会拒绝。",
        ),
        remedy=both(
            "Pass --prefill and --decode of ready members; a custom router's command has to "
            "carry its peers.",
            "传入已就绪成员的 --prefill 与 --decode；自定义 router 命令须包含对端。",
        ),
        sample="ValueError: PD disaggregation mode requires --prefill",
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="router.peers_late",
        severity="fatal",
        needles=("waiting for hosts [",),
        pattern=(
            r"Timeout (?P<seconds>\d+)s waiting for hosts \[(?P<hosts>[^\]]{1,300})\] to become "
            r"healthy"
        ),
        cause=both(
            "The router waited {seconds} seconds for {hosts} and ended: that peer never became "
            "healthy.",
            "Router 等待 {hosts} {seconds} 秒后退出：该对端始终未就绪。",
        ),
        remedy=both(
            "Diagnose that member first; a router started without it is well.",
            "先诊断该成员；不含它的 router 可正常启动。",
        ),
        sample=(
            'RuntimeError: Timeout 6s waiting for hosts ["http://127.0.0.1:18098"] to become '
            "healthy. Please set --router-worker-startup-timeout-secs "
            "(sglang_router.launch_server) to a larger value."
        ),
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="router.bootstrap_query",
        severity="warning",
        needles=("Mooncake bootstrap query attempt",),
        pattern=(
            r"Mooncake bootstrap query attempt (?P<attempt>\d+)/(?P<most>\d+) to "
            r"http://(?P<addr>[\w.]{1,60}):(?P<port>\d+)"
        ),
        cause=both(
            "The router cannot ask the prefill's bootstrap server at {addr} port {port}; it "
            "does not listen itself until it can.",
            "Router 无法访问 {addr} 端口 {port} 的 prefill 引导服务；在此之前它自身也不监听。",
        ),
        remedy=both(
            "See that the prefill listens there (VLLM_MOONCAKE_BOOTSTRAP_PORT) and that the "
            "router was given that port, not the default 8998.",
            "确认 prefill 在该端口监听（VLLM_MOONCAKE_BOOTSTRAP_PORT），"
            "且传给 router 的是该端口而非默认 8998。",
        ),
        sample=(
            "Mooncake bootstrap query attempt 1/30 to http://127.0.0.1:8998/query failed: error "
            "sending request, retrying in 1s"
        ),
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="router.prefill_unreachable",
        severity="fatal",
        ends=False,
        needles=(
            "Prefill request failed to",
            "Prefill request to",
        ),
        pattern=r"Prefill request (?:failed )?to http://(?P<addr>[\w.-]{1,80}):(?P<port>\d+)",
        cause=both(
            "The router cannot reach the prefill at {addr} port {port}: requests sent to it "
            "fail until the router drops it.",
            "Router 无法连接 {addr} 端口 {port} 的 prefill：在 router 剔除它之前，"
            "发往它的请求都会失败。",
        ),
        remedy=both(
            "Look at that member; vllm-router takes up to three minutes to drop a dead peer by "
            "itself.",
            "检查该成员；vllm-router 自行剔除失效对端最多需三分钟。",
        ),
        sample=(
            "2026-11-30 04:21:07 ERROR vllm_router_rs::routers::http::vllm_pd_router: "
            "src/routers/http/vllm_pd_router.rs:2106: Two-stage processing failed: Network error: "
            "Prefill request failed to http://127.0.0.1:18001/v1/completions: error sending "
            "request for url (http://127.0.0.1:18001/v1/completions) caused by: client error "
            "(Connect) caused by: tcp connect error caused by: Connection refused (os error 111)"
        ),
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="router.decode_unreachable",
        severity="fatal",
        ends=False,
        needles=("Decode request failed to",),
        pattern=r"Decode request failed to (?:http://)?(?P<addr>[\w.-]{1,80}):(?P<port>\d+)",
        cause=both(
            "The router cannot reach the decode at {addr} port {port}.",
            "Router 无法连接 {addr} 端口 {port} 的 decode。",
        ),
        remedy=both(
            "Look at that member.",
            "检查该成员。",
        ),
        sample=(
            "Request processing failed: Network error: Decode request failed to "
            "http://127.0.0.1:18101/v1/completions: error sending request"
        ),
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="router.prefill_error",
        severity="fatal",
        ends=False,
        needles=(
            "Prefill server returned error status",
            "Prefill server http",
        ),
        pattern=(
            r"Prefill server (?:returned error status "
            r'prefill_url="?)?http://(?P<addr>[\w.-]{1,80}):(?P<port>\d+)'
        ),
        cause=both(
            "The prefill at {addr} port {port} answers with an error.",
            "{addr} 端口 {port} 的 prefill 返回错误。",
        ),
        remedy=both(
            "Diagnose that prefill; other vllm-router versions hide this and answer 200.",
            "诊断该 prefill；其他版本的 vllm-router 会掩盖此问题并返回 200。",
        ),
        sample=(
            "2026-11-30 04:47:49 ERROR http_request{method=POST uri=/v1/completions "
            'version=HTTP/1.1 module="smg" request_id="cmpl-QSqNm0lTXCwSC3QlNKfdWEH1"}: '
            "smg::routers::http::pd_router: "
            "src/routers/http/pd_router.rs:980: Prefill server returned error status "
            "prefill_url=http://127.0.0.1:18022 status=500 Internal Server Error"
        ),
        source="sglang-router 0.3.2, run for this project; the folder it was built in left out",
    ),
    Rule(
        id="router.decode_error",
        severity="warning",
        ends=False,
        needles=("Decode response status: 5",),
        pattern=r"Decode response status: (?P<status>5\d\d)",
        cause=both(
            "A decode answered {status}; the router passes it on.",
            "某个 decode 返回 {status}；router 原样转发。",
        ),
        remedy=both(
            "Look at the decodes' logs of that time.",
            "查看 decode 在该时刻的日志。",
        ),
        sample=(
            "2026-11-30 04:20:59  INFO vllm_router_rs::routers::http::vllm_pd_router: "
            "src/routers/http/vllm_pd_router.rs:1429: 📥 Decode response status: 500 Internal "
            "Server Error"
        ),
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="router.no_workers",
        severity="fatal",
        symptom=True,
        ends=False,
        needles=(
            "No available workers",
            "No prefill workers available",
            "No decode workers available",
            "No available prefill workers",
            "No available decode workers",
            "No workers available:",
            "Failed to select prefill worker",
            "Prefill policy failed to select",
        ),
        cause=both(
            "The router has no usable peer for a role: none is registered, or its circuit "
            "breaker is open.",
            "Router 在某个角色上没有可用对端：未注册，或熔断器已打开。",
        ),
        remedy=both(
            "Compare GET /workers with the ready members; an open breaker closes 60 seconds "
            "after the peer is well.",
            "将 GET /workers 与就绪成员比较；对端恢复 60 秒后熔断器关闭。",
        ),
        sample=(
            "smg::routers::http::pd_router: src/routers/http/pd_router.rs:170: Failed to select PD "
            "pair error=No prefill workers available. Please check if prefill servers are "
            "configured and healthy."
        ),
        source="sglang-router 0.3.2, run for this project",
    ),
    Rule(
        id="router.peer_down",
        severity="warning",
        ends=False,
        needles=("Both HTTP and gRPC health checks failed for",),
        pattern=r"health checks failed for http://(?P<addr>[\w.-]{1,80}):(?P<port>\d+)",
        cause=both(
            "The router cannot reach {addr} port {port} and leaves it out; it tries again by "
            "itself.",
            "Router 无法连接 {addr} 端口 {port}，暂不使用；会自动重试。",
        ),
        remedy=both(
            "Normal while that member loads; else look at it.",
            "成员加载期间属正常；否则检查该成员。",
        ),
        sample=(
            "2026-11-30 04:48:23  WARN smg::workflow::event: "
            "src/workflow/event.rs:233: Step failed "
            "instance_id=432ece8a-082d-4399-baef-13382d8f2b59 step_id=detect_connection_mode "
            'error="Step failed: detect_connection_mode - Both HTTP and gRPC health checks failed '
            'for http://127.0.0.1:18097: HTTP: Health check failed"'
        ),
        source="sglang-router 0.3.2, run for this project; the folder it was built in left out",
    ),
    Rule(
        id="router.no_pair",
        severity="fatal",
        ends=False,
        needles=("no_compatible_pd_pair",),
        cause=both(
            "The gateway finds no prefill and decode with the same transport.",
            "网关找不到传输方式相同的 prefill 与 decode。",
        ),
        remedy=both(
            "Run one mode's connector on all members of the group.",
            "组内所有成员使用同一模式的连接器。",
        ),
        sample="503 no_compatible_pd_pair",
        source="smg-project/smg#2486",
    ),
    Rule(
        id="router.policy",
        severity="fatal",
        needles=("policy is not supported in PD disaggregated mode",),
        cause=both(
            "This router version cannot use that policy with PD.",
            "该 router 版本不支持在 PD 下使用此策略。",
        ),
        remedy=both(
            "Take another policy, or a newer router.",
            "换用其他策略，或升级 router。",
        ),
        sample="CacheAware policy is not supported in PD disaggregated mode",
        source="sgl-project/sglang#7904",
    ),
    Rule(
        id="router.discovery",
        severity="warning",
        needles=("No ZMQ discovery result for",),
        cause=both(
            "The router runs without its PD mode: the flag was lost on the way.",
            "Router 未进入 PD 模式：启动标志丢失。",
        ),
        remedy=both(
            "Start it with the mode's own command; check the first lines of its log for the mode.",
            "使用模式提供的命令启动；查看日志开头的模式信息。",
        ),
        sample="No ZMQ discovery result for http://192.0.2.7:8000 (Prefill), using fallback",
        source="vllm-project/router#47",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
