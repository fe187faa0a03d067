"""What peers send after the handshake that no library of theirs would."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress

import pytest

from gateway.tls.stream import ANSWERS, RECORD, WASTE
from tests.support.records import ALERT, HANDSHAKE, LARGEST, Forger, message
from tests.support.tls import NAME
from tests.unit.tls.samples import House, linked

NEW_SESSION_TICKET, CERTIFICATE_REQUEST, FINISHED = 4, 13, 20
"""Types of handshake messages (RFC 8446 section 4)."""

KEY_UPDATE_SIZE = 27
"""Bytes of its record."""

WARNING, FATAL, CLOSE_NOTIFY, UNEXPECTED = 1, 2, 0, 10
"""Levels and descriptions of alerts (RFC 8446 section 6)."""


class Ends:
    """A stream of the gateway, and a client that makes its own records."""

    def __init__(self, house: House, near: socket.socket, far: socket.socket) -> None:
        self.stream = house.server().stream(near)
        self.near, self.far = near, far
        self.forger = Forger(self.stream, far, house.authority.certificate, NAME, house.folder)

    def received(self, size: int = 1 << 16) -> bytes:
        """Return what the stream has received."""
        try:
            return self.stream.recv(size)
        except BlockingIOError:
            return b""

    def gets(self, *records: bytes) -> bytes:
        """Send records, and return what the stream makes of them."""
        heard = b""
        for record in records:
            self.far.sendall(record)
            heard += self.received()
        return heard


@pytest.fixture
def ends(house: House) -> Iterator[Ends]:
    """Return both ends after the handshake."""
    with linked() as (near, far):
        yield Ends(house, near, far)


# -- new keys --------------------------------------------------------------------------------


@pytest.mark.parametrize("requested", [True, False])
def test_data_before_and_behind_new_keys_arrive(ends: Ends, requested: bool) -> None:
    forger = ends.forger
    said = forger.record(b"before ") + forger.key_update(requested=requested)
    assert ends.gets(said + forger.record(b"behind")) == b"before behind"


def test_new_keys_that_are_requested_are_taken(ends: Ends) -> None:
    assert ends.gets(ends.forger.key_update()) == b""
    assert ends.forger.receive() == 0, "nothing was requested"
    plain = ends.stream.send(b"by old keys") and ends.forger.receive()
    assert ends.gets(ends.forger.key_update(requested=True)) == b""
    ends.stream.send(b"by new keys")
    assert ends.forger.receive() == plain + KEY_UPDATE_SIZE
    assert ends.forger.hear() == b"by old keysby new keys"


def test_new_keys_are_taken_again_and_again_by_a_peer_that_reads(ends: Ends) -> None:
    for number in range(300):
        said = ends.forger.key_update(requested=True) + ends.forger.record(b"%d" % number)
        assert ends.gets(said) == b"%d" % number
        ends.stream.send(b"%d" % number)
        assert ends.forger.hear() == b"%d" % number


def test_new_keys_without_end_are_cut_off(ends: Ends) -> None:
    """Each costs ten times as much as a small record, and OpenSSL takes any number."""
    flood = [ends.forger.key_update() for _ in range(2 * WASTE // KEY_UPDATE_SIZE)]
    with pytest.raises(ConnectionAbortedError, match="records without data"):
        ends.gets(*flood)


def test_a_peer_is_not_read_far_ahead_after_records_without_data(ends: Ends) -> None:
    """What was received has to be decrypted at once, however long it takes."""
    ends.far.sendall(b"".join(ends.forger.key_update() for _ in range(2000)))
    with suppress(BlockingIOError, ConnectionAbortedError):
        ends.stream.recv(1 << 20)
    left = ends.near.recv(1 << 20, socket.MSG_PEEK)
    assert len(left) >= 2000 * KEY_UPDATE_SIZE - RECORD


@pytest.mark.parametrize("size", [16, 100, 1000, LARGEST])
def test_small_records_with_data_are_taken_for_ever(ends: Ends, size: int) -> None:
    """A PING alone has 14 bytes; readers may want less than a record at a time."""
    content, heard = b"x" * size, 0
    for _ in range(8 * WASTE // size + 10):
        ends.far.sendall(ends.forger.record(content))
        while data := ends.received(4096):
            heard += len(data)
    assert heard == (8 * WASTE // size + 10) * size


def test_a_request_is_answered_at_the_next_one_if_nothing_is_sent(ends: Ends) -> None:
    """OpenSSL answers before the next record that it sends, or the next request."""
    ends.forger.receive()
    assert ends.gets(ends.forger.key_update(requested=True)) == b""
    assert ends.forger.receive() == 0
    assert ends.gets(ends.forger.key_update(requested=True)) == b""
    assert ends.forger.receive() == KEY_UPDATE_SIZE


def filled(ends: Ends) -> None:
    """Send until the kernel takes nothing more."""
    ends.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    with suppress(BlockingIOError):
        while True:
            ends.stream.send(b"x" * 100)


def test_a_peer_that_requests_new_keys_and_takes_none_is_cut_off(ends: Ends) -> None:
    filled(ends)
    held = list[int]()

    def request() -> None:
        for _ in range(1000):
            ends.gets(ends.forger.key_update(requested=True), ends.forger.record(b"more"))
            held.append(ends.stream._outgoing.pending)

    with pytest.raises(ConnectionAbortedError):
        request()
    assert 100 < len(held) < 200
    assert max(held) <= ANSWERS


def test_new_keys_that_are_requested_at_once_are_cut_off_too(ends: Ends) -> None:
    """One read takes them all, so its answers are bounded by what it reads."""
    filled(ends)
    record = ends.forger.record
    said = [ends.forger.key_update(requested=True) + record(b"x") for _ in range(600)]
    ends.far.sendall(b"".join(said))
    with pytest.raises(ConnectionAbortedError):
        ends.received()
    assert ends.stream._outgoing.pending <= len(b"".join(said))


def test_an_answer_waits_behind_bytes_that_were_not_sent(ends: Ends) -> None:
    filled(ends)
    asked = ends.forger.key_update(requested=True) + ends.forger.key_update(requested=True)
    assert ends.gets(asked, ends.forger.record(b"data")) == b"data"
    assert ends.stream._unsent
    assert ends.stream._outgoing.pending, "the answer to the first; the second is answered later"
    drained(ends, b"by new keys")


def drained(ends: Ends, last: bytes) -> None:
    """Send something as soon as the peer reads, and check that it gets all in order."""
    heard = ends.forger.hear()
    rest = b"x" * 100 + last  # what was not taken is offered again
    while rest:
        with suppress(BlockingIOError):
            rest = rest[ends.stream.send(rest[:100]) :]
        heard += ends.forger.hear()
    assert heard.endswith(b"x" * 100 + last)
    assert set(heard.removesuffix(last)) == set(b"x")


def test_bytes_that_the_socket_did_not_take_are_sent_once(ends: Ends) -> None:
    ends.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    said = rest = b"".join(b"%06d" % number for number in range(20_000))
    heard = b""
    refused = 0
    while rest:
        try:
            rest = rest[ends.stream.send(rest) :]
        except BlockingIOError:
            refused += 1
            assert refused < 1000
            heard += ends.forger.hear()
    assert heard + ends.forger.hear() == said
    assert refused > 3


# -- records ---------------------------------------------------------------------------------


def test_empty_records_are_no_end(ends: Ends) -> None:
    said = ends.forger.record(b"") + ends.forger.record(b"") + ends.forger.record(b"data")
    assert ends.gets(said) == b"data"
    assert ends.gets(ends.forger.record(b"")) == b""
    assert ends.gets(ends.forger.record(b"more")) == b"more"


def test_many_empty_records_in_a_row_are_an_error(ends: Ends) -> None:
    said = [ends.forger.record(b"") for _ in range(100)]
    with pytest.raises(ssl.SSLError, match="RECORD_TOO_SMALL"):
        ends.gets(*said)


def test_padding_is_no_data(ends: Ends) -> None:
    assert ends.gets(ends.forger.record(b"data", padding=1000)) == b"data"
    assert ends.gets(ends.forger.record(b"", padding=LARGEST)) == b""


def test_the_largest_record_arrives(ends: Ends) -> None:
    said = b"x" * LARGEST
    assert ends.gets(ends.forger.record(said)) == said


def test_a_record_that_arrives_byte_by_byte_arrives(ends: Ends) -> None:
    record = ends.forger.record(b"data")
    assert ends.gets(*(bytes([byte]) for byte in record[:-1])) == b""
    assert ends.gets(record[-1:]) == b"data"


def bad(ends: Ends) -> dict[str, bytes]:
    """Return records and messages that nobody may send."""
    forger = ends.forger
    whole = forger.record(b"data")
    return {
        "a bad tag": whole[:-1] + bytes([whole[-1] ^ 1]),
        "another length": whole[:4] + bytes([whole[4] - 1]) + whole[5:],
        "a record too large": b"\x17\x03\x03" + (LARGEST + 257).to_bytes(2, "big") + bytes(20),
        "plaintext": b"\x17\x03\x03\x00\x04data",
        "another protocol": b"GET / HTTP/1.1\r\n\r\n",
        "a plain alert": bytes([ALERT, 3, 3, 0, 2, FATAL, UNEXPECTED]),
    }


BAD = [
    "a bad tag",
    "another length",
    "a record too large",
    "plaintext",
    "another protocol",
    "a plain alert",
]


@pytest.mark.parametrize("what", BAD)
def test_a_forged_record_ends_the_stream_with_an_error(ends: Ends, what: str) -> None:
    with pytest.raises(ssl.SSLError):
        ends.gets(bad(ends)[what])
    with suppress(OSError):
        assert ends.gets(ends.forger.record(b"more")) == b""


@pytest.mark.parametrize("size", [LARGEST + 1, LARGEST + 200])
def test_more_plaintext_than_a_record_may_have_is_an_error(ends: Ends, size: int) -> None:
    with pytest.raises(ssl.SSLError, match="LENGTH_TOO_LONG"):
        ends.gets(ends.forger.record(b"x" * size))


def test_a_record_that_is_sent_twice_is_an_error(ends: Ends) -> None:
    record = ends.forger.record(b"data")
    assert ends.gets(record) == b"data"
    with pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):
        ends.gets(record)


@pytest.mark.parametrize("kind", [0, 20, 24, 255])
def test_content_of_an_unknown_type_is_an_error(ends: Ends, kind: int) -> None:
    with pytest.raises(ssl.SSLError):
        ends.gets(ends.forger.record(b"data", kind))


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(message(0), id="HelloRequest"),
        pytest.param(message(1, bytes(40)), id="ClientHello"),
        pytest.param(message(NEW_SESSION_TICKET, bytes(20)), id="NewSessionTicket"),
        pytest.param(message(CERTIFICATE_REQUEST, bytes(3)), id="CertificateRequest"),
        pytest.param(message(FINISHED, bytes(48)), id="Finished"),
        pytest.param(message(99), id="unknown"),
        pytest.param(message(24, b"\x02"), id="KeyUpdate of an unknown kind"),
        pytest.param(message(24, b"\x00\x00"), id="KeyUpdate too long"),
        pytest.param(message(24, b"\x00") * 2, id="two KeyUpdates in a record"),
        pytest.param(message(99, bytes(1000)) * 16, id="long"),
    ],
)
def test_other_messages_of_a_handshake_are_errors(ends: Ends, said: bytes) -> None:
    with pytest.raises(ssl.SSLError):
        ends.gets(ends.forger.record(said, HANDSHAKE))
    with pytest.raises(ssl.SSLError):
        ends.forger.hear()


def test_a_message_that_never_ends_takes_no_memory(ends: Ends) -> None:
    """OpenSSL refuses it by its head."""
    with pytest.raises(ssl.SSLError):
        ends.gets(ends.forger.record(b"\x18\xff\xff\xff", HANDSHAKE))


def test_a_forged_record_behind_data_ends_the_stream(ends: Ends) -> None:
    said = ends.forger.record(b"data") + bad(ends)["a bad tag"]
    with pytest.raises(ssl.SSLError):
        ends.gets(said)


# -- the end ---------------------------------------------------------------------------------


def test_a_notice_of_the_end_is_the_end(ends: Ends) -> None:
    said = ends.forger.record(b"last")
    said += ends.forger.record(bytes([WARNING, CLOSE_NOTIFY]), ALERT)
    ends.far.sendall(said + ends.forger.record(b"ignored"))
    assert ends.stream.recv(100) == b"last"
    assert ends.stream.buffered, "no event tells of the end"
    assert ends.stream.recv(100) == b""
    assert ends.stream.recv(100) == b""
    ends.stream.send(b"still heard")
    assert ends.forger.hear() == b"still heard"


def test_an_end_without_notice_is_the_end(ends: Ends) -> None:
    ends.far.sendall(ends.forger.record(b"last") + ends.forger.record(b"cut off")[:-1])
    ends.far.shutdown(socket.SHUT_WR)
    assert ends.stream.recv(100) == b"last"
    assert ends.stream.recv(100) == b""


def test_the_peer_is_told_the_end_behind_bytes_that_were_not_sent(ends: Ends) -> None:
    filled(ends)
    assert ends.stream._unsent
    assert ends.forger.receive()
    ends.stream.shutdown(socket.SHUT_WR)
    assert set(ends.forger.hear()) == set(b"x")
    assert ends.forger._tls.read() == b"", "the notice of the end, not more to come"
