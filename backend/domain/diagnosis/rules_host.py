"""Rules on programs, containers and hosts."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

HOST: tuple[Rule, ...] = (
    Rule(
        id="program.missing",
        severity="fatal",
        needles=("pdtui: program not found on this host",),
        pattern=(
            r"program not found on this host: (?P<name>\S{1,200}) \(PATH is (?P<path>[^)]{0,300})\)"
        ),
        cause=both(
            "The program {name} is not found on this host; its PATH is {path}.",
            "该主机上找不到程序 {name}；其 PATH 为 {path}。",
        ),
        remedy=both(
            "Name it, or its venv, in the host's or the role's `executable`: a non-login shell "
            "has no PATH of yours.",
            "在主机或角色的 `executable` 中指定程序或其虚拟环境：非登录 shell 没有您的 PATH。",
        ),
        sample="pdtui: program not found on this host: vllm (PATH is /usr/bin:/bin)",
        source="pdtui itself",
    ),
    Rule(
        id="program.denied",
        severity="fatal",
        needles=("PermissionError: [Errno 13] Permission denied",),
        pattern=r"Permission denied: '?(?P<path>[^']{1,200})",
        cause=both(
            "The login may not use {path}.",
            "登录用户无权使用 {path}。",
        ),
        remedy=both(
            "Give the SSH user the right, or another folder (work directory, cache, model).",
            "授予 SSH 用户权限，或改用其他目录（工作目录、缓存、模型）。",
        ),
        sample="PermissionError: [Errno 13] Permission denied: '/root/.cache/vllm'",
        source="Python",
    ),
    Rule(
        id="program.shell",
        severity="fatal",
        needles=("not found",),
        pattern=(
            r"(?:^|\n)(?:/bin/)?(?:ba|da|z)?sh: (?:(?:line )?\d{1,5}: )?(?P<name>[\w./-]{1,200}): "
            r"(?:command )?not found"
        ),
        cause=both(
            "The command {name} is not found where the member runs.",
            "成员运行环境中找不到命令 {name}。",
        ),
        remedy=both(
            "Correct the run command, or name the program with its full path.",
            "更正运行命令，或使用程序的完整路径。",
        ),
        sample="sh: 1: vllm: not found",
        source="Debian's dash",
    ),
    Rule(
        id="program.file",
        severity="fatal",
        needles=("FileNotFoundError: [Errno 2] No such file or directory",),
        pattern=r"No such file or directory: '?(?P<path>[^']{1,200})",
        cause=both(
            "A file or program is missing: {path}.",
            "缺少文件或程序：{path}。",
        ),
        remedy=both(
            "Put it there, mount it into the container, or correct the setting that names it.",
            "将其放到该处、挂载到容器中，或更正引用它的设置。",
        ),
        sample="FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
        source="sgl-project/sglang, public run notes",
    ),
    Rule(
        id="container.command_missing",
        severity="fatal",
        needles=(
            "executable file not found in $PATH",
            "executable file `",
        ),
        pattern=r"executable file (?:`(?P<other>[^`]{1,100})` )?not found in \$PATH",
        cause=both(
            "The image does not hold the program that was to be started.",
            "镜像中没有要启动的程序。",
        ),
        remedy=both(
            "Take an image that has it (a router needs one of its own, or runs as a process), "
            "or correct the run command.",
            "使用包含该程序的镜像（router 可用单独镜像或以进程运行），或更正运行命令。",
        ),
        sample=(
            "Error response from daemon: OCI runtime create failed: runc create failed: unable to "
            'start container process: exec: "vllm": executable file not found in $PATH: unknown'
        ),
        source="LMCache/LMCache#906",
    ),
    Rule(
        id="container.gpu_runtime",
        severity="fatal",
        needles=("could not select device driver",),
        cause=both(
            "Docker cannot hand out GPUs: the NVIDIA container toolkit is not installed or not "
            "configured.",
            "Docker 无法分配 GPU：未安装或未配置 NVIDIA 容器工具包。",
        ),
        remedy=both(
            "Install nvidia-container-toolkit, run `nvidia-ctk runtime configure "
            "--runtime=docker` and restart Docker.",
            "安装 nvidia-container-toolkit，运行 `nvidia-ctk runtime configure "
            "--runtime=docker` 并重启 Docker。",
        ),
        sample=(
            'docker: Error response from daemon: could not select device driver "" with '
            "capabilities: [[gpu]]."
        ),
        source="NVIDIA/nvidia-docker#1352",
    ),
    Rule(
        id="container.cdi",
        severity="fatal",
        needles=("unresolvable CDI devices",),
        pattern=r"unresolvable CDI devices (?P<device>\S{1,80})",
        cause=both(
            "Podman does not know the device {device}.",
            "Podman 不认识设备 {device}。",
        ),
        remedy=both(
            "Run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` on the host, again "
            "after each driver update.",
            "在主机上运行 `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`，"
            "每次更新驱动后重做。",
        ),
        sample="Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
        source="NVIDIA/nvidia-container-toolkit#146",
    ),
    Rule(
        id="container.pull",
        severity="fatal",
        needles=(
            "could not pull",
            "manifest unknown",
            "pull access denied",
            "manifest for ",
        ),
        pattern=(
            r"(?:pdtui: (?P<runtime>\w+) could not pull (?P<image>\S{1,200})|manifest unknown|pull "
            r"access denied|manifest for \S+ not found)"
        ),
        cause=both(
            "The image cannot be pulled ({image}).",
            "无法拉取镜像（{image}）。",
        ),
        remedy=both(
            "Correct its name or tag, log the host in to the registry, or load the image by "
            "hand; the lines above say why.",
            "更正名称或标签，在主机上登录镜像仓库，或手动加载镜像；原因见上文。",
        ),
        sample="pdtui: docker could not pull example.org/vllm:none",
        source="pdtui itself",
    ),
    Rule(
        id="container.runtime_missing",
        severity="fatal",
        needles=("is not installed on this host",),
        pattern=r"pdtui: (?P<runtime>\w+) is not installed on this host",
        cause=both(
            "{runtime} is not installed on this host.",
            "该主机未安装 {runtime}。",
        ),
        remedy=both(
            "Install it, or set the host's runtime to what it has (docker, podman or process).",
            "安装它，或将主机运行时设为其拥有的类型（docker、podman 或 process）。",
        ),
        sample="pdtui: docker is not installed on this host",
        source="pdtui itself",
    ),
    Rule(
        id="container.daemon",
        severity="fatal",
        needles=(
            "permission denied while trying to connect to the",
            "Cannot connect to the Docker daemon",
        ),
        cause=both(
            "The login cannot talk to the container daemon.",
            "登录用户无法连接容器守护进程。",
        ),
        remedy=both(
            "Start the daemon, and put the SSH user in the docker group or use rootless podman.",
            "启动守护进程，并将 SSH 用户加入 docker 组，或使用无根 podman。",
        ),
        sample=(
            "permission denied while trying to connect to the Docker daemon socket at "
            "unix:///var/run/docker.sock"
        ),
        source="Docker",
    ),
    Rule(
        id="host.disk_full",
        severity="fatal",
        needles=(
            "No space left on device",
            "Disk quota exceeded",
        ),
        pattern=r"(?:No space left on device|Disk quota exceeded)(?:: '?(?P<path>[^']{1,200}))?",
        cause=both(
            "A disk of this host is full ({path}).",
            "该主机的磁盘已满（{path}）。",
        ),
        remedy=both(
            "Free space where models, caches (~/.cache), images and the work directory lie; "
            "/dev/shm counts too.",
            "清理模型、缓存（~/.cache）、镜像和工作目录所在磁盘；也要检查 /dev/shm。",
        ),
        sample="OSError: [Errno 28] No space left on device",
        source="steamship-core/steamship-langchain#57",
    ),
    Rule(
        id="host.shared_memory",
        severity="fatal",
        needles=(
            "unable to allocate shared memory(shm)",
            "insufficient shared memory (shm)",
            "Bus error",
        ),
        cause=both(
            "The shared memory (/dev/shm) is too small.",
            "共享内存（/dev/shm）过小。",
        ),
        remedy=both(
            "Start the container with --ipc=host or --shm-size=16g; free /dev/shm of files "
            "that dead engines left.",
            "启动容器时使用 --ipc=host 或 --shm-size=16g；清理已退出引擎遗留的 /dev/shm 文件。",
        ),
        sample=(
            "RuntimeError: unable to allocate shared memory(shm) for file "
            "</torch_2141_3210983_64>: Resource temporarily unavailable (11)"
        ),
        source="PyTorch",
    ),
    Rule(
        id="host.open_files",
        severity="fatal",
        needles=("Too many open files",),
        cause=both(
            "The limit of open files is reached.",
            "达到打开文件数上限。",
        ),
        remedy=both(
            "Raise ulimit -n of the login (or of the container) to 65536 or more.",
            "将登录用户（或容器）的 ulimit -n 提高到 65536 以上。",
        ),
        sample="OSError: [Errno 24] Too many open files",
        source="Python",
    ),
    Rule(
        id="host.threads",
        severity="fatal",
        needles=(
            "can't start new thread",
            "pthread_create failed",
        ),
        cause=both(
            "The limit of processes and threads is reached.",
            "达到进程与线程数上限。",
        ),
        remedy=both(
            "Raise ulimit -u of the login, or the container's pids limit.",
            "提高登录用户的 ulimit -u，或容器的 pids 限制。",
        ),
        sample="RuntimeError: can't start new thread",
        source="Python",
    ),
    Rule(
        id="host.out_of_memory",
        severity="fatal",
        needles=(
            "Out of memory: Killed process",
            "oom-kill:",
            "Memory cgroup out of memory",
        ),
        pattern=r"(?:Killed process \d+ \(|oom-kill:.{0,300}?task=)(?P<name>[^),]{1,60})",
        cause=both(
            "The kernel killed a process because the host's memory was full ({name}).",
            "主机内存耗尽，内核结束了进程（{name}）。",
        ),
        remedy=both(
            "Loading weights needs host memory too: place fewer members on the host, lower CPU "
            "offload, or raise the container's limit.",
            "加载权重也需要主机内存：减少该主机上的成员，降低 CPU 卸载，或提高容器限额。",
        ),
        sample=(
            "[Thu Aug 27 00:39:44 2026] Out of memory: Killed process 3742074 (lmcache) "
            "total-vm:81306880kB, anon-rss:1058560kB, file-rss:21412kB, shmem-rss:428kB, UID:0 "
            "pgtables:28484kB oom_score_adj:0"
        ),
        source="LMCache/LMCache#4759",
    ),
    Rule(
        id="program.core_gone",
        severity="fatal",
        needles=("died unexpectedly, shutting down client", "engine core exited unexpectedly"),
        pattern=(
            r"Engine core proc (?P<name>[\w.-]{1,60}) died unexpectedly"
            r"|engine core exited unexpectedly"
        ),
        symptom=True,
        alone=True,
        cause=both(
            "The engine's core process ({name}) ended without an error of its own: something "
            "outside killed it.",
            "引擎核心进程（{name}）自身没有报错就结束了：它是被外部结束的。",
        ),
        remedy=both(
            "Look for the kernel's memory killer (dmesg), a driver fault (Xid), or somebody's kill "
            "-9; the member is started again by itself.",
            "检查内核的内存回收（dmesg）、驱动故障（Xid）或他人的 kill -9；成员会自动重新启动。",
        ),
        sample=(
            "ERROR 12-01 23:08:02 [core_client.py:564] Engine core proc EngineCore_DP0 died "
            "unexpectedly, shutting down client."
        ),
        source="vLLM, a public report",
    ),
    Rule(
        id="program.killed",
        severity="fatal",
        needles=("Killed",),
        pattern=r"^Killed\r?$",
        symptom=True,
        alone=True,
        cause=both(
            "The program was ended from outside with SIGKILL, without a word of its own.",
            "程序被外部以 SIGKILL 强行结束，来不及留下任何说明。",
        ),
        remedy=both(
            "Look for the kernel's memory killer (dmesg) or somebody's kill -9; the member is "
            "started again by itself.",
            "检查内核的内存回收（dmesg）或他人的 kill -9；成员会自动重新启动。",
        ),
        sample="Killed",
        source="a shell's word for a child that got SIGKILL",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
