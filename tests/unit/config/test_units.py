"""Readers of values as people write them."""

from __future__ import annotations

import math

import pytest

from gateway.config import units
from gateway.wire.address import Address


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("500ms", 0.5), ("10s", 10), ("2m", 120), ("1.5h", 5400), ("10 s", 10), (3, 3), (0.25, 0.25)],
)
def test_durations_are_read_in_seconds(written: object, seconds: float) -> None:
    assert units.seconds(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    ["10", "s", "-1s", "10d", "1e3s", "", None, True, [], math.nan, math.inf, 10**400, "10s\n"],
)
def test_other_durations_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration; 500ms"):
        units.seconds(written)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("64KiB", 65536),
        ("5MB", 5_000_000),
        ("1.5mib", 1_572_864),
        ("7B", 7),
        (12, 12),
        ("2GB", 2e9),
    ],
)
def test_sizes_are_read_in_bytes(written: object, size: float) -> None:
    found = units.size(written)
    assert found == size
    assert isinstance(found, int)


@pytest.mark.parametrize("written", ["64K", "x", None, False, math.inf, math.nan, "1TiB"])
def test_other_sizes_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"is not a size; 64KiB"):
        units.size(written)


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("127.0.0.1:6650", Address("127.0.0.1", 6650)),
        ("[::1]:6650", Address("::1", 6650)),
        ("0.0.0.0:0", Address("0.0.0.0", 0)),
        (":6650", Address("", 6650)),
        ("gw.example:1", Address("gw.example", 1)),
    ],
)
def test_binds_are_read(written: object, address: Address) -> None:
    assert units.bind(written) == address
    assert units.binds(written) == (address,)
    assert units.binds([":1", written]) == (Address("", 1), address)


def test_a_wrong_bind_of_a_list_is_named() -> None:
    with pytest.raises(ValueError, match="entry 2 has no port"):
        units.binds([":1", "host"])
    with pytest.raises(ValueError, match="is empty"):
        units.binds([])


@pytest.mark.parametrize(
    "written",
    [
        "6650",
        6650,
        "host",
        "host:",
        "host:x",
        "h:65536",
        "::1:6650",
        "[h]:1",
        "[::1]",
        "a b:1",
        "*:1",
        "127.0.0:1",
        "[fe80::1%eth0]:1",
    ],
)
def test_other_binds_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r";"):
        units.bind(written)


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("pulsar://b:6651", Address("b", 6651)),
        ("pulsar://b", Address("b", 6650)),
        ("pulsar://[fd00::1]:6650/", Address("fd00::1", 6650)),
    ],
)
def test_brokers_are_read(written: object, address: Address) -> None:
    assert units.broker(written) == address


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("http://b:80", "has a scheme that is not known"),
        ("b:6650", "has no scheme"),
        ("pulsar://", "has no host"),
        ("pulsar://:6650", "has no host"),
        ("pulsar://b:0", "or port 0"),
        ("pulsar://user:secret@b:6650", "is not an address"),
        ("pulsar://b:6650/path", "is not an address"),
        ("pulsar://10.0.0.300:6650", "has an invalid host"),
        ("pulsar://10.0.0:6650", "has an invalid host"),
        ("pulsar://[fe80::1%eth0]:6650", "has an invalid host"),
    ],
)
def test_other_brokers_are_refused(written: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        units.broker(written)


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        (3, (3,)),
        ("0-2", (0, 1, 2)),
        ("7, 1-2,0", (7, 1, 2, 0)),
        ([5, "10-12"], (5, 10, 11, 12)),
        ("0-999", tuple(range(1000))),
    ],
)
def test_ids_of_brokers_are_read_in_their_order(written: object, ids: tuple[int, ...]) -> None:
    assert units.ids(written) == ids


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("", "is empty"),
        ([], "is empty"),
        (-1, "has what is no id"),
        (True, "has what is no id"),
        (None, "is empty"),
        ("-", "has what is no id"),
        ("1-2-3", "has what is no id"),
        ("1-x", "has what is no id"),
        (["1.5"], "has what is no id"),
        ([True], "has what is no id"),
        ([[1]], "has what is no id"),
        ("9" * 5000, "has what is no id"),
        ("2-1", "has a range that cannot be"),
        ("0-1000", "has a range that cannot be"),
        ("0-999,1000", "has a range that cannot be"),
        ("0-999999999", "has a range that cannot be"),
        ("1,0-1", "has an id twice"),
    ],
)
def test_other_ids_are_refused(written: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        units.ids(written)


@pytest.mark.parametrize("written", ["Gateway.Example", "10.1.2.3", "fd00::1"])
def test_a_host_that_clients_are_told_is_read(written: str) -> None:
    assert units.host(written) == written.lower()


@pytest.mark.parametrize("written", ["*.example", "a b", "a/b", "", 7, None, "x" * 254])
def test_other_hosts_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"is not a host; a name|is empty|is not a text"):
        units.host(written)


def test_brokers_in_one_text_share_the_first_scheme() -> None:
    assert units.brokers("pulsar://a:1, b:2,http://c") == [
        "pulsar://a:1",
        "pulsar://b:2",
        "http://c",
    ]


