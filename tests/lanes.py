"""Runs the tests in two lanes and says how many ran: `python -m tests.lanes [--jobs N] [PATH...]`.

Both lanes are shared among worker processes, one file in one worker. The slow lane (whole stories
on embedded hosts, marked `slow`) comes second: stories mostly wait, so two at a time fit two cores.

A test that failed beside others is tried once more with the machine to itself, when few failed: a
deadline missed on a busy machine is not a fault of the product. What passes then is named as
unsteady in the closing lines, so that it is seen; what fails twice has failed.
Exit code: 0 when something passed and nothing failed, else pytest's own, or 5 when nothing ran.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from tests import planted

REPORTS = Path(".lanes")
SOME_FAILED = 1
"""pytest's exit code when all tests could be collected and some failed."""
NOTHING_SELECTED = 5
"""pytest's exit code when no test was selected."""
FEW = 12
"""So many failures of a lane may be the machine's; more of them are the change's."""


@dataclass(frozen=True)
class Tally:
    """How many tests of one lane ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    unsteady: tuple[str, ...] = ()
    """Those of the passed that failed at first, by their ids."""

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.unsteady + other.unsteady,
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


def failures(cache: Path) -> list[str]:
    """The ids of the tests that failed in the run that kept its memory in the folder `cache`."""
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_text())) if kept.exists() else []


def run_pytest(name: str, arguments: list[str]) -> tuple[int, Tally]:
    """Runs pytest in a process of its own; returns its exit code and the tally of its report."""
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *arguments]
    code = subprocess.run(command, check=False).returncode
    return code, read_report(report) if report.exists() else Tally()


def run_lane(name: str, selection: str, paths: list[str], extra: list[str]) -> tuple[int, Tally]:
    """Runs one lane, and what failed in it once more alone; returns the exit code and the tally."""
    cache = REPORTS / f"{name}-cache"
    shutil.rmtree(cache, ignore_errors=True)
    print(f"== {name} lane", flush=True)
    common = ["-m", selection, "-o", f"cache_dir={cache}"]
    code, tally = run_pytest(name, [*common, *extra, *paths])
    failed = failures(cache)
    if code != SOME_FAILED or not 0 < len(failed) <= FEW:
        return code, tally
    print(f"== {name} lane: {len(failed)} once more, alone", flush=True)
    code, again = run_pytest(f"{name}-again", [*common, *failed])
    still = set(failures(cache))
    steady = tuple(test for test in failed if test not in still) if code <= SOME_FAILED else ()
    return code, Tally(
        tally.passed + again.passed, again.failed, tally.skipped + again.skipped, steady
    )


def tell_secrets(found: planted.Search, *, whole: bool) -> bool:
    """Says where planted secrets were found; whether that fails the run: one that leaked does, and
    a whole run that saw none where they have to be kept has searched nothing."""
    print(
        f"planted secrets: {found.files} files and {found.samples} lists of processes searched, "
        f"{found.kept} kept where they belong, {len(found.leaks)} elsewhere"
    )
    for leak in found.leaks:
        print(f"leaked: {leak}")
    return bool(found.leaks) or (whole and found.kept == 0)


def main(argv: list[str] | None = None) -> int:
    """Runs both lanes, also when the first one fails, and prints the sum."""
    parser = argparse.ArgumentParser(prog="python -m tests.lanes")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes of a lane")
    parser.add_argument("paths", nargs="*", help="files, folders or test ids; default: all")
    options = parser.parse_args(argv)
    REPORTS.mkdir(exist_ok=True)
    secrets = REPORTS / "planted"
    shutil.rmtree(secrets, ignore_errors=True)
    os.environ[planted.REPORT] = str(secrets.absolute())

    spread = ["-n", str(options.jobs), "--dist", "loadfile"] if options.jobs > 1 else []
    fast_code, fast = run_lane("fast", "not slow", options.paths, spread)
    slow_code, slow = run_lane("slow", "slow", options.paths, spread)
    total = fast + slow
    print(f"\nfast lane: {fast.line()}\nslow lane: {slow.line()}")
    for test in total.unsteady:
        print(f"unsteady, passed alone: {test}")
    leaked = tell_secrets(planted.read_reports(secrets), whole=not options.paths)
    print(f"\n{total.line()}", flush=True)

    for code in (fast_code, slow_code):
        if code not in (0, NOTHING_SELECTED):
            return code
    if total.failed or leaked:
        return 1
    return 0 if total.passed else NOTHING_SELECTED


if __name__ == "__main__":
    sys.exit(main())
