"""Podman or docker on a laboratory host: real containers of a tiny image that sees its own /usr."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lab.machines import Machine

IMAGE = "localhost/engine:1"

# The machine that carries the laboratory may have control groups of both kinds and no right to
# raise limits: the host has groups of its own, and an OCI runtime that asks for less (`oci.py`).
_SETUP = r"""
set -e
mount -t tmpfs groups /sys/fs/cgroup
for c in $(awk '!/^#/ && $4 == 1 { print $1 }' /proc/cgroups); do
  mkdir -p "/sys/fs/cgroup/$c"
  mount -t cgroup -o "$c" cgroup "/sys/fs/cgroup/$c" 2>/dev/null || rmdir "/sys/fs/cgroup/$c"
done
mkdir -p /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
printf '#!/bin/sh\nexec "%s" -I "%s" "$@"\n' "$1" "$2" >/usr/local/bin/runc-lab
chmod 755 /usr/local/bin/runc-lab
mkdir -p /run/cards /etc/lab
printf '%s\n' "$3" >/etc/lab/oci.json
printf '%s' "$4" >/run/cards/nvidia-smi
chmod 755 /run/cards/nvidia-smi
for i in 0 1; do mknod "/run/cards/nvidia$i" c 1 3; done
cd /tmp
mkdir -p image/usr image/etc image/tmp image/proc image/dev image/sys image/root
for d in bin lib lib64 sbin; do ln -sfn "usr/$d" "image/$d"; done
cp -a /etc/passwd /etc/ld.so.cache /etc/ssl image/etc/ # the router wants certificates
tar -C image -cf image.tar .
"""
_PODMAN = r"""
mkdir -p /etc/containers /etc/cdi /run/ctr
printf '%s\n' "$6" >/etc/cdi/nvidia.json
cat >/etc/containers/containers.conf <<'CONF'
[engine]
runtime = "lab"
cgroup_manager = "cgroupfs"
events_logger = "file"
[engine.runtimes]
lab = ["/usr/local/bin/runc-lab"]
CONF
printf '[storage]\ndriver = "vfs"\ngraphroot = "/run/ctr/root"\nrunroot = "/run/ctr/run"\n' \
  >/etc/containers/storage.conf
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
podman import -q image.tar "$5"
podman run --rm --network host --log-driver none "$5" true
"""
_HOOK = r"""
printf '#!/bin/sh\nexec cat >/dev/null\n' >/usr/local/bin/nvidia-container-runtime-hook
chmod 755 /usr/local/bin/nvidia-container-runtime-hook # dockerd looks for it as it starts
"""
DOCKERD = r"""
setsid dockerd --data-root /run/docker-data --exec-root /run/docker-exec --storage-driver vfs \
  --iptables=false --ip6tables=false --bridge=none --add-runtime lab=/usr/local/bin/runc-lab \
  --default-runtime lab </dev/null >/run/dockerd.log 2>&1 &
n=0
until docker version >/dev/null 2>&1; do
  n=$((n + 1))
  [ "$n" -lt 300 ] || { tail -n 5 /run/dockerd.log >&2; exit 1; }
  sleep 0.1
done
"""
_DOCKER_IMAGE = r"""
docker import image.tar "$5" >/dev/null
docker run --rm --network host --log-driver none "$5" true
"""


_INSIDE_SMI = """\
#!/bin/sh
for f in /dev/nvidia[0-9]*; do
  case $f in {cases} esac
done
"""
"""The driver's tool as it is in a container: it knows the cards whose device files are there."""


def cdi_spec(machine: Machine, indices: Sequence[int], *, uuids: bool = True) -> str:
    """A CDI specification of these cards, by index and by UUID as nvidia-ctk writes it."""
    devices = []
    for i in indices:
        node = {"path": f"/dev/nvidia{i}", "hostPath": f"/run/cards/nvidia{i}",
                "type": "c", "major": 1, "minor": 3}  # fmt: skip
        edits = {"env": [f"CARD_{i}={machine.plan.uuid(i)}"], "deviceNodes": [node]}
        names = [str(i), machine.plan.uuid(i)] if uuids else [str(i)]
        devices += [{"name": name, "containerEdits": edits} for name in names]
    tool = {
        "hostPath": "/run/cards/nvidia-smi", "containerPath": "/usr/local/bin/nvidia-smi",
        "options": ["ro", "nosuid", "nodev", "bind"],
    }  # fmt: skip
    return json.dumps({
        "cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices,
        "containerEdits": {"mounts": [tool]},
    })  # fmt: skip


def with_podman(machine: Machine, python: str) -> None:
    """Let the host run containers of podman; its accelerators are CDI devices that leave a mark.

    Skips the test, with what was said, where the kernel does not let it.
    """
    _set_up(machine, python, _SETUP + _PODMAN)


def with_docker(machine: Machine, python: str) -> None:
    """As `with_podman`, with a dockerd of the host's own; its GPUs come from NVIDIA's hook."""
    _set_up(machine, python, _SETUP + _HOOK + DOCKERD + _DOCKER_IMAGE)


def _set_up(machine: Machine, python: str, script: str) -> None:
    plan = machine.plan
    cards = range(plan.accelerators) if plan.vendor == "nvidia" else range(0)
    mounts = [[v, v] for v in ("/usr", *map(str, machine.bind))]
    mounts.append(["tmpfs", "/usr/local/Ascend"])
    if cards:  # not the host's own, which knows all of them
        mounts.append(["/run/cards/nvidia-smi", "/usr/local/bin/nvidia-smi"])
    host = {"mounts": mounts, "cards": {plan.uuid(i): f"/dev/nvidia{i}" for i in cards}}
    cases = " ".join(
        f"/dev/nvidia{i}) echo 'GPU {i}: {plan.accelerator_type} (UUID: {plan.uuid(i)})' ;;"
        for i in cards
    )
    argv = [
        "nsenter", "-t", str(machine.pid()), "-a", "/bin/sh", "-c",
        "mkdir -p /usr/local/Ascend\n" + script, "sh",
        python, str(Path(__file__).with_name("oci.py")), json.dumps(host),
        _INSIDE_SMI.format(cases=cases), IMAGE, cdi_spec(machine, cards),
    ]  # fmt: skip
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=60, check=False,
        env={"HOME": "/root/login", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"no containers here: {done.stderr.strip()[-500:]}")


SET_UP = {"podman": with_podman, "docker": with_docker}

OWN_DEVICES = r"""
set -e
mkdir -p /run/dev
mount -t tmpfs -o mode=755 dev /run/dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx \
  /dev/fd /dev/stdin /dev/stdout /dev/stderr /run/dev/
[ ! -e /dev/fuse ] || cp -a /dev/fuse /run/dev/
for d in pts shm mqueue; do
  if [ -d "/dev/$d" ]; then mkdir "/run/dev/$d"; mount --bind "/dev/$d" "/run/dev/$d"; fi
done
mount --move /run/dev /dev
"""
"""Device files of a host's own: the laboratory's hosts share ours otherwise."""
