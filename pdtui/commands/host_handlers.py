"""Handlers of the doctor's screen and of the port map."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pdtui.commands.model import Context
from pdtui.screens.doctor import DoctorScreen
from pdtui.screens.ports import PortsScreen

if TYPE_CHECKING:
    from backend.domain.portmap import PortMap
    from pdtui.app import Console

Handler = Callable[["Console", Context], None]


def examine_host(console: Console, ctx: Context) -> None:
    """What the doctor finds on the host under the cursor."""
    assert ctx.host is not None
    console.push_screen(DoctorScreen(ctx.host.name))


def examine_all(console: Console, _: Context) -> None:
    """What the doctor finds on every host."""
    console.push_screen(DoctorScreen())


def examine_group(console: Console, ctx: Context) -> None:
    """What the doctor finds on the hosts that the deployment may use."""
    assert ctx.group is not None
    console.push_screen(DoctorScreen(deployment=ctx.group.name))


def examine_again(console: Console, _: Context) -> None:
    """The same hosts once more."""
    if isinstance(console.screen, DoctorScreen):
        console.screen.ask()
        console.screen.fill()


def show_well(console: Console, _: Context) -> None:
    """Passed checks too, or only the others."""
    if isinstance(console.screen, DoctorScreen):
        console.screen.toggle()


def port_map(console: Console, ctx: Context) -> None:
    """The port map of the host under the cursor."""
    assert ctx.host is not None

    def shown(found: PortMap) -> None:
        console.push_screen(PortsScreen(found))

    if console.session:
        console.session.host_ports(ctx.host.name, shown)


def ports_again(console: Console, _: Context) -> None:
    """A fresh look at the ports."""
    if isinstance(console.screen, PortsScreen):
        console.screen.again()


HOSTS: dict[str, Handler] = {
    "hosts.doctor": examine_host,
    "hosts.doctor_all": examine_all,
    "hosts.ports": port_map,
    "doctor.again": examine_again,
    "doctor.every": show_well,
    "ports.again": ports_again,
}
GROUP: dict[str, Handler] = {"doctor": examine_group}
