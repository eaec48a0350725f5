"""Why a program ended, read from real logs of engines that failed at start."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain.last_words import LONGEST, last_words

LOGS = Path(__file__).parents[2] / "data" / "logs"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("f_badflag", "vllm: error: unrecognized arguments: --no-such-flag"),
        ("f_conn", "Unsupported connector type: NoSuchConnector"),
        ("f_kvjson", "argument --kv-transfer-config"),
        ("f_mml", "Value error, User-specified max_model_len (8000) is greater"),
        ("f_port", "OSError: [Errno 98] Address already in use"),
        ("f_tp3", "attention heads (4) must be divisible by tensor parallel size (3)"),
        ("f_moon", "RuntimeError: Mooncake is not available"),
    ],
)
def test_the_first_cause_of_a_real_log(name: str, said: str) -> None:
    assert said in last_words((LOGS / f"{name}.log").read_text())


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", ""),
        ("\n\n", ""),
        ("INFO 11-30 all is well\nbye", "bye"),
        ("pdtui: program not found on this host: vllm (PATH is /bin)", "program not found"),
        ("WARNING 11-30 10:00:00 [a.py:1] error: not this\nValueError: this", "ValueError: this"),
        ("\x1b[31mOSError: disk full\x1b[0m", "OSError: disk full"),
        (
            "thread 'main' panicked at src/x.rs: failed to bind",
            "thread 'main' panicked at src/x.rs: failed to bind",
        ),
        ("RuntimeError: Engine core initialization failed. See root cause above.\nend", "end"),
    ],
)
def test_other_endings(log: str, said: str) -> None:
    assert last_words(log).startswith(said) or said in last_words(log)


@given(st.text())
def test_any_text_gives_one_short_line(log: str) -> None:
    found = last_words(log)
    assert len(found) <= LONGEST
    assert len(found.splitlines()) <= 1
