"""How far groups have come, and what is forgotten of it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.exposition import ProgressExposition
from gateway.telemetry.progress import Position, Progress


def committed(progress: Progress) -> set[tuple[str, str, int]]:
    return {(it.group, it.topic, it.partition) for it in progress.committed()}


def test_the_last_offset_counts() -> None:
    progress = Progress()
    progress.commit(Position("shop", "a", 0, 7))
    progress.commit(Position("shop", "a", 0, 5))  # somebody has reset it
    assert list(progress.committed()) == [Position("shop", "a", 0, 5)]


def test_a_topic_has_one_table_of_ends() -> None:
    progress = Progress()
    progress.of("a")[0] = 5
    progress.of("a")[1] = 6
    assert list(progress.ends()) == [Position("", "a", 0, 5), Position("", "a", 1, 6)]


def test_the_topic_that_was_opened_longest_ago_gives_way() -> None:
    progress = Progress(topics=2)
    for topic in ("a", "b", "a", "c"):
        progress.of(topic)[0] = 1
    assert {it.topic for it in progress.ends()} == {"a", "c"}


def test_the_group_that_committed_longest_ago_gives_way() -> None:
    progress = Progress(positions=3)
    for group, partition in (("x", 0), ("y", 0), ("x", 1), ("z", 0)):
        progress.commit(Position(group, "a", partition, 1))
    assert committed(progress) == {("x", "a", 0), ("x", "a", 1), ("z", "a", 0)}


def test_a_group_alone_has_no_more_than_the_bound() -> None:
    progress = Progress(positions=2)
    for partition in range(5):
        progress.commit(Position("x", "a", partition, 1))
    assert committed(progress) == {("x", "a", 0), ("x", "a", 1)}
    progress.commit(Position("x", "a", 1, 9))
    assert Position("x", "a", 1, 9) in list(progress.committed())


def test_a_group_that_is_gone_makes_room() -> None:
    progress = Progress(positions=2)
    for group in ("x", "y"):
        progress.commit(Position(group, "a", 0, 1))
    progress.forget("x")
    progress.forget("nobody")
    progress.commit(Position("z", "a", 0, 1))
    assert {it.group for it in progress.committed()} == {"y", "z"}


def test_ends_and_offsets_are_exposed_so_that_their_difference_is_the_lag() -> None:
    progress = Progress()
    progress.of("orders")[3] = 50
    progress.commit(Position('o"dd', "orders", 3, 42))
    text = b"".join(ProgressExposition({"main": progress, "other": Progress()}).chunks()).decode()
    end, offset = text_string_to_metric_families(text)
    labels = {"cluster": "main", "topic": "orders", "partition": "3"}
    assert [(it.labels, it.value) for it in end.samples] == [(labels, 50)]
    assert [(it.labels, it.value) for it in offset.samples] == [({**labels, "group": 'o"dd'}, 42)]
    assert end.name == "gateway_partition_end_offset"
    assert offset.name == "gateway_group_offset"


def test_without_groups_nothing_is_exposed() -> None:
    assert not b"".join(ProgressExposition({"main": Progress()}).chunks())


def test_many_positions_are_written_in_slices() -> None:
    progress = Progress()
    for partition in range(1000):
        progress.commit(Position("x", "a", partition, 1))
    chunks = list(ProgressExposition({"main": progress}).chunks())
    assert max(chunk.count(b"\n") for chunk in chunks) <= 102
    assert b"".join(chunks).count(b"gateway_group_offset{") == 1000
