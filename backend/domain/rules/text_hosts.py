"""Sentences of the rules on hosts."""

from __future__ import annotations

TEXT: dict[str, dict[str, tuple[str, str]]] = {
    "host.unknown:": {
        "en": ("there is no host '{host}' in the inventory; there are: {known}.",
               "Add it with `pdtui hosts add {host} ADDRESS`, or name another."),
        "zh": ("主机清单中没有 {host}；现有：{known}。",
               "请用 `pdtui hosts add {host} ADDRESS` 添加，或改写为其他主机。"),
    },
    "host.unknown:none": {
        "en": ("there is no host '{host}' in the inventory; there are: none yet.",
               "Add it with `pdtui hosts add {host} ADDRESS`."),
        "zh": ("主机清单为空，没有 {host}。",
               "请用 `pdtui hosts add {host} ADDRESS` 添加。"),
    },
    "placement.too_wide:": {
        "en": ("one {role} member needs {needed} accelerators, but the widest host ({host}) has "
               "{widest}; a member does not span hosts.",
               "Set accelerators to {widest} or less, or add a wider host."),
        "zh": ("一个 {role} 成员需要 {needed} 个加速器，而最大的主机（{host}）只有 {widest} "
               "个；成员不能跨主机。",
               "请将 accelerators 设为 {widest} 或更小，或添加更大的主机。"),
    },
    "host.engine_ports:": {
        "en": ("the service ports {range} of host {host} meet {window}, where transports choose "
               "ports for themselves that nobody can reserve.",
               "Move service_port_range of {host} away, for example to 40000-40063."),
        "zh": ("主机 {host} 的服务端口范围 {range} 与 {window} "
               "重叠；传输层会在那里自行选择端口，无法预留。",
               "请将 {host} 的 service_port_range 移开，例如 40000-40063。"),
    },
    "host.ephemeral_ports:": {
        "en": ("the service ports {range} of {hosts} lie among the ports {window} that the system "
               "gives to outgoing connections, which may hold one when a member starts.",
               "Reserve them there: sysctl net.ipv4.ip_local_reserved_ports={reserve}."),
        "zh": ("{hosts} 的服务端口范围 {range} 位于系统分配给外发连接的端口 {window} "
               "之内，成员启动时其中某个可能已被占用。",
               "请在主机上预留：sysctl net.ipv4.ip_local_reserved_ports={reserve}。"),
    },
    "host.npu_ports:": {
        "en": ("the service ports {range} of host {host} meet {window}, where the transport of its "
               "{count} NPUs takes {each} random ports for each.",
               "Move service_port_range of {host} away, for example to 40000-40063."),
        "zh": ("主机 {host} 的服务端口范围 {range} 与 {window} 重叠；{count} 个 NPU "
               "的传输层会在那里各取 {each} 个随机端口。",
               "请将 {host} 的 service_port_range 移开，例如 40000-40063。"),
    },
    "host.port_budget:range": {
        "en": ("{replicas} {role} members need {each} ports each, but the {ports} service ports "
               "of {hosts} hold only {fit} of them: {missing} ports are missing.",
               "Widen service_port_range by {missing}, add a host, or want fewer members."),
        "zh": ("{replicas} 个 {role} 成员各需 {each} 个端口，而 {hosts} 的 {ports} "
               "个服务端口只能容纳 {fit} 个成员：还缺 {missing} 个端口。",
               "请将 service_port_range 扩大 {missing} 个，添加主机，或减少成员。"),
    },
    "host.port_budget:free": {
        "en": ("{replicas} {role} members need {each} ports each, but the {ports} service ports "
               "that are free on {hosts} now hold only {fit} of them: {missing} are missing.",
               "Widen service_port_range, or free what others hold there."),
        "zh": ("{replicas} 个 {role} 成员各需 {each} 个端口，而 {hosts} 上现在空闲的 {ports} "
               "个服务端口只能容纳 {fit} 个成员：还缺 {missing} 个。",
               "请扩大 service_port_range，或释放被占用的端口。"),
    },
    "host.memory_utilization:": {
        "en": ("accelerator {accelerator} of host {host} is to give {members} of its memory, "
               "which is {sum} of it together.",
               "Lower --gpu-memory-utilization of each, or give them cards of their own."),
        "zh": ("主机 {host} 的加速器 {accelerator} 上的成员要求显存比例 {members}，合计为 {sum}。",
               "请降低各自的 --gpu-memory-utilization，或为它们分配不同的卡。"),
    },
    "host.kv_interface:": {
        "en": ("host {host} has several interfaces that could carry KV traffic ({candidates}) and "
               "none is chosen; none is guessed.",
               "Name it: kv_transfer_ifname of {host}, --kv-transfer-ifname or "
               "PDTUI_KV_TRANSFER_IFNAME."),
        "zh": ("主机 {host} 有多个可承载 KV 流量的接口（{candidates}），尚未指定；不会猜测。",
               "请指定：{host} 的 kv_transfer_ifname、--kv-transfer-ifname 或 "
               "PDTUI_KV_TRANSFER_IFNAME。"),
    },
    "host.model_missing:nowhere": {
        "en": ("no host that may run {role} members has {model}; looked at: {hosts}.",
               "Copy the model there, or correct spec.model."),
        "zh": ("{role} 可用的主机上都没有 {model}；已查看：{hosts}。",
               "请将模型复制过去，或改正 spec.model。"),
    },
    "host.model_missing:somewhere": {
        "en": ("members of {role} may run on {hosts} without {model}; it was found on: {there}.",
               "Copy the model there, or select hosts that have it."),
        "zh": ("{hosts} 可运行 {role}，但没有 {model}；有该模型的主机：{there}。",
               "请将模型复制过去，或选择有该模型的主机。"),
    },
    "host.image:": {
        "en": ("containers are run ({runtime}) on {hosts}, but {role} has no image and {engine} "
               "has no public one.",
               "Name an image in spec.image or in the role."),
        "zh": ("{hosts} 以容器（{runtime}）运行，但 {role} 没有镜像，{engine} 也没有公共镜像。",
               "请在 spec.image 或角色中指定镜像。"),
    },
}  # fmt: skip
