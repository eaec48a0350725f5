"""What a person sets of the console itself, and where that is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from pdtui.i18n import tr

CHOICES: dict[str, tuple[str, ...]] = {
    "language": ("auto", "en", "zh"),
    "theme": ("auto", "dark", "light"),
    "icons": ("auto", "unicode", "ascii"),
    "pace": ("quick", "calm", "slow"),
    "read_only": ("no", "yes"),
}
"""Every setting with the values it takes, the default first."""
PACE_S: dict[str, float] = {"quick": 0.1, "calm": 0.5, "slow": 2.0}
"""Seconds between two drawings of a changing site."""
MOST_BYTES = 10_000


@dataclass(frozen=True)
class Settings:
    """One value of `CHOICES` each."""

    language: str = "auto"
    theme: str = "auto"
    icons: str = "auto"
    pace: str = "quick"
    read_only: str = "no"

    @property
    def paint_s(self) -> float:
        """Seconds between two drawings."""
        return PACE_S[self.pace]


def read(path: Path) -> tuple[Settings, list[str]]:
    """The settings of a file, and a sentence for each entry that cannot be used; no file is the
    defaults."""
    try:
        found = json.loads(path.read_bytes()[:MOST_BYTES])
    except FileNotFoundError:
        return Settings(), []
    except (OSError, ValueError) as error:
        return Settings(), [tr("settings.unreadable", path=path, why=error)]
    if not isinstance(found, dict):
        return Settings(), [tr("settings.no_mapping", path=path)]
    good: dict[str, str] = {}
    bad: list[str] = []
    for name, value in found.items():
        if name not in CHOICES:
            known = ", ".join(CHOICES)
            bad.append(tr("settings.unknown", path=path, name=name, known=known))
        elif value not in CHOICES[name]:
            known = ", ".join(CHOICES[name])
            bad.append(tr("settings.no_value", path=path, name=name, value=value, known=known))
        else:
            good[name] = value
    return Settings(**good), bad


def write(path: Path, settings: Settings) -> None:
    """Write what differs from the defaults, whole or not at all. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    defaults = Settings()
    told: Mapping[str, str] = {
        f.name: getattr(settings, f.name)
        for f in fields(settings)
        if getattr(settings, f.name) != getattr(defaults, f.name)
    }
    part = path.with_suffix(".part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(json.dumps(told, indent=2) + "\n")
    part.replace(path)


def values(settings: Settings) -> dict[str, str]:
    """Each setting's value by its name."""
    return {name: str(value) for name, value in asdict(settings).items()}
