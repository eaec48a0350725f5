"""Podman on a laboratory host: real containers of a tiny image that sees the host's own /usr."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import pytest

from tests.lab.machines import Machine

IMAGE = "localhost/engine:1"

# The machine that carries the laboratory may lack the right to raise limits and have control groups
# of both kinds; so rlimits are taken out before runc sees them, and the host has groups of its own.
_SETUP = r"""
set -e
mount -t tmpfs groups /sys/fs/cgroup
for c in $(awk '!/^#/ && $4 == 1 { print $1 }' /proc/cgroups); do
  mkdir -p "/sys/fs/cgroup/$c"
  mount -t cgroup -o "$c" cgroup "/sys/fs/cgroup/$c" 2>/dev/null || rmdir "/sys/fs/cgroup/$c"
done
mkdir -p /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
cat >/usr/local/bin/runc-lab <<'SH'
#!/bin/sh
b= f= p=
for a; do case $p in --bundle|-b) b=$a ;; --process|-p) f=$a ;; esac; p=$a; done
for j in ${b:+"$b/config.json"} ${f:+"$f"}; do
  [ -f "$j" ] && "$LAB_PYTHON" -c '
import json, sys
data = json.load(open(sys.argv[1]))
process = data.get("process", data)
process.pop("rlimits", None)
process.pop("oomScoreAdj", None)
json.dump(data, open(sys.argv[1], "w"))' "$j"
done
exec runc "$@"
SH
sed -i "s|\"\$LAB_PYTHON\"|$1|" /usr/local/bin/runc-lab
chmod 755 /usr/local/bin/runc-lab
mkdir -p /etc/containers /etc/cdi /run/ctr /run/cards
printf '%s' "$5" >/run/cards/nvidia-smi
chmod 755 /run/cards/nvidia-smi
for i in 0 1; do mknod "/run/cards/nvidia$i" c 1 3; done
printf '%s\n' "$2" >/etc/containers/containers.conf
printf '%s\n' "$3" >/etc/cdi/nvidia.json
printf '[storage]\ndriver = "vfs"\ngraphroot = "/run/ctr/root"\nrunroot = "/run/ctr/run"\n' \
  >/etc/containers/storage.conf
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
cd /tmp
mkdir -p image/usr image/etc image/tmp image/proc image/dev image/sys image/root
for d in bin lib lib64 sbin; do ln -sfn "usr/$d" "image/$d"; done
cp -a /etc/passwd /etc/ld.so.cache /etc/ssl image/etc/ # the router wants certificates
tar -C image -cf image.tar .
podman import -q image.tar "$4"
podman run --rm --network host --log-driver none "$4" true
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
    """Let the host run containers; its accelerators are CDI devices that leave a mark.

    Skips the test, with what podman said, where the kernel does not let it.
    """
    volumes = [f"{v}:{v}:ro" for v in ("/usr", *map(str, machine.bind))]
    if machine.plan.accelerators and machine.plan.vendor == "nvidia":
        volumes.append("/run/cards/nvidia-smi:/usr/local/bin/nvidia-smi:ro")  # not the host's own
    config = (
        f"[containers]\nvolumes = {json.dumps(volumes)}\n"
        '[engine]\nruntime = "lab"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        '[engine.runtimes]\nlab = ["/usr/local/bin/runc-lab"]\n'
    )
    cards = range(machine.plan.accelerators)
    cases = " ".join(
        f"/dev/nvidia{i}) echo 'GPU {i}: {machine.plan.accelerator_type}"
        f" (UUID: {machine.plan.uuid(i)})' ;;"
        for i in cards
    )
    tool = _INSIDE_SMI.format(cases=cases)
    argv = [
        "nsenter", "-t", str(machine.pid()), "-a", "/bin/sh", "-c", _SETUP, "sh",
        python, config, cdi_spec(machine, cards), IMAGE, tool,
    ]  # fmt: skip
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=60, check=False,
        env={"HOME": "/root/login", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"no containers here: {done.stderr.strip()[-500:]}")


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
