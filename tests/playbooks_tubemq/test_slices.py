"""Long lists are decided in slices, between which other pairs are served."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Right
from gateway.wire.contract import Direction, Postpone, Replace, Sliced
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.judging import MOST_TOPICS
from tests.support.slices import effects_of

from .script import REAL, Tube, TubeServices, ask, asked, tell, told
from .test_identity import CONSUMER, REQUESTS, Site, in_text, shown

OK: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "OK!"}
LONG = [f"1:h:1#t{number}:0" for number in range(19_000)]
BEAT: dict[str, Any] = {**CONSUMER, "readStatus": 0}
REGISTER = {**REQUESTS[m.REGISTER_CONSUMER]}


@pytest.fixture
def site(tmp_path: Any) -> Site:
    return Site(tmp_path)


def guarded(*forbidden: tuple[Right, str]) -> TubeServices:
    services = TubeServices()
    services.forbidden = {*forbidden}
    return services


def steps_of(play: Tube, direction: Direction, frame: bytes) -> Any:
    """Return the slices in which a frame is decided that has come whole."""
    scanner = play.session.scanners[direction]
    scanner.scan(bytearray(frame), 0, len(frame))
    assert scanner.stop == len(frame)
    (sliced,) = play.session.decide(direction, frame, play.now)
    assert isinstance(sliced, Sliced)
    return sliced.steps


@pytest.mark.parametrize("count", [1, 60])
def test_a_usual_request_is_decided_at_once(count: int) -> None:
    play = Tube(guarded(), node=1)
    assert play.client(ask(m.BEAT_PARTITIONS, **BEAT, partitionInfo=LONG[:count]))
    assert play.slices == 0


def test_a_heartbeat_with_many_partitions_is_decided_in_slices() -> None:
    play = Tube(guarded(), node=1, principal="alice")
    frame = ask(m.BEAT_PARTITIONS, **BEAT, partitionInfo=LONG)
    count, effects = effects_of(steps_of(play, Direction.TO_BROKER, frame))
    assert count > 100
    assert isinstance(effects[0], Replace)
    assert len(asked(effects[0].data).partitionInfo) == len(LONG)
    assert play.budget_of.taken == 0


def test_the_last_blocks_of_a_frame_are_offered_again_as_they_were() -> None:
    """The frame before is decided, and the next one has another use."""
    play = Tube(guarded(), node=1)
    frame = ask(m.BEAT_PARTITIONS, **BEAT, partitionInfo=LONG)
    scanner: Any = play.session.scanners[0]
    cut = len(frame) // 2
    scanner.scan(bytearray(frame[:cut]), 0, cut)
    first = scanner.stop
    assert 0 < first <= cut
    play.session.decide(Direction.TO_BROKER, frame[:first], play.now)
    rest = frame[first:]
    scanner.scan(bytearray(rest), 0, len(rest))
    assert scanner.stop == len(rest)
    play.session.leave(play.now)
    (postponed,) = play.session.decide(Direction.TO_BROKER, rest, play.now)
    assert isinstance(postponed, Postpone)
    behind = rest + ask(m.END_CONSUMER, 2, **CONSUMER)
    for size in (10_000, len(behind)):
        scanner.scan(bytearray(behind), 0, size)
        assert scanner.stop == len(rest)
        if size < len(behind):
            scanner.offer_again()
    scanner.scan(bytearray(behind), len(rest), len(behind))
    assert scanner.stop == len(behind) - len(rest)


def test_a_frame_that_takes_long_is_counted_in_the_budget() -> None:
    play = Tube(guarded(), node=1)
    frame = ask(m.BEAT_PARTITIONS, **BEAT, partitionInfo=LONG)
    steps = steps_of(play, Direction.TO_BROKER, frame)
    assert play.budget_of.taken == len(frame)
    assert play.session.leave(play.now) == (), "the client is not moved meanwhile"
    next(steps)
    steps.close()
    play.session.close()
    assert play.budget_of.taken == 0


def test_partitions_of_who_signs_are_noted_in_slices(site: Site) -> None:
    play = site.broker()
    beat = {**BEAT, "partitionInfo": LONG[:1000], **shown(in_text())}
    assert play.client(ask(m.BEAT_PARTITIONS, 1, **beat))
    assert play.slices > 1
    get = {**CONSUMER, "topicName": "t999", "partitionId": 0}
    assert play.client(ask(m.GET_MESSAGES, 2, **get))


def test_topics_are_judged_in_slices() -> None:
    play = Tube(guarded())
    topics = [f"t{number}" for number in range(MOST_TOPICS)]
    frame = ask(m.REGISTER_CONSUMER, **REGISTER | {"topicList": topics})
    count, effects = effects_of(steps_of(play, Direction.TO_BROKER, frame))
    assert count > 100
    assert isinstance(effects[0], Replace)


def test_more_topics_than_servers_take_are_refused_before_they_are_judged() -> None:
    services = guarded()
    play = Tube(services)
    topics = [f"t{number}" for number in range(19_000)]
    assert play.client(ask(m.REGISTER_CONSUMER, **REGISTER | {"topicList": topics})) == b""
    assert told(play.client_got()).errCode == 400
    assert services.judged == []


def test_many_topics_without_the_right_are_one_denial() -> None:
    services = guarded((Right.CONSUME, "group:g"))
    services.forbid_any = lambda *_: None  # type: ignore[method-assign]
    play = Tube(services)
    topics = [f"t{number}" for number in range(MOST_TOPICS)]
    assert play.client(ask(m.REGISTER_CONSUMER, **REGISTER | {"topicList": topics})) == b""
    assert told(play.client_got()).errCode == 450
    assert len(services.judged) == 1


def test_rights_that_have_to_be_asked_for_are_asked_together_and_judged_in_slices() -> None:
    services = guarded()
    services.undecided = {"group:g"}
    play = Tube(services)
    topics = [f"t{number}" for number in range(100)]
    assert play.client(ask(m.REGISTER_CONSUMER, **REGISTER | {"topicList": topics})) == b""
    ((job, then),) = play.jobs
    assert len(job.asks) == len(topics)  # type: ignore[attr-defined]
    services.undecided.clear()
    play._carry_out(then(b"", play.now), Direction.TO_BROKER)
    assert play.broker_got() == b""
    for _ in range(len(topics)):
        play.after(0)
    assert list(asked(play.broker_got()).topicList) == topics
    assert play.budget_of.taken == 0


def test_a_long_reply_is_changed_in_slices() -> None:
    play = Tube(guarded(), principal="alice")
    play.client(ask(m.BEAT_CONSUMER, 1, **CONSUMER, reportSubscribeInfo=False))
    lines = [f"c@g#1:{REAL[1].host}:8123#t{number}:0" for number in range(5000)]
    event = {"rebalanceId": 8, "opType": 1, "subscribeInfo": lines}
    frame = tell(m.BEAT_CONSUMER, 1, **OK, event=event)
    count, effects = effects_of(steps_of(play, Direction.TO_CLIENT, frame))
    assert count > 40
    assert isinstance(effects[0], Replace)
    assert len(told(effects[0].data).event.subscribeInfo) == len(lines)


def test_a_malformed_end_of_a_long_list_is_a_violation() -> None:
    play = Tube(node=1)
    with pytest.raises(PeerError):
        play.client(ask(m.BEAT_PARTITIONS, **BEAT, partitionInfo=[*LONG, "x"]))
