"""`pdtui diagnose` on files: words for people, JSON for scripts, exit codes, both languages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pdtui.cli import app
from pdtui.i18n import use

LOGS = Path(__file__).parents[2] / "data" / "logs"


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Whatever the locale; the language is put back."""
    use("en")
    yield
    use("en")


def pdtui(*args: str, given: bytes | None = None) -> Result:
    """`pdtui diagnose ARGS`."""
    return CliRunner().invoke(app, ["diagnose", *args], input=given)


def test_a_file_is_told_by_cause_line_and_remedy() -> None:
    told = pdtui(str(LOGS / "f_side.log"))
    assert told.exit_code == 1
    assert "NIXL's side channel cannot listen on port 5601" in told.stdout
    assert "line 87: zmq.error.ZMQError: Address already in use" in told.stdout
    assert "do: Kill it with SIGKILL" in told.stdout
    assert "[ports.side_channel] docs/troubleshooting.md#portsside_channel" in told.stdout
    assert "also" not in told.stdout
    assert "also: 89" in pdtui(str(LOGS / "f_side.log"), "--all").stdout


def test_a_quiet_file_is_no_failure() -> None:
    told = pdtui(str(LOGS / "vllm-log-1-nixl-start-ok.log"))
    assert (told.exit_code, "its log tells of no error" in told.stdout) == (0, True)


def test_files_are_read_together_and_their_names_give_the_roles(tmp_path: Path) -> None:
    prefill, decode = tmp_path / "my-prefill.log", tmp_path / "my-decode.log"
    start = (LOGS / "vp.log").read_text().partition("[shutdown]")[0]
    prefill.write_text(f"{start}\nReleasing expired KV blocks for request a which were")
    shutil.copy(LOGS / "vdk.log", decode)
    told = pdtui(str(prefill), str(decode), "--json")
    found = json.loads(told.stdout)
    assert told.exit_code == 1
    assert found["causes"] == [str(decode)]
    by_name = {m["name"]: m for m in found["members"]}
    assert by_name[str(prefill)]["peer"] == str(decode)
    cause = by_name[str(decode)]["first"]
    assert cause["rule"] == "pairing.nixl_hash"
    assert cause["cause"]["zh"].startswith("prefill 与 decode")
    assert "kv_cache_dtype differs: fp8 here" in cause["notes"][0]["en"]
    words = pdtui(str(prefill), str(decode)).stdout
    assert f"follows from {decode}" in words
    assert words.index("my-decode.log") < words.index("my-prefill.log")


def test_standard_input_is_a_file_too() -> None:
    told = pdtui("-", given=(LOGS / "f_mml.log").read_bytes())
    assert "--max-model-len 8000 is more than the model's own 4096.0" in told.stdout


def test_chinese() -> None:
    use("zh")
    told = pdtui(str(LOGS / "f_tp3.log"))
    assert "模型的 4 个注意力头无法分配到 3 个 rank。" in told.stdout
    assert "处理: 选择能整除 4 的张量并行大小。" in told.stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["/no/such/file.log"], 2, "cannot be read: No such file or directory"),
        (["/proc"], 2, "cannot be read: Is a directory"),
        (["one", "two"], 2, "name one group or one instance, or files only"),
    ],
)
def test_what_cannot_be_read_is_said(args: list[str], code: int, words: str) -> None:
    told = pdtui(*args)
    assert words in told.stderr
    assert told.exit_code == code
    assert "Traceback" not in told.stderr


def test_a_huge_file_is_read_at_both_ends_only(tmp_path: Path) -> None:
    file = tmp_path / "big.log"
    with file.open("wb") as out:
        out.write(b"OSError: [Errno 98] Address already in use\n")
        out.truncate(1 << 30)  # a gibibyte of nothing
    found = json.loads(pdtui(str(file), "--json").stdout)["members"][0]
    assert found["first"]["rule"] == "ports.http"
