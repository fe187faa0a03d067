"""Mistakes in listeners and clusters."""

from __future__ import annotations

from tests.unit.errors.case import KEY, Case, config, template, verify

BROKERS = (
    "pulsar://host:port or pulsar+ssl://host:port or kafka://host:port or kafka+ssl://host:port"
    " or tubemq://host:port or tubemq+ssl://host:port"
)
TWINS = "[{name: a, bind: ':1', cluster: main}, {name: a, bind: ':2', cluster: main}]"

LISTENERS = [
    Case(
        "a bind without port",
        config(bind="127.0.0.1"),
        (
            "gateway.yaml:2: listeners[0].bind: has no port; host:port, [IPv6 "
            "address]:port in quotes, or :port for all addresses"
        ),
    ),
    Case(
        "a bind that is not an address",
        config(bind="a:b:c"),
        (
            "gateway.yaml:2: listeners[0].bind: is not an address with a port; host:port, "
            "[IPv6 address]:port in quotes, or :port for all addresses"
        ),
    ),
    Case(
        "a bind with an invalid host",
        config(bind="a_$:1"),
        (
            "gateway.yaml:2: listeners[0].bind: has an invalid host; host:port, "
            "[IPv6 address]:port in quotes, or :port for all addresses"
        ),
    ),
    Case(
        "a list of binds with a wrong one",
        config(listeners="[{name: a, bind: [':1', b], cluster: main}]"),
        (
            "gateway.yaml:2: listeners[0].bind: entry 2 has no port; host:port, [IPv6 "
            "address]:port in quotes, or :port for all addresses"
        ),
    ),
    Case(
        "connections of an age without keys that others have",
        config(listener="connection_age: 1h"),
        (
            "gateway.yaml:2: listeners[0].connection_age: moves clients to gateways that cannot "
            "open this one's names; give all the same clusters.main.names.sealed.keys"
        ),
    ),
    Case(
        "a listener of an unknown protocol",
        config(listener="protocol: smtp"),
        "gateway.yaml:2: listeners[0].protocol: is not a protocol; pulsar or kafka or tubemq",
    ),
    Case(
        "a closed listener without rules",
        config(listener="access: closed, unknown: mask"),
        (
            "gateway.yaml:2: listeners[0].access: lets nobody do anything, as there are no rules "
            "that allow it; name files in rules"
        ),
    ),
    Case(
        "a listener that asks nobody",
        config(listener="access: opa, unknown: mask"),
        (
            "gateway.yaml:2: listeners[0].access: asks a policy agent, but none is named; name its "
            "url in opa"
        ),
    ),
    Case(
        "a policy agent whom no listener asks",
        config(rest="opa: {url: 'http://127.0.0.1:8181/v1/data/gateway/allow'}"),
        (
            "gateway.yaml:4: opa: has no effect: no listener asks it; set access: opa of one, or "
            "remove it"
        ),
    ),
    Case(
        "a closed listener that lets unknown commands pass",
        config(listener="access: closed", rest="rules: rules.yaml"),
        (
            "gateway.yaml:2: listeners[0].access: lets commands pass that are not known, and whose "
            "rights are not; unknown: mask"
        ),
        files={"rules.yaml": b"version: 1\nrules: [{id: a, allow: produce}]"},
    ),
    Case(
        "two listeners of one name",
        config(listeners=TWINS),
        "gateway.yaml:2: listeners[1].name: is also the name of listeners[0]; choose another",
    ),
    Case(
        "two listeners on one address",
        config(bind=":8080", rest='admin: {bind: "127.0.0.1:8080"}'),
        "gateway.yaml:4: admin.bind: overlaps with listeners[0].bind; choose another port or "
        "address",
    ),
    Case(
        "a misspelt cluster",
        config(of="mian"),
        "gateway.yaml:2: listeners[0].cluster: names no cluster; did you mean 'main'?",
    ),
    Case(
        "an unknown cluster",
        config(of="x"),
        "gateway.yaml:2: listeners[0].cluster: names no cluster; known here: main",
    ),
    Case(
        "proxies without networks",
        config(listener="proxy_protocol: {from: []}"),
        "gateway.yaml:2: listeners[0].proxy_protocol.from: is empty; at least one",
    ),
    Case(
        "proxies anywhere",
        config(listener="proxy_protocol: {}"),
        (
            "gateway.yaml:2: listeners[0].proxy_protocol.from: is missing; for example "
            "from: [10.1.2.3, 10.1.2.4]"
        ),
    ),
    Case(
        "proxies by name",
        config(listener="proxy_protocol: {from: [balancer.example]}"),
        (
            "gateway.yaml:2: listeners[0].proxy_protocol.from[0]: is not a network; 10.0.0.0/8, "
            "fd00::/8 or one address"
        ),
    ),
    Case(
        "proxies under a wrong key",
        config(listener="proxy_protocol: {form: [10.0.0.1]}"),
        (
            "gateway.yaml:2: listeners[0].proxy_protocol.form: is not a key known here; did you "
            "mean 'from'?\n"
            "gateway.yaml:2: listeners[0].proxy_protocol.from: is missing; for example "
            "from: [10.1.2.3, 10.1.2.4]"
        ),
    ),
    Case(
        "a trace of an invalid network",
        config(listener="trace: [localhost]"),
        (
            "gateway.yaml:2: listeners[0].trace[0]: is not a network; 10.0.0.0/8, fd00::/8 "
            "or one address"
        ),
    ),
    Case(
        "a trace with bits beyond its mask",
        config(listener="trace: [10.1.2.3/8]"),
        "gateway.yaml:2: listeners[0].trace[0]: has bits beyond its mask; 10.0.0.0/8",
    ),
]

