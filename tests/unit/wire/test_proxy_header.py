"""Headers of the PROXY protocol: read as proxies write them, refused if they are anything else."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address
from struct import pack
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.wire.address import Address
from gateway.wire.proxy_header import (
    AUTHORITY,
    CHECKSUM,
    LOCAL_HEADER,
    LONGEST,
    LONGEST_LINE,
    LONGEST_REST,
    NOTHING,
    PRINCIPAL,
    SIGNATURE,
    SSL,
    Header,
    HeaderError,
    Tls,
    Value,
    made,
    read,
    size_of,
)

LINE = b"PROXY TCP4 10.0.0.1 10.0.0.2 40000 6650\r\n"
CLIENT, REACHED = Address("10.0.0.1", 40000), Address("10.0.0.2", 6650)
ADDRESSES = pack("!4B4BHH", 10, 0, 0, 1, 10, 0, 0, 2, 40000, 6650)
BEHIND = b"\x00\x00\x00\x10whatever the client says"


def binary(rest: bytes, family: int = 0x11, command: int = 0x21, size: int | None = None) -> bytes:
    """Return a header of version 2. `size`: what it says of its length."""
    return SIGNATURE + pack("!BBH", command, family, len(rest) if size is None else size) + rest


def value(type: int, content: bytes) -> bytes:
    return pack("!BH", type, len(content)) + content


def with_checksum(rest: bytes, *, off_by: int = 0) -> bytes:
    """Return a header of version 2 with a checksum behind `rest`."""
    whole = binary(rest + value(CHECKSUM, bytes(4)))
    return whole[:-4] + pack("!I", (crc32c(whole) + off_by) % 2**32)


def taken(stream: bytes) -> Header:
    """Read the header at the begin of a stream as a server does: its size, then it alone."""
    size = size_of(stream)
    assert size
    return read(stream[:size])


# -- version 1 -------------------------------------------------------------------------------


def test_a_line_is_read() -> None:
    assert taken(LINE + BEHIND) == Header(CLIENT, REACHED)


def test_a_line_of_ipv6_is_read() -> None:
    line = b"PROXY TCP6 2001:DB8:0::1 ::1 1 65535\r\n"
    assert taken(line) == Header(Address("2001:db8::1", 1), Address("::1", 65535))


def test_a_line_of_unknown_addresses_leaves_them_to_the_connection() -> None:
    full = b":".join([b"ffff"] * 8)
    longest = b"PROXY UNKNOWN %s %s 65535 65535\r\n" % (full, full)
    assert len(longest) == LONGEST_LINE
    for line in (b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN \x00any bytes\r\n", longest):
        assert size_of(line + BEHIND) == len(line)
        assert taken(line + BEHIND) == Header()


def test_the_longest_line_of_each_family_is_read() -> None:
    four = b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"
    assert len(four) == 56  # as the specification counts
    assert taken(four).source == Address("255.255.255.255", 65535)
    full = b":".join([b"ffff"] * 8)
    six = b"PROXY TCP6 %s %s 65535 65535\r\n" % (full, full)
    assert len(six) == 104
    assert taken(six).source == Address(full.decode(), 65535)


def test_a_line_without_end_is_refused_at_the_longest_length() -> None:
    endless = b"PROXY UNKNOWN " + b"x" * LONGEST_LINE
    assert size_of(endless[: LONGEST_LINE - 1]) == 0
    with pytest.raises(HeaderError, match="no end within 107 bytes"):
        size_of(endless[:LONGEST_LINE])


def test_an_ipv4_address_in_the_form_of_ipv6_is_of_its_client() -> None:
    line = b"PROXY TCP6 ::ffff:10.0.0.1 2001:db8::1 40000 6650\r\n"
    assert taken(line).source == CLIENT


@pytest.mark.parametrize(
    "line",
    [
        b"PROXY \r\n",
        b"PROXY TCP4\r\n",
        b"PROXY TCP5 10.0.0.1 10.0.0.2 40000 6650\r\n",
        b"PROXY UNKNOWNS\r\n",
        b"PROXY tcp4 10.0.0.1 10.0.0.2 40000 6650\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 40000 6650\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 40000 6650 \r\n",
        b"PROXY TCP4  10.0.0.1 10.0.0.2 40000 6650\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 40000\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 40000 65536\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 -1 6650\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 040000 6650\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 4_0 6650\r\n",
        "PROXY TCP4 10.0.0.1 10.0.0.2 ٤ 6650\r\n".encode(),
        b"PROXY TCP4 10.0.0.01 10.0.0.2 40000 6650\r\n",
        b"PROXY TCP4 10.0.0.256 10.0.0.2 40000 6650\r\n",
        b"PROXY TCP4 ::1 ::1 40000 6650\r\n",
        b"PROXY TCP6 10.0.0.1 10.0.0.2 40000 6650\r\n",
        b"PROXY TCP6 fe80::1%eth0 ::1 40000 6650\r\n",
        b"PROXY TCP4 client.example 10.0.0.2 40000 6650\r\n",
    ],
)
def test_a_wrong_line_is_refused(line: bytes) -> None:
    with pytest.raises(HeaderError):
        taken(line)


# -- version 2 -------------------------------------------------------------------------------


def test_addresses_of_ipv4_are_read() -> None:
    assert taken(binary(ADDRESSES) + BEHIND) == Header(CLIENT, REACHED)


def test_addresses_of_ipv6_are_read() -> None:
    packed = bytes([0x20, 1, 0xD, 0xB8, *[0] * 11, 1]) + bytes(15) + b"\x01" + pack("!HH", 1, 2)
    assert taken(binary(packed, 0x21)) == Header(Address("2001:db8::1", 1), Address("::1", 2))


def test_an_ipv4_address_among_those_of_ipv6_is_of_its_client() -> None:
    mapped = b"\x00" * 10 + b"\xff\xff" + bytes([10, 0, 0, 1])
    packed = mapped + bytes(15) + b"\x01" + pack("!HH", 40000, 2)
    assert taken(binary(packed, 0x21)).source == CLIENT


@pytest.mark.parametrize(
    ("family", "length"), [(0x00, 0), (0x12, 12), (0x22, 36), (0x31, 216), (0x32, 216)]
)
def test_addresses_of_no_tcp_connection_leave_them_to_the_connection(
    family: int, length: int
) -> None:
    header = taken(binary(b"x" * length, family))
    assert (header.source, header.destination) == (None, None)


@pytest.mark.parametrize("family", [0x00, 0x11, 0x31, 0xFF])
def test_a_local_connection_leaves_its_addresses_as_they_are(family: int) -> None:
    for rest in (b"", ADDRESSES, b"anything" * 9):
        assert taken(binary(rest, family, 0x20) + BEHIND) == Header()


@pytest.mark.parametrize("command", [0x00, 0x01, 0x10, 0x11, 0x22, 0x2F, 0x31, 0xFF])
def test_other_versions_and_commands_are_refused(command: int) -> None:
    with pytest.raises(HeaderError, match="version or command"):
        taken(binary(ADDRESSES, command=command))


@pytest.mark.parametrize("family", [0x01, 0x02, 0x10, 0x13, 0x20, 0x23, 0x30, 0x33, 0x41, 0xFF])
def test_other_families_are_refused(family: int) -> None:
    with pytest.raises(HeaderError, match="address family"):
        taken(binary(b"x" * 216, family))


@pytest.mark.parametrize(("family", "length"), [(0x11, 12), (0x21, 36), (0x31, 216)])
def test_addresses_that_are_cut_are_refused(family: int, length: int) -> None:
    with pytest.raises(HeaderError, match="addresses"):
        taken(binary(b"x" * (length - 1), family))


def test_values_are_read() -> None:
    rest = ADDRESSES + value(AUTHORITY, b"a.example") + value(NOTHING, b"filler") + value(0xEF, b"")
    values = Value(AUTHORITY, b"a.example"), Value(0xEF, b"")
    assert taken(binary(rest)) == Header(CLIENT, REACHED, values)


@pytest.mark.parametrize("cut", range(1, 6))
def test_values_that_are_cut_are_refused(cut: int) -> None:
    rest = (ADDRESSES + value(AUTHORITY, b"abc"))[:-cut]
    with pytest.raises(HeaderError, match="value"):
        taken(binary(rest))


def test_a_header_that_fits_its_checksum_is_read() -> None:
    assert taken(with_checksum(ADDRESSES)) == Header(CLIENT, REACHED)


def test_a_known_checksum_is_right() -> None:
    """The polynomial is Castagnoli's: CRC-32C of "123456789" (RFC 3720, B.4 has more)."""
    assert crc32c(b"123456789") == 0xE3069283


