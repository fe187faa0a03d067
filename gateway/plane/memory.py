"""The bytes that the plane keeps, all pairs together, and their bound."""

from __future__ import annotations

CARRY_ROOM = 128 * 1024
"""Room for the bytes of a cut header before those received. A scanner lets none grow beyond
64 KiB and a little; Pulsar's have some tens of bytes."""


class Memory:
    """The shared receive buffer, and what is kept beside it.

    `used`: bytes pending towards peers, collected, held and carried, of all pairs. Above `bound` no
    pump reads on until it falls: what is kept was already received, so it can only shrink.
    Above `ample` each read is a small one: peers that do not read fill the first half, and would
    stop everybody else too if the other half did not go far.
    `held`: those that wait for allowance, `held_bound` what they may be: a tenant above its limit
    stops nobody else.
    `full_since`: when a pump first found it so, and none found it otherwise since.

    The buffer is received into and scanned within one call; it is never lent.
    """

    __slots__ = (
        "ample",
        "bound",
        "buffer",
        "full_since",
        "held",
        "held_bound",
        "size",
        "used",
        "view",
    )

    def __init__(self, buffer_size: int, bound: int, held_bound: int | None = None) -> None:
        self.size = buffer_size
        self.buffer = bytearray(buffer_size + CARRY_ROOM)
        self.view = memoryview(self.buffer)
        self.bound = bound
        self.ample = bound // 2
        self.held_bound = bound // 4 if held_bound is None else held_bound
        self.used = self.held = 0
        self.full_since: float | None = None

    def hold(self, size: int) -> None:
        """So many bytes more wait for allowance, or less."""
        self.held += size
        self.used += size

    @property
    def full(self) -> bool:
        return self.used > self.bound
