"""The bytes that the plane keeps, all pairs together, and their bound."""

from __future__ import annotations

from gateway.plane.share import Share

CARRY_ROOM = 128 * 1024
"""Room for the bytes of a cut header before those received. A scanner lets none grow beyond
64 KiB and a little; Pulsar's have some tens of bytes."""

SMALLEST_READ = 16 * 1024
"""Below this a blocked pump does not halve its reads: system calls would cost more than memory."""

SPARING_READ = 4 * 1024
"""One read while the plane's memory is more than half full. With the default bound the other half
is enough for 20,000 pumps whose peers do not read, and those whose peers do go on."""

UNHEARD_BOUND = 64 * 1024
"""Bytes of our own frames that may wait for a peer before it is not read any more. Some hundred
answers: more than a client asks for before it listens, and far below what a buffer holds."""


class Memory:
    """The shared receive buffer, and what is kept beside it.

    `used`: bytes pending towards peers, held and carried, of all pairs. Above `bound` no pump reads
    on until it falls: what is kept was already received, so it can only shrink.
    Above `ample` each read is a small one: peers that do not read fill the first half, and would
    stop everybody else too if the other half did not go far.
    `held`: those that wait for allowance, `held_bound` what they may be, with a little for each
    account beyond it up to `held_most`: a tenant above its limit stops nobody else.
    `full_since`: when a pump first found it so, and none found it otherwise since.

    Not in `used`, so that they stop nobody: `collected`, the bytes of stop frames that are not all
    here, which have the share `collecting`; and `opening`, a share for the frames of connections
    that are not open yet.
    `unclaimed`: of the bytes that are collected, those of frames that wait for their claim: what
    one receive took of each before its length was known. Beyond a quarter of the share reads are
    small ones too, so that it stays at that and a little for each connection.

    The buffer is received into and scanned within one call; it is never lent.
    """

    __slots__ = (
        "_half",
        "_unclaimed_bound",
        "ample",
        "bound",
        "buffer",
        "collected",
        "collecting",
        "full_since",
        "held",
        "held_bound",
        "held_most",
        "opening",
        "size",
        "unclaimed",
        "used",
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
        """So many bytes more wait for allowance, or less."""
        self.held += size
        self.used += size

    def wait_for_claim(self, size: int) -> None:
        """So many bytes more are of frames that wait for their claim, or less."""
        self.unclaimed += size
        self.ample = self._half if self.unclaimed <= self._unclaimed_bound else -1

    @property
    def unheard_bound(self) -> int:
        """See `UNHEARD_BOUND`; less where many such peers would fill the memory."""
        return UNHEARD_BOUND if self.used <= self.ample else SPARING_READ

    @property
    def full(self) -> bool:
        return self.used > self.bound

    @property
    def kept(self) -> int:
        """All bytes of open pairs, of all kinds."""
        return self.used + self.collected
