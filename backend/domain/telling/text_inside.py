"""Sentences of what a container sees of its accelerators, and of what to do where it sees less."""

from __future__ import annotations

TEXT: dict[str, tuple[str, str]] = {
    "inside.card": ("{count} accelerator", "{count} 个加速器"),
    "inside.cards": ("{count} accelerators", "{count} 个加速器"),
    "inside.well": ("a container of {image} sees its {cards}", "{image} 的容器能看到其 {cards}"),
    "inside.well_chips": ("a container of {image} has its {cards} and the driver",
                          "{image} 的容器有其 {cards} 和驱动"),
    "inside.late": ("a container of {image} with {cards} did not end in time",
                    "带 {cards} 的 {image} 容器未按时结束"),
    "inside.late.do": (
        "Try it there: {runtime} run --rm {image} true. A driver that nothing keeps loaded is "
        "slow: nvidia-smi -pm 1.",
        "请在主机上尝试：{runtime} run --rm {image} true。驱动未常驻时会很慢：nvidia-smi -pm 1。"),
    "inside.bare": ("{runtime} starts no container of {image}: {why}",
                    "{runtime} 无法启动 {image} 的容器：{why}"),
    "inside.bare.do": (
        "Mend it until this works there: {runtime} run --rm {image} true.",
        "请修复，直到主机上此命令可用：{runtime} run --rm {image} true。"),
    "inside.refused": ("{runtime} starts no container of {image} with {cards}: {why}",
                       "{runtime} 无法启动带 {cards} 的 {image} 容器：{why}"),
    "inside.complains": ("in a container of {image} nvidia-smi says: {why}",
                         "{image} 的容器中 nvidia-smi 报告：{why}"),
    "inside.no_tool": (
        "a container of {image} was given {cards} and has {count} device files of cards, and no "
        "nvidia-smi",
        "{image} 的容器分到 {cards}，却只有 {count} 个卡的设备文件，且没有 nvidia-smi"),
    "inside.unseen": ("a container of {image} was given {cards} and does not see {lacking}",
                      "{image} 的容器分到 {cards}，却看不到 {lacking}"),
    "inside.has_no": ("a container of {image} was given {cards} and has no {lacking}",
                      "{image} 的容器分到 {cards}，却没有 {lacking}"),
    "inside.has_no.do": (
        "The host has no such device files, or may not pass them on: look at ls /dev/davinci* "
        "there and at the driver (npu-smi info).",
        "主机没有这些设备文件，或不能将其传入容器：请在主机上查看 ls /dev/davinci* 和驱动"
        "（npu-smi info）。"),
    "inside.no_files": ("a container of {image} has no {path}: the host's driver is not in it",
                        "{image} 的容器没有 {path}：其中没有主机的驱动"),
    "inside.no_files.do": (
        "Install the driver so that {path} exists on the host; it is mounted from there.",
        "请安装驱动，使主机上存在 {path}；容器从那里挂载它。"),

    "inside.do.toolkit": (
        "Its runtime knows no GPUs: install nvidia-container-toolkit, then sudo nvidia-ctk runtime "
        "configure --runtime=docker and sudo systemctl restart docker.",
        "运行时不支持 GPU：请安装 nvidia-container-toolkit，再运行 sudo nvidia-ctk runtime "
        "configure --runtime=docker 和 sudo systemctl restart docker。"),
    "inside.do.cdi": (
        "Its CDI specification does not name these cards: {command}, and anew whenever the driver "
        "or the cards change (podman before 4.1 knows no CDI at all).",
        "CDI 规范中没有这些卡：请运行 {command}，且每次更换驱动或卡后重新运行"
        "（podman 4.1 之前不支持 CDI）。"),
    "inside.do.newer_driver": (
        "The image asks for a newer driver than the host has: update the driver, or choose an "
        "image of an older CUDA.",
        "镜像要求的驱动比主机的新：请更新驱动，或选用较旧 CUDA 的镜像。"),
    "inside.do.rebooted": (
        "The driver was updated and the old one is still loaded: reboot the host.",
        "驱动已更新，但仍加载着旧驱动：请重启主机。"),
    "inside.do.no_driver": ("The driver is not loaded: look at nvidia-smi and dmesg on the host.",
                            "驱动未加载：请在主机上查看 nvidia-smi 和 dmesg。"),
    "inside.do.no_rights": (
        "It was given the tool but not the device files: check no-cgroups in "
        "/etc/nvidia-container-runtime/config.toml, and for rootless podman the rights on "
        "/dev/nvidia*.",
        "容器有该工具，却没有设备文件：请检查 /etc/nvidia-container-runtime/config.toml 中的 "
        "no-cgroups；无 root 的 podman 还需检查 /dev/nvidia* 的权限。"),
    "inside.do.no_card": (
        "The runtime does not know this card: look at nvidia-smi -L on the host; reboot it when a "
        "card is lost.",
        "运行时不认识此卡：请在主机上查看 nvidia-smi -L；若有卡丢失，请重启主机。"),
    "inside.do.stale": (
        "Files of another driver version are asked for, its CDI specification is stale: "
        "{command}.",
        "请求的是其他驱动版本的文件，CDI 规范已过时：请运行 {command}。"),
    "inside.do.broken": (
        "Install nvidia-container-toolkit anew, in a version that fits the driver.",
        "请重新安装与驱动匹配的 nvidia-container-toolkit。"),
    "inside.do.set_up": (
        "One without accelerators starts: look at the runtime's set-up for them.",
        "不带加速器的容器可以启动：请检查运行时的加速器设置。"),
    "inside.do.look": ("Look at the runtime's set-up for accelerators.",
                       "请检查运行时的加速器设置。"),
    "inside.do.podman": ("Set up the toolkit for podman: {command}.",
                         "请为 podman 设置工具包：{command}。"),
    "inside.do.docker": (
        "Set up the toolkit for docker: sudo nvidia-ctk runtime configure --runtime=docker.",
        "请为 docker 设置工具包：sudo nvidia-ctk runtime configure --runtime=docker。"),
    "inside.do.respecify": ("Its specification of devices is stale: {command}.",
                            "其设备规范已过时：请运行 {command}。"),
    "inside.do.info": ("Look at the toolkit's set-up: nvidia-container-cli info.",
                       "请检查工具包的设置：nvidia-container-cli info。"),
}  # fmt: skip
