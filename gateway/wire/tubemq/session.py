"""The session of one connection; see `contract.Session`.

Each request is read, judged and written anew, and so is each reply, so what a server reads is what
was judged. Requests and replies belong together by their serial numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Account, Action, Right
from gateway.wire.contract import (
    DROP,
    Denial,
    Direction,
    Discard,
    Drop,
    Effects,
    End,
    EndReason,
    Inject,
    Later,
    Postpone,
    Refusal,
    Replace,
    Scanner,
)
from gateway.wire.plugin import EntrySettings
from gateway.wire.services import Undecided
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Caller, TopicName
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.asking import STANDBY
from gateway.wire.tubemq.assembly import Assembly, Frame
from gateway.wire.tubemq.context import Client
from gateway.wire.tubemq.errors import ErrorCode
from gateway.wire.tubemq.frames import (
    Reply,
    Request,
    failed,
    framed,
    parsed,
    read_reply,
    read_request,
    succeeded,
    written,
)
from gateway.wire.tubemq.hiding import Hiding
from gateway.wire.tubemq.methods import METHODS, Method
from gateway.wire.tubemq.names import is_group, read_topic
from gateway.wire.tubemq.scanning import BlockScanner

IDLE = 700.0
"""Seconds without a byte after which a pair ends: clients in Java drop a broker that they do not
use after ten minutes."""

MOST = 10_000
"""Requests of one connection without a reply. More are not read before some have theirs."""

FULL_WAIT = 0.05
"""Seconds until a client is read again that has too many of them."""

ACCOUNT_SIZE = 2_000
"""Bytes of the budget that an open account takes, with the name of a group."""

SWEPT = 60.0
"""Seconds between two looks for requests that nobody answers any more."""

LONGEST_WAIT = 60.0
"""Seconds for which a consumer is told to wait at most; then it asks again."""

LONGEST_MS = 600_000
"""Milliseconds for which a server may take, as far as they are believed: clients have 10,000."""

_FULL = Denial(Refusal.TOO_MANY, "no room for another topic")
_NO_NAME = Denial(Refusal.NAME, "no topic has this name")
_UNDECIDED = Denial(Refusal.UNAUTHORIZED, "nobody has said yet who may do this")


class Asked(NamedTuple):
    """A request that waits for its reply. `account`: of what it sends, or asks for. `until`: when
    nobody waits for the reply any more."""

    method: int
    account: Account | None
    until: float


class TubeSession:
    """See `contract.Session`."""

    __slots__ = (
        "_accounts",
        "_asked",
        "_assemblies",
        "_client",
        "_hiding",
        "_is_leaving",
        "_scanners",
        "_services",
        "_settings",
        "_sweeps",
        "stopwatch",
    )

    idle = IDLE
    holding = None
    expires_at = None
    moves_at = None
    may_move = True

    def __init__(self, settings: EntrySettings, hiding: Hiding, client: Client) -> None:
        self._settings = settings
        self._services = settings.services
        self._hiding = hiding
        self._client = client
        largest = (settings.bounds.collected, settings.bounds.all_collected)
        self._scanners = (BlockScanner(largest[0]), BlockScanner(largest[1]))
        self._assemblies = tuple(Assembly(it, client.allotment) for it in largest)
        self._asked: dict[int, Asked] = {}
        self._accounts: dict[tuple[Action, str, str], Account] = {}
        self._is_leaving = self._sweeps = False
        self.stopwatch: Stopwatch | None = None

    @property
    def caller(self) -> Caller:
        """See `contract.Session`."""
        return self._client.subject.caller

    @property
    def scanners(self) -> tuple[Scanner, Scanner]:
        """See `contract.Session`."""
        return self._scanners

    @property
    def collected_bound(self) -> int:
        """See `contract.Session`."""
        return self._settings.bounds.all_collected

    def opened(self, now: float) -> Effects:
        """See `contract.Session`."""
        return ()

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """See `contract.Session`."""
        if direction is Direction.TO_BROKER:
            waits = math.inf if self._is_leaving else now + FULL_WAIT
            if self._is_leaving or len(self._asked) >= MOST:
                self._scanners[direction].offer_again()
                return (Postpone(waits),)
        whole = self._assemblies[direction].take(frame)
        if whole is None:
            return DROP
        if direction is Direction.TO_CLIENT:
            return self._answered(whole)
        return self._request(whole, now)

    # -- requests ----------------------------------------------------------------------------

    def _request(self, frame: Frame, now: float) -> Effects:
        request = read_request(frame.envelope)
        number = request.body.method
        method = METHODS.get(number)
        if method is None or method.of_master != (self._client.node is None):
            return self._own(failed(frame.serial, f"{methods.name_of(number)} is not offered here"))
        message: Any = parsed(method.request(), request.body.request)
        found = self._judge(number, method, message)
        if isinstance(found, bytes):
            return self._own(succeeded(frame.serial, number, found))
        self._hiding.change_request(number, message)
        request.body.request = message.SerializeToString()
        self._note(frame.serial, request, found, now)
        return (Replace(framed(frame.serial, written(*request))), *self._sweep_later(now))

    def _own(self, reply: bytes) -> Effects:
        return (Drop(), Inject(Direction.TO_CLIENT, reply))

    def _note(self, serial: int, request: Request, account: Account | None, now: float) -> None:
        """Remember a request until it is answered; one without patience never is. Raises
        `PeerError` if another request with this number waits: nobody could tell which of them a
        reply answers, and so where it names brokers."""
        if serial in self._asked:
            raise PeerError(f"a second request {serial}, while the first has no reply")
        patience = min(request.body.timeout, LONGEST_MS) / 1000
        if patience > 0:
            self._asked[serial] = Asked(request.body.method, account, now + 2 * patience)

    def _judge(self, number: int, method: Method, message: Any) -> Account | bytes | None:
        """Return the account of a request that may go on, None if it has none, or the message that
        answers it in place of the server."""
        match number:
            case methods.SEND_MESSAGE:
                return self._judge_send(method, message)
            case methods.GET_MESSAGES | methods.COMMIT | methods.REGISTER_PARTITION:
                return self._judge_consumer(number, method, message)
            case methods.REGISTER_CONSUMER | methods.REGISTER_BALANCED:
                return self._judge_topics(method, message)
        return None

    def _judge_send(self, method: Method, message: Any) -> Account | bytes:
        account = self._account(Action.PRODUCE, message.topicName)
        if isinstance(account, Denial):
            return _refused(method, ErrorCode.UNAUTHORIZED, account.text)
        if account.held and not self._services.wants(account):
            return _refused(method, ErrorCode.OVERFLOW, "above the limit of what may be sent")
        account.count(1)
        account.bytes += len(message.data)
        return account

    def _judge_consumer(self, number: int, method: Method, message: Any) -> Account | bytes | None:
        account = self._account(Action.CONSUME, message.topicName, message.groupName)
        if isinstance(account, Denial):
            return _refused(method, ErrorCode.UNAUTHORIZED, account.text)
        if number != methods.GET_MESSAGES:
            return None
        if account.held and not self._services.wants(account):
            wait = math.ceil(1000 * min(LONGEST_WAIT, self._services.due_in(account)))
            return _refused(
                method,
                ErrorCode.TOO_FAST,
                "above the limit of what may be received",
                minLimitTime=max(1, wait),
            )
        return account

    def _judge_topics(self, method: Method, message: Any) -> bytes | None:
        """Judge the topics to which a group subscribes."""
        for topic in message.topicList:
            refused = self._forbids(Right.CONSUME, read_topic(topic), message.groupName)
            if refused is not None:
                return _refused(method, ErrorCode.GROUP_FORBIDDEN, refused.text)
        return None

    def _account(self, action: Action, topic: str, group: str = "") -> Account | Denial:
        """Return the account of a topic, which its first use opens, or why there is none."""
        account = self._accounts.get((action, topic, group))
        if account is not None:
            return account
        name = read_topic(topic)
        right = Right.PRODUCE if action is Action.PRODUCE else Right.CONSUME
        refused = self._forbids(right, name, group)
        if refused is not None:
            return refused
        assert name is not None
        if not self._client.allotment.fits(ACCOUNT_SIZE):
            return _FULL
        found = self._services.admit(action, self._client.subject.about(name, group or None))
        if isinstance(found, Account):
            self._client.allotment.take(ACCOUNT_SIZE)
            self._accounts[action, topic, group] = found
        return found

    def _forbids(self, right: Right, topic: TopicName | None, group: str) -> Denial | None:
        if topic is None or not is_group(group):
            return _NO_NAME
        if not self._services.guarded:
            return None
        subject = self._client.subject.about(topic, group or None)
        refused = self._services.forbid(right, subject)
        return _UNDECIDED if isinstance(refused, Undecided) else refused

    # -- replies -----------------------------------------------------------------------------

    def _answered(self, frame: Frame) -> Effects:
        asked = self._asked.pop(frame.serial, None)
        if asked is None:
            return DROP  # clients ignore it too
        reply = read_reply(frame.envelope)
        if reply.error is not None:
            return self._failed(frame.serial, reply)
        assert reply.body is not None
        if reply.body.method != asked.method:
            raise PeerError(f"a reply to {methods.name_of(reply.body.method)}, which was not asked")
        message: Any = parsed(METHODS[asked.method].reply(), reply.body.data)
        self._count(asked, message)
        self._hiding.change_reply(asked.method, message)
        reply.body.data = message.SerializeToString()
        data = framed(frame.serial, written(reply.connection, reply.header, reply.body))
        return (Replace(data),)

    def _failed(self, serial: int, reply: Reply) -> Effects:
        """Send on what a server says of its failure, without its address. A master that is not the
        active one ends the connection: the client comes again, and gets another."""
        error = reply.error
        assert error is not None
        if error.exceptionName.endswith(STANDBY):
            return (Drop(), End(EndReason.BROKER_REFUSED, detail="the master is not active"))
        error.stackTrace = self._services.clean(error.stackTrace)
        return (Replace(framed(serial, written(reply.connection, reply.header, error))),)

    def _count(self, asked: Asked, message: Any) -> None:
        account = asked.account
        if account is None:
            return
        if asked.method == methods.SEND_MESSAGE:
            account.receipts += 1
            account.errors += not message.success
        elif message.messages:
            account.count(len(message.messages))
            account.bytes += sum(len(it.payLoadData) for it in message.messages)

    # -- sweeps ------------------------------------------------------------------------------

    def _sweep_later(self, now: float) -> Effects:
        if self._sweeps:
            return ()
        self._sweeps = True
        return (Later(now + SWEPT, self._sweep),)

    def _sweep(self, now: float) -> Effects:
        """Forget requests that servers have dropped."""
        self._sweeps = False
        for serial in [serial for serial, asked in self._asked.items() if asked.until <= now]:
            del self._asked[serial]
        return self._sweep_later(now) if self._asked else ()

    # -- ends --------------------------------------------------------------------------------

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """See `contract.Session`. The next request is judged anew."""
        for key in [key for key, it in self._accounts.items() if it is account]:
            self._release(key)
        return (Discard(account),)

    def expiring(self, now: float) -> Effects:
        """See `contract.Session`."""
        return ()

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`. Take no more requests, and wait for replies to earlier ones."""
        self._is_leaving = True
        return () if any(it.until > now for it in self._asked.values()) else None

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`. The protocol has no frame that answers nothing."""
        return b""

    def close(self) -> bool:
        """See `contract.Session`."""
        for key in list(self._accounts):
            self._release(key)
        self._client.leave()
        return False

    def _release(self, key: tuple[Action, str, str]) -> None:
        self._services.release(self._accounts.pop(key))
        self._client.allotment.give_back(ACCOUNT_SIZE)


def _refused(method: Method, code: ErrorCode, text: str, **more: int) -> bytes:
    """Return the message that answers a request with an error. `more`: other fields."""
    reply: Any = method.reply(errCode=code, errMsg=text, **more)
    if "success" in reply.DESCRIPTOR.fields_by_name:
        reply.success = False
    data: bytes = reply.SerializeToString()
    return data
