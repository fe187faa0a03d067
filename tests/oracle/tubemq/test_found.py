"""Requests that a server reads otherwise than the gateway judged them: none may go on, or both must
read the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from gateway.wire.tubemq import methods as m
from tests.playbooks_tubemq.script import ask

from .oracle import TubeOracle
from .play import play_these
from .run import judged

PROOF: dict[str, Any] = {"authInfo": {"visitAuthorizedToken": 1}}
GROUP: dict[str, Any] = {"clientId": "c", "topicName": "demo", "partitionId": 1}
CONSUMER: dict[str, Any] = {"groupName": "g", "topicName": "demo", "partitionId": 1}
PARTITION: dict[str, Any] = {"opType": 31, "readStatus": 0}
TOPICS: dict[str, Any] = {"clientId": "c", "hostName": "h", "topicList": ["demo"]}
BEAT: dict[str, Any] = {"clientId": "c", "groupName": "g", "readStatus": 0}


class Case(NamedTuple):
    """`node`: the broker; None: the master."""

    frame: bytes
    node: int | None = 1
    signs: bool = False


CASES = {
    "a group with a blank behind it gets messages": Case(
        ask(m.GET_MESSAGES, **GROUP, groupName="g ")
    ),
    "a group with a blank before it gets messages": Case(
        ask(m.GET_MESSAGES, **GROUP, groupName=" g")
    ),
    "a group with a control character gets messages": Case(
        ask(m.GET_MESSAGES, **GROUP, groupName="\x01g")
    ),
    "a group of two control characters gets messages": Case(
        ask(m.GET_MESSAGES, **GROUP, groupName="\x01\x02")
    ),
    "a group with a blank behind it commits": Case(
        ask(m.COMMIT, **GROUP, groupName="g ")
    ),
    "a group with a blank behind it registers for a partition": Case(
        ask(m.REGISTER_PARTITION, **GROUP, **PARTITION, groupName="g ")
    ),
    "a group with a blank behind it registers at the master": Case(
        ask(m.REGISTER_CONSUMER, **TOPICS, groupName="g "), None
    ),
    "a group with a blank behind it registers at the master to balance itself": Case(
        ask(m.REGISTER_BALANCED, **TOPICS, groupName="g ", sourceCount=1, nodeId=1),
        None,
    ),
    "a client with a blank behind its id shows a token": Case(
        ask(m.REGISTER_PARTITION, **CONSUMER, **PARTITION, **PROOF, clientId="c "),
        signs=True,
    ),
    "a partition with two topics is reported": Case(
        ask(m.BEAT_PARTITIONS, **BEAT, **PROOF, partitionInfo=["1:h:1#a:0#b:0"]),
        signs=True,
    ),
    "a partition with two numbers is reported": Case(
        ask(m.BEAT_PARTITIONS, **BEAT, **PROOF, partitionInfo=["1:h:1#a:0:1"]),
        signs=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_request_does_not_go_on_or_is_read_in_one_way(
    tube_oracle: TubeOracle, case: Case
) -> None:
    played = play_these(case.frame, node=case.node, signs=case.signs)
    assert [str(finding) for finding in judged(tube_oracle, played)] == []
