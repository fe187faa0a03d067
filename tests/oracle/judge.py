"""Judges if a broker understood what the gateway counted, limited and admitted.

A judge goes through the steps of a connection with one version's reading of each frame that reached
the broker. Either the broker refuses a frame, which ends the connection, or the gateway must have
read the frame in the same way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf.message import Message

from gateway.wire.account import Action
from gateway.wire.contract import Direction
from gateway.wire.counters import ENDLESS
from gateway.wire.plugin import Mode
from gateway.wire.pulsar import counts
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import KNOWN, Kind
from gateway.wire.subject import Subject
from tests.fuzz.reading import HOSTS
from tests.playbooks.services import OWN
from tests.support.commands import LIMITS, STOPS
from tests.support.requests import FIRST_OWN

from .oracle import Oracle, Reading
from .play import Counts, Played, Step
from .watched import Admission, Thought

_OPENS = {Kind.PRODUCER: (Action.PRODUCE, "2"), Kind.SUBSCRIBE: (Action.CONSUME, "4")}
"""Commands that open something, and the field of its id."""

_ENDS = {
    Kind.CLOSE_PRODUCER: Action.PRODUCE,
    Kind.CLOSE_CONSUMER: Action.CONSUME,
    Kind.UNSUBSCRIBE: Action.CONSUME,
}
_REQUESTS = {Kind.CLOSE_PRODUCER: "2", Kind.CLOSE_CONSUMER: "2", Kind.UNSUBSCRIBE: "2"}
"""The field of the request id."""

COMPARED = counts.FIRST
"""Number of SENDs per connection whose counts are compared with their batches."""

_COORDINATORS = "transaction_coordinator_assign"


class Finding(NamedTuple):
    """A broker understood something else. `step`: its number within the connection of the seed."""

    seed: int
    step: int
    version: str
    what: str
    frame: bytes
    understood: Reading | None

    def __str__(self) -> str:
        return (
            f"seed {self.seed} step {self.step} {self.version}: {self.what}\n"
            f"    frame {self.frame.hex()}\n    understood {self.understood}"
        )


def judge(
    played: Played, readings: list[list[tuple[Reading, ...]]], oracles: list[Oracle]
) -> Iterator[Finding]:
    """Yield the findings of a connection. `readings`: of each step's frames to either peer, by each
    oracle."""
    for crash in played.crashes:
        last = len(played.steps) - 1
        yield Finding(played.seed, last, "gateway", repr(crash), played.steps[-1].said[1], None)
    for index, oracle in enumerate(oracles):
        case = _Case(played, oracle)
        for number, (step, said) in enumerate(zip(played.steps, readings, strict=True)):
            yield from case.step(number, step, [each[index] for each in said])
            if case.closed:
                break


Party = tuple[Action, int]
"""A producer or consumer by its id."""


class _Case:
    """One connection as judged by one version."""

    def __init__(self, played: Played, oracle: Oracle) -> None:
        self._played = played
        self._known = oracle.fields
        self._version = oracle.version
        listener = played.listener
        to_broker = Direction.TO_BROKER
        self._claimed = STOPS[to_broker] | (LIMITS[to_broker] if listener.limited else frozenset())
        self._mode = listener.mode
        self._limited = listener.limited
        self._masked = not listener.unknown_pass
        self._thoughts: dict[int, list[Thought]] = defaultdict(list)
        self._unopened: list[tuple[int, Admission]] = []
        self._lookups: list[Subject] = []
        # Openings of this step that may have taken another id's account, with the state before.
        self._doubtful: list[tuple[Party, int, bool, int]] = []
        self._admitted = 0
        self._accounts: dict[tuple[Action, int], list[int]] = defaultdict(list)
        self._sent: Counter[int] = Counter()
        self._permits: Counter[int] = Counter()
        self._ceilings: dict[int, int] = {}  # the highest of each account so far
        self._open: set[tuple[Action, int]] = set()
        self._counts: list[Counts] = []
        self._sends = 0
        # Topic and subscription by id: of the last opening, and of what the broker has open.
        self._names: dict[tuple[Action, int], tuple[str, Any]] = {}
        self._live: dict[tuple[Action, int], tuple[str, Any]] = {}
        self._free: set[int] = set()  # accounts that had no limit at some time
        self._delivered: dict[int, int | None] = {}  # messages of a step; None: unknown
        self.closed = False

    def step(self, number: int, step: Step, said: list[Reading]) -> Iterator[Finding]:
        self._learn(step)
        self._doubtful.clear()
        to_broker = len(step.to_broker)
        for frame, reading in zip(step.to_broker, said[:to_broker], strict=True):
            if "ex" in reading:
                self.closed = True
                return
            what = self._judge_to_broker(step, frame, reading)
            if what:
                yield self._found(number, what, frame, reading)
        self._open |= set(step.opened)
        self._live.update((it, self._names[it]) for it in step.opened if it in self._names)
        self._delivered.clear()
        for frame, reading in zip(step.to_client, said[to_broker:], strict=True):
            if "ex" in reading:
                self._apply_closes(step)
                break
            what = self._judge_to_client(reading)
            if what:
                yield self._found(number, what, frame, reading)
        else:
            if not step.cut:
                for what in self._wrong_deliveries(step):
                    yield self._found(number, what, step.said[1], None)
        if not step.cut:
            for what in self._wrong_counts(step):
                yield self._found(number, what, step.said[1], None)
        self._counts = step.counts

    def _found(self, number: int, what: str, frame: bytes, reading: Reading | None) -> Finding:
        return Finding(self._played.seed, number, self._version, what, frame, reading)

    def _learn(self, step: Step) -> None:
        for thought in step.thoughts:
            if thought.direction is Direction.TO_BROKER:
                self._thoughts[thought.kind].append(thought)
        for admission in step.admissions:
            if admission.asked.action is Action.LOOKUP:
                self._lookups.append(admission.asked.subject)
            else:
                self._unopened.append((self._admitted, admission))
            self._admitted += 1

    def _apply_closes(self, step: Step) -> None:
        """Apply closes: a broker that sends an incomplete CLOSE has closed nevertheless."""
        for thought in step.thoughts:
            if thought.direction is Direction.TO_CLIENT and thought.kind in _ENDS:
                action = _ENDS[Kind(thought.kind)]
                field = "producer_id" if action is Action.PRODUCE else "consumer_id"
                self._live.pop((action, getattr(thought.body, field)), None)

    # -- one frame ---------------------------------------------------------------------------

    def _judge_to_broker(self, step: Step, frame: bytes, reading: Reading) -> str:
        kind = reading["t"]
        if reading["at"] != 4 + int.from_bytes(frame[4:8]):
            return "the command's end is elsewhere"
        if kind == Kind.CONNECT:
            return "a CONNECT on an open pair"
        if kind == Kind.SEND:
            return self._send(step, reading)
        if kind == Kind.AUTH_RESPONSE:
            return self._auth_response(step, reading)
        if kind not in self._claimed:
            return "" if kind in KNOWN or not self._masked else "an unknown command"
        if kind == Kind.FLOW:
            return self._flow(reading)
        if kind in _ENDS:
            self._live.pop((_ENDS[kind], reading["f"]["1"] & (1 << 64) - 1), None)
        if kind in _REQUESTS and self._is_ours(reading["f"].get(_REQUESTS[kind], 0)):
            return ""
        if not self._was_decided(kind, reading["f"]):
            return "nobody took the frame for that"
        if kind in _OPENS:
            return self._opens(kind, reading)
        return self._looks_up(reading) if kind == Kind.LOOKUP else ""

    def _is_ours(self, request: int) -> bool:
        return request & (1 << 64) - 1 >= FIRST_OWN

    def _was_decided(self, kind: int, fields: Reading) -> bool:
        thoughts = self._thoughts[kind]
        for index, thought in enumerate(thoughts):
            if not differs(fields, thought.body, self._known):
                del thoughts[index]
                return True
        return False

    def _opens(self, kind: int, reading: Reading) -> str:
        """Check that the services were asked for this topic by its canonical name."""
        if "tx" in reading:
            self.closed = True  # nothing is opened, so later frames of the peers mean nothing
            return ""
        action, field = _OPENS[Kind(kind)]
        name, id = reading["tn"], reading["f"][field] & (1 << 64) - 1
        subscription = reading["f"].get("2") if action is Action.CONSUME else None
        kept = self._live.get((action, id))
        if kept is not None and kept != (name, subscription):
            self.closed = True  # later frames are charged to another topic
            return f"the broker keeps {kept[0]} under this id"
        if is_brokers_own(name):
            return f"a topic of the brokers: {name}"
        party, names = (action, id), (str(name), subscription)
        is_again = self._names.get(party) == names
        for index, (account, admission) in enumerate(self._unopened):
            admitted, subject = admission.asked.action, admission.asked.subject
            if admitted is action and (canonical(subject), subject.subscription) == names:
                del self._unopened[index]
                if is_again:
                    self._doubtful.append((party, account, party in self._open, self._permits[id]))
                self._charge(party, names, account)
                return ""
        if is_again:
            return ""  # a repeated request during an opening: the same account is charged
        if self._take_back(party, names):
            return ""
        all_asked = (each.asked for _, each in self._unopened)
        asked = [(each.action, canonical(each.subject)) for each in all_asked]
        return f"nobody was admitted to {name}, but {asked}"

    def _charge(self, party: Party, names: tuple[str, Any], account: int) -> None:
        """Charge this account for the producer or consumer from now on."""
        self._accounts[party].append(account)
        self._names[party] = names
        if party[0] is Action.CONSUME:
            self._open.discard(party)
            self._permits[party[1]] = 0

    def _take_back(self, party: Party, names: tuple[str, Any]) -> bool:
        """Charge an account that another id of this step took needlessly, being open already.
        Return True if there is such an account."""
        for doubt in self._doubtful:
            other, account, was_open, permits = doubt
            if other[0] is party[0] and self._names[other] == names:
                self._doubtful.remove(doubt)
                self._accounts[other].remove(account)
                if other[0] is Action.CONSUME:
                    self._permits[other[1]] = permits
                if was_open:
                    self._open.add(other)
                self._charge(party, names, account)
                return True
        return False

    def _looks_up(self, reading: Reading) -> str:
        if "tx" in reading:
            return ""
        name = reading["tn"]
        for index, subject in enumerate(self._lookups):
            if canonical(subject) == name:
                del self._lookups[index]
                return ""
        return f"nobody may look up {name}, but {[canonical(it) for it in self._lookups]}"

    def _send(self, step: Step, reading: Reading) -> str:
        id = reading["f"]["1"] & (1 << 64) - 1
        said = max(1, reading["f"].get("3", 1))
        self._sent[id] += said
        accounts = self._accounts[Action.PRODUCE, id]
        if not accounts:
            return "a SEND of a producer nobody opened"
        self._sends += 1
        compared = (
            self._limited and self._sends <= COMPARED and self._is_limited(accounts[-1], step)
        )
        held = max(1, reading.get("n", said))
        return f"says {said} messages and holds {held}" if compared and said != held else ""

    def _is_limited(self, account: int, step: Step) -> bool:
        """Return True if the account was limited from the start of this step on."""
        known = (*self._counts[account : account + 1], step.counts[account])
        return len(known) == 2 and all(count.ceiling < ENDLESS for count in known)

    def _flow(self, reading: Reading) -> str:
        """Count the permits of a consumer; a held one may not exceed its limit."""
        id = reading["f"]["1"] & (1 << 64) - 1
        permits = reading["f"]["2"]
        if (Action.CONSUME, id) in self._open:
            self.closed = permits <= 0
            self._permits[id] += permits
        return ""

    def _auth_response(self, step: Step, reading: Reading) -> str:
        data = reading["f"].get("2", {})
        method, proof = data.get("1"), bytes.fromhex(data.get("2", ""))
        if self._mode is Mode.VERIFY:
            return "" if proof == OWN.data else "a credential of the client"
        if self._mode is Mode.PASS_THROUGH:
            known = any(it.data == proof and method in (None, "", it.method) for it in step.shown)
            return "" if known else "a credential that the gateway did not see"
        for credential, name in step.proven:
            if credential.data == proof and method in (None, "", credential.method):
                return "" if name == "alice" else f"a credential of {name}"
        return "a credential that nobody verified"

    # -- frames to the client ----------------------------------------------------------------

    def _judge_to_client(self, reading: Reading) -> str:
        """Check a frame to the client. A Java client decodes commands as brokers do."""
        kind, fields = reading["t"], reading["f"]
        if kind == Kind.MESSAGE:
            id = fields["1"] & (1 << 64) - 1
            self._delivered[id] = None if "mx" in reading else self._more(id, reading["n"])
        if kind in _ENDS:
            self._live.pop((_ENDS[kind], fields["1"] & (1 << 64) - 1), None)
        field = BaseCommand.DESCRIPTOR.fields_by_number[kind]
        places = () if kind == Kind.CONNECT else hosts(fields, field.message_type)
        return "".join(f"a broker's address in {place}" for place in places)

    def _more(self, id: int, messages: int) -> int | None:
        before = self._delivered.get(id, 0)
        return None if before is None else before + max(1, messages)

    def _wrong_deliveries(self, step: Step) -> Iterator[str]:
        for id, messages in self._delivered.items():
            accounts = self._accounts[Action.CONSUME, id]
            if messages is None or not accounts or id not in step.consumers:
                continue
            counted = sum(step.counts[it].messages for it in accounts)
            before = sum(count.messages for it in accounts for count in self._counts[it : it + 1])
            if counted - before != messages:
                yield f"consumer {id} was charged {counted - before} messages, and got {messages}"

    # -- counts ------------------------------------------------------------------------------

    def _wrong_counts(self, step: Step) -> Iterator[str]:
        for id, sent in self._sent.items():
            accounts = self._accounts[Action.PRODUCE, id]
            counted = sum(step.counts[account].messages for account in accounts)
            if counted < sent or (counted > sent and not step.over):
                yield f"producer {id} was charged {counted} messages, the broker got {sent}"
        self._free |= {at for at, it in enumerate(step.counts) if it.ceiling >= ENDLESS}
        for id, permits in self._permits.items():
            accounts = self._accounts[Action.CONSUME, id][-1:]
            for account in set(accounts) - self._free:
                most = self._most(account, step.counts)
                if permits > most:
                    yield f"consumer {id} has {permits} permits, and may have {most}"

    def _most(self, account: int, now: list[Counts]) -> int:
        """Return the most permits that the broker may have by now: an allowance that was withdrawn
        since may have been passed on before."""
        known = [now[account], *self._counts[account : account + 1]]
        most = max(max(count.ceiling, count.messages + 1) for count in known)
        self._ceilings[account] = max(most, self._ceilings.get(account, 0))
        return self._ceilings[account]


def canonical(subject: Subject) -> str | None:
    """Return the name of a subject's topic as brokers write it."""
    topic = subject.topic
    return None if topic is None else topic.partition or topic.whole


