"""Scenes in which brokers disclose their addresses, one for each way of hiding them.

The sandbox sends what brokers send rarely. The client of each scene is a plain socket.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandLookupTopicResponse
from gateway.wire.pulsar.fields import Act, places
from gateway.wire.pulsar.frames import Kind
from tests.real.clients import fresh_topic
from tests.real.gateways import Gateway
from tests.sandbox.peer import Peer
from tests.support.commands import TEXTS
from tests.support.frames import command, data, frame, number, send, simple
from tests.support.sandbox import HOSTS, Sandbox

BROKERS_OWN = "non-persistent://pulsar/system/loadbalancer-broker-load-data"


@dataclass(frozen=True)
class Scene:
    """What a tap observes: `url` leads through the tap and `gateway` to `brokers`."""

    url: str
    gateway: Gateway
    brokers: Sandbox

    @property
    def address(self) -> str:
        """Return the address of a broker."""
        return self.brokers.urls[0].removeprefix("pulsar://")

    @property
    def text(self) -> str:
        """Return a text that names a broker in all forms seen in brokers' texts."""
        host, port = self.address.split(":")
        return (
            f"Namespace bundle (public/default/0x00_0xff) not served by this instance:{host}:8080. "
            f"Please redo the lookup at pulsar://{host}:{port}, https://{host}:8443 or {host}: "
            f"[id: 0x1, L:/{host}:{port} - R:/127.0.0.1:4711], gone to inner/{host}:{port}"
        )

    def peer(self, **connect: Any) -> Peer:
        """Return a client that has connected."""
        peer = Peer(self.url.removeprefix("pulsar://"))
        peer.connect(**connect)
        return peer

    def say(self, said: bytes) -> None:
        """Let all brokers send a frame to a client, which reads everything that is left of it."""
        with self.peer() as client:
            for broker in range(len(HOSTS)):
                self.brokers.say(broker, said)
            hear(client)


def hear(client: Peer) -> None:
    """Read everything that has been sent so far."""
    client.say(Kind.PING)
    while BaseCommand.FromString(client._command()).type != BaseCommand.PONG:
        pass


Play = Callable[[Scene], None]


# -- frames ------------------------------------------------------------------------------------


def required(message: Descriptor) -> dict[str, Any]:
    """Return the fields that a message requires, with arbitrary values."""
    return {it.name: _any(it) for it in message.fields if it.is_required}


