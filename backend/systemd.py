"""Running under systemd: readiness, watchdog, and the unit file.

The protocol is a datagram of `NAME=value` lines (man sd_notify); without NOTIFY_SOCKET nothing is
said.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import resources

log = logging.getLogger(__name__)


class Notifier:
    """Tells the service manager how we are."""

    def __init__(self, env: MutableMapping[str, str]) -> None:
        """Takes the variables out of `env`: what we start is not to speak for us."""
        self._address = env.pop("NOTIFY_SOCKET", "")
        usec, pid = env.pop("WATCHDOG_USEC", ""), env.pop("WATCHDOG_PID", "")
        ours = pid in ("", str(os.getpid()))
        self.watchdog_s = int(usec) / 1e6 if self._address and ours and usec.isdecimal() else 0.0
        """Seconds without a sign of life after which we are restarted; 0 when nobody watches."""

    def tell(self, *lines: str) -> None:
        """Send lines such as `READY=1`. A manager that does not listen is no reason to fail."""
        if not self._address:
            return
        name = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
                speaker.settimeout(1.0)
                speaker.connect(name)
                speaker.send("\n".join(lines).encode())
        except OSError as error:
            log.warning("the service manager does not hear us: %s", error)

    async def watch(self, alive: Callable[[], Awaitable[None]], status: Callable[[], str]) -> None:
        """A sign of life for as long as `alive` answers in time: twice as often as is needed."""
        if not self.watchdog_s:
            return
        every = self.watchdog_s / 2
        while True:
            try:
                async with asyncio.timeout(every):
                    await alive()
                self.tell("WATCHDOG=1", f"STATUS={status()}")
            except TimeoutError:
                log.error("the store has not answered for %.0f s: no sign of life is given", every)
            await asyncio.sleep(every)


def unit_text(options: list[str]) -> str:
    """A unit for `systemctl --user` that runs this very program with these daemon options."""
    template = (resources.files("backend") / "pdtui.service").read_text()
    argv = [sys.executable, "-m", "pdtui", *options]
    return template.replace("@EXEC@", " ".join(_word(a) for a in argv))


def _word(text: str) -> str:
    """One word of ExecStart, where `%` and `$` would be expanded and a backslash escapes."""
    plain = text.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")
    return plain if shlex.quote(text) == text else '"' + plain.replace('"', '\\"') + '"'