def test_a_header_that_does_not_fit_its_checksum_is_refused() -> None:
    wrong = [
        with_checksum(ADDRESSES, off_by=1),
        binary(ADDRESSES + value(CHECKSUM, bytes(3))),
        binary(ADDRESSES + value(CHECKSUM, bytes(5))),
        with_checksum(ADDRESSES + value(CHECKSUM, bytes(4))),
    ]
    for header in wrong:
        with pytest.raises(HeaderError, match="checksum"):
            taken(header)


def test_a_damaged_header_does_not_fit_its_checksum() -> None:
    intact = with_checksum(ADDRESSES + value(AUTHORITY, b"a.example"))
    assert intact[40] == CHECKSUM
    for at in (*range(16, 40), *range(43, 47)):  # type and length of the checksum are between
        for bit in range(8):
            damaged = bytearray(intact)
            damaged[at] ^= 1 << bit
            with pytest.raises(HeaderError):
                taken(bytes(damaged))


def test_a_header_beyond_the_bound_is_refused_before_it_has_come() -> None:
    assert size_of(binary(b"", size=LONGEST_REST)) == LONGEST
    with pytest.raises(HeaderError, match="2065 bytes; at most 2064"):
        size_of(binary(b"", size=LONGEST_REST + 1))


# -- both ------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [LINE, b"PROXY UNKNOWN\r\n"])
def test_the_size_of_a_line_is_known_once_it_has_ended(header: bytes) -> None:
    for cut in range(len(header)):
        assert size_of(header[:cut]) == 0
    assert size_of(header) == len(header)


