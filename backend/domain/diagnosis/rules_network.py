"""Rules on interfaces, addresses and transports."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

NETWORK: tuple[Rule, ...] = (
    Rule(
        id="network.ucx_connect",
        severity="fatal",
        ends=False,
        needles=("dest_addr=",),
        pattern=(
            r"connect\(fd=\d+, dest_addr=(?P<addr>[\w.:]{1,60}):(?P<port>\d+)\) failed: "
            r"(?P<why>[\w ]+)"
        ),
        cause=both(
            "UCX cannot connect to {addr} port {port} ({why}): the peer advertised an address "
            "that does not lead to it.",
            "UCX 无法连接 {addr} 端口 {port}（{why}）：对端公布的地址不可达。",
        ),
        remedy=both(
            "Set kv_transfer_ifname of the peer's host: without it UCX may take docker0, br-* "
            "or flannel.",
            "设置对端主机的 kv_transfer_ifname：否则 UCX 可能选用 docker0、br-* 或 flannel。",
        ),
        sample=(
            "[1744963752.379059] [oneasia-gpu-node1:14252:0]            sock.c:334  UCX  ERROR   "
            "connect(fd=120, dest_addr=10.244.13.0:34313) failed: Connection refused"
        ),
        source="ai-dynamo/dynamo#741",
    ),
    Rule(
        id="network.ucx_device",
        severity="fatal",
        needles=(
            "UCX  WARN  network device",
            "UCX WARN network device",
        ),
        pattern=r"network devices? (?P<devices>'.{1,200}?) (?:are|is) not available",
        cause=both(
            "UCX does not find the network devices {devices}.",
            "UCX 找不到网络设备 {devices}。",
        ),
        remedy=both(
            "Correct kv_transfer_ifname (or UCX_NET_DEVICES); the same line lists what there "
            "is. A UCX built without InfiniBand knows no mlx5 device.",
            "更正 kv_transfer_ifname（或 UCX_NET_DEVICES）；同一行列出了可用设备。未编译 "
            "InfiniBand 的 UCX 不认识 mlx5 设备。",
        ),
        sample=(
            "[1747128047.267856] [TENCENT64:240  :0]     ucp_context.c:1321 UCX  WARN  network "
            "devices 'mlx5_bond_1:1','mlx5_bond_2:1' are not available, please use one or more of: "
            "'bond1'(tcp), 'bond2'(tcp), 'flannel.1'(tcp), 'lo'(tcp)"
        ),
        source="ai-dynamo/nixl#299",
    ),
    Rule(
        id="network.ucx_transports",
        severity="warning",
        needles=(
            "UCX  WARN  transports",
            "UCX WARN transports",
        ),
        pattern=r"transports? (?P<transports>'.{1,120}?) (?:are|is) not available",
        cause=both(
            "UCX lacks the transports {transports}: KV takes a slower way, or none.",
            "UCX 缺少传输方式 {transports}：KV 将走较慢的路径，或无法传输。",
        ),
        remedy=both(
            "Use a UCX built with CUDA (the engine's own image has one), and --ipc=host "
            "between containers of one host.",
            "使用带 CUDA 的 UCX（引擎镜像自带），同一主机的容器之间使用 --ipc=host。",
        ),
        sample=(
            "ucp_context.c:1321 UCX  WARN  transports 'cuda_ipc','cuda_copy' are not available, "
            "please use one or more of: mm, posix, self, shm, sm, sysv, tcp"
        ),
        source="LMCache/LMCache#605",
    ),
    Rule(
        id="network.ucx_no_transport",
        severity="fatal",
        needles=("no active messages transport to",),
        cause=both(
            "UCX has no usable transport to the peer at all.",
            "UCX 没有任何可用于到达对端的传输方式。",
        ),
        remedy=both(
            "Correct UCX_NET_DEVICES and UCX_TLS: leave both out to let it choose, or name an "
            "interface that exists.",
            "更正 UCX_NET_DEVICES 与 UCX_TLS：都不设置由其自选，或指定存在的接口。",
        ),
        sample=(
            "[1747128047.332435] [TENCENT64:240  :0]          select.c:649  UCX  ERROR   no active "
            "messages transport to <no debug data>: self/memory - no peer failure handler"
        ),
        source="ai-dynamo/nixl#299",
    ),
    Rule(
        id="network.roce_unreachable",
        severity="fatal",
        ends=False,
        needles=("ibv_create_ah(",),
        pattern=r"ibv_create_ah\(.{0,200}? on (?P<device>\w+)\) failed",
        cause=both(
            "{device} cannot reach the peer over RoCE: that fabric is not routed between the "
            "hosts.",
            "{device} 无法经 RoCE 到达对端：该网络在主机之间不可路由。",
        ),
        remedy=both(
            "Name a device that is, or fall back to TCP (UCX_TLS=tcp,cuda_copy).",
            "改用可路由的设备，或退回 TCP（UCX_TLS=tcp,cuda_copy）。",
        ),
        sample=(
            "ibv_create_ah(dlid=49152 sl=0 port=1 src_path_bits=0 dgid=::ffff:10.0.4.9 "
            "sgid_index=3 traffic_class=0 on mlx5_3) failed: Connection timed out"
        ),
        source="ai-dynamo/dynamo#814",
    ),
    Rule(
        id="network.gloo",
        severity="fatal",
        needles=(
            "Gloo connectFullMesh failed",
            "SO_ERROR: Connection refused, remote=[127.0.0.1]",
        ),
        cause=both(
            "The ranks cannot connect to each other: a host's name resolves to loopback, or "
            "they use the wrong interface.",
            "各 rank 无法互连：主机名解析到回环地址，或使用了错误的接口。",
        ),
        remedy=both(
            "Set GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME and TP_SOCKET_IFNAME on all ranks, and "
            "let each host's name resolve to its own address.",
            "在所有 rank 上设置 GLOO_SOCKET_IFNAME、NCCL_SOCKET_IFNAME、TP_SOCKET_IFNAME，"
            "并使主机名解析到自身地址。",
        ),
        sample=(
            "RuntimeError: Gloo connectFullMesh failed with "
            "[../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"
        ),
        source="vllm-project/vllm#7074",
    ),
    Rule(
        id="network.interface",
        severity="fatal",
        needles=("ZMQError: No such device",),
        pattern=r"ZMQError: No such device(?: \(addr='tcp://(?P<host>[^']{1,80})'\))?",
        cause=both(
            "There is no such interface or address on this host ({host}).",
            "该主机上没有此接口或地址（{host}）。",
        ),
        remedy=both(
            "Correct kv_transfer_ifname of the host; a placeholder that was left unfilled "
            "looks like this too.",
            "更正主机的 kv_transfer_ifname；未替换的占位符也会出现此错误。",
        ),
        sample="zmq.error.ZMQError: No such device (addr='tcp://eth9:5600')",
        source="gpustack/gpustack, log patterns of its diagnosis",
    ),
    Rule(
        id="network.address",
        severity="fatal",
        needles=("Cannot assign requested address",),
        pattern=(
            r"ZMQError: Cannot assign requested address(?: "
            r"\(addr='tcp://(?P<addr>[^']{1,60}):(?P<port>\d+)'\))?|\[Errno 99\] Cannot assign "
            r"requested address"
        ),
        cause=both(
            "An address that this host does not have was to be listened on ({addr}).",
            "要求监听的地址不属于该主机（{addr}）。",
        ),
        remedy=both(
            "Each host needs its own address in VLLM_NIXL_SIDE_CHANNEL_HOST and --host; a "
            "member that spans hosts cannot share one.",
            "VLLM_NIXL_SIDE_CHANNEL_HOST 与 --host 须为各主机自身的地址；"
            "跨主机的成员不能共用一个。",
        ),
        sample=(
            "zmq.error.ZMQError: Cannot assign requested address (addr='tcp://172.17.0.5:34762')"
        ),
        source="ai-dynamo/dynamo#2706",
    ),
    Rule(
        id="network.rdma_missing",
        severity="warning",
        needles=(
            "ibv_open_device",
            "rdma_create_event_channel",
            "rdma_create_id",
        ),
        cause=both(
            "RDMA is not usable here; TCP may be used instead.",
            "此处无法使用 RDMA；可能改用 TCP。",
        ),
        remedy=both(
            "Give the container /dev/infiniband and IPC_LOCK, or choose TCP on purpose.",
            "为容器提供 /dev/infiniband 与 IPC_LOCK，或明确选用 TCP。",
        ),
        sample="rdma_create_event_channel failed: No such device",
        source="gpustack/gpustack, log patterns of its diagnosis",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
