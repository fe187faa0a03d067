"""The HTTP control of a sandbox: shows and moves topics, and causes faults."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gateway.admin.server import Answer
from gateway.lab.sandbox.faults import Fault, read_seconds
from gateway.lab.sandbox.names import FullTopicName, parse_topic
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandSubscribe
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.admin.server import Action, Route
    from gateway.lab.sandbox.cluster import SandboxCluster
    from gateway.lab.sandbox.consumer import Consumer, Producer
    from gateway.lab.sandbox.faults import Faults
    from gateway.lab.sandbox.subscription import Subscription
    from gateway.lab.sandbox.topic import Topic

    Query = Mapping[str, str]

T = TypeVar("T")

MOST_PARTITIONS = 1000

_JSON = "application/json"
_BOOLEANS = {"true": True, "false": False}


class ControlledBroker(Protocol):
    """The part of a broker that the HTTP control uses."""

    @property
    def url(self) -> str: ...
    @property
    def faults(self) -> Faults: ...
    def cut(self) -> int: ...
    def announce(self, frame: bytes) -> int: ...


class Control:
    """The routes of the sandbox's HTTP control. `url`: the control's own URL, which the examples in
    its help use."""

    def __init__(self, cluster: SandboxCluster, brokers: Sequence[ControlledBroker]) -> None:
        self.url = ""
        self._cluster = cluster
        self._brokers = brokers

    def routes(self) -> dict[str, Route]:
        """Return the functions that answer GET requests, by path."""
        return {"/": self._help, "/topics": self._topics}

    def actions(self) -> dict[str, Action]:
        """Return the functions that answer POST requests, by path. All parameters are in the query
        of the URL."""
        return {
            "/topics": _with_bad_request(self._create),
            "/move": _with_bad_request(self._move),
            "/fault": _with_bad_request(self._fault),
            "/say": _with_bad_request(self._announce),
        }

    def _help(self) -> Answer:
        brokers = "".join(f"  broker {i}  {broker.url}\n" for i, broker in enumerate(self._brokers))
        return Answer(200, [_HELP.format(url=self.url, brokers=brokers).encode()])

    def _topics(self) -> Answer:
        topics = {str(name): self._described(topic) for name, topic in self._cluster.topics.items()}
        return _json(topics)

    def _described(self, topic: Topic) -> dict[str, Any]:
        subscriptions = topic.subscriptions.items()
        return {
            "owner": self._cluster.urls[topic.owner],
            "entries": len(topic.log),
            "bytes": topic.log.bytes,
            "producers": [_described_client(producer) for producer in topic.producers.values()],
            "consumers": [
                consumer
                for name, subscription in subscriptions
                for consumer in _consumers(name, subscription)
            ],
            "backlog": {name: subscription.cursor.backlog for name, subscription in subscriptions},
        }

    # -- actions ---------------------------------------------------------------------------------

    def _create(self, query: Query) -> Answer:
        name = _topic(query, "name")
        partitions = _number(query, "partitions", 0, MOST_PARTITIONS, default="0")
        refusal = self._cluster.create(name, partitions)
        if refusal is not None:
            raise ValueError(refusal)
        return _json({"created": str(name), "partitions": partitions})

    def _move(self, query: Query) -> Answer:
        name = _topic(query, "topic")
        assigned = _choice(query, "assigned", _BOOLEANS, default="true")
        if not self._cluster.has(name):
            raise ValueError(f"there is no topic {name}; GET /topics lists all topics")
        if len(self._brokers) < 2:
            raise ValueError("there is only one broker")
        moved = self._cluster.move(name, assigned=assigned)
        return _json({"owners": {str(part): url for part, url in moved.items()}})

    def _fault(self, query: Query) -> Answer:
        fault = _choice(query, "kind", {kind.value: kind for kind in Fault})
        number = _number(query, "broker", 0, len(self._brokers) - 1)
        seconds = read_seconds(query.get("seconds", "0"))
        broker = self._brokers[number]
        broker.faults.cause(fault, seconds, time.time())
        done: dict[str, Any] = {"broker": broker.url, "fault": fault.value, "seconds": seconds}
        if fault is Fault.CUT:
            done["connections"] = broker.cut()
        return _json(done)

    def _announce(self, query: Query) -> Answer:
        """Send a frame to all clients now, or set it as the reply to all commands of one kind."""
        number = _number(query, "broker", 0, len(self._brokers) - 1)
        frame, broker = _frame(query), self._brokers[number]
        done: dict[str, Any] = {"broker": broker.url, "bytes": len(frame)}
        if "to" not in query:
            return _json(done | {"connections": broker.announce(frame)})
        kind = _choice(query, "to", {kind.name: kind for kind in Kind})
        if frame:
            broker.faults.replies[kind] = frame
        else:
            broker.faults.replies.pop(kind, None)
        return _json(done | {"to": kind.name})


# -- parameters ----------------------------------------------------------------------------------


def _with_bad_request(action: Action) -> Action:
    """Return the action, answering 400 with the reason if a parameter is wrong."""

    def checked(query: Query) -> Answer:
        try:
            return action(query)
        except ValueError as why:
            return Answer(400, [f"{why}\n".encode()])

    return checked


def _topic(query: Query, key: str) -> FullTopicName:
    name = parse_topic(query.get(key, ""))
    if name is None or not query.get(key):
        raise ValueError(f"{key}= must name a topic, like persistent://public/default/t or t")
    return name


def _number(query: Query, key: str, least: int, most: int, default: str = "") -> int:
    text = query.get(key, default)
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ValueError(f"{key}={text} is not a number from {least} to {most}")
    return int(text)


def _frame(query: Query) -> bytes:
    try:
        return bytes.fromhex(query.get("frame", ""))
    except ValueError:
        raise ValueError("frame= must be the bytes of a frame, in hexadecimal digits") from None


def _choice(query: Query, key: str, choices: Mapping[str, T], default: str = "") -> T:
    text = query.get(key, default)
    if text not in choices:
        raise ValueError(f"{key}={text} is not one of {', '.join(choices)}")
    return choices[text]


# -- answers -------------------------------------------------------------------------------------


def _json(value: dict[str, Any]) -> Answer:
    return Answer(200, [json.dumps(value, indent=2).encode(), b"\n"], _JSON)


def _described_client(handle: Producer | Consumer) -> dict[str, Any]:
    roles = handle.link.roles
    return {
        "name": handle.name,
        "principal": roles.principal,
        "original_principal": roles.original,
    }


def _consumers(name: str, subscription: Subscription) -> list[dict[str, Any]]:
    kind = CommandSubscribe.SubType.Name(subscription.type)
    pending = Counter(subscription.pending.values())
    return [
        {
            **_described_client(consumer),
            "subscription": name,
            "type": kind,
            "unacknowledged": pending[consumer],
        }
        for consumer in subscription.consumers
    ]


_HELP = """\
A sandbox: Pulsar brokers in memory, for trying out and for tests. Nothing is kept on disk.

