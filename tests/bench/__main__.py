"""Runs the benches and prints a table.

`python -m tests.bench [--rounds N] [--json FILE] [WORD...]`, or `--hour [CHANGES]` for the memory
of the console alone, over as many changes as an hour has, played faster. WORD selects benches whose
name holds it. Nothing here asserts a time. Exit code 1 when something that was to be timed did not
work.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.bench import api, console, discovery, rules, start, watching
from tests.bench.runner import BenchError, run, table


def main(argv: list[str] | None = None) -> int:
    """Runs what was selected, each bench on its own: one that fails does not stop the others."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--rounds", type=int, help="rounds a bench, instead of its own number")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only benches whose name has it")
    parser.add_argument("--hour", nargs="?", type=int, const=console.HOUR, metavar="CHANGES",
                        help="the console's memory over an hour's changes")  # fmt: skip
    options = parser.parse_args(argv)
    if options.hour:
        print(console.hours(options.hour))
        return 0

    chosen = [
        bench
        for bench in [
            *start.benches(),
            *rules.benches(),
            *api.benches(),
            *discovery.benches(),
            *watching.benches(),
            *console.benches(),
        ]
        if not options.words or any(word in bench.name for word in options.words)
    ]
    if not chosen and "console" not in options.words:
        print(f"no bench is called {' or '.join(options.words)}", file=sys.stderr)
        return 2
    results, failed = [], False
    for bench in chosen:
        try:
            results.append(run(bench, options.rounds))
        except BenchError as error:
            failed = True
            print(f"{bench.name}: {error}", file=sys.stderr)
    if results:
        print(table(results))
    if not options.words or any(word in "console" for word in options.words):
        try:
            print(console.report())
        except BenchError as error:
            failed = True
            print(f"console: {error}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps([r.as_dict() for r in results], indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
