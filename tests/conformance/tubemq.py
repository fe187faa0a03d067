"""TubeMQ in the battery: requests with an account pass, and receipts; replies that bring messages
are read while they pass. The blocks of other frames stop, and those that have come whole stop
together."""

from __future__ import annotations

import struct
from typing import Any

from gateway.wire.account import Account, Action
from gateway.wire.subject import NOBODY
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.envelopes import parsed, read_reply, read_request, succeeded, varint
from gateway.wire.tubemq.frames import BLOCK, FIRST, HEAD, MOST_BLOCKS, SIZE, TOKEN, whole
from gateway.wire.tubemq.in_flight import Asked, InFlight
from gateway.wire.tubemq.to_broker import ToBrokerScanner, use_of
from gateway.wire.tubemq.to_client import LONGEST_RECEIPT, ToClientScanner, lead_of
from tests.playbooks_tubemq.script import TubeServices, ask, request_of, tell
from tests.unit.wire.tubemq.frames import in_blocks, vectors

from .battery import Frame, Lie, Sample, Spec, Subject

LARGEST_BLOCK = 1 << 20
GOT = 8
"""The serial number of a request for messages, while all others are of messages that were sent."""


# -- what is driven --------------------------------------------------------------------------------


class Answered(InFlight):
    """Each request is answered at once."""

    def __setitem__(self, serial: int, asked: Asked) -> None:
        """Forget a request."""


class Unanswered(InFlight):
    """A request waits for each reply. `sent`, `got`: what has been asked for."""

    def __init__(self, sent: Asked, got: Asked) -> None:
        self._sent, self._got = sent, got

    def get(self, serial: int, default: Any = None) -> Any:
        """Return the request with this serial number."""
        return self._got if serial == GOT else self._sent

    def __delitem__(self, serial: int) -> None:
        """Keep it."""

    def pop(self, serial: int, default: Any = None) -> Any:
        """Return the request with this serial number, and keep it."""
        return self.get(serial)


def _asked(method: int, account: Account) -> Asked:
    return Asked(method, NOBODY, account, 1.0, None, None)


def _accounts() -> dict[str, Account]:
    return {"sent": Account(Action.PRODUCE), "got": Account(Action.CONSUME)}


def _requests() -> Subject:
    accounts = _accounts()
    scanner = ToBrokerScanner(LARGEST_BLOCK, Answered())
    for data in KINDS:
        frame = whole(data)
        request = read_request(frame.envelope)
        number = request.body.method
        message: Any = parsed(m.METHODS[number].request(), request.body.request)
        use = use_of(request, message)
        assert use is not None
        name = "sent" if number == m.SEND_MESSAGE else "got"
        scanner.learn(use, _asked(number, accounts[name]))
    return Subject(scanner, accounts)


def _replies() -> Subject:
    accounts, services = _accounts(), TubeServices()
    sent, got = accounts["sent"], accounts["got"]
    in_flight = Unanswered(_asked(m.SEND_MESSAGE, sent), _asked(m.GET_MESSAGES, got))
    scanner = ToClientScanner(LARGEST_BLOCK, in_flight, services)
    reply = read_reply(whole(_bring(b"x")).envelope)
    assert reply.body is not None
    scanner.lead = lead_of(parsed(m.METHODS[m.GET_MESSAGES].reply(), reply.body.data))
    return Subject(scanner, accounts)


# -- samples ---------------------------------------------------------------------------------------


def _send(
    size: int, partition: int = 1, serial: int = 7, topic: str = "demo", **more: Any
) -> bytes:
    fields: dict[str, Any] = {"clientId": "p", "topicName": topic, "partitionId": partition}
    fields |= {"data": b"x" * size, "flag": 0, "checkSum": -1, "sentAddr": 1}
    return ask(m.SEND_MESSAGE, serial, **(fields | more))


def _get(group: str = "g", serial: int = 7) -> bytes:
    fields: dict[str, Any] = {"clientId": "c", "partitionId": 1, "groupName": group}
    return ask(m.GET_MESSAGES, serial, **fields, topicName="demo", lastPackConsumed=True)


def _receipt(id: int, serial: int = 7, **more: Any) -> bytes:
    fields: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": str(id), "messageId": id}
    return tell(m.SEND_MESSAGE, serial, **fields, **more)


