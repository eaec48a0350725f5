"""Writes docs/troubleshooting.md from the rules of diagnosis.

`python -m modes.generate_troubleshooting` writes it; `--check` fails when the file is not what
would be written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from backend.domain.diagnosis.document import document

DOCS = Path(__file__).resolve().parent.parent / "docs" / "troubleshooting.md"


def main(argv: list[str]) -> int:
    """Write the page, or compare it; the exit code."""
    text = document()
    if "--check" not in argv:
        DOCS.write_text(text, encoding="utf-8")
        return 0
    if DOCS.exists() and DOCS.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(
        f"{DOCS} is not what the rules say: run python -m modes.generate_troubleshooting\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
