"""What a container sees of the accelerators it was given, and what is wrong where it sees less.

Sources of the runtimes' words: their own reports (docker, podman, libnvidia-container, CDI).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from backend.domain.host import Accelerator, Claim, HostFacts, Use, Vendor
from backend.domain.telling import Said, said

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
    (r"could not select device driver|unknown (or invalid )?runtime",
     "inside.do.toolkit"),
    (r"unresolvable CDI devices|stat nvidia\.com/gpu",
     "inside.do.cdi"),
    (r"unsatisfied condition",
     "inside.do.newer_driver"),
    (r"driver/library version mismatch",
     "inside.do.rebooted"),
    (r"driver not loaded|nvml error|couldn.t communicate with the NVIDIA driver",
     "inside.do.no_driver"),
    (r"Failed to initialize NVML|insufficient permissions",
     "inside.do.no_rights"),
    (r"unknown device|device error",
     "inside.do.no_card"),
    (r"nvidia-container-cli|libnvidia-container|ldcache|nvidia-container-runtime",
     "inside.do.broken"),
    (r"cannot stat|failed to stat|error stat|no such file or directory|cannot open",
     "inside.do.stale"),
)  # fmt: skip
"""A pattern of what is said, and what to do; the first that matches holds."""
_PATTERNS = tuple((re.compile(p, re.I), remedy) for p, remedy in CAUSES)


def remedy_of(complaint: str, otherwise: str) -> Said:
    """What to do about a runtime's complaint; `otherwise` is the sentence for an unknown one."""
    key = next((key for p, key in _PATTERNS if p.search(complaint)), otherwise)
    return said(key, command=_REGENERATE)


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


Told = tuple[Literal["pass", "warn", "fail"], Said, Said | str]
"""Verdict, what was seen, remedy."""


def judged(runtime: str, vendor: Vendor, i: Inside) -> Iterator[Told]:
    """What is to be said of it: one thing at most."""
    about = {"image": i.image, "cards": _cards_of(len(i.asked)), "runtime": runtime}
    if i.late:
        yield "warn", said("inside.late", **about), said("inside.late.do", **about)
    elif not i.began and i.bare is False:
        why = i.bare_said or i.said
        yield "fail", said("inside.bare", why=why, **about), said("inside.bare.do", **about)
    elif not i.began:
        remedy = remedy_of(i.said, "inside.do.set_up")
        yield "fail", said("inside.refused", why=i.said, **about), remedy
    elif i.tool:
        remedy = remedy_of(i.tool, "inside.do.look")
        yield "fail", said("inside.complains", why=i.tool, **about), remedy
    elif vendor == "ascend":
        yield _chips(i, about)
    else:
        yield _gpus(runtime, i, about)


def _cards_of(count: int) -> Said:
    return said("inside.card" if count == 1 else "inside.cards", count=count)


def _gpus(runtime: str, i: Inside, about: Mapping[str, Any]) -> Told:
    files = [d for d in i.devices if re.fullmatch(r"/dev/nvidia\d+", d)]
    lacking = [a for a in i.asked if a not in i.listed] if i.listed is not None else []
    if i.listed is None and len(files) < len(i.asked):
        key = "inside.do.podman" if runtime == "podman" else "inside.do.docker"
        seen = said("inside.no_tool", count=len(files), **about)
        return "fail", seen, said(key, command=_REGENERATE)
    if lacking:
        key = "inside.do.respecify" if runtime == "podman" else "inside.do.info"
        seen = said("inside.unseen", lacking=lacking, **about)
        return "fail", seen, said(key, command=_REGENERATE)
    return "pass", said("inside.well", **about), ""


def _chips(i: Inside, about: Mapping[str, Any]) -> Told:
    there = {*i.devices, *i.files}
    needed = (*i.asked, "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
    lacking = [d for d in needed if d not in there]
    if lacking:
        return "fail", said("inside.has_no", lacking=lacking, **about), said("inside.has_no.do")
    if DRIVER not in there:
        seen = said("inside.no_files", path=DRIVER, **about)
        return "fail", seen, said("inside.no_files.do", path=DRIVER)
    return "pass", said("inside.well_chips", **about), ""
