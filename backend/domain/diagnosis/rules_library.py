"""Rules on libraries that engines load."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

LIBRARY: tuple[Rule, ...] = (
    Rule(
        id="library.mooncake",
        severity="fatal",
        needles=("Mooncake is not available",),
        cause=both(
            "Mooncake's transfer engine is not installed where this engine runs.",
            "引擎环境中未安装 Mooncake 传输引擎。",
        ),
        remedy=both(
            "Use an image that has it, or install mooncake-transfer-engine of the image's CUDA "
            "version.",
            "使用包含它的镜像，或安装与镜像 CUDA 版本匹配的 mooncake-transfer-engine。",
        ),
        sample=(
            "(Worker pid=31412) ERROR 11-30 04:48:15 [mooncake_connector.py:1179] Mooncake is not "
            "available"
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="library.mooncake_import",
        severity="warning",
        needles=("Please install mooncake by following",),
        cause=both(
            "Mooncake could not be imported: it is not installed, or a library it needs is "
            "missing.",
            "无法导入 Mooncake：未安装，或缺少其依赖库。",
        ),
        remedy=both(
            "Try `python -c 'from mooncake.engine import TransferEngine'` in the same "
            "environment: it names what is missing.",
            "在同一环境运行 `python -c 'from mooncake.engine import TransferEngine'`，"
            "它会指出缺少什么。",
        ),
        sample=(
            "(Worker pid=31412) WARNING 11-30 04:48:15 [mooncake_connector.py:82] Please install "
            "mooncake by following the instructions at "
            "https://github.com/kvcache-ai/Mooncake/blob/main/doc/en/build.md to run VLLM with "
            "MooncakeTransferEngine."
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="library.mooncake_old",
        severity="warning",
        needles=("requires mooncake >=",),
        pattern=r"requires mooncake >= (?P<version>[\w.]+)",
        cause=both(
            "A feature is switched off because Mooncake is older than {version}.",
            "Mooncake 版本低于 {version}，某项功能已被关闭。",
        ),
        remedy=both(
            "Upgrade mooncake-transfer-engine on both roles.",
            "在两个角色上升级 mooncake-transfer-engine。",
        ),
        sample="Mooncake's tensor allocator requires mooncake >= 0.3.8.post1. Please upgrade",
        source="sgl-project/sglang#21395",
    ),
    Rule(
        id="library.nixl",
        severity="fatal",
        needles=("NIXL is not available",),
        cause=both(
            "NIXL is not installed where this engine runs.",
            "引擎环境中未安装 NIXL。",
        ),
        remedy=both(
            "Use an image that has it, or install nixl of the engine's CUDA version.",
            "使用包含它的镜像，或安装与引擎 CUDA 版本匹配的 nixl。",
        ),
        sample="RuntimeError: NIXL is not available",
        source="vLLM 0.32, nixl/base_worker.py",
    ),
    Rule(
        id="library.shared_object",
        severity="fatal",
        needles=("cannot open shared object file",),
        pattern=r"(?P<name>[\w.+-]{1,80}\.so[\w.]*): cannot open shared object file",
        cause=both(
            "A library is missing: {name}.",
            "缺少动态库：{name}。",
        ),
        remedy=both(
            "Add its folder to LD_LIBRARY_PATH (ascend_transport.so: /usr/local/lib; "
            "libascend_hal.so: the driver's lib64, mounted), or take an image of the matching "
            "CUDA.",
            "将其目录加入 LD_LIBRARY_PATH（ascend_transport.so 在 /usr/local/lib；"
            "libascend_hal.so 在需挂载的驱动 lib64），或使用匹配 CUDA 的镜像。",
        ),
        sample=(
            "ImportError: ascend_transport.so: cannot open shared object file: No such file or "
            "directory"
        ),
        source="vllm-project/vllm-ascend#6949",
    ),
    Rule(
        id="library.glibc",
        severity="fatal",
        needles=("version `GLIBC",),
        pattern=r"version `(?P<name>GLIBC\w*_[\d.]+)' not found",
        cause=both(
            "The host's C library is too old: {name} is needed.",
            "主机的 C 库过旧：需要 {name}。",
        ),
        remedy=both(
            "Run the engine in a container, or on a newer system.",
            "在容器中或更新的系统上运行引擎。",
        ),
        sample=(
            "ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by "
            "/opt/venv/lib/python3.11/site-packages/vllm/_C.abi3.so)"
        ),
        source="glibc dynamic loader",
    ),
    Rule(
        id="library.module",
        severity="fatal",
        needles=(
            "ModuleNotFoundError: No module named",
            "No package metadata was found for",
        ),
        pattern=r"(?:No module named|No package metadata was found for) '?(?P<name>[\w.-]{1,80})",
        cause=both(
            "A Python package is missing: {name}.",
            "缺少 Python 包：{name}。",
        ),
        remedy=both(
            "Install it in the environment that `executable` names, or take the engine's own "
            "image.",
            "在 `executable` 指向的环境中安装，或使用引擎镜像。",
        ),
        sample="ModuleNotFoundError: No module named 'mooncake_vllm_adaptor'",
        source="kvcache-ai/Mooncake#13",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
