"""What the README promises is there: a valid example, and the targets, keys and words it names."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from typer.testing import CliRunner

from backend.domain.deployment import Deployment
from backend.domain.instance import MEMBER_ROLES
from pdtui.cli import app
from pdtui.commands.catalog import COMMANDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
KEYS = {"↑": "up", "↓": "down", "+": "plus", "-": "minus", "/": "slash", ":": "colon",
        "?": "question_mark"}  # fmt: skip


def section(title: str) -> str:
    """The text under one heading, up to the next one."""
    found = re.search(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE
    )
    assert found, f"README.md has no section {title!r}"
    return found[1]


def test_the_example_is_a_valid_2p1d_document() -> None:
    block = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert block
    deployment = Deployment.model_validate(yaml.safe_load(block[1]))
    roles = deployment.spec.roles
    assert roles is not None
    assert [getattr(roles, role).replicas for role in MEMBER_ROLES] == [2, 1]
    assert deployment.spec.disaggregation is not None


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    documents = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", documents, re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    assert targets == set(phony[1].split())
    assert {"demo", "test", "check", "bench", "shots"} <= named <= targets


def test_the_keys_are_the_commands_keys() -> None:
    bound = {key for command in COMMANDS for key in command.keys}
    rows = [line for line in section("Keys").splitlines() if line.startswith("| `")]
    named = {key for row in rows for key in re.findall(r"`([^`]+)`", row.split("|")[1])}
    assert len(named) > 15
    assert not (unknown := {key for key in named if KEYS.get(key, key) not in bound}), unknown


def help_of(*words: str) -> str:
    """What `pdtui WORDS --help` prints; fails when there is no such command."""
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    done = runner.invoke(app, [*words, "--help"])
    assert done.exit_code == 0, f"pdtui {' '.join(words)}: {done.output}"
    return done.output


def test_the_commands_and_their_options_exist() -> None:
    blocks = "".join(re.findall(r"^```\w*\n(.*?)^```", README, re.DOTALL | re.MULTILINE))
    shown = re.findall(
        r"^(?:\| `)?pdtui +([a-z][^`#\n]*)", blocks + section("Commands"), re.MULTILINE
    )
    names = {line.split()[0] for line in shown}
    assert any(line.startswith("hosts add ") for line in shown)
    assert {"daemon", "demo", "get", "apply", "scale", "restart", "delete", "logs"} <= names
    overview = help_of()
    for name in names:
        assert re.search(rf"\b{name}\b", overview), f"pdtui --help does not list {name}"
    for line in shown:
        plain = [word for word in line.split() if re.fullmatch(r"[a-z][a-z-]*", word)][:2]
        words = plain if plain[0] == "hosts" else plain[:1]
        text = help_of(*words)
        for option in re.findall(r"(?<= )--?[a-z][a-z-]*", line):
            assert option in text, f"pdtui {' '.join(words)} has no {option}"


def test_the_files_it_links_to_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert not (broken := [link for link in links if not (ROOT / link).exists()]), broken


def test_the_words_of_the_rules_are_defined() -> None:
    rules = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.search(r"## Words\n\n(.*?): each means one thing", rules, re.DOTALL)
    assert listed
    words = {" ".join(word.split()) for word in listed[1].split(",")}
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"^\| ([a-z ]+?) \|", text, re.MULTILINE))
    assert len(words) > 10
    assert not (missing := words - defined), f"docs/architecture.md does not define {missing}"
