"""docs/keys.md, written from the table: `python -m pdtui.commands.reference > docs/keys.md`."""

from __future__ import annotations

import sys

from pdtui.commands import catalog, keymap
from pdtui.commands.model import Command, Scope
from pdtui.i18n import tr

HEAD = """\
# Keys

Generated from the console's own table of commands by `make docs`; do not edit.

Lower case reads or can be taken back, capital letters change more, and what destroys asks for the
name. A key that cannot act says why. `?` shows the keys of the present screen, `:` finds any
command by name; the mouse works too.

## Your own keys

`~/.config/pdtui/keys.yaml` (or `$XDG_CONFIG_HOME/pdtui/keys.yaml`) maps a command's id to a key, or
to several with commas between them:

```yaml
groups.restart: f6
group.restart: f6
log.search: ctrl+f
```

An entry that cannot be used is said at the start and left out; the rest holds. These keys belong to
terminals, tmux or the console's way out, and stay: {reserved}. These commands keep their keys:
{fixed}.
"""
ORDER: tuple[Scope, ...] = (
    "app", "list", "groups", "group", "form", "hosts", "events", "modes", "instances", "caches",
    "settings", "text", "log", "describe", "doctor", "ports", "watch", "rendered",
)  # fmt: skip
CHANGES = {"read": "", "change": "changes", "destroy": "destroys"}


def page() -> str:
    """The whole page."""
    reserved = ", ".join(f"`{key}`" for key in keymap.RESERVED)
    fixed = ", ".join(f"`{name}`" for name in sorted(keymap.FIXED))
    parts = [HEAD.format(reserved=reserved, fixed=fixed)]
    for scope in ORDER:
        rows = [_row(c) for c in catalog.of(scope) if c.keys]
        parts.append(
            "\n".join(
                (
                    f"## {tr(f'scope.{scope}')}\n",
                    "| key | does | command | |",
                    "|---|---|---|---|",
                    *rows,
                    "",
                )
            )
        )
    return "\n".join(parts)


def _row(command: Command) -> str:
    keys = " ".join(f"`{keymap.shown(k)}`" for k in command.keys)
    return f"| {keys} | {command.help} | `{command.id}` | {CHANGES[command.effect]} |"


if __name__ == "__main__":
    sys.stdout.write(page())