def _bring(*payloads: bytes, serial: int = GOT, **more: Any) -> bytes:
    found = [
        {"messageId": 1 << 7 * (place % 9), "checkSum": -place, "payLoadData": it, "flag": place}
        for place, it in enumerate(payloads)
    ]
    fields: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "OK!", "messages": found}
    return tell(m.GET_MESSAGES, serial, **fields, **more)


def _brings(data: bytes, *payloads: bytes) -> Frame:
    size = sum(map(len, payloads))
    return Frame(data, account="got", messages=len(payloads), counted=size)


def _brought(*payloads: bytes, **more: Any) -> Frame:
    return _brings(_bring(*payloads, **more), *payloads)


_OK = b"\x08\x01\x10\xc8\x01\x1a\x03OK!"
"""The beginning of a message that brings messages."""


def _message(*fields: bytes) -> bytes:
    """Return one of these."""
    data = b"".join(fields)
    return b"\x22" + varint(len(data)) + data


def _payload(data: bytes) -> bytes:
    return b"\x1a" + varint(len(data)) + data


_ID_0, _SUM, _FLAG = b"\x08\x00", b"\x10\x00", b"\x20\x00"

_SMALL = _message(_ID_0, _SUM, _payload(b"x"), _FLAG)


def _odd(data: bytes) -> bytes:
    """Return a reply with this message behind its text."""
    return succeeded(GOT, m.GET_MESSAGES, _OK + data)


KINDS = (_send(100), _get())


def _receipt_of_one() -> Frame:
    return _passing(_receipt(77, requireAuth=False))


def _sent(size: int, **more: Any) -> Frame:
    return Frame(_send(size, **more), account="sent", messages=1, counted=size)


def _passing(data: bytes) -> Frame:
    return Frame(data, account="sent", receipts=1)


def _alone(data: bytes) -> Frame:
    return Frame(data, stop=True)


def _stops(*blocks: bytes) -> tuple[Frame, ...]:
    """Return the stop frames of one frame with these blocks."""
    first, *others = blocks
    head = HEAD.pack(TOKEN, 7, len(blocks)) + struct.pack(">I", len(first))
    data = [head + first, *(struct.pack(">I", len(it)) + it for it in others)]
    return tuple(Frame(it, stop=True) for it in data)


def _said(*, is_request: bool) -> Sample:
    """Return what real peers say: of that only a receipt passes."""
    found = [it for it in vectors() if it.is_request is is_request]
    frames = [
        it
        for vector in found
        for it in (
            (_passing(vector.frame),)
            if vector.name == "sendMessageP2B" and not is_request
            else _stops(*in_blocks(vector.frame))
        )
    ]
    return Sample("what real peers say", tuple(frames))


_HUGE = HEAD.pack(TOKEN, 7, 1) + struct.pack(">I", LARGEST_BLOCK)

SAMPLES = (
    Sample("nothing", ()),
    Sample("blocks of one byte", _stops(*[b"x"] * 20)),
    Sample("empty blocks", _stops(b"", b"", b"x", b"")),
    Sample("full blocks", _stops(*[bytes(8192)] * 3, b"rest")),
    Sample("a large block", _stops(bytes(200_000), bytes(70_000))),
    Sample("the most blocks", _stops(*[b""] * MOST_BLOCKS)),
    Sample("what has begun", (*_stops(b"a", b"b"), Frame(_HUGE, stop=True, absent=LARGEST_BLOCK))),
)

REQUESTS = (
    _said(is_request=True),
    Sample("messages of all lengths", tuple(map(_sent, (0, 1, 100, 127, 128, 300, 8000)))),
    Sample("messages in several blocks", tuple(map(_sent, (8192, 16_200, 70_000)))),
    Sample(
        "borders of blocks within and before what is behind a message",
        tuple(_sent(2 * BLOCK - at, msgType="t" * 20) for at in range(60, 190, 5)),
    ),
    Sample("partitions in turn", (_sent(9), _sent(9, partition=1 << 20, serial=-9)) * 3),
    Sample(
        "texts behind the message",
        (
            _sent(50, partition=2, msgType="t", msgTime="202611270900"),
            _sent(20_000, msgType="t" * 200),
            _sent(50, msgTime="u"),
        ),
    ),
    Sample("requests for messages", (Frame(_get()), Frame(_get(serial=9)), _alone(_get("h")))),
    Sample(
        "other uses and fields",
        (
            _alone(_send(20, topicName="other")),
            _sent(20),
            _alone(_send(20, clientId="q")),
            _sent(20, msgType="é"),
            _sent(20_000, authInfo={"visitAuthorizedToken": 1}),
        ),
    ),
)

