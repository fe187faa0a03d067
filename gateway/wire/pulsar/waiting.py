"""The bounds of one pair for frames that wait to be decided: number, bytes, and memory budget."""

from __future__ import annotations

from gateway.wire.pulsar.context import Client, ListenerContext

ENTRY = 1024
"""Bytes that a waiting frame takes beside its own, most of them for the queue of its party."""


class WaitingFrames:
    """Counts the frames of one pair that wait to be decided. Their bytes count in the client's
    quota of the memory budget too."""

    __slots__ = ("_bytes", "_client", "_listener", "_number")

    def __init__(self, listener: ListenerContext, client: Client) -> None:
        self._listener = listener
        self._client = client
        self._number = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._number

    def fits(self, frame: bytes) -> bool:
        """Return whether the pair's bounds and the memory budget permit this frame to wait. For a
        frame that waits alone, only the memory budget bounds the size."""
        bounds = self._listener.bounds
        much = self._bytes + len(frame) > bounds.delayed_bytes
        if self._number >= bounds.delayed or (self._number > 0 and much):
            return False
        return self._client.quota.fits(ENTRY + len(frame))

    def take(self, frame: bytes) -> None:
        """Add to the counts a frame that now waits for a decision."""
        self._number += 1
        self._bytes += len(frame)
        self._client.quota.take(ENTRY + len(frame))

    def give_back(self, frame: bytes) -> None:
        """Subtract from the counts a frame that has been decided."""
        self._number -= 1
        self._bytes -= len(frame)
        self._client.quota.give_back(ENTRY + len(frame))

    def clear(self) -> None:
        """Set the counts to 0, because the pair has ended. The frames' bytes still count in the
        memory budget until `Client.leave` gives back all bytes of the connection."""
        self._number = self._bytes = 0
