"""Services that answer as a test tells them, and remember what they were asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import trio

from gateway.control.slots import Slot, Slots
from gateway.telemetry.latency import ListenerLatencies, TenantLatencies
from gateway.telemetry.progress import Position, Progress
from gateway.wire.account import Account, Action, Burst, Right
from gateway.wire.address import Address
from gateway.wire.contract import Credential, Denial, Origin, Principal, Refusal, Settle
from gateway.wire.counters import ENDLESS
from gateway.wire.scram import ScramSecret
from gateway.wire.services import Again, LookupOutcome, LookupTimes, Tokens, Undecided
from gateway.wire.subject import Caller, Subject, TopicName
from tests.support.subjects import CONNECTION, HOST

OWN = Credential("token", b"the gateway's token")
BROKER_1 = Address("broker-1.internal", 6650)
BROKER_2 = Address("broker-2.internal", 6650)
URL_1 = f"pulsar://{BROKER_1}"
URL_2 = f"pulsar://{BROKER_2}"
OTHER_CLUSTER = Address("blue.internal", 6650)
OTHER_GATEWAY = Address("blue-gateway.example", 6651)
NAME_1 = "one.gw"
NAME_2 = "two.gw"
SEALED_1 = f"pulsar://{NAME_1}:6650"
SEALED_2 = f"pulsar://{NAME_2}:6650"

EXPIRED = Denial(Refusal.UNAUTHENTICATED, "the token has expired")
FORBIDDEN = Denial(Refusal.UNAUTHORIZED, "not allowed")
UNKNOWN_NAME = Denial(Refusal.TARGET, "unknown broker name")
TOO_LONG = Denial(Refusal.UNSUPPORTED, "the broker's name is too long to be hidden")


ORIGIN = Origin(CONNECTION, HOST, Address("127.0.0.1", 6650))
"""Where the client of these tests is."""


class Asked(NamedTuple):
    """What services were asked: see `Services.admit` and `Services.wait`."""

    action: Action
    subject: Subject
    again: bool = False

    @property
    def name(self) -> str:
        """Return the name under which the topic is counted; empty without a topic."""
        topic = self.subject.topic
        return "" if topic is None else topic.name


class FakeServices:
    """See `wire.services.Services`. Knows two brokers, and tokens like `alice's token`."""

    def __init__(self) -> None:
        self.own: Credential | Denial = OWN
        self.names = {BROKER_1: NAME_1, BROKER_2: NAME_2, BROKER_1._replace(tls=True): NAME_1}
        self.forbids = False  # all that it is asked
        self.settles = False  # who a client is takes longer to find out
        self.certificates: list[bytes | None] = []  # that were shown with credentials
        self.lease = ENDLESS  # messages that a new account may pass
        self.completed: list[Caller] = []
        self.tenants: ListenerLatencies | None = None  # durations, if they are read
        self.paced: set[Action] = set()
        self.bursts = Burst(10_000, ENDLESS)
        self.delay: float | Again | Denial = 0.0  # answer for paced actions
        self.again: list[Again | None] = []  # previous answers for the requests in `counted`
        self.counted: list[Asked] = []  # paced requests that were counted
        self.asked: list[Asked] = []
        self.admitted: list[Account] = []
        self.lending: set[Account] = set()  # accounts that may always pass one more message
        self.in_debt: set[Account] = set()
        self.released: list[Account] = []
        self.forbidden: set[tuple[Right, str]] | None = None  # None: clients need no rights
        self.undecided: set[str] = set()  # whole names of topics
        self.slots = Slots()
        self.delay_of_failures = 0.0
        self.outcomes: Counter[LookupOutcome] = Counter()
        self.errors: Counter[tuple[str, int]] = Counter()
        self.progress = Progress()
        self.redirects = 0
        self.nodes: dict[int, Address] = {}  # brokers by their ids
        self.wanted_node: int | None = None  # the one that a client connects to
        self.due: dict[Account, float] = {}  # seconds until accounts have allowance

    @property
    def live(self) -> list[Account]:
        """Return the accounts that were admitted and not released."""
        released = set(self.released)
        return [account for account in self.admitted if account not in released]

    def authenticate(
        self, credential: Credential, host: str, certificate: bytes | None = None
    ) -> Principal | Denial | Settle:
        self.certificates.append(certificate)
        found = self._principal(credential)

        async def response() -> Principal | Denial:
            return found

        return Settle(response) if self.settles else found

    def _principal(self, credential: Credential) -> Principal | Denial:
        name, _, rest = credential.data.decode(errors="replace").partition("'s ")
        if rest == "expired token":
            return EXPIRED
        if credential.method != "token" or rest not in ("token", "newer token"):
            return Denial(Refusal.UNAUTHENTICATED, "wrong credential")
        return Principal(name, verified=True, expires_at=1000.0)

    @property
    def methods(self) -> tuple[str, ...]:
        return ("token",)

    def scram(self, user: str, mechanism: str) -> ScramSecret:
        raise AssertionError("no client of this protocol has SCRAM")

    def tokens(self, credential: Credential, client: str) -> Tokens | None:
        return None  # none of its clients signs

    def scram_ended(self, secret: ScramSecret, *, right: bool) -> Principal | Denial:
        raise AssertionError("no client of this protocol has SCRAM")

    def setback(self, host: str) -> float:
        return self.delay_of_failures

    def slot(self, subject: Subject) -> Slot | Denial:
        return self.slots.take(subject.host or "", subject.principal)

    @property
    def guarded(self) -> bool:
        return self.forbidden is not None

    def forbid(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        """Forbid what `forbidden` says: (right, whole name of a topic). Topics of `undecided` have
        to be asked for first."""
        assert subject.topic is not None
        if subject.topic.whole in self.undecided:
            return Undecided(trio.lowlevel.checkpoint)
        return None if self.which(right, subject)(subject.topic) else FORBIDDEN

    def which(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        return lambda topic: (right, topic.whole) not in (self.forbidden or ())

    def which_named(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        return self.which(right, client)

    def forbid_any(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Forbid it if `*` is forbidden."""
        return FORBIDDEN if (right, "*") in (self.forbidden or ()) else None

    def forbid_all(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Forbid it if any topic is forbidden."""
        return FORBIDDEN if any(it[0] is right for it in self.forbidden or ()) else None

    def left(self, principal: Principal) -> float:
        """All credentials that expire do so in 100 seconds."""
        return math.inf if principal.expires_at is None else 100.0

    def credential(self, principal: str | None = None) -> Credential | Denial:
        return self.own

    def complete(self, caller: Caller) -> Caller:
        self.completed.append(caller)
        return caller._replace(listener="clients", cluster="main")

    def wait(
        self, action: Action, subject: Subject, again: Again | None = None
    ) -> float | Again | Denial:
        self.counted.append(Asked(action, subject))
        self.again.append(again)
        return self.delay

    def admit(self, action: Action, subject: Subject, *, again: bool = False) -> Account | Denial:
        asked = Asked(action, subject, again)
        self.asked.append(asked)
        if self.forbids or asked.name.endswith("forbidden"):
            return FORBIDDEN
        account = Account(action, subject)
        account.messages_ceiling = self.lease
        if action is not Action.LOOKUP:
            self.admitted.append(account)
        return account

    def wants(self, account: Account) -> bool:
        if account in self.lending:
            account.grant(1)
        return not account.is_short

    def due_in(self, account: Account) -> float:
        return self.due.get(account, 0.0)

    def is_in_debt(self, account: Account) -> bool:
        return account in self.in_debt

    def burst(self, account: Account) -> Burst:
        return self.bursts

    def release(self, account: Account) -> None:
        self.released.append(account)

    def advertise(self, broker: Address) -> Address | Denial:
        name = self.names.get(broker)
        return TOO_LONG if name is None else Address(name, 6650)

    def alias(self, broker: Address) -> Address | Denial:
        found = self.advertise(broker)
        return found if isinstance(found, Denial) else Address(f"alias-{found.host}", found.port)

    def advertise_node(self, node: int, broker: Address) -> Address:
        self.nodes[node] = broker
        return Address("gateway.example", 9092 + node)

    def reached(self, origin: Origin) -> int | None:
        return self.wanted_node

    def broker(self, node: int) -> Address | None:
        return self.nodes.get(node)

    def migrated(self, broker: Address) -> Address | Denial:
        return OTHER_GATEWAY if broker == OTHER_CLUSTER else Denial(Refusal.NOT_READY, "no")

    def open(self, name: str) -> Address | Denial:
        host = name.partition(":")[0]
        found = (address for address, sealed in self.names.items() if sealed == host)
        return next(found, UNKNOWN_NAME)

    def clean(self, text: str) -> str:
        for broker in (BROKER_1, BROKER_2):
            text = text.replace(str(broker), "broker").replace(broker.host, "broker")
        return text

    @property
    def timed(self) -> bool:
        return self.tenants is not None

    def latencies(self, subject: Subject, *, proven: bool) -> TenantLatencies:
        assert self.tenants is not None
        return self.tenants.of(subject.topic.tenant if subject.topic else "", proven=proven)

    def looked_up(self, outcome: LookupOutcome, times: LookupTimes | None = None) -> None:
        self.outcomes[outcome] += 1
        if times is not None and times.ended > times.began:
            latencies = self.latencies(times.subject, proven=times.proven)
            latencies.lookup.add(times.ended - times.began)

    def answered_by_error(self, request: str, code: int) -> None:
        self.errors[request, code] += 1

    def ends(self, topic: TopicName) -> dict[int, int]:
        return self.progress.of(topic.whole)

    def committed(self, group: str, topic: TopicName, partition: int, offset: int) -> None:
        self.progress.commit(Position(group, topic.whole, partition, offset))

    def deleted(self, group: str) -> None:
        self.progress.forget(group)

    def redirected(self) -> None:
        self.redirects += 1
