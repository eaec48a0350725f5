"""`pdtui advise`: what it cannot read is said before a backend is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pdtui.cli import app

DOCUMENT = "apiVersion: pdtui/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {model: /m}\n"


@pytest.mark.parametrize(
    ("config", "words"),
    [("", "cannot be read as JSON"), ("{", "cannot be read as JSON"), ("[1]", "no JSON object")],
)
def test_a_configuration_that_is_none(tmp_path: Path, config: str, words: str) -> None:
    file = tmp_path / "config.json"
    if config:
        file.write_text(config)
    told = CliRunner().invoke(app, ["advise", "chat", "--config", str(file)])
    assert told.exit_code == 2
    assert words in told.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [(DOCUMENT + "---\n" + DOCUMENT, "holds 2 deployments"), ("a: 1\n", "holds 0 deployments")],
)
def test_a_file_that_is_not_one_deployment(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(text)
    told = CliRunner().invoke(app, ["advise", str(file)])
    assert told.exit_code == 2
    assert words in told.stderr
