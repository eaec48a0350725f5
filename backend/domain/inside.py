"""What a container sees of the accelerators it was given, and what is wrong where it sees less.

Sources of the runtimes' words: their own reports (docker, podman, libnvidia-container, CDI).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from backend.domain.host import Accelerator, Claim, HostFacts, Use, Vendor

DRIVER = "/usr/local/Ascend/driver/lib64"
"""Where Ascend's driver lies on a host and is looked for in its images."""
_REGENERATE = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


class Inside(BaseModel):
    """A container of `image` that was given the cards `asked`.

    `late`: it did not end in time. `began`: something ran in it; if not, `said` is why, and
    `bare` whether one without cards begins (None: not tried). `listed` are the UUIDs that
    nvidia-smi shows in it (None: there is no such tool), `tool` what that complains of; `devices`
    are device files, `files` those of the driver that are there.
    """

    model_config = ConfigDict(frozen=True)

    image: str
    wanted: bool = False
    asked: tuple[str, ...] = ()
    late: bool = False
    began: bool = False
    said: str = ""
    bare: bool | None = None
    bare_said: str = ""
    devices: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    listed: tuple[str, ...] | None = None
    tool: str = ""


CAUSES = (
    (
        r"could not select device driver|unknown (or invalid )?runtime",
        "Its runtime knows no GPUs: install nvidia-container-toolkit, then sudo nvidia-ctk runtime "
        "configure --runtime=docker and sudo systemctl restart docker.",
    ),
    (
        r"unresolvable CDI devices|stat nvidia\.com/gpu",
        f"Its CDI specification does not name these cards: {_REGENERATE}, and anew whenever the "
        "driver or the cards change (podman before 4.1 knows no CDI at all).",
    ),
    (
        r"unsatisfied condition",
        "The image asks for a newer driver than the host has: update the driver, or choose an "
        "image of an older CUDA.",
    ),
    (
        r"driver/library version mismatch",
        "The driver was updated and the old one is still loaded: reboot the host.",
    ),
    (
        r"driver not loaded|nvml error|couldn.t communicate with the NVIDIA driver",
        "The driver is not loaded: look at nvidia-smi and dmesg on the host.",
    ),
    (
        r"Failed to initialize NVML|insufficient permissions",
        "It was given the tool but not the device files: check no-cgroups in /etc/nvidia-container-"
        "runtime/config.toml, and for rootless podman the rights on /dev/nvidia*.",
    ),
    (
        r"unknown device|device error",
        "The runtime does not know this card: look at nvidia-smi -L on the host; reboot it when a "
        "card is lost.",
    ),
    (
        r"nvidia-container-cli|libnvidia-container|ldcache|nvidia-container-runtime",
        "Install nvidia-container-toolkit anew, in a version that fits the driver.",
    ),
    (
        r"cannot stat|failed to stat|error stat|no such file or directory|cannot open",
        f"Files of another driver version are asked for, its CDI specification is stale: "
        f"{_REGENERATE}.",
    ),
)  # fmt: skip
"""A pattern of what is said, and what to do; the first that matches holds."""
_PATTERNS = tuple((re.compile(p, re.I), remedy) for p, remedy in CAUSES)


def remedy_of(said: str, otherwise: str) -> str:
    """What to do about a runtime's complaint."""
    return next((remedy for p, remedy in _PATTERNS if p.search(said)), otherwise)


def chosen(facts: HostFacts, only: Sequence[int] | None) -> tuple[Accelerator, ...]:
    """The cards to look at, of one vendor: `only` those, or all that a member may be given.

    An Ascend chip belongs to the container that opened it first; only free ones are looked at.
    """
    cards = [a for a in facts.accelerators if not a.mig and (only is None or a.index in only)]
    vendor = cards[0].vendor if cards else None
    busy = _busy(facts.claims, facts.uses) if vendor == "ascend" and only is None else frozenset()
    return tuple(a for a in cards if a.vendor == vendor and a.index not in busy)


