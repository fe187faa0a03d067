"""The measured rows, and the goals: of compiled loops, with every message counted per producer.

What a proxy can reach differs between machines by three times: copies, wake-ups and system calls
cost more or less. So a goal is a share of what a relay in C reaches that reads nothing, in the same
rounds. HAProxy is the peer that people know: from 16 KB up the gateway takes no more CPU.

Sizes of small frames vary (`--mix`): frames of a single size flatter branch predictors, and
scanners that learn.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

IDLE_CONNECTIONS = 3000
"""Twice this number fits under usual limits of descriptors, and evens out the effect of one chunk
of the heap."""


class Kind(Enum):
    """How a row is measured, and what its figure is.

    RATIO: HAProxy's CPU per frame divided by the proxy's own. LATENCY: what the proxy adds to the
    median round trip, divided by what HAProxy adds; all of it on one core, because in a virtual
    machine the wake-up of another core costs more than any proxy. LATENCY_APART: the same with the
    proxy on a core of its own.
    """

    RATIO = auto()
    LATENCY = auto()
    LATENCY_APART = auto()


class Door(Enum):
    """Where the proxy is connected to, by the protocol there, and by what it shows: nothing, or a
    certificate whose key is of this kind. A proxy of TCP has no doors of its own for Kafka and
    TubeMQ; the gateway's for TubeMQ is a broker's."""

    PLAIN = auto()
    KAFKA = auto()
    TUBEMQ = auto()
    ECDSA = auto()
    RSA = auto()


@dataclass(frozen=True, slots=True)
class Row:
    """`key` is for `--only`; `load`: the load generator's arguments. `goal`: least ratio to HAProxy
    (most, of a latency). `share`: the least part of what the relay reaches. `door`: of the proxy.
    """

    key: str
    title: str
    load: tuple[str, ...]
    goal: float | None = None
    kind: Kind = Kind.RATIO
    door: Door = Door.PLAIN
    share: float | None = None

    @property
    def is_latency(self) -> bool:
        """Return whether round trips are what is measured."""
        return self.kind is not Kind.RATIO

    @property
    def can_be_paced(self) -> bool:
        """Return whether the load generator can give this load at a rate."""
        return self.load[0] == "stream" and "--conns" not in self.load


SHARES = {
    "send-128k": 0.95,
    "send-16k": 0.90,
    "send-1k": 0.85,
    "send-1k-several": 0.85,
    "send-1k-20": 0.85,
    "send-100": 0.70,
    "message-128k": 0.95,
    "message-16k": 0.90,
    "message-1k": 0.85,
    "message-128": 0.70,
    "wake-up": 0.90,
    "kafka-produce-1m": 0.95,
    "kafka-produce-128k": 0.95,
    "kafka-produce-16k": 0.90,
    "kafka-produce-1k": 0.85,
    "kafka-produce-many-1m": 0.80,
    "kafka-produce-many-50k": 0.80,
    "kafka-produce-wide-50k": 0.80,
    "kafka-produce-wide-8k": 0.60,
    "kafka-fetch-1m": 0.95,
    "kafka-fetch-128k": 0.95,
    "kafka-fetch-16k": 0.90,
    "kafka-fetch-1k": 0.85,
    "kafka-fetch-many-1m": 0.80,
    "kafka-fetch-many-50k": 0.80,
    "kafka-fetch-wide-50k": 0.80,
    "kafka-fetch-wide-8k": 0.60,
    "kafka-wake-up": 0.90,
    "tubemq-send-1k": 0.70,
    "tubemq-send-16k": 0.70,
    "tubemq-get-512k": 0.85,
    "tubemq-get-128k": 0.85,
    "tubemq-get-16k": 0.85,
    "tubemq-wake-up": 0.70,
}
"""By key: the least part of what the relay reaches."""


def _row(
    key: str,
    title: str,
    load: str,
    goal: float | None,
    kind: Kind = Kind.RATIO,
    door: Door = Door.PLAIN,
) -> Row:
    return Row(key, title, tuple(load.split()), goal, kind, door, SHARES.get(key))


def _tls_row(key: str, title: str, load: str, goal: float | None, door: Door = Door.ECDSA) -> Row:
    return Row(f"tls-{key}", f"TLS: {title}", (*load.split(), "--tls", "1"), goal, door=door)


def _kafka_row(key: str, title: str, load: str, goal: float | None, kind: Kind = Kind.RATIO) -> Row:
    return _row(f"kafka-{key}", f"Kafka: {title}", load, goal, kind, Door.KAFKA)


def _tubemq_row(key: str, title: str, load: str, goal: float | None) -> Row:
    return _row(
        f"tubemq-{key}", f"TubeMQ: {title}", f"pingpong --cmd {load}", goal, door=Door.TUBEMQ
    )


_UP = "stream --cmd send"
_DOWN = "stream --cmd message --dir down"
_KILOBYTE = "--mix 1000,1050,1100"

ROWS = (
    _row("send-128k", "SEND 128 KB", f"{_UP} --frame 131072", 1.0),
    _row("send-16k", "SEND 16 KB", f"{_UP} --frame 16384", 1.0),
    _row("send-1k", "SEND 1 KB, one producer", f"{_UP} {_KILOBYTE}", None),
    _row("send-1k-several", "SEND 1 KB, 4 producers", f"{_UP} {_KILOBYTE} --producers 4", None),
    _row("send-1k-20", "SEND 1 KB, 20 producers", f"{_UP} {_KILOBYTE} --producers 20", None),
    _row("send-100", "SEND 100 B", f"{_UP} --mix 100,107,115", None),
    _row("message-128k", "MESSAGE 128 KB", f"{_DOWN} --frame 131072", 1.0),
    _row("message-16k", "MESSAGE 16 KB", f"{_DOWN} --frame 16384", 1.0),
    _row("message-1k", "MESSAGE 1 KB", f"{_DOWN} {_KILOBYTE}", None),
    _row("message-128", "MESSAGE 128 B", f"{_DOWN} --mix 115,121,128", None),
    _row("wake-up", "one 1 KB frame per wake-up, 32 connections", "pingpong --conns 32", None),
    _row("latency", "added p50 of one 1 KB frame", "pingpong --conns 1", 1.1, Kind.LATENCY),
    _row(
        "latency-apart",
        "added p50 of one 1 KB frame, proxy on its own core",
        "pingpong --conns 1",
        None,
        Kind.LATENCY_APART,
    ),
)

_PRODUCE, _FETCH = "--cmd produce", "pingpong --cmd fetch --window 4"

_MANY, _WIDE = "--topics 10 --partitions 5", "--topics 1 --partitions 50"

KAFKA_ROWS = (
    _kafka_row("produce-1m", "Produce 1 MB", f"stream {_PRODUCE} --frame 1048576", 1.0),
    _kafka_row("produce-128k", "Produce 128 KB", f"stream {_PRODUCE} --frame 131072", 1.0),
    _kafka_row("produce-16k", "Produce 16 KB", f"stream {_PRODUCE} --frame 16384", 1.0),
    _kafka_row("produce-1k", "Produce 1 KB", f"stream {_PRODUCE} {_KILOBYTE}", None),
    _kafka_row("fetch-1m", "Fetch 1 MB", f"{_FETCH} --frame 1048576", 1.0),
    _kafka_row("fetch-128k", "Fetch 128 KB", f"{_FETCH} --frame 131072", 1.0),
    _kafka_row("fetch-16k", "Fetch 16 KB", f"{_FETCH} --frame 16384", 1.0),
    _kafka_row("fetch-1k", "Fetch 1 KB", f"{_FETCH} --frame 1024", None),
    _kafka_row(
        "produce-many-1m",
        "Produce of 10 topics x 5 partitions, 1 MB",
        f"stream {_PRODUCE} {_MANY} --frame 1048576",
        1.0,
    ),
    _kafka_row(
        "produce-many-50k",
        "Produce of 10 x 5, 50 KB",
        f"stream {_PRODUCE} {_MANY} --frame 55000",
        1.0,
    ),
    _kafka_row(
        "produce-wide-50k",
        "Produce of 1 x 50, 50 KB",
        f"stream {_PRODUCE} {_WIDE} --frame 55000",
        1.0,
    ),
    _kafka_row(
        "produce-wide-8k",
        "Produce of 1 x 50, 8 KB",
        f"stream {_PRODUCE} {_WIDE} --frame 8192",
        None,
    ),
    _kafka_row(
        "fetch-many-1m",
        "Fetch of 10 x 5, 1 MB",
        f"{_FETCH} {_MANY} --frame 1048576",
        1.0,
    ),
    _kafka_row("fetch-many-50k", "Fetch of 10 x 5, 50 KB", f"{_FETCH} {_MANY} --frame 55000", 1.0),
    _kafka_row("fetch-wide-50k", "Fetch of 1 x 50, 50 KB", f"{_FETCH} {_WIDE} --frame 55000", 1.0),
    _kafka_row("fetch-wide-8k", "Fetch of 1 x 50, 8 KB", f"{_FETCH} {_WIDE} --frame 8192", None),
    _kafka_row(
        "wake-up",
        "one 1 KB Produce per wake-up, 32 connections",
        f"pingpong {_PRODUCE} --conns 32",
        None,
    ),
)

_TUBE_SEND, _TUBE_GET = "tube-send --window 4", "tube-get --window 4 --frame 1024"

TUBEMQ_ROWS = (
    _tubemq_row("send-1k", "send 1 KB", f"{_TUBE_SEND} --frame 1024", None),
    _tubemq_row("send-16k", "send 16 KB", f"{_TUBE_SEND} --frame 16384", 1.0),
    _tubemq_row("get-512k", "get 512 messages of 1 KB", f"{_TUBE_GET} --batch 512", 1.0),
    _tubemq_row("get-128k", "get 128 messages of 1 KB", f"{_TUBE_GET} --batch 128", 1.0),
    _tubemq_row("get-16k", "get 16 messages of 1 KB", f"{_TUBE_GET} --batch 16", 1.0),
    _tubemq_row(
        "wake-up", "one 1 KB message per wake-up, 32 connections", "tube-send --conns 32", None
    ),
)

_SHAKE = "shake --at-once 16"
_USUAL = "--groups X25519:P-256"

TLS_ROWS = (
    _tls_row("send-128k", "SEND 128 KB", f"{_UP} --frame 131072", 1.2),
    _tls_row("send-16k", "SEND 16 KB", f"{_UP} --frame 16384", 1.2),
    _tls_row("send-1k", "SEND 1 KB, one producer", f"{_UP} {_KILOBYTE}", 0.95),
    _tls_row("message-128k", "MESSAGE 128 KB", f"{_DOWN} --frame 131072", 1.2),
    _tls_row("message-16k", "MESSAGE 16 KB", f"{_DOWN} --frame 16384", 1.2),
    _tls_row("message-1k", "MESSAGE 1 KB", f"{_DOWN} {_KILOBYTE}", 0.95),
    _tls_row("wake-up", "one 1 KB frame per wake-up, 32 connections", "pingpong --conns 32", 0.95),
    _tls_row("shake-rsa", "handshake, RSA-2048", _SHAKE, 0.8, Door.RSA),
    _tls_row("shake-ecdsa", "handshake, ECDSA P-256", _SHAKE, 0.4),
    _tls_row("shake-usual", "handshake, ECDSA P-256, keys by X25519", f"{_SHAKE} {_USUAL}", 0.4),
    _tls_row("shake-resumed", "handshake, resumed", f"{_SHAKE} --resume 1", 0.4),
)
"""Measured with --tls. Both proxies and the client use TLS 1.3, AES-128-GCM and P-256, unless the
row says otherwise: OpenSSL's, Go's and browsers' libraries begin with X25519."""

