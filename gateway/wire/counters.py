# cython: annotation_typing=False
"""The counters of an account, which readers add to; compiled, they are C numbers of 64 bits."""

from __future__ import annotations

ENDLESS = 1 << 62
"""A ceiling that no counter reaches: at 10 GB/s a byte counter needs 14 years."""

_ENDLESS = ENDLESS  # a C number, which other modules do not see


class Counters:
    """The part of an account that readers use; see `account.Account`."""

    __slots__ = (
        "bytes",
        "bytes_ceiling",
        "messages",
        "messages_ceiling",
        "receipts",
        "redelivered",
        "surplus",
    )

    messages: int
    surplus: int
    bytes: int
    receipts: int
    redelivered: int
    messages_ceiling: int
    bytes_ceiling: int

    def __init__(self) -> None:
        self.messages = self.surplus = self.bytes = self.receipts = self.redelivered = 0
        self.messages_ceiling = self.bytes_ceiling = ENDLESS

    @property
    def held(self) -> bool:
        """Return whether the account's allowance of messages, or that of bytes, is used up."""
        return self.is_held()

    def is_held(self) -> bool:
        """Return what `held` returns: a call that compiled readers make without the interpreter."""
        return self.messages >= self.messages_ceiling or self.bytes >= self.bytes_ceiling

    def lacks(self, size: int) -> bool:
        """Return whether a frame of `size` bytes has to wait: the allowance is used up, or has
        fewer bytes. 0: the size is not known."""
        return (
            self.messages >= self.messages_ceiling
            or self.bytes + (size if size > 0 else 1) > self.bytes_ceiling
        )

    def add(self, messages: int, size: int) -> None:
        """Count one frame of so many messages and bytes. Messages that a peer only claims, 2³¹ in
        each frame, make no counter overflow: beyond `ENDLESS` they are not counted."""
        if self.messages < _ENDLESS:
            self.messages += messages
            self.surplus += messages - 1
        self.bytes += size
