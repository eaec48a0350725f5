"""The pure halves of the steps: what a host's answer means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain.secrets import is_secret
from backend.steps import claiming, ending, launching, logs, status
from backend.steps.claiming import ClaimOrder
from backend.steps.common import file_name, instance_id

RUN = "pid=100\nstart=500\nboot=B\nsid=100\nsup=99\nsupstart=490\nid=r1"


def dump(run: str = RUN, *more: str, boot: str = "B") -> str:
    lines = [f"B {boot}", "G a/g1", "G a/g2", "F a/claim:owner=me"]
    lines += [f"F a/g2/run:{line}" for line in run.splitlines()]
    return "\n".join([*lines, *more])


@pytest.mark.parametrize(
    ("text", "state", "code", "survivors"),
    [
        (dump(RUN, "S 99 490", "P 100 100 500", "P 101 100 510"), "running", None, 0),
        (dump(RUN, "F a/g2/exit:137 1700000000"), "exited", 137, 0),
        (dump(RUN, "F a/g2/exit:0 1700000000", "P 101 100 510"), "exited", 0, 1),
        (dump(RUN, "S 99 490"), "running", None, 0),
        (dump(RUN, "S 99 999"), "lost", None, 0),
        (dump(RUN), "lost", None, 0),
        (dump(RUN, "P 101 100 510", "P 102 100 520"), "lost", None, 2),
        (dump(RUN, "P 101 100 400"), "lost", None, 0),
        (dump(RUN, "P 100 100 700", "P 101 100 710"), "lost", None, 0),
        (dump(RUN, "P 100 100 500", boot="C"), "lost", None, 0),
        (dump(RUN, "S 99 490", boot="C"), "lost", None, 0),
        (dump("", "F a/g1/run:pid=3"), "absent", None, 0),
        (dump("some-launch-id"), "absent", None, 0),
    ],
)
def test_status(text: str, state: str, code: int | None, survivors: int) -> None:
    (found,) = status.statuses(status.parse(text))
    assert (found.state, found.exit_code, found.survivors) == (state, code, survivors)
    assert (found.instance, found.owner, found.generation) == ("a", "me", 2)


def test_nothing_there() -> None:
    assert status.statuses(status.parse("B x\n")) == []
    assert status.status(status.parse(""), "a").state == "absent"


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    status.statuses(status.parse(text))
    status.claims(status.parse(text))


def test_claim_answers() -> None:
    assert claiming.parse("OK\n") == []
    assert claiming.parse("BUSY\n") is None
    clashes = claiming.parse("X port 8000 b other\nX accelerator 1 b other\n")
    assert clashes is not None
    assert [c.text() for c in clashes] == [
        "accelerator 1 is claimed by b of other",
        "port 8000 is claimed by b of other",
    ]
    with pytest.raises(ValueError, match="unreadable"):
        claiming.parse("awk: what\n")


def test_orders_as_one_argument() -> None:
    orders = [ClaimOrder("a", (0, 1), (40000,)), ClaimOrder("b")]
    assert claiming.encode(orders) == "a|0,1|40000|9C40;b|||"


def test_stop_answers() -> None:
    end = ending.parse("LED 1\nSUP 7\nEXIT \nLEFT 8 9\n")
    assert (end.leader, end.supervisor, end.left, end.exit_code) == (True, True, (8, 9), None)
    done = ending.parse("LED \nSUP\nEXIT 143\nLEFT\n")
    assert (done.gone, done.exit_code) == (True, 143)
    assert ending.parse("LEFT\n").gone
    with pytest.raises(ValueError, match="unreadable"):
        ending.parse("")


@given(st.text(), st.integers(0, 40))
def test_log_pieces_join_to_the_whole_text(text: str, cut: int) -> None:
    data = text.encode("utf-8", "replace")
    first = logs.parse(b"LOG 1 0 0\n" + data[:cut] + b".\n")
    assert first is not None
    second = logs.parse(f"LOG 1 {first.after} 0\n".encode() + data[first.after :] + b".\n")
    assert second is not None
    assert first.text + second.text == data.decode()


def test_log_answers() -> None:
    assert logs.parse(b"ABSENT\n") is None
    with pytest.raises(logs.Disturbed) as caught:
        logs.parse(b"LOG 2 5 1\nhi\n!\n")
    assert (caught.value.piece.text, caught.value.piece.truncated) == ("hi\n", True)
    bad = logs.parse(b"LOG 1 0 0\n\xff\xfe\xc3.\n")
    assert bad is not None
    assert (bad.text, bad.after) == ("\ufffd\ufffd", 2)
    with pytest.raises(ValueError, match="unreadable"):
        logs.parse(b"tail: no\n")


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY",
     "KEY", "ssh_private", "MY_CREDENTIALS"],
)  # fmt: skip
def test_names_that_look_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["NCCL_DEBUG", "MONKEY", "KEYBOARD", "VLLM_NIXL_SIDE_CHANNEL_PORT"]
)
def test_names_that_do_not(name: str) -> None:
    assert not is_secret(name)


def test_ports_that_are_taken() -> None:
    lines = ["TAKEN 9C40 77 python3 -m x", "TAKEN 9C41 0 "]
    assert launching.taken(lines) == [(40000, 77, "python3 -m x"), (40001, 0, "")]


@pytest.mark.parametrize("name", ["claim", "env", "g1", "lock", "a/b", "..", "", "spec.json"])
def test_files_that_would_be_ours(name: str) -> None:
    with pytest.raises(ValueError, match="launch file"):
        file_name(name)
    assert file_name("config.yaml") == "config.yaml"
    assert instance_id("qwen-prefill.1_a") == "qwen-prefill.1_a"