EXTRA = (
    _row(
        "ten-in-flight",
        "1 KB, 10 under way, 32 connections",
        "pingpong --conns 32 --window 10",
        0.6,
    ),
    _row("send-1k-conns", "SEND 1 KB, 8 connections", f"{_UP} {_KILOBYTE} --conns 8", 0.9),
    _row("send-batches", "SEND 4 KB, batches of 50", f"{_UP} --mix 4000,4100 --batch 50", None),
    _row(
        "message-batches",
        "MESSAGE 4 KB, batches of 50",
        f"{_DOWN} --mix 4000,4100 --batch 50",
        None,
    ),
    _kafka_row("produce-200", "Produce 200 B", f"stream {_PRODUCE} --mix 200,207,215", None),
    *(
        replace(
            row,
            key=row.key.replace("kafka-", "kafka-current-"),
            title=row.title.replace("Kafka:", "Kafka today:"),
            load=(*row.load, "--current", "1"),
            goal=None,
            share=None,
        )
        for row in KAFKA_ROWS
        if "--topics" not in row.load
    ),
)
"""Measured with --extra. *Kafka today* has the versions of Produce and Fetch that clients send now,
whose responses may name brokers (KIP-951)."""


@dataclass(frozen=True, slots=True)
class LifeFigure:
    """One figure of a proxy's life; `goal`: the most that it may be, in `unit`."""

    key: str
    title: str
    unit: str
    scale: float
    goal: float | None


