"""English of the command line."""

from __future__ import annotations

TEXT: dict[str, str] = {
    "cli.error": "error",
    "cli.examples": "Examples:",
    "cli.unwatched": (
        "note: no daemon runs, so nothing watches the groups now; `pdtui daemon` does."
    ),
    "cli.no_terminal": "“{question}” is not asked: nobody answers here, stdin is no terminal.",
    "cli.no_terminal.remedy": "Give {flag} to go ahead.",
    "cli.no_screen": "the console needs a terminal, and this is none.",
    "cli.no_screen.remedy": "Use a command, such as `pdtui get`; `pdtui --help` lists them.",
}