ANSWERS = (
    _said(is_request=False),
    Sample(
        "receipts",
        tuple(
            _passing(
                _receipt(
                    4600743810514145280 + id, appendTime=1796083200000 + id, appendOffset=28_028
                )
            )
            for id in range(5)
        ),
    ),
    Sample("short receipts", (_passing(_receipt(10, requireAuth=False)),) * 3),
    Sample(
        "almost receipts",
        (
            _alone(_receipt(77, requireAuth=True)),
            _alone(_receipt(77, serial=GOT, requireAuth=False)),
            _alone(tell(m.SEND_MESSAGE, 7, success=True, errCode=200, errMsg="no", messageId=77)),
        ),
    ),
)

BROUGHT = (
    Sample("messages of all lengths", (_brought(*map(bytes, (0, 1, 100, 127, 128, 300, 5000))),)),
    Sample(
        "numbers behind them",
        (
            _brought(b"a", b"bc", currOffset=28_000, currDataDlt=-1, maxOffset=1 << 40),
            _brought(b"a", currOffset=-2, requireSlow=True, minLimitTime=0, escFlowCtrl=False),
        ),
    ),
    Sample("one after another", (_brought(b"abc"), _receipt_of_one(), _brought(b"x" * 200)) * 3),
    Sample("messages in many blocks", (_brought(*[b"y" * 1000] * 40), _brought(bytes(BLOCK * 3)))),
    Sample(
        "borders of blocks at each place of a message",
        tuple(_brought(bytes(BLOCK - at), b"12345") for at in range(45, 70, 3)),
    ),
    Sample(
        "written otherwise",
        (
            _brings(_odd(_message(_FLAG, _payload(b"xy"), _SUM, _ID_0)), b"xy"),
            _brings(_odd(b"\x22\x89\x00" + _SMALL[2:] + b"\x29" + b"8" * 8), b"x"),
            _brings(_odd(_SMALL + b"\xf5\x01abcd\xfa\x01\x03abc" + _SMALL), b"x", b"x"),
            _brings(_odd(_message(_ID_0, _payload(b"a"), _SUM, _FLAG, _payload(b"bc"))), b"bc"),
            _brings(_odd(_message(_SMALL[2:], b"\x35abcd", b"\x4a\x02ab", b"\x4a\x00")), b"x"),
            _brings(_odd(_message(_SMALL[2:], b"\x25abcd") + b"\x20\x01"), b"x"),
        ),
    ),
    Sample(
        "almost these",
        (
            _alone(_bring(b"x", serial=7)),
            _alone(tell(m.GET_MESSAGES, GOT, success=True, errCode=200, errMsg="OK")),
            _alone(tell(m.GET_MESSAGES, GOT, success=False, errCode=404, errMsg="none")),
            _alone(_bring()),
        ),
    ),
)


# -- lies ------------------------------------------------------------------------------------------


def _head(token: int, blocks: int) -> bytes:
    return struct.pack(">IiIi", token, 7, blocks, 5) + b"12345"


LIES = (
    Lie("another token", _head(TOKEN - 1, 1)),
    Lie("no blocks", _head(TOKEN, 0)),
    Lie("too many blocks", _head(TOKEN, MOST_BLOCKS + 1)),
    Lie("less than no blocks", _head(TOKEN, 2**32 - 1)),
    Lie("a block that is too large", HEAD.pack(TOKEN, 7, 1) + struct.pack(">I", LARGEST_BLOCK + 1)),
    Lie("a block of less than nothing", HEAD.pack(TOKEN, 7, 1) + b"\xff" * 4),
)


