"""Handlers of consumer groups: members, offsets, and who looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from gateway.lab.kafka.codes import NO_RIGHTS_TOLD, Error, Key
from gateway.lab.kafka.groups import (
    LONGEST_ID,
    LONGEST_SESSION_MS,
    MOST_METADATA,
    NO_GENERATION,
    Group,
    Joining,
    Refusal,
    State,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.lab.kafka.groups import Member
    from gateway.lab.kafka.session import Handler, KafkaSession, Request
    from gateway.wire.kafka.codec import Struct

_FIRST_WITH_ID = 4
"""The first version of JoinGroup whose clients come back with the id that they are given."""

_FIRST_WITH_NOT_FOUND = 6
"""The first version of DescribeGroups that knows an error for a group that does not exist."""

_DEAD = "Dead"
"""The state of a group that does not exist."""


def misplaced(session: KafkaSession, group: str) -> Error:
    """Return why this broker does not coordinate a group."""
    if session.cluster.coordinator(group) != session.node:
        return Error.NOT_COORDINATOR
    return Error.NONE


def _found(session: KafkaSession, id: str) -> Group | Error:
    """Return a group that this broker coordinates and that has members; else why not."""
    refusal = misplaced(session, id)
    if refusal:
        return refusal
    return session.groups.get(id, trio.current_time()) or Error.UNKNOWN_MEMBER_ID


# -- members -----------------------------------------------------------------------------------


async def join(session: KafkaSession, request: Request) -> Struct:
    """Have a client join a group, and answer when the round is over."""
    body = request.body
    group = _joinable(session, body)
    if isinstance(group, Error):
        return _not_joined(group, body["MemberId"])
    member = group.enter(_joining(session, request), trio.current_time())
    if isinstance(member, Refusal):
        return _not_joined(*member)
    error = await group.joined(member)
    return _not_joined(error, member.id) if error else _joined(group, member)


def _joinable(session: KafkaSession, body: Struct) -> Group | Error:
    id, instance = body["GroupId"], body.get("GroupInstanceId") or ""
    if not id or len(id) > LONGEST_ID:
        return Error.INVALID_GROUP_ID
    refusal = misplaced(session, id)
    if refusal:
        return refusal
    if not 0 < body["SessionTimeoutMs"] <= LONGEST_SESSION_MS:
        return Error.INVALID_SESSION_TIMEOUT
    said = sum(len(it["Name"]) + len(it["Metadata"]) for it in body["Protocols"])
    if said > MOST_METADATA or len(instance) > LONGEST_ID:
        return Error.INVALID_REQUEST
    return session.groups.make(id, trio.current_time()) or Error.GROUP_MAX_SIZE_REACHED


def _joining(session: KafkaSession, request: Request) -> Joining:
    body = request.body
    rebalance = int(body.get("RebalanceTimeoutMs") or body["SessionTimeoutMs"])
    return Joining(
        id=body["MemberId"],
        instance=body.get("GroupInstanceId"),
        client=session.client or "",
        host=session.host,
        session=body["SessionTimeoutMs"] / 1000,
        rebalance=min(max(0, rebalance), LONGEST_SESSION_MS) / 1000,
        protocol_type=body["ProtocolType"],
        protocols={it["Name"]: it["Metadata"] for it in body["Protocols"]},
        waits_for_id=request.version >= _FIRST_WITH_ID,
    )


def _not_joined(error: Error, id: str) -> Struct:
    return {"ErrorCode": error, "GenerationId": NO_GENERATION, "MemberId": id}


def _joined(group: Group, member: Member) -> Struct:
    """Return the answer to a member; the leader is told of all others."""
    others = [
        {
            "MemberId": it.id,
            "GroupInstanceId": it.asked.instance,
            "Metadata": it.asked.protocols[group.protocol],
        }
        for it in group.members.values()
        if member.id == group.leader
    ]
    return {
        "GenerationId": group.generation,
        "ProtocolType": group.protocol_type,
        "ProtocolName": group.protocol,
        "Leader": group.leader,
        "MemberId": member.id,
        "Members": others,
    }


async def sync(session: KafkaSession, request: Request) -> Struct:
    """Answer what a member gets, when the leader has said it."""
    body = request.body
    group = _found(session, body["GroupId"])
    if isinstance(group, Error):
        return {"ErrorCode": group}
    error = _check(group, body) or _mismatch(group, body)
    if not error and group.state == State.JOINING:
        error = Error.REBALANCE_IN_PROGRESS
    if error:
        return {"ErrorCode": error}
    member = group.members[body["MemberId"]]
    assignments = {it["MemberId"]: it["Assignment"] for it in body["Assignments"]}
    error = await group.shared(member, assignments)
    if error:
        return {"ErrorCode": error}
    names = {"ProtocolType": group.protocol_type, "ProtocolName": group.protocol}
    return {"Assignment": member.assignment, **names}


def _check(group: Group, body: Struct) -> Error:
    return group.check(body["MemberId"], body.get("GroupInstanceId"), body["GenerationId"])


def _mismatch(group: Group, body: Struct) -> Error:
    """Return an error if a client means another protocol (KIP-559)."""
    type, name = body.get("ProtocolType"), body.get("ProtocolName")
    if type in (None, group.protocol_type) and name in (None, group.protocol):
        return Error.NONE
    return Error.INCONSISTENT_GROUP_PROTOCOL


async def heartbeat(session: KafkaSession, request: Request) -> Struct:
    """Note that a member is there; tell it of a round that it has to join."""
    group = _found(session, request.body["GroupId"])
    if isinstance(group, Error):
        return {"ErrorCode": group}
    error = _check(group, request.body)
    if not error:
        group.touch(request.body["MemberId"], trio.current_time())
        if group.state == State.JOINING:
            error = Error.REBALANCE_IN_PROGRESS
    return {"ErrorCode": error}


async def leave(session: KafkaSession, request: Request) -> Struct:
    """Have members leave. Before version 3 there is one, whose error is the answer's."""
    body = request.body
    found = _found(session, body["GroupId"])
    if isinstance(found, Error) and ("MemberId" in body or found == Error.NOT_COORDINATOR):
        return {"ErrorCode": found}
    if "MemberId" in body:
        return {"ErrorCode": _left(found, body["MemberId"], None)}
    told = []
    for it in body["Members"]:
        named = {name: it[name] for name in ("MemberId", "GroupInstanceId")}
        told.append({**named, "ErrorCode": _left(found, *named.values())})
    return {"Members": told}


