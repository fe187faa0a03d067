"""Decodes and encodes headers of the PROXY protocol, by which a proxy passes on client addresses.

Theory of operation
===================
A proxy that does not speak the protocol of its clients (a load balancer, HAProxy) opens a
connection of its own for each client, so all clients seem to have the proxy's address. Therefore
it sends a header first, once and before anything else, TLS included: the address of the client,
and the address that the client connected to. The header has no response.

- **Version 1** is a line: `PROXY TCP4 10.0.0.1 10.0.0.2 40000 6650\\r\\n`. `UNKNOWN` in place of
  `TCP4` or `TCP6` says nothing about the client.
- **Version 2** is binary: a signature of 12 bytes, one byte of version and command, one of address
  family and transport, a length in two bytes; behind it as many bytes, which are the addresses and
  then TLVs (type, length in two bytes, content). The command `LOCAL` says that the proxy itself
  is the client, for example to look whether the server is alive.

The bytes behind a header belong to another parser, so the parser of the header must not consume
one of them. `size_of` tells the header's length from its first bytes. While it cannot, all bytes
so far belong to the header: its line has not ended, or its length has not arrived. So a parser may
always consume the bytes that it has examined, up to that size, and wait for more.

Source: "The PROXY protocol, versions 1 & 2", W. Tarreau, HAProxy Technologies, 2020/03/05
(`doc/proxy-protocol.txt` of HAProxy); the sections are those of that document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.address import LAST_PORT, Address

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
"""The first bytes of version 2 (section 2.2), with which no other protocol begins."""

LINE = b"PROXY "
"""The first bytes of version 1 (section 2.1)."""

LONGEST_LINE = 107
"""Bytes of the longest line of version 1, with its end (section 2.1)."""

LONGEST_REST = 2048
"""Bytes of the longest part of version 2 behind its first 16. The two longest addresses take 216,
and the TLVs of proxies some hundred: a name has at most 255, an id 128 (section 2.2)."""

LONGEST = 16 + LONGEST_REST
"""Bytes of the longest header."""

LOCAL, PROXY = 0x20, 0x21
"""The byte of version and command: version 2 with `LOCAL` or `PROXY` (section 2.2)."""

AUTHORITY = 0x02
"""Type of a TLV: the host that the client asked for, by its TLS server name (section 2.2.2)."""

CHECKSUM = 0x03
"""Type of a TLV: a CRC32C of the header (section 2.2.3)."""

NOTHING = 0x04
"""Type of a TLV that is only padding (section 2.2.4)."""

SSL = 0x20
"""Type of a TLV: the client's TLS session (section 2.2.6)."""

SSL_VERSION, SSL_COMMON_NAME = 0x21, 0x22
"""Types of TLVs inside the TLV of type SSL (section 2.2.6)."""

PRINCIPAL = 0xE0
"""Type of a TLV: the client's principal as the gateway verified it. The first of the types for
private use (section 2.2.8)."""

_WITH_TLS, _CERTIFICATE_NOW, _CERTIFICATE_BEFORE = 0x01, 0x02, 0x04  # section 2.2.6

_FIXED = Struct("!12sBBH")
_VALUE = Struct("!BH")
_VERIFIED = Struct("!BI")
_CRC = Struct("!I")

_TCP4, _TCP6 = 0x11, 0x21

_ADDRESSES = {
    0x00: 0,
    _TCP4: 12,
    0x12: 12,
    _TCP6: 36,
    0x22: 36,
    0x31: 216,
    0x32: 216,
}
"""Bytes of both addresses by family and transport; all others are invalid (section 2.2)."""

_PORTS = {_TCP4: Struct("!4s4sHH"), _TCP6: Struct("!16s16sHH")}

_PORT = re.compile(r"0|[1-9][0-9]{0,4}", re.ASCII)

_UNSPECIFIED = LINE + b"UNKNOWN"


class HeaderError(PeerError):
    """The bytes are no header of the PROXY protocol, or a malformed header."""


class Value(NamedTuple):
    """A TLV of version 2. `type`: AUTHORITY, SSL, ..."""

    type: int
    content: bytes


