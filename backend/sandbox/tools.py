"""The fake tools of an embedded host: shell scripts in `<home>/bin`, found before the real ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from backend.domain.shell import join, quote
from backend.sandbox.plan import HostPlan

HCCN = "/etc/hccn.conf"
_ENGINE = Path(__file__).parent / "engine" / "__main__.py"
_RULE = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
_NVIDIA_HEAD = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------|
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|"""
_NPU_HEAD = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3                 Version: 24.1.rc3                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+"""
_NPU_RULE = "+" + "=" * 27 + "+" + "=" * 15 + "+" + "=" * 52 + "+"


def install(home: Path, plan: HostPlan, address: str) -> None:
    """Write every tool of `plan`'s host into `home/bin`."""
    bin_dir = home / "bin"
    bin_dir.mkdir(parents=True, exist_ok=True)
    tools = {
        "hostname": f"printf '%s\\n' {quote(plan.name)}\n",
        "ip": _ip(plan, address),
        "vllm": f'exec {join([sys.executable, "-P", str(_ENGINE)])} "$@"\n',
        "vllm-router": _router(),
        "python3": _python(),
    }
    if plan.accelerators and plan.vendor == "nvidia":
        tools["nvidia-smi"] = _nvidia_smi(plan)
    if plan.accelerators and plan.vendor == "ascend":
        tools["npu-smi"] = _npu_smi(plan)
        tools["cat"] = _reader(home)
        if plan.hccn:
            (home / "etc").mkdir(exist_ok=True)
            (home / "etc" / "hccn.conf").write_text(_hccn(plan))
    for name, body in tools.items():
        path = bin_dir / name
        path.write_text(f"#!/bin/sh\n{body}")
        path.chmod(0o755)


def _print(text: str) -> str:
    """A shell command that prints `text`."""
    return f"printf '%s' {quote(text)}"


def _python() -> str:
    """python3 of a host where SGLang and its router are installed."""
    engine, real = join([sys.executable, "-P", str(_ENGINE)]), quote(sys.executable)
    return (
        'case "$1 $2" in\n'
        f"  '-m sglang.launch_server') shift 2; exec {engine} sglang \"$@\" ;;\n"
        "  '-m sglang_router.launch_router')\n"
        f"    {real} -P -c 'import sglang_router' 2>/dev/null || {{\n"
        "      echo 'sglang_router: not installed beside the Python of this sandbox;"
        " install the dev extra (sglang-router==0.3.2)' >&2\n"
        "      exit 127\n"
        "    }\n"
        "    export PYTHONSAFEPATH=1 ;;\n"
        "esac\n"
        f'exec {real} "$@"\n'
    )


def _reader(home: Path) -> str:
    """cat of a host whose /etc/hccn.conf is a file in its home: all hosts share one /etc."""
    own = quote(str(home / "etc" / "hccn.conf"))
    return f'if [ "$*" = {HCCN} ]; then set -- {own}; fi\nexec /bin/cat "$@"\n'


def _router() -> str:
    real = Path(sys.executable).with_name("vllm-router")
    return (
        f"if [ ! -x {quote(str(real))} ]; then\n"
        "  echo 'vllm-router: not installed beside the Python of this sandbox;"
        " install the demo extra (vllm-router==0.1.15)' >&2\n"
        "  exit 127\n"
        "fi\n"
        f'exec {quote(str(real))} "$@"\n'
    )


def _ip(plan: HostPlan, address: str) -> str:
    def link(
        number: int,
        name: str,
        flags: list[str],
        state: str,
        local: str,
        prefix: int,
        **more: object,
    ) -> dict[str, object]:
        loopback = "LOOPBACK" in flags
        return {
            "ifindex": number,
            "ifname": name,
            "flags": flags,
            "mtu": 65536 if loopback else 1500,
            "operstate": state,
            "link_type": "loopback" if loopback else "ether",
            **more,
            "addr_info": [
                {
                    "family": "inet",
                    "local": local,
                    "prefixlen": prefix,
                    "scope": "host" if loopback else "global",
                }
            ],
        }

    up = ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]
    links = [
        link(1, "lo", ["LOOPBACK", "UP", "LOWER_UP"], "UNKNOWN", "127.0.0.1", 8),
        link(2, "eth0", up, "UP", address, 24),
        link(
            3, "docker0", ["NO-CARRIER", "BROADCAST", "MULTICAST", "UP"], "DOWN", "172.17.0.1", 16,
            linkinfo={"info_kind": "bridge"},
        ),
    ]  # fmt: skip
    net = address.rsplit(".", 1)[0]
    routes = [
        {"dst": "default", "gateway": f"{net}.254", "dev": "eth0", "flags": []},
        {"dst": f"{net}.0/24", "dev": "eth0", "prefsrc": address, "scope": "link", "flags": []},
        {
            "dst": "172.17.0.0/16", "dev": "docker0", "prefsrc": "172.17.0.1", "scope": "link",
            "flags": ["linkdown"],
        },
    ]  # fmt: skip
    return (
        "what=\n"
        'for a in "$@"; do case "$a" in\n'
        "  a|ad|add|addr|address) what=addr ;; r|ro|route) what=route ;;\n"
        "esac; done\n"
        'case "$what" in\n'
        f"  addr) {_print(json.dumps(links) + chr(10))} ;;\n"
        f"  route) {_print(json.dumps(routes) + chr(10))} ;;\n"
        "  *) echo 'ip: this host knows -j addr and -j route only' >&2; exit 2 ;;\n"
        "esac\n"
    )


