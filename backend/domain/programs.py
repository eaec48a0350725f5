"""Which file to execute: a program's name, or the path that a person gave for it."""

from __future__ import annotations

import posixpath
import re

_PYTHON = re.compile(r"^python(\d+(\.\d+)*)?$")
_SCRIPTS = (".sh", ".py", ".bash")


def is_script(path: str) -> bool:
    """Whether `path` is a wrapper script: it starts what it starts, and nothing lies beside it."""
    return path.endswith(_SCRIPTS)


def is_program(path: str, program: str) -> bool:
    """Whether `path` names the executable itself rather than a venv or conda prefix.

    It does when its last part is the program's own name (for Python, any `python3.11`) or ends like
    a script. A trailing slash always means a prefix.
    """
    last = posixpath.basename(path)
    if last == program or is_script(path):
        return True
    return bool(_PYTHON.match(program) and _PYTHON.match(last))


def locate(program: str, executable: str | None) -> str:
    """The path to execute `program` by.

    Nothing said: the name itself. A path that names the program (`is_program`): that path. A path
    that names another program in a `bin` folder: the one beside it. Else a prefix: its `bin`.
    """
    if not executable or "/" in program:
        return program
    if is_program(executable, program):
        return executable
    folder = executable.rstrip("/") or "/"
    parent = posixpath.dirname(folder)
    if not executable.endswith("/") and posixpath.basename(parent) == "bin":
        folder = parent
    elif posixpath.basename(folder) != "bin":
        folder = posixpath.join(folder, "bin")
    return posixpath.join(folder, program)
