"""Handlers of consumer groups: joining, assignments, heartbeats, leaving, and descriptions."""

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
"""The first version of JoinGroup whose clients join again with the id that they are given."""

_FIRST_WITH_NOT_FOUND = 6
"""The first version of DescribeGroups that knows an error for a group that does not exist."""

_DEAD = "Dead"
"""The state of a group that does not exist."""


def misplaced(session: KafkaSession, group: str) -> Error:
    """Return the error `NOT_COORDINATOR` if another broker coordinates a group, else `NONE`."""
    if session.cluster.coordinator(group) != session.node:
        return Error.NOT_COORDINATOR
    return Error.NONE


def _group_of(session: KafkaSession, id: str) -> Group | Error:
    """Return a group that this broker coordinates, or an error."""
    refusal = misplaced(session, id)
    if refusal:
        return refusal
    return session.groups.get(id, trio.current_time()) or Error.UNKNOWN_MEMBER_ID


# -- members -----------------------------------------------------------------------------------


async def join(session: KafkaSession, request: Request) -> Struct:
    """Let a client join a group (JoinGroup). Return when all members have joined, or when the time
    for joining is over."""
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
    said = sum(len(protocol["Name"]) + len(protocol["Metadata"]) for protocol in body["Protocols"])
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
        protocols={protocol["Name"]: protocol["Metadata"] for protocol in body["Protocols"]},
        waits_for_id=request.version >= _FIRST_WITH_ID,
    )


def _not_joined(error: Error, id: str) -> Struct:
    return {"ErrorCode": error, "GenerationId": NO_GENERATION, "MemberId": id}


def _joined(group: Group, member: Member) -> Struct:
    """Return the response to a member; that to the leader lists all members."""
    others = [
        {
            "MemberId": other.id,
            "GroupInstanceId": other.request.instance,
            "Metadata": other.request.protocols[group.protocol],
        }
        for other in group.members.values()
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
    """Return a member's assignment (SyncGroup), as soon as the leader has sent all assignments."""
    body = request.body
    group = _group_of(session, body["GroupId"])
    if isinstance(group, Error):
        return {"ErrorCode": group}
    error = _check(group, body) or _mismatch(group, body)
    if not error and group.state == State.JOINING:
        error = Error.REBALANCE_IN_PROGRESS
    if error:
        return {"ErrorCode": error}
    member = group.members[body["MemberId"]]
    assignments = {
        assignment["MemberId"]: assignment["Assignment"] for assignment in body["Assignments"]
    }
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
    """Extend a member's session (Heartbeat). Return `REBALANCE_IN_PROGRESS` if the member has to
    join again."""
    group = _group_of(session, request.body["GroupId"])
    if isinstance(group, Error):
        return {"ErrorCode": group}
    error = _check(group, request.body)
    if not error:
        group.touch(request.body["MemberId"], trio.current_time())
        if group.state == State.JOINING:
            error = Error.REBALANCE_IN_PROGRESS
    return {"ErrorCode": error}


async def leave(session: KafkaSession, request: Request) -> Struct:
    """Remove members from a group (LeaveGroup). Before version 3 a request is about one member, and
    the response has the error of that member."""
    body = request.body
    group = _group_of(session, body["GroupId"])
    if isinstance(group, Error) and ("MemberId" in body or group == Error.NOT_COORDINATOR):
        return {"ErrorCode": group}
    if "MemberId" in body:
        return {"ErrorCode": _left(group, body["MemberId"], None)}
    members = []
    for member in body["Members"]:
        named = {name: member[name] for name in ("MemberId", "GroupInstanceId")}
        members.append({**named, "ErrorCode": _left(group, *named.values())})
    return {"Members": members}


def _left(group: Group | Error, id: str, instance: str | None) -> Error:
    return group if isinstance(group, Error) else group.leave(id, instance, trio.current_time())


# -- looking at groups -------------------------------------------------------------------------


async def describe_groups(session: KafkaSession, request: Request) -> Struct:
    """Return groups with their members (DescribeGroups)."""
    return {"Groups": [_described(session, id, request.version) for id in request.body["Groups"]]}


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
        "Members": [_member(group, member) for member in group.members.values()],
    }


def _member(group: Group, member: Member) -> Struct:
    return {
        "MemberId": member.id,
        "GroupInstanceId": member.request.instance,
        "ClientId": member.request.client,
        "ClientHost": f"/{member.request.host}",
        "MemberMetadata": member.request.protocols.get(group.protocol, b""),
        "MemberAssignment": member.assignment,
    }


async def list_groups(session: KafkaSession, request: Request) -> Struct:
    """Return the groups that this broker coordinates (ListGroups)."""
    states = {state.lower() for state in request.body.get("StatesFilter", ())}
    types = {type.lower() for type in request.body.get("TypesFilter", ())}
    now = trio.current_time()
    for group in session.groups.by_id.values():
        group.expire(now)
    groups = [
        {
            "GroupId": group.id,
            "ProtocolType": group.protocol_type,
            "GroupState": group.state,
            "GroupType": "classic",
        }
        for group in session.groups.by_id.values()
        if not misplaced(session, group.id)
        and (not states or group.state.lower() in states)
        and (not types or "classic" in types)
    ]
    return {"Groups": groups}


HANDLERS: Mapping[int, Handler] = {
    Key.JOIN_GROUP: join,
    Key.SYNC_GROUP: sync,
    Key.HEARTBEAT: heartbeat,
    Key.LEAVE_GROUP: leave,
    Key.DESCRIBE_GROUPS: describe_groups,
    Key.LIST_GROUPS: list_groups,
}
