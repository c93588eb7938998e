"""The switch that works when all else is broken."""

from typing import Protocol


class KillSwitch(Protocol):
    """The switch that stops all action at once and works when the store is down."""

    def engaged(self) -> bool:
        """Tell whether nothing may be acted on; an unreadable switch counts as engaged."""
