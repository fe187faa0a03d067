"""What is planted into a made-up month is there to be found, and nothing else like it."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

from gateway.pipeline.demo.cast import STORM_CLIENTS
from gateway.pipeline.demo.damage import AHEAD_MS, UNKNOWN_VERSION
from gateway.pipeline.demo.plan import (
    GUESSES,
    LIMITED_RULES,
    SHARED_NETWORKS,
    SHARED_RULE,
    SPRAYED,
    STORM_MINUTES,
)
from gateway.pipeline.demo.planted import Fact, What
from gateway.usage.files import name_of
from gateway.usage.records import Event, Usage
from tests.unit.pipeline.demo.conftest import Month

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def only(month: Month, what: What) -> Fact:
    (found,) = month.planted.of(what)
    return found


def sent(month: Month, tenant: str | None, begin: int, end: int) -> float:
    """Return the messages a second that a tenant sent in a time."""
    records = (it for it in month.usage if it.op == "send" and it.tenant == tenant)
    return sum(it.msgs for it in records if begin <= it.start_ms < end) / (end - begin) * 1000


def slowness(month: Month, tenant: str, begin: int, end: int) -> float:
    """Return the mean microseconds of sends of a tenant in a time."""
    records = [
        it
        for it in month.usage
        if it.lat_what == "send" and it.tenant == tenant and begin <= it.start_ms < end
    ]
    return sum(it.lat_sum_us for it in records) / sum(it.lat_count for it in records)


def waited(month: Month, rule: str) -> list[Usage]:
    return [it for it in month.usage if rule in {wait.rule for wait in it.throttles}]


def failures(events: Iterable[Event]) -> list[Event]:
    return [it for it in events if it.event == "unauthenticated"]


def test_a_noisy_neighbour_grows_tenfold_and_others_of_its_cluster_wait(month: Month) -> None:
    facts = month.planted.of(What.NOISY_NEIGHBOUR)
    assert len(facts) == 2
    for it in facts:
        assert HOUR <= it.end_ms - it.start_ms <= 2 * HOUR
        before, during = it.start_ms - HOUR, it.end_ms
        grown = sent(month, it.tenant, it.start_ms, during)
        assert 6 < grown / sent(month, it.tenant, before, it.start_ms) < 14
        assert it.victims
        for victim in it.victims:
            usual = slowness(month, victim, before, it.start_ms)
            assert slowness(month, victim, it.start_ms, during) > 8 * usual
        for other in {"lantern"} - {it.tenant, *it.victims}:  # of the other cluster
            usual = slowness(month, other, before, it.start_ms)
            assert slowness(month, other, it.start_ms, during) < 1.3 * usual


def test_waits_for_the_shared_limit_are_those_of_incidents(month: Month) -> None:
    facts = month.planted.of(What.NOISY_NEIGHBOUR)
    found = waited(month, SHARED_RULE)
    for it in facts:
        here = {r.tenant for r in found if it.start_ms <= r.start_ms < it.end_ms}
        assert here == {it.tenant, *it.victims}
    assert all(any(f.start_ms <= r.start_ms < f.end_ms for f in facts) for r in found)


def test_a_launch_is_for_good_and_nobody_waits(month: Month) -> None:
    it = only(month, What.LAUNCH)
    before = sent(month, it.tenant, it.start_ms - HOUR, it.start_ms)
    after = sent(month, it.tenant, it.start_ms, it.start_ms + HOUR)
    assert 2.2 < after / before < 4
    a_day_later = sent(month, it.tenant, it.start_ms + DAY, it.start_ms + DAY + HOUR)
    assert 2.2 < a_day_later / before < 4
    others = {r.tenant for r in month.usage if r.tenant} - {it.tenant, "meadow"}
    assert len(others) == 2
    for other in others:
        usual = slowness(month, str(other), it.start_ms - HOUR, it.start_ms)
        assert slowness(month, str(other), it.start_ms, it.start_ms + HOUR) < 1.3 * usual


def test_one_network_tries_many_principals(month: Month) -> None:
    it = only(month, What.SPRAYING)
    (network,) = it.networks
    events = [e for e in month.events if e.client_net == network]
    assert {e.event for e in events} == {"unauthenticated"}
    assert {e.reason for e in events} == {"authentication_failed"}
    assert sorted(e.principal or "" for e in events) == sorted(it.principals)
    assert len(set(it.principals)) == SPRAYED == it.number
    assert all(it.start_ms <= e.time_ms < it.end_ms for e in events)
    assert it.end_ms - it.start_ms <= 5 * MINUTE
    assert set(it.principals) & set(month.planted.owners)


def test_one_principal_comes_from_many_networks_for_a_day(month: Month) -> None:
    it = only(month, What.SHARED_CREDENTIAL)
    (principal,) = it.principals
    assert month.planted.owners[principal] == it.tenant
    networks: dict[int, set[str | None]] = defaultdict(set)
    for r in month.usage:
        if r.op == "connect" and r.principal == principal:
            networks[r.start_ms].add(r.client_net)
    during = [some for at, some in networks.items() if it.start_ms <= at < it.end_ms]
    usual = set[str | None]().union(*(s for at, s in networks.items() if at < it.start_ms))
    assert len(it.networks) == SHARED_NETWORKS
    assert sum(len(some) >= SHARED_NETWORKS - 1 for some in during) > 0.9 * len(during) > 0
    assert set[str | None]().union(*during) == {*it.networks, *usual}
    assert 1 <= len(usual) <= 2
    connected = {e.client_net for e in month.events if e.principal == principal}
    assert set(it.networks) <= connected


def test_a_guess_succeeds_after_many_failures(month: Month) -> None:
    it = only(month, What.GUESSED)
    (network,) = it.networks
    events = [e for e in month.events if e.client_net == network]
    assert {e.principal for e in events} == set(it.principals)
    *failed, connected, ended = [e.event for e in events]
    assert failed == ["unauthenticated"] * GUESSES
    assert (connected, ended) == ("connected", "ended")
    assert [it.start_ms <= e.time_ms < it.end_ms for e in events[:-1]] == [True] * (GUESSES + 1)
    there = [r for r in month.usage if r.client_net == network]
    assert {r.op for r in there} == {"connect"}
    assert sum(r.open_ms for r in there) == pytest.approx(HOUR, rel=0.01)


def test_a_storm_of_expired_tokens_is_of_usual_clients(month: Month) -> None:
    it = only(month, What.EXPIRED_STORM)
    (principal,) = it.principals
    assert month.planted.owners[principal] == it.tenant
    during = [
        e for e in month.events if e.principal == principal and it.start_ms <= e.time_ms < it.end_ms
    ]
    assert Counter(e.reason for e in during if e.event == "ended") == {
        "credential_expired": STORM_CLIENTS
    }
    failed = Counter((e.time_ms - it.start_ms) // MINUTE for e in failures(during))
    assert failed == dict.fromkeys(range(STORM_MINUTES), STORM_CLIENTS)
    assert {e.reason for e in failures(during)} == {"authentication_failed"}
    before = {
        r.client_net
        for r in month.usage
        if r.op == "connect" and r.principal == principal and r.start_ms < it.start_ms
    }
    assert {e.client_net for e in during} == before == set(it.networks)
    gone = [r for r in month.usage if r.principal == principal and r.op == "connect"]
    assert not [r for r in gone if it.start_ms <= r.start_ms < it.end_ms]
    assert [r for r in gone if r.start_ms >= it.end_ms]


def test_failures_of_unknown_clients_name_neither_network_nor_principal(month: Month) -> None:
    nameless = [e for e in failures(month.events) if e.principal is None]
    assert len(nameless) > 100
    for it in nameless:
        assert (it.client_net, it.client_lib) == (None, None)
        assert None not in (it.listener, it.proto, it.auth_method, it.open_ms)
    planted = sum(
        only(month, it).number for it in (What.SPRAYING, What.GUESSED, What.EXPIRED_STORM)
    )
    ordinary = len(failures(month.events)) - len(nameless) - planted
    assert 0 < ordinary < 100


def test_a_tenant_grows_by_the_day_and_stays_below_its_limit(month: Month) -> None:
    it = only(month, What.GROWTH)
    first = sent(month, it.tenant, it.start_ms, it.start_ms + DAY)
    third = sent(month, it.tenant, it.start_ms + 2 * DAY, it.start_ms + 3 * DAY)
    assert third / first == pytest.approx(it.factor**2, rel=0.03)
    assert it.factor == 1.04
    hours = range(it.start_ms, it.end_ms, HOUR)
    assert 0 < max(sent(month, it.tenant, at, at + HOUR) for at in hours) < it.limit
    assert it.reached_ms is not None
    assert it.reached_ms > it.end_ms
    assert not waited(month, it.rules[0])


def test_an_idle_tenant_uses_next_to_nothing(month: Month) -> None:
    it = only(month, What.IDLE)
    used = month.planted.truth[it.tenant or ""]
    assert 0 < used.messages_in < 100
    assert used.messages_out == 0
    assert used.open_ms == pytest.approx(3 * DAY, rel=0.05)


def test_rules_hold_the_limited_tenant_back_every_day(month: Month) -> None:
    it = only(month, What.LIMITED)
    assert it.rules == LIMITED_RULES
    for rule in LIMITED_RULES:
        found = waited(month, rule)
        assert {r.tenant for r in found} == {it.tenant}
        assert {(r.start_ms - it.start_ms) // DAY for r in found} == {0, 1, 2}
    assert sent(month, it.tenant, it.start_ms, it.end_ms) <= it.limit


def test_a_missing_file_leaves_a_gap(month: Month) -> None:
    it = only(month, What.GAP)
    assert it.file is not None
    path = month.folder / it.file
    named = name_of(path)
    assert named is not None
    assert not path.exists()
    assert it.number == named.last - named.first + 1
    seen = {r.seq for r in month.usage if (r.gw, r.boot) == (it.gateway, it.boot)}
    assert not seen & set(range(named.first, named.last + 1))
    assert {named.first - 1, named.last + 1} <= seen


def test_a_duplicate_is_the_same_file_in_the_folder_of_another_day(month: Month) -> None:
    it = only(month, What.DUPLICATE)
    assert it.file is not None
    assert it.other is not None
    one, two = month.folder / it.file, month.folder / it.other
    assert one.read_bytes() == two.read_bytes()
    assert one.name == two.name
    assert one.parents[1] != two.parents[1]


def test_a_late_file_has_records_of_the_third_day_in_the_folder_of_the_sixth(
    month: Month,
) -> None:
    it = only(month, What.LATE)
    assert it.file is not None
    records = whole_lines(month, it)
    first_ms = only(month, What.IDLE).start_ms
    assert {(record["start_ms"] - first_ms) // DAY for record in records} == {2}
    assert it.file.startswith("usage/dt=2026-11-07/")
    assert len(records) == it.number


def test_a_torn_file_ends_within_a_member(month: Month) -> None:
    it = only(month, What.TORN)
    assert it.file is not None
    with pytest.raises(EOFError), gzip.open(month.folder / it.file) as file:
        file.read()
    named = name_of(month.folder / it.file)
    assert named is not None
    seen = {r.seq for r in month.usage if (r.gw, r.boot) == (it.gateway, it.boot)}
    lost = [seq for seq in range(named.first, named.last + 1) if seq not in seen]
    assert lost == list(range(named.last - it.number + 1, named.last + 1))
    assert 0 < it.number < named.last - named.first


def test_a_file_has_hostile_lines(month: Month) -> None:
    it = only(month, What.HOSTILE)
    assert it.file is not None
    no_json, half, stranger = gzip.decompress((month.folder / it.file).read_bytes()).splitlines()[
        -it.number :
    ]
    for line in (no_json, half):
        with pytest.raises(ValueError, match=r".+"):
            json.loads(line)
    assert json.loads(stranger)["v"] == UNKNOWN_VERSION
    assert [r.v for r in month.strange] == [UNKNOWN_VERSION]
    assert month.ledger.unreadable == 2 + 1  # lines, and the torn file


def test_the_clock_of_a_file_is_ahead(month: Month) -> None:
    it = only(month, What.CLOCK_AHEAD)
    records = whole_lines(month, it)
    assert {record["start_ms"] % (5 * MINUTE) for record in records} == {AHEAD_MS} == {it.number}
    assert {record["start_ms"] // DAY for record in records} == {it.start_ms // DAY}


def whole_lines(month: Month, fact: Fact) -> list[dict[str, int]]:
    assert fact.file is not None
    content = gzip.decompress((month.folder / fact.file).read_bytes())
    return [json.loads(line) for line in content.splitlines()]
