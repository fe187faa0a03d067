from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.brokers.names import PORT, UNKNOWN_NAME, ChainedNames, SealedNames, TemplateNames
from gateway.brokers.seal import SealKey
from gateway.errors import ConfigurationError
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal

KEY = SealKey(bytes(range(32)))
OTHER_KEY = SealKey(bytes(range(1, 33)))
BROKER = Address("pulsar-broker-0.pulsar-broker.pulsar.svc.cluster.local", 6650)

# Host names that both Java's URI class and DNS accept.
JAVA_HOST = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?")

hosts = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,80}", fullmatch=True)
addresses = st.builds(Address, hosts, st.integers(1, 65535))
generations = st.integers(0, 2**32 - 1)


def named(names: SealedNames | TemplateNames, broker: Address, generation: int = 0) -> str:
    address = names.advertise(broker, generation)
    assert isinstance(address, Address)
    assert address.port == PORT
    return address.host


# -- sealed names --


@given(addresses, generations, st.integers(1, 65535))
def test_a_sealed_name_opens(broker: Address, generation: int, port: int) -> None:
    names = SealedNames("main", [KEY])
    name = named(names, broker, generation)
    assert names.open(name) == broker
    assert names.open(f"{name}:{port}") == broker


@given(addresses, generations)
def test_java_accepts_a_sealed_name_as_host_name(broker: Address, generation: int) -> None:
    name = named(SealedNames("main", [KEY]), broker, generation)
    assert JAVA_HOST.fullmatch(name)
    assert len(name) <= 253
    assert broker.host not in name or len(broker.host) < 4


def test_an_ipv6_broker_is_sealed() -> None:
    names = SealedNames("main", [KEY])
    assert names.open(named(names, Address("fd00::1", 6650))) == Address("fd00::1", 6650)


def test_replicas_agree_on_names() -> None:
    replica = SealedNames("main", [SealKey(bytes(range(32)))])
    assert named(SealedNames("main", [KEY]), BROKER) == named(replica, BROKER)


def test_generations_have_different_names_of_the_same_broker() -> None:
    names = SealedNames("main", [KEY])
    assert named(names, BROKER, 1) != named(names, BROKER)
    assert names.open(named(names, BROKER, 1)) == BROKER


def test_keys_are_rotated_without_a_gap() -> None:
    before, during = SealedNames("main", [KEY]), SealedNames("main", [KEY, OTHER_KEY])
    after, done = SealedNames("main", [OTHER_KEY, KEY]), SealedNames("main", [OTHER_KEY])
    assert named(before, BROKER) == named(during, BROKER)
    assert during.open(named(after, BROKER)) == BROKER
    assert after.open(named(during, BROKER)) == BROKER
    assert done.open(named(before, BROKER)) is UNKNOWN_NAME


def test_two_keys_with_the_same_id_both_open() -> None:
    twin = next(
        key
        for number in range(100_000)
        if (key := SealKey(number.to_bytes(40, "big"))).key_id == KEY.key_id
    )
    names = SealedNames("main", [twin, KEY])
    assert names.open(named(SealedNames("main", [KEY]), BROKER)) == BROKER
    assert names.open(named(SealedNames("main", [twin]), BROKER)) == BROKER


def test_the_name_of_another_cluster_is_unknown() -> None:
    name = named(SealedNames("main", [KEY]), BROKER)
    assert SealedNames("backup", [KEY]).open(name) is UNKNOWN_NAME
    assert SealedNames("mai", [KEY]).open(name) is UNKNOWN_NAME


def test_a_name_with_a_changed_character_does_not_open() -> None:
    names = SealedNames("main", [KEY])
    name = named(names, BROKER)
    for at in range(len(name)):
        for other in "0123456789abcdefghijklmnopqrstuvwxyz.-_:A \n":
            if other != name[at]:
                assert names.open(name[:at] + other + name[at + 1 :]) is UNKNOWN_NAME


@given(addresses)
def test_a_shorter_or_longer_name_does_not_open(broker: Address) -> None:
    names = SealedNames("main", [KEY])
    name = named(names, broker)
    for at in range(len(name)):
        assert names.open(name[:at] + name[at + 1 :]) is UNKNOWN_NAME
        assert names.open(name[:at] + "0" + name[at:]) is UNKNOWN_NAME


@pytest.mark.parametrize(
    "suffix", [":", ":x", ":6650:6650", ":665000", ".", "/", ":6650\n", "\n", ":\uff16"]
)
def test_only_a_port_may_follow_a_name(suffix: str) -> None:
    names = SealedNames("main", [KEY])
    assert names.open(named(names, BROKER) + suffix) is UNKNOWN_NAME


@given(st.text(max_size=300))
def test_any_other_text_is_unknown(text: str) -> None:
    names = SealedNames("main", [KEY])
    assert names.open(text) is UNKNOWN_NAME
    assert names.open(text + ".gw:6650") is UNKNOWN_NAME


@pytest.mark.parametrize(
    "text", ["", "gw", ".gw", "broker:6650", "10.0.0.1:6650", "a" * 10_000_000]
)
def test_an_address_is_not_a_name(text: str) -> None:
    assert SealedNames("main", [KEY]).open(text) is UNKNOWN_NAME


def test_hosts_of_up_to_126_characters_fit() -> None:
    names = SealedNames("main", [KEY])
    for length in range(1, 254):
        found = names.advertise(Address("a" * length, 6650))
        assert isinstance(found, Address) == (length <= 126), length


def test_a_host_that_is_too_long_is_denied() -> None:
    denial = SealedNames("main", [KEY]).advertise(Address("secret." * 30 + "host", 6650))
    assert isinstance(denial, Denial)
    assert denial.refusal is Refusal.UNSUPPORTED
    assert "too long" in denial.text
    assert "secret" not in denial.text


