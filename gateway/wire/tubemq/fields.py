"""What happens to each field of a request or a reply that may name something: a topic, a group, a
client, a session, a user, a token, a broker or a host.

`judging` and `rewriting` work by this table. A test fails for a text, bytes or a list in the
messages of a method that the table lacks. Numbers name nothing by themselves, except stamps of
lists of brokers.

Source: MasterService.proto and BrokerService.proto of Apache InLong TubeMQ, and what its servers
2.4.0 do with each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, auto
from functools import cache
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor


class Care(IntEnum):
    """What happens to a field. Fields of one message are rewritten in this order: the stamp of a
    list of brokers depends on the list."""

    PASSED = auto()
    """Forwarded unchanged."""
    PROVES = auto()
    """A credential or a token. Where the gateway verifies clients it is replaced; see `session`."""
    CLIENT = auto()
    """The client's own id: servers get the id of `clients.known_as`."""
    GROUP = auto()
    """A consumer group: the request needs the right to consume by it."""
    JUDGED = auto()
    """Topics, each of which needs the right; otherwise the request is refused."""
    OFFERED = auto()
    """Topics of a producer. Those without the right are left out."""
    FILTERED = auto()
    """Texts that begin with a topic. Those without the right are left out."""
    SUBSCRIPTIONS = auto()
    """Texts `client@group#id:host:port#topic:partition`: filtered, with the client's own id and
    another address."""
    PARTITIONS = auto()
    """Texts `id:host:port#topic:partition`: filtered, with another address."""
    FAILURES = auto()
    """Texts `error:id:host:port#topic:partition`, with another address."""
    BROKERS = auto()
    """Texts `id:host:port`, with the gateway's addresses."""
    STAMP = auto()
    """The number by which a master knows whether a client has the latest list of brokers."""
    TEXT = auto()
    """A text for people, without addresses of brokers and without what belongs to others."""


class Field(NamedTuple):
    """An entry of the table. `absent`: what servers do without the field, if it is empty, or why
    that does not matter. `why`: why the field passes."""

    care: Care
    absent: str
    why: str = ""


_REFUSED = "servers refuse the request"
_NONE = "nothing is named"
_OLD = "the client keeps what it has"


def _passed(why: str, absent: str = _NONE) -> Field:
    return Field(Care.PASSED, absent, why)


_RULES_FOR_ALL = _passed("limits of brokers for the client's own group or for all", _OLD)

FIELDS: Mapping[str, Field] = {
    "clientId": Field(Care.CLIENT, _REFUSED),
    "SendMessageRequestP2B.clientId": _passed("brokers read only that it is not empty", _REFUSED),
    "groupName": Field(Care.GROUP, _REFUSED),
    "topicName": Field(Care.JUDGED, "not a topic, so the gateway refuses the request"),
    "topicList": Field(Care.JUDGED, "servers refuse consumers without topics"),
    "RegisterRequestP2M.topicList": Field(Care.OFFERED, "a producer has no topic yet"),
    "HeartRequestP2M.topicList": Field(Care.OFFERED, "a producer has no topic yet"),
    "topicCondition": Field(Care.FILTERED, "all messages of the topics"),
    "partSubInfo": Field(Care.FILTERED, "a consumer has no partition"),
    "topicInfo": Field(Care.FILTERED, _NONE),
    "topicInfos": Field(Care.FILTERED, _NONE),
    "topicMetaInfoList": Field(Care.FILTERED, _OLD),
    "subscribeInfo": Field(Care.SUBSCRIPTIONS, "a consumer has no partition"),
    "partitionInfo": Field(Care.PARTITIONS, "no partition is kept alive"),
    "failureInfo": Field(Care.FAILURES, "no partition is lost"),
    "brokerInfos": Field(Care.BROKERS, _OLD),
    "brokerConfigList": Field(Care.BROKERS, _OLD),
    "brokerCheckSum": Field(Care.STAMP, _REFUSED),
    "brokerConfigId": Field(Care.STAMP, "a master sends the list"),
    "errMsg": Field(Care.TEXT, _NONE),
    "stackTrace": Field(Care.TEXT, _NONE),
    "authInfo": Field(Care.PROVES, "verified by the connection, or refused"),
    "authorizedInfo": Field(Care.PROVES, _OLD),
    "hostName": _passed("servers show the client's host to operators alone", _REFUSED),
    "jdkVersion": _passed("is about the client itself"),
    "sessionKey": _passed("is compared within the group, which is judged"),
    "requiredPartition": _passed("servers accept only topics of topicList", "no offset is set"),
    "filterCondStr": _passed("selects messages of a topic that is judged", "all messages"),
    "data": _passed("the message itself", _REFUSED),
    "msgType": _passed("is about the message itself"),
    "msgTime": _passed("is about the message itself"),
    "messages": _passed("of the partition that the request names, which is judged"),
    "defFlowControlInfo": _RULES_FOR_ALL,
    "groupFlowControlInfo": _RULES_FOR_ALL,
    "exceptionName": _passed("a class of servers, by which clients decide"),
}
"""By the name of a field, or for one message only by `Message.field`. A field that is a message has
an entry if its own fields have none."""


class Place(NamedTuple):
    """A field of a message, or of a message in it. `path`: names of the fields that lead to it."""

    path: tuple[str, ...]
    name: str
    care: Care


def field_of(message: str, name: str) -> Field | None:
    """Return the entry of a field; None if it has none. `message`: the name of its message."""
    return FIELDS.get(f"{message}.{name}") or FIELDS.get(name)


@cache
def places(of: Descriptor) -> tuple[Place, ...]:
    """Return the fields of a message that are changed or judged, in the order of `Care`."""
    return tuple(sorted(_places(of, ()), key=lambda place: place.care))


def _places(of: Descriptor, path: tuple[str, ...]) -> list[Place]:
    found: list[Place] = []
    for field in of.fields:
        entry = field_of(of.name, field.name)
        if entry is None and field.message_type is not None:
            found += _places(field.message_type, (*path, field.name))
        elif entry is not None and entry.care > Care.PROVES:
            found.append(Place(path, field.name, entry.care))
    return found
