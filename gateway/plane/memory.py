"""The bytes that the plane keeps for all pairs, and their bounds."""

from __future__ import annotations

from gateway.plane.moving import SPARING_READ, Room
from gateway.plane.share import Share

CARRY_ROOM = 128 * 1024
"""Room for the bytes of a cut header before the received ones. Scanners bound a header to little
more than 64 KiB; Pulsar's have some tens of bytes."""

UNHEARD_BOUND = 64 * 1024
"""Bytes of the gateway's own frames that may wait for a peer before the peer is not read any more.
Some hundred responses: more than a client requests before it reads, and far below a buffer's
size."""


class Memory(Room):
    """The shared receive buffer, and the counts of all kept bytes.

    `used`: bytes pending towards peers, held and carried, of all pairs. Above `bound` no pump reads
    until `used` falls: the kept bytes were already received, so they can only become fewer.
    Above `ample` all reads are small: peers that do not read fill the first half, and would stop
    everybody else too if they filled the other half as fast.
    `held`: bytes that wait for allowance, at most `held_bound`, and above that a little for each
    account up to `held_most`: a tenant above its limit stops nobody else.
    `full_since`: when a pump first found the memory full, if none found room since.

    Not part of `used`, so that they stop nobody: `collected`, the bytes of incomplete stop frames,
    which have the share `collecting`; and `opening`, a share for the frames of connections that are
    not open yet.
    `unclaimed`: the part of `collected` whose frames wait for their claim: the bytes that one
    receive took of each frame before its length was known. Above a quarter of the share all reads
    are small too, so that `unclaimed` stays at that and a little for each connection.

    Receiving into the buffer and scanning it happen within one call; the buffer is never lent.
    """

    __slots__ = (
        "_half",
        "_unclaimed_bound",
        "collected",
        "collecting",
        "full_since",
        "held",
        "held_bound",
        "held_most",
        "opening",
        "unclaimed",
        "view",
    )

    def __init__(
        self,
        buffer_size: int,
        bound: int,
        held_bound: int | None = None,
        collected_bound: int | None = None,
        opening_bound: int | None = None,
    ) -> None:
        super().__init__()
        self.size = buffer_size
        self.buffer = bytearray(buffer_size + CARRY_ROOM)
        self.view = memoryview(self.buffer)
        self.bound = bound
        self.ample = self._half = bound // 2
        self.held_bound = bound // 4 if held_bound is None else held_bound
        self.held_most = max(self.held_bound, bound * 3 // 4)
        self.collecting = Share(bound // 4 if collected_bound is None else collected_bound)
        self.opening = Share(bound // 8 if opening_bound is None else opening_bound)
        self.used = self.held = self.collected = self.unclaimed = 0
        self._unclaimed_bound = self.collecting.size // 4
        self.full_since: float | None = None

    def hold(self, size: int) -> None:
        """Count `size` more bytes that wait for allowance; a negative `size`: fewer bytes."""
        self.held += size
        self.used += size

    def wait_for_claim(self, size: int) -> None:
        """Count `size` more received bytes of frames whose claim on memory (see `plane.share`) is
        not granted yet; a negative `size`: fewer bytes."""
        self.unclaimed += size
        self.ample = self._half if self.unclaimed <= self._unclaimed_bound else -1

    @property
    def unheard_bound(self) -> int:
        """Return how many bytes of the gateway's own frames may wait for one peer: `UNHEARD_BOUND`,
        or less while memory is more than half full."""
        return UNHEARD_BOUND if self.used <= self.ample else SPARING_READ

    @property
    def full(self) -> bool:
        return self.used > self.bound

    @property
    def kept(self) -> int:
        """Return how many bytes are kept in memory for all open pairs."""
        return self.used + self.collected
