"""The context that the pairs of one listener share, and the client of one pair."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Self

from gateway.wire.address import Address
from gateway.wire.admission import BaseClient
from gateway.wire.budget import Budget, Quota
from gateway.wire.contract import Credential, Denial, Principal
from gateway.wire.plugin import EntrySettings, FrameBounds, Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandConnect
from gateway.wire.pulsar.addresses import AddressRewriter
from gateway.wire.pulsar.commands import encode
from gateway.wire.pulsar.counts import Suspects
from gateway.wire.pulsar.owners import TransactionOwners
from gateway.wire.pulsar.rows import Commands
from gateway.wire.pulsar.send_errors import CLIENTS
from gateway.wire.pulsar.topics import named
from gateway.wire.subject import Subject


@dataclass(frozen=True, slots=True)
class Bounds(FrameBounds):
    """Bounds of one connection. They are generous, and keep one client from using up all memory.

    For the inherited settings: Pulsar's own default for frames is 5 MiB, and a PRODUCER carries a
    schema. Brokers put topics into paths of metadata stores, where some hundred characters are
    usual; patterns, which Java looks up as if they were topics, are longer. `handles`: producers
    and consumers; `handle_names`: characters of their topics and subscriptions, which are kept
    three times. `lookups`: lookups without a response; the Java client allows itself 5,000.
    `lookup_bytes`: bytes of their frames, which are kept in case of a redirect; 5,000 have less
    than a megabyte. `delayed`, `delayed_bytes`: number and bytes of the frames that rate limits
    delay; as for lookups. `rounds`: frames of a broker until CONNECTED; SASL needs a handful.
    """

    handles: int = 20_000
    handle_names: int = 4 * 1024 * 1024
    lookups: int = 5_000
    lookup_bytes: int = 4 * 1024 * 1024
    delayed: int = 5_000
    delayed_bytes: int = 4 * 1024 * 1024
    rounds: int = 10


def draw_first_request() -> int:
    """Return a random id from 2^62 to 2^62 + 2^61. No client reaches such an id by counting, or
    guesses it."""
    return (1 << 62) + secrets.randbits(61)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerContext(EntrySettings):
    """The settings of one listener, with those that only Pulsar has.

    `commands`: the decision for each command; see `table`. `first_request`: draws the first id of
    a connection's requests to the broker. `suspects`: clients that have stated wrong counts; see
    `counts`. `owners`: of transactions.
    """

    commands: Commands
    bounds: Bounds = Bounds()
    first_request: Callable[[], int] = draw_first_request
    suspects: Suspects = field(default_factory=Suspects)
    owners: TransactionOwners = field(default_factory=TransactionOwners)

    @classmethod
    def of(cls, settings: EntrySettings, commands: Commands) -> Self:
        """Return the context of a listener. `settings`: the listener's settings that all protocols
        have. `commands`: the decision for each command."""
        values = {each.name: getattr(settings, each.name) for each in fields(EntrySettings)}
        values["bounds"] = Bounds(**asdict(settings.bounds))
        return cls(commands=commands, **values)

    @property
    def rewriter(self) -> AddressRewriter:
        """Return the object that rewrites broker addresses for this listener's clients."""
        return AddressRewriter(self.services, self.bounds.text, self.tls, self.brokers_tls)


