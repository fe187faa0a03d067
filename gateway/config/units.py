"""Functions that read values as people write them: durations, sizes, addresses, networks.

Each function takes a value as YAML gives it, and returns it in base units (seconds, bytes). If the
value is wrong, the function raises `ValueError` with the text "what is wrong; what would be right".
This text never contains the value, which may be a secret in the wrong place.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gateway import protocols
from gateway.config.expressions import compiled
from gateway.wire.address import (
    LAST_PORT,
    Address,
    parse_address,
    parse_host_port,
    parse_url,
    split_urls,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

KIB = 1024
MIB = 1024 * KIB

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"b": 1.0, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "kb": 1e3, "mb": 1e6, "gb": 1e9}

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")
# `*` stands for any characters, dots included, as in the allow-list of Pulsar's own proxy.
_HOST_PATTERN = re.compile(r"[a-z0-9_.:*-]{1,253}")
# Java clients find no host in a name that has `_` in it or whose last label begins with a digit.
_READABLE_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_READABLE = re.compile(rf"(?:{_READABLE_LABEL}\.)*(?![0-9]){_READABLE_LABEL}")
# Longer numbers occur nowhere in the file, and Python refuses to read very long ones.
_NUMBER = re.compile(r"[0-9]{1,9}")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")

# No meaningful number is larger. NaN is refused by the same comparison.
_HUGE = 2.0**62

# RFC 1035: a longer name cannot be resolved.
_HOST_LENGTH = 253

# The largest number of a broker behind a readable name.
_LARGEST_NUMBER = "999999"

# The most ids of one listener: the gateway listens on a port for each.
MOST_IDS = 1000
_IDS_HELP = "0-2 or [1, 2, 10-12]"

_EMPTY = "is empty; leave the line out or give it a value"
_BIND_HELP = "host:port, [IPv6 address]:port in quotes, or :port for all addresses"
_BROKER_HELP = " or ".join(f"{name}://host:port" for name in protocols.SCHEMES)


def seconds(value: object) -> float:
    """Return the seconds in a duration: `500ms`, `10s`, `2m`, `1h`, or a number of seconds."""
    return _quantity(value, _SECONDS, "is not a duration; 500ms, 10s, 2m or a number of seconds")


def size(value: object) -> int:
    """Return the bytes in a size: `64KiB`, `5MB`, or a number of bytes."""
    return int(_quantity(value, _BYTES, "is not a size; 64KiB, 5MB or a number of bytes"))


def whole(value: object) -> int:
    """Read a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("is not a whole number; digits only, without quotes")


def flag(value: object) -> bool:
    """Read true or false. The value may be a text, because an environment variable holds a text."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, bool):
        return value
    raise ValueError("is neither true nor false; one of them, without quotes")


def https(value: object) -> str:
    """Read a URL whose responses can be trusted, because it has TLS or is on this machine. The URL
    is shown in logs, so it must not contain a password."""
    url = _url(value)
    if not is_secure(url):
        raise ValueError("is not secured by TLS; https://host/path")
    return url


def http(value: object) -> str:
    """Read a URL with or without TLS. The URL is shown in logs, so it must not contain a
    password."""
    url = _url(value)
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("is not a URL of HTTP; https://host/path")
    return url


def is_secure(url: str) -> bool:
    """Return whether nobody on the network can read requests to a URL, because it has TLS or is on
    this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_MACHINE)


def _url(value: object) -> str:
    url = text(value).strip()
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not url.isprintable() or " " in url:
        raise ValueError("is not a URL; https://host/path")
    if "@" in parts.netloc:
        raise ValueError("contains a user or password; https://host/path")
    return url


