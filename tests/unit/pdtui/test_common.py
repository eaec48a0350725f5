"""How a command's errors leave it."""

from __future__ import annotations

import json

import pytest
import typer

from pdtui.cli.common import guarded


def test_an_argument_that_is_no_text_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    @guarded
    def command() -> None:
        json.dumps({"name": "x", "address": "gpu\udcff1"}, ensure_ascii=False).encode()

    with pytest.raises(typer.Exit) as ended:
        command()
    told = capsys.readouterr().err
    assert ended.value.exit_code == 2
    assert "near: gpu\ufffd1\n" in told
    assert "[cli.not_text]" in told


def test_a_letter_that_the_terminal_lacks_is_another_error() -> None:
    @guarded
    def command() -> None:
        "é".encode("ascii")

    with pytest.raises(UnicodeEncodeError):
        command()
