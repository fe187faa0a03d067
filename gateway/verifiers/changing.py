"""The keys of an issuer that changes its keys while tokens of the old keys are still valid.

The issuer's server, or a file, has its key set. The gateway fetches the set again from time to
time, and at once if a token names a key that the set lacks. As anybody can name any key, the
gateway never fetches it within `SHORTEST_PAUSE` of the last time. One task fetches the set, and all
connections that need a key wait for this task. If fetching fails, the known keys are still used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio

from gateway.errors import ConfigurationError
from gateway.identity.keys import TokenKey
from gateway.identity.keysets import KeySet, read_key_set
from gateway.telemetry.figures import IssuerFigures
from gateway.verifiers import Log

PAUSE = 300.0
"""Seconds after which a set is fetched again. Issuers announce keys hours before they use them."""

SHORTEST_PAUSE = 5.0
"""Seconds between two fetches. A token with a new key waits so long at most, which is half of the
time that a client waits."""

FIRST_BACK_OFF, LONGEST_BACK_OFF = 1.0, 60.0
"""Seconds after a failed fetch, and after many."""

Fetch = Callable[[], Awaitable[bytes]]
"""Fetches the text of a key set. Raises `OSError` whose text says why it failed."""


class ChangingKeys:
    """The key set of one issuer, which is fetched again and again. `name`: the issuer's name.
    `fetch`: returns the set; it must bound its own time. `pause`: seconds between two fetches."""

    def __init__(
        self, name: str, fetch: Fetch, figures: IssuerFigures, log: Log, pause: float = PAUSE
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._figures = figures
        self._log = log
        self._pause = pause
        self._keys: KeySet = ()
        self._requested = trio.Event()
        self._fetched = trio.Event()
        self._error: str | None = None

    def adopt(self, keys: KeySet) -> None:
        """Use these keys from now on."""
        self._keys = keys
        self._figures.keys = len(keys)

    # -- see `KeySource` ---------------------------------------------------------------------

    def of(self, id: str | None) -> Sequence[TokenKey]:
        """Return the keys that may verify a token which names this key id. A key without an id may
        verify any token."""
        return [key for known, key in self._keys if id is None or known in (None, id)]

    def may_gain(self, id: str | None) -> bool:
        """Return whether fetching the set again might add a key for this id, because no known key
        fits the id."""
        return not self.of(id)

    async def renew(self) -> bool:
        """Have the keys fetched again, and wait until that is done; return whether it succeeded."""
        self._requested.set()
        await self._fetched.wait()
        return self._error is None

    # -- fetching ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled, fetch the keys: at once, after each pause, and whenever `renew` is
        called."""
        back_off = FIRST_BACK_OFF
        while True:
            earliest = trio.current_time() + SHORTEST_PAUSE
            self._requested = trio.Event()
            await self._renew()
            if self._error is None:
                pause, back_off = self._pause, FIRST_BACK_OFF
            else:
                pause, back_off = back_off, min(2 * back_off, LONGEST_BACK_OFF)
            with trio.move_on_after(pause):
                await self._requested.wait()
                await trio.sleep_until(earliest)

    async def _renew(self) -> None:
        before = self._error
        try:
            keys = read_key_set(await self._fetch(), "the answer")
        except (OSError, ConfigurationError) as error:
            self._figures.failed += 1
            self._error = str(error)
            if before is None:
                self._log("issuer_keys_unavailable", issuer=self._name, error=self._error)
        else:
            self._figures.fetched += 1
            self._error = None
            if [id for id, _ in keys] != [id for id, _ in self._keys] or before is not None:
                self._log("issuer_keys_fetched", issuer=self._name, keys=[id for id, _ in keys])
            self.adopt(keys)
        fetched, self._fetched = self._fetched, trio.Event()
        fetched.set()
