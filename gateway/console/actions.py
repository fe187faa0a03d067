"""The actions that operators can take in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.console.asking import Ask

LONGEST = 3600.0
"""Seconds for which a log level or a trace is set at most: nobody forgets one for a week."""


class AdminActions:
    """Carries out what operators ask for, in all processes. A text that is returned says why that
    cannot be. `drain`: stops as at SIGTERM. `reload`: as at SIGHUP; None without rules."""

    def __init__(
        self, ask: Ask, drain: Callable[[], None], reload: Callable[[], None] | None
    ) -> None:
        self._ask = ask
        self._drain = drain
        self._reload = reload

    async def close(self, connection: int) -> str | None:
        """Close a client connection. Its client connects again, and repeats what has no receipt."""
        closed = any(parts[0] for parts in await self._ask("close", connection))
        return None if closed else "there is no such connection"

    def drain(self) -> str | None:
        """Stop: clients move to other gateways."""
        self._drain()
        return None

    def reload(self) -> str | None:
        """Read rules again."""
        if self._reload is None:
            return "there are no rules"
        self._reload()
        return None

    async def set_level(self, level: str, event: str | None, seconds: float) -> str | None:
        """Write log lines from this level on, of one event or of all, for some time."""
        return await self._tell("level", [level, event, seconds])

    async def trace(self, client: str | None, principal: str | None, seconds: float) -> str | None:
        """Trace clients that connect from a network, or as a principal, in this time."""
        return await self._tell("trace", [client, principal, seconds])

    async def _tell(self, question: str, value: Any) -> str | None:
        return None if await self._ask(question, value) else "no process answers"
