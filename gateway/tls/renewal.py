"""Reloads certificates, keys, authorities and lists of revoked certificates when their files
change.

A wrong file changes nothing: what was loaded before stays in force until the files are right.
Connections that are open keep their keys; new ones get the new certificate.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog
import trio

from gateway.errors import ConfigurationError
from gateway.system.files import LOOK
from gateway.telemetry.figures import TlsFigures
from gateway.tls.sides import Side, Signs, signs_of


class Renewal:
    """Reloads TLS files of a process when they change. `sides`: the listeners and clusters that
    read them, by the name that logs and metrics use, such as `listener clients`. `figures`: counts
    for metrics."""

    def __init__(self, sides: Mapping[str, Side]) -> None:
        self._sides = sides
        self.figures = TlsFigures()
        self._seen: dict[str, Signs] = {}
        self._refused: dict[str, Signs] = {}
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        for owner, side in sides.items():
            self.figures.expiries[owner] = side.expiries

    async def run(self, look: float = LOOK) -> None:
        """Every `look` seconds check whether files have changed, and reload those that have, until
        cancelled."""
        while True:
            for owner, side in self._sides.items():
                await self._look(owner, side)
            await trio.sleep(look)

    async def _look(self, owner: str, side: Side) -> None:
        before, now = self._seen.get(owner), signs_of(side.files)
        self._seen[owner] = now
        if now == before and now not in (side.signs, self._refused.get(owner)):
            await self._load(owner, side, now)

    async def _load(self, owner: str, side: Side, signs: Signs) -> None:
        try:
            adopt = await trio.to_thread.run_sync(side.load)
        except ConfigurationError as error:
            self._refused[owner] = signs  # they are read again once they have changed
            self.figures.refused += 1
            self._log.error("tls_files_refused", owner=owner, error=str(error))
            return
        adopt()
        self.figures.loaded += 1
        self.figures.expiries[owner] = side.expiries
        self._log.info("tls_files_loaded", owner=owner)