def _busy(claims: Sequence[Claim], uses: Sequence[Use]) -> frozenset[int]:
    return frozenset(i for c in claims for i in c.accelerators) | {u.index for u in uses}


def named(cards: Sequence[Accelerator]) -> tuple[str, ...]:
    """How each card is known in a container: an NVIDIA card by UUID, an Ascend chip by its file."""
    return tuple(f"/dev/davinci{a.index}" if a.vendor == "ascend" else a.uuid for a in cards)


Said = tuple[Literal["pass", "warn", "fail"], str, str]
"""Verdict, what was seen, remedy."""


def judged(runtime: str, vendor: Vendor, i: Inside) -> Iterator[Said]:
    """What is to be said of it: one thing at most."""
    count = len(i.asked)
    whole = f"{count} accelerator" + ("" if count == 1 else "s")
    if i.late:
        yield (
            "warn", f"a container of {i.image} with {whole} did not end in time",
            f"Try it there: {runtime} run --rm {i.image} true. A driver that nothing keeps loaded "
            "is slow: nvidia-smi -pm 1.",
        )  # fmt: skip
    elif not i.began and i.bare is False:
        yield (
            "fail", f"{runtime} starts no container of {i.image}: {i.bare_said or i.said}",
            f"Mend it until this works there: {runtime} run --rm {i.image} true.",
        )  # fmt: skip
    elif not i.began:
        yield (
            "fail", f"{runtime} starts no container of {i.image} with {whole}: {i.said}",
            remedy_of(i.said, "One without accelerators starts: look at the runtime's set-up for "
                      "them."),
        )  # fmt: skip
    else:
        yield _seen(runtime, vendor, i, whole)


def _seen(runtime: str, vendor: Vendor, i: Inside, whole: str) -> Said:
    if i.tool:
        return (
            "fail", f"in a container of {i.image} nvidia-smi says: {i.tool}",
            remedy_of(i.tool, "Look at the runtime's set-up for accelerators."),
        )  # fmt: skip
    if vendor == "ascend":
        return _chips(i, whole)
    lacking = [a for a in i.asked if a not in i.listed] if i.listed is not None else []
    if i.listed is None and len(_cards(i.devices)) < len(i.asked):
        return (
            "fail",
            f"a container of {i.image} was given {whole} and has {len(_cards(i.devices))} device "
            "files of cards, and no nvidia-smi",
            f"Set up the toolkit for {runtime}"
            + (f": {_REGENERATE}." if runtime == "podman" else
               ": sudo nvidia-ctk runtime configure --runtime=docker."),
        )  # fmt: skip
    if lacking:
        return (
            "fail",
            f"a container of {i.image} was given {whole} and does not see {', '.join(lacking)}",
            f"Its specification of devices is stale: {_REGENERATE}." if runtime == "podman" else
            "Look at the toolkit's set-up: nvidia-container-cli info.",
        )  # fmt: skip
    return "pass", f"a container of {i.image} sees its {whole}", ""


def _cards(devices: Sequence[str]) -> list[str]:
    return [d for d in devices if re.fullmatch(r"/dev/nvidia\d+", d)]


def _chips(i: Inside, whole: str) -> Said:
    there = {*i.devices, *i.files}
    lacking = [d for d in i.asked if d not in there]
    managers = [d for d in ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
                if d not in there]  # fmt: skip
    if lacking or managers:
        return (
            "fail",
            f"a container of {i.image} was given {whole} and has no "
            f"{', '.join(lacking + managers)}",
            "The host has no such device files, or may not pass them on: look at ls /dev/davinci* "
            "there and at the driver (npu-smi info).",
        )  # fmt: skip
    if DRIVER not in there:
        return (
            "fail", f"a container of {i.image} has no {DRIVER}: the host's driver is not in it",
            f"Install the driver so that {DRIVER} exists on the host; it is mounted from there.",
        )  # fmt: skip
    return "pass", f"a container of {i.image} has its {whole} and the driver", ""
