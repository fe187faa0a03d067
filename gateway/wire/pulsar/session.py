"""Decides the stop frames of one pair; docs/protocols/states.md has the tables.

Each handler takes a decoded command and its frame, changes the state of this pair, and returns
effects. No handler waits: slow work is a job. Producers and consumers are in `incarnations`, and
lookups in `lookups`.
"""

from __future__ import annotations

from collections.abc import Iterable

from gateway.errors import PeerError
from gateway.wire.account import Account, Action, Right
from gateway.wire.address import Address
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Denial,
    Direction,
    Drop,
    Effect,
    Effects,
    EndReason,
    Forward,
    Hold,
    Holding,
    Inject,
    Refusal,
    Refuse,
    Replace,
    Sliced,
    ViolationError,
    decided,
)
from gateway.wire.counters import ENDLESS
from gateway.wire.plugin import FRAME_PADDING, Mode
from gateway.wire.pulsar import auth_refresh, rights, send_errors
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.commands import (
    MANY_TOPICS,
    NO_REQUEST,
    as_read,
    decode,
    decode_long,
    encode,
    end,
    error,
    kind_of,
    message_of,
)
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.counts import CountChecks
from gateway.wire.pulsar.delays import FULL, Delays
from gateway.wire.pulsar.field_counts import CHECKED_FROM
from gateway.wire.pulsar.frames import HEAD, KNOWN, Kind, kind_name, split
from gateway.wire.pulsar.incarnations import Incarnations
from gateway.wire.pulsar.listings import Listings, id_of
from gateway.wire.pulsar.lookups import Lookups
from gateway.wire.pulsar.metadata import metadata_of
from gateway.wire.pulsar.requests import REQUESTS, check_names, names_in, read_request, refuse
from gateway.wire.pulsar.scanning import scanners
from gateway.wire.pulsar.states import State
from gateway.wire.pulsar.topics import is_coordinator, named
from gateway.wire.pulsar.transactions import NOT_FOUND, TransactionRequests
from gateway.wire.pulsar.undecided import UndecidedCommands
from gateway.wire.services import Undecided
from gateway.wire.slices import Slices
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Caller

GIVEN_UP = 30.05
"""Seconds after which Go and Java have given up on a SEND, by their defaults: 30, and the delay of
timers. If this were longer, given-up frames would use up the limit: half a second more lowers the
clients' rate by 3 %. A client that has not given up yet sends its frames once more."""


MOST_LISTED = 1_000_000
"""Fields of a broker's listing of topics, which nothing but the size of its frame bounds."""


