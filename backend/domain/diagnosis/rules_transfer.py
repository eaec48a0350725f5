"""Rules on KV transfers that fail between sides that do."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

TRANSFER: tuple[Rule, ...] = (
    Rule(
        id="transfer.side_channel_silent",
        severity="fatal",
        ends=False,
        needles=("zmq.error.Again: Resource temporarily unavailable",),
        cause=both(
            "The prefill's side channel did not answer within 5 seconds: it is gone, or not "
            "reachable from here.",
            "prefill 的旁路通道 5 秒内未应答：它已退出，或从此处不可达。",
        ),
        remedy=both(
            "See whether that prefill lives and listens on its side channel's address; open "
            "the way between the hosts.",
            "检查该 prefill 是否存活并监听其旁路通道地址；打通主机之间的网络。",
        ),
        sample=(
            "(Worker pid=26549) ERROR 11-30 04:56:45 [base_worker.py:1318] zmq.error.Again: "
            "Resource temporarily unavailable"
        ),
        source="vLLM 0.32 with NIXL, run for this project",
    ),
    Rule(
        id="transfer.lease_expired",
        severity="warning",
        ends=False,
        needles=("Releasing expired KV blocks for request",),
        cause=both(
            "Prompts were computed and their KV was never fetched: decode failed, or did not "
            "ask before the lease ended.",
            "提示词已计算但其 KV 未被取走：decode 失败，或未在租约到期前取用。",
        ),
        remedy=both(
            "Look at decode: its handshakes, its load. A longer kv_lease_duration helps only a "
            "slow decode.",
            "检查 decode 的握手与负载。只有 decode 较慢时，延长 kv_lease_duration 才有帮助。",
        ),
        sample=(
            "(EngineCore_DP0 pid=1392496) WARNING 01-14 15:08:18 [nixl_connector.py:1934] "
            "Releasing expired KV blocks for request "
            "cmpl-071dbdb6-f57e-444a-9271-990095b5913b-0-9586909d which were retrieved by 0 decode "
            "worker(s) within 0 seconds."
        ),
        source="vllm-project/vllm#32340",
    ),
    Rule(
        id="transfer.late_read",
        severity="warning",
        ends=False,
        needles=("Potentially invalid KV blocks for unrecognized request",),
        cause=both(
            "A decode fetched KV after its lease had ended: that answer may be wrong.",
            "decode 在租约到期后才取 KV：该回答可能有误。",
        ),
        remedy=both(
            "Lengthen kv_lease_duration, or add decode capacity.",
            "延长 kv_lease_duration，或增加 decode 容量。",
        ),
        sample=(
            "(EngineCore_DP0 pid=1392496) ERROR 01-14 15:08:33 [nixl_connector.py:1961] "
            "Potentially invalid KV blocks for unrecognized request "
            "cmpl-071dbdb6-f57e-444a-9271-990095b5913b-0-9586909d were retrieved by a decode "
            "worker. They may have expired."
        ),
        source="vllm-project/vllm#32340",
    ),
    Rule(
        id="transfer.remote_gone",
        severity="fatal",
        ends=False,
        needles=("NIXL_ERR_REMOTE_DISCONNECT",),
        cause=both(
            "The other side's NIXL agent is gone: it was restarted, and this side still holds "
            "its old metadata.",
            "对侧的 NIXL 代理已失效：它已重启，而本侧仍持有旧元数据。",
        ),
        remedy=both(
            "Restart the whole group; some NIXL versions never recover from a peer's restart.",
            "重启整个组；某些 NIXL 版本无法从对端重启中恢复。",
        ),
        sample="nixl_cu12._bindings.nixlRemoteDisconnectError: NIXL_ERR_REMOTE_DISCONNECT",
        source="vllm-project/vllm#49238",
    ),
    Rule(
        id="transfer.nixl_backend",
        severity="fatal",
        symptom=True,
        ends=False,
        needles=("NIXL_ERR_BACKEND",),
        cause=both(
            "NIXL's transport failed: most often a network device that is not routable to the "
            "peer.",
            "NIXL 传输失败：多半是所用网络设备无法路由到对端。",
        ),
        remedy=both(
            "Set kv_transfer_ifname of both hosts to the interface that carries KV traffic, so "
            "that UCX_NET_DEVICES names it.",
            "将两台主机的 kv_transfer_ifname 设为承载 KV 流量的接口，使 UCX_NET_DEVICES 指向它。",
        ),
        sample="nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND",
        source="LMCache/LMCache#605",
    ),
    Rule(
        id="transfer.ascend_connect",
        severity="fatal",
        ends=False,
        needles=("ailed to connect to target:",),
        pattern=(
            r"ailed to connect to target: (?P<addr>[\w.]{1,60}):(?P<port>\d+), status: "
            r"(?P<status>\d+)"
        ),
        cause=both(
            "Decode cannot reach {addr} port {port} (ADXL status {status}): the cards' own "
            "network does not lead there.",
            "decode 无法到达 {addr} 端口 {port}（ADXL 状态 {status}）：NPU 卡自身的网络不通。",
        ),
        remedy=both(
            "Check each card with hccn_tool -ping, mount /etc/hccn.conf in both roles and use "
            "the host's network, not a container bridge.",
            "用 hccn_tool -ping 检查每张卡，两个角色都挂载 /etc/hccn.conf，"
            "并使用主机网络而非容器网桥。",
        ),
        sample=(
            "E1210 03:24:54.778028 2548307 ascend_direct_transport.cpp:820] Failed to connect to "
            "target: 172.16.100.99:25389, status: 103900"
        ),
        source="vllm-project/vllm-ascend#4866",
    ),
    Rule(
        id="transfer.ascend_timeout",
        severity="fatal",
        ends=False,
        needles=("Connect timeout to:",),
        pattern=r"Connect timeout to: .{0,60}?:(?P<port>\d+).{0,80}cost:(?P<cost>\d+) us",
        cause=both(
            "The first connection to a peer's card took longer than ASCEND_CONNECT_TIMEOUT, "
            "and that transfer was lost.",
            "首次连接对端 NPU 卡的时间超过 ASCEND_CONNECT_TIMEOUT，该次传输丢失。",
        ),
        remedy=both(
            "Raise ASCEND_CONNECT_TIMEOUT on both roles.",
            "调大两个角色的 ASCEND_CONNECT_TIMEOUT。",
        ),
        sample="Connect timeout to: 192.0.2.11:20033, timeout:10000 ms, cost:10016885 us",
        source="vllm-project/vllm-ascend#7401",
    ),
    Rule(
        id="transfer.mooncake_failed",
        severity="fatal",
        symptom=True,
        ends=False,
        needles=("Mooncake transfer failed, ret:",),
        pattern=r"Mooncake transfer failed, ret: (?P<ret>-?\d+)",
        cause=both(
            "A Mooncake transfer failed ({ret}). The request may still be answered with 200 "
            "and a wrong text, and so may later ones.",
            "Mooncake 传输失败（{ret}）。该请求仍可能返回 200 但内容错误，之后的请求也可能如此。",
        ),
        remedy=both(
            "Look at the fabric between the two hosts, then restart the group: KV that was "
            "kept may be wrong.",
            "检查两台主机之间的网络，然后重启整个组：保留的 KV 可能有误。",
        ),
        sample=(
            "(Worker_DP0_TP5 pid=2543213) ERROR 12-10 03:24:54 [mooncake_connector.py:329] Failed "
            "to transfer KV cache for request cmpl-09be0283-e039-40ce-aefa-da0f36c8cd46-0: "
            "Mooncake transfer failed, ret: -1"
        ),
        source="vllm-project/vllm-ascend#4866",
    ),
    Rule(
        id="transfer.session_dead",
        severity="fatal",
        ends=False,
        needles=("remote mooncake session",),
        pattern=r"remote mooncake session (?P<session>\S{1,80}) is not alive",
        cause=both(
            "SGLang has given up on a peer's Mooncake session ({session}) after one failed "
            "transfer, for good.",
            "SGLang 在一次传输失败后永久放弃了对端的 Mooncake 会话（{session}）。",
        ),
        remedy=both(
            "Set SGLANG_ENABLE_FAILED_SESSION_PROBE=true on prefill, and restart it now.",
            "在 prefill 上设置 SGLANG_ENABLE_FAILED_SESSION_PROBE=true，并立即重启。",
        ),
        sample=(
            "KVTransferError: Decode instance could be dead, remote mooncake session "
            "192.0.2.31:15790 is not alive"
        ),
        source="sgl-project/sglang#37022",
    ),
    Rule(
        id="transfer.bootstrap_register",
        severity="fatal",
        ends=False,
        needles=("failed to register to bootstrap server",),
        pattern=(
            r"failed to register to bootstrap server: .{0,60}?host='(?P<host>[^']{1,60})', "
            r"port=(?P<port>\d+)"
        ),
        cause=both(
            "Prefill could not register with its own bootstrap server on port {port}: it looks "
            "healthy and every request will abort.",
            "prefill 无法向自身端口 {port} 的引导服务注册：看似健康，但每个请求都会中止。",
        ),
        remedy=both(
            "Restart that prefill: it registered before the server listened. Give it a "
            "bootstrap port that nothing else uses.",
            "重启该 prefill：它在引导服务监听之前就注册了。为其分配独占的引导端口。",
        ),
        sample=(
            "[2026-04-21 11:36:21] Prefill instance failed to register to bootstrap server: "
            "HTTPConnectionPool(host='0.0.0.0', port=8998): Max retries exceeded with url: /route "
            "(Caused by NewConnectionError(\"HTTPConnection(host='0.0.0.0', port=8998): Failed to "
            'establish a new connection: [Errno 111] Connection refused"))'
        ),
        source="sgl-project/sglang#23430",
    ),
    Rule(
        id="transfer.bootstrap_timeout",
        severity="fatal",
        symptom=True,
        ends=False,
        needles=("in KVPoll.Bootstrapping",),
        pattern=r"timed out after (?P<seconds>[\d.]+)s in KVPoll\.Bootstrapping",
        cause=both(
            "Prefill waited {seconds} seconds for decode to meet it: decode is gone, "
            "overloaded or takes another context length.",
            "prefill 等待 decode 汇合 {seconds} 秒超时：decode 已退出、过载，或上下文长度不同。",
        ),
        remedy=both(
            "Look at decode's log of that time; keep the bootstrap timeout as it is.",
            "查看 decode 在该时刻的日志；不要缩短引导超时。",
        ),
        sample=(
            "Prefill bootstrap failed for request rank=2 "
            "req.rid='d3fd6575d3b24b598367fcbdf1bdd21a' req.bootstrap_room=5975098084415727586 "
            "with exception KVTransferError(bootstrap_room=5975098084415727586): Request "
            "5975098084415727586 timed out after 300.0s in KVPoll.Bootstrapping"
        ),
        source="sgl-project/sglang#10110",
    ),
    Rule(
        id="transfer.waiting_timeout",
        severity="fatal",
        symptom=True,
        ends=False,
        needles=(
            "in KVPoll.WaitingForInput",
            "Some requests fail to receive KV Cache transfer done signal",
        ),
        cause=both(
            "Decode never got the sign that its KV had arrived: the transfer hangs, or the "
            "first one crosses a slow path.",
            "decode 始终未收到 KV 到达的信号：传输挂起，或首次传输走了慢速路径。",
        ),
        remedy=both(
            "Check that accelerator and NIC sit on the same NUMA node (nvidia-smi topo -m), "
            "and that the prefill lives.",
            "检查加速器与网卡是否在同一 NUMA 节点（nvidia-smi topo -m），以及 prefill 是否存活。",
        ),
        sample=(
            "[2025-08-31 07:32:08 TP6 EP6] Some requests fail to receive KV Cache transfer done "
            "signal after bootstrapping. If a greater mean TTFT is acceptable, you can 'export "
            "SGLANG_DISAGGREGATION_WAITING_TIMEOUT=600' (10 minutes) to relax the timeout "
            "condition."
        ),
        source="sgl-project/sglang#9926",
    ),
    Rule(
        id="transfer.sglang_failed",
        severity="fatal",
        symptom=True,
        ends=False,
        needles=(
            "Decode transfer failed for request",
            "Prefill transfer failed for request",
        ),
        cause=both(
            "A request's KV did not arrive; /health stays 200 meanwhile.",
            "某个请求的 KV 未到达；期间 /health 仍为 200。",
        ),
        remedy=both(
            "Look for the first transfer error on either side of the pair.",
            "在这一对的两侧查找最早的传输错误。",
        ),
        sample=(
            "[2025-09-17 16:23:13 TP1] Decode transfer failed for request rank=1 "
            "decode_req.req.rid='3ce84ffb82764f45b028dd8e6c4beed1' "
            "decode_req.req.bootstrap_room=1655955501905217457 with exception "
            "KVTransferError(bootstrap_room=1655955501905217457): Failed due to an unknown reason "
            "from another rank"
        ),
        source="sgl-project/sglang#10560",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
