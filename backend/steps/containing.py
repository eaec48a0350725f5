"""Instances as containers: the launcher that the supervisor runs, and the scripts that clean up.

The supervised process is the runtime's own client (`docker run`, `podman run`) in the foreground:
its output is the log, its exit code the container's, and a SIGTERM to it reaches the container. So
claims, logs, generations and adoption are the process runtime's; what is added here is that no
container outlives its instance. The client passes variables on by name from its environment, so
that no value stands in a command line. A container's label `pdtui.id` is its instance's directory,
which stays what it is when another backend adopts the instance.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend.domain.host import Runtime, Vendor
from backend.domain.instance import LaunchFile, LaunchSpec, Mount
from backend.domain.references import is_reference
from backend.domain.secrets import is_secret
from backend.steps.common import LIB, instance_id

SCRIPT_NAME = "container.sh"
PASSED = ("PDTUI_RUN_ID", "PDTUI_INSTANCE", "PDTUI_ROLE")
_CLIENTS_OWN = re.compile(
    r"^(PATH|HOME|USER|TMPDIR|IFS|ENV|BASH_ENV|SSH_.*|LD_.*|XDG_.*|DOCKER_.*|CONTAINERS?_.*|PODMAN_.*)$"
)
"""Variables that would change what the client itself does: they travel as NAME=VALUE, unless they
are secrets, which no command line may show."""

ASCEND_DEVICES = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
ASCEND_MOUNTS = (
    "/usr/local/dcmi", "/usr/local/bin/npu-smi", "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/version.info", "/etc/ascend_install.info", "/etc/hccn.conf",
)  # fmt: skip

COMMON = (
    "--pull", "never",
    "--network", "host",
    "--ipc", "host",
    "--log-driver", "none",
    "--security-opt", "label=disable",
)  # fmt: skip
"""What every container is started with."""
_GPU_UUID = re.compile(r"^GPU-[0-9A-Za-z-]+$")

LAUNCHER = r"""
# usage: container.sh RUNTIME IMAGE FILES DEVICES MOUNTS ARGUMENT...
rt=$1 id=$PWD image=$2 files=$3 devices=$4 mounts=$5
shift 5
set -- --label "pdtui.id=$id" "$@"
command -v "$rt" >/dev/null 2>&1 || { echo "pdtui: $rt is not installed on this host"; exit 127; }
old=$("$rt" ps -aq --filter "label=pdtui.id=$id") || exit 125
for c in $old; do "$rt" rm -f "$c" >/dev/null 2>&1; done
if ! "$rt" image inspect "$image" >/dev/null 2>&1; then
  echo "pdtui: the image $image is not on this host; $rt pulls it"
  "$rt" pull "$image" </dev/null || { echo "pdtui: $rt could not pull $image"; exit 125; }
  echo "pdtui: the image $image is here"
