"""Rules on accelerators and their drivers."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

ACCELERATOR: tuple[Rule, ...] = (
    Rule(
        id="accelerator.fabric_manager",
        severity="fatal",
        needles=("system not yet initialized",),
        cause=both(
            "CUDA error 802: the NVSwitch fabric is not up. nvidia-smi lists every card all "
            "the same.",
            "CUDA 错误 802：NVSwitch 互连未就绪，但 nvidia-smi 仍能列出所有卡。",
        ),
        remedy=both(
            "Install and start nvidia-fabricmanager of exactly the driver's version on this host.",
            "在该主机上安装并启动与驱动版本完全一致的 nvidia-fabricmanager。",
        ),
        sample=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet "
            "initialized"
        ),
        source="gpustack/gpustack#4154",
    ),
    Rule(
        id="accelerator.ecc",
        severity="fatal",
        needles=("uncorrectable ECC error",),
        cause=both(
            "The accelerator's memory is failing (uncorrectable ECC error): hardware, not the "
            "model.",
            "加速器显存故障（不可纠正的 ECC 错误）：是硬件问题，而非模型问题。",
        ),
        remedy=both(
            "Take this card out of the pins, reset it, and look at its row-remap counters; do "
            "not restart in place.",
            "从放置中排除该卡，复位并检查行重映射计数；不要原地重启。",
        ),
        sample="RuntimeError: CUDA error: uncorrectable ECC error encountered",
        source="vllm-project/vllm#5222",
    ),
    Rule(
        id="accelerator.xid",
        severity="fatal",
        needles=("NVRM: Xid",),
        pattern=r"NVRM: Xid \((?P<device>PCI:[\w:.]+)\): (?P<xid>\d+)",
        cause=both(
            "The driver reports Xid {xid} of the card {device}.",
            "驱动报告 {device} 出现 Xid {xid}。",
        ),
        remedy=both(
            "Take the card out until it was reset; 48, 63, 64, 79, 94, 95 and 119 are hardware "
            "or firmware.",
            "在复位之前排除该卡；48、63、64、79、94、95、119 属于硬件或固件问题。",
        ),
        sample=(
            "[Fri Mar  3 04:23:22 2023] NVRM: Xid (PCI:0000:61:00): 119, pid=1344368, "
            "name=nvidia-smi, Timeout waiting for RPC from GSP! Expected function 10 (FREE) "
            "(0xa55a00a0 0x0)."
        ),
        source="NVIDIA/open-gpu-kernel-modules, GSP timeouts",
    ),
    Rule(
        id="accelerator.lost",
        severity="fatal",
        needles=(
            "GPU has fallen off the bus",
            "GPU is lost",
        ),
        cause=both(
            "The card is gone from the PCI bus.",
            "该卡已从 PCI 总线上丢失。",
        ),
        remedy=both(
            "Reboot the host; when it comes again, the card, its riser or its power is faulty.",
            "重启主机；若再次出现，则卡、转接或供电有故障。",
        ),
        sample="NVRM: GPU at PCI:0000:61:00: GPU has fallen off the bus.",
        source="NVIDIA driver documentation, Xid 79",
    ),
    Rule(
        id="accelerator.ordinal",
        severity="fatal",
        needles=("invalid device ordinal",),
        cause=both(
            "The engine was given an accelerator that it does not see.",
            "引擎被分配了它看不到的加速器。",
        ),
        remedy=both(
            "Let pdtui give the accelerators; remove CUDA_VISIBLE_DEVICES and --base-gpu-id "
            "from the role's own settings.",
            "由 pdtui 分配加速器；移除角色设置中的 CUDA_VISIBLE_DEVICES 与 --base-gpu-id。",
        ),
        sample="RuntimeError: CUDA error: invalid device ordinal",
        source="sgl-project/sglang#9451",
    ),
    Rule(
        id="accelerator.driver_old",
        severity="fatal",
        needles=(
            "driver version is insufficient",
            "NVIDIA driver on your system is too old",
        ),
        cause=both(
            "The host's driver is too old for the CUDA of this engine or image.",
            "主机驱动过旧，不支持该引擎或镜像的 CUDA。",
        ),
        remedy=both(
            "Update the driver, or take an image built for an older CUDA.",
            "升级驱动，或使用基于更旧 CUDA 的镜像。",
        ),
        sample=(
            "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version"
        ),
        source="nagadomi/nunif#702",
    ),
    Rule(
        id="accelerator.none",
        severity="fatal",
        needles=(
            "No CUDA GPUs are available",
            "Found no NVIDIA driver on your system",
            "Failed to infer device type",
            "no CUDA-capable device is detected",
        ),
        cause=both(
            "The engine sees no accelerator at all.",
            "引擎看不到任何加速器。",
        ),
        remedy=both(
            "Check that the container was given its devices and that the host's driver works "
            "(`pdtui doctor`).",
            "确认容器分配到了设备，且主机驱动正常（`pdtui doctor`）。",
        ),
        sample="RuntimeError: Failed to infer device type",
        source="vllm-project/vllm-ascend#262",
    ),
    Rule(
        id="accelerator.nvml",
        severity="fatal",
        needles=("Driver/library version mismatch",),
        cause=both(
            "The NVIDIA driver was updated and the old kernel module still runs.",
            "NVIDIA 驱动已更新，但旧内核模块仍在运行。",
        ),
        remedy=both(
            "Reboot the host, or reload the module once no process uses it.",
            "重启主机，或在无进程使用时重新加载模块。",
        ),
        sample="Failed to initialize NVML: Driver/library version mismatch",
        source="nvidia-smi, recorded for this project",
    ),
    Rule(
        id="accelerator.capability",
        severity="fatal",
        needles=("no kernel image is available for execution on the device",),
        cause=both(
            "This build of the engine has no kernels for this type of card.",
            "该引擎构建不包含此类卡的内核。",
        ),
        remedy=both(
            "Take an image built for the card's compute capability (newer for a newer card, "
            "older for an old one).",
            "使用为该卡计算能力构建的镜像。",
        ),
        sample=(
            "ERROR 07-28 15:07:22 [core.py:632] RuntimeError: CUDA error: no kernel image is "
            "available for execution on the device"
        ),
        source="vllm-project/vllm#14452",
    ),
    Rule(
        id="accelerator.illegal_access",
        severity="fatal",
        symptom=True,
        needles=("an illegal memory access was encountered",),
        cause=both(
            "A kernel reached outside its memory. With PD: roles that differ in speculation or "
            "block layout, or an engine bug.",
            "内核访问越界。PD 场景常见于两侧投机解码或块布局不一致，或引擎缺陷。",
        ),
        remedy=both(
            "Give both roles the same --speculative-config and KV settings; run once with "
            "CUDA_LAUNCH_BLOCKING=1 to see which kernel.",
            "使两侧 --speculative-config 与 KV 设置一致；用 CUDA_LAUNCH_BLOCKING=1 "
            "运行一次以定位内核。",
        ),
        sample="RuntimeError: CUDA error: an illegal memory access was encountered",
        source="vllm-project/vllm#49230",
    ),
    Rule(
        id="accelerator.nccl",
        severity="fatal",
        symptom=True,
        needles=(
            "RuntimeError: NCCL error:",
            "ncclRemoteError",
            "ncclSystemError",
        ),
        pattern=r"(?:NCCL error: (?P<why>[\w ]{1,80})|nccl(?:Remote|System)Error)",
        cause=both(
            "The ranks of one member could not talk to each other (NCCL: {why}).",
            "同一成员的各 rank 之间通信失败（NCCL：{why}）。",
        ),
        remedy=both(
            "Run with NCCL_DEBUG=INFO; give containers --ipc=host and enough /dev/shm; a rank "
            "that died first shows above.",
            "以 NCCL_DEBUG=INFO 运行；容器使用 --ipc=host 与足够的 /dev/shm；最先退出的 rank "
            "见上文。",
        ),
        sample=(
            "(VllmWorkerProcess pid=760) ERROR 07-24 08:26:01 multiproc_worker_utils.py:226] "
            "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
        ),
        source="vllm-project/vllm#6732",
    ),
    Rule(
        id="accelerator.dcmi",
        severity="fatal",
        needles=(
            "dcmi module initialize failed",
            "DCMIError_LibraryNotFound",
            "dcmi model initialized failed",
        ),
        pattern=(
            r"(?:dcmi mod\w+ initialized? failed\. ret is (?P<ret>-\d+)|DCMIError_LibraryNotFound)"
        ),
        cause=both(
            "The Ascend management interface does not answer ({ret}): the card is held by "
            "another container, or the driver is not mounted.",
            "昇腾管理接口无应答（{ret}）：卡被其他容器占用，或驱动未挂载。",
        ),
        remedy=both(
            "-8005 and -8020 are devices in use; else mount /usr/local/dcmi and "
            "/usr/local/Ascend/driver.",
            "-8005 与 -8020 表示设备被占用；否则挂载 /usr/local/dcmi 与 /usr/local/Ascend/driver。",
        ),
        sample="dcmi module initialize failed. ret is -8005",
        source="vllm-project/vllm-ascend#2698",
    ),
    Rule(
        id="accelerator.hccl_timeout",
        severity="fatal",
        needles=(
            "EI0006",
            "wait socket establish timeout",
        ),
        cause=both(
            "The NPUs of this member could not reach each other within HCCL_CONNECT_TIMEOUT.",
            "该成员的 NPU 在 HCCL_CONNECT_TIMEOUT 内未能互连。",
        ),
        remedy=both(
            "Compare `hccn_tool -i N -tls -g` of all cards and hosts (it must be equal), check "
            "links and subnets, and see which rank ended first.",
            "比较所有卡与主机的 `hccn_tool -i N -tls -g`（须一致），检查链路与网段，"
            "并找出最先退出的 rank。",
        ),
        sample=(
            "[PID: 749] 2025-12-29-03:16:15.787.356 Get_Socket_Timeout(EI0006): Getting socket "
            "times out. Reason: 1. The remote does not initiate a connect request. some NPUs in "
            "the cluster are abnormal."
        ),
        source="vllm-project/vllm-ascend#5461",
    ),
    Rule(
        id="accelerator.hccl_link",
        severity="fatal",
        symptom=True,
        needles=("EI0009",),
        cause=both(
            "HCCL could not set up a link between two ranks.",
            "HCCL 无法在两个 rank 之间建立链路。",
        ),
        remedy=both(
            "Look at the other rank's log: this one usually reports what ended there.",
            "查看另一个 rank 的日志：本条通常是对侧退出的反映。",
        ),
        sample=(
            "[rank1]: EI0009: [PID: 2225827] 2025-09-24-20:59:48.119.066 Transport init error. "
            "Reason: [Create][DestLink]Create Dest error!"
        ),
        source="vllm-project/vllm-ascend#3162",
    ),
    Rule(
        id="accelerator.topology_file",
        severity="fatal",
        needles=("EI0014",),
        cause=both(
            "HCCL misses a topology file: only part of the driver's folder is mounted.",
            "HCCL 缺少拓扑文件：驱动目录仅挂载了一部分。",
        ),
        remedy=both(
            "Mount /usr/local/Ascend/driver as a whole, not only lib64.",
            "整体挂载 /usr/local/Ascend/driver，而非仅 lib64。",
        ),
        sample=(
            "HCCL communicator init failed with EI0014: "
            "/usr/local/Ascend/driver/topo/atlas_350_3.json missing"
        ),
        source="vllm-project/recipes#907",
    ),
    Rule(
        id="accelerator.npu_timeout",
        severity="fatal",
        symptom=True,
        needles=(
            "507034",
            "Vector core execution timed out",
            "error code is 507015",
            "error code:507015",
        ),
        cause=both(
            "An NPU kernel hung or failed; it is what follows a failed link or a taken port as "
            "often as a fault of its own.",
            "NPU 算子挂起或失败；常是链路失败或端口被占用的后果，也可能是自身故障。",
        ),
        remedy=both(
            "Look for the first HCCL or bind error of all ranks before this line.",
            "在本行之前查找所有 rank 中最早的 HCCL 或绑定错误。",
        ),
        sample=(
            "[rank0]:[W610 17:20:44.224261525 NPUStream.cpp:647] Warning: NPU warning, error code "
            "is 507034[Error]:"
        ),
        source="vllm-project/vllm-ascend#10299",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
