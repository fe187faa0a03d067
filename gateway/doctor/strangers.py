"""What a peer is that does not answer in the protocol of a cluster: by first bytes, or silence."""

from __future__ import annotations

from enum import Enum

from gateway.wire.contract import Denial, Refusal, StepResult


class Stranger(Enum):
    """Apparent nature of a peer that is not a broker. `value`: words, with a place for the name of
    the protocol that was expected."""

    TLS = "speaks TLS"
    PLAIN = "speaks {protocol} without TLS"
    HTTP = "speaks HTTP"
    SILENT = "accepts, and says nothing"
    CLOSED = "accepts, and closes without a word"
    STRANGE = "answers in a protocol that is not {protocol}'s"

    def words(self, protocol: str) -> str:
        """Return what it does. `protocol`: the name of the one that was expected."""
        return self.value.format(protocol=protocol)


def read_silence(denial: StepResult) -> Stranger:
    """Return what a peer is of which no frame comes."""
    refusal = denial.refusal if isinstance(denial, Denial) else None
    return _SILENCES.get(refusal, Stranger.STRANGE)  # STRANGE: a frame far too large


_SILENCES: dict[Refusal | None, Stranger] = {
    Refusal.TIMEOUT: Stranger.SILENT,
    Refusal.CLOSED: Stranger.CLOSED,
}


def recognize(silence: Stranger, received: bytes) -> Stranger:
    """Return the protocol that the first bytes show; `silence` without any."""
    if received.startswith((b"HTTP/", b"<")):  # old servers send a page without headers
        return Stranger.HTTP
    if received[:2] in (b"\x15\x03", b"\x16\x03"):  # a TLS record: alert, handshake
        return Stranger.TLS
    return Stranger.STRANGE if received else silence
