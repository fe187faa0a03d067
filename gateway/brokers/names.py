"""Names that clients get in place of broker addresses.

A client sends a name back as `<name>:<port>`, in the same case, and never resolves it
(client-behaviour.md section 1). Java clients parse the name as part of a URI, and find no host if
the last label begins with a digit or a label contains an underscore. So all names here consist of
the characters `[a-z0-9-]`, and their last label begins with a letter.

There are two kinds of names. Sealed names can be made only with the gateway's key, so the gateway
needs no table of valid names. Readable names are made from a template.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from gateway.errors import ConfigurationError
from gateway.wire.address import Address, parse_address
from gateway.wire.contract import Denial, Refusal

if TYPE_CHECKING:  # cryptography is loaded only where keys are made
    from gateway.brokers.seal import SealKey

LONGEST_NAME = 253
"""Characters of a DNS name (RFC 1035 section 2.3.4), the shape that clients expect."""

LONGEST_LABEL = 63

UNKNOWN_NAME = Denial(Refusal.TARGET, "unknown broker name")
"""The same text for every reason: a client that guesses names learns nothing from it."""

PORT = 6650
"""The port of all advertised addresses. Clients neither resolve such a name nor connect to it, so
any port serves, but it must always be the same: the text is the key of their connection pools."""

_CACHED_SEALS = 4096
"""Sealing costs 10 µs, a cached seal 0.2. Brokers times live generations are far fewer than this,
and an entry takes about 400 bytes."""


class Names(Protocol):
    """Translates broker addresses to names, and names to broker addresses."""

    def advertise(self, broker: Address, generation: int = 0) -> Address | Denial:
        """Return the address that clients get in place of a broker's address; a denial if no name
        can be made for the broker.

        For one broker and one `generation` (0 to 2**32 - 1) this is always the same address; each
        generation has another one.
        """
        ...

    def open(self, name: str) -> Address | Denial:
        """Return the broker for which `name` or `name:port` stands; a denial if the name is
        unknown."""
        ...


# -- sealed ----------------------------------------------------------------------------------

_SUFFIX = "gw"
"""The last label: Java needs one that begins with a letter."""

# All sealed labels but the last are full, so each seal has exactly one spelling.
_SEALED = re.compile(
    rf"((?:[0-9a-v]{{{LONGEST_LABEL}}}\.)*[0-9a-v]{{1,{LONGEST_LABEL}}})\.{_SUFFIX}(?::[0-9]{{1,5}})?",
    re.ASCII,
)
_LONGEST_NAME_AND_PORT = LONGEST_NAME + len(":65535")

_HEAD = struct.Struct("!BHI")
"""Length of the cluster's name, port, generation. The cluster's name and the host follow."""

_TLS = 0x80
"""A bit set in the length if the broker speaks TLS."""

_LONGEST_CLUSTER = _TLS - 1


class SealedNames:
    """Names that are sealed with the first of some keys, and opened with any of them.

    To rotate keys, add the new key after the first one. Move it to the front once all replicas have
    it. Remove the old key once all clients have repeated their lookups. Raises `ConfigurationError`
    if there is no key, or if the cluster's name has more than 127 bytes.
    """

    def __init__(self, cluster: str, keys: Sequence[SealKey]) -> None:
        self._cluster = cluster.encode()
        self._keys = tuple(keys)
        if not self._keys:
            raise ConfigurationError("Sealed broker names need at least one key")
        if not 1 <= len(self._cluster) <= _LONGEST_CLUSTER:
            raise ConfigurationError(
                f"The cluster name {cluster!r} must have 1 to {_LONGEST_CLUSTER} bytes"
            )
        self._cached_seal = lru_cache(_CACHED_SEALS)(self._seal)

    def advertise(self, broker: Address, generation: int = 0) -> Address | Denial:
        return self._cached_seal(broker, generation)

    def _seal(self, broker: Address, generation: int) -> Address | Denial:
        length = len(self._cluster) | (_TLS if broker.tls else 0)
        head = _HEAD.pack(length, broker.port, generation)
        name = _encode(self._keys[0].seal(head + self._cluster + broker.host.encode()))
        if len(name) > LONGEST_NAME:
            return Denial(
                Refusal.UNSUPPORTED,
                "the names of the cluster and the broker are together too long for a sealed name",
            )
        return Address(name, PORT)

    def open(self, name: str) -> Address | Denial:
        sealed = _decode(name)
        if sealed is None:
            return UNKNOWN_NAME
        for key in self._keys:
            plaintext = key.open(sealed)
            if plaintext is not None:
                return self._read(plaintext)
        return UNKNOWN_NAME

    def _read(self, plaintext: bytes) -> Address | Denial:
        length, port, _generation = _HEAD.unpack_from(plaintext)
        cluster_end = _HEAD.size + (length & ~_TLS)
        if plaintext[_HEAD.size : cluster_end] != self._cluster:
            return UNKNOWN_NAME
        return Address(plaintext[cluster_end:].decode(), port, tls=bool(length & _TLS))


class ChainedNames:
    """Names for a gateway in front of another gateway, whose sealed names are told to clients
    unchanged.

    The other gateway's names reveal nothing, and would soon be too long if they were sealed again.
    This gateway seals all other addresses, and the addresses of aliases. A sealed name that this
    gateway cannot open is taken for the address of the other gateway.
    """

    def __init__(self, own: SealedNames) -> None:
        self._own = own

    def advertise(self, broker: Address, generation: int = 0) -> Address | Denial:
        if not generation and broker.port == PORT and _SEALED.fullmatch(broker.host):
            return broker
        return self._own.advertise(broker, generation)

    def open(self, name: str) -> Address | Denial:
        broker = self._own.open(name)
        if isinstance(broker, Address) or len(name) > _LONGEST_NAME_AND_PORT:
            return broker
        host = _PORT.sub("", name)
        return Address(host, PORT) if _SEALED.fullmatch(host) else broker


def _encode(sealed: bytes) -> str:
    """Encode in base32 with "extended hex" letters (RFC 4648 section 7), which `int` parses."""
    text = base64.b32hexencode(sealed).decode().rstrip("=").lower()
    labels = [text[at : at + LONGEST_LABEL] for at in range(0, len(text), LONGEST_LABEL)]
    return ".".join((*labels, _SUFFIX))


def _decode(name: str) -> bytes | None:
    parts = _SEALED.fullmatch(name) if len(name) <= _LONGEST_NAME_AND_PORT else None
    if parts is None:
        return None
    digits = parts[1].replace(".", "")
    size, spare = divmod(len(digits) * 5, 8)
    value = int(digits, 32)
    if spare >= 5 or value & ((1 << spare) - 1):  # a second spelling of the same bytes
        return None
    return (value >> spare).to_bytes(size, "big")


# -- readable --------------------------------------------------------------------------------

_PLACE = "{n}"
_LARGEST_NUMBER = "999999"
_NUMBER = r"(0|[1-9][0-9]{0,5})"  # no leading zeros: each broker has exactly one name

_NAME_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_READABLE = re.compile(rf"(?:{_NAME_LABEL}\.)*(?![0-9]){_NAME_LABEL}", re.ASCII)


class TemplateNames:
    """Readable names, made from templates: `broker-{n}.example` for
    `pulsar-broker-{n}.pulsar.svc:6650`.

    A broker has only one readable name, so `advertise` denies any generation but 0. Raises
    `ConfigurationError` if the templates are unusable.
    """

    def __init__(self, advertised: str, broker: str) -> None:
        self._advertised = advertised
        self._host, self._port = _broker_template(broker)
        self._name_pattern = _pattern(advertised, "advertised name")
        self._host_pattern = _pattern(self._host, "broker address")
        largest = advertised.replace(_PLACE, _LARGEST_NUMBER)
        if len(largest) > LONGEST_NAME or not _READABLE.fullmatch(largest):
            raise ConfigurationError(
                f"The advertised name {advertised!r} must consist of a-z, 0-9 and '-', in labels "
                f"of at most {LONGEST_LABEL} characters, the last one beginning with a letter. "
                "Write for example broker-{n}.example"
            )

    def advertise(self, broker: Address, generation: int = 0) -> Address | Denial:
        number = self._host_pattern.fullmatch(broker.host)
        if number is None or broker.port != self._port or broker.tls:
            return Denial(
                Refusal.UNSUPPORTED, "the broker's address does not fit the gateway's template"
            )
        if generation:
            return Denial(Refusal.UNSUPPORTED, "a name made from a template has no alias")
        return Address(self._advertised.replace(_PLACE, number[1]), PORT)

    def open(self, name: str) -> Address | Denial:
        if len(name) > _LONGEST_NAME_AND_PORT:
            return UNKNOWN_NAME
        number = self._name_pattern.fullmatch(_PORT.sub("", name))
        if number is None:
            return UNKNOWN_NAME
        return Address(self._host.replace(_PLACE, number[1]), self._port)


_PORT = re.compile(r":[0-9]{1,5}\Z", re.ASCII)


def _pattern(template: str, what: str) -> re.Pattern[str]:
    before, place, after = template.partition(_PLACE)
    if not place or _PLACE in after:
        raise ConfigurationError(
            f"The template {template!r} of the {what} must contain {_PLACE} exactly once"
        )
    return re.compile(re.escape(before) + _NUMBER + re.escape(after), re.ASCII)


def _broker_template(template: str) -> tuple[str, int]:
    """Return the host with its placeholder, and the port."""
    try:
        sample = parse_address(template.replace(_PLACE, "0"))
    except ValueError as why:
        raise ConfigurationError(
            f"The template {template!r} of the broker address is wrong: {why}. "
            "Write for example pulsar-broker-{n}.pulsar.svc:6650"
        ) from None
    return template.lower().partition(":")[0], sample.port
