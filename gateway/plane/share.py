"""A share of memory for frames that are not all here, divided among those who send them.

Theory of operation
===================
A frame that must be whole before it is of use is kept while it comes, and how fast it comes is its
sender's choice. So these bytes are kept apart from all others: whatever happens to a share, nobody
waits for it but those who want to send a large frame of this kind.

- A small frame (`UNCLAIMED`) needs nothing of the share.
- A *claim* is for the whole length of a frame, and made before more of it is read. Whoever has one
  can finish: no two senders wait for each other's room.
- A claim that finds no room waits, and its source is not read meanwhile. Nobody is ended for it.
- An address gets at most as much as it leaves free: the first one half of the share, the next one
  half of the rest, and so on. So many connections of one sender get no more than one of them, and
  there is room left for a sender who comes later.
- Waiting addresses are served by turn, and the claims of one in their order. A claim that fits
  does not wait for a larger one that does not. Where nothing is taken the next one is granted,
  whatever its size.

Each release does a bounded number of steps, however many wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from gateway.wire.holder import holder

UNCLAIMED = 4 * 1024
"""Bytes of a frame that are kept without a claim. Nearly all commands are smaller, and for 10,000
connections this is 40 MB."""

TRIES = 16
"""Claims that are looked at when room becomes free."""


class Claim:
    """Room for one frame. `granted`: it may be read. `on_grant` is called when that becomes so."""

    __slots__ = ("address", "granted", "on_grant", "size")

    def __init__(self, address: str, size: int, on_grant: Callable[[], None]) -> None:
        self.address = address
        self.size = size
        self.on_grant = on_grant
        self.granted = False


class Share:
    """`size`: the bytes that all claims together may have; `taken`: those that they have."""

    __slots__ = ("_of_address", "_waiting", "size", "taken")

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._of_address: dict[str, int] = {}
        # By address, whose turn it is first. Ordered, as claims are withdrawn from the middle.
        self._waiting: OrderedDict[str, OrderedDict[Claim, None]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many claims wait."""
        return sum(map(len, self._waiting.values()))

    def claim(self, address: str, size: int, on_grant: Callable[[], None]) -> Claim:
        """Claim room for a frame of a peer's: granted at once, or later, when `on_grant` is called
        from within somebody else's release. `address`: the peer's host (see `holder`)."""
        address = holder(address)
        claim = Claim(address, size, on_grant)
        if self._fits(claim):
            self._grant(claim)
        else:
            self._waiting.setdefault(address, OrderedDict())[claim] = None
        return claim

    def release(self, claim: Claim) -> None:
        """Give the room back, or wait for it no more."""
        if not claim.granted:
            self._withdraw(claim)
            return
        self.taken -= claim.size
        left = self._of_address[claim.address] - claim.size
        if left:
            self._of_address[claim.address] = left
        else:
            del self._of_address[claim.address]
        self._serve()

    def _serve(self) -> None:
        """Grant what fits now."""
        misses = 0  # in a row
        for _ in range(TRIES):
            if misses >= len(self._waiting):
                return
            address, queue = next(iter(self._waiting.items()))
            self._waiting.move_to_end(address)
            claim = next(iter(queue))
            if self._fits(claim):
                misses = 0
                self._withdraw(claim)
                self._grant(claim)
                claim.on_grant()
            else:
                misses += 1

    def _withdraw(self, claim: Claim) -> None:
        queue = self._waiting[claim.address]
        del queue[claim]
        if not queue:
            del self._waiting[claim.address]

    def _fits(self, claim: Claim) -> bool:
        own = self._of_address.get(claim.address, 0)
        return not self.taken or own + claim.size <= self.size - self.taken

    def _grant(self, claim: Claim) -> None:
        claim.granted = True
        self.taken += claim.size
        self._of_address[claim.address] = self._of_address.get(claim.address, 0) + claim.size
