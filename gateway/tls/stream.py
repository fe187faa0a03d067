"""A TLS connection over a socket, as the data plane expects one (`plane.stream.RecordStream`).

OpenSSL works between two buffers in memory here, and the stream moves ciphertext between them and
the socket. So one system call moves many records, where OpenSSL on a socket takes two system calls
to read each one.

- **Receiving.** All streams receive ciphertext into one scratch buffer, and hand it to OpenSSL in
  pieces. OpenSSL's own buffers never shrink, so a piece bounds what a connection keeps for life.
  Where a record has ended and nothing is left, there is no further call of OpenSSL: its answer
  "nothing more" costs as much as a small record.
- **Records without data.** New keys (KeyUpdate, RFC 8446 section 4.6.3) cost ten times as much as a
  small record, and a peer may send them without end; OpenSSL does not bound them. So a stream
  receives much at a time only while most of what comes is data, and ends the connection of a
  peer whose records are mostly empty.
- **Sending.** A piece of plaintext is encrypted and sent. What the socket does not take stays here
  as ciphertext. Until that is sent, the stream says that it has taken none of the piece, so the
  caller keeps the plaintext and offers it again; nothing is encrypted twice.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable
from enum import Enum
from typing import Any

import trio

from gateway.plane.stream import IN, OUT, is_open

PIECE = 32 * 1024
"""Bytes that OpenSSL encrypts or decrypts at a time: two records of the largest size. Its buffers
grow to a third more, one for each direction."""

RECORD = 5 + 16 * 1024 + 256
"""Bytes of the largest record (RFC 8446 section 5.2), which is received even if less plaintext is
wanted: a part of a record cannot be decrypted."""

LARGEST_HELLO, LARGEST_ANSWER = 32 * 1024, 256 * 1024
"""Bytes of a handshake from a client and from a server. Clients greet with 0.3 to 4 KB, and their
certificates have 2 to 10; servers may list hundreds of authorities. OpenSSL keeps 128 KB of a
greeting that does not end."""

ANSWERS = 4 * 1024
"""Bytes of OpenSSL's own responses that wait for the peer to read: about a hundred, where real
peers ask for new keys once in millions of records."""


WASTE = 32 * 1024
"""Bytes beyond those that data excuses: a thousand KeyUpdates, which take 10 ms."""

EXCUSED = 4
"""Bytes of records that each byte of data excuses. The smallest frames, each in a record of its
own, take three."""

DENSE = 15 / 16
"""The part of received bytes that is data, from which on a stream receives as much as it is asked
for: records of 400 bytes have it. Otherwise one receive could take 80 ms to decrypt."""


class Shake(Enum):
    """What a handshake waits for: nothing, bytes from the peer, or space to send."""

    DONE = "done"
    READS = "reads"
    SENDS = "sends"


class NamedObject(ssl.SSLObject):
    """OpenSSL's object for one connection. `asked_name`: the server name that the client sent."""

    asked_name: str | None = None


class Shared:
    """What all TLS streams of a process share. `scratch`: a buffer for ciphertext, of `size` bytes.
    `turn`: the lock that a stream holds during one step of its handshake."""

    __slots__ = ("scratch", "size", "turn")

    def __init__(self, size: int = 512 * 1024) -> None:
        self.size = size
        self.scratch = memoryview(bytearray(size))
        self.turn = trio.Lock()


