"""A share of memory for incomplete frames, divided among the addresses that send them.

Theory of operation
===================
A frame that is of use only when it is whole is kept while it comes, and its sender chooses how fast
it comes. So these bytes are counted apart from all others: when a share is full, only senders of
large frames of this kind wait.

- A small frame (`UNCLAIMED`) needs nothing of the share.
- A *claim* is for the whole length of a frame, and made before more of the frame is read. A sender
  with a granted claim can finish: no two senders wait for each other's room.
- A claim that finds no room waits, and its source is not read meanwhile. No pair is ended for it.
- An address gets at most as much as it leaves free: the first one half of the share, the next one
  half of the rest, and so on. So many connections of one address get no more than one connection,
  and an address that comes later finds room.
- Waiting addresses are served by turn, and the claims of one address in their order. A claim that
  fits does not wait for a larger one that does not. If nothing is taken, the next claim is granted
  whatever its size.

Each release takes a bounded number of steps, however many claims wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from gateway.wire.holder import holder

UNCLAIMED = 4 * 1024
"""Largest frame, in bytes, that needs no claim. Nearly all commands are smaller, and 10,000
connections need 40 MB."""

TRIES = 16
"""Claims checked when room becomes free."""


class Claim:
    """A claim on memory for one frame. `granted`: the frame may be read. `on_grant`: called when
    the claim is granted, unless that was at once."""

    __slots__ = ("address", "granted", "on_grant", "size")

    def __init__(self, address: str, size: int, on_grant: Callable[[], None]) -> None:
        self.address = address
        self.size = size
        self.on_grant = on_grant
        self.granted = False


class Share:
    """A bounded amount of memory for incomplete frames. `size`: bytes that all granted claims
    together may take; `taken`: bytes that they take now."""

    __slots__ = ("_of_address", "_waiting", "size", "taken")

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._of_address: dict[str, int] = {}
        # By address, the next in turn first. Ordered, as claims are withdrawn from the middle.
        self._waiting: OrderedDict[str, OrderedDict[Claim, None]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Return how many claims wait to be granted."""
        return sum(map(len, self._waiting.values()))

    def claim(self, address: str, size: int, on_grant: Callable[[], None]) -> Claim:
        """Claim `size` bytes for a peer's frame. The claim is granted at once if it fits. Otherwise
        it waits: a later `release` of another claim grants it and calls `on_grant`. `address`: the
        peer's host (see `holder`)."""
        address = holder(address)
        claim = Claim(address, size, on_grant)
        if self._fits(claim):
            self._grant(claim)
        else:
            self._waiting.setdefault(address, OrderedDict())[claim] = None
        return claim

    def release(self, claim: Claim) -> None:
        """Free the memory of a granted claim, or withdraw a claim that waits."""
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
        """Grant the claims that fit now."""
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
