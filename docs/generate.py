"""Writes every page of docs/ that follows from code: `make docs`, or `python -m docs.generate`.

`--check` writes nothing and fails when a page is not what would be written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ["PDTUI_LANGUAGE"] = "en"  # the pages are English, whoever writes them

from backend.adapters.recipes import load_catalogue
from backend.domain.diagnosis.document import document as troubleshooting
from backend.domain.rules.document import document as rules
from docs.pages import api, cli, fields
from modes.generate import document as modes
from pdtui.commands.reference import page as keys

DOCS = Path(__file__).parent
PAGES: dict[str, Callable[[], str]] = {
    "document.md": fields.page,
    "cli.md": cli.page,
    "api.md": api.page,
    "keys.md": keys,
    "rules.md": rules,
    "troubleshooting.md": troubleshooting,
    "modes.md": lambda: modes(load_catalogue()),
}


def main(argv: list[str]) -> int:
    """Write the pages, or compare them; the exit code."""
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in argv:
            path.write_text(text, encoding="utf-8")
    if "--check" in argv and stale:
        sys.stderr.write(f"not what the code says: docs/{', docs/'.join(stale)}; run `make docs`\n")
        return 1
    sys.stdout.write(f"{len(PAGES)} pages, {len(stale)} of them new\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
