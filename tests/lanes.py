"""Runs the tests in two lanes and says how many ran: `python -m tests.lanes [--jobs N] [PATH...]`.

Both lanes are shared among worker processes, one file in one worker. The slow lane (whole stories
on embedded hosts, marked `slow`) comes second: stories mostly wait, so two at a time fit two cores.
Exit code: 0 when something passed and nothing failed, else pytest's own, or 5 when nothing ran.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

REPORTS = Path(".lanes")
NOTHING_SELECTED = 5
"""pytest's exit code when no test was selected."""


@dataclass(frozen=True)
class Tally:
    """How many tests of one lane ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )

    def line(self) -> str:
        """The tally as the run's closing line."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def read_report(path: Path) -> Tally:
    """Counts the tests of a JUnit report. Raises OSError or ParseError when there is none.

    An error in a fixture counts as a failure; a test that failed and whose clean-up failed too is
    counted once for each, as pytest does.
    """
    passed = failed = skipped = 0
    for case in ET.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
    return Tally(passed, failed, skipped)


def run_lane(name: str, selection: str, paths: list[str], extra: list[str]) -> tuple[int, Tally]:
    """Runs one lane in a process of its own; returns pytest's exit code and the lane's tally."""
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    print(f"== {name} lane", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", selection, f"--junitxml={report}"]
    code = subprocess.run([*command, *extra, *paths], check=False).returncode
    if not report.exists():
        return code, Tally()
    return code, read_report(report)


def main(argv: list[str] | None = None) -> int:
    """Runs both lanes, also when the first one fails, and prints the sum."""
    parser = argparse.ArgumentParser(prog="python -m tests.lanes")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes of a lane")
    parser.add_argument("paths", nargs="*", help="files, folders or test ids; default: all")
    options = parser.parse_args(argv)
    REPORTS.mkdir(exist_ok=True)

    spread = ["-n", str(options.jobs), "--dist", "loadfile"] if options.jobs > 1 else []
    fast_code, fast = run_lane("fast", "not slow", options.paths, spread)
    slow_code, slow = run_lane("slow", "slow", options.paths, spread)
    total = fast + slow
    print(f"\nfast lane: {fast.line()}\nslow lane: {slow.line()}\n\n{total.line()}", flush=True)

    for code in (fast_code, slow_code):
        if code not in (0, NOTHING_SELECTED):
            return code
    if total.failed:
        return 1
    return 0 if total.passed else NOTHING_SELECTED


if __name__ == "__main__":
    sys.exit(main())
