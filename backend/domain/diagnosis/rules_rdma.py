"""Rules on RDMA, for transfers."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

RDMA: tuple[Rule, ...] = (
    Rule(
        id="transfer.queue_pair",
        severity="fatal",
        ends=False,
        needles=("Failed to modify QP to",),
        pattern=r"Failed to modify QP to (?P<state>RTR|INIT|RTS)",
        cause=both(
            "RDMA could not bring up a connection ({state}): the two ports' GID, MTU or "
            "network do not fit.",
            "RDMA 无法建立连接（{state}）：两端口的 GID、MTU 或网络不匹配。",
        ),
        remedy=both(
            "Set MC_GID_INDEX to the index of a routable RoCE v2 GID (not fe80::), the same "
            "MTU on both ends, and rails that reach each other.",
            "将 MC_GID_INDEX 设为可路由的 RoCE v2 GID（非 fe80::），两端 MTU 一致，"
            "并使用互通的网卡。",
        ),
        sample=(
            "E0331 12:03:04.222625 56060 rdma_endpoint.cpp:385] [Handshake] Failed to modify QP to "
            "RTR, check mtu, gid, peer lid, peer qp num: Connection timed out [110]"
        ),
        source="kvcache-ai/Mooncake#204",
    ),
    Rule(
        id="transfer.gid",
        severity="fatal",
        ends=False,
        needles=("GID is NULL, please check your GID index",),
        cause=both(
            "Mooncake found no usable GID on this port; on bonded RoCE its own choice fails.",
            "Mooncake 在该端口找不到可用 GID；在绑定的 RoCE 网卡上其自动选择会失败。",
        ),
        remedy=both(
            "Set MC_GID_INDEX to a routable RoCE v2 entry of show_gids.",
            "将 MC_GID_INDEX 设为 show_gids 中可路由的 RoCE v2 项。",
        ),
        sample="GID is NULL, please check your GID index by specifying MC_GID_INDEX",
        source="sgl-project/sglang#30737",
    ),
    Rule(
        id="transfer.retries",
        severity="fatal",
        ends=False,
        needles=("transport retry counter exceeded",),
        pattern=r"(?:local_nic: (?P<nic>\w{1,40}).{0,200})?transport retry counter exceeded",
        cause=both(
            "RDMA packets to the peer are lost ({nic}): a broken link, cable or NIC.",
            "到对端的 RDMA 报文丢失（{nic}）：链路、线缆或网卡故障。",
        ),
        remedy=both(
            "Count the failures by local_nic: when it is always the same one, take that NIC "
            "out of the device list.",
            "按 local_nic 统计失败次数：若总是同一块网卡，将其从设备列表中移除。",
        ),
        sample=(
            "E0603 20:16:59.104586 27322 worker_pool.cpp:271] Worker: Process failed for slice "
            "(opcode: 1, source_addr: 0x7f20fe0f1680, length: 65536, dest_addr: 0x7f3d820f3a80, "
            "local_nic: mlx5_7, peer_nic: 10.93.81.13:15729@mlx5_0, dest_rkey: 2116517, retry_cnt: "
            "0): transport retry counter exceeded"
        ),
        source="sgl-project/sglang#6854",
    ),
    Rule(
        id="transfer.endpoint",
        severity="fatal",
        ends=False,
        needles=("Cannot make connection for endpoint",),
        pattern=(
            r"Cannot make connection for endpoint: "
            r"(?P<addr>[\w.]{1,60}):(?P<port>\d+)@(?P<device>\w+)"
        ),
        cause=both(
            "Mooncake cannot connect to {addr} over {device}: the two sides use rails that do "
            "not meet.",
            "Mooncake 无法经 {device} 连接 {addr}：两侧使用了互不相通的网卡。",
        ),
        remedy=both(
            "Name the same rails on both roles (--disaggregation-ib-device, or the connector's "
            "device list).",
            "两个角色指定相同的网卡（--disaggregation-ib-device 或连接器的设备列表）。",
        ),
        sample="Cannot make connection for endpoint: 192.168.39.255:15347@mlx5_4",
        source="kvcache-ai/Mooncake#549",
    ),
    Rule(
        id="transfer.memlock",
        severity="fatal",
        needles=(
            "Failed to register memory: Cannot allocate memory",
            "Cannot allocate memory [12]",
        ),
        cause=both(
            "RDMA may not lock memory: the memlock limit is too low.",
            "RDMA 无法锁定内存：memlock 限制过低。",
        ),
        remedy=both(
            "Start the container with --ulimit memlock=-1 and IPC_LOCK, or raise ulimit -l of "
            "the login.",
            "启动容器时加 --ulimit memlock=-1 与 IPC_LOCK，或提高登录用户的 ulimit -l。",
        ),
        sample="Failed to register memory: Cannot allocate memory",
        source="kvcache-ai/Mooncake#1382",
    ),
    Rule(
        id="transfer.peermem",
        severity="fatal",
        needles=("Failed to register memory",),
        pattern=r"Failed to register memory .{0,60}Bad address",
        cause=both(
            "RDMA cannot reach accelerator memory: GPUDirect is not there.",
            "RDMA 无法访问加速器内存：缺少 GPUDirect。",
        ),
        remedy=both(
            "Load nvidia_peermem (or use dmabuf) on the host.",
            "在主机上加载 nvidia_peermem（或使用 dmabuf）。",
        ),
        sample="Failed to register memory 0x7f5c22000000: Bad address [14]",
        source="kvcache-ai/Mooncake#351",
    ),
    Rule(
        id="transfer.tcp_device_memory",
        severity="fatal",
        ends=False,
        needles=(
            "Session::writeBody failed",
            "Session::readBody failed",
        ),
        cause=both(
            "This Mooncake version cannot send accelerator memory over TCP.",
            "该 Mooncake 版本无法通过 TCP 发送加速器内存。",
        ),
        remedy=both(
            "Take a newer Mooncake, or RDMA.",
            "升级 Mooncake，或使用 RDMA。",
        ),
        sample=(
            "E0516 09:03:11.101210 45702 tcp_transport.cpp:160] Session::writeBody failed. Error: "
            "Bad address (value: 14)"
        ),
        source="kvcache-ai/Mooncake#257",
    ),
    Rule(
        id="transfer.stale_peer",
        severity="fatal",
        needles=("mlx5dv_devx_obj_modify(",),
        cause=both(
            "A peer came back on the same address and this side's old RDMA endpoint breaks; "
            "the next step is a crash.",
            "对端以相同地址恢复，本侧旧的 RDMA 端点失效；随后会崩溃。",
        ),
        remedy=both(
            "Restart the whole group.",
            "重启整个组。",
        ),
        sample="mlx5dv_devx_obj_modify(opcode=0x503) failed, syndrome 0x0: Remote I/O error",
        source="smg-project/smg#2503",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