IDENTITY = [
    Case(
        "verifying without token",
        config(listener="identity: {mode: verify}"),
        (
            "gateway.yaml:2: listeners[0].identity.token: is missing; verifying needs a key of "
            "those who issue tokens in it"
        ),
    ),
    Case(
        "a token in pass-through",
        config(listener="identity: {token: {secret_file: secret}}"),
        (
            "gateway.yaml:2: listeners[0].identity.token: has no effect: pass-through "
            "verifies nothing; set mode: verify, or leave it out"
        ),
        files={"secret": KEY},
    ),
    Case(
        "a trusted proxy in pass-through",
        config(listener="identity: {trusted_proxies: [outer]}"),
        (
            "gateway.yaml:2: listeners[0].identity.trusted_proxies: has no effect: "
            "pass-through trusts no proxies; set mode: verify, or leave it out"
        ),
    ),
    Case(
        "targets of gateways",
        config(cluster="brokers_are: gateways, targets: {hosts: [b], ports: [6650]}"),
        (
            "gateway.yaml:3: clusters.main.targets: has no effect: gateways know where their "
            "brokers are; leave it out"
        ),
    ),
    Case(
        "a token without key",
        verify("audience: a"),
        (
            "gateway.yaml:2: listeners[0].identity.token: has no keys; one of secret_file, "
            "public_key_file, jwks_file, jwks_url, discovery"
        ),
    ),
    Case(
        "a token with two keys",
        verify("secret_file: secret, public_key_file: secret"),
        (
            "gateway.yaml:2: listeners[0].identity.token: has 2 keys; one of secret_file, "
            "public_key_file, jwks_file, jwks_url, discovery"
        ),
        files={"secret": KEY},
    ),
    Case(
        "unsigned tokens",
        verify("secret_file: secret, algorithms: [none]"),
        (
            "gateway.yaml:2: listeners[0].identity.token.algorithms[0]: would accept unsigned "
            "tokens; one of HS256, HS384, HS512, RS256, RS384, RS512, "
            "PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519"
        ),
        files={"secret": KEY},
    ),
    Case(
        "an unknown algorithm",
        verify("secret_file: secret, algorithms: [MD5]"),
        (
            "gateway.yaml:2: listeners[0].identity.token.algorithms[0]: is not a known "
            "algorithm; one of HS256, HS384, HS512, RS256, RS384, RS512, PS256, "
            "PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519"
        ),
        files={"secret": KEY},
    ),
    Case(
        "an algorithm of another kind of key",
        verify("secret_file: secret, algorithms: [RS256]"),
        (
            "gateway.yaml:2: listeners[0].identity.token.algorithms[0]: does not fit the "
            "kind of key; one of HS256, HS384, HS512"
        ),
        files={"secret": KEY},
    ),
    Case(
        "a key too short for its algorithm",
        verify("secret_file: secret, algorithms: [HS512]"),
        (
            "A token key (a secret of 32 bytes) fits none of the algorithms HS512. Name "
            "one that it fits in algorithms, or another key"
        ),
        files={"secret": KEY},
    ),
]