class Header(NamedTuple):
    """A decoded header. `source`: the client's address. `destination`: the address that the client
    connected to. If both are None, the addresses of the connection itself apply. `values`: the
    TLVs, without checksum and padding."""

    source: Address | None = None
    destination: Address | None = None
    values: tuple[Value, ...] = ()


_SAYS_NOTHING = Header()


# -- reading ---------------------------------------------------------------------------------


def size_of(head: bytes | bytearray) -> int:
    """Return the size in bytes of the PROXY header at the beginning of a connection. `head`: the
    connection's first bytes. Return 0 if these are too few to tell; then all of them belong to the
    header. Raises `HeaderError` if they begin no header, or one that is too long."""
    if SIGNATURE.startswith(head[: len(SIGNATURE)]):
        return _size_of_binary(head)
    if LINE.startswith(head[: len(LINE)]):
        return _size_of_line(head)
    raise HeaderError("the connection does not begin with a PROXY header")


def _size_of_binary(head: bytes | bytearray) -> int:
    if len(head) < _FIXED.size:
        return 0
    rest = int(_FIXED.unpack_from(head)[3])
    if rest > LONGEST_REST:
        raise HeaderError(f"a PROXY header of {_FIXED.size + rest} bytes; at most {LONGEST}")
    return _FIXED.size + rest


def _size_of_line(head: bytes | bytearray) -> int:
    end = head.find(b"\n", 0, LONGEST_LINE)
    if end < 0 and len(head) >= LONGEST_LINE:
        raise HeaderError(f"the line of a PROXY header has no end within {LONGEST_LINE} bytes")
    return end + 1


def read(header: bytes) -> Header:
    """Decode a whole header. Raises `HeaderError` if it is malformed or truncated."""
    if not header or size_of(header) != len(header):
        raise HeaderError("a PROXY header is incomplete")
    if header.startswith(SIGNATURE):
        return _read_binary(header)
    return _read_line(header)


def _read_line(header: bytes) -> Header:
    if not header.endswith(b"\r\n"):
        raise HeaderError("the line of a PROXY header does not end by CR LF")
    line = header[:-2]
    # What stands behind UNKNOWN is to be ignored (section 2.1).
    if line == _UNSPECIFIED or line.startswith(_UNSPECIFIED + b" "):
        return _SAYS_NOTHING
    words = line.decode("ascii", "replace").split(" ")
    if len(words) != 6 or words[0] != "PROXY" or words[1] not in ("TCP4", "TCP6"):
        raise HeaderError("the line of a PROXY header is not understood")
    parse = IPv4Address if words[1] == "TCP4" else IPv6Address
    try:
        hosts = [parse(word) for word in words[2:4]]
    except AddressValueError:
        raise HeaderError("the line of a PROXY header has a wrong address") from None
    if b"%" in line:  # a zone, which has a meaning on the proxy's machine only
        raise HeaderError("the line of a PROXY header has a wrong address")
    ports = [int(word) if _PORT.fullmatch(word) else LAST_PORT + 1 for word in words[4:]]
    if max(ports) > LAST_PORT:
        raise HeaderError("the line of a PROXY header has a wrong port")
    return Header(_address(hosts[0], ports[0]), _address(hosts[1], ports[1]))


def _read_binary(header: bytes) -> Header:
    _, command, family, rest = _FIXED.unpack_from(header)
    if command == LOCAL:  # the family is to be ignored, and with it all that follows
        return _SAYS_NOTHING
    if command != PROXY:
        raise HeaderError(f"a PROXY header of unknown version or command {command:#04x}")
    length = _ADDRESSES.get(family)
    if length is None:
        raise HeaderError(f"a PROXY header of unknown address family {family:#04x}")
    if rest < length:
        raise HeaderError("the addresses of a PROXY header are incomplete")
    if not length:
        return _SAYS_NOTHING
    values = tuple(_values(header, _FIXED.size + length))
    if family not in _PORTS:  # not the addresses of a TCP connection, which this is
        return Header(values=values)
    source, destination, *ports = _PORTS[family].unpack_from(header, _FIXED.size)
    return Header(
        _address(ip_address(source), ports[0]), _address(ip_address(destination), ports[1]), values
    )