class TlsStream:
    """One side of a TLS connection over a socket; implements `RecordStream`.

    OpenSSL reads without sending, since there is no renegotiation, so each direction waits for its
    own readiness.
    """

    __slots__ = (
        "_allowed",
        "_choose",
        "_claimed",
        "_dense",
        "_ended",
        "_incoming",
        "_outgoing",
        "_shared",
        "_sock",
        "_tls",
        "_unsent",
        "_waste",
        "buffered",
    )

    receives_on = IN
    sends_on = OUT

    _tls: ssl.SSLObject

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext | Callable[[bytes], ssl.SSLContext],
        shared: Shared,
        host: str | None,
    ) -> None:
        """`host`: the server whose certificate a client verifies; None: this is the server.
        `context`: a client's context; or a function that returns a server's context for its
        client's first bytes."""
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        # OpenSSL's state takes 45 KB, and many clients only connect: it begins with their bytes.
        self._choose: Callable[[bytes], ssl.SSLContext] | None = None
        if not isinstance(context, ssl.SSLContext):
            self._choose = context
        else:
            self._tls = context.wrap_bio(self._incoming, self._outgoing, False, host)
        self._shared = shared
        self._unsent: memoryview | None = None  # ciphertext that the socket has not taken
        self._claimed = 0  # bytes of plaintext in it that the caller will offer again
        self._allowed = LARGEST_HELLO if host is None else LARGEST_ANSWER  # bytes of a handshake
        self._ended = False  # the peer sends nothing more
        self._dense = False  # what came last was mostly data
        self._waste = 0.0  # bytes without data, beyond those that data excuse
        self.buffered = False

    # -- the handshake -----------------------------------------------------------------------

    def shake(self) -> Shake:
        """Take one step of the handshake. Return what the handshake waits for now.

        Raises `OSError` (as `ssl.SSLError` is) if the handshake fails; the peer gets the alert that
        says why.
        """
        if self._choose is not None:
            if not self._take_handshake():
                return Shake.READS
            context = self._choose(bytes(self._shared.scratch[: self._incoming.pending]))
            self._tls, self._choose = context.wrap_bio(self._incoming, self._outgoing, True), None
        if not self._flush():
            return Shake.SENDS
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                if not self._flush():
                    return Shake.SENDS
                if not self._take_handshake():
                    return Shake.READS
            except ssl.SSLError:
                self._flush()
                raise
            else:
                self.buffered = self._incoming.pending > 0
                return Shake.DONE if self._flush() else Shake.SENDS

    def _take_handshake(self) -> bool:
        """Receive bytes of the handshake, or its end; return whether there were any. Raises
        `OSError`."""
        scratch = self._shared.scratch
        try:
            count = self._sock.recv_into(scratch, PIECE)
        except BlockingIOError:
            return False
        self._allowed -= count
        if self._allowed < 0:
            raise ConnectionAbortedError("the peer's handshake is too large")
        if count:
            self._incoming.write(scratch[:count])
        else:
            self._incoming.write_eof()
        return True

    @property
    def turn(self) -> trio.Lock:
        """Return the lock to hold during one step of a handshake, so that handshakes take turns."""
        return self._shared.turn

    @property
    def certificate(self) -> bytes | None:
        """See `RecordStream`."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def server_name(self) -> str | None:
        """See `RecordStream`."""
        assert isinstance(self._tls, NamedObject)
        return self._tls.asked_name

    @property
    def version(self) -> str | None:
        """Return the version of TLS, such as `TLSv1.3`; None before the handshake is done."""
        return self._tls.version()

    @property
    def cipher(self) -> str | None:
        """Return the cipher, such as `TLS_AES_256_GCM_SHA384`; None before the handshake is
        done."""
        agreed = self._tls.cipher()
        return None if agreed is None else agreed[0]

    @property
    def resumed(self) -> bool:
        """Return whether the TLS session was resumed: certificates were shown on an earlier
        connection."""
        return bool(self._tls.session_reused)

    # -- receiving ---------------------------------------------------------------------------

    def recv(self, size: int, /) -> bytes:
        """See `Stream`."""
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.recv_into(buffer, size)])

    def recv_into(self, buffer: bytearray | memoryview, size: int, /) -> int:
        """See `Stream`."""
        view = memoryview(buffer)[:size]
        count = self._decrypt(view, 0) if self.buffered else 0
        if count:
            self._waste = max(0.0, self._waste - EXCUSED * count)
        if count < size and not self._ended:
            count = self._receive(view, count)
        if self._ended:
            self.buffered = count > 0  # no event tells of the end if the socket stays open
        elif not count:
            raise BlockingIOError
        return count

    def _receive(self, view: memoryview, count: int) -> int:
        """Receive ciphertext, and decrypt it behind the first `count` bytes of `view`. Return how
        many it holds then."""
        scratch = self._shared.scratch
        most = self._shared.size if self._dense else RECORD
        wanted = min(most, max(len(view) - count, RECORD))
        before = count
        try:
            received = self._sock.recv_into(scratch, wanted)
        except BlockingIOError:
            return count
        if not received:
            self._ended = True
        for start in range(0, received, PIECE):
            self._incoming.write(scratch[start : min(start + PIECE, received)])
            count = self._decrypt(view, count)
        if received:
            self._weigh(received, count - before)
        if self._outgoing.pending:
            self._answer()
        return count

    def _weigh(self, received: int, data: int) -> None:
        """Note how much of what was received is data. Raises `OSError` if it is too little."""
        self._dense = data >= DENSE * received
        self._waste = max(0.0, self._waste + received - EXCUSED * data)
        if self._waste > WASTE and not self.buffered:
            raise ConnectionAbortedError("the peer sends records without data")

    def _answer(self) -> None:
        """Send what OpenSSL answers by itself: new keys if the peer asked for them (RFC 8446
        section 4.6.3). Raises `OSError` if the peer asks on and reads nothing."""
        if self._unsent is None:
            self._flush()
        if self._outgoing.pending > ANSWERS:
            raise ConnectionAbortedError("the peer asks for new keys and takes none")

    def _decrypt(self, view: memoryview, count: int) -> int:
        """Decrypt into `view` behind its first `count` bytes. Return how many it holds then."""
        read: Any = self._tls.read
        incoming, size = self._incoming, len(view)
        self.buffered = False
        try:
            while count < size:
                got = read(size - count, view[count:])
                if not got:
                    self._ended = True
                    return count
                count += got
                if count < size and not incoming.pending:  # this record has ended too
                    return count
        except ssl.SSLWantReadError:
            return count
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self._ended = True
            return count
        except ssl.SSLError:
            self._flush()  # the alert that says why
            raise
        self.buffered = incoming.pending > 0 or self._tls.pending() > 0
        return count

    # -- sending -----------------------------------------------------------------------------

    def send(self, data: bytes | memoryview, /) -> int:
        """See `Stream`."""
        if self._unsent is not None:
            if not self._flush():
                raise BlockingIOError
            if self._claimed:
                claimed, self._claimed = self._claimed, 0
                return claimed
        taken = 0
        while taken < len(data):
            piece = data[taken : taken + PIECE]
            self._tls.write(piece)
            if not self._flush():
                self._claimed = len(piece)
                break
            taken += len(piece)
        if data and not taken:
            raise BlockingIOError
        return taken

    def _flush(self) -> bool:
        """Send what is encrypted; return whether nothing is left."""
        unsent = self._unsent
        if unsent is None:
            if not self._outgoing.pending:
                return True
            unsent = memoryview(self._outgoing.read())
        while unsent:
            try:
                unsent = unsent[self._sock.send(unsent) :]
            except BlockingIOError:
                self._unsent = unsent
                return False
        self._unsent = None
        return not self._outgoing.pending or self._flush()

    # -- as a socket -------------------------------------------------------------------------

    def fileno(self) -> int:
        """See `Stream`."""
        return self._sock.fileno()

    def getpeername(self) -> Any:
        """See `Stream`."""
        return self._sock.getpeername()

    def is_open(self) -> bool:
        """See `RecordStream`."""
        return is_open(self._sock)

    def shutdown(self, how: int, /) -> None:
        """See `Stream`. The peer is told that nothing more comes (close_notify)."""
        if not self.buffered:  # OpenSSL looks for the peer's notice, and drops what comes before it
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
        self._sock.shutdown(how)

    def close(self) -> None:
        """See `Stream`."""
        self._sock.close()
