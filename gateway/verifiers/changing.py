"""The keys of an issuer, which changes them while tokens of the old ones are still valid.

A key set comes from a file or from the issuer's server. It is fetched again from time to time, and
at once if a token names a key that it lacks: but never within `SHORTEST_PAUSE` of the last time,
since anybody can name keys. One task fetches, and all connections that need a key wait for it.
While fetching fails, the known keys stay in use.
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
    """A key set that is fetched again and again. `name`: the issuer's. `fetch`: returns the set,
    and bounds its own time. `pause`: seconds between two fetches."""

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
        """Return the keys that may verify a token with this key id; a key without an id may verify
        any."""
        return [key for known, key in self._keys if id is None or known in (None, id)]

    def may_gain(self, id: str | None) -> bool:
        """Return whether no known key could have this id, so that a fetch might bring one."""
        return not self.of(id)

    async def renew(self) -> bool:
        """Have the keys fetched once more, and wait for that; return whether it succeeded."""
        self._requested.set()
        await self._fetched.wait()
        return self._error is None

    # -- fetching ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Fetch the keys at once, after each pause, and whenever `renew` is called, until
        cancelled."""
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