def _address(host: IPv4Address | IPv6Address, port: int) -> Address:
    """Return an address; an IPv4-mapped one (RFC 4291 section 2.5.5.2), which proxies write beside
    an IPv6 address, becomes IPv4, because rules name IPv4 networks."""
    if isinstance(host, IPv6Address) and host.ipv4_mapped is not None:
        host = host.ipv4_mapped
    return Address(str(host), port)


def _values(header: bytes, start: int) -> Iterator[Value]:
    checked = False
    while start < len(header):
        begin = start + _VALUE.size
        if begin > len(header):
            raise HeaderError("a value of a PROXY header is incomplete")
        type, length = _VALUE.unpack_from(header, start)
        start = begin + length
        if start > len(header):
            raise HeaderError("a value of a PROXY header is incomplete")
        if type == CHECKSUM:
            if checked or not _is_intact(header, begin, length):
                raise HeaderError("a PROXY header does not fit its checksum")
            checked = True
        elif type != NOTHING:
            yield Value(type, header[begin:start])


def _is_intact(header: bytes, at: int, length: int) -> bool:
    """Return whether the checksum at an offset is that of the header with zeros in its place."""
    if length != _CRC.size:
        return False
    from crc32c import crc32c  # which takes a megabyte, where no proxy is trusted; see `load`

    zeros = header[:at] + bytes(_CRC.size) + header[at + _CRC.size :]
    return bool(_CRC.unpack_from(header, at)[0] == crc32c(zeros))


def load() -> None:
    """Import the module that computes checksums, before the first connection: an import later would
    fail if a connection has taken the process's last file descriptor."""
    import crc32c  # noqa: F401


# -- making ----------------------------------------------------------------------------------


class Tls(NamedTuple):
    """The TLS session of a client. `version`: such as `TLSv1.3`. `certificate`: the client has
    shown a certificate, and it was verified. `now`: the certificate was shown on this connection,
    not on an earlier connection whose session was resumed. `common_name`: the name in the
    certificate."""

    version: str
    certificate: bool = False
    now: bool = False
    common_name: str | None = None

    @property
    def value(self) -> Value:
        """Return the TLV of a PROXY header (section 2.2.6 of its specification) that describes this
        TLS session."""
        flags = _WITH_TLS
        if self.certificate:
            flags |= _CERTIFICATE_BEFORE | (_CERTIFICATE_NOW if self.now else 0)
        inside = [Value(SSL_VERSION, self.version.encode("ascii"))]
        if self.common_name is not None:
            inside.append(Value(SSL_COMMON_NAME, self.common_name.encode()))
        # Zero: verified.
        content = _VERIFIED.pack(flags, not self.certificate) + b"".join(map(_written, inside))
        return Value(SSL, content)


LOCAL_HEADER = _FIXED.pack(SIGNATURE, LOCAL, 0, 0)
"""The header of a connection of the gateway's own, such as a health check: it names no client."""


def made(header: Header) -> bytes:
    """Encode a header in version 2; without addresses this is `LOCAL_HEADER`. A TLV that would make
    the header longer than `LONGEST` is left out as a whole, because a truncated name would be
    another name."""
    if header.source is None or header.destination is None:
        return LOCAL_HEADER
    family, addresses = _packed(header.source, header.destination)
    rest = addresses
    for value in header.values:
        if len(rest) + _VALUE.size + len(value.content) <= LONGEST_REST:
            rest += _written(value)
    return _FIXED.pack(SIGNATURE, PROXY, family, len(rest)) + rest


def _packed(source: Address, destination: Address) -> tuple[int, bytes]:
    """Return the family and both encoded addresses; those of different families both as IPv6."""
    hosts = [ip_address(address.host.partition("%")[0]) for address in (source, destination)]
    ports = source.port, destination.port
    if all(isinstance(host, IPv4Address) for host in hosts):
        return _TCP4, _PORTS[_TCP4].pack(hosts[0].packed, hosts[1].packed, *ports)
    packed = [
        b"\x00" * 10 + b"\xff\xff" + host.packed if isinstance(host, IPv4Address) else host.packed
        for host in hosts
    ]
    return _TCP6, _PORTS[_TCP6].pack(*packed, *ports)


def _written(value: Value) -> bytes:
    return _VALUE.pack(value.type, len(value.content)) + value.content