def test_the_size_of_a_binary_header_is_known_from_its_first_part() -> None:
    header = with_checksum(ADDRESSES)
    for cut in range(16):
        assert size_of(header[:cut]) == 0
    for cut in range(16, len(header) + 1):
        assert size_of(header[:cut]) == len(header)


def test_a_cut_header_is_never_read() -> None:
    for header in (LINE, with_checksum(ADDRESSES + value(AUTHORITY, b"a.example"))):
        for cut in range(len(header)):
            with pytest.raises(HeaderError):
                read(header[:cut])


@pytest.mark.parametrize(
    "stream",
    [b"\x00", BEHIND, b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"PROXZ", b"proxy ", b"\r\r"],
)
def test_what_begins_otherwise_is_no_header(stream: bytes) -> None:
    with pytest.raises(HeaderError, match="does not begin"):
        size_of(stream)


@given(st.binary(max_size=300), st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", SIGNATURE]))
@example(b"\n", b"PROXY ")
def test_any_bytes_are_a_header_or_refused(data: bytes, begin: bytes) -> None:
    stream = begin + data
    with suppress(HeaderError):
        size = size_of(bytearray(stream))
        if 0 < size <= len(stream):
            assert isinstance(read(stream[:size]), Header)


# -- making ----------------------------------------------------------------------------------

PORTS = st.integers(0, 65535)


def _is_of_ipv6(host: str) -> bool:
    return IPv6Address(host).ipv4_mapped is None


FOUR = st.builds(Address, st.ip_addresses(v=4).map(str), PORTS, st.just(value=False))
SIX = st.builds(
    Address,
    st.ip_addresses(v=6).map(str).filter(_is_of_ipv6),
    PORTS,
    st.just(value=False),
)
TYPES = st.integers(0, 255).filter(lambda it: it not in (CHECKSUM, NOTHING))
VALUES = st.lists(st.builds(Value, TYPES, st.binary(max_size=100)), max_size=5).map(tuple)


@given(FOUR | SIX, FOUR | SIX, VALUES, st.binary())
def test_a_header_is_read_as_it_was_made(
    source: Address, destination: Address, values: Any, behind: bytes
) -> None:
    header = Header(source, destination, values)
    assert taken(made(header) + behind) == header


def test_a_header_without_addresses_is_that_of_a_local_connection() -> None:
    assert made(Header()) == LOCAL_HEADER
    assert taken(LOCAL_HEADER + BEHIND) == Header()


def test_the_zone_of_an_address_is_left_out() -> None:
    header = made(Header(Address("fe80::1%eth0", 1), Address("::1", 2)))
    assert taken(header).source == Address("fe80::1", 1)


def test_a_value_for_which_there_is_no_room_is_left_out() -> None:
    room = LONGEST_REST - len(ADDRESSES) - 3
    fits, too_long = Value(PRINCIPAL, b"x" * room), Value(PRINCIPAL, b"x" * (room + 1))
    longest = made(Header(CLIENT, REACHED, (fits, Value(0xE1, b""))))
    assert len(longest) == LONGEST
    assert taken(longest).values == (fits,)
    after = Value(0xE1, b"y")
    assert taken(made(Header(CLIENT, REACHED, (too_long, after)))).values == (after,)


@pytest.mark.parametrize(
    ("tls", "flags", "verify"),
    [
        (Tls("TLSv1.3"), 0b001, 1),
        (Tls("TLSv1.3", certificate=True), 0b101, 0),
        (Tls("TLSv1.3", certificate=True, now=True), 0b111, 0),
    ],
)
def test_the_client_certificate_shows_in_the_value_of_tls(
    tls: Tls, flags: int, verify: int
) -> None:
    assert tls.value == Value(SSL, pack("!BI", flags, verify) + value(0x21, b"TLSv1.3"))


def test_the_common_name_is_a_value_inside() -> None:
    content = Tls("TLSv1.2", certificate=True, now=True, common_name="jürgen").value.content
    assert content[5:] == value(0x21, b"TLSv1.2") + value(0x22, "jürgen".encode())
