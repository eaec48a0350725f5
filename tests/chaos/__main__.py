"""`python -m tests.chaos [--steps N] [--seed N] [--keep DIR]`: chaos on embedded hosts; exit 1 on a
find, of which DIR gets the backend's log and the instances' directories."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.chaos.runner import PLAN, Chaos
from tests.live.lab import Lab


async def run(steps: int, seed: int, keep: Path | None) -> None:
    """One run. Raises AssertionError with the story when a promise does not hold."""
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="pdtui-chaos-") as folder:
        lab = Lab(Path(folder))
        await lab.up(PLAN)
        try:
            await Chaos(lab, seed, say).run(steps)
        except BaseException:
            if keep is not None:
                shutil.copytree(folder, keep, dirs_exist_ok=True, ignore=_not_files)
            with suppress(AssertionError):  # what the watch saw is told already
                await lab.down()
            raise
        await lab.down()


def _not_files(folder: str, names: list[str]) -> list[str]:
    """Sockets, which cannot be copied."""
    return [name for name in names if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode)]


def main() -> int:
    """Says the seed first: it is all that is needed to make the same choices again."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None, help="default: one of the machine's")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 20) if options.seed is None else options.seed
    print(f"chaos: {options.steps} steps, seed {seed}", flush=True)
    try:
        asyncio.run(run(options.steps, seed, options.keep))
    except AssertionError as error:
        print(f"seed {seed} found:\n{error}", file=sys.stderr)
        return 1
    print(f"{options.steps} steps, seed {seed}: every promise held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
