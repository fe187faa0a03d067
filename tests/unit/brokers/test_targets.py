from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.brokers.targets import REFUSED, TargetList
from gateway.config.model import Targets
from gateway.errors import ConfigurationError
from gateway.wire.address import Address


@pytest.mark.parametrize(
    ("pattern", "host", "allowed"),
    [
        ("broker.svc", "broker.svc", True),
        ("Broker.SVC.", "broker.svc", True),
        ("broker.svc", "BROKER.svc.", True),
        ("broker.svc", "xbroker.svc", False),
        ("broker.svc", "broker.svc.evil", False),
        ("broker.svc", "brokerxsvc", False),
        ("*.pulsar.svc", "broker-0.pulsar.svc", True),
        ("*.pulsar.svc", "a.b.pulsar.svc", True),
        ("*.pulsar.svc", "pulsar.svc", False),
        ("broker-*.svc", "broker-10.svc", True),
        ("broker-*.svc", "broker-10.svc\n", False),
        ("*", "anything", True),
        ("10.0.*", "10.0.0.1", True),
    ],
)
def test_a_host_is_matched_by_name(pattern: str, host: str, allowed: bool) -> None:
    targets = TargetList(hosts=["other", pattern], ports=[6650])
    assert targets.check(host, "192.0.2.1", 6650) is (None if allowed else REFUSED)


@pytest.mark.parametrize(
    ("network", "ip", "allowed"),
    [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.0/8", "::ffff:10.1.2.3", True),
        ("::ffff:10.0.0.0/104", "10.1.2.3", True),
        ("::/0", "10.1.2.3", False),
        ("::/0", "::ffff:10.1.2.3", False),
        ("0.0.0.0/0", "fd00::1", False),
        ("fd00::/8", "fd00::1", True),
        ("fe80::/10", "fe80::1%eth0", True),
        ("fe80::/10", "fd00::1%eth0", False),
        ("0.0.0.0/0", "broker", False),
        ("0.0.0.0/0", "", False),
    ],
)
def test_an_ip_address_is_matched_by_network(network: str, ip: str, allowed: bool) -> None:
    targets = TargetList(networks=["192.0.2.0/24", network], ports=[6650])
    assert targets.check("unlisted", ip, 6650) is (None if allowed else REFUSED)


def test_a_port_must_be_listed() -> None:
    targets = TargetList(hosts=["*"], networks=["0.0.0.0/0"], ports=[6650, 6651])
    assert targets.check("broker", "10.0.0.1", 6651) is None
    assert targets.check("broker", "10.0.0.1", 22) is REFUSED


def test_an_empty_list_allows_nothing() -> None:
    assert TargetList().check("broker", "10.0.0.1", 6650) is REFUSED
    assert TargetList(ports=[6650]).check("", "10.0.0.1", 6650) is REFUSED


def test_by_default_only_configured_brokers_are_allowed() -> None:
    targets = TargetList.of([Address("broker", 6650), Address("fd00::1", 6651)])
    assert targets.check("broker", "10.0.0.1", 6650) is None
    assert targets.check("fd00::1", "fd00::1", 6651) is None
    assert targets.check("broker-0", "10.0.0.1", 6650) is REFUSED
    assert targets.check("broker", "10.0.0.1", 8080) is REFUSED


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("broker-7.pulsar.svc", True),
        ("10.1.2.3", True),
        ("fd00:0:0:0:0:0:0:1", True),
        ("fd00::2", False),
        ("10.1.2.300", False),
        ("configured.example", False),
        ("11.1.2.3", False),
        ("org.apache.pulsar.svc.Exception", False),
        ("pulsar-7", False),
        (f"{'a' * 300}.pulsar.svc", False),
    ],
)
def test_filter_listed_finds_listed_hosts(host: str, named: bool) -> None:
    """Patterns that any word of a text may match do not count."""
    hosts, always = ["*.pulsar.svc", "pulsar-*", "fd00::1"], [Address("configured.example", 6650)]
    targets = TargetList(hosts, ["10.0.0.0/8"], [6650], always)
    assert targets.filter_listed(["other", host, "1.2.3.4"]) == ({host} if named else set())


@pytest.mark.parametrize(
    ("pattern", "host", "allowed"),
    [
        ("a*b*c", "abc", True),
        ("a*b*c", "a-b-b-c-c", True),
        ("a*b*c", "acb", False),
        ("*bb*bb", "bbb", False),
        ("*bb*bb", "bbbb", True),
        ("a*a", "a", False),
        ("**", "", True),
    ],
)
def test_a_pattern_may_have_several_stars(pattern: str, host: str, allowed: bool) -> None:
    assert TargetList([pattern], ports=[1]).check(host, "", 1) is (None if allowed else REFUSED)


@given(
    st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=8).map("".join),
    st.text("ab", max_size=10),
)
def test_patterns_match_like_shell_patterns(pattern: str, host: str) -> None:
    allowed = TargetList([pattern], ports=[1]).check(host, "", 1) is None
    assert allowed is fnmatchcase(host, pattern)


@pytest.mark.parametrize(
    ("host", "port", "possible"),
    [
        ("broker.svc", 6650, True),
        ("broker.svc", 22, False),
        ("other.example", 6650, False),
        ("configured.example", 6651, True),
        ("configured.example", 6650, False),
    ],
)
def test_a_name_that_nothing_can_allow_is_refused_before_the_look_up(
    host: str, port: int, possible: bool
) -> None:
    targets = TargetList(["*.svc"], [], [6650], [Address("configured.example", 6651)])
    assert targets.check_name(host, port) is (None if possible else REFUSED)


def test_with_networks_any_name_may_resolve_to_a_listed_address() -> None:
    targets = TargetList([], ["10.0.0.0/8"], [6650])
    assert targets.check_name("other.example", 6650) is None
    assert targets.check_name("other.example", 22) is REFUSED


def test_describe_lists_everything() -> None:
    targets = TargetList(["*.svc"], ["10.0.0.0/8"], [6651, 6650])
    assert targets.describe() == "hosts: *.svc; networks: 10.0.0.0/8; ports: 6650, 6651"
    assert TargetList().describe() == "hosts: none; networks: none; ports: none"


@pytest.mark.parametrize(
    ("hosts", "networks", "ports", "reason"),
    [
        (["a b"], [], [], "'a b' is no host name"),
        ([""], [], [], "is no host name"),
        (["pulsar://a"], [], [], "is no host name"),
        ([], ["10.0.0.1/8"], [], "has host bits set"),
        ([], ["ten"], [], "Write for example 10.0.0.0/8"),
        ([], [], [0], "port 0 is not between"),
        ([], [], [65536], "port 65536 is not between"),
    ],
)
def test_invalid_entries_are_explained(
    hosts: list[str], networks: list[str], ports: list[int], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        TargetList(hosts, networks, ports)


def test_configured_brokers_are_allowed_whatever_is_listed() -> None:
    listed = Targets(hosts=("*.pulsar.svc",), ports=(6650,))
    targets = TargetList.of([Address("Broker.example.", 16650)], listed)
    assert targets.check("broker.example", "10.0.0.1", 16650) is None
    assert targets.check("broker.example", "10.0.0.1", 6650) is REFUSED
    assert targets.check("other.example", "10.0.0.1", 16650) is REFUSED
    assert targets.check("b.pulsar.svc", "10.0.0.1", 6650) is None
    assert targets.check("b.pulsar.svc", "10.0.0.1", 16650) is REFUSED
