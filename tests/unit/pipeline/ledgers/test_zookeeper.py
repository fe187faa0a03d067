"""The walk over a ZooKeeper, on a tree in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kazoo.exceptions import (  # type: ignore[import-untyped, unused-ignore]
    ConnectionLoss,
    MarshallingError,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import (  # type: ignore[import-untyped, unused-ignore]
    KazooTimeoutError,
)

from gateway.errors import ConfigurationError, UpstreamError
from gateway.pipeline.ledgers import zookeeper
from gateway.pipeline.ledgers.metadata import Refusal, TopicInfo
from gateway.pipeline.ledgers.snapshot import Seen, Walked
from gateway.pipeline.ledgers.zookeeper import ROOT, TRIES, WINDOW, connected, name_of, topics
from tests.unit.pipeline.ledgers.samples import closed, cursor, cursor_value, topic_value

VALUE = topic_value(closed(1, 5))
POSITION = cursor_value(cursor(1, 2))
WEB = f"{ROOT}/acme/web/persistent"


@dataclass
class Answer:
    say: Callable[[], Any]
    done: Callable[[], None]

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        assert timeout == zookeeper.TIMEOUT
        self.done()
        return self.say()


@dataclass
class Tree:
    """Nodes in memory. `failing`: errors of a path's next answers. `gone`: paths that are listed
    and not there."""

    nodes: dict[str, bytes] = field(default_factory=dict)
    failing: dict[str, list[Exception]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    under_way: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get_async(self, path: str) -> Answer:
        return self._answer(path, lambda: (self._node(path), None))

    def get_children_async(self, path: str) -> Answer:
        return self._answer(path, lambda: self._children(path))

    def _answer(self, path: str, say: Callable[[], Any]) -> Answer:
        with self.lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)

        def done() -> None:
            with self.lock:
                self.under_way -= 1
            if errors := self.failing.get(path):
                raise errors.pop(0)

        return Answer(say, done)

    def _node(self, path: str) -> bytes:
        if path in self.gone or not any(it.startswith(path) for it in self.nodes):
            raise NoNodeError
        return self.nodes.get(path, b"")

    def _children(self, path: str) -> list[str]:
        self._node(path)
        below = (it.removeprefix(f"{path}/") for it in self.nodes if it.startswith(f"{path}/"))
        return list({it.split("/")[0] for it in below})


def seen(tree: Tree) -> tuple[list[Seen], int]:
    walked = Walked()
    found = list(topics(tree, walked))
    assert tree.under_way == 0
    return found, walked.vanished


def test_each_topic_comes_with_its_cursors_by_their_names() -> None:
    tree = Tree(
        {
            f"{WEB}/a+b%2Fc": VALUE,
            f"{WEB}/a+b%2Fc/sub%3A1": POSITION,
            f"{WEB}/a+b%2Fc/other": POSITION,
            f"{ROOT}/ops/x/persistent/%E4%BD%A0-partition-0": VALUE,
            f"{ROOT}/acme/east/old/persistent/v1": VALUE,
        }
    )
    found, vanished = seen(tree)
    info = TopicInfo((closed(1, 5),))
    assert found == [
        Seen("persistent://acme/east/old/v1", info),
        Seen(
            "persistent://acme/web/a b/c",
            info,
            (("other", cursor(1, 2)), ("sub:1", cursor(1, 2))),
        ),
        Seen("persistent://ops/x/你-partition-0", info),
    ]
    assert vanished == 0


def test_a_name_that_is_not_encoded_stays_as_it_is() -> None:
    assert name_of(f"{WEB}/a%FFb") == "persistent://acme/web/a%FFb"
    assert name_of(f"{WEB}/100%") == "persistent://acme/web/100%"


def test_many_topics_and_cursors_come_in_order_a_few_at_a_time() -> None:
    names = [f"t{at:03}" for at in range(100)]
    tree = Tree({f"{WEB}/{name}": VALUE for name in names})
    tree.nodes |= {f"{WEB}/t050/c{at:03}": POSITION for at in range(100)}
    found, _ = seen(tree)
    assert [it.name for it in found] == [f"persistent://acme/web/{name}" for name in names]
    assert [name for name, _ in found[50].cursors] == [f"c{at:03}" for at in range(100)]
    assert WINDOW <= tree.most <= WINDOW * (WINDOW + 2)


def test_what_vanishes_meanwhile_is_left_out_and_counted() -> None:
    tree = Tree({f"{WEB}/{it}": VALUE for it in "abc"} | {f"{WEB}/a/{it}": POSITION for it in "xy"})
    tree.nodes[f"{ROOT}/gone/y/persistent/z"] = VALUE
    tree.gone = {f"{WEB}/b", f"{WEB}/a/x", f"{ROOT}/gone"}
    found, vanished = seen(tree)
    assert [it.name[-1] for it in found] == ["a", "c"]
    assert [name for name, _ in found[0].cursors] == ["y"]
    assert vanished == 3


def test_a_value_that_cannot_be_decoded_is_a_refusal_of_its_own() -> None:
    tree = Tree({f"{WEB}/a": b"\xff", f"{WEB}/a/x": b"\xff", f"{WEB}/b": VALUE})
    (broken, whole), _ = seen(tree)
    assert isinstance(broken.topic, Refusal)
    assert isinstance(broken.cursors[0][1], Refusal)
    assert whole.topic == TopicInfo((closed(1, 5),))


def test_a_node_that_may_not_be_read_is_a_refusal() -> None:
    tree = Tree({f"{WEB}/a/x": POSITION, f"{WEB}/a": VALUE}, {f"{WEB}/a/x": [NoAuthError()]})
    ((_, _, ((_, refused),)),), _ = seen(tree)
    assert isinstance(refused, Refusal)


@pytest.mark.parametrize("error", [ConnectionLoss, SessionExpiredError, KazooTimeoutError])
def test_a_lost_connection_is_asked_again(error: type[Exception]) -> None:
    lost = [error() for _ in range(TRIES - 1)]
    tree = Tree({f"{WEB}/a": VALUE}, {f"{WEB}/a": lost, ROOT: lost[:]})
    found, _ = seen(tree)
    assert [it.topic for it in found] == [TopicInfo((closed(1, 5),))]


@pytest.mark.parametrize("where", [ROOT, f"{ROOT}/acme", WEB, f"{WEB}/a"])
def test_an_ensemble_that_stays_away_ends_the_walk(where: str) -> None:
    tree = Tree({f"{WEB}/a": VALUE}, {where: [KazooTimeoutError()] * TRIES})
    with pytest.raises(UpstreamError, match="does not answer: KazooTimeoutError"):
        list(topics(tree, Walked()))


@pytest.mark.parametrize("where", [ROOT, f"{ROOT}/acme", WEB])
def test_a_listing_that_is_refused_ends_the_walk(where: str) -> None:
    tree = Tree({f"{WEB}/a": VALUE}, {where: [NoAuthError()]})
    with pytest.raises(UpstreamError, match="refuses"):
        list(topics(tree, Walked()))


def test_another_error_ends_the_walk() -> None:
    tree = Tree({f"{WEB}/a": VALUE}, {f"{WEB}/a": [MarshallingError()]})
    with pytest.raises(UpstreamError, match="refuses: MarshallingError"):
        list(topics(tree, Walked()))


def test_a_zookeeper_without_topics_is_another_one() -> None:
    with pytest.raises(UpstreamError, match="no /managed-ledgers"):
        list(topics(Tree(), Walked()))


@pytest.mark.parametrize("hosts", ["", "host", "zk://h:1", "h:1,", "h:1 i:2", "h:x", "h:123456"])
def test_hosts_that_are_none_are_a_mistake(hosts: str) -> None:
    with pytest.raises(ConfigurationError, match="is no ensemble"), connected(hosts):
        pass
