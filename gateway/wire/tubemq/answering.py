"""Synthetic replies to requests that the gateway refuses."""

from __future__ import annotations

import math
from typing import Any

from gateway.wire.contract import Denial
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.errors import ErrorCode
from gateway.wire.tubemq.methods import METHODS, Method

_OK = "OK!"

ASK_AGAIN_MS = 500
"""Milliseconds after which a consumer whose connection is new requests messages again. In between
it may send a heartbeat, which it does every 13 seconds or less."""

_WHILE_UNKNOWN = {
    methods.SEND_MESSAGE: ErrorCode.UNAUTHORIZED,
    methods.BEAT_PRODUCER: ErrorCode.NOT_REGISTERED,  # it registers anew, which it signs
    methods.GET_MESSAGES: ErrorCode.TOO_FAST,  # it asks again, perhaps after a heartbeat
    methods.COMMIT: ErrorCode.NOT_REGISTERED,
}
"""By method: the error code for a client that is not authenticated; `UNCERTIFIED` for all
others."""

_UNSIGNED = frozenset(
    {
        methods.REGISTER_CONSUMER,
        methods.REGISTER_BALANCED,
        methods.BEAT_CONSUMER,
        methods.BEAT_BALANCED,
        methods.BEAT_PARTITIONS,
    }
)
"""Methods that consumers in Java do not sign until the reply to a heartbeat asks them to."""


def refused(method: Method, code: ErrorCode, text: str, **more: int) -> bytes:
    """Return the encoded reply of a method, with an error. `code`, `text`: the error. `more`:
    further fields of the reply."""
    data: bytes = _reply(method, code, text, **more).SerializeToString()
    return data


def overflowed() -> bytes:
    """Return the encoded reply that refuses a message above a limit, because the message has waited
    too long or may not wait."""
    text = "above the limit of what may be sent"
    return refused(METHODS[methods.SEND_MESSAGE], ErrorCode.OVERFLOW, text)


def too_fast(seconds: float) -> bytes:
    """Return the encoded reply that has a consumer ask for messages again, after some seconds."""
    text, wait = "above the limit of what may be received", max(1, math.ceil(1000 * seconds))
    method = METHODS[methods.GET_MESSAGES]
    return refused(method, ErrorCode.TOO_FAST, text, minLimitTime=wait)


def unknown(number: int, denial: Denial | None, *, signed: bool) -> bytes:
    """Return the encoded reply to a client that is not authenticated. `number`: the number of the
    method that it called. `denial`: why its credential is wrong; None if it presented no
    credential. `signed`: the client presented a signature."""
    method = METHODS[number]
    if number in _UNSIGNED and not signed:
        return _asked_to_sign(method)
    code = _WHILE_UNKNOWN.get(number, ErrorCode.UNCERTIFIED)
    more = {"minLimitTime": ASK_AGAIN_MS} if number == methods.GET_MESSAGES else {}
    return refused(method, code, "a signature is needed" if denial is None else denial.text, **more)


def _asked_to_sign(method: Method) -> bytes:
    """Return the encoded reply that makes a consumer sign its next heartbeat, and otherwise reports
    success."""
    reply = _reply(method, ErrorCode.SUCCESS, _OK)
    fields = reply.DESCRIPTOR.fields_by_name
    if "requireAuth" in fields:
        reply.requireAuth = True
    elif "opsTaskInfo" in fields:
        reply.opsTaskInfo.requireAuth = True
    data: bytes = reply.SerializeToString()
    return data


def _reply(method: Method, code: ErrorCode, text: str, **more: int) -> Any:
    reply: Any = method.reply(errCode=code, errMsg=text, **more)
    if "success" in reply.DESCRIPTOR.fields_by_name:
        reply.success = code is ErrorCode.SUCCESS
    if "brokerCheckSum" in reply.DESCRIPTOR.fields_by_name:  # required
        reply.brokerCheckSum = -1
    return reply