LIFE = (
    LifeFigure("pair", "idle pair", "KB", 1e-3, 4.0),
    LifeFigure("set_up", "set-up with CONNECT and one PRODUCER, CPU", "us", 1.0, 120.0),
    LifeFigure("start", "start to listening", "s", 1.0, 0.25),
    LifeFigure("rss", "idle process, RSS", "MB", 1e-6, 45.0),
    LifeFigure("pss", "idle process, PSS", "MB", 1e-6, None),
)
"""Taken together: `--only life`."""

KAFKA_LIFE = (
    LifeFigure("pair", "Kafka: idle pair", "KB", 1e-3, 5.0),
    LifeFigure("set_up", "Kafka: set-up with ApiVersions, CPU", "us", 1.0, None),
    LifeFigure("start", "Kafka: start to listening", "s", 1.0, None),
    LifeFigure("rss", "Kafka: idle process, RSS", "MB", 1e-6, None),
)
"""The same of proxies that have a door for Kafka: `--only kafka-life`."""

TLS_LIFE = (
    LifeFigure("pair", "TLS: idle pair", "KB", 1e-3, None),
    LifeFigure("set_up", "TLS: set-up, handshake included, CPU", "us", 1.0, None),
)
"""Taken with --tls."""

PACED_GOAL = 0.9
"""The least ratio of each row when all proxies move frames at the same rate."""

SLACK = 0.85
"""These machines vary by 10 to 20 %: a goal counts as missed below 0.85 of it."""