def _other_block(data: bytes) -> bytes:
    """Return a reply whose second block says that it has one byte less."""
    at = FIRST + BLOCK
    return data[:at] + SIZE.pack(SIZE.unpack_from(data, at)[0] - 1) + data[at + SIZE.size :]


_WIDE = 20_000


def _wide(behind: bytes) -> bytes:
    """Return a message to send in several blocks, with this behind all else."""
    message = m.METHODS[m.SEND_MESSAGE].request(
        clientId="p", topicName="demo", partitionId=1, data=bytes(_WIDE), flag=0, checkSum=-1,
        sentAddr=1,
    )  # fmt: skip
    return request_of(m.SEND_MESSAGE, message.SerializeToString() + behind, 7)


ENDS = (
    Lie("another topic behind the message", _wide(b"\x12\x05other")),
    Lie("another client by a tag of 33 bits", _wide(b"\x8a\x80\x80\x80\x10\x01q")),
    Lie("another partition", _wide(b"\x18\x02")),
    Lie("a group behind the message", _wide(b"\x5b\x5c")),
    Lie("half a number", _wide(b"\x58\x80")),
    Lie("a text that is too long", _wide(b"\x5a\x03ab")),
    Lie("a filter that is no text", _wide(b"\x42\x02\xff\xfe")),
    Lie("blocks that are not full", _other_block(_wide(b""))),
)
"""Messages of several blocks that begin as usual, and then name something else."""


WRONG = (
    Lie("a block that is not full", _other_block(_bring(bytes(BLOCK), b"x"))),
    Lie("another text", _odd(_SMALL + b"\x1a\x02no")),
    Lie("another text by a tag of 33 bits", _odd(_SMALL + b"\x9a\x80\x80\x80\x10\x02no")),
    Lie("no success after all", _odd(_SMALL + b"\x08\x00")),
    Lie("a message without a flag", _odd(_message(_ID_0, _SUM, _payload(b"x")))),
    Lie("a message of nothing", _odd(_message())),
    Lie("a payload that is longer than its message", _odd(_SMALL.replace(b"\x01x", b"\x04x"))),
    Lie("a message that is longer than the reply", _odd(b"\x22\x0a" + _SMALL[2:])),
    Lie("a number that is longer than its message", _odd(_SMALL[:-1] + b"\xff")),
    Lie("a number without an end", _odd(_SMALL + b"\x28" + b"\xff" * 10 + b"\x01")),
    Lie("a field without a number", _odd(_SMALL + b"\x00\x01")),
    Lie("a group", _odd(_SMALL + b"\x5b\x5c")),
    Lie("half a number", _odd(_SMALL + b"\x28\x80")),
)
"""Replies that begin like one that was judged, and then break off its form."""


# -- specs -----------------------------------------------------------------------------------------


def _split(stopped: bytes) -> list[int]:
    """Return the lengths of blocks that stopped together, of which the first has a frame's head."""
    at = HEAD.size if stopped.startswith(HEAD.pack(TOKEN, 7, 1)[:4]) else 0
    found, begin = [], 0
    while at < len(stopped):
        at += 4 + int.from_bytes(stopped[at : at + 4])
        found.append(at - begin)
        begin = at
    return found


class BlockSpec(Spec):
    """A spec whose stop frames may be parts of a frame, which stand in no other order."""

    def frames(self, longest: int) -> list[Frame]:
        """See `Spec`: frames of one block."""
        found = super().frames(longest)
        return [it for it in found if it.data.startswith(b"\x00\x00\x00\x01", 8)]


def _reply_specs() -> tuple[Spec, ...]:
    told = (("", SAMPLES + ANSWERS + BROUGHT, LIES), (" that go on otherwise", BROUGHT[:2], WRONG))
    return tuple(
        BlockSpec(
            f"tubemq replies{name}",
            _replies,
            samples,
            lies,
            limits=False,
            carry_bound=FIRST + LONGEST_RECEIPT,
            reads=True,
            split=_split,
        )
        for name, samples, lies in told
    )


SPECS = (
    BlockSpec(
        "tubemq",
        _requests,
        SAMPLES + REQUESTS,
        LIES + ENDS,
        limits=False,
        carry_bound=FIRST + BLOCK,
        reads=True,
        split=_split,
    ),
    *_reply_specs(),
)