def _left(group: Group | Error, id: str, instance: str | None) -> Error:
    return group if isinstance(group, Error) else group.leave(id, instance, trio.current_time())


# -- looking at groups -------------------------------------------------------------------------


async def describe_groups(session: KafkaSession, request: Request) -> Struct:
    """Answer groups with their members."""
    return {"Groups": [_described(session, it, request.version) for it in request.body["Groups"]]}


def _described(session: KafkaSession, id: str, version: int) -> Struct:
    nothing = {"GroupId": id, "AuthorizedOperations": NO_RIGHTS_TOLD}
    refusal = misplaced(session, id)
    if refusal:
        return {**nothing, "ErrorCode": refusal}
    group = session.groups.get(id, trio.current_time())
    if group is None:
        error = Error.GROUP_ID_NOT_FOUND if version >= _FIRST_WITH_NOT_FOUND else Error.NONE
        return {**nothing, "ErrorCode": error, "GroupState": _DEAD}
    return {
        **nothing,
        "GroupState": group.state,
        "ProtocolType": group.protocol_type,
        "ProtocolData": group.protocol if group.state == State.STABLE else "",
        "Members": [_member(group, it) for it in group.members.values()],
    }


def _member(group: Group, member: Member) -> Struct:
    return {
        "MemberId": member.id,
        "GroupInstanceId": member.asked.instance,
        "ClientId": member.asked.client,
        "ClientHost": f"/{member.asked.host}",
        "MemberMetadata": member.asked.protocols.get(group.protocol, b""),
        "MemberAssignment": member.assignment,
    }


async def list_groups(session: KafkaSession, request: Request) -> Struct:
    """Answer the groups that this broker coordinates."""
    states = {it.lower() for it in request.body.get("StatesFilter", ())}
    types = {it.lower() for it in request.body.get("TypesFilter", ())}
    now = trio.current_time()
    for group in session.groups.by_id.values():
        group.expire(now)
    told = [
        {
            "GroupId": it.id,
            "ProtocolType": it.protocol_type,
            "GroupState": it.state,
            "GroupType": "classic",
        }
        for it in session.groups.by_id.values()
        if not misplaced(session, it.id)
        and (not states or it.state.lower() in states)
        and (not types or "classic" in types)
    ]
    return {"Groups": told}


HANDLERS: Mapping[int, Handler] = {
    Key.JOIN_GROUP: join,
    Key.SYNC_GROUP: sync,
    Key.HEARTBEAT: heartbeat,
    Key.LEAVE_GROUP: leave,
    Key.DESCRIBE_GROUPS: describe_groups,
    Key.LIST_GROUPS: list_groups,
}
