from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.brokers.learned import MOST_HOSTS, LearnedHosts
from gateway.brokers.targets import TargetList
from gateway.wire.kafka.plugin import PLUGIN as KAFKA
from gateway.wire.plugin import Plugin
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR
from gateway.wire.tubemq.plugin import PLUGIN as TUBEMQ

from . import slow_cleaning

FQDN = "pulsar-broker-0.pulsar-broker.pulsar.svc.cluster.local"


@pytest.fixture
def learned() -> LearnedHosts:
    learned = LearnedHosts(PULSAR)
    learned.learn(
        FQDN, "10.0.0.1", "pulsar", "fd00::1", "public", "default", "persistent", "broker-1.svc."
    )
    return learned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        # names and addresses, with ports of any kind
        (f"at {FQDN}", "at broker"),
        (f"at {FQDN}:6650.", "at broker."),
        (f"at {FQDN}.", "at broker."),
        (f"at {FQDN}.:6650", "at broker"),
        (f"at {FQDN.upper()}:8080", "at broker"),
        (f"http://{FQDN}:8080/admin/v2", "http://broker/admin/v2"),
        (f"pulsar+ssl://{FQDN}:6651,", "pulsar+ssl://broker,"),
        ("10.0.0.1", "broker"),
        ("(10.0.0.1:80)", "(broker)"),
        ("instance:10.0.0.1:6650", "instance:broker"),
        (f"instance:{FQDN}:8080. Please redo", "instance:broker. Please redo"),
        ("a=10.0.0.1,b=broker-1.svc;", "a=broker,b=broker;"),
        ('{"brokerUrl":"pulsar://pulsar:6650"}', '{"brokerUrl":"pulsar://broker"}'),
        # Java's socket addresses
        (f"refused: {FQDN}/10.0.0.1:6650", "refused: broker"),
        (f"refused: {FQDN}/10.9.9.9:6650", "refused: broker"),
        ("refused: some-pod/10.0.0.1:6650", "refused: broker"),
        ("refused: pulsar/10.9.9.9:6650", "refused: broker"),
        ("refused: /10.0.0.1:6650", "refused: /broker"),
        ("[id: 0x1, L:/10.0.0.1:80 - R:/10.0.0.9:80]", "[id: 0x1, L:/broker - R:/10.0.0.9:80]"),
        (f"{FQDN}/<unresolved>:6650", "broker"),
        ("pulsar/<unresolved>:6650", "broker"),
        # IPv6, compressed and as Java spells it
        ("to [fd00::1]:6650", "to broker"),
        ("to fd00::1.", "to broker."),
        ("to [FD00:0:0:0:0:0:0:1]:6650", "to broker"),
        ("to /fd00:0:0:0:0:0:0:1:6650", "to /broker"),
        ("to pod/fd00:0:0:0:0:0:0:1:6650", "to broker"),
        ("to pod/[fd00:0:0:0:0:0:0:1]:6650", "to broker"),
        ("to [fd00::1%eth0]:6650", "to broker"),
        # hosts without a dot, where they are addresses
        ("pulsar:6650 is down", "broker is down"),
        ("pulsar://pulsar is down", "pulsar://broker is down"),
        ("http://PULSAR", "http://broker"),
    ],
)
def test_a_learned_host_is_replaced(learned: LearnedHosts, text: str, cleaned: str) -> None:
    assert learned.clean(text) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "persistent://public/default/x",
        "non-persistent://public/default/pulsar",
        f"persistent://public/default/{FQDN}:6650",
        "persistent://public/default/10.0.0.1-partition-3",
        "topic://public/default/pulsar:6650",
        "segment://public/default/x/0000-ffff-7",
        "public/default/x",
        "Namespace public/default is being unloaded",
        "the default, the public, the persistent and the pulsar",
        "pulsar: it does not work",
        "pulsar:1",
        "my-pulsar:6650",
        "pulsar-2:6650",
        "pulsar.example:6650",
        f"x.{FQDN}",
        f"{FQDN}.example",
        f"my-{FQDN}",
        f"{FQDN}-2",
        "10.0.0.12",
        "110.0.0.1",
        "10.0.0.1.5",
        "v10.0.0.1",
        "fd00::12",
        "fd00::1:2:3:4",
        "at 2026-01-01T10:00:00.123Z [pulsar-io-4-1]",
        "java.lang.IllegalStateException: a.b.C$D@1f3c",
        "",
    ],
)
def test_other_words_and_topics_stay(learned: LearnedHosts, text: str) -> None:
    assert learned.clean(text) == text