{brokers}
Look at the topics (owner, producers, consumers, backlog):
  curl {url}/topics
Create a topic with partitions:
  curl -X POST '{url}/topics?name=orders&partitions=4'
Move a topic to the other broker; clients are told where, or must look it up:
  curl -X POST '{url}/move?topic=orders&assigned=true'
  curl -X POST '{url}/move?topic=orders&assigned=false'
Cause a fault for some seconds (0 ends it):
  curl -X POST '{url}/fault?broker=0&kind=freeze&seconds=5'   # reads and writes nothing
  curl -X POST '{url}/fault?broker=0&kind=refuse&seconds=5'   # rejects connections and lookups
Delay each answer by some seconds from now on (0 ends the delay):
  curl -X POST '{url}/fault?broker=0&kind=delay&seconds=0.5'
Close all connections now, or let the next frame of each claim a wrong size:
  curl -X POST '{url}/fault?broker=0&kind=cut'
  curl -X POST '{url}/fault?broker=0&kind=lie'
Send a frame (here PONG) to all clients of a broker, or as the reply to each command of a kind;
without a frame the broker replies normally again:
  curl -X POST '{url}/say?broker=0&frame=000000090000000508139a0100'
  curl -X POST '{url}/say?broker=0&to=LOOKUP'
"""