class PulsarSession:
    """See `contract.Session`."""

    __slots__ = (
        "_checks",
        "_client",
        "_delays",
        "_listener",
        "_listings",
        "_lookups",
        "_transactions",
        "_undecided",
        "collected_bound",
        "incarnations",
        "scanners",
        "stopwatch",
    )

    def __init__(
        self,
        listener: ListenerContext,
        client: Client,
        broker: Address | None,
        max_message_size: int = 0,
    ) -> None:
        self._listener = listener
        self._client = client
        self.stopwatch = Stopwatch() if listener.services.timed else None
        self._lookups = Lookups(listener, client)
        self._delays: Delays | None = None  # made when it is needed: idle pairs are many
        self._undecided: UndecidedCommands | None = None
        self._listings: Listings | None = None
        self._transactions: TransactionRequests | None = None
        self.collected_bound = listener.bounds.collected_from(max_message_size + FRAME_PADDING)
        name = client.principal.name or client.subject.host or ""
        bounds = listener.bounds
        self._checks = (
            CountChecks(listener.suspects, name, bounds.fields) if listener.limited else None
        )
        self.scanners = scanners(
            (self._actions(Direction.TO_BROKER), self._actions(Direction.TO_CLIENT)),
            _STRAY,
            bounds.command,
            self._checks,
            collected=self.collected_bound,
            verify=listener.checksums,
        )
        self.incarnations = Incarnations(listener, client, broker, self.scanners, self.stopwatch)

    def _actions(self, direction: Direction) -> bytes:
        listener = self._listener
        return listener.commands.actions(
            direction, unknown_pass=listener.unknown_pass, limited=listener.limited
        )

    @property
    def idle(self) -> float | None:
        """See `contract.Session`. Clients and brokers ping each other."""
        return None

    @property
    def caller(self) -> Caller:
        """See `contract.Session`."""
        return self._client.subject.caller

    @property
    def expires_at(self) -> float | None:
        """See `contract.Session`. Brokers challenge for a forwarded credential by themselves."""
        return self._client.principal.expires_at if self._listener.mode is Mode.VERIFY else None

    @property
    def moves_at(self) -> float | None:
        """See `contract.Session`. Brokers challenge for a client's own credential instead."""
        return self._client.shown_until if self._listener.mode is Mode.VERIFY else None

    @property
    def may_move(self) -> bool:
        """See `contract.Session`."""
        ours = self._listener.services.credential()
        if isinstance(ours, Denial):
            return False
        shown = self._client.shown_until
        return shown is None or ours.expires_at is None or ours.expires_at > shown

    @property
    def is_known(self) -> bool:
        """Return True: a pair is open once the broker has accepted the client; see
        `contract.Session`."""
        return True

    # -- decisions ---------------------------------------------------------------------------

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """See `contract.Session`. A frame goes on as the gateway decoded it: see
        `commands.as_read`."""
        if direction is Direction.TO_CLIENT:
            row = self._listener.commands.rows[direction].get(split(frame)[0])
            if row is not None and row.decide_long is not None:
                return self._in_slices(frame, row.decide_long(self, frame, now))
        command = decode(frame, self._listener.bounds.fields)
        self._mask(command, frame)
        if direction is Direction.TO_BROKER and self._listener.services.guarded:
            rights.remove_claims(kind_of(frame), command)
        read = as_read(command, frame)
        effects = self._check(direction, command, read, now)
        if read is frame:
            return effects
        return tuple(Replace(read) if isinstance(effect, Forward) else effect for effect in effects)

    def _mask(self, command: BaseCommand, frame: bytes) -> None:
        if not self._listener.unknown_pass and kind_of(frame) in KNOWN:
            command.DiscardUnknownFields()

    def _in_slices(self, frame: bytes, slices: Slices[Effects]) -> Effects:
        """Return the effects of a decision. If it takes more than one slice, the frame, and what is
        decoded and changed of it, count in the memory budget until the last one."""
        effects = decided(slices)
        if not isinstance(effects[0], Sliced):
            return effects
        size = 3 * len(frame)
        if not self._client.quota.fits(size):
            raise ViolationError(EndReason.OUT_OF_MEMORY, "no room for a list that takes long")
        self._client.quota.take(size)
        return (Sliced(self._counted(size, slices)),)

    def _counted(self, size: int, slices: Slices[Effects]) -> Slices[Effects]:
        effects = yield from slices
        self._client.quota.give_back(size)
        return effects

    def _check(
        self, direction: Direction, command: BaseCommand, frame: bytes, now: float
    ) -> Effects:
        """Check the names and counts of a client's command, delay it if need be, and decide it."""
        if direction is Direction.TO_CLIENT:
            return self._decide(direction, command, frame, now)
        kind = kind_of(frame)
        names = names_in(kind, command)
        denial = check_names(names, self._listener.bounds.names) if names else None
        if denial is not None:
            return self._refuse(kind, command, denial)
        put_off = self._put_off(kind, command, frame)
        if put_off is not None:
            return put_off
        return self._check_rest(command, frame, now)

    def _put_off(self, kind: int, command: BaseCommand, frame: bytes) -> Effects | None:
        """Refuse a command, or keep it until the client's right to send it is known; None: the
        client may send it now."""
        if not self._listener.services.guarded:
            return None
        kept = self._undecided and self._undecided.follow(command, frame)
        if kept:
            return kept
        verdict = self._without_right(kind, command)
        if verdict is None:
            return None
        if isinstance(verdict, Denial):
            return self._refuse(kind, command, verdict)
        if self._undecided is None:
            again, refuse = self._decide_again, self._refuse_late
            self._undecided = UndecidedCommands(self._listener, self._client, again, refuse)
        return self._undecided.ask(command, frame, verdict)

    def _check_rest(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Decide a command that the client may send."""
        kind = kind_of(frame)
        if kind == Kind.SEND:
            refused = self._check_send(command, frame)
            if refused is not None:
                return refused
        elif self._listener.services.paced or self._delays:
            delayed = self._delayed(command, frame, now)
            if delayed is not None:
                return delayed
        return self._decide(Direction.TO_BROKER, command, frame, now)

    def _without_right(self, kind: int, command: BaseCommand) -> Denial | Undecided | None:
        """Authorize a command: None if the client may send it, else a denial or `Undecided`."""
        for need in rights.needs(kind):
            named_topics = need.topics(message_of(kind, command))
            for number, (topic, subscription) in enumerate(named_topics):
                if number >= rights.MOST_NAMED:
                    return MANY_TOPICS
                verdict = self._forbidden(need.right, topic, subscription)
                if verdict is not None:
                    return verdict
        return None

    def _forbidden(
        self, right: Right, topic: str, subscription: str | None
    ) -> Denial | Undecided | None:
        """Authorize the use of a topic. All clients may look up transaction coordinators."""
        denial = check_names((topic, subscription or ""), self._listener.bounds.names)
        if denial is not None or (right is Right.LOOKUP and is_coordinator(topic)):
            return denial
        return self._listener.services.forbid(right, self._client.about(topic, subscription))

    def _refuse(self, kind: int, command: BaseCommand, denial: Denial) -> Effects:
        if kind in REQUESTS:
            return refuse(kind, read_request(kind, command), denial, self._listener.services)
        return rights.response(kind, command, denial)

    def list_topics(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with a client's request for a list of topics: forward it, or refuse it
        if it asks for the brokers' own topics, or where rights are needed by a pattern that might
        occupy a broker. It waits while another one is under way."""
        kind, refused = kind_of(frame), None
        if self._listener.services.guarded:
            refused = rights.refuse_pattern(kind, command, self._listener.bounds.names)
        refused = refused or rights.refuse_list(kind, command)
        if refused or not self._listener.limited:
            return refused or FORWARD
        if self._listings is None:
            self._listings = Listings(self._listener, self._client)
        asked = self._listings.ask(id_of(message_of(kind, command)), frame, now)
        return self._refuse(kind, command, FULL) if asked is None else asked

    def listed(self, frame: bytes, now: float) -> Slices[Effects]:
        """Return what to do with a broker's list of topics, and forward the client's next request
        for one."""
        kind = kind_of(frame)
        command = yield from decode_long(frame, MOST_LISTED)
        effects = yield from self._filtered(kind, command, frame)
        if kind != Kind.WATCH_TOPIC_UPDATE and self._listings is not None:
            effects = (*effects, *self._listings.answered(id_of(message_of(kind, command)), now))
        return effects

    def _filtered(self, kind: int, command: BaseCommand, frame: bytes) -> Slices[Effects]:
        """Return what to do with a broker's list of topics: forward it without the topics that the
        client may not look up. An update of a watch of which nothing is left is dropped: that a
        hidden topic matches the watch's pattern must not show.

        The rights are those of one moment: a list that takes long is not one of two sets of rules.
        """
        services, rewriter = self._listener.services, self._listener.rewriter
        self._mask(command, frame)
        changed, is_long = False, len(frame) > CHECKED_FROM
        if services.guarded:
            may = services.which(Right.LOOKUP, self._client.subject)

            def may_see(topic: str | bytes) -> bool:
                name = named(topic) if isinstance(topic, str) else None
                return name is not None and may(name)

            changed = yield from rights.filtered(kind, command, may_see)
            if changed and rights.is_empty_update(kind, command):
                return DROP
        if is_long:
            yield
        read = encode(command) if changed else as_read(command, frame)
        shown = rewriter.frame_for_client(command, read)
        return FORWARD if shown is frame else (Replace(shown),)

    def _decide(
        self, direction: Direction, command: BaseCommand, frame: bytes, now: float
    ) -> Effects:
        kind = kind_of(frame)
        row = self._listener.commands.rows[direction].get(kind)
        if row is not None and row.decide is not None:
            return row.decide(self, command, frame, now)
        if kind in KNOWN:
            to_broker = direction is Direction.TO_BROKER
            return FORWARD if to_broker else self._listener.rewriter.forwarded(command, frame)
        return self._unknown(direction, kind)

    def _check_send(self, command: BaseCommand, frame: bytes) -> Effects | None:
        """Check a SEND that stopped: its checksum, and its count if a rule limits messages. Return
        effects if it is refused."""
        send = command.send
        if send.num_messages < 1:
            raise PeerError(f"a SEND of {send.num_messages} messages")
        handle = self.incarnations.handles.producers.get(send.producer_id)
        if handle is None or handle.state is not State.OPEN:
            return None
        account = handle.account
        if self.scanners[0].is_damaged(frame):
            account.damaged += 1
            return (Drop(), Refuse(account, send_errors.damaged(command)))
        if self._checks is not None and account.messages_ceiling < ENDLESS:
            self._checks.check_beginning(frame, 8 + HEAD.unpack_from(frame)[1], len(frame))
            self._checks.compare(account, send.num_messages, metadata_of(frame))
            self.scanners[0].compared()
        return None

    def _unknown(self, direction: Direction, kind: int) -> Effects:
        if self._listener.unknown_pass:
            return FORWARD
        if direction is Direction.TO_CLIENT:
            return DROP
        denial = Denial(Refusal.UNSUPPORTED, f"{kind_name(kind)} is not known to this gateway")
        return end(EndReason.UNKNOWN_COMMAND, denial)

    def error(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's ERROR. That depends on the request to which it
        responds: any request of the client, or a request of the gateway's own."""
        self._lookups.failed(command.error.request_id, now)
        effects = self.incarnations.error(command, frame, now)
        if self._listings is not None:
            effects = (*effects, *self._listings.answered(id_of(command.error), now))
        return effects

    def _decide_again(self, frame: bytes, now: float) -> Iterable[Effect] | Undecided:
        """Decide a frame that was dropped because the client's right was not known."""
        command, kind = decode(frame, self._listener.bounds.fields), kind_of(frame)
        verdict = self._without_right(kind, command)
        if isinstance(verdict, Undecided):
            return verdict
        if isinstance(verdict, Denial):
            effects = self._refuse(kind, command, verdict)
        else:
            effects = self._check_rest(command, frame, now)
        return [_injected(effect, frame) for effect in effects]

    def _refuse_late(self, frame: bytes, denial: Denial) -> Effects:
        return self._refuse(kind_of(frame), decode(frame, self._listener.bounds.fields), denial)

    # -- delayed requests --------------------------------------------------------------------

    def _delayed(self, command: BaseCommand, frame: bytes, now: float) -> Effects | None:
        if self._delays is None:
            self._delays = Delays(self._listener, self._client, self._decide_late)
        return self._delays.ask(kind_of(frame), command, frame, now)

    def _decide_late(self, frame: bytes, now: float) -> Iterable[Effect]:
        """Decide a delayed frame as if it came now: the rules may have changed meanwhile. It was
        dropped, so it is injected to go on."""
        command, kind = decode(frame, self._listener.bounds.fields), kind_of(frame)
        put_off = self._put_off(kind, command, frame)
        if put_off is None:
            put_off = self._decide(Direction.TO_BROKER, command, frame, now)
        return (_injected(effect, frame) for effect in put_off)

    # -- limits, and the end of the gateway --------------------------------------------------

    @property
    def holding(self) -> Holding:
        """See `contract.Session`."""
        return self

    @property
    def given_up(self) -> float:
        """See `contract.Holding`."""
        return GIVEN_UP

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`."""
        return self.scanners[0].following(account, chunk, start, end)

    def delivered(self, now: float) -> Effects | None:
        """See `contract.Holding`."""
        return self.incarnations.delivered(now)

    def reset(self, account: Account) -> Effects | None:
        """See `contract.Holding`."""
        return self.incarnations.reset(account)

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """See `contract.Session`. A close has no text: the next request gets the denial."""
        return self.incarnations.revoke(account, now)

    def opened(self, now: float) -> Effects:
        """See `contract.Session`."""
        return ()

    def expiring(self, now: float) -> Effects:
        """See `contract.Session`."""
        return auth_refresh.ask(self._listener, self._client)

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`."""
        effects, here = self.incarnations.leave(now)
        ending = self._transactions is not None and self._transactions.are_ending
        waits = self._lookups or self._delays or self._undecided or self._listings
        here = here or ending or bool(waits)
        return effects if effects or here else None

    # -- lookups -----------------------------------------------------------------------------

    def lookup(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's LOOKUP; see `lookups.Lookups.ask`."""
        return self._lookups.ask(command, frame, now)

    def lookup_response(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's LOOKUP_RESPONSE; see `lookups.Lookups.answered`."""
        return self._lookups.answered(command, now)

    # -- transactions ------------------------------------------------------------------------

    @property
    def _own_transactions(self) -> TransactionRequests:
        if self._transactions is None:
            self._transactions = TransactionRequests(self._listener, self._client)
        return self._transactions

    def begin_transaction(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's NEW_TXN; see `transactions`."""
        return self._of_transaction(command, frame, self._own_transactions.begin(command.newTxn))

    def transaction_began(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Forward the broker's NEW_TXN_RESPONSE; the client owns the transaction."""
        self._own_transactions.began(command.newTxnResponse)
        return self._listener.rewriter.forwarded(command, frame)

    def extend_transaction(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with a client's request to add something to a transaction."""
        request = message_of(kind_of(frame), command)
        return self._of_transaction(command, frame, self._own_transactions.forbid(request))

    def end_transaction(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Forward the client's END_TXN, and do not let the client be moved to another gateway
        before the response: a client that lost the response would repeat the request, and be
        refused. When all producers and consumers have been moved, END_TXN is dropped."""
        if self.incarnations.have_left:
            return DROP
        return self._of_transaction(command, frame, self._own_transactions.end(command.endTxn))

    def _of_transaction(self, command: BaseCommand, frame: bytes, denial: Denial | None) -> Effects:
        if denial is None:
            return FORWARD
        code = ServerError.TransactionNotFound if denial is NOT_FOUND else None
        return rights.response(kind_of(frame), command, denial, code)

    def transaction_ended(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Forward the broker's END_TXN_RESPONSE; the transaction is over."""
        self._own_transactions.ended(command.endTxnResponse)
        return self._listener.rewriter.forwarded(command, frame)

    # -- identity ----------------------------------------------------------------------------

    def second_connect(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Raise `PeerError` for a CONNECT on an open connection."""
        raise PeerError("a second CONNECT on one connection")

    def second_connected(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Raise `PeerError` for a CONNECTED on an open connection."""
        raise PeerError("a second CONNECTED on one connection")

    def wrong_way(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Raise `PeerError` for a SEND that a broker sent, or a MESSAGE that a client sent. If a
        field in such a command reached beyond the command, a decoder would read on in the
        payload."""
        raise PeerError(f"a {kind_name(kind_of(frame))} from the side that receives them")

    def auth_challenge(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's AUTH_CHALLENGE; see `auth_refresh.challenged`."""
        return auth_refresh.challenged(self._listener, self._client)

    def auth_response(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's AUTH_RESPONSE; see `auth_refresh.responded`."""
        return auth_refresh.responded(self._listener, self._client, command, frame, now)

    def migrated(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with a TOPIC_MIGRATED: forward it with the URL of the other cluster's
        gateway, or withhold it if no such gateway is known."""
        if self._listener.rewriter.lead_to_other_cluster(command):
            return self.incarnations.migrated(command, frame, now)
        return self.incarnations.withhold_migration(command)

    # -- the end -----------------------------------------------------------------------------

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`. Only a client at fault gets a frame; others just reconnect. A
        client whose large SEND was damaged learns that: it sends an intact copy again, and fails
        the message if its copy is damaged."""
        damaged = self.scanners[0].damaged
        if damaged and reason is EndReason.CLIENT_VIOLATION:
            return send_errors.damaged(decode(damaged))
        refusal = _TOLD.get(reason)
        return b"" if refusal is None else error(NO_REQUEST, Denial(refusal, detail))

    def close(self) -> bool:
        """See `contract.Session`."""
        self._lookups.clear()
        for waiting in (self._delays, self._undecided, self._listings):
            if waiting is not None:
                waiting.clear()
        if self.incarnations.close():
            return True
        self._client.leave()
        return False


def _injected(effect: Effect, frame: bytes) -> Effect:
    """Return the effect that does the same for a frame that was dropped before."""
    match effect:
        case Forward():
            return Inject(Direction.TO_BROKER, frame)
        case Replace(data):
            return Inject(Direction.TO_BROKER, data)
        case Hold(account):
            return Hold(account, frame)
        case _:
            return effect


_STRAY = Account(Action.CONSUME)
"""Counts the MESSAGEs of consumers that were closed meanwhile; it has no topic and no limits."""

_TOLD = {
    EndReason.CLIENT_VIOLATION: Refusal.UNSUPPORTED,
    EndReason.FRAME_TOO_LARGE: Refusal.UNSUPPORTED,
    EndReason.MISCOUNTED: Refusal.UNSUPPORTED,
    EndReason.CREDENTIAL_EXPIRED: Refusal.UNAUTHENTICATED,
}