@pytest.mark.parametrize("protocol", [KAFKA, TUBEMQ])
@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (
            "from '[PLAINTEXT://10.0.0.1:19092, SSL://x:1]'",
            "from '[PLAINTEXT://broker, SSL://x:1]'",
        ),
        (f"at SASL_SSL://{FQDN}:9092", "at SASL_SSL://broker"),
        ("controller://pulsar:9093", "controller://broker"),
    ],
)
def test_a_host_behind_a_listener_s_name_is_replaced(
    protocol: Plugin, text: str, cleaned: str
) -> None:
    """These protocols have no names of topics that look like addresses."""
    learned = LearnedHosts(protocol)
    learned.learn(FQDN, "10.0.0.1", "pulsar")
    assert learned.clean(text) == cleaned


def test_a_topic_is_kept_beside_a_host(learned: LearnedHosts) -> None:
    text = f"topic persistent://public/default/pulsar (on {FQDN}:6650) not served by pulsar:6650"
    assert learned.clean(text) == (
        "topic persistent://public/default/pulsar (on broker) not served by broker"
    )


def test_other_hosts_stay() -> None:
    learned = LearnedHosts(PULSAR)
    assert learned.clean("pulsar://other.svc:6650") == "pulsar://other.svc:6650"
    learned.learn("broker.svc")
    assert learned.clean("pulsar://other.svc:6650") == "pulsar://other.svc:6650"


def test_hosts_that_may_be_dialled_are_replaced_before_they_are_learned() -> None:
    learned = LearnedHosts(PULSAR, targets={"other.svc", "10.0.0.1", "plain"}.intersection)
    learned.learn("broker.svc")
    assert learned.clean("pulsar://other.svc:6650, x/10.0.0.1:1234") == "pulsar://broker, broker"
    assert learned.clean("persistent://a/b/other.svc is plain") == (
        "persistent://a/b/other.svc is plain"
    )


def test_dialled_hosts_do_not_evict_hosts_that_brokers_named() -> None:
    learned = LearnedHosts(PULSAR, bound=2)
    learned.learn("a.svc")
    learned.learn_dialled(*(f"invented-{number}.svc" for number in range(10)))
    assert learned.clean("a.svc invented-0.svc invented-9.svc") == "broker invented-0.svc broker"
    assert len(learned) == 3


def test_the_oldest_is_forgotten_first() -> None:
    learned = LearnedHosts(PULSAR, bound=2)
    learned.learn("a.svc", "b.svc")
    learned.learn("a.svc")
    learned.learn("c.svc")
    assert learned.clean("a.svc b.svc c.svc") == "broker b.svc broker"
    assert len(learned) == 2


def test_learned_hosts_are_bounded() -> None:
    learned = LearnedHosts(PULSAR)
    learned.learn(*(f"host-{number}.svc" for number in range(MOST_HOSTS + 10)))
    assert len(learned) == MOST_HOSTS


words = st.sampled_from(
    ["pulsar", ":", "/", "6650", "10.0.0.1", "-", ".", " ", FQDN, "fd00::1", "[", "]", "x", "://",
     "persistent", "\n", "é", "%"]
)  # fmt: skip


@given(st.lists(words, max_size=30).map("".join))
def test_no_address_with_a_port_survives_beside_other_text(text: str) -> None:
    learned = LearnedHosts(PULSAR)
    learned.learn(FQDN, "10.0.0.1")
    cleaned = learned.clean(text + f" {FQDN}:6650 10.0.0.1:8080")
    assert cleaned.endswith(" broker broker")


