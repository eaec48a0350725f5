"""The container client's command line: what is in it, what must not be, and its answers."""

from __future__ import annotations

import pytest

from backend.domain.instance import LaunchFile, LaunchSpec, Mount
from backend.steps.containing import LAUNCHER, Ended, container_spec, ended, left

BASE = LaunchSpec(
    argv=("vllm", "serve", "/models/m", "--port", "40000"),
    env={"HF_TOKEN": "very secret", "PATH": "/opt/bin", "LD_LIBRARY_PATH": "/opt/lib"},
    image="vllm/vllm-openai:v0.19.0",
    files=(LaunchFile(name="cache.yaml", content="a: 1"),),
    mounts=(Mount(source="/models/m", target="/models/m"),),
    address="10.0.0.1",
    port=40000,
    accelerators=(3, 5),
    accelerator_uuids=("GPU-a", "GPU-b"),
    vendor="nvidia",
)


def spec(runtime: str = "docker", **changes: object) -> LaunchSpec:
    launch = BASE.model_copy(update=changes)
    return container_spec(runtime, "chat-decode-aaaa", 2, launch, {"group": "chat"})  # type: ignore[arg-type]


def values(argv: tuple[str, ...], flag: str) -> list[str]:
    return [argv[i + 1] for i, word in enumerate(argv) if word == flag]


def test_the_command_is_the_image_with_the_launch_as_its_entry() -> None:
    argv = spec().argv
    assert argv[:4] == ("sh", "./container.sh", "docker", "vllm/vllm-openai:v0.19.0")
    assert argv[4:7] == ("cache.yaml", "", "")
    assert values(argv, "--entrypoint") == ["vllm"]
    image = len(argv) - 1 - argv[::-1].index("vllm/vllm-openai:v0.19.0")
    assert argv[image + 1 :] == BASE.argv[1:]
    assert values(argv, "--name") == ["pdtui-chat-decode-aaaa-g2"]
    assert set(values(argv, "--label")) == {
        "pdtui.generation=2", "pdtui.group=chat",
    }  # fmt: skip
    for flag, value in (("--network", "host"), ("--ipc", "host"), ("--pull", "never")):
        assert values(argv, flag) == [value]
    assert values(argv, "--mount") == ["type=bind,source=/models/m,target=/models/m,readonly"]


def test_a_path_with_colons_commas_and_quotes_is_one_mount() -> None:
    mount = Mount(source='/m/a:b,"c"', target='/m/a:b,"c"')
    assert values(spec(mounts=(mount,)).argv, "--mount") == [
        'type=bind,"source=/m/a:b,""c""","target=/m/a:b,""c""",readonly'
    ]


def test_values_travel_by_name_and_never_on_the_command_line() -> None:
    made = spec()
    assert "very secret" not in " ".join(made.argv)
    assert made.env == {"HF_TOKEN": "very secret"}
    passed = values(made.argv, "-e")
    assert {"HF_TOKEN", "PDTUI_RUN_ID", "PDTUI_INSTANCE", "PDTUI_ROLE"} <= set(passed)
    assert {"PATH=/opt/bin", "LD_LIBRARY_PATH=/opt/lib"} <= set(passed)
    assert [f.name for f in made.files] == ["cache.yaml", "container.sh"]
    assert made.files[1].content == LAUNCHER


def test_cards_are_given_as_each_runtime_takes_them() -> None:
    assert values(spec().argv, "--gpus") == ['"device=GPU-a,GPU-b"']
    assert spec("podman").argv[5].split() == ["cdi:3:GPU-a", "cdi:5:GPU-b"]
    assert spec("podman", accelerator_uuids=()).argv[5].split() == ["cdi:3:", "cdi:5:"]
    assert spec("podman", accelerator_uuids=("GPU-a", "x $y")).argv[5].split() == [
        "cdi:3:GPU-a", "cdi:5:",
    ]  # fmt: skip
    assert values(spec(accelerator_uuids=()).argv, "--gpus") == ['"device=3,5"']
    assert "--gpus" not in spec(accelerators=()).argv
    npus = spec(vendor="ascend", accelerator_uuids=()).argv
    assert "--gpus" not in npus
    assert npus[5].split() == [
        "/dev/davinci3", "/dev/davinci5", "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc",
    ]  # fmt: skip
    assert "/etc/hccn.conf" in npus[6].split()


def test_without_an_image_there_is_no_container() -> None:
    with pytest.raises(ValueError, match="no image"):
        spec(image=None)


def test_answers() -> None:
    assert left("LEFT\n") == ()
    assert left("noise\nLEFT a1 b2\n") == ("a1", "b2")
    with pytest.raises(ValueError, match="unreadable"):
        left("Cannot connect to the Docker daemon")
    assert ended("a true 137 false\nb false 0 true\nc\nnoise of a daemon here\n") == {
        "a": Ended(oom=True, exit_code=137, running=False),
        "b": Ended(oom=False, exit_code=0, running=True),
    }