def test_sealing_needs_a_key_and_a_cluster() -> None:
    with pytest.raises(ConfigurationError, match="at least one key"):
        SealedNames("main", [])
    with pytest.raises(ConfigurationError, match="1 to 127 bytes"):
        SealedNames("", [KEY])


# -- readable names --

TEMPLATE = TemplateNames("broker-{n}.example", "pulsar-broker-{n}.pulsar.svc:6650")


@given(st.integers(0, 999_999))
def test_a_readable_name_opens(number: int) -> None:
    broker = Address(f"pulsar-broker-{number}.pulsar.svc", 6650)
    assert named(TEMPLATE, broker) == f"broker-{number}.example"
    assert TEMPLATE.open(f"broker-{number}.example:6650") == broker
    assert TEMPLATE.open(f"broker-{number}.example") == broker


@pytest.mark.parametrize(
    "name",
    [
        *("broker-01.example", "broker-00.example", "broker-1000000.example", "broker-.example"),
        *("broker--1.example", "broker-x.example", "broker-\u0661.example", "broker-1xexample"),
        *("broker-1.example.evil", "xbroker-1.example", "Broker-1.example", "broker-1.example:x"),
        *("broker-1.example:", "broker-1.example\n", "", "broker-{n}.example", "1" * 10_000),
    ],
)
def test_only_the_canonical_name_opens(name: str) -> None:
    assert TEMPLATE.open(name) is UNKNOWN_NAME


@pytest.mark.parametrize(
    "broker",
    [
        Address("pulsar-broker-01.pulsar.svc", 6650),
        Address("pulsar-broker-1.pulsar.svc", 6651),
        Address("pulsar-broker-1.pulsar.svc.evil", 6650),
        Address("10.0.0.1", 6650),
    ],
)
def test_the_denial_of_a_broker_that_does_not_fit_the_template_has_no_address(
    broker: Address,
) -> None:
    denial = TEMPLATE.advertise(broker)
    assert isinstance(denial, Denial)
    assert broker.host not in denial.text


def test_a_readable_name_has_no_alias() -> None:
    assert isinstance(TEMPLATE.advertise(Address("pulsar-broker-1.pulsar.svc", 6650), 1), Denial)


def test_a_template_of_addresses_is_used() -> None:
    names = TemplateNames("b{n}", "10.0.0.{n}:6650")
    assert names.open("b7") == Address("10.0.0.7", 6650)
    assert named(names, Address("10.0.0.7", 6650)) == "b7"


def test_a_template_without_a_port_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no port"):
        TemplateNames("b{n}", "10.0.0.{n}")


@pytest.mark.parametrize(
    ("advertised", "broker", "reason"),
    [
        ("broker.example", "b-{n}:6650", "exactly once"),
        ("b-{n}-{n}.example", "b-{n}:6650", "exactly once"),
        ("b-{n}.example", "broker:6650", "exactly once"),
        ("b-{n}.example", "b:665{n}", "exactly once"),
        ("b-{n}.example", "b-{n}:66500", "is not an address with a port"),
        ("b-{n}.example", "b {n}:6650", "is wrong"),
        ("B-{n}.example", "b-{n}:6650", "a-z, 0-9"),
        ("b_{n}.example", "b-{n}:6650", "a-z, 0-9"),
        ("b.{n}", "b-{n}:6650", "beginning with a letter"),
        ("b-{n}.1example", "b-{n}:6650", "beginning with a letter"),
        ("b-{n}.example.", "b-{n}:6650", "a-z, 0-9"),
        ("b-{n}.example:6650", "b-{n}:6650", "a-z, 0-9"),
        ("b" * 58 + "{n}", "b-{n}:6650", "labels of at most 63"),
        ("{n}" + ".abcd" * 50, "b-{n}:6650", "a-z, 0-9"),
    ],
)
def test_an_unusable_template_is_explained(advertised: str, broker: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        TemplateNames(advertised, broker)


# -- names of another gateway --

BEHIND = SealedNames("other", [OTHER_KEY])
"""The names that the gateway behind this one makes."""


def chained() -> ChainedNames:
    return ChainedNames(SealedNames("main", [KEY]))


def test_the_names_of_the_gateway_behind_pass_unchanged() -> None:
    theirs = named(BEHIND, BROKER)
    assert chained().advertise(Address(theirs, 6650)) == Address(theirs, 6650)
    assert chained().open(f"{theirs}:6650") == Address(theirs, 6650)


def test_other_addresses_are_sealed() -> None:
    name = chained().advertise(BROKER)
    assert name == SealedNames("main", [KEY]).advertise(BROKER)
    assert isinstance(name, Address)
    assert chained().open(str(name)) == BROKER


def test_an_alias_is_sealed() -> None:
    theirs = Address(named(BEHIND, Address("b.svc", 6650)), 6650)
    alias = chained().advertise(theirs, 7)
    assert isinstance(alias, Address)
    assert alias != theirs
    assert chained().open(str(alias)) == theirs


@pytest.mark.parametrize("name", ["", "broker.internal:6650", "127.0.0.1:6650", "gw", "x" * 300])
def test_names_that_are_not_sealed_do_not_open(name: str) -> None:
    assert chained().open(name) is UNKNOWN_NAME


def test_a_sealed_name_contains_whether_the_broker_speaks_tls() -> None:
    names = SealedNames("main", [KEY])
    by_tls = BROKER._replace(tls=True)
    assert names.open(named(names, by_tls)) == by_tls
    assert named(names, by_tls) != named(names, BROKER)


def test_a_template_has_no_names_for_brokers_behind_tls() -> None:
    assert isinstance(TEMPLATE.advertise(Address("pulsar-broker-7.pulsar.svc", 6650, True)), Denial)
