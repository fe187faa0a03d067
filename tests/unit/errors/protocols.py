"""Mistakes about protocols: brokers that have ids, and settings that mean nothing in one."""

from __future__ import annotations

from tests.unit.errors.case import KEY, PORTS, Case, config, kafka, tubemq
from tests.unit.errors.identities import GOOD, HASH
from tests.unit.errors.tlsfiles import FILES, SHOWN

LISTENER = "gateway.yaml:2: listeners[0]"
CLUSTER = "gateway.yaml:3: clusters.main"


def ports(**changed: str) -> str:
    """Return a file whose brokers have ports, some of whose settings are these."""
    settings = {"host": "gateway.example", "ids": "0-2", "first_port": "9093"} | changed
    told = ", ".join(f"{name}: {value}" for name, value in settings.items())
    return kafka(advertise=f"{{ports: {{{told}}}}}")


ADVERTISE = [
    Case(
        "brokers with ids that have no addresses",
        kafka(advertise=""),
        (
            f"{LISTENER}.advertise: is missing; clients of kafka connect to each broker: ports or "
            "names"
        ),
    ),
    Case(
        "clients of Pulsar whose metrics are hidden",
        config(listener="client_metrics: hide"),
        (
            f"{LISTENER}.client_metrics: has no effect: clients of pulsar tell brokers no metrics; "
            "leave it out"
        ),
    ),
    Case(
        "brokers of Pulsar that know each client by a password",
        config(cluster="credential: {each_principal: {passwords_file: passwords}}"),
        (
            "gateway.yaml:3: clusters.main.credential.each_principal: has no effect: brokers of "
            "pulsar are told who the client is; basic, or another credential"
        ),
        files={"passwords": b"alice: {username: a, password: b}"},
    ),
    Case(
        "brokers without ids that have addresses",
        config(listener=f"advertise: {PORTS}"),
        (
            f"{LISTENER}.advertise: has no effect: clients of pulsar name brokers in it; leave it "
            "out"
        ),
    ),
    Case(
        "no way to each broker",
        kafka(advertise="{}"),
        f"{LISTENER}.advertise: needs one way to each broker; either ports or names",
    ),
    Case(
        "server names without TLS",
        kafka(advertise="{names: {host: gateway.example, template: 'b-{n}.gateway.example'}}"),
        (
            f"{LISTENER}.advertise.names: tells brokers apart by TLS server names, and the "
            "listener has no tls; ports"
        ),
    ),
    Case(
        "a host that clients cannot use",
        ports(host="'*.example'"),
        (
            f"{LISTENER}.advertise.ports.host: is not a host; a name or an address, such as "
            "gateway.example"
        ),
    ),
    Case(
        "ids that are no numbers",
        ports(ids="broker-0"),
        (
            f"{LISTENER}.advertise.ports.ids: has what is no id and no range of ids; 0-2 or "
            "[1, 2, 10-12]"
        ),
    ),
    Case(
        "too many ids",
        ports(ids="1-1001"),
        (
            f"{LISTENER}.advertise.ports.ids: has a range that cannot be; the least first, 1000 "
            "ids at most"
        ),
    ),
    Case(
        "an id twice",
        ports(ids="[1, 0-2]"),
        f"{LISTENER}.advertise.ports.ids: has an id twice; each once",
    ),
    Case(
        "more ids than ports",
        ports(first_port="65534"),
        f"{LISTENER}.advertise.ports: has more ids than ports; a lower first_port",
    ),
]

