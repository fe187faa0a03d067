"""Changes the addresses in messages: clients get the gateway's, and servers get those of brokers.

A list of brokers has a stamp, and a master tells the list to those alone who show another stamp. To
clients a stamp stands for the list *and* for the addresses at which this gateway shows its brokers:
a number that these make is added to it, and taken away from what clients show. So a client that had
its list from a gateway with other addresses gets it anew.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

from gateway.wire.address import Address
from gateway.wire.services import Services
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.addresses import (
    Towards,
    address_of,
    broker_text,
    brokers,
    failure,
    partition,
    subscribed,
)

LEAST_STAMP = 1
"""Stamps below say that there is none: -1 of producers, -2 of consumers."""

_ADDED = 1 << 20
"""Numbers that are added are below: stamps are milliseconds, so that this is a quarter of an hour.
"""

_LARGEST = (1 << 63) - 1

_LISTS = {
    methods.REGISTER_PRODUCER: ("brokerInfos", "brokerCheckSum"),
    methods.BEAT_PRODUCER: ("brokerInfos", "brokerCheckSum"),
    methods.REGISTER_BALANCED: ("brokerConfigList", "brokerConfigId"),
    methods.BEAT_BALANCED: ("brokerConfigList", "brokerConfigId"),
    methods.FIND_PARTITIONS: ("brokerConfigList", "brokerConfigId"),
}
"""By method: the fields of a reply that have the list of brokers, and its stamp."""


@dataclass(slots=True)
class Rewriting:
    """Changes the messages of all connections of one listener. `tls`: the gateway dials brokers by
    TLS."""

    services: Services
    tls: bool = False
    _added: int = 0  # to stamps; 0: no list has been told yet

    def change_request(self, method: int, message: Any) -> None:
        """Change what a client says. Raises `PeerError`."""
        match method:
            case methods.REGISTER_PRODUCER | methods.BEAT_PRODUCER:
                message.brokerCheckSum = self._less(message.brokerCheckSum)
            case methods.REGISTER_BALANCED | methods.BEAT_BALANCED:
                if message.HasField("subRepInfo"):
                    told = message.subRepInfo
                    told.brokerConfigId = self._less(told.brokerConfigId)
            case methods.FIND_PARTITIONS:
                message.brokerConfigId = self._less(message.brokerConfigId)
            case methods.REGISTER_CONSUMER:
                self._subscriptions(message.subscribeInfo, self._real)
            case methods.BEAT_CONSUMER:
                self._subscriptions(message.subscribeInfo, self._real)
                if message.HasField("event"):
                    self._subscriptions(message.event.subscribeInfo, self._real)
            case methods.BEAT_PARTITIONS:
                infos = message.partitionInfo
                infos[:] = [partition(it, self._real) for it in infos]

    def leaves(self, message: Any) -> bool:
        """Return whether a reply to a request for messages tells no address."""
        return bool(message.success and message.errMsg == self.services.clean(message.errMsg))

    def change_reply(self, method: int, message: Any) -> None:
        """Change what a server says. Raises `PeerError`."""
        if method in _LISTS:
            self._tell_brokers(message, *_LISTS[method])
        elif method == methods.BEAT_CONSUMER and message.HasField("event"):
            self._subscriptions(message.event.subscribeInfo, self._told)
        elif method == methods.BEAT_PARTITIONS:
            infos = message.failureInfo
            infos[:] = [failure(it, self._told) for it in infos]
        # An accepted message's id stands in the text, and is no text.
        if not (method == methods.SEND_MESSAGE and message.success):
            message.errMsg = self.services.clean(message.errMsg)

    def _tell_brokers(self, message: Any, field: str, stamp: str) -> None:
        infos = getattr(message, field)
        if infos:
            told = [
                broker_text(id, self.services.advertise_node(id, broker))
                for id, broker in brokers(list(infos), tls=self.tls)
            ]
            self._added = 1 + zlib.crc32("\n".join(told).encode()) % (_ADDED - 1)
            infos[:] = told
        if message.HasField(stamp) and getattr(message, stamp) >= LEAST_STAMP:
            setattr(message, stamp, min(_LARGEST, getattr(message, stamp) + self._added))

    def _less(self, stamp: int) -> int:
        """Return the stamp that a master knows, of what a client shows."""
        return max(LEAST_STAMP, stamp - self._added) if stamp >= LEAST_STAMP else stamp

    def _subscriptions(self, infos: Any, towards: Towards) -> None:
        infos[:] = [subscribed(it, towards) for it in infos]

    def _real(self, id: int, _: str) -> Address | None:
        """Return where a broker is; None: nobody has said it."""
        return self.services.broker(id)

    def _told(self, id: int, place: str) -> Address:
        """Return the address at which clients reach a broker. One of which nobody has heard yet is
        where the text says. Raises `PeerError` if it says nothing of the kind."""
        broker = self.services.broker(id)
        if broker is None:
            broker = address_of(place, tls=self.tls)
        return self.services.advertise_node(id, broker)