@pytest.mark.parametrize(
    ("written", "entries"),
    [
        ("a, b ,c", ["a", "b", "c"]),
        ("a", ["a"]),
        ("6650,x", [6650, "x"]),
        (6650, [6650]),
        ("a,,b", ["a", "", "b"]),
        ("1" * 10, ["1" * 10]),
        ("", []),
        (" ", []),
        (None, []),
        ([1, "a"], [1, "a"]),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_a_text_with_commas_is_a_list(written: object, entries: object) -> None:
    assert units.entries(written) == entries


def test_a_list_of_brokers_is_unchanged() -> None:
    assert units.brokers(["x"]) == ["x"]


@pytest.mark.parametrize(
    ("written", "network"),
    [("10.0.0.0/8", "10.0.0.0/8"), ("127.0.0.1", "127.0.0.1/32"), ("FD00::/8", "fd00::/8")],
)
def test_networks_are_read(written: object, network: str) -> None:
    assert str(units.network(written)) == network


def test_a_network_with_host_bits_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"has bits beyond its mask; 10\.0\.0\.0/8"):
        units.network("10.0.0.1/8")


@pytest.mark.parametrize("written", ["10.0.0.0/33", "localhost", "", None])
def test_other_networks_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r";"):
        units.network(written)


@pytest.mark.parametrize("written", ["main", "eu-1", "A.b_c", "x" * 63])
def test_names_are_read(written: str) -> None:
    assert units.name(written) == written


@pytest.mark.parametrize("written", ["", "-a", "a b", "a/b", "x" * 64, "a\n", "é", 3, True])
def test_other_names_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r";"):
        units.name(written)


@pytest.mark.parametrize("written", ["Pulsar.Example", "*.pulsar.svc", "10.0.0.1", "fd00::1", "*"])
def test_host_patterns_are_read_in_lower_case(written: str) -> None:
    assert units.host_pattern(written) == written.lower()


@pytest.mark.parametrize("written", ["a b", "a/b", "", "x" * 254, 5])
def test_other_host_patterns_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r";"):
        units.host_pattern(written)


def test_the_final_dot_of_a_host_is_ignored() -> None:
    assert units.host_pattern("*.pulsar.svc.") == "*.pulsar.svc"
    with pytest.raises(ValueError, match="is not a host"):
        units.host_pattern(".")


def test_templates_need_the_number_of_a_broker() -> None:
    assert units.host_template("broker-{n}.example") == "broker-{n}.example"
    assert units.broker_template("pulsar-{n}.internal:6650") == "pulsar-{n}.internal:6650"
    for written in (
        "b" * 58 + "-{n}",
        "b.example",
        "b-{n}-{n}.example",
        "b-{n}-{m}.x",
        "{n}:1",
        "B{n}.x",
        "a.{n}",
    ):
        with pytest.raises(ValueError, match=r"\{n\}"):
            units.host_template(written)
    for written in (
        "pulsar-{n}.internal",
        "pulsar.internal:6650",
        "p-{n}:0",
        "p-{n}:x",
        "p.{n}:1",
        "{n}{n}:1",
    ):
        with pytest.raises(ValueError, match=r"\{n\}"):
            units.broker_template(written)


@pytest.mark.parametrize("port", [0, 65536, "6650", True, 1.5])
def test_other_ports_are_refused(port: object) -> None:
    with pytest.raises(ValueError, match=r";"):
        units.port(port)


@pytest.mark.parametrize(
    "written",
    [
        "https://a.example",
        "https://a.example:8443/keys?x=1",
        "HTTPS://A.example/",
        "https://[2001:db8::1]/",
        "http://localhost:8080/keys",
        "http://127.0.0.1/",
        "http://[::1]:1/",
        "http://LOCALHOST/",
    ],
)
def test_a_url_whose_answers_can_be_trusted(written: str) -> None:
    assert units.https(f" {written} ") == written


@pytest.mark.parametrize(
    "written",
    [
        "http://a.example",
        "http://127.0.0.2/",
        "http://localhost.a.example/",
        "ftp://localhost/",
        "file://localhost/etc/passwd",
        "//localhost/",
        "ws://localhost",
    ],
)
def test_a_url_without_tls_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not secured by TLS; https://host/path"):
        units.https(written)


@pytest.mark.parametrize(
    "written",
    [
        *("a.example", "/keys", "https:", "https://", "https:///keys", "https://:1", "https://[/"),
        *("https://a:x/", "https://a:70000/", "https://a b/", "https://a/\0", "https://a\u202e/"),
        "https://\ud800/",
    ],
)
def test_what_is_no_url_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not a URL; https://host/path"):
        units.https(written)


@pytest.mark.parametrize(
    "written",
    [
        "https://user:hidden@a.example/",
        "https://hidden@a.example",
        "https://:hidden@a",
        "https://@a",
    ],
)
def test_a_url_with_a_password_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(ValueError, match="contains a user or password; https://host/path") as it:
        units.https(written)
    assert "hidden" not in str(it.value)


@pytest.mark.parametrize("written", [None, "", " ", 1, True, ["https://a"]])
def test_a_url_is_a_text(written: object) -> None:
    with pytest.raises(ValueError, match=r"is empty|is not a text"):
        units.https(written)


def test_a_pattern_is_a_regular_expression() -> None:
    assert units.pattern("(?P<user>.*)@a") == "(?P<user>.*)@a"


@pytest.mark.parametrize("written", ["(", "[", "*", "(?P<a", "a{2,1}", "(" * 9999, "(?=a)"])
def test_other_patterns_are_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"is not a regular expression: .+"):
        units.pattern(written)


@pytest.mark.parametrize("written", [None, "", 1, ["a"]])
def test_a_pattern_is_a_text(written: object) -> None:
    with pytest.raises(ValueError, match=r"is empty|is not a text"):
        units.pattern(written)
