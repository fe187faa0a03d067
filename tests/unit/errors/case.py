"""A wrong file, and the message about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KEY = b"0123456789abcdef" * 2


def config(
    *,
    version: str = "version: 1",
    name: str = "clients",
    bind: str = "127.0.0.1:0",
    of: str = "main",
    listener: str = "",
    listeners: str = "",
    brokers: str = "pulsar://127.0.0.1:16650",
    cluster: str = "",
    clusters: str = "",
    rest: str = "",
) -> str:
    """Return a whole file, which is valid by default, with some parts replaced.

    `of`: the cluster that the listener names. `listener`, `cluster`: more of their lines.
    """
    listeners = listeners or (f'[{{name: {name}, bind: "{bind}", cluster: {of}{_more(listener)}}}]')
    clusters = clusters or f"{{main: {{brokers: {brokers}{_more(cluster)}}}}}"
    return f"{version}\nlisteners: {listeners}\nclusters: {clusters}\n{rest}\n"


def verify(token: str) -> str:
    """Return a file whose identity verifies tokens with these settings."""
    return config(listener=f"identity: {{mode: verify, token: {{{token}}}}}")


PORTS = "{ports: {host: gateway.example, ids: 0-2, first_port: 9093}}"


def kafka(listener: str = "", cluster: str = "", advertise: str = PORTS) -> str:
    """Return a file of a gateway for Kafka. `advertise`: empty, if the listener has none."""
    way = advertise and f"advertise: {advertise}"
    more = ", ".join(it for it in ("protocol: kafka", way, listener) if it)
    return config(listener=more, brokers="kafka://127.0.0.1:9092", cluster=cluster)


def tubemq(listener: str = "") -> str:
    """Return a file of a gateway for TubeMQ."""
    more = f"protocol: tubemq, advertise: {PORTS}, {listener}"
    return config(listener=more, brokers="tubemq://127.0.0.1:8715")


def template(advertise: str, broker: str) -> str:
    """Return a file with readable names."""
    names = f'{{advertise: "{advertise}", broker: "{broker}"}}'
    return config(cluster=f"names: {{template: {names}}}")


def _more(part: str) -> str:
    return part and f", {part}"


@dataclass(frozen=True)
class Case:
    """`message` is the whole output. Files are named as in the configuration."""

    name: str
    text: str | bytes
    message: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
