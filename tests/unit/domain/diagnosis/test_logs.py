"""Real logs, whole: what each is diagnosed as, and that no other rule takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.domain.diagnosis.scan import diagnose

LOGS = Path(__file__).parents[3] / "data" / "logs"

EXPECTED: dict[str, tuple[str, str]] = {
    # log: the rule of its first cause, and a part of the line it stands in
    "core-killed": ("program.core_gone", "engine core exited unexpectedly"),
    "f_badflag": ("arguments.unrecognized", "unrecognized arguments: --no-such-flag"),
    "f_conn": ("arguments.connector", "Unsupported connector type: NoSuchConnector"),
    "f_kvdt": ("life.asked", "shutdown triggered"),
    "f_kvjson": ("arguments.invalid", "argument --kv-transfer-config"),
    "f_mml": ("arguments.max_model_len", "User-specified max_model_len (8000) is greater"),
    "f_moon": ("library.mooncake", "Mooncake is not available"),
    "f_port": ("ports.http", "OSError: [Errno 98] Address already in use"),
    "f_side": ("ports.side_channel", "(addr='tcp://127.0.0.1:5601')"),
    "f_tp3": ("arguments.tensor_parallel", "attention heads (4)"),
    "hp": ("ports.router", "Error starting router: Address already in use"),
    "killed": ("program.killed", "Killed"),
    "kv-dtype-decode": ("pairing.nixl_hash", "NIXL compatibility hash mismatch"),
    "kv-dtype-prefill": ("", ""),
    "mk": ("life.asked", "Received terminate signal"),
    "model-path-decode": ("pairing.nixl_hash", "NIXL compatibility hash mismatch"),
    "model-path-prefill": ("transfer.lease_expired", "Releasing expired KV blocks"),
    "model-path-router": ("router.decode_error", "Decode response status: 500"),
    "n17": ("life.asked", "Received terminate signal"),
    "pd0": ("", ""),
    "prom": ("ports.prometheus", "failed to install Prometheus metrics exporter"),
    "r15": ("life.asked", "Received terminate signal"),
    "r15f": ("router.prefill_unreachable", "http://127.0.0.1:18001/v1/completions"),
    "r15i": ("router.prefill_unreachable", "http://127.0.0.1:18099/v1/completions"),
    "sg": ("router.prefill_error", "Prefill server returned error status"),
    "sg2": ("router.no_workers", "No prefill workers available"),
    "v0": ("life.asked", "shutdown triggered"),
    "vd": ("transfer.side_channel_silent", "zmq.error.Again"),
    "vdb": ("pairing.block_size", "Local block size 32"),
    "vdk": ("pairing.nixl_hash", "NIXL compatibility hash mismatch"),
    "vp": ("life.asked", "trigger received signal=SIGTERM"),
    "router-log-1-vllm-router-start-igw": ("", ""),
    "sglang-log-1-bootstrap-race": ("transfer.bootstrap_register", "port=8998"),
    "sglang-log-2-transfer-failed": ("transfer.sglang_failed", "Decode transfer failed"),
    "sglang-log-3-tcp-ok-lookalike-errors": ("", ""),
    "vllm-ascend-log-1-connect-fail-103900": ("transfer.ascend_connect", "status: 103900"),
    "vllm-ascend-log-2-hccl-port-16666": ("ports.hccl", "specific port[16666]"),
    "vllm-ascend-log-4-ej0003": ("ports.hccl_bind", "Failed to bind the IP port"),
    "vllm-log-1-nixl-start-ok": ("", ""),
    "vllm-log-3-nixl-expired-kv": ("transfer.lease_expired", "Releasing expired KV blocks"),
    "vllm-log-4-low-memory": ("memory.taken", "Free memory on device cuda:1 (19.77/22.05 GiB)"),
    "xid-1-gsp-timeout-119": ("accelerator.xid", "Xid (PCI:0000:61:00): 119"),
}


def read(name: str) -> str:
    """A log as its bytes are: a progress bar's returns are no ends of lines."""
    return (LOGS / f"{name}.log").read_bytes().decode()


def test_every_log_is_in_the_table() -> None:
    assert {p.stem for p in LOGS.glob("*.log")} == EXPECTED.keys()


@pytest.mark.parametrize("ended", [None, False, True])
def test_no_log_has_a_wrong_first_cause(ended: bool | None) -> None:
    """The confusion table: what each log is taken for, where that is not what it is."""
    confused = {}
    for name, (rule, part) in EXPECTED.items():
        found = diagnose(read(name), ended=ended).first
        if found is None or found.severity == "unrecognised":
            seen = ("", "")
        else:
            seen = (found.rule, part if part in found.text else found.text)
        if seen != (rule, part):
            confused[name] = (seen, (rule, part))
    assert not confused


@pytest.mark.parametrize(
    ("name", "line"), [("f_side", 87), ("f_port", 38), ("vdb", 142), ("prom", 7), ("f_kvjson", 3)]
)
def test_the_line_is_where_the_file_has_it(name: str, line: int) -> None:
    text = read(name)
    found = diagnose(text).first
    assert found is not None
    assert found.line == line
    assert found.text[-20:] in " ".join(text.split("\n")[line - 1 : line + 2])
    assert found.context[found.at].strip() in text.split("\n")[line - 1]


def test_what_is_in_the_line_is_told() -> None:
    side = diagnose(read("f_side")).first
    block = diagnose(read("vdb")).first
    length = diagnose(read("f_mml")).first
    assert side is not None
    assert block is not None
    assert length is not None
    assert "port 5601" in side.cause.en
    assert "端口 5601" in side.cause.zh
    assert "32 here, 128 on the other side" in block.cause.en
    assert "--max-model-len 8000 is more than the model's own 4096.0" in length.cause.en


def test_a_repeated_line_is_counted_and_told_once() -> None:
    found = diagnose(read("vdk"))
    assert found.first is not None
    assert found.first.count >= 2
    assert [f.rule for f in found.findings].count("pairing.nixl_hash") == 1
