"""Consumer groups: their members, the rounds by which they share partitions, their offsets.

A round begins when somebody joins, leaves or is silent for too long. All members join it, or are
left out at its end; then the leader says who gets what, and the group is stable. Nothing runs by
itself: each request first does what became due since the last one, and those who wait for others
wait no longer than until the next thing is due.

Static members (KIP-345) are known again by their instance id, and join a round as all others do.

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
"""Of one group: each is told to the leader in one answer."""

MOST_METADATA = 256 * 1024
"""Bytes of what one member says of itself: names of some thousand topics."""

LONGEST_ID = 1024
"""Characters of the id of a group, a member or an instance. Real ones have 10 to 100."""

LONGEST_SESSION_MS = 1_800_000
"""Milliseconds, as of brokers. They want six seconds at least; tests want less."""

NO_GENERATION = -1
"""What a client says, or is told, that is in no generation."""


class State(StrEnum):
    """The states of a group, in the words of the protocol."""

    EMPTY = "Empty"
    JOINING = "PreparingRebalance"
    SHARING = "CompletingRebalance"
    STABLE = "Stable"


class Committed(NamedTuple):
    """An offset that a group has committed. `epoch`: of the leader; -1: not told."""

    offset: int
    epoch: int
    metadata: str


class Joining(NamedTuple):
    """What a client says when it joins. `id`: empty the first time. `instance`: None unless it is
    a static member. Times are in seconds. `protocols`: what it can do, best first, with what it
    says of itself for each. `waits_for_id`: it joins again with the id that it is given."""

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
    """One member. `expires`: when it has been silent for too long, unless it waits for others."""

    id: str
    asked: Joining
    expires: float
    is_joining: bool = False
    is_waiting: bool = False
    assignment: bytes = b""


class Refusal(NamedTuple):
    """Why a client may not join. `id`: the one to join with, if that is why."""

    error: Error
    id: str


class Group:
    """One group. `offsets`: by topic and partition."""

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

    def enter(self, asked: Joining, now: float) -> Member | Refusal:
        """Have a client join; return its member, or why it is refused."""
        self.expire(now)
        refusal = self._refusal(asked)
        if refusal is not None:
            return Refusal(refusal, asked.id)
        member = self.members.get(asked.id)
        if member is None:
            if not asked.id and asked.waits_for_id and asked.instance is None:
                id = self._new_id(asked)
                self._promised[id] = now + asked.session
                return Refusal(Error.MEMBER_ID_REQUIRED, id)
            member = self._add(asked, now)
        elif self._is_settled(member, asked):
            member.expires = now + asked.session
            return member
        member.asked = asked
        member.is_joining = True
        self._begin(now)
        self._complete_if_all(now)
        return member

    async def joined(self, member: Member) -> Error:
        """Wait until the round is over in which a member joins; return an error if it is no member
        any more."""
        while member.is_joining:
            await self._wait()
        return Error.NONE if self.members.get(member.id) is member else Error.UNKNOWN_MEMBER_ID

    def _refusal(self, asked: Joining) -> Error | None:
        if asked.id and asked.id not in self._promised:
            refusal = self.check(asked.id, asked.instance)
            if refusal:
                return refusal
        others = [it for it in self.members.values() if it.id != asked.id]
        if others and asked.protocol_type != self.protocol_type:
            return Error.INCONSISTENT_GROUP_PROTOCOL
        if not asked.protocol_type or not _common([asked, *(it.asked for it in others)]):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        if len(others) + len(self._promised) >= MOST_MEMBERS and asked.id not in self._promised:
            return Error.GROUP_MAX_SIZE_REACHED
        return None

    def _is_settled(self, member: Member, asked: Joining) -> bool:
        """Return whether a member asks only for what it knows: nobody has to join again."""
        if dict(member.asked.protocols) != dict(asked.protocols):
            return False
        is_leader = member.id == self.leader
        return self.state == State.SHARING or (self.state == State.STABLE and not is_leader)

    def _add(self, asked: Joining, now: float) -> Member:
        self._promised.pop(asked.id, None)
        self.protocol_type = asked.protocol_type
        if asked.instance in self._instances:
            self._remove(self._instances[asked.instance])
        member = Member(asked.id or self._new_id(asked), asked, now + asked.session)
        self.members[member.id] = member
        if asked.instance is not None:
            self._instances[asked.instance] = member
        return member

    def _new_id(self, asked: Joining) -> str:
        return f"{asked.instance or asked.client}-{uuid.uuid4()}"

    # -- rounds ----------------------------------------------------------------------------------

    def _begin(self, now: float) -> None:
        """Begin a round, unless one goes on."""
        if self.state != State.JOINING:
            self.state = State.JOINING
            self._until = now + max(it.asked.rebalance for it in self.members.values())
            self._changed.unpark_all()

    def _complete_if_all(self, now: float) -> None:
        """End a round if all have joined, or its time is over."""
        if self.state != State.JOINING:
            return
        is_everybody = all(it.is_joining for it in self.members.values()) and not self._promised
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
            member.expires = now + member.asked.session
        self._changed.unpark_all()

    def _vote(self) -> str:
        """Return the protocol that most members like best, of those that all can do."""
        common = _common([it.asked for it in self.members.values()])
        liked = (
            next(name for name in it.asked.protocols if name in common)
            for it in self.members.values()
        )
        return Counter(liked).most_common(1)[0][0]

    async def shared(self, member: Member, assignments: Mapping[str, bytes]) -> Error:
        """Wait until the leader has said who gets what, as `assignments` if it is this member;
        return an error if a new round has begun."""
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
            member.expires = trio.current_time() + member.asked.session
        if self.members.get(member.id) is not member:
            return Error.UNKNOWN_MEMBER_ID
        is_stable = self.state == State.STABLE and self.generation == generation
        return Error.NONE if is_stable else Error.REBALANCE_IN_PROGRESS

    # -- members ---------------------------------------------------------------------------------

    def check(self, id: str, instance: str | None = None, generation: int | None = None) -> Error:
        """Return why a client may not speak as a member of a generation."""
        if instance is not None and instance in self._instances:
            if self._instances[instance].id != id:
                return Error.FENCED_INSTANCE_ID
        elif id not in self.members or instance is not None:
            return Error.UNKNOWN_MEMBER_ID
        if generation is not None and generation != self.generation:
            return Error.ILLEGAL_GENERATION
        return Error.NONE

    def touch(self, id: str, now: float) -> None:
        """Note that a member is there."""
        self.members[id].expires = now + self.members[id].asked.session

    def leave(self, id: str, instance: str | None, now: float) -> Error:
        """Have a member leave, which may be named by its instance alone."""
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
        """Do what is due: members that are silent leave, and a round ends."""
        for id in [id for id, until in self._promised.items() if until <= now]:
            del self._promised[id]
        late = [it for it in self.members.values() if _is_silent(it) and it.expires <= now]
        for member in late:
            self._remove(member)
        if late:
            self._after_removal(now)
        self._complete_if_all(now)

    def _remove(self, member: Member) -> None:
        del self.members[member.id]
        if member.asked.instance is not None:
            self._instances.pop(member.asked.instance, None)
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
        yield from (it.expires for it in self.members.values() if _is_silent(it))
        if self.state == State.JOINING:
            yield self._until


@dataclass(slots=True)
class Groups:
    """All groups, by id."""

    by_id: dict[str, Group] = field(default_factory=dict)

    def get(self, id: str, now: float) -> Group | None:
        """Return a group as it is at this time; None if there is none."""
        found = self.by_id.get(id)
        if found is not None:
            found.expire(now)
        return found

    def make(self, id: str, now: float) -> Group | None:
        """Return a group, made if missing; None if there are too many."""
        if id not in self.by_id and len(self.by_id) < MOST_GROUPS:
            self.by_id[id] = Group(id)
        return self.get(id, now)

    def forget(self, topic: str) -> None:
        """Forget what was committed for a topic."""
        for group in self.by_id.values():
            for place in [it for it in group.offsets if it[0] == topic]:
                del group.offsets[place]


def _is_silent(member: Member) -> bool:
    """Return whether a member is expected to say that it is there: it waits for nobody."""
    return not (member.is_joining or member.is_waiting)


def _common(asked: list[Joining]) -> set[str]:
    """Return the protocols that all can do."""
    return set.intersection(*(set(it.protocols) for it in asked))
