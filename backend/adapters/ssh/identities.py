"""Private key files of the user's: which are locked by a passphrase, and those unlocked by hand.

An unlocked key lives in this process's memory and nowhere else; passphrases are not kept at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from backend.domain.errors import HostDenied, Invalid, NotFound

DEFAULT_FILES = ("id_ed25519", "id_ecdsa", "id_rsa")
"""Names in `~/.ssh` that are tried where nothing names an identity file."""
NO_PASSPHRASE = "Passphrase must be specified"  # noqa: S105 (asyncssh's words, not a passphrase)


@dataclass(frozen=True)
class Identity:
    """What a login may use: `keys` as asyncssh takes them (None: its own defaults), and the files
    among them that nobody has unlocked."""

    keys: tuple[Any, ...] | None
    locked: tuple[str, ...] = ()


class Identities:
    """The key files that a person unlocked. Its methods read files: call them in a thread."""

    def __init__(self) -> None:
        self._unlocked: dict[Path, asyncssh.SSHKey] = {}

    def unlock(self, file: str, passphrase: str) -> str:
        """Decrypt a key file and keep its key; the fingerprint.

        Raises NotFound, Invalid (no private key), HostDenied (`host.passphrase`: a wrong one).
        """
        path = Path(file).expanduser()
        values = {"identity": file}
        try:
            key = asyncssh.read_private_key(path, passphrase or None)
        except OSError as exc:
            raise NotFound.of(
                "host.identity", f"{file} cannot be read ({exc.strerror}).", values=values
            ) from exc
        except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as exc:
            wrong = isinstance(exc, asyncssh.KeyEncryptionError) or "decrypt" in str(exc)
            if wrong or NO_PASSPHRASE in str(exc):
                raise HostDenied.of(
                    "host.passphrase", f"the passphrase of {file} is wrong.",
                    remedy="Try again.", values=values,
                ) from None  # fmt: skip
            raise Invalid.of(
                "host.identity", f"{file} is no private key that we can read ({exc}).",
                values=values,
            ) from exc  # fmt: skip
        self._unlocked[path] = key
        return key.get_fingerprint()

    def resolve(self, files: Sequence[str] | None) -> Identity:
        """The keys of these files; None stands for the default ones, of which some may be missing.

        A locked file is kept in the list: the agent may hold its key, which asyncssh then prefers.
        """
        paths = _defaults() if files is None else [Path(f).expanduser() for f in files]
        keys: list[Any] = []
        locked: list[str] = []
        for path in paths:
            key = self._unlocked.get(path)
            if key is None:
                keys.append(str(path))
                if _locked(path):
                    locked.append(str(path))
                continue
            certificate = path.with_name(f"{path.name}-cert.pub")
            keys.append((key, str(certificate)) if certificate.is_file() else key)
        if files is None and not any(p in self._unlocked for p in paths):
            return Identity(None, tuple(locked))
        return Identity(tuple(keys), tuple(locked))


def _defaults() -> list[Path]:
    folder = Path("~/.ssh").expanduser()
    return [p for p in (folder / n for n in DEFAULT_FILES) if p.is_file()]


def _locked(path: Path) -> bool:
    """Whether the file is a private key that needs a passphrase."""
    try:
        asyncssh.read_private_key(path)
    except asyncssh.KeyImportError as exc:
        return NO_PASSPHRASE in str(exc)
    except (OSError, ValueError):
        return False
    return False