CLUSTERS = [
    Case(
        "no brokers",
        config(brokers="[]"),
        "gateway.yaml:3: clusters.main.brokers: is empty; at least one",
    ),
    Case(
        "a broker twice",
        config(brokers="[pulsar://a, pulsar://a:6650]"),
        "gateway.yaml:3: clusters.main.brokers: has the same broker twice; list each once",
    ),
    Case(
        "a header of version 1 for brokers",
        config(cluster="proxy_protocol: {version: 1}"),
        (
            "gateway.yaml:3: clusters.main.proxy_protocol.version: is not a version that can be "
            "sent; 2, without quotes"
        ),
    ),
    Case(
        "a header for brokers without version",
        config(cluster="proxy_protocol: {principal: false}"),
        "gateway.yaml:3: clusters.main.proxy_protocol.version: is missing; for example version: 2",
    ),
    Case(
        "a header for brokers with names that nobody verifies",
        config(cluster="proxy_protocol: {version: 2, principal: true}"),
        (
            "gateway.yaml:3: clusters.main.proxy_protocol.principal: has no effect: no listener "
            "of the cluster verifies clients; leave it out"
        ),
    ),
    Case(
        "a broker without scheme",
        config(brokers="[a:6650]"),
        (f"gateway.yaml:3: clusters.main.brokers[0]: has no scheme; {BROKERS}"),
    ),
    Case(
        "a broker of an unknown protocol",
        config(brokers="[http://a:8080]"),
        (f"gateway.yaml:3: clusters.main.brokers[0]: has a scheme that is not known; {BROKERS}"),
    ),
    Case(
        "a broker without host",
        config(brokers="[pulsar://]"),
        (f"gateway.yaml:3: clusters.main.brokers[0]: has no host, or port 0; {BROKERS}"),
    ),
    Case(
        "a broker that is not text",
        config(brokers="[7]"),
        "gateway.yaml:3: clusters.main.brokers[0]: is not a text; put it in quotes",
    ),
    Case(
        "targets that allow nothing",
        config(cluster="targets: {ports: [6650]}"),
        ("gateway.yaml:3: clusters.main.targets: allow nothing; at least one of hosts or networks"),
    ),
    Case(
        "an invalid target host",
        config(cluster="targets: {hosts: [a/b], ports: [6650]}"),
        (
            "gateway.yaml:3: clusters.main.targets.hosts[0]: is not a host; a name, an "
            "address, or *.example.org for all below it"
        ),
    ),
    Case(
        "an invalid target port",
        config(cluster="targets: {hosts: [a], ports: [0]}"),
        "gateway.yaml:3: clusters.main.targets.ports[0]: is not a port; from 1 to 65535",
    ),
    Case(
        "names of two kinds",
        config(cluster="names: {}"),
        "gateway.yaml:3: clusters.main.names: needs one kind of names; either sealed or template",
    ),
    Case(
        "an advertised name without number",
        template("b.example", "p-{n}:1"),
        (
            "gateway.yaml:3: clusters.main.names.template.advertise: is not a name with "
            "one {n}, of a-z 0-9 -, at most 63 between dots with six digits for {n}, the "
            "last label beginning with a letter; broker-{n}.example"
        ),
    ),
    Case(
        "an advertised name too long",
        template("b" * 60 + "-{n}", "p-{n}:1"),
        (
            "gateway.yaml:3: clusters.main.names.template.advertise: is not a name with "
            "one {n}, of a-z 0-9 -, at most 63 between dots with six digits for {n}, the "
            "last label beginning with a letter; broker-{n}.example"
        ),
    ),
    Case(
        "a broker template without port",
        template("b-{n}", "p-{n}"),
        (
            "gateway.yaml:3: clusters.main.names.template.broker: has no port; "
            "broker-{n}.internal:6650"
        ),
    ),
    Case(
        "a broker template without number",
        template("b-{n}", "p:1"),
        (
            "gateway.yaml:3: clusters.main.names.template.broker: is not a host with one "
            "{n}; broker-{n}.internal:6650"
        ),
    ),
    Case(
        "a broker template with a partial address",
        template("b-{n}", "p.{n}:1"),
        (
            "gateway.yaml:3: clusters.main.names.template.broker: is not a host with one "
            "{n}; broker-{n}.internal:6650"
        ),
    ),
]

CASES = [*LISTENERS, *IDENTITY, *CLUSTERS]
