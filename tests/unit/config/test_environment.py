"""Environment variables are replaced in values, and cannot change a file's structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import source
from gateway.config.load import load
from gateway.config.model import Configuration
from gateway.errors import ConfigurationError
from gateway.wire.address import Address

Read = Callable[..., Configuration]

VALUES = {"NAME": "value", "EMPTY": "", "PORT": "6650", "TRUE": "true", "MERGE": "<<"}

FILE = """\
version: 1
listeners:
  - name: clients
    bind: "127.0.0.1:6650"
    cluster: main
    # trace
clusters:
  main:
    brokers: pulsar://127.0.0.1:16650
    # targets
limits:
  connections: 77777
"""


def parsed(value: str, environment: Mapping[str, str] = VALUES) -> object:
    """Return the value that results from a text in a file."""
    found = source.parse(f"key: {value}", "gateway.yaml", environment)
    assert not found.unreplaced
    assert isinstance(found.data, dict)
    return found.data["key"]


def mistakes(text: str, environment: Mapping[str, str], folder: Path) -> list[str]:
    path = folder / "gateway.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(path, environment)
    return [line.removeprefix(str(path)) for line in str(caught.value).splitlines()]


# -- what stands there afterwards --------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${NAME}", "value"),
        ("a ${NAME} and ${NAME}s", "a value and values"),
        ("${NONE:-default}", "default"),
        ("${NAME:-default}", "value"),
        ("${EMPTY:-default}", "default"),
        ("x${EMPTY}y", "xy"),
        ("x${NONE:-}y", "xy"),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-127.0.0.1:6650}", "127.0.0.1:6650"),
        ("${NONE:-broker-{n}.example}", "broker-{n}.example"),
        ("$$", "$"),
        ("$${NAME}", "${NAME}"),
        ("$$${NAME}", "$value"),
        ("${NONE:-1$$2}", "1$2"),
        ("$NAME $", "$NAME $"),
    ],
)
def test_a_variable_is_replaced_as_a_shell_would(written: str, value: str) -> None:
    assert parsed(written) == value
    assert parsed(f"'{written}'") == value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${PORT}", 6650),
        ("${PORT}0", 66500),
        ("${NONE:-1.5}", 1.5),
        ("${TRUE}", True),
        ("${EMPTY}", None),
        ("${NONE:-}", None),
        ("'${PORT}'", "6650"),
        ('"${TRUE}"', "true"),
        ("'${EMPTY}'", ""),
        ("|\n  ${PORT}", "6650"),
        ('!!int "${PORT}"', 6650),
        ("$$", "$"),
        ("${MERGE}", "<<"),
    ],
)
def test_a_plain_value_is_typed_afterwards_and_a_quoted_one_stays_text(
    written: str, value: object
) -> None:
    found = parsed(written)
    assert (found, type(found)) == (value, type(value))


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_value_adds_no_structure(value: str) -> None:
    text = 'a: ${V}\nb: ["${V}", 1]\nc: x ${V}\n'
    data = source.parse(text, "gateway.yaml", {"V": value}).data
    assert isinstance(data, dict)
    assert list(data) == ["a", "b", "c"]
    assert not isinstance(data["a"], dict | list)
    assert data["b"] == [value, 1]
    assert data["c"] == f"x {value}"


def test_keys_are_never_replaced() -> None:
    text = "${NAME}: 1\nb: &x ${NAME}\n*x : 2\n"
    found = source.parse(text, "gateway.yaml", VALUES)
    assert found.data == {"${NAME}": 2, "b": "value"}
    assert not found.unreplaced


def test_a_value_with_an_anchor_is_replaced_everywhere() -> None:
    text = "a: &x ${PORT}\nb: [*x, {c: *x}]\nd: &d {e: '${NAME}'}\nf: {<<: *d, g: *d}\n"
    assert source.parse(text, "gateway.yaml", VALUES).data == {
        "a": 6650,
        "b": [6650, {"c": 6650}],
        "d": {"e": "value"},
        "f": {"e": "value", "g": {"e": "value"}},
    }


def test_a_list_that_contains_itself_is_visited_once() -> None:
    data = source.parse("&a ['${NAME}', *a]", "gateway.yaml", VALUES).data
    assert isinstance(data, list)
    assert data[0] == "value"
    assert data[1] is data


# -- a whole file ------------------------------------------------------------------------------


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that loads a changed `FILE` in an environment."""

    def reader(changes: Mapping[str, str], environment: Mapping[str, str]) -> Configuration:
        text = FILE
        for old, new in changes.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        path = tmp_path / "gateway.yaml"
        path.write_text(text)
        return load(path, environment)

    return reader


