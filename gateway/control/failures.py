"""Delays of addresses that have failed to authenticate: the more often, the longer.

What is verified from memory is accepted at once if it is right, even from an address that has often
failed, because other clients may share this address with an attacker; the response to a failure is
delayed. What takes a slow hash is delayed before the hash (see `turns`). `limits.unauthenticated`
bounds how many connections wait at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import ceil

from gateway.wire.holder import holder

FREE = 10
"""Failures without a delay. A client whose token has expired tries a few times, on several
connections."""

FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0
"""Seconds of the first delay, which doubles with each failure, and of the longest: half of the time
that clients wait."""

FORGIVEN = 60.0
"""Seconds after the last failure in which half of the failures are forgotten."""

REMEMBERED = 10_000
"""Addresses with failures that are remembered, 200 bytes each."""


class Failures:
    """The failed authentications of each address. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # How many, and when the last one was; the latest is last.
        self._of_address: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def failed(self, host: str) -> float:
        """Count a failed authentication from the address `host`; return the seconds by which to
        delay the response to the client."""
        now, address = self._clock(), holder(host)
        number, last = self._of_address.get(address, (0.0, now))
        number = number * 0.5 ** ((now - last) / FORGIVEN) + 1
        self._of_address[address] = number, now
        self._of_address.move_to_end(address)
        if len(self._of_address) > REMEMBERED:
            self._of_address.popitem(last=False)
        return _delay(number)

    def wait(self, host: str) -> float:
        """Return in how many seconds the delay after the last failure of an address is over."""
        number, last = self._of_address.get(holder(host), (0.0, 0.0))
        return max(0.0, last + _delay(number) - self._clock())


def _delay(failures: float) -> float:
    doubled = ceil(failures - FREE) - 1
    return 0.0 if doubled < 0 else min(FIRST_DELAY * 2.0 ** min(doubled, 10), LONGEST_DELAY)