def is_brokers_own(name: str) -> bool:
    """Return True if brokers keep their own data under this name."""
    tenant, _, rest = name.partition("://")[2].partition("/")
    return tenant == "pulsar" and not rest.startswith(f"system/{_COORDINATORS}")


def hosts(fields: Reading, message: Any) -> Iterator[str]:
    """Yield the fields with a broker's address where clients use them or users read them."""
    for number, value in fields.items():
        field = message.fields_by_number.get(int(number))
        if field is None:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield from hosts(each, field.message_type)
            elif isinstance(each, str) and field.type == field.TYPE_STRING:
                suspect = any(word in field.name.lower() for word in ("url", "address", "message"))
                if suspect and any(host in each for host in HOSTS):
                    yield field.name


def differs(fields: Reading, message: Message, known: dict[str, frozenset[int]]) -> str:
    """Return where a broker's reading differs from a message; fields unknown to the broker do not
    count."""
    numbers = known.get(message.DESCRIPTOR.name, frozenset())
    seen = 0
    for field, value in message.ListFields():
        if field.number not in numbers:
            continue
        read = fields.get(str(field.number))
        if read is None:
            return field.name
        seen += 1
        pairs = [(read, value)]
        if field.is_repeated:
            if len(read) != len(value):
                return field.name
            pairs = list(zip(read, value, strict=True))
        for got, meant in pairs:
            if field.message_type is not None:
                within = differs(got, meant, known)
                if within:
                    return f"{field.name}.{within}"
            elif not _same(got, meant):
                return field.name
    return "" if seen == len(fields) else "a field that is not there"


def _same(read: Any, meant: Any) -> bool:
    if isinstance(meant, bool):
        return read is meant
    if isinstance(meant, int):
        return isinstance(read, int) and (read - meant) & (1 << 64) - 1 == 0
    if isinstance(meant, bytes):
        # protobuf yields a text that is not UTF-8 as bytes; brokers replace its invalid parts.
        return read == meant.hex() or "\ufffd" in read
    return bool(read == meant)