class Client(BaseClient):
    """The client of one connection.

    `connect`: its CONNECT with its newest credential; a copy that is decoded from the kept bytes,
    since a decoded one would take a kilobyte for as long as the connection lasts. `credential`: the
    newest credential, its method by name. `vouched`: a trusted proxy stated the principal, and the
    credential, if any, is what the client showed that proxy. `challenged`: the gateway has asked
    for a newer credential; `checking`: the newer one is being verified. `shown_until`: expiry of
    the gateway's own credential that the broker was shown. `takes_refusals`: see `send_errors`.
    """

    __slots__ = (
        "_connect",
        "challenged",
        "checking",
        "credential",
        "principal",
        "shown_until",
        "takes_refusals",
        "vouched",
    )

    def __init__(
        self,
        connect: CommandConnect,
        principal: Principal,
        credential: Credential,
        subject: Subject,
        *,
        vouched: bool = False,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(subject, Quota(budget or Budget(), subject.host or ""))
        self.principal = principal
        self.credential = credential
        self.takes_refusals = self.library.startswith(CLIENTS)
        self.vouched = vouched
        self.challenged = False
        self.checking = False
        self.shown_until: float | None = None
        self.connect = connect

    @property
    def connect(self) -> CommandConnect:
        connect = CommandConnect()
        self._recall(connect)
        return connect

    @connect.setter
    def connect(self, connect: CommandConnect) -> None:
        """Keep a CONNECT without its credential, because `credential` has the current one. The
        credential's field stays present, but empty, because brokers may require it."""
        kept = CommandConnect()
        kept.MergeFrom(connect)
        if kept.HasField("auth_data"):
            kept.auth_data = b""
        if self.vouched:
            kept.ClearField("original_auth_data")
        self._connect = kept.SerializePartialToString()

    def _recall(self, connect: CommandConnect) -> None:
        """Write the client's CONNECT into an empty one."""
        connect.MergeFromString(self._connect)
        if connect.HasField("auth_data") and not self.vouched:
            connect.auth_data = self.credential.data

    @property
    def size(self) -> int:
        """Return how many bytes of memory the client's CONNECT and credential take."""
        return len(self._connect) + len(self.credential.data)

    @property
    def library(self) -> str:
        """Return the name and version that the client states for its library."""
        return self.subject.library or ""

    def about(self, topic: str, subscription: str | None = None) -> Subject:
        """Return a subject with this client and this topic. `subscription`: the subscription, if
        the client is a consumer of the topic. The topic's name must have passed
        `requests.check_names`."""
        name = named(topic)
        assert name is not None
        return self.subject.about(name, subscription)

    def show(self, credential: Credential) -> bool:
        """Keep the client's newer credential, to present it on later connections to brokers. Return
        False if the memory budget has too few free bytes."""
        before = self.size
        connect = self.connect
        _prove(connect, credential)
        self.credential = credential
        self.connect = connect
        more = self.size - before
        if more > 0 and not self.quota.fits(more):
            return False
        self.quota.take(more)
        return True

    def greeting(
        self, listener: ListenerContext, *, side: bool = False, through: Address | None = None
    ) -> bytes | Denial:
        """Return the CONNECT that opens a broker connection for this client; a denial if the
        gateway has no credential of its own.

        The client's version, protocol version, flags and unknown fields are kept. In the modes in
        which the gateway verifies clients, the credential is the gateway's own, and
        `original_principal` names the client. `side`: the CONNECT is for a side connection, on
        which the gateway itself responds to challenges; in *verify* it does so on every connection.
        `through`: the broker's name at the upstream gateway, if the connection is to a gateway.
        """
        command = BaseCommand(type=BaseCommand.CONNECT)
        command.connect.SetInParent()  # even if nothing is in it
        self._recall(command.connect)
        command.connect.ClearField("proxy_to_broker_url")
        if through is not None:
            command.connect.proxy_to_broker_url = str(through)
        if side or listener.mode is Mode.VERIFY:  # the gateway itself responds to challenges
            command.connect.feature_flags.supports_auth_refresh = True
        if listener.mode is not Mode.PASS_THROUGH:
            ours = listener.services.credential()
            if isinstance(ours, Denial):
                return ours
            if not side:
                self.shown_until = ours.expires_at
            self._speak_for(command.connect, ours, listener)
        return encode(command)

    def _speak_for(
        self, connect: CommandConnect, ours: Credential, listener: ListenerContext
    ) -> None:
        _prove(connect, ours)
        connect.original_principal = self.principal.name
        if not self.vouched:
            connect.proxy_version = listener.version
        connect.ClearField("original_auth_data")
        connect.ClearField("original_auth_method")
        if listener.mode is Mode.VERIFY_AND_FORWARD and self.credential.data:
            # The field is a string: Pulsar's own proxy, too, sends text credentials only.
            connect.original_auth_data = self.credential.data.decode("utf-8", "replace")
            connect.original_auth_method = self.credential.method

    def proof(self, listener: ListenerContext, *, opened: bool) -> Credential | Denial:
        """Return the credential for the response to a broker's AUTH_CHALLENGE.

        In *pass-through* it is the client's. Otherwise it is the gateway's own, with one exception:
        in *verify-and-forward*, once the connection is open (`opened`), brokers ask for the
        forwarded credential of the client.
        """
        if listener.mode is Mode.PASS_THROUGH:
            return self.credential
        if listener.mode is Mode.VERIFY_AND_FORWARD and opened:
            return self.credential
        return listener.services.credential()


def _prove(connect: CommandConnect, credential: Credential) -> None:
    connect.ClearField("auth_method")  # a number of old clients, which the name replaced
    connect.auth_method_name = credential.method
    connect.auth_data = credential.data