def _any(field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        return required(field.message_type)
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    return "x" if field.type == field.TYPE_STRING else 1


def said(kind: int, **fields: Any) -> bytes:
    """Return a frame of a command with these fields and the required ones."""
    of_kind = BaseCommand.DESCRIPTOR.fields_by_number[kind].message_type
    assert of_kind
    return simple(kind, **required(of_kind) | fields)


def says_text(kind: int) -> Play:
    (place,) = places(kind, Direction.TO_CLIENT, Act.TEXT)
    return lambda scene: scene.say(said(kind, **{place.name: scene.text}))


def assigned(scene: Scene) -> dict[str, str]:
    return {"assignedBrokerServiceUrl": f"pulsar://{scene.address}"}


def scalable(scene: Scene) -> dict[str, Any]:
    url = f"pulsar://{scene.address}"
    segments = [{"segment_id": 1, "broker_url": url, "broker_url_tls": url}]
    return {"dag": {"epoch": 1, "segment_brokers": segments, "controller_broker_url": url}}


def coordinators(scene: Scene) -> dict[str, Any]:
    assignments = [{"tc_id": 1, "broker_service_url": f"pulsar://{scene.address}"}]
    return {"snapshot": {"parallelism": 1, "assignments": assignments}}


FIELDS: dict[int, Callable[[Scene], dict[str, Any]]] = {
    Kind.CLOSE_PRODUCER: assigned,
    Kind.CLOSE_CONSUMER: assigned,
    Kind.CONSUMER_STATS_RESPONSE: lambda scene: {"address": f"/{scene.address}"},
    Kind.SCALABLE_TOPIC_UPDATE: scalable,
    Kind.WATCH_TC_ASSIGNMENTS_UPDATE: coordinators,
}


def says_fields(kind: int) -> Play:
    return lambda scene: scene.say(said(kind, **FIELDS[kind](scene)))


# -- scenes ------------------------------------------------------------------------------------


def look_up(scene: Scene) -> None:
    """Use two connections: they alternate between the brokers, so one lookup is redirected."""
    topic = fresh_topic()
    for _ in HOSTS:
        with scene.peer() as client:
            client.ask(Kind.LOOKUP, topic=topic, request_id=1, authoritative=False)


def lookup_fails(scene: Scene) -> None:
    """The failing answer names a broker nevertheless."""
    urls = {"brokerServiceUrl": f"pulsar://{scene.address}", "error": 6}
    scene.say(said(Kind.LOOKUP_RESPONSE, response=CommandLookupTopicResponse.Failed, **urls))


def answered_with(scene: Scene, to: Kind, said: bytes, play: Play) -> None:
    """Return a scene in which all brokers give this answer to one kind of command."""
    for broker in range(len(HOSTS)):
        scene.brokers.say(broker, said, to.name)
    try:
        play(scene)
    finally:
        for broker in range(len(HOSTS)):
            scene.brokers.say(broker, b"", to.name)


def chased_lookup_fails(scene: Scene) -> None:
    """The topic's owner, to which lookups are redirected, answers them by an ERROR."""
    topic = fresh_topic()
    scene.brokers.create_partitioned(topic, 0)
    owner = scene.brokers.urls.index(scene.brokers.topics()[topic]["owner"])
    scene.brokers.say(owner, said(Kind.ERROR, message=scene.text), Kind.LOOKUP.name)
    try:
        for _ in HOSTS:
            with scene.peer() as client:
                client.ask(Kind.LOOKUP, topic=topic, request_id=1, authoritative=False)
    finally:
        scene.brokers.say(owner, b"", Kind.LOOKUP.name)


def connection_is_refused(scene: Scene) -> None:
    answered_with(
        scene, Kind.CONNECT, said(Kind.ERROR, message=scene.text), lambda it: it.peer().__exit__()
    )


def connected_with_more(scene: Scene) -> None:
    """CONNECTED has a field that only later versions know."""
    later = data(99, scene.text.encode())
    body = BaseCommand.FromString(said(Kind.CONNECTED)[8:]).connected.SerializeToString() + later
    said_so = frame(command(Kind.CONNECTED, body))
    answered_with(scene, Kind.CONNECT, said_so, lambda it: it.peer().__exit__())


def migrates(scene: Scene) -> None:
    scene.say(said(Kind.TOPIC_MIGRATED, brokerServiceUrl=f"pulsar://{scene.address}"))


def unknown(scene: Scene) -> None:
    for kind in (99, 300):
        scene.say(frame(number(1, kind) + data(kind, scene.text.encode())))


def stops(scene: Scene) -> None:
    """The gateway stops, and tells its clients where to reconnect."""
    topic = fresh_topic()
    with scene.peer() as client:
        answer = client.ask(Kind.LOOKUP, topic=topic, request_id=1, authoritative=False)
    name = answer.brokerServiceUrl.removeprefix("pulsar://")
    with scene.peer(proxy_to_broker_url=name) as producer:
        producer.ask(Kind.PRODUCER, topic=topic, producer_id=1, request_id=2)
        scene.gateway.stop()


def reads_what_brokers_tell_each_other(scene: Scene) -> None:
    """Each broker writes its address into a topic, which keeps nothing for who comes later."""
    scene.brokers.create_partitioned(BROKERS_OWN, 0)
    owner = scene.brokers.urls.index(scene.brokers.topics()[BROKERS_OWN]["owner"])
    with scene.peer() as client:
        answer = client.ask(Kind.LOOKUP, topic=BROKERS_OWN, request_id=1, authoritative=False)
    name = answer.brokerServiceUrl.removeprefix("pulsar://")
    with scene.peer(proxy_to_broker_url=name) as client, Peer.of(scene.brokers, owner) as broker:
        about = {"subscription": secrets.token_hex(4), "subType": 0}
        client.ask(Kind.SUBSCRIBE, topic=BROKERS_OWN, consumer_id=1, request_id=2, **about)
        client.say(Kind.FLOW, consumer_id=1, messagePermits=10)
        hear(client)
        broker.connect()
        broker.ask(Kind.PRODUCER, topic=BROKERS_OWN, producer_id=1, request_id=1)
        broker.send(send(1, 0, f'{{"pulsarServiceUrl": "pulsar://{scene.address}"}}'.encode()))
        broker.read()
        hear(client)


PLAYS: dict[str, Play] = {
    **{f"fields of {kind.name}": says_fields(kind) for kind in Kind if kind in FIELDS},
    **{f"text of {kind.name}": says_text(kind) for kind in Kind if kind in TEXTS},
    "lookup that connects": look_up,
    "lookup that redirects": look_up,
    "lookup that fails": lookup_fails,
    "text of a chased lookup": chased_lookup_fails,
    "text of a refused connection": connection_is_refused,
    "migration": migrates,
    "alias": stops,
    "topics of the brokers' own": reads_what_brokers_tell_each_other,
    "unknown command": unknown,
    "unknown fields": connected_with_more,
}
IN_PAYLOADS = {"topics of the brokers' own"}
UNDER_MASK = {"unknown command", "unknown fields"}
ENDS = {"alias"}
"""Scenes in which the gateway stops."""
