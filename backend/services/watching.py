"""What is watched of every group, put together for its view: figures, effectiveness."""

from __future__ import annotations

from backend.domain.errors import NotFound
from backend.domain.group import Instance
from backend.domain.views import GroupView
from backend.domain.watched import dressed
from backend.observe.effectiveness import Effectiveness
from backend.store.store import Store


class Watching:
    """The watches' findings, by group."""

    def __init__(self, store: Store, effectiveness: Effectiveness) -> None:
        self._store = store
        self.effectiveness = effectiveness

    def instance(self, key: str) -> Instance:
        """The instance of that id. Raises NotFound."""
        found = self._store.instances.get(key)
        if found is None:
            raise NotFound.of(
                "instance.unknown",
                f"there is no instance {key!r}.",
                values={"instance": key},
                remedy="List them with `pdtui get NAME`.",
            )
        return found

    def dress(self, view: GroupView) -> GroupView:
        """The view with what is known of its traffic."""
        return dressed(view, self.effectiveness.known(view.name))
