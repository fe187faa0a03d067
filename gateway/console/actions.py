"""The actions that operators can take in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.console.asking import Ask

LONGEST = 3600.0
"""Most seconds for which a log level or a trace is set, so that none is forgotten for a week."""


class AdminActions:
    """Carries out operators' actions in all processes of the gateway. Each method returns None, or
    a text that says why the action failed. `ask`: puts a question to all processes. `drain`: stops
    the gateway as SIGTERM does. `reload`: reloads rules as SIGHUP does; None without rules."""

    def __init__(
        self, ask: Ask, drain: Callable[[], None], reload: Callable[[], None] | None
    ) -> None:
        self._ask = ask
        self._drain = drain
        self._reload = reload

    async def close(self, connection: int) -> str | None:
        """Close the connection with this id; return None, or why it failed. Its client reconnects
        and resends messages that got no receipt."""
        closed = any(parts[0] for parts in await self._ask("close", connection))
        return None if closed else "there is no such connection"

    def drain(self) -> str | None:
        """Stop the gateway. Its clients are moved to other gateways."""
        self._drain()
        return None

    def reload(self) -> str | None:
        """Reload the files of rules."""
        if self._reload is None:
            return "there are no rules"
        self._reload()
        return None

    async def set_level(self, level: str, event: str | None, seconds: float) -> str | None:
        """Set the log level for some seconds; return None, or why that failed. `event`: for lines
        of this event alone; None: for all lines."""
        return await self._tell("level", [level, event, seconds])

    async def trace(self, client: str | None, principal: str | None, seconds: float) -> str | None:
        """Log the frames of clients that connect from the network `client`, or as `principal`,
        within the next `seconds`. Return None, or why that failed."""
        return await self._tell("trace", [client, principal, seconds])

    async def _tell(self, question: str, value: Any) -> str | None:
        return None if await self._ask(question, value) else "no process answers"
