"""`python -m tests.chaos [--steps N] [--seed N]`: chaos on embedded hosts; exit 1 on a find."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.runner import PLAN, Chaos
from tests.live.lab import Lab


async def run(steps: int, seed: int) -> None:
    """One run. Raises AssertionError with the story when a promise does not hold."""
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="pdtui-chaos-") as folder:
        lab = Lab(Path(folder))
        await lab.up(PLAN)
        try:
            await Chaos(lab, seed, say).run(steps)
        finally:
            await lab.down()


def main() -> int:
    """Says the seed first: it is all that is needed to make the same choices again."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None, help="default: one of the machine's")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 20) if options.seed is None else options.seed
    print(f"chaos: {options.steps} steps, seed {seed}", flush=True)
    try:
        asyncio.run(run(options.steps, seed))
    except AssertionError as error:
        print(f"seed {seed} found:\n{error}", file=sys.stderr)
        return 1
    print(f"{options.steps} steps, seed {seed}: every promise held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
