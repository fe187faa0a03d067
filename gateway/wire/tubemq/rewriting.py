"""Address rewriting: clients are sent the gateway's addresses, and servers those of brokers.

A list of brokers has a stamp (a version number). A master sends the list only to clients that show
another stamp. The list that the gateway sends to clients also depends on the addresses that the
gateway has for brokers. So the gateway adds to the master's stamp a number that is derived from
these addresses, and subtracts it again from the stamps that clients show. A client whose list comes
from a gateway with other addresses therefore shows a wrong stamp, and the master sends it the list
again.
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
"""The least stamp of a list. Lower ones stand for none: -1 of producers, -2 of consumers."""

_ADDED = 1 << 20
"""Exceeds all numbers that are added to stamps, which are milliseconds: this is a quarter of an
hour."""

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
    """Rewrites addresses in the messages of all connections of one listener. `tls`: the gateway
    connects to brokers by TLS."""

    services: Services
    tls: bool = False
    _added: int = 0  # to stamps; 0: no list was sent yet

    def change_request(self, method: int, message: Any) -> None:
        """Rewrite a client's message to a server, in place. Raises `PeerError` if an address in it
        is malformed."""
        match method:
            case methods.REGISTER_PRODUCER | methods.BEAT_PRODUCER:
                message.brokerCheckSum = self._master_stamp(message.brokerCheckSum)
            case methods.REGISTER_BALANCED | methods.BEAT_BALANCED:
                if message.HasField("subRepInfo"):
                    report = message.subRepInfo
                    report.brokerConfigId = self._master_stamp(report.brokerConfigId)
            case methods.FIND_PARTITIONS:
                message.brokerConfigId = self._master_stamp(message.brokerConfigId)
            case methods.REGISTER_CONSUMER:
                self._subscriptions(message.subscribeInfo, self._broker_address)
            case methods.BEAT_CONSUMER:
                self._subscriptions(message.subscribeInfo, self._broker_address)
                if message.HasField("event"):
                    self._subscriptions(message.event.subscribeInfo, self._broker_address)
            case methods.BEAT_PARTITIONS:
                infos = message.partitionInfo
                infos[:] = [partition(info, self._broker_address) for info in infos]

    def leaves(self, message: Any) -> bool:
        """Return whether a reply with messages can be forwarded unchanged, because it reports
        success and its text has no broker address."""
        return bool(message.success and message.errMsg == self.services.clean(message.errMsg))

    def change_reply(self, method: int, message: Any) -> None:
        """Rewrite a server's message to a client, in place. Raises `PeerError` if an address in it
        is malformed."""
        if method in _LISTS:
            self._tell_brokers(message, *_LISTS[method])
        elif method == methods.BEAT_CONSUMER and message.HasField("event"):
            self._subscriptions(message.event.subscribeInfo, self._gateway_address)
        elif method == methods.BEAT_PARTITIONS:
            infos = message.failureInfo
            infos[:] = [failure(info, self._gateway_address) for info in infos]
        # The text of a receipt is the message's number.
        if not (method == methods.SEND_MESSAGE and message.errMsg.isdigit()):
            message.errMsg = self.services.clean(message.errMsg)

    def _tell_brokers(self, message: Any, field: str, stamp: str) -> None:
        infos = getattr(message, field)
        if infos:
            texts = [
                broker_text(id, self.services.advertise_node(id, broker))
                for id, broker in brokers(list(infos), tls=self.tls)
            ]
            self._added = 1 + zlib.crc32("\n".join(texts).encode()) % (_ADDED - 1)
            infos[:] = texts
        if message.HasField(stamp) and getattr(message, stamp) >= LEAST_STAMP:
            setattr(message, stamp, min(_LARGEST, getattr(message, stamp) + self._added))

    def _master_stamp(self, stamp: int) -> int:
        """Return the stamp that a master knows, given the one that a client shows."""
        return max(LEAST_STAMP, stamp - self._added) if stamp >= LEAST_STAMP else stamp

    def _subscriptions(self, infos: Any, towards: Towards) -> None:
        infos[:] = [subscribed(info, towards) for info in infos]

    def _broker_address(self, id: int, _: str) -> Address | None:
        """Return the address of a broker; None if it is unknown."""
        return self.services.broker(id)

    def _gateway_address(self, id: int, place: str) -> Address:
        """Return the address at which clients reach a broker. The address of an unknown broker is
        taken from the text `place`. Raises `PeerError` if it has none."""
        broker = self.services.broker(id)
        if broker is None:
            broker = address_of(place, tls=self.tls)
        return self.services.advertise_node(id, broker)
