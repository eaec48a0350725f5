"""How rules are asked: order, tails, look-alikes, sizes, and any text at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain.diagnosis.model import Diagnosis, one_line, why_ended
from backend.domain.diagnosis.scan import TRIES, diagnose
from backend.domain.diagnosis.table import RULES
from backend.domain.diagnosis.text import MOST, TEXT_MOST, Log, bare, shown

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
HASH = "RuntimeError: NIXL compatibility hash mismatch. Local: a, Remote: b."
TAIL = "RuntimeError: Engine core initialization failed. See root cause above."
GONE = "ERROR [a.py:1] Engine core proc EngineCore died unexpectedly, shutting down client."
PORT = "OSError: [Errno 98] Address already in use"
LEASE = "Releasing expired KV blocks for request 1 which were retrieved by 0 decode worker(s)"


def first(text: str, ended: bool | None = None) -> str:
    """The rule, or the words, of the first finding."""
    found = diagnose(text, ended=ended).first
    return "" if found is None else found.rule or found.text


@pytest.mark.parametrize(
    ("log", "ended", "is_"),
    [
        ("", None, ""),
        ("\n\n", True, ""),
        ("INFO 11-30 all is well\nbye", None, ""),
        ("INFO 11-30 all is well\nbye", True, "bye"),
        (f"{OOM}\n{PORT}\n{TAIL}", True, "memory.cuda"),
        (f"{PORT}\n{OOM}\n{TAIL}", True, "ports.http"),
        (TAIL, True, ""),
        (f"ValueError: this\n{TAIL}", True, "ValueError: this"),
        (f"{GONE}\n    outputs = await engine_core.get_output_async()\n{TAIL}", True,
         "program.core_gone"),
        (f"ValueError: this\n{GONE}\n{TAIL}", True, "ValueError: this"),
        (f"{GONE}\n{PORT}", True, "ports.http"),
        (f"WARNING 11-30 10:00:00 [a.py:1] error: not this\nValueError: this\n{LEASE}", None,
         "ValueError: this"),
        (f"ValueError: this\n{OOM}", None, "memory.cuda"),
        (f"{LEASE}\nINFO ok", None, "transfer.lease_expired"),
        ("\x1b[31mOSError: [Errno 28] No space left on device\x1b[0m", True, "host.disk_full"),
        ("thread 'main' panicked at x.rs: odd", True, "thread 'main' panicked at x.rs: odd"),
        ("E0516 09:00:52.240201 45697 a.cpp:1] some new failure", None, "some new failure"),
        ("(EngineCore pid=9) ERROR 11-30 10:00:00 [core.py:1] odd state", None, "odd state"),
        (f"Received terminate signal, starting graceful shutdown\n{OOM}", None, "life.asked"),
        (f"{OOM}\nReceived terminate signal, starting graceful shutdown", None, "memory.cuda"),
    ],
)  # fmt: skip
def test_what_wins(log: str, ended: bool | None, is_: str) -> None:
    assert first(log, ended) == is_


def test_what_ended_a_program_is_not_what_failed_a_request_before() -> None:
    log = f"{HASH}\nINFO goes on\n{OOM}\n{TAIL}"
    assert first(log, ended=True) == "memory.cuda"
    assert first(log, ended=False) == "pairing.nixl_hash"


def test_a_symptom_yields_to_a_cause_that_comes_after_it() -> None:
    log = f"NIXL transfer failure: handshake_setup_failed | Context\n{HASH}"
    assert first(log) == "pairing.nixl_hash"
    assert first(log.split("\n")[0]) == "pairing.handshake"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("(Worker pid=1) ERROR 11-30 04:48:15 [a.py:11] No!", "No!"),
        ("(Worker pid=1) (Worker_TP0 pid=2) ERROR 11-30 04:48:15 [v1/a.py:11] No!", "No!"),
        ("[2025-09-17 16:23:13 TP1] No!", "No!"),
        ("E1210 03:24:54.778028 2548307 ascend.cpp:820] No!", "No!"),
        ("2026-11-30 04:20:59  INFO vllm_router_rs::routers: src/a.rs:14: No!", "No!"),
        ("vllm-1  | ERROR 11-18 18:07:28 No!", "No!"),
        ("[rank0]: No!", "No!"),
        ("No prefix: at all", "No prefix: at all"),
    ],
)
def test_prefixes_are_taken_off(line: str, said: str) -> None:
    assert bare(line) == said


def test_a_progress_bar_is_one_line() -> None:
    log = Log("a\nloading 1%\rloading 2%\rdone\r\nOSError: x\r\n")
    assert [log.line(n) for n in range(log.lines)] == ["a", "done", "OSError: x"]


def test_a_long_log_is_read_at_both_ends() -> None:
    filler = "INFO nothing to see here\n" * (MOST // 10)
    begun, over = diagnose(OOM + "\n" + filler), diagnose(filler + PORT)
    assert begun.first is not None
    assert over.first is not None
    assert (begun.first.rule, over.first.rule) == ("memory.cuda", "ports.http")
    assert begun.truncated
    assert len(Log(filler * 3).text) < MOST + 200


def test_a_log_that_repeats_itself_is_not_followed_to_its_end() -> None:
    found = diagnose("\n".join([LEASE] * (TRIES * 3)))
    assert found.first is not None
    assert found.first.count <= TRIES
    assert len(found.findings) == 1


@pytest.mark.parametrize("rule", [r for r in RULES if r.pattern], ids=lambda r: r.id)
def test_one_endless_line_is_read_like_any_other(rule: object) -> None:
    needle = rule.needles[0]  # type: ignore[attr-defined]
    for filler in ("a", " ", "'", "1.", "[", "x: "):
        diagnose(filler * 20000 + needle + filler * 20000)


@given(st.text())
def test_any_text_is_diagnosed(log: str) -> None:
    for ended in (True, False, None):
        found = diagnose(log, ended=ended)
        for finding in found.findings:
            assert 1 <= finding.line <= max(found.lines, 1)
            assert len(finding.text) <= TEXT_MOST
            assert "\n" not in finding.text
            assert finding.context[finding.at] or not finding.text


@given(st.lists(st.sampled_from([r.sample for r in RULES] + ["\r", "\x00", "", "{}", "\x1b["])))
def test_any_mixture_of_known_lines_is_diagnosed(lines: list[str]) -> None:
    found = diagnose("\n".join(lines))
    assert sorted(f.line for f in found.others) == [f.line for f in found.others]


@given(st.text(alphabet="\x00\x1b\x07a{}\r\u202e\n", max_size=50))
def test_what_is_shown_drives_no_terminal(text: str) -> None:
    assert shown(text).isprintable()


def attempt(generation: int, log: str) -> Diagnosis:
    """One ended attempt."""
    return diagnose(log, ended=True, generation=generation)


def test_the_first_attempt_says_why_the_later_ones_fail() -> None:
    earlier = (attempt(2, PORT), attempt(1, OOM))
    said = why_ended(attempt(3, PORT), earlier)
    assert said.startswith("attempt 1: The accelerator's memory is full")
    assert "Attempt 3: The engine's HTTP port is taken." in said
    assert why_ended(attempt(2, OOM), (attempt(1, OOM),)) == one_line(attempt(2, OOM).first)  # type: ignore[arg-type]
    assert why_ended(attempt(1, ""), ()) == ""
