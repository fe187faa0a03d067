"""Consumer groups: their members, their rebalances, and the offsets that they commit.

A rebalance begins when a member joins, leaves or is silent for too long. All members join it, or
are removed at its end; then the leader sends the assignments, and the group is stable. Nothing runs
by itself: each request first does what became due since the last one, and a request that waits for
other members waits no longer than until the next thing is due.

Static members (KIP-345) are recognized by their instance id, and join a rebalance as all others do.

Sources: the protocol guide of Apache Kafka, KIP-394 (member ids are given first), KIP-345.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import trio

from gateway.lab.kafka.codes import Error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_GROUPS = 1000
"""A group is kept until the sandbox ends, with the offsets that it has committed."""

MOST_MEMBERS = 200
"""Of one group: one response lists them all to the leader."""

MOST_METADATA = 256 * 1024
"""Bytes of what one member says of itself: names of some thousand topics."""

LONGEST_ID = 1024
"""Characters of the id of a group, a member or an instance. Real ones have 10 to 100."""

LONGEST_SESSION_MS = 1_800_000
"""Milliseconds, as of brokers. They want six seconds at least; tests want less."""

NO_GENERATION = -1
"""The generation of a client that is in none."""


class State(StrEnum):
    """The states of a consumer group, as the protocol names them."""

    EMPTY = "Empty"
    JOINING = "PreparingRebalance"
    SHARING = "CompletingRebalance"
    STABLE = "Stable"


class Committed(NamedTuple):
    """An offset that a group has committed. `epoch`: the leader's; -1 if unknown. `metadata`: the
    client's own text."""

    offset: int
    epoch: int
    metadata: str


class Joining(NamedTuple):
    """A client's request to join a group. `id`: the member's id, empty the first time. `instance`:
    the id of a static member, else None. Times are in seconds. `protocols`: the ways of assigning
    partitions that the client knows, best first, with its metadata for each. `waits_for_id`: the
    client joins again with the id that it gets."""

    id: str
    instance: str | None
    client: str
    host: str
    session: float
    rebalance: float
    protocol_type: str
    protocols: Mapping[str, bytes]
    waits_for_id: bool


@dataclass(slots=True, eq=False)
class Member:
    """One member of a group. `request`: its last request to join. `expires`: when its session ends,
    unless the member waits for other members."""

    id: str
    request: Joining
    expires: float
    is_joining: bool = False
    is_waiting: bool = False
    assignment: bytes = b""


class Refusal(NamedTuple):
    """The error of a client that may not join a group. `id`: the member's id; with
    `MEMBER_ID_REQUIRED`, the id with which the client has to join again."""

    error: Error
    id: str


