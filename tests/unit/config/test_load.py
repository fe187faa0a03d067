"""Loading a file returns a configuration, or reports all mistakes with their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gateway.config.load import build, check, load
from gateway.config.mistakes import Place, format_place
from gateway.config.model import (
    Anonymous,
    Certificates,
    Configuration,
    Deadlines,
    Identity,
    Names,
    Sealed,
)
from gateway.errors import ConfigurationError
from gateway.wire.address import Address

Write = Callable[[str], Path]
MistakesOf = Callable[[str], list[str]]

SMALLEST = """\
version: 1
listeners: [{name: clients, bind: "127.0.0.1:6650", cluster: main}]
clusters: {main: {brokers: "pulsar://127.0.0.1:16650"}}
"""

WHOLE = """\
version: 1
listeners:
  - name: clients
    protocol: pulsar
    bind: :6650
    cluster: main
    identity:
      mode: verify-and-forward
      token:
        public_key_file: keys/public.pem
        algorithms: [ES256, PS256]
        principal_claim: name
        audience: gateway
        issuer: https://issuer.example
        clock_skew: 30s
    unknown: mask
    trace: [10.0.0.0/8, "::1"]
clusters:
  main:
    brokers: [pulsar://a:16650, "pulsar://b"]
    credential: {token_file: keys/token}
    targets: {hosts: ["*.example"], networks: [10.0.0.0/8], ports: [6650]}
    names: {sealed: {keys: [{file: keys/seal}]}}
  other:
    brokers: pulsar://c:1,d:2
    names: {template: {advertise: "broker-{n}.example", broker: "pulsar-{n}.internal:6650"}}
admin: {bind: 127.0.0.1:8080}
deadlines: {handshake: 5s, dial: 500ms, idle: 2m, grace: 0}
limits: {connections: 7, handshake_frame: 1KiB, collected_frame: 5MB, buffered: 1GiB}
data_plane: {buffer: 64KiB, turn: 1ms, socket_buffer: 1MiB}
log: {format: json, level: debug}
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a configuration and the files that `WHOLE` names, and enter its folder."""
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("public.pem", "token", "seal"):
        (keys / name).write_text("content")
    (keys / "empty").touch()
    monkeypatch.chdir(tmp_path)

    def writer(text: str) -> Path:
        path = tmp_path / "gateway.yaml"
        path.write_text(text)
        return path.relative_to(tmp_path)

    return writer


@pytest.fixture
def mistakes_of(write: Write) -> MistakesOf:
    def loader(text: str) -> list[str]:
        with pytest.raises(ConfigurationError) as caught:
            load(write(text))
        return str(caught.value).splitlines()

    return loader


def changed(old: str, new: str) -> tuple[str, int]:
    """Return `WHOLE` with one change, and the line of the change."""
    assert WHOLE.count(old) == 1
    return WHOLE.replace(old, new), WHOLE[: WHOLE.index(old)].count("\n") + 1


# -- good files ------------------------------------------------------------------------------


def test_the_smallest_file_gets_all_defaults(write: Write) -> None:
    found = load(write(SMALLEST))
    listener, cluster = found.listeners[0], found.clusters["main"]
    assert listener.bind == (Address("127.0.0.1", 6650),)
    assert (listener.protocol, listener.unknown, listener.trace) == ("pulsar", "pass", ())
    assert listener.identity == Identity(mode="pass-through")
    assert cluster.brokers == (Address("127.0.0.1", 16650),)
    assert cluster.names == Names(sealed=Sealed(keys=()))
    assert (found.admin, cluster.credential, cluster.targets) == (None, None, None)
    assert found.deadlines == Deadlines(handshake=10, dial=5, idle=120, grace=20)
    assert (found.data_plane.turn, found.data_plane.socket_buffer) == (0.002, None)


def test_the_whole_file_is_read(write: Write, tmp_path: Path) -> None:
    found = load(write(WHOLE))
    listener, main, other = found.listeners[0], found.clusters["main"], found.clusters["other"]
    token = listener.identity.token
    assert token
    assert token.public_key_file == tmp_path / "keys/public.pem"
    assert (token.algorithms, token.clock_skew) == (("ES256", "PS256"), 30)
    assert listener.trace == (ip_network("10.0.0.0/8"), ip_network("::1"))
    assert main.brokers == (Address("a", 16650), Address("b", 6650))
    assert main.targets
    assert main.targets.networks == (ip_network("10.0.0.0/8"),)
    assert main.names.sealed
    assert main.names.sealed.keys[0].file == tmp_path / "keys/seal"
    assert other.brokers == (Address("c", 1), Address("d", 2))
    assert other.names.template
    assert other.names.template.broker == "pulsar-{n}.internal:6650"
    assert (found.limits.collected_frame, found.data_plane.turn) == (5_000_000, 0.001)


def test_files_are_located_beside_the_configuration(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(WHOLE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = load(tmp_path / "gateway.yaml")
    credential = found.clusters["main"].credential
    assert credential
    assert credential.token_file == tmp_path / "keys/token"


def test_a_configuration_cannot_be_changed(write: Write) -> None:
    found = load(write(SMALLEST))
    with pytest.raises(ValidationError):
        found.limits.connections = 3


@pytest.mark.parametrize(
    ("key", "algorithms"), [("secret_file", ("HS256",)), ("public_key_file", ("RS256",))]
)
def test_algorithms_default_to_what_fits_the_key(
    write: Write, key: str, algorithms: tuple[str, ...]
) -> None:
    text, _ = changed("        public_key_file: keys/public.pem\n", "")
    text = text.replace("algorithms: [ES256, PS256]", f"{key}: keys/token")
    token = load(write(text)).listeners[0].identity.token
    assert token
    assert token.algorithms == algorithms


def test_anchors_and_merged_keys_work(write: Write) -> None:
    text = """\
    version: 1
    listeners:
      - &usual {name: one, bind: "127.0.0.1:1", cluster: main}
      - {<<: *usual, name: two, bind: "127.0.0.1:2"}
    clusters: {main: {brokers: "pulsar://b"}}
    """
    assert [it.name for it in load(write(dedent(text))).listeners] == ["one", "two"]


def test_check_counts_listeners_and_clusters(write: Write) -> None:
    assert check(write(SMALLEST)) == "gateway.yaml: ok (1 listener, 1 cluster)"
    assert check(write(WHOLE)) == "gateway.yaml: ok (1 listener, 2 clusters)"


def test_check_names_the_store(write: Write) -> None:
    text = SMALLEST + "\nstore: {url: valkey://store.example}\n"
    told = "gateway.yaml: ok (1 listener, 1 cluster, store redis://store.example:6379)"
    assert check(write(text)) == told


# -- one mistake -----------------------------------------------------------------------------

ONE_MISTAKE = [
    ("version: 1", "version: 2", "version: is not a version that this gateway understands; 1"),
    ("version: 1", "version: true", "version: is not a version that this gateway understands"),
    (
        "    unknown: mask",
        "    unknwn: mask",
        "unknwn: is not a key known here; did you mean 'unkn",
    ),
    (
        "    unknown: mask",
        "    zzz: mask",
        "zzz: is not a key known here; known here: access, advertise, bind, ",
    ),
    ("    unknown: mask", "    unknown: hide", "unknown: is not understood; one of 'pass' or 'mas"),
    ("    bind: :6650", "    bind: nowhere", "listeners[0].bind: has no port; host:port"),
    (
        "    cluster: main",
        "    cluster: mian",
        "listeners[0].cluster: names no cluster; did you me",
    ),
    ("  - name: clients", "  - name: yes", "listeners[0].name: is not a text; put it in quotes"),
    ("mode: verify-and-forward", "mode: verfy", "listeners[0].identity.mode: is not understood"),
    ("keys/public.pem", "keys/none", "token.public_key_file: cannot be read: no such file"),
    ("keys/public.pem", "keys", "token.public_key_file: is not a file; name a file"),
    ("keys/public.pem", "keys/empty", "token.public_key_file: is an empty file; name one"),
    ("[ES256, PS256]", "[ES256, HS256]", "token.algorithms[1]: does not fit the kind of key; one"),
    ("[ES256, PS256]", "[none]", "token.algorithms[0]: would accept unsigned tokens"),
    ("[ES256, PS256]", "[XS256]", "token.algorithms[0]: is not a known algorithm; one of"),
    ("[ES256, PS256]", "[]", "token.algorithms: is empty; at least one"),
    ("[ES256, PS256]", "{a: b}", "token.algorithms: is not a list; indented lines"),
    ("clock_skew: 30s", "clock_skew: 1h", "clock_skew: is out of bounds; from 0 to 10m"),
    ('"::1"]', '"::1", here]', "listeners[0].trace[2]: is not a network; 10.0.0.0/8"),
    ("pulsar://a:16650", "http://a:1", "brokers[0]: has a scheme that is not known; pulsar"),
    ("pulsar://a:16650", "pulsar://b:6650", "clusters.main.brokers: has the same broker twice"),
    ("pulsar://c:1,d:2", "pulsar://c:1,d:x", "clusters.other.brokers[1]: is not an address with"),
    ("[pulsar://a:16650, ", "[3, ", "clusters.main.brokers[0]: is not a text; put it in quotes"),
    ("keys/token", "keys/tokn", "clusters.main.credential.token_file: cannot be read: no such"),
    ("ports: [6650]", "ports: [0]", "clusters.main.targets.ports[0]: is not a port; from 1 to"),
    ('hosts: ["*.example"], networks: [10.0.0.0/8], ', "", "targets: allow nothing; at least"),
    ("{sealed: ", "{template: {}, sealed: ", "clusters.main.names: needs one kind of names"),
    ("{keys: [{file: keys/seal}]}", "3", "clusters.main.names.sealed: is not a mapping; indented"),
    ("broker-{n}.example", "broker.example", "template.advertise: is not a name with one {n}, of"),
    ("  other:", "  o ther:", "clusters.o ther: is not a name; letters, digits"),
    ("127.0.0.1:8080", "127.0.0.1:6650", "admin.bind: overlaps with listeners[0].bind; choose"),
    ("grace: 0", "grace: -1", "deadlines.grace: is out of bounds; from 0 to 10m"),
    ("grace: 0", "grace: soon", "deadlines.grace: is not a duration; 500ms, 10s"),
    ("connections: 7", "connections: '7'", "limits.connections: is not a whole number; digits"),
    (
        "buffered: 1GiB",
        "buffered: 1MiB",
        "limits: leave too little memory for the rest; make buffered",
    ),
    ("buffer: 64KiB", "buffer: 32KiB", "data_plane.buffer: is out of bounds; from 64KiB to 4MiB"),
    ("level: debug", "level: loud", "log.level: is not understood; one of 'debug', 'info', 'war"),
    ("log: {format: json, level: debug}", "log:", "log: is not a mapping; indented lines of"),
    ("log: {format: json, ", "7: {", "[7]: is not a text; keys are texts"),
]


@pytest.mark.parametrize(("old", "new", "complaint"), ONE_MISTAKE)
def test_a_mistake_is_reported_with_its_line_and_place(
    mistakes_of: MistakesOf, old: str, new: str, complaint: str
) -> None:
    text, line = changed(old, new)
    found = [it for it in mistakes_of(text) if complaint in it]
    assert len(found) == 1, mistakes_of(text)
    assert found[0].startswith(f"gateway.yaml:{line}: ")


def test_most_mistakes_are_reported_once(mistakes_of: MistakesOf) -> None:
    several = {"{template: {}, sealed: ", "log: {format: json, "}
    for old, new, _ in ONE_MISTAKE:
        if not {old, new} & several and "pulsar://b:6650" not in new:
            assert len(mistakes_of(changed(old, new)[0])) == 1, new


@pytest.mark.parametrize(
    ("dropped", "line", "complaint"),
    [
        ("version: 1\n", 1, "version: is missing; for example version: 1"),
        ("    bind: :6650\n", 3, "listeners[0].bind: is missing; for example bind: 127.0.0.1:665"),
        ("    cluster: main\n", 3, "listeners[0].cluster: is missing; for example cluster: main"),
        ("    brokers: pulsar://c:1,d:2\n", 24, "clusters.other.brokers: is missing; for example"),
    ],
)
def test_a_missing_key_is_reported_where_it_belongs(
    mistakes_of: MistakesOf, dropped: str, line: int, complaint: str
) -> None:
    (mistake,) = mistakes_of(WHOLE.replace(dropped, ""))
    assert mistake.startswith(f"gateway.yaml:{line}: {complaint}")


@pytest.mark.parametrize(
    ("identity", "complaint"),
    [
        ("{mode: verify}", "identity.token: is missing; verifying needs a key of those"),
        ("{token: {secret_file: keys/token}}", "identity.token: has no effect: pass-through"),
        (
            "{mode: verify, token: {audience: a}}",
            "identity.token: has no keys; one of secret_file, ",
        ),
        (
            "{mode: verify, token: {secret_file: keys/token, public_key_file: keys/public.pem}}",
            "identity.token: has 2 keys; one of secret_file, public_key_file, ",
        ),
        (
            "{mode: verify, token: {secret_file: keys/token, algorithms: [RS256]}}",
            "algorithms[0]: does not fit the kind of key; one of HS256, HS384, HS512",
        ),
    ],
)
def test_identity_and_token_must_fit(
    mistakes_of: MistakesOf, identity: str, complaint: str
) -> None:
    text = SMALLEST.replace("cluster: main}", f"cluster: main, identity: {identity}}}")
    (mistake,) = mistakes_of(text)
    assert mistake.startswith("gateway.yaml:2: listeners[0].identity.")
    assert complaint in mistake


@pytest.mark.parametrize(
    ("access", "rules", "complaints"),
    [
        ("access: open", False, []),
        ("access: open", True, []),
        ("access: shadow", True, []),
        ("access: shadow, unknown: mask", True, []),
        ("access: closed, unknown: mask", True, []),
        ("access: shadow", False, ["lets nobody do anything"]),
        ("access: closed, unknown: mask", False, ["lets nobody do anything"]),
        ("access: closed", True, ["lets commands pass"]),
        ("access: closed, unknown: pass", True, ["lets commands pass"]),
        ("access: closed", False, ["lets commands pass", "lets nobody do anything"]),
        ("access: opa, unknown: mask", False, ["asks a policy agent, but none is named"]),
        ("access: opa", True, ["asks a policy agent, but none is named", "lets commands pass"]),
        ("access: shut", True, ["is not understood; one of 'open', 'closed', 'shadow' or 'opa'"]),
    ],
)
def test_access_needs_rules_and_knows_all_commands(
    tmp_path: Path, write: Write, access: str, rules: bool, complaints: list[str]
) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules: [{id: a, allow: produce}]")
    text = SMALLEST.replace("cluster: main}", f"cluster: main, {access}}}")
    path = write(text + ("rules: rules.yaml\n" if rules else ""))
    told: list[str] = []
    try:
        load(path, {})
    except ConfigurationError as error:
        told = str(error).splitlines()
    prefix = "gateway.yaml:2: listeners[0].access: "
    for line, complaint in zip(sorted(told), complaints, strict=True):
        assert line.removeprefix(f"{tmp_path}/").startswith(prefix + complaint)


def test_access_is_open_unless_the_file_says_otherwise(write: Write) -> None:
    (listener,) = load(write(SMALLEST), {}).listeners
    assert listener.access == "open"


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("127.0.0.1:1", "127.0.0.1:1", True),
        (":1", "127.0.0.1:1", True),
        ("10.0.0.1:1", "0.0.0.0:1", True),
        ("10.0.0.1:1", "10.0.0.2:1", False),
        ("127.0.0.1:1", "127.0.0.1:2", False),
        (":0", ":0", False),
    ],
)
def test_binds_must_not_overlap(
    write: Write, mistakes_of: MistakesOf, first: str, second: str, overlap: bool
) -> None:
    text = SMALLEST.replace(
        '[{name: clients, bind: "127.0.0.1:6650", cluster: main}]',
        f'[{{name: a, bind: "{first}", cluster: main}},\n'
        f'{{name: b, bind: "{second}", cluster: main}}]',
    )
    if overlap:
        (mistake,) = mistakes_of(text)
        assert mistake.startswith("gateway.yaml:3: listeners[1].bind: overlaps with listeners[0].b")
    else:
        assert len(load(write(text)).listeners) == 2


KAFKA = """\
version: 1
listeners:
  - {name: a, protocol: kafka, bind: ["127.0.0.1:9092", "127.0.0.2:9192"], cluster: main,
     advertise: {ports: {host: gateway.example, ids: "1-2,7", first_port: 9100}}}
clusters: {main: {brokers: "kafka://127.0.0.1:19092"}}
"""


def test_each_broker_has_a_port_on_each_host_of_bind(write: Write) -> None:
    (listener,) = load(write(KAFKA), {}).listeners
    hosts = ("127.0.0.1", "127.0.0.2")
    brokers = [Address(host, port) for port in (9100, 9101, 9102) for host in hosts]
    assert listener.binds == (*listener.bind, *brokers)


def test_ports_of_brokers_must_not_overlap_others(mistakes_of: MistakesOf) -> None:
    text = f"{KAFKA}admin: {{bind: '127.0.0.1:9102'}}\n"
    (mistake,) = mistakes_of(text)
    assert mistake.startswith("gateway.yaml:6: admin.bind: overlaps with listeners[0].bind; choose")


@pytest.mark.parametrize("setting", ["connection_age: 1h", "access: closed", "unknown: mask"])
def test_clients_of_kafka_need_no_keys_and_pass_nothing_unknown(
    tmp_path: Path, write: Write, setting: str
) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules: [{id: a, allow: produce}]")
    text = KAFKA.replace("cluster: main,", f"cluster: main, {setting},")
    assert load(write(f"{text}rules: rules.yaml\n"), {})


def test_listener_names_must_differ(mistakes_of: MistakesOf) -> None:
    text = SMALLEST.replace(
        "cluster: main}]", 'cluster: main},\n{name: clients, bind: ":1", cluster: main}]'
    )
    assert mistakes_of(text) == [
        "gateway.yaml:3: listeners[1].name: is also the name of listeners[0]; choose another"
    ]


# -- many mistakes ---------------------------------------------------------------------------

MANY = """\
version: 3
listners: []
listeners:
  - name: clients
    bind: :1
    bind: :6650
    cluster: mian
    identity:
      mode: verify
      token: {secret_file: absent, algorithms: [RS256]}
  - name: clients
    bind: 127.0.0.1:6650
    cluster: main
clusters:
  main:
    brokers: [http://b]
    names: {}
deadlines: {idle: ages}
"""


TOLD = """\
gateway.yaml:1: version: is not a version that this gateway understands; 1, without quotes
gateway.yaml:2: listners: is not a key known here; did you mean 'listeners'?
gateway.yaml:6: listeners[0].bind: occurs twice, first in line 5; keep one
gateway.yaml:7: listeners[0].cluster: names no cluster; did you mean 'main'?
gateway.yaml:10: listeners[0].identity.token.algorithms[0]: \
does not fit the kind of key; one of HS256, HS384, HS512
gateway.yaml:10: listeners[0].identity.token.secret_file: \
cannot be read: no such file or directory; a path, relative to the configuration's folder
gateway.yaml:11: listeners[1].name: is also the name of listeners[0]; choose another
gateway.yaml:12: listeners[1].bind: overlaps with listeners[0].bind; choose another port or address
gateway.yaml:16: clusters.main.brokers[0]: has a scheme that is not known; \
pulsar://host:port or pulsar+ssl://host:port or kafka://host:port or kafka+ssl://host:port or \
tubemq://host:port or tubemq+ssl://host:port
gateway.yaml:17: clusters.main.names: needs one kind of names; either sealed or template
gateway.yaml:18: deadlines.idle: is not a duration; 500ms, 10s, 2m or a number of seconds
"""


def test_all_mistakes_are_reported_at_once_by_line(mistakes_of: MistakesOf) -> None:
    assert mistakes_of(MANY) == TOLD.splitlines()


SECRET = "c2VjcmV0-do-not-show"


@pytest.mark.parametrize(
    "line",
    [
        f"version: {SECRET}",
        f"clusters: {{main: {{credential: {{token_file: {SECRET}}}}}}}",
        f"clusters: {{main: {{brokers: 'pulsar://me:{SECRET}@b'}}}}",
        f"listeners: {SECRET}",
        f"listeners: [{{name: {SECRET}, bind: {SECRET}, identity: {SECRET}, trace: [{SECRET}]}}]",
        f"deadlines: {{idle: {SECRET}}}\nlimits: {{buffered: {SECRET}, connections: {SECRET}}}",
        f"listeners: [{{protocol: kafka, advertise: {{ports: {{ids: {SECRET}}}}}}}]",
        f"listeners: [{{protocol: kafka, advertise: {{ports: {{host: '{SECRET}*'}}}}}}]",
        f"log: {{level: {SECRET}}}",
        f"log: !!int {SECRET}",
        f"log: !!bool {SECRET}",
        f"log: !!timestamp {SECRET}",
        f"log: [{SECRET}",
    ],
)
def test_no_value_is_repeated_in_a_message(mistakes_of: MistakesOf, line: str) -> None:
    assert not [it for it in mistakes_of(line) if SECRET in it]


# -- not YAML --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("version: 1\nlisteners:\n  - bind: [::1]:5\n", "gateway.yaml:3: is not YAML: while"),
        ("version: 1\nlisteners:\n\t- x\n", "gateway.yaml:3: is not YAML: "),
        ("version: 1\n---\nversion: 1\n", "gateway.yaml:2: is not YAML: expected a single docum"),
        ("version: !thing 1", "gateway.yaml:1: is not YAML: could not determine a constructor"),
        ("? [a]\n: 1\n", "gateway.yaml:1: is not YAML: while constructing a mapping, found unhas"),
        ("a: *b", "gateway.yaml:1: is not YAML: found undefined alias"),
        (
            "a: \x01",
            "gateway.yaml: holds characters that YAML does not allow; use plain UTF-8 text",
        ),
        ("\n" + "[" * 50_000, "gateway.yaml:2: is not YAML: found more than 32 levels; check"),
        ("", "gateway.yaml:1: is empty; at least version, listeners and clusters"),
        ("# nothing", "gateway.yaml:1: is empty; at least version, listeners and clusters"),
        ("- version: 1", "gateway.yaml:1: is not a mapping; indented lines of"),
        ("&a [*a]", "gateway.yaml:1: is not a mapping; indented lines of"),
    ],
)
def test_invalid_yaml_is_reported_with_its_line(
    mistakes_of: MistakesOf, text: str, complaint: str
) -> None:
    (mistake,) = mistakes_of(text)
    assert mistake.startswith(complaint)


def test_a_list_that_contains_itself_is_a_mistake(mistakes_of: MistakesOf) -> None:
    assert len(mistakes_of("version: 1\nlisteners: &a\n  - *a\nclusters: *a\n")) == 2


def test_a_date_is_a_text(mistakes_of: MistakesOf) -> None:
    text = SMALLEST.replace("name: clients", "name: 2024-13-45")
    with pytest.raises(ConfigurationError, match="names no cluster"):
        raise ConfigurationError("\n".join(mistakes_of(text.replace("r: main}", "r: x}"))))


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_bytes(b"version: \xff")
    with pytest.raises(ConfigurationError, match=r"gateway\.yaml: is not UTF-8 text"):
        load(path)


def test_a_missing_configuration_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: no such file or directory"):
        load(tmp_path / "none.yaml")
    with pytest.raises(ConfigurationError, match="cannot be read: is a directory"):
        load(tmp_path)


def test_a_model_without_a_folder_keeps_paths_as_written() -> None:
    data = {
        "version": 1,
        "listeners": [{"name": "a", "bind": ":1", "cluster": "main"}],
        "clusters": {"main": {"brokers": "pulsar://b", "credential": {"token_file": "x/y"}}},
    }
    found = Configuration.model_validate(data)
    credential = found.clusters["main"].credential
    assert credential
    assert str(credential.token_file) == "x/y"


# -- anything at all -------------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(data: object, place: Place = ()) -> Iterator[Place]:
    yield place
    steps = dict(enumerate(data)) if isinstance(data, list) else data
    for step, inner in steps.items() if isinstance(steps, dict) else ():
        yield from places(inner, (*place, step))


@given(st.sampled_from(list(places(yaml.safe_load(WHOLE)))[1:]), ANYTHING)
def test_anything_anywhere_is_a_value_or_a_mistake(
    tmp_path_factory: pytest.TempPathFactory, place: Place, value: object
) -> None:
    data = part = yaml.safe_load(WHOLE)
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    _, mistakes = build(data, tmp_path_factory.getbasetemp())
    assert mistakes  # the files are not there
    assert all(";" in it.text or "did you mean" in it.text for it in mistakes), mistakes
    assert all(isinstance(format_place(it.place), str) for it in mistakes)


@given(ANYTHING)
def test_a_file_of_anything_is_a_mistake(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    found, mistakes = build(value, tmp_path_factory.getbasetemp())
    assert found is None
    assert mistakes


# -- ways to verify a client -------------------------------------------------------------------


def verifying(identity: str, listener: str = "") -> str:
    """Return a file whose listener verifies clients in these ways."""
    more = f", {listener}" if listener else ""
    whole = f"cluster: main, identity: {{mode: verify, {identity}}}{more}}}"
    return SMALLEST.replace("cluster: main}", whole)


def test_clients_may_be_verified_in_several_ways(write: Write) -> None:
    ways = "token: {jwks_url: 'https://a.example/keys'}, basic: {htpasswd_file: keys/token}"
    identity = load(write(verifying(f"{ways}, anonymous: {{}}"))).listeners[0].identity
    assert list(identity.methods()) == ["token", "basic", "anonymous"]
    assert identity.anonymous == Anonymous(principal="anonymous")
    assert identity.methods()["anonymous"].shown_as == ("", "none")


def test_an_issuer_in_the_token_part_is_one_of_several(write: Write) -> None:
    own = "secret_file: keys/token, issuer: one"
    other = "issuers: [{issuer: two, jwks_url: 'https://a.example', clock_skew: 5s}]"
    token = load(write(verifying(f"token: {{{own}, {other}}}"))).listeners[0].identity.token
    assert token is not None
    one, two = token.all_issuers()
    assert (one.issuer, one.algorithms, one.clock_skew) == ("one", ("HS256",), 0)
    assert (two.issuer, two.algorithms, two.clock_skew) == ("two", ("RS256",), 5)


def test_without_a_key_of_its_own_the_token_part_is_no_issuer(write: Write) -> None:
    text = verifying("token: {issuers: [{jwks_url: 'https://a.example'}]}")
    token = load(write(text)).listeners[0].identity.token
    assert token is not None
    assert [it.jwks_url for it in token.all_issuers()] == ["https://a.example"]


def test_discovery_takes_the_issuer_as_a_url(write: Write) -> None:
    text = verifying("token: {discovery: true, issuer: 'https://a.example', ca_file: keys/token}")
    token = load(write(text)).listeners[0].identity.token
    assert token is not None
    assert (token.discovery, token.algorithms) == (True, ("RS256",))


URL = "jwks_url: 'https://a.example'"


@pytest.mark.parametrize(
    ("identity", "complaint"),
    [
        (f"token: {{{URL}, discovery: true, issuer: 'https://a'}}", "token: has 2 keys; one of"),
        ("token: {discovery: false}", "token: has no keys; one of secret_file"),
        (f"token: {{issuers: [{{{URL}}}, {{audience: a}}]}}", "issuers[1]: has no keys; one of"),
        ("token: {discovery: true}", "token.issuer: cannot be discovered: is empty"),
        (
            "token: {discovery: true, issuer: a.example}",
            "token.issuer: cannot be discovered: is not a URL",
        ),
        (
            "token: {jwks_file: keys/token, ca_file: keys/token}",
            "token.ca_file: has no effect: nothing is fetched",
        ),
        (f"token: {{{URL}, algorithms: [HS256]}}", "algorithms[0]: does not fit the kind of key"),
        (
            f"token: {{issuers: [{{{URL}}}, {{{URL}}}]}}",
            "issuers[1].issuer: is the same as of listeners[0].identity.token.issuers[0]; tokens",
        ),
        (
            f"token: {{{URL}, issuer: a, issuers: [{{{URL}, issuer: a}}]}}",
            "issuers[0].issuer: is the same as of listeners[0].identity.token; tokens must",
        ),
        ("tls: {}", "tls: has no effect: clients show no certificate; set tls.client_certificates"),
        ("tls: {names: []}", "names: is empty; at least one"),
        ("basic: {}", "basic.htpasswd_file: is missing; for example"),
        (f"token: {{{URL}}}, principals: [{{match: a}}]", "principal: is missing; for example"),
        (
            f"token: {{{URL}}}, principals: [{{match: '(', principal: a}}]",
            "principals[0].match: is not a regular expression: missing )",
        ),
        (
            f"token: {{{URL}}}, principals: [{{match: '(?P<a>.)', principal: '{{b}}'}}]",
            "principals[0]: names the group b, which match does not have",
        ),
        (f"token: {{{URL}, issuers: 1}}", "issuers: is not a list"),
        (f"token: {{{URL}, issuers: [1]}}", "issuers[0]: is not a mapping"),
        (f"token: {{{URL}, issuer: [a]}}", "issuer: is not a text"),
        (f"token: {{issuers: [{{{URL}, issuer: {{}}}}, {{{URL}, issuer: a}}]}}", "is not a text"),
    ],
)
def test_a_mistake_in_the_ways_to_verify_is_reported(
    mistakes_of: MistakesOf, identity: str, complaint: str
) -> None:
    found = mistakes_of(verifying(identity))
    assert any(complaint in it for it in found), found
    assert all(it.startswith("gateway.yaml:2: listeners[0].identity.") for it in found)


@pytest.mark.parametrize(
    "identity",
    [
        "anonymous: {}",
        "tls: {}, anonymous: {}",
        "basic: {htpasswd_file: keys/token}",
        "principals: [{match: a, principal: b}]",
    ],
)
def test_pass_through_verifies_in_no_way(mistakes_of: MistakesOf, identity: str) -> None:
    text = SMALLEST.replace("cluster: main}", f"cluster: main, identity: {{{identity}}}}}")
    found = mistakes_of(text)
    assert found
    assert all("has no effect" in it for it in found)


@pytest.mark.parametrize("identity", ["token: {issuers: []}", "token: {}", ""])
def test_verifying_needs_a_way(mistakes_of: MistakesOf, identity: str) -> None:
    (mistake,) = mistakes_of(verifying(identity))
    assert "has no keys" in mistake or "is missing; verifying needs a key" in mistake


def test_certificates_need_a_listener_that_asks_for_them(write: Write) -> None:
    shown = "certificates: [{certificate_file: keys/token, key_file: keys/token}]"
    tls = f"tls: {{{shown}, client_certificates: optional, client_ca_file: keys/token}}"
    identity = load(write(verifying("tls: {names: dns}", tls))).listeners[0].identity
    assert identity.tls == Certificates(names=("dns",))