fi
for f in $files; do set -- -v "$PWD/$f:$PWD/$f:ro" "$@"; done
for m in $mounts; do if [ -e "$m" ]; then set -- -v "$m:$m:ro" "$@"; fi; done
for d in $devices; do
  case $d in
  cdi:*) # INDEX:UUID; by UUID where the host's specifications know that name
    i=${d#cdi:} u=${d##*:} i=${i%%:*}
    if [ -n "$u" ] && cat /etc/cdi/* /var/run/cdi/* 2>/dev/null |
      grep -qE "name[\"']?: *[\"']?$u([\"', }]|\$)"; then i=$u; fi
    set -- --device "nvidia.com/gpu=$i" "$@" ;;
  *) if [ -e "$d" ]; then set -- --device "$d" "$@"; fi ;;
  esac
done
if [ -d /dev/infiniband ]; then set -- --device /dev/infiniband --cap-add IPC_LOCK "$@"; fi
case $rt:$(id -u) in
podman:[1-9]*) set -- --ulimit host "$@" ;; # without root it may raise nothing
*) set -- --ulimit memlock=-1:-1 --ulimit stack=67108864:67108864 "$@" ;;
esac
exec "$rt" run "$@"
"""

END = (
    LIB
    + r"""
work "$2"
rt=$1 id=$W/instances/$3 grace=$4
command -v "$rt" >/dev/null 2>&1 || { echo "LEFT"; exit 0; }
ids=$("$rt" ps -aq --filter "label=pdtui.id=$id") || exit 1
for c in $ids; do
  if [ "$("$rt" inspect -f '{{.State.Running}}' "$c" 2>/dev/null)" = true ]; then
    "$rt" stop -t "$grace" "$c" >/dev/null 2>&1 || "$rt" kill "$c" >/dev/null 2>&1
  fi
  "$rt" rm -f "$c" >/dev/null 2>&1
done
left=$("$rt" ps -aq --filter "label=pdtui.id=$id") || exit 1
echo "LEFT" $left
"""
)
"""Arguments: runtime, work directory, instance, seconds of grace. Names what it left."""

INSPECT = (
    LIB
    + r"""
work "$2"
rt=$1
shift 2
command -v "$rt" >/dev/null 2>&1 || exit 0
for id in "$@"; do
  for c in $("$rt" ps -aq --filter "label=pdtui.id=$W/instances/$id" 2>/dev/null); do
    said=$("$rt" inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}} {{.State.Running}}' \
      "$c" 2>/dev/null)
    case $said in # podman does not always hear of it; the kernel names the container's group
    "false 137 "*) if dmesg 2>/dev/null | grep -a 'oom-kill:' | grep -aq "[-/]$c"; then
      said="true ${said#false }"
    fi ;;
    esac
    printf '%s %s\n' "$id" "$said"
  done
done
exit 0
"""
)
"""Arguments: runtime, work directory, instances. One line a container: the instance, whether it was
killed for memory, its exit code, whether it runs."""


@dataclass(frozen=True)
class Ended:
    """What a runtime says of an ended container."""

    oom: bool
    exit_code: int
    running: bool


def container_spec(
    runtime: Runtime,
    instance: str,
    generation: int,
    spec: LaunchSpec,
    labels: Mapping[str, str],
) -> LaunchSpec:
    """The launch of the runtime's client that runs `spec` in a container of `spec.image`.

    Host network and IPC: peers and transports find each other as bare processes would. Raises
    ValueError for a launch without an image.
    """
    if not spec.image:
        raise ValueError(f"{instance} has no image")
    hidden = {n for n, v in spec.env.items() if is_secret(n) or is_reference(v)}
    names = [n for n in spec.env if n in hidden or not _CLIENTS_OWN.match(n)]
    run = [
        "--name", f"pdtui-{instance_id(instance)}-g{int(generation)}",
        *COMMON,
        "--label", f"pdtui.generation={int(generation)}",
    ]  # fmt: skip
    for key, value in sorted(labels.items()):
        run += ["--label", f"pdtui.{key}={value}"]
    for name in (*PASSED, *names):
        run += ["-e", name]
    for name, value in spec.env.items():
        if name not in names:
            run += ["-e", f"{name}={value}"]
    for mount in spec.mounts:
        run += ["--mount", _bound(mount)]
    given = cards(runtime, spec.vendor, spec.accelerators, spec.accelerator_uuids)
    run += [*given.arguments, "--entrypoint", spec.argv[0], spec.image, *spec.argv[1:]]
    argv = (
        "sh", f"./{SCRIPT_NAME}", runtime, spec.image,
        " ".join(f.name for f in spec.files), given.devices, given.mounts,
        *run,
    )  # fmt: skip
    script = LaunchFile(name=SCRIPT_NAME, content=LAUNCHER)
    return spec.model_copy(
        update={
            "argv": argv,
            "env": {n: spec.env[n] for n in names},
            "files": (*spec.files, script),
        }
    )


def _bound(mount: Mount) -> str:
    """The words of `--mount`, which the clients read as a line of CSV; `-v` would end a path at a
    colon, and docker's would make an empty folder where there is none."""
    line = io.StringIO()
    words = ("type=bind", f"source={mount.source}", f"target={mount.target}", "readonly")
    csv.writer(line, lineterminator="").writerow(words)
    return line.getvalue()


@dataclass(frozen=True)
class Cards:
    """How a container is given its accelerators: words of LAUNCHER's DEVICES and MOUNTS, and
    arguments of the client's own."""

    devices: str = ""
    mounts: str = ""
    arguments: tuple[str, ...] = ()


def cards(
    runtime: Runtime, vendor: Vendor | None, indices: Sequence[int], uuids: Sequence[str]
) -> Cards:
    """What gives a container the accelerators `indices`, whose `uuids` are in the same order.

    NVIDIA's are known by UUID, which outlives a change of their order: docker takes UUIDs, podman
    the names of CDI, among which the launcher looks for them; by index where there is no UUID.
    Ascend's are device files of the chips, and the driver's folders.
    """
    if not indices or vendor is None:
        return Cards()
    known = list(uuids) if len(uuids) == len(indices) else [""] * len(indices)
    named = [u if _GPU_UUID.match(u) else "" for u in known]
    if vendor == "ascend":
        chips = [f"/dev/davinci{i}" for i in indices]
        return Cards(" ".join([*chips, *ASCEND_DEVICES]), " ".join(ASCEND_MOUNTS))
    if runtime == "podman":
        return Cards(" ".join(f"cdi:{i}:{u}" for i, u in zip(indices, named, strict=True)))
    chosen = ",".join(u or str(i) for i, u in zip(indices, named, strict=True))
    return Cards(arguments=("--gpus", f'"device={chosen}"'))


def left(text: str) -> tuple[str, ...]:
    """Containers that END could not remove. Raises ValueError when the answer is none."""
    for line in text.splitlines():
        if line.split(" ")[0] == "LEFT":
            return tuple(line.split()[1:])
    raise ValueError(f"unreadable answer about containers: {text[-200:]!r}")


def ended(text: str) -> dict[str, Ended]:
    """INSPECT's answer, by the instance's id."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 4 and words[2].lstrip("-").isdecimal():
            found[words[0]] = Ended(
                oom=words[1] == "true", exit_code=int(words[2]), running=words[3] == "true"
            )
    return found