def _nvidia_smi(plan: HostPlan) -> str:
    query = "index,uuid,name,memory.total"
    rows = [
        (i, plan.uuid(i), plan.accelerator_type, plan.memory_mib) for i in range(plan.accelerators)
    ]
    bare = "".join(f"{i}, {u}, {t}, {m}\n" for i, u, t, m in rows)
    units = "".join(f"{i}, {u}, {t}, {m} MiB\n" for i, u, t, m in rows)
    head = "index, uuid, name, memory.total [MiB]\n"
    listing = "".join(f"GPU {i}: {t} (UUID: {u})\n" for i, u, t, _ in rows)
    return (
        'case "$*" in\n'
        f"  '--query-gpu={query} --format=csv,noheader,nounits') {_print(bare)} ;;\n"
        f"  '--query-gpu={query} --format=csv,noheader') {_print(units)} ;;\n"
        f"  '--query-gpu={query} --format=csv') {_print(head + units)} ;;\n"
        f"  -L) {_print(listing)} ;;\n"
        f"  '') {_print(_nvidia_table(plan))} ;;\n"
        "  --query-compute-apps=*) ;;\n"
        '  *) echo "Field or option not known to this host: $*" >&2; exit 2 ;;\n'
        "esac\n"
    )


def _nvidia_table(plan: HostPlan) -> str:
    lines = [_NVIDIA_HEAD]
    for i in range(plan.accelerators):
        name = f"{plan.accelerator_type[:28]:<28}"
        bus = f"00000000:{4 + i:02X}:00.0"
        usage = f"0MiB / {plan.memory_mib:>6}MiB"
        lines += [
            f"| {i:>3}  {name}    On | {bus:>18} Off |                    0 |",
            f"| N/A   40C    P0             71W /  699W | {usage:>22} |      0%      Default |",
            _RULE,
        ]
    return "\n".join(lines) + "\n"


def _hccn(plan: HostPlan) -> str:
    return "".join(
        f"address_{i}=192.168.{10 + i % 4}.{20 + i}\nnetmask_{i}=255.255.255.0\n"
        for i in range(plan.accelerators)
    )


def _npu_smi(plan: HostPlan) -> str:
    chip = plan.accelerator_type.removeprefix("Ascend").strip() or plan.accelerator_type
    head = [_NPU_HEAD]
    mapping = [
        "NPU ID" + " " * 25 + "Chip ID" + " " * 24 + "Chip Logic ID" + " " * 18 + "Chip Name"
    ]
    cards = [f"        Total Count                    : {plan.accelerators}\n"]
    for i in range(plan.accelerators):
        usage = f"0    / 0          {3400:<4} / {plan.memory_mib}"
        head += [
            f"| {i:<5} {chip:<20}| OK            | 92.7        36                0    / 0"
            + " " * 13 + "|",
            f"| {0:<26}| 0000:{0x81 + i:02X}:00.0  | 0           {usage:<39} |",
            _NPU_RULE,
        ]  # fmt: skip
        mapping.append(f"{i:<31}{0:<31}{i:<31}Ascend {chip}")
        cards.append(
            f"        NPU ID                         : {i}\n"
            "        Chip Count                     : 1\n"
        )
    memory = (
        "        DDR Capacity(MB)               : 0\n"
        f"        HBM Capacity(MB)               : {plan.memory_mib}\n"
    )
    return (
        'case "$*" in\n'
        f"  info) {_print(chr(10).join(head) + chr(10))} ;;\n"
        f"  'info -m') {_print(chr(10).join(mapping) + chr(10))} ;;\n"
        f"  'info -l') {_print(chr(10).join(cards))} ;;\n"
        f"  'info -t memory -i '*) {_print(memory)} ;;\n"
        '  *) echo "npu-smi: this host does not know: $*" >&2; exit 2 ;;\n'
        "esac\n"
    )