class Group:
    """One consumer group. `offsets`: the offsets that it committed, by topic and partition."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol = ""
        self.leader = ""
        self.members: dict[str, Member] = {}
        self.offsets: dict[tuple[str, int], Committed] = {}
        self._instances: dict[str, Member] = {}
        self._promised: dict[str, float] = {}
        self._until = 0.0
        self._changed = trio.lowlevel.ParkingLot()

    # -- joining ---------------------------------------------------------------------------------

    def enter(self, request: Joining, now: float) -> Member | Refusal:
        """Let a client join the group, and return its member; return a refusal if the client may
        not join. `now`: seconds."""
        self.expire(now)
        refusal = self._refusal(request)
        if refusal is not None:
            return Refusal(refusal, request.id)
        member = self.members.get(request.id)
        if member is None:
            if not request.id and request.waits_for_id and request.instance is None:
                id = self._new_id(request)
                self._promised[id] = now + request.session
                return Refusal(Error.MEMBER_ID_REQUIRED, id)
            member = self._add(request, now)
        elif self._is_settled(member, request):
            member.expires = now + request.session
            return member
        member.request = request
        member.is_joining = True
        self._begin(now)
        self._complete_if_all(now)
        return member

    async def joined(self, member: Member) -> Error:
        """Wait until the rebalance that this member joins is complete. Return an error if the
        member was removed meanwhile, else `NONE`."""
        while member.is_joining:
            await self._wait()
        return Error.NONE if self.members.get(member.id) is member else Error.UNKNOWN_MEMBER_ID

    def _refusal(self, request: Joining) -> Error | None:
        if request.id and request.id not in self._promised:
            refusal = self.check(request.id, request.instance)
            if refusal:
                return refusal
        others = [member for member in self.members.values() if member.id != request.id]
        if others and request.protocol_type != self.protocol_type:
            return Error.INCONSISTENT_GROUP_PROTOCOL
        if not request.protocol_type or not _common(
            [request, *(member.request for member in others)]
        ):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        if len(others) + len(self._promised) >= MOST_MEMBERS and request.id not in self._promised:
            return Error.GROUP_MAX_SIZE_REACHED
        return None

    def _is_settled(self, member: Member, request: Joining) -> bool:
        """Return whether a member repeats its request, so that no rebalance is needed."""
        if dict(member.request.protocols) != dict(request.protocols):
            return False
        is_leader = member.id == self.leader
        return self.state == State.SHARING or (self.state == State.STABLE and not is_leader)

    def _add(self, request: Joining, now: float) -> Member:
        self._promised.pop(request.id, None)
        self.protocol_type = request.protocol_type
        if request.instance in self._instances:
            self._remove(self._instances[request.instance])
        member = Member(request.id or self._new_id(request), request, now + request.session)
        self.members[member.id] = member
        if request.instance is not None:
            self._instances[request.instance] = member
        return member

    def _new_id(self, request: Joining) -> str:
        return f"{request.instance or request.client}-{uuid.uuid4()}"

    # -- rounds ----------------------------------------------------------------------------------

    def _begin(self, now: float) -> None:
        """Begin a rebalance, unless one goes on."""
        if self.state != State.JOINING:
            self.state = State.JOINING
            self._until = now + max(member.request.rebalance for member in self.members.values())
            self._changed.unpark_all()

    def _complete_if_all(self, now: float) -> None:
        """Complete a rebalance if all members have joined, or its time is over."""
        if self.state != State.JOINING:
            return
        is_everybody = (
            all(member.is_joining for member in self.members.values()) and not self._promised
        )
        if not is_everybody and now < self._until:
            return
        for member in list(self.members.values()):
            if not member.is_joining:
                self._remove(member)
        self.generation += 1
        self.state = State.SHARING if self.members else State.EMPTY
        if self.members:
            self.protocol = self._vote()
            if self.leader not in self.members:
                self.leader = next(iter(self.members))
        for member in self.members.values():
            member.is_joining = False
            member.assignment = b""
            member.expires = now + member.request.session
        self._changed.unpark_all()

    def _vote(self) -> str:
        """Return the protocol that most members like best, of those that all can use."""
        common = _common([member.request for member in self.members.values()])
        liked = (
            next(name for name in member.request.protocols if name in common)
            for member in self.members.values()
        )
        return Counter(liked).most_common(1)[0][0]

    async def shared(self, member: Member, assignments: Mapping[str, bytes]) -> Error:
        """Wait until the group's leader has sent the assignments. Return an error if the member was
        removed or another rebalance has begun meanwhile, else `NONE`. `assignments`: the assignment
        of each member, by member id; ignored if `member` is not the leader."""
        generation = self.generation
        if self.state == State.SHARING and member.id == self.leader:
            for other in self.members.values():
                other.assignment = assignments.get(other.id, b"")
            self.state = State.STABLE
            self._changed.unpark_all()
        member.is_waiting = True
        try:
            while self.state == State.SHARING and self.generation == generation:
                await self._wait()
        finally:
            member.is_waiting = False
            member.expires = trio.current_time() + member.request.session
        if self.members.get(member.id) is not member:
            return Error.UNKNOWN_MEMBER_ID
        is_stable = self.state == State.STABLE and self.generation == generation
        return Error.NONE if is_stable else Error.REBALANCE_IN_PROGRESS

    # -- members ---------------------------------------------------------------------------------

    def check(self, id: str, instance: str | None = None, generation: int | None = None) -> Error:
        """Return `NONE` if a member has this id, instance id and generation, else an error. Values
        that are None are not compared."""
        if instance is not None and instance in self._instances:
            if self._instances[instance].id != id:
                return Error.FENCED_INSTANCE_ID
        elif id not in self.members or instance is not None:
            return Error.UNKNOWN_MEMBER_ID
        if generation is not None and generation != self.generation:
            return Error.ILLEGAL_GENERATION
        return Error.NONE

    def touch(self, id: str, now: float) -> None:
        """Extend the session of the member with this id. `now`: seconds."""
        self.members[id].expires = now + self.members[id].request.session

    def leave(self, id: str, instance: str | None, now: float) -> Error:
        """Remove a member. Return an error if there is no such member, else `NONE`. `id`: empty if
        `instance` alone identifies the member."""
        self.expire(now)
        if not id and instance in self._instances:
            id = self._instances[instance].id
        if self._promised.pop(id, None) is None:
            refusal = self.check(id, instance)
            if refusal:
                return refusal
            self._remove(self.members[id])
        self._after_removal(now)
        return Error.NONE

    def expire(self, now: float) -> None:
        """Remove members that were silent for too long, and complete a rebalance whose time is
        over. `now`: seconds."""
        for id in [id for id, until in self._promised.items() if until <= now]:
            del self._promised[id]
        late = [
            member
            for member in self.members.values()
            if _is_silent(member) and member.expires <= now
        ]
        for member in late:
            self._remove(member)
        if late:
            self._after_removal(now)
        self._complete_if_all(now)

    def _remove(self, member: Member) -> None:
        del self.members[member.id]
        if member.request.instance is not None:
            self._instances.pop(member.request.instance, None)
        member.is_joining = False
        self._changed.unpark_all()

    def _after_removal(self, now: float) -> None:
        if not self.members:
            if self.state != State.EMPTY:
                self.generation += 1
            self.state = State.EMPTY
            self._changed.unpark_all()
            return
        self._begin(now)
        self._complete_if_all(now)

    async def _wait(self) -> None:
        """Wait until something changes or is due, and do what is due."""
        with trio.move_on_at(min(self._due(), default=self._until)):
            await self._changed.park()
        self.expire(trio.current_time())

    def _due(self) -> Iterator[float]:
        yield from self._promised.values()
        yield from (member.expires for member in self.members.values() if _is_silent(member))
        if self.state == State.JOINING:
            yield self._until


@dataclass(slots=True)
class Groups:
    """All consumer groups of a sandbox, by id."""

    by_id: dict[str, Group] = field(default_factory=dict)

    def get(self, id: str, now: float) -> Group | None:
        """Return the group with this id, brought up to date by `Group.expire`; None if there is no
        such group."""
        group = self.by_id.get(id)
        if group is not None:
            group.expire(now)
        return group

    def make(self, id: str, now: float) -> Group | None:
        """Return the group with this id; create it if it does not exist. Return None if there are
        too many groups."""
        if id not in self.by_id and len(self.by_id) < MOST_GROUPS:
            self.by_id[id] = Group(id)
        return self.get(id, now)

    def forget(self, topic: str) -> None:
        """Forget the offsets that all groups have committed for a topic."""
        for group in self.by_id.values():
            for place in [key for key in group.offsets if key[0] == topic]:
                del group.offsets[place]


def _is_silent(member: Member) -> bool:
    """Return whether a member must send heartbeats: no request of it waits for other members."""
    return not (member.is_joining or member.is_waiting)


def _common(requests: list[Joining]) -> set[str]:
    """Return the protocols that all requests name."""
    return set.intersection(*(set(request.protocols) for request in requests))
