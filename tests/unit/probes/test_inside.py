"""What a container said of its accelerators: what it saw, why it did not begin."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from backend.domain.host import Accelerator, Claim, HostFacts, Use
from backend.domain.inside import Inside, chosen, judged, named, remedy_of
from backend.domain.telling import Said, plainly, told
from backend.probes.inside import parse
from backend.steps.containing import cards
from backend.steps.inside import LOOK, arguments

IMAGE = "vllm/vllm-openai:v0.19.0"
TWO = ("GPU-aaaa", "GPU-bbbb")
SEEN = f"""\
== pdtui image
{IMAGE}
== pdtui ran 0
== pdtui began
device /dev/nvidia0
device /dev/nvidia1
== pdtui smi
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa)
  MIG 1g.10gb     Device  0: (UUID: MIG-cccc)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-bbbb)
== pdtui status 0
== pdtui end
"""


def refused(said: str, code: int = 125, bare: str = "== pdtui bare 0\n") -> str:
    return f"== pdtui image\n{IMAGE}\n== pdtui ran {code}\n{said}\n{bare}== pdtui end\n"


def only(seen: Inside | None, runtime: str = "docker", vendor: str = "nvidia"):  # type: ignore[no-untyped-def]
    assert seen is not None
    ((verdict, what, remedy),) = judged(runtime, vendor, seen)  # type: ignore[arg-type]
    said = [s if isinstance(s, Said) else plainly(s) for s in (what, remedy)]
    assert all(re.search("[\u4e00-\u9fff]", told(s, "zh")) for s in said if told(s, "en"))
    return (verdict, *(told(s, "en") for s in said))


def test_all_cards_are_seen() -> None:
    seen = parse(SEEN, TWO, (IMAGE,))
    assert seen is not None
    assert (seen.began, seen.wanted, seen.listed) == (True, True, TWO)
    assert only(seen) == ("pass", f"a container of {IMAGE} sees its 2 accelerators", "")


def test_a_card_that_is_not_seen_is_named() -> None:
    verdict, said, remedy = only(parse(SEEN, ("GPU-bbbb", "GPU-dddd")), "podman")
    assert verdict == "fail"
    assert "does not see GPU-dddd" in said
    assert "nvidia-ctk cdi generate" in remedy


def test_without_the_tool_the_device_files_are_counted() -> None:
    text = SEEN[: SEEN.index("== pdtui smi")] + "== pdtui end\n"
    assert only(parse(text, TWO))[0] == "pass"
    fewer = text.replace("device /dev/nvidia1\n", "device /dev/nvidiactl\n")
    assert "has 1 device files" in only(parse(fewer, TWO))[1]


def test_each_complaint_of_a_runtime_has_its_remedy() -> None:
    """Wordings of docker, podman, libnvidia-container and crun, from public reports."""
    for said, remedy in (
        (
            "docker: Error response from daemon: could not select device driver \"\" with "
            "capabilities: [[gpu]].",
            "nvidia-ctk runtime configure --runtime=docker",
        ),
        ("docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
         "nvidia-ctk runtime configure"),
        ("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=1",
         "does not name these cards"),
        ("Error: stat nvidia.com/gpu=0: no such file or directory", "does not name these cards"),
        ("Error: OCI runtime error: crun: cannot stat `/usr/lib64/libEGL_nvidia.so.525.60.13`: No "
         "such file or directory: OCI runtime attempted to invoke a command that was not found",
         "is stale"),
        ("Error: setting up CDI devices: failed to inject devices: failed to stat CDI host device "
         '"/dev/dri/renderD129": no such file or directory', "is stale"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please "
         "update your driver to a newer version, or use an earlier cuda container: unknown.",
         "update the driver"),
        ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch",
         "reboot the host"),
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
         "not loaded"),
        ("nvidia-container-cli: device error: GPU-aaaa: unknown device: unknown.",
         "does not know this card"),
        ("nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or "
         "directory: unknown.", "toolkit anew"),
        ("something new", "One without accelerators starts"),
    ):  # fmt: skip
        verdict, told, mend = only(parse(refused(said), TWO))
        assert verdict == "fail"
        assert said.split(": ")[-1].split("`")[0] in told
        assert remedy in mend, said


def test_what_starts_nothing_at_all_is_the_runtime_s_own_trouble() -> None:
    bare = "== pdtui bare 126\nError: OCI runtime error: no space left on device\n"
    verdict, said, remedy = only(parse(refused("Error: OCI", 126, bare), TWO))
    assert verdict == "fail"
    assert "no space left on device" in said
    assert "accelerators" not in said
    assert "docker run --rm" in remedy


def test_a_tool_that_complains_inside() -> None:
    text = SEEN[: SEEN.index("GPU 0")] + (
        "Failed to initialize NVML: Unknown Error\n== pdtui status 255\n== pdtui end\n"
    )
    verdict, said, remedy = only(parse(text, TWO))
    assert verdict == "fail"
    assert "Failed to initialize NVML" in said
    assert "no-cgroups" in remedy


def test_what_took_too_long_is_no_verdict_on_the_cards() -> None:
    assert only(parse(refused("", 124, ""), TWO))[0] == "warn"
    hung = SEEN[: SEEN.index("GPU 0")].replace("ran 0", "ran 137") + "== pdtui end\n"
    assert only(parse(hung, TWO))[0] == "warn"


def test_what_was_cut_off_or_never_tried_says_nothing() -> None:
    for text in ("", "BUSY\n", "== pdtui end\n", SEEN.removesuffix("== pdtui end\n")):
        assert parse(text, TWO) is None


@given(st.lists(st.sampled_from(SEEN.splitlines()) | st.text(max_size=20)))
def test_no_answer_invents_a_card(lines: list[str]) -> None:
    seen = parse("\n".join(lines), TWO)
    if seen is not None:
        assert set(seen.listed or ()) <= set(TWO)
        list(judged("docker", "nvidia", seen))


CHIPS = f"""\
== pdtui image
{IMAGE}
== pdtui ran 0
== pdtui began
device /dev/davinci4
has /dev/davinci4
has /dev/davinci_manager
has /dev/devmm_svm
has /dev/hisi_hdc
has /usr/local/Ascend/driver/lib64
== pdtui end
"""


def test_chips_their_managers_and_their_driver() -> None:
    asked = ("/dev/davinci4",)
    assert only(parse(CHIPS, asked), vendor="ascend")[0] == "pass"
    without = CHIPS.replace("has /dev/hisi_hdc\n", "")
    assert "has no /dev/hisi_hdc" in only(parse(without, asked), vendor="ascend")[1]
    without = CHIPS.replace("has /usr/local/Ascend/driver/lib64\n", "")
    assert "the host's driver is not in it" in only(parse(without, asked), vendor="ascend")[1]
    assert "no /dev/davinci5" in only(parse(CHIPS, (*asked, "/dev/davinci5")), vendor="ascend")[1]


def test_which_cards_are_looked_at() -> None:
    def card(index: int, vendor: str = "nvidia", **more: object) -> Accelerator:
        return Accelerator.model_validate(
            {"index": index, "uuid": f"GPU-{index}", "vendor": vendor, "type": "x", **more}
        )

    gpus = HostFacts(boot_id="b", address="a", accelerators=(card(0), card(1, mig=True), card(2)))
    assert named(chosen(gpus, None)) == ("GPU-0", "GPU-2")
    assert named(chosen(gpus, (2,))) == ("GPU-2",)
    assert chosen(gpus, ()) == ()
    npus = HostFacts(
        boot_id="b", address="a", accelerators=tuple(card(i, "ascend") for i in range(4)),
        claims=(Claim(owner="o", instance="i", accelerators=(1,)),), uses=(Use(index=3, pid=7),),
    )  # fmt: skip
    assert named(chosen(npus, None)) == ("/dev/davinci0", "/dev/davinci2")


def test_the_look_is_asked_for_as_members_are() -> None:
    given_ = cards("docker", "nvidia", (0, 1), TWO)
    args = arguments("~/w", "docker", given_, (IMAGE, "-v /:/x", "", IMAGE))
    assert args[:2] == ["~/w", "docker"]
    assert args[3] == LOOK
    assert args[7:9] == [IMAGE, "--"]
    assert args[9:11] == ["--gpus", '"device=GPU-aaaa,GPU-bbbb"']
    assert remedy_of("", "inside.do.look").id == "inside.do.look"
