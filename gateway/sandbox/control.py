"""The sandbox's control by HTTP: topics to look at and to move, faults to cause."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gateway.admin.server import Answer
from gateway.sandbox.faults import Fault, seconds_of
from gateway.sandbox.names import TopicName, parse
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandSubscribe
from gateway.wire.pulsar.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.admin.server import Action, Route
    from gateway.sandbox.cluster import Cluster
    from gateway.sandbox.consumer import Consumer, Producer
    from gateway.sandbox.faults import Faults
    from gateway.sandbox.subscription import Subscription
    from gateway.sandbox.topic import Topic

    Query = Mapping[str, str]

T = TypeVar("T")

MOST_PARTITIONS = 1000

_JSON = "application/json"
_BOOLEANS = {"true": True, "false": False}


class Broker(Protocol):
    """What of a broker the control reaches."""

    @property
    def url(self) -> str: ...
    @property
    def faults(self) -> Faults: ...
    def cut(self) -> int: ...
    def say(self, frame: bytes) -> int: ...


class Control:
    """`url`: its own, for the examples that it shows."""

    def __init__(self, cluster: Cluster, brokers: Sequence[Broker]) -> None:
        self.url = ""
        self._cluster = cluster
        self._brokers = brokers

    def routes(self) -> dict[str, Route]:
        """What may be looked at."""
        return {"/": self._help, "/topics": self._topics}

    def actions(self) -> dict[str, Action]:
        """What may be done; all parameters are in the query."""
        return {
            "/topics": _checked(self._create),
            "/move": _checked(self._move),
            "/fault": _checked(self._fault),
            "/say": _checked(self._say),
        }

    def _help(self) -> Answer:
        brokers = "".join(f"  broker {i}  {it.url}\n" for i, it in enumerate(self._brokers))
        return Answer(200, [_HELP.format(url=self.url, brokers=brokers).encode()])

    def _topics(self) -> Answer:
        found = {str(name): self._shown(topic) for name, topic in self._cluster.topics.items()}
        return _json(found)

    def _shown(self, topic: Topic) -> dict[str, Any]:
        subscriptions = topic.subscriptions.items()
        return {
            "owner": self._cluster.urls[topic.owner],
            "entries": len(topic.log),
            "bytes": topic.log.bytes,
            "producers": [_who(producer) for producer in topic.producers.values()],
            "consumers": [found for name, it in subscriptions for found in _consumers(name, it)],
            "backlog": {name: it.cursor.backlog for name, it in subscriptions},
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
        assigned = _chosen(query, "assigned", _BOOLEANS, default="true")
        if not self._cluster.has(name):
            raise ValueError(f"there is no topic {name}; GET /topics lists those there are")
        if len(self._brokers) < 2:
            raise ValueError("there is only one broker")
        moved = self._cluster.move(name, assigned=assigned)
        return _json({"owners": {str(part): url for part, url in moved.items()}})

    def _fault(self, query: Query) -> Answer:
        fault = _chosen(query, "kind", {kind.value: kind for kind in Fault})
        number = _number(query, "broker", 0, len(self._brokers) - 1)
        seconds = seconds_of(query.get("seconds", "0"))
        broker = self._brokers[number]
        broker.faults.cause(fault, seconds, time.time())
        done: dict[str, Any] = {"broker": broker.url, "fault": fault.value, "seconds": seconds}
        if fault is Fault.CUT:
            done["connections"] = broker.cut()
        return _json(done)

    def _say(self, query: Query) -> Answer:
        """A frame at once to all clients, or as the answer to all commands of one kind."""
        number = _number(query, "broker", 0, len(self._brokers) - 1)
        frame, broker = _frame(query), self._brokers[number]
        done: dict[str, Any] = {"broker": broker.url, "bytes": len(frame)}
        if "to" not in query:
            return _json(done | {"connections": broker.say(frame)})
        kind = _chosen(query, "to", {kind.name: kind for kind in Kind})
        if frame:
            broker.faults.words[kind] = frame
        else:
            broker.faults.words.pop(kind, None)
        return _json(done | {"to": kind.name})


# -- what comes in, checked ----------------------------------------------------------------------


def _checked(action: Action) -> Action:
    """Answer 400 with the reason where a parameter is wrong."""

    def checked(query: Query) -> Answer:
        try:
            return action(query)
        except ValueError as why:
            return Answer(400, [f"{why}\n".encode()])

    return checked


def _topic(query: Query, key: str) -> TopicName:
    name = parse(query.get(key, ""))
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


def _chosen(query: Query, key: str, choices: Mapping[str, T], default: str = "") -> T:
    text = query.get(key, default)
    if text not in choices:
        raise ValueError(f"{key}={text} is none of {', '.join(choices)}")
    return choices[text]


# -- what goes out -------------------------------------------------------------------------------


def _json(value: dict[str, Any]) -> Answer:
    return Answer(200, [json.dumps(value, indent=2).encode(), b"\n"], _JSON)


def _who(handle: Producer | Consumer) -> dict[str, Any]:
    who = handle.link.who
    return {
        "name": handle.name,
        "principal": who.principal,
        "original_principal": who.original,
    }


def _consumers(name: str, subscription: Subscription) -> list[dict[str, Any]]:
    kind = CommandSubscribe.SubType.Name(subscription.type)
    pending = Counter(subscription.pending.values())
    return [
        {**_who(it), "subscription": name, "type": kind, "unacknowledged": pending[it]}
        for it in subscription.consumers
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
Cause a fault for so many seconds (0 ends it):
  curl -X POST '{url}/fault?broker=0&kind=freeze&seconds=5'   # reads and writes nothing
  curl -X POST '{url}/fault?broker=0&kind=refuse&seconds=5'   # closes who comes, lookups fail
Each answer comes so many seconds late from now on (0 ends it):
  curl -X POST '{url}/fault?broker=0&kind=delay&seconds=0.5'
At once: close all connections, or let the next frame of each claim a wrong size:
  curl -X POST '{url}/fault?broker=0&kind=cut'
  curl -X POST '{url}/fault?broker=0&kind=lie'
Let a broker say a frame (here PONG) to all its clients, or in answer to each command of a kind;
without a frame it answers by itself again:
  curl -X POST '{url}/say?broker=0&frame=000000090000000508139a0100'
  curl -X POST '{url}/say?broker=0&to=LOOKUP'
"""
