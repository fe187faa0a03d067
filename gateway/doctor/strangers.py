"""Recognizes peers that do not speak the protocol of a cluster, by the first bytes that they send,
or by their silence."""

from __future__ import annotations

from enum import Enum

from gateway.wire.contract import Denial, Refusal, StepResult


class Stranger(Enum):
    """What a peer that is not a broker seems to be. `value`: a phrase about the peer, in which
    `{protocol}` stands for the name of the expected protocol."""

    TLS = "speaks TLS"
    PLAIN = "speaks {protocol} without TLS"
    HTTP = "speaks HTTP"
    SILENT = "accepts, and says nothing"
    CLOSED = "accepts, and closes without a word"
    STRANGE = "answers in a protocol that is not {protocol}'s"

    def words(self, protocol: str) -> str:
        """Return the phrase that says what this peer does. `protocol`: the name of the expected
        protocol."""
        return self.value.format(protocol=protocol)


def read_silence(denial: StepResult) -> Stranger:
    """Return what a peer seems to be if it has sent no frame. `denial`: the result of the step
    `Receive`."""
    refusal = denial.refusal if isinstance(denial, Denial) else None
    return _SILENCES.get(refusal, Stranger.STRANGE)  # STRANGE: a frame far too large


_SILENCES: dict[Refusal | None, Stranger] = {
    Refusal.TIMEOUT: Stranger.SILENT,
    Refusal.CLOSED: Stranger.CLOSED,
}


def recognize(silence: Stranger, received: bytes) -> Stranger:
    """Return what a peer seems to be by the first bytes that it has sent; if it has sent none,
    return `silence`."""
    if received.startswith((b"HTTP/", b"<")):  # old servers send a page without headers
        return Stranger.HTTP
    if received[:2] in (b"\x15\x03", b"\x16\x03"):  # a TLS record: alert, handshake
        return Stranger.TLS
    return Stranger.STRANGE if received else silence