@given(st.text(max_size=200))
def test_text_without_learned_hosts_is_untouched(text: str) -> None:
    learned = LearnedHosts(PULSAR)
    learned.learn("never-said.example")
    assert learned.clean(text) == text


# -- cost ------------------------------------------------------------------------------------

HOSTS = (FQDN, "10.0.0.1", "fd00::1", "pulsar", "broker-1.svc")
PIECES = [
    *HOSTS, FQDN.upper(), "fd00:0:0:0:0:0:0:1", "[fd00::1%eth0]", "10.0.0.12", "fd00::2",
    "persistent://", "pulsar+ssl://", "HTTP://", "topic://", "non-", "<unresolved>", "é", "x",
    "ffff", ":", "::", "/", ".", "-", "--", "_", " ", ",", "'", "(", "[", "]", "%", "6650", "1",
    "\n", "K",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=1000)
def test_the_text_equals_that_of_the_reference_implementation(text: str) -> None:
    learned = LearnedHosts(PULSAR)
    learned.learn(*HOSTS)
    assert learned.clean(text) == slow_cleaning.clean(text, HOSTS)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=300)
def test_targets_are_cleaned_as_learned_hosts_are(text: str) -> None:
    hosts = [it for it in HOSTS if ":" not in it]
    targets = TargetList([FQDN], ["10.0.0.1/32"], [6650])
    learned = LearnedHosts(PULSAR, targets=targets.filter_listed)
    learned.learn("pulsar", "broker-1.svc")
    assert learned.clean(text) == slow_cleaning.clean(text, hosts)


@given(st.text(st.sampled_from("ab1.:-_/ %[]é<>,"), max_size=60))
@settings(max_examples=1000)
def test_texts_of_separators_equal_those_of_the_reference_implementation(text: str) -> None:
    hosts = ("a", "b.a", "a-b", "1::b", "1.1.1.1", "ab::")
    learned = LearnedHosts(PULSAR)
    learned.learn(*hosts)
    assert learned.clean(text) == slow_cleaning.clean(text, hosts)


HOSTILE = [
    "a", "a ", "a-", "a.", "a:", "1:", ":", "/", "f:", "[::", "[::1]", "::1 ", "persistent://",
    "1.", "a.a ", "a:22 ", "1:2:3 ", "1:2:3:4:5:6:7:8 ", "1.1.1.1 ", "a/1.1.1.1:80 ", "_", "- ",
    "a--", "http://a ", "/<unresolved>", "1:2.", "10.0.0.1 ", f"{FQDN}:6650 ", "fd00::1 ",
]  # fmt: skip


def hostile(piece: str, times: int) -> str:
    """Return a text of many pieces, which all differ if they contain a digit."""
    return "".join(piece.replace("1", f"{number % 250}", 1) for number in range(times))


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_cost_is_linear(piece: str) -> None:
    learned = LearnedHosts(
        PULSAR, targets=TargetList(["*.svc"], ["10.0.0.0/8"], [6650]).filter_listed
    )
    learned.learn(*HOSTS)
    one, two = (steps(learned, hostile(piece, times)) for times in (1_000, 2_000))
    assert two <= 2.2 * one + 50
    learned.clean(hostile(piece, 100_000))  # would never end with a quadratic pattern


@pytest.mark.parametrize("piece", [it for it in HOSTILE if it.strip(":650 ") not in HOSTS])
def test_words_that_are_no_brokers_cost_no_python_steps(piece: str) -> None:
    """Except words that may be an IPv6 address, which has several spellings."""
    learned = LearnedHosts(PULSAR)
    learned.learn(*HOSTS)
    text = hostile(piece, 1_000)
    could_be = {it for it in re.split(r"[^0-9a-f:]", text) if it.count(":") > 1}
    assert steps(learned, text) <= 100 + 12 * len(could_be)


def steps(learned: LearnedHosts, text: str) -> int:
    """Return the number of lines of the gateway that run to clean a text."""
    count = 0

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line" and "gateway" in frame.f_code.co_filename
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    learned.clean(text)
    sys.settrace(before)
    return count
