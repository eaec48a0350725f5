"""Rules on ports that are taken."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

PORTS: tuple[Rule, ...] = (
    Rule(
        id="ports.side_channel",
        severity="fatal",
        needles=("Exception in thread nixl_handshake_listener",),
        pattern=(
            r"nixl_handshake_listener:[\s\S]*?ZMQError: Address already in use(?: "
            r"\(addr='tcp://(?P<host>[^']{1,80}):(?P<port>\d+)'\))?"
        ),
        span=30,
        band="kv_side_channel",
        cause=both(
            "NIXL's side channel cannot listen on port {port}: something else does. The engine "
            "neither serves nor ends.",
            "NIXL 旁路通道无法监听端口 {port}：已被占用。引擎既不服务也不退出。",
        ),
        remedy=both(
            "Kill it with SIGKILL (it ignores SIGTERM) and free the port: usually an "
            "EngineCore left over from a killed start still holds it.",
            "用 SIGKILL 结束该进程（它忽略 SIGTERM）并释放端口："
            "通常是上次被强行结束的启动遗留的 EngineCore 仍占用它。",
        ),
        sample=(
            "Exception in thread nixl_handshake_listener:\n"
            "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:5601')"
        ),
        source="vLLM 0.32 with NIXL, run for this project",
    ),
    Rule(
        id="ports.zmq",
        severity="fatal",
        needles=("ZMQError: Address already in use",),
        pattern=(
            r"ZMQError: Address already in use(?: "
            r"\(addr='tcp://(?P<host>[^']{1,80}):(?P<port>\d+)'\))?"
        ),
        band="kv_side_channel",
        cause=both(
            "A ZeroMQ socket of the engine (side channel, KV events or internal) cannot listen "
            "(port {port}).",
            "引擎的 ZeroMQ 套接字（旁路通道、KV 事件或内部通信）无法监听（端口 {port}）。",
        ),
        remedy=both(
            "Give each member of a host its own port band, as the modes do; look for a process "
            "left over from an earlier start.",
            "同一主机上的每个成员应使用各自的端口段（内置模式即如此）；"
            "检查是否有上次启动遗留的进程。",
        ),
        sample="zmq.error.ZMQError: Address already in use (addr='tcp://10.0.0.3:40009')",
        source="ray-project/ray#60057",
    ),
    Rule(
        id="ports.prometheus",
        severity="fatal",
        needles=("failed to install Prometheus metrics exporter",),
        pattern=r"failed to install Prometheus metrics exporter: .{0,80}Address already in use",
        band="prometheus",
        cause=both(
            "The router's Prometheus port is taken, so the router ends at once.",
            "Router 的 Prometheus 端口已被占用，router 立即退出。",
        ),
        remedy=both(
            "End the router left over on this host (its default is 29000), or give this one "
            "another port.",
            "结束该主机上遗留的 router（默认端口 29000），或为当前 router 换一个端口。",
        ),
        sample=(
            'failed to install Prometheus metrics exporter: FailedToCreateHTTPListener("Address '
            'already in use (os error 98)")'
        ),
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="ports.router",
        severity="fatal",
        needles=(
            "Error starting router: Address already in use",
            "RuntimeError: Address already in use (os error 98)",
        ),
        band="http",
        cause=both(
            "The router's HTTP port is taken.",
            "Router 的 HTTP 端口已被占用。",
        ),
        remedy=both(
            "End what listens there, or free the endpoint's pinned port.",
            "结束占用该端口的进程，或释放端点固定的端口。",
        ),
        sample="Error starting router: Address already in use (os error 98)",
        source="vllm-router 0.1.15, run for this project",
    ),
    Rule(
        id="ports.hccl",
        severity="fatal",
        needles=("specific port[",),
        pattern=r"listen on ip\[(?P<addr>[^\]]{1,60})\] and specific port\[(?P<port>\d+)\] fail",
        cause=both(
            "HCCL cannot listen on {addr} port {port}: another member of this host does.",
            "HCCL 无法监听 {addr} 的端口 {port}：该主机上的另一个成员正在使用。",
        ),
        remedy=both(
            "Give each co-located Ascend member its own HCCL_IF_BASE_PORT and "
            "HCCL_NPU_SOCKET_PORT_RANGE.",
            "为同一主机上的每个昇腾成员设置各自的 HCCL_IF_BASE_PORT 和 "
            "HCCL_NPU_SOCKET_PORT_RANGE。",
        ),
        sample=(
            "[ERROR] HCCL(60570,):2025-12-04-14:46:07.911.312 [hccl_socket.cc:106] "
            "[60570][HcclSocket][Listen] socket type[0], listen on ip[192.0.2.195] and specific "
            "port[16666] fail. Please check the port status and whether the port is being used by "
            "other process."
        ),
        source="vllm-project/vllm-ascend#4725",
    ),
    Rule(
        id="ports.hccl_bind",
        severity="fatal",
        needles=(
            "EJ0003",
            "EI0019",
        ),
        cause=both(
            "HCCL cannot bind its port: another program of this host has bound it already.",
            "HCCL 无法绑定端口：该主机上的另一个程序已经绑定。",
        ),
        remedy=both(
            "Set HCCL_IF_BASE_PORT to a free range of this host's own, different for each member.",
            "将 HCCL_IF_BASE_PORT 设为该主机上的空闲范围，且各成员互不相同。",
        ),
        sample=(
            "[rank0]: EJ0003: [PID: 159] 2025-03-26-17:01:02.816.428 Failed to bind the IP port. "
            "Reason: The IP address and port have been bound already."
        ),
        source="vllm-project/vllm-ascend#405",
    ),
    Rule(
        id="ports.tcp_store",
        severity="fatal",
        needles=("EADDRINUSE",),
        pattern=r"(?:port: (?P<port>\d+).{0,60})?EADDRINUSE",
        cause=both(
            "torch's rendezvous cannot listen (port {port}): two engines of this host chose "
            "the same one at the same moment.",
            "torch 汇合点无法监听（端口 {port}）：同一主机上的两个引擎同时选中了同一端口。",
        ),
        remedy=both(
            "Start it again: engines probe a port, close it and bind it later. Members of one "
            "host started one after another do not meet.",
            "重新启动即可：引擎先探测端口、关闭，稍后才绑定。同一主机上的成员依次启动就不会冲突。",
        ),
        sample=(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any "
            "local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, "
            "message: address already in use"
        ),
        source="vllm-project/vllm#39015",
    ),
    Rule(
        id="ports.http",
        severity="fatal",
        needles=("ddress already in use",),
        pattern=(
            r"\[Errno 98\] (?:Address already in use|error while attempting to bind on address "
            r"\('(?P<host>[^']{1,60})', (?P<port>\d+)\): address already in use)|attempting to "
            r"bind on address \('[^']{1,60}', \d+\): address already in use"
        ),
        band="http",
        cause=both(
            "The engine's HTTP port is taken.",
            "引擎的 HTTP 端口已被占用。",
        ),
        remedy=both(
            "End what listens there: often the same member's earlier process. A dense model "
            "with data parallelism above 1 can collide with itself.",
            "结束占用该端口的进程：常常是同一成员之前的进程。数据并行大于 1 "
            "的稠密模型可能与自身冲突。",
        ),
        sample="OSError: [Errno 98] Address already in use",
        source="vLLM 0.32, run for this project",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