OF_ONE_PROTOCOL = [
    Case(
        "a listener of another protocol than its brokers",
        config(brokers="[kafka://a:9092]"),
        (f"{LISTENER}.protocol: is not that of its cluster, whose brokers speak kafka; the same"),
    ),
    Case(
        "brokers of two protocols",
        config(brokers="[pulsar://a, kafka://b]"),
        f"{CLUSTER}.brokers: speak different protocols, pulsar and kafka; a cluster for each",
    ),
    Case(
        "records for a cluster that is not Pulsar's",
        config(
            clusters="{main: {brokers: pulsar://a}, other: {brokers: kafka://b}}",
            rest="usage: {folder: usage, topic: {cluster: other, records: persistent://a/b/c}}",
        ),
        "gateway.yaml:4: usage.topic.cluster: speaks kafka; a cluster that speaks pulsar",
    ),
    Case(
        "SCRAM for clients of Pulsar",
        config(listener="identity: {mode: verify, scram: {credentials_file: users}}"),
        (
            f"{LISTENER}.identity.scram: has no effect: clients of pulsar have no SCRAM; basic, or "
            "leave it out"
        ),
        files={"users": GOOD.encode()},
    ),
    Case(
        "signatures of clients of Pulsar",
        config(listener="identity: {mode: verify, signature: {users_file: users}}"),
        (
            f"{LISTENER}.identity.signature: has no effect: clients of pulsar sign nothing; token, "
            "or leave it out"
        ),
        files={"users": b"alice:secret"},
    ),
    Case(
        "signatures of clients of Kafka",
        kafka("identity: {mode: verify, signature: {users_file: users}}"),
        (
            f"{LISTENER}.identity.signature: has no effect: clients of kafka sign nothing; scram, "
            "or leave it out"
        ),
        files={"users": b"alice:secret"},
    ),
    Case(
        "passwords of clients of TubeMQ",
        tubemq("identity: {mode: verify, basic: {htpasswd_file: users}}"),
        (
            f"{LISTENER}.identity.basic: has no effect: clients of tubemq have nothing of the "
            "kind; signature, tls or anonymous"
        ),
        files={"users": f"a:{HASH}".encode()},
    ),
    Case(
        "clients of TubeMQ whose credentials are forwarded",
        tubemq("identity: {mode: verify-and-forward, signature: {users_file: users}}"),
        (
            f"{LISTENER}.identity.mode: has no effect: servers of tubemq verify nobody, so nothing "
            "is forwarded to them; verify"
        ),
        files={"users": b"alice:secret"},
    ),
    Case(
        "passwords of clients of Kafka without TLS",
        kafka("identity: {mode: verify, basic: {htpasswd_file: users}}"),
        (
            f"{LISTENER}.identity.basic: is not offered to clients without TLS; tls of the "
            "listener, or scram in its place"
        ),
        files={"users": f"a:{HASH}".encode()},
    ),
    Case(
        "a proxy of Kafka that is trusted",
        kafka(
            "identity: {mode: verify, basic: {htpasswd_file: users}, trusted_proxies: [outer]}, "
            f"tls: {{{SHOWN}}}"
        ),
        (
            f"{LISTENER}.identity.trusted_proxies: has no effect: clients of kafka cannot speak "
            "for others; leave it out"
        ),
        files=FILES | {"users": f"a:{HASH}".encode()},
    ),
    Case(
        "checksums of Kafka",
        kafka("checksums: verify"),
        (
            f"{LISTENER}.checksums: has no effect: checksums of kafka are left to brokers and "
            "consumers; leave it out"
        ),
    ),
    Case(
        "gateways of Kafka behind this one",
        kafka(cluster="brokers_are: gateways"),
        (
            f"{CLUSTER}.brokers_are: has no effect: gateways for kafka are reached as brokers are; "
            "leave it out"
        ),
    ),
    Case(
        "names for brokers of Kafka",
        kafka(cluster="names: {sealed: {keys: [{file: key}]}}"),
        (
            f"{CLUSTER}.names: has no effect: clients of kafka reach brokers as advertise of a "
            "listener says; leave it out"
        ),
        files={"key": KEY},
    ),
    Case(
        "migrations of Kafka",
        kafka(cluster="migrations: [{brokers: kafka://b, gateway: kafka://c}]"),
        (f"{CLUSTER}.migrations: has no effect: topics of kafka do not migrate; leave it out"),
    ),
    Case(
        "a password that Pulsar's brokers are shown anyway",
        config(
            cluster=(
                "credential: {basic: {username: a, password_file: password, without_tls: true}}"
            )
        ),
        (
            f"{CLUSTER}.credential.basic.without_tls: has no effect: brokers of pulsar are shown a "
            "password in any case; leave it out"
        ),
        files={"password": b"secret"},
    ),
]

CASES = [*ADVERTISE, *OF_ONE_PROTOCOL]
