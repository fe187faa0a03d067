"""Plain counters that other packages increment, and that metrics read.

Incrementing a slot costs 35 ns; a metrics library's own counter costs 600 to 1900.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

from gateway.telemetry import families
from gateway.telemetry.progress import Progress
from gateway.wire.account import Waits
from gateway.wire.contract import EndReason
from gateway.wire.services import LookupOutcome
from gateway.wire.subject import TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


OTHER = "__other__"
"""The name of many topics, or tenants, that are counted as one."""

TENANTS = 1000
"""Tenants of a cluster or listener with figures of their own. Clients choose the tenants of their
topics, and each has 20 lines of metrics, or 80 with its latencies."""

PRINCIPALS = 1000
"""Principals of a cluster with figures of their own. Each has some 16 lines of metrics."""

BROKERS = 1000
"""Brokers of a listener with figures of their own: large clusters have hundreds, and where a new
one has a new name, many more over time."""

LIBRARIES = 100
"""Client libraries of a listener that are counted by name. A company uses a dozen versions."""

LONGEST_LIBRARY = 100
"""Characters of the name of a library. Real ones have 20 to 40."""


@dataclass(slots=True)
class Moved:
    """Bytes that came from one kind of peer."""

    bytes: int = 0


@dataclass(slots=True)
class BrokerTraffic:
    """Connections to one broker for clients of one listener: open ones, and the bytes that came
    from clients and from the broker since the start."""

    open: int = 0
    to_broker: Moved = field(default_factory=Moved)
    to_client: Moved = field(default_factory=Moved)


@dataclass(slots=True)
class ListenerFigures:
    """Connections of one listener: `accepted` and `ended` since the start, the others right now.

    `stopped`: the listener accepts no more, and open connections drain. `handshakes`: by version,
    and whether a session was resumed. `authentications`: by method, and whether they succeeded.
    `libraries`: open connections, by what clients state. `brokers`: traffic, by broker.
    """

    accepted: Annotated[int, families.ACCEPTED] = 0
    accept_failures: Annotated[int, families.ACCEPT_FAILURES] = 0
    opening: int = 0
    open: int = 0
    stopped: bool = False
    ended: dict[EndReason, int] = field(default_factory=lambda: dict.fromkeys(EndReason, 0))
    handshakes: dict[tuple[str, bool], int] = field(default_factory=dict)
    authentications: dict[tuple[str, bool], int] = field(default_factory=dict)
    libraries: dict[str, int] = field(default_factory=dict)
    brokers: dict[str, BrokerTraffic] = field(default_factory=dict)

    def traffic(self, broker: str) -> BrokerTraffic:
        """Return the figures of a broker, or those of all others beyond the bound."""
        if broker not in self.brokers and len(self.brokers) >= BROKERS:
            broker = OTHER
        return self.brokers.setdefault(broker, BrokerTraffic())

    def shaken(self, version: str, *, resumed: bool) -> None:
        """Count a TLS handshake that succeeded."""
        key = version, resumed
        self.handshakes[key] = self.handshakes.get(key, 0) + 1

    def authenticated(self, method: str, *, accepted: bool) -> None:
        """Count a credential that was verified. `method`: one of few."""
        key = method, accepted
        self.authentications[key] = self.authentications.get(key, 0) + 1

    def opened(self, library: str) -> str:
        """Count an open connection, and return by which name it is counted: clients state any."""
        # A name may have half of a surrogate pair, which UTF-8 cannot encode.
        library = library[:LONGEST_LIBRARY].encode(errors="replace").decode()
        if library not in self.libraries and len(self.libraries) >= LIBRARIES:
            library = OTHER
        self.libraries[library] = self.libraries.get(library, 0) + 1
        return library

    def closed(self, library: str) -> None:
        """Count one open connection less. `library`: as `opened` returned it."""
        self.libraries[library] -= 1
        if not self.libraries[library]:
            del self.libraries[library]


@dataclass(slots=True)
class OpeningFigures:
    """Connections of the process that gave way to others before they were authenticated."""

    displaced: Annotated[
        int,
        families.DISPLACED,
    ] = 0


@dataclass(slots=True)
class ExportFigures:
    """Records of one kind that an OpenTelemetry collector was to get."""

    made: Annotated[int, families.EXPORT_MADE] = 0
    sent: Annotated[int, families.EXPORT_SENT] = 0
    failed: Annotated[int, families.EXPORT_FAILED] = 0

    def note(self, number: int, *, sent: bool) -> None:
        """Count the records of one request."""
        if sent:
            self.sent += number
        else:
            self.failed += number


@dataclass(slots=True)
class ClusterFigures:
    """Lookups of one cluster since the start, migrations of its topics to another cluster: those
    reported to clients, and those withheld; errors in answers, by request and code; and how far
    groups have come.
    """

    lookups: dict[LookupOutcome, int] = field(
        default_factory=lambda: dict.fromkeys(LookupOutcome, 0)
    )
    redirects: Annotated[int, families.REDIRECTS] = 0
    migrations: int = 0
    migrations_withheld: int = 0
    errors: Counter[tuple[str, int]] = field(default_factory=Counter)
    progress: Progress = field(default_factory=Progress)


@dataclass(slots=True)
class ReloadFigures:
    """Reloads of rules since the start, by outcome. `loaded_at`: wall-clock seconds of the last
    success, which may be the start. `expired`: rules that have no effect any more.
    """

    loaded_at: Annotated[
        float,
        families.RULES_LOADED_AT,
    ]
    generation: Annotated[int, families.RULES_GENERATION] = 1
    expired: Annotated[int, families.RULES_EXPIRED] = 0
    loaded: int = 0
    refused: int = 0


class ExpiredRule(NamedTuple):
    """A rule that has no effect any more, and since when: `2026-12-25T00:00:00Z`."""

    rule: str
    since: str


class Expiring(Protocol):
    """A file of TLS, what it holds, and the wall-clock second in which that ends to be valid."""

    @property
    def kind(self) -> str: ...

    @property
    def file(self) -> Path: ...

    @property
    def ends(self) -> float: ...


@dataclass(slots=True)
class TlsFigures:
    """Reloads of the files of TLS since the start, by outcome, and when those in force end to be
    valid, by the listener or cluster that uses them."""

    loaded: int = 0
    refused: int = 0
    expiries: dict[str, Sequence[Expiring]] = field(default_factory=dict)


@dataclass(slots=True)
class IssuerFigures:
    """Keys of one issuer of tokens: how many there are, and fetches of them since the start."""

    keys: int = 0
    fetched: int = 0
    failed: int = 0


@dataclass(slots=True)
class AgentFigures:
    """Answers of the policy agent since the start, and how many are known now. `stated`: decisions
    without asking it, as it had just failed to answer."""

    known: int = 0
    allowed: int = 0
    denied: int = 0
    failed: int = 0
    stated: int = 0


@dataclass(slots=True)
class StoreFigures:
    """Use of the store through which processes share limits. `lost`: it does not answer."""

    processes: Annotated[int, families.STORE_PROCESSES] = 0
    calls: Annotated[int, families.STORE_CALLS] = 0
    failures: Annotated[int, families.STORE_FAILURES] = 0
    asked: Annotated[
        int,
        families.STORE_QUESTIONS,
    ] = 0
    refused: Annotated[int, families.STORE_REFUSALS] = 0
    lost: bool = False


@dataclass(slots=True)
class LogFigures:
    """Log lines `dropped` since the start: too many waited, or the stream failed."""

    dropped: Annotated[int, families.LOG_DROPPED] = 0


@dataclass(slots=True)
class AuditFigures(LogFigures):
    """The same of the audit: a disk that is full keeps nobody from being served."""

    dropped: Annotated[int, families.AUDIT_DROPPED] = 0


@dataclass(slots=True)
class StreamFigures:
    """Records of one kind since the start, and their files. `dropped`: the disk was full or too
    slow. `removed`: the oldest files, to make room. `unsent`: records in those that a topic was to
    get and did not have."""

    written: Annotated[int, families.RECORDS] = 0
    dropped: Annotated[int, families.RECORDS_DROPPED] = 0
    bytes: Annotated[int, families.RECORD_BYTES] = 0
    files: Annotated[int, families.RECORD_FILES] = 0
    removed: Annotated[int, families.RECORD_FILES_REMOVED] = 0
    unsent: Annotated[int, families.RECORDS_UNSENT] = 0


@dataclass(slots=True)
class SentFigures:
    """Records of one kind that a topic has, since the start, and files that it is to get."""

    records: Annotated[int, families.RECORDS_SHIPPED] = 0
    waiting: Annotated[int, families.FILES_UNSHIPPED] = 0


@dataclass(slots=True)
class ShipperFigures:
    """The process that sends records to topics. `streams`: by their kind."""

    streams: dict[str, SentFigures]
    failures: Annotated[int, families.SHIPPING_FAILURES] = 0
    restarts: Annotated[int, families.SHIPPER_RESTARTS] = 0


class CrewFigures(NamedTuple):
    """The worker processes."""

    running: Annotated[int, families.WORKERS]
    restarts: Annotated[int, families.RESTARTS]


class PlaneFigures(NamedTuple):
    """Figures of the data plane. `buffered` has `held` and `collected` among it. `turn_seconds`: of
    all turns."""

    buffered: Annotated[int, families.BUFFERED]
    collected: Annotated[int, families.COLLECTED]
    remembered: Annotated[
        int,
        families.REMEMBERED,
    ]
    held: Annotated[int, families.HELD]
    resets: Annotated[
        int,
        families.RESETS,
    ]
    turns: Annotated[int, families.TURNS]
    turn_seconds: Annotated[float, families.TURN_SECONDS] = 0.0


class Denied(NamedTuple):
    """What denials are counted by. `rule`: its id; empty if none allowed it."""

    listener: str
    rule: str
    right: str
    mode: str


class RuleFigures(NamedTuple):
    """The effect of one rule on one dimension.

    Right now: `limits`, of which there may be one for each tenant or topic, and producers
    `waiting`. Since the start: `waits`, and their `seconds` in all; `refused` requests. In shadow
    mode: `held` messages or bytes would have waited, in so many `seconds`, and requests would have
    been `refused`.

    `fill`: the used share of what the limit with the least left may save up, or have open. Whose
    limit that is, `fullest` says: the values of the rule's `per`.
    """

    rule: str
    what: str
    mode: str
    limits: int = 0
    waiting: int = 0
    waits: int = 0
    seconds: float = 0.0
    held: float = 0.0
    refused: int = 0
    fill: float = 0.0
    fullest: str = ""


class BrokerFailures(NamedTuple):
    """How often brokers of one cluster were not reached, by cause."""

    cluster: str
    cause: str
    number: int


class BrokerHealth(NamedTuple):
    """The health of one broker."""

    cluster: str
    broker: str
    healthy: bool


def others_of(tenant: str) -> TopicName:
    """Return the name under which a book folds topics of one tenant into one."""
    return TopicName(tenant, "", OTHER)


class Totals(NamedTuple):
    """Traffic in one direction of a topic. `open`: producers or consumers right now. `damaged`:
    frames with a wrong checksum, where checksums are verified. `subscriptions`: of open consumers;
    `wanted`: messages that these have asked for and not got. `held`: bytes that wait for allowance
    right now. `refused`, `redelivered`: frames.
    """

    messages: int
    bytes: int
    frames: int
    receipts: int
    open: int
    damaged: int = 0
    subscriptions: int = 0
    wanted: int = 0
    held: int = 0
    refused: int = 0
    redelivered: int = 0


NOTHING = Totals(0, 0, 0, 0, 0)
"""No traffic. Most topics have some in one direction only, so this is shared, and compared by
identity."""


class TopicFigures(NamedTuple):
    """The figures of one topic: `produced` went to the broker, `consumed` to clients. `waits`: of
    both, by rule; None if there were none. `denied`: how often clients lacked a right; likewise."""

    topic: TopicName
    produced: Totals
    consumed: Totals
    produced_waits: Waits | None = None
    consumed_waits: Waits | None = None
    denied: Mapping[str, int] | None = None


class PrincipalFigures(NamedTuple):
    """The same of one principal, over all its topics."""

    principal: str
    produced: Totals
    consumed: Totals
    produced_waits: Waits | None = None
    consumed_waits: Waits | None = None


class PrincipalSource(Protocol):
    """A source of figures per principal. One principal may come in several parts, which add up."""

    def principals(self) -> Iterator[PrincipalFigures]: ...


class TopicBook(Protocol):
    """A source of figures per topic. It may change while being read. One topic may come in several
    parts, which add up.
    """

    def topics(self) -> Iterator[TopicFigures]: ...