def test_variables_set_addresses_and_numbers(read: Read) -> None:
    changes = {
        '"127.0.0.1:6650"': "${BIND:-127.0.0.1:6650}",
        "pulsar://127.0.0.1:16650": "${BROKERS}",
        "77777": "${CONNECTIONS:-10000}",
    }
    found = read(changes, {"BIND": ":6650", "BROKERS": "pulsar://a:1,b:2", "CONNECTIONS": "5"})
    assert found.listeners[0].bind == (Address("", 6650),)
    assert found.clusters["main"].brokers == (Address("a", 1), Address("b", 2))
    assert found.limits.connections == 5
    assert read(changes, {"BROKERS": "pulsar://a"}).limits.connections == 10_000


@pytest.mark.parametrize(
    ("ports", "expected"), [("6650", (6650,)), ("6650, 6651", (6650, 6651)), (" 1,2 ", (1, 2))]
)
def test_one_variable_can_hold_a_list(read: Read, ports: str, expected: tuple[int, ...]) -> None:
    targets = "targets:\n      hosts: ${HOSTS}\n      networks: ${NETS:-}\n      ports: ${PORTS}"
    changes = {"# targets": targets, "# trace": "trace: ${TRACE:-10.0.0.1,fd00::/8}"}
    found = read(changes, {"HOSTS": "a.example, *.b", "PORTS": ports})
    listed = found.clusters["main"].targets
    assert listed is not None
    assert (listed.hosts, listed.networks, listed.ports) == (("a.example", "*.b"), (), expected)
    assert [str(it) for it in found.listeners[0].trace] == ["10.0.0.1/32", "fd00::/8"]
    assert read({"# trace": "trace: ${TRACE:-}"}, {}).listeners[0].trace == ()


def test_the_environment_of_the_process_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(FILE.replace("77777", "${SOME_CONNECTIONS}"))
    monkeypatch.setenv("SOME_CONNECTIONS", "3")
    assert load(path).limits.connections == 3


# -- mistakes ----------------------------------------------------------------------------------


def test_all_unset_variables_are_reported_with_their_lines(tmp_path: Path) -> None:
    text = FILE.replace('"127.0.0.1:6650"', '"${HOST}:${PORT}"').replace("77777", "${MOST}")
    text = text.replace("cluster: main", "cluster: mian")
    unset = (
        "uses the environment variable {0}, which is not set; "
        "set it, or give a default: ${{{0}:-...}}"
    )
    assert mistakes(text, {}, tmp_path) == [
        ":4: listeners[0].bind: " + unset.format("HOST"),
        ":4: listeners[0].bind: " + unset.format("PORT"),
        ":5: listeners[0].cluster: names no cluster; did you mean 'main'?",
        ":12: limits.connections: " + unset.format("MOST"),
    ]


@pytest.mark.parametrize(
    "written", ["${", "${}", "${NAME", "${1A}", "${A B}", "${A-b}", "${A:b}", "${A:-${B}}"]
)
def test_a_malformed_variable_is_a_mistake(written: str, tmp_path: Path) -> None:
    (mistake,) = mistakes(FILE.replace("77777", f"'x{written}'"), {"A": "1", "B": "2"}, tmp_path)
    assert mistake == (
        ":12: limits.connections: has a ${ that is not a variable; "
        "${NAME}, ${NAME:-default}, or $$ for a dollar"
    )


def test_a_value_that_is_not_utf_8_is_a_mistake(tmp_path: Path) -> None:
    (mistake,) = mistakes(FILE.replace("77777", "${BYTES}"), {"BYTES": "\udcff"}, tmp_path)
    assert mistake.endswith(
        "uses the environment variable BYTES, which is not UTF-8; set it to UTF-8 text"
    )


def test_a_wrong_value_is_reported_by_its_variable_and_not_repeated(tmp_path: Path) -> None:
    text = FILE.replace("77777", "${MOST:-77777}").replace("pulsar://127.0.0.1:16650", "${BROKERS}")
    environment = {"MOST": "s3cret", "BROKERS": "pulsar://a,http://s3cret"}
    broker, connections = mistakes(text, environment, tmp_path)
    assert broker.startswith(":9: clusters.main.brokers[1]: has a scheme that is not known; ")
    assert broker.endswith(" (the value comes from BROKERS)")
    assert connections.startswith(":12: limits.connections: is not a whole number; ")
    assert connections.endswith(" (the value comes from MOST)")
    assert "s3cret" not in broker + connections


def test_a_wrong_default_is_a_mistake_of_the_file(tmp_path: Path) -> None:
    (mistake,) = mistakes(FILE.replace("77777", "${MOST:-x}"), {}, tmp_path)
    assert mistake.endswith("is not a whole number; digits only, without quotes")


@pytest.mark.parametrize("value", ["0b_", "9" * 5000, "._", "=", "~"])
def test_any_value_is_a_number_or_a_mistake_with_its_line(value: str, tmp_path: Path) -> None:
    (mistake,) = mistakes(FILE.replace("77777", "${MOST}"), {"MOST": value}, tmp_path)
    assert mistake.startswith(":12: ")
    assert value not in mistake
