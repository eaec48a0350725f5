"""`python -m tests.mutants [MODULE...]`: does any test notice when a rule is changed a little?

Every mutant of the modules is tried, each in a child process of its own, on the tests that reach
the changed function; the first that fails kills it. What lives is printed, and written with
`--report`. Exit code 1 when a larger share than `--most` lives.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from tests.mutants.runner import Runner

RULES = Path("backend/domain/rules")
TESTS = "tests/unit/domain/rules"
WORDS = {"__init__", "document", "text_environment", "text_hosts", "text_pairing",
         "text_structure"}  # fmt: skip
"""Sentences, and the page made of them: held by tests/data/findings.yaml and docs/rules.md."""
PROPERTIES = f"{TESTS}/test_spellings.py"
"""Drawn anew in each run, so they would judge no mutant twice alike."""


def chosen(names: list[str]) -> list[str]:
    """The named modules of the rules, or all of them."""
    found = sorted(p.stem for p in RULES.glob("*.py") if p.stem not in WORDS)
    return [f"backend.domain.rules.{name}" for name in found if not names or name in names]


def main() -> int:
    """Judges the mutants and says which live."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("modules", nargs="*", help="pairing, sides, …; default: all")
    parser.add_argument("--most", type=float, default=5.0, help="per cent that may live")
    parser.add_argument("--report", type=Path, help="file for the list of those that live")
    options = parser.parse_args()
    runner = Runner(chosen(options.modules))
    code = pytest.main(
        ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "--timeout=0",
         "-p", "no:xdist", f"--ignore={PROPERTIES}", TESTS],
        plugins=[runner],
    )  # fmt: skip
    if code or not runner.judged:
        print("the tests do not pass as they are" if code else "no mutants", file=sys.stderr)
        return 2
    lines = [f"{m.name}: {m.change}" for m in runner.alive]
    share = 100 * len(lines) / runner.judged
    closing = f"{len(lines)} of {runner.judged} mutants live: {share:.1f} %"
    print(*lines, closing, sep="\n")
    if options.report:
        options.report.write_text("\n".join([*lines, closing, ""]), encoding="utf-8")
    return int(share > options.most)


if __name__ == "__main__":
    sys.exit(main())
