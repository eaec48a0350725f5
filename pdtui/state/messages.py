"""Messages between the session and the screens."""

from __future__ import annotations

from textual.message import Message


class StoreChanged(Message):
    """The store has a new revision. Several in the queue become one."""

    def can_replace(self, message: Message) -> bool:
        """Any earlier one still waiting is replaced."""
        return isinstance(message, StoreChanged)