def fraction(value: object) -> float:
    """Read a number, such as 0.1 for a tenth."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError("is not a number; 0.1 for a tenth, without quotes")


def pattern(value: object) -> str:
    """Read a regular expression. Raises `ValueError` if it does not compile."""
    read = text(value)
    compiled(read)
    return read


_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


def _quantity(value: object, units: Mapping[str, float], complaint: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _HUGE:
        return float(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(complaint)
    return float(match[1]) * unit


def entries(value: object) -> object:
    """Return a list of values. A text is split at commas, because an environment variable holds a
    list as one text. None becomes an empty list.

    In a split text, digits become numbers, as they would in a YAML list. A number becomes a list of
    one value. Any other value is returned unchanged.
    """
    if value is None:
        return []
    if isinstance(value, int):
        return [value]
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(",")] if value.strip() else []
    return [int(part) if _NUMBER.fullmatch(part) else part for part in parts]


def text(value: object) -> str:
    """Return a value that is a non-empty string. Raises `ValueError` for any other value."""
    if value is None:
        raise ValueError(_EMPTY)
    if not isinstance(value, str):
        raise ValueError("is not a text; put it in quotes")  # noqa: TRY004 - pydantic wants these
    if not value.strip():
        raise ValueError(_EMPTY)
    return value


def name(value: object) -> str:
    """Read a name that may occur in metrics, in log lines, and in paths of settings, such as
    `clusters.main.brokers`."""
    if _NAME.fullmatch(text(value)):
        return text(value)
    raise ValueError("is not a name; letters, digits, and . _ - inside, 63 at most")


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached only from this machine: it is `localhost` or a loopback
    address. No name is resolved."""
    if host == "localhost":
        return True
    try:
        return bool(ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False


def protocol(value: object) -> str:
    """Read the name of a protocol."""
    if isinstance(value, str) and value in protocols.PLUGINS:
        return value
    raise ValueError(f"is not a protocol; {' or '.join(protocols.PLUGINS)}")


def bind(value: object) -> Address:
    """Read an address to listen on. Host "" means all addresses, port 0 means any free port."""
    host, port = endpoint(value, _BIND_HELP)
    if port is None:
        raise ValueError(f"has no port; {_BIND_HELP}")
    return Address(host, port)


def binds(value: object) -> tuple[Address, ...]:
    """Read the addresses to listen on: a single address, or a list."""
    if not isinstance(value, list):
        return (bind(value),)
    addresses = []
    for number, entry in enumerate(value, start=1):
        try:
            addresses.append(bind(entry))
        except ValueError as why:
            raise ValueError(f"entry {number} {why}") from None
    if not addresses:
        raise ValueError(_EMPTY)
    return tuple(addresses)


def broker(value: object) -> Address:
    """Read the URL of one broker."""
    url = text(value).strip()
    try:
        return parse_url(url, protocols.SCHEMES)
    except ValueError as why:
        raise ValueError(f"{why}; {_BROKER_HELP}") from None


def brokers(value: object) -> object:
    """Split a text with URLs of brokers at commas. Only the first URL needs a scheme. Values that
    are not text are returned as `entries` returns them."""
    return split_urls(value) if isinstance(value, str) and value.strip() else entries(value)


def port(value: object) -> int:
    """Read a port to connect to, from 1 to 65535."""
    if 1 <= whole(value) <= LAST_PORT:
        return whole(value)
    raise ValueError(f"is not a port; from 1 to {LAST_PORT}")


def host_pattern(value: object) -> str:
    """Read a host name or address, in which `*` stands for any characters. It is returned in lower
    case."""
    pattern = text(value).lower().rstrip(".")
    if _HOST_PATTERN.fullmatch(pattern):
        return pattern
    raise ValueError("is not a host; a name, an address, or *.example.org for all below it")


def host(value: object) -> str:
    """Read a host name or an address. It is returned in lower case."""
    host_name = text(value).lower()
    if _HOST_PATTERN.fullmatch(host_name) and "*" not in host_name:
        return host_name
    raise ValueError("is not a host; a name or an address, such as gateway.example")


def ids(value: object) -> tuple[int, ...]:
    """Read the ids of brokers: numbers, and ranges such as `0-2`. They are a text with commas, or a
    list."""
    numbers: list[int] = []
    for entry in [value] if isinstance(value, int) else _listed(value):
        first, _, last = str(entry).strip().partition("-")
        ends = first, last or first
        if isinstance(entry, bool) or not all(_NUMBER.fullmatch(end) for end in ends):
            raise ValueError(f"has what is no id and no range of ids; {_IDS_HELP}")
        low, high = map(int, ends)
        if not low <= high < low + MOST_IDS - len(numbers):
            raise ValueError(f"has a range that cannot be; the least first, {MOST_IDS} ids at most")
        numbers += range(low, high + 1)
    if len(set(numbers)) < len(numbers):
        raise ValueError("has an id twice; each once")
    if not numbers:
        raise ValueError(_EMPTY)
    return tuple(numbers)


def _listed(value: object) -> list[object]:
    listed = entries(value)
    return listed if isinstance(listed, list) else [listed]


def host_template(value: object) -> str:
    """Read the template of brokers' names for clients, in which `{n}` stands for the number of a
    broker."""
    template = text(value)
    largest = template.replace("{n}", _LARGEST_NUMBER)
    fits = len(largest) <= _HOST_LENGTH and _READABLE.fullmatch(largest)
    if template.count("{n}") == 1 and fits:
        return template
    raise ValueError(
        "is not a name with one {n}, of a-z 0-9 -, at most 63 between dots with six digits for "
        "{n}, the last label beginning with a letter; broker-{n}.example"
    )


def broker_template(value: object) -> str:
    """Read the template of brokers' addresses, `host:port`, in which `{n}` in the host stands for
    the number of a broker."""
    template = text(value)
    help_text = "broker-{n}.internal:6650"
    host, _, port_text = template.rpartition(":")
    if not port_text.isdecimal():
        raise ValueError(f"has no port; {help_text}")
    # A number within an IPv6 address names no broker.
    if host.count("{n}") != 1 or ":" in host or not _is_address(template.replace("{n}", "0")):
        raise ValueError(f"is not a host with one {{n}}; {help_text}")
    return template


def _is_address(value: str) -> bool:
    try:
        parse_address(value)
    except ValueError:
        return False
    return True


def network(value: object) -> Network:
    """Read a network in CIDR form, or a single address."""
    try:
        parsed = ipaddress.ip_network(text(value), strict=False)
    except ValueError:
        raise ValueError("is not a network; 10.0.0.0/8, fd00::/8 or one address") from None
    if str(parsed.network_address) != ipaddress.ip_interface(text(value)).ip.compressed:
        raise ValueError(f"has bits beyond its mask; {parsed}")
    return parsed


def endpoint(value: object, help_text: str) -> tuple[str, int | None]:
    """Read `HOST:PORT`. Return the host, which may be "", and the port, which is None if the text
    has none. Raises `ValueError`, whose text ends with `help_text`."""
    endpoint = text(value).strip()
    try:
        return parse_host_port(endpoint)
    except ValueError as why:
        raise ValueError(f"{why}; {help_text}") from None
