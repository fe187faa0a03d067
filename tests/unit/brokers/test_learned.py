from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.brokers.learned import MOST_HOSTS, LearnedHosts

FQDN = "pulsar-broker-0.pulsar-broker.pulsar.svc.cluster.local"


@pytest.fixture
def learned() -> LearnedHosts:
    learned = LearnedHosts()
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


def test_a_topic_is_kept_beside_a_host(learned: LearnedHosts) -> None:
    text = f"topic persistent://public/default/pulsar (on {FQDN}:6650) not served by pulsar:6650"
    assert learned.clean(text) == (
        "topic persistent://public/default/pulsar (on broker) not served by broker"
    )


def test_what_was_not_learned_stays() -> None:
    learned = LearnedHosts()
    assert learned.clean("pulsar://other.svc:6650") == "pulsar://other.svc:6650"
    learned.learn("broker.svc")
    assert learned.clean("pulsar://other.svc:6650") == "pulsar://other.svc:6650"


def test_what_may_be_dialled_is_replaced_before_it_was_learned() -> None:
    learned = LearnedHosts(is_target={"other.svc", "10.0.0.1", "plain"}.__contains__)
    learned.learn("broker.svc")
    assert learned.clean("pulsar://other.svc:6650, x/10.0.0.1:1234") == "pulsar://broker, broker"
    assert learned.clean("persistent://a/b/other.svc is plain") == (
        "persistent://a/b/other.svc is plain"
    )


def test_the_oldest_is_forgotten_first() -> None:
    learned = LearnedHosts(bound=2)
    learned.learn("a.svc", "b.svc")
    learned.learn("a.svc")
    learned.learn("c.svc")
    assert learned.clean("a.svc b.svc c.svc") == "broker b.svc broker"
    assert len(learned) == 2


def test_it_is_bounded() -> None:
    learned = LearnedHosts()
    learned.learn(*(f"host-{number}.svc" for number in range(MOST_HOSTS + 10)))
    assert len(learned) == MOST_HOSTS


words = st.sampled_from(
    ["pulsar", ":", "/", "6650", "10.0.0.1", "-", ".", " ", FQDN, "fd00::1", "[", "]", "x", "://",
     "persistent", "\n", "é", "%"]
)  # fmt: skip


@given(st.lists(words, max_size=30).map("".join))
def test_no_address_with_a_port_survives_beside_other_text(text: str) -> None:
    learned = LearnedHosts()
    learned.learn(FQDN, "10.0.0.1")
    cleaned = learned.clean(text + f" {FQDN}:6650 10.0.0.1:8080")
    assert cleaned.endswith(" broker broker")


@given(st.text(max_size=200))
def test_text_without_learned_hosts_is_untouched(text: str) -> None:
    learned = LearnedHosts()
    learned.learn("never-said.example")
    assert learned.clean(text) == text


@pytest.mark.parametrize(
    "piece", ["a", "a-", "a.", "a:", "1:", ":", "/", "f:", "[::", "persistent://", "1."]
)
def test_the_time_is_linear(piece: str) -> None:
    # A quadratic pattern would need a minute for these.
    learned = LearnedHosts()
    learned.learn(FQDN)
    text = piece * 50_000
    assert learned.clean(text) == text
