"""What is watched of every group, put together for its view: traffic, canaries, alerts."""

from __future__ import annotations

from collections.abc import Iterable

from backend.domain.views import GroupView, InstanceView, MemberView
from backend.domain.watch_views import AlertView, CanaryView
from backend.domain.watched import dressed, of_member
from backend.observe.canary import Canaries
from backend.observe.effectiveness import Effectiveness
from backend.services.alarm import Alarm


class Watching:
    """The watches' findings, by group."""

    def __init__(self, effectiveness: Effectiveness, canaries: Canaries, alarm: Alarm) -> None:
        self.effectiveness, self.canaries, self.alarm = effectiveness, canaries, alarm

    def start(self) -> None:
        """Begin to run canaries that are due, and to send alerts out."""
        self.canaries.start()
        self.alarm.start()

    async def close(self) -> None:
        """End both."""
        await self.canaries.close()
        await self.alarm.close()

    def dress(self, view: GroupView) -> GroupView:
        """The view with what is known of its traffic, and the alerts that stand."""
        name = view.name
        whole = dressed(view, self.effectiveness.known(name), self.canaries.view(name))
        return whole.model_copy(update={"alerts": self.alarm.raised(whole)})

    def instances(self, group: str, members: Iterable[MemberView]) -> list[InstanceView]:
        """Members of a group with its name and what is known of their traffic."""
        traffic = self.effectiveness.known(group)
        return [
            InstanceView.model_construct(**vars(m) | of_member(m, traffic) | {"group": group})
            for m in members
        ]

    async def canary(self, group: str) -> CanaryView:
        """Try every pair of a group now. Raises Conflict when there is nothing to try."""
        return await self.canaries.run(group)

    def alerts(self) -> tuple[AlertView, ...]:
        """Every alert that stands, the oldest first."""
        return self.alarm.standing()
