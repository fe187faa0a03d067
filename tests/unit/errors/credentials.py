"""Mistakes in what the gateway shows to brokers, and in where it writes its audit."""

from __future__ import annotations

from tests.unit.errors.case import Case, config

KINDS = "token_file, oauth2, basic, tls, each_principal"
OAUTH = "client_id: a, client_secret_file: secret"


def credential(settings: str) -> str:
    """Return a file whose cluster has a credential."""
    return config(cluster=f"credential: {{{settings}}}")


RECORDS, EVENTS = "persistent://ops/usage/records", "persistent://ops/usage/events"


def sent(topic: str, more: str = "") -> str:
    """Return a file that sends usage records to topics."""
    return config(rest=f"usage: {{folder: usage, {more}topic: {{{topic}}}}}")


CASES = [
    Case(
        "trusted proxies beside anonymous clients",
        config(listener="identity: {mode: verify, anonymous: {}, trusted_proxies: [a]}"),
        (
            "gateway.yaml:2: listeners[0].identity.trusted_proxies: would let anybody be one of "
            "them, with anonymous; use two listeners"
        ),
    ),
    Case(
        "a credential that is none",
        credential("tls: false"),
        f"gateway.yaml:3: clusters.main.credential: is none; exactly one of {KINDS}",
    ),
    Case(
        "a certificate that is shown and not named",
        credential("tls: true"),
        (
            "gateway.yaml:3: clusters.main.credential.tls: shows a certificate that is not named; "
            "set tls.certificate of the cluster"
        ),
    ),
    Case(
        "a token from nowhere",
        credential(f"oauth2: {{{OAUTH}}}"),
        (
            "gateway.yaml:3: clusters.main.credential.oauth2: needs one place to ask; either "
            "token_url or issuer"
        ),
        files={"secret": b"x"},
    ),
    Case(
        "a client secret that is too large",
        credential(f"oauth2: {{token_url: 'https://a.example', {OAUTH}}}"),
        "The client secret file secret must hold 1 to 16384 bytes",
        files={"secret": b"x" * 16_385},
    ),
    Case(
        "a client secret that is not a text",
        credential(f"oauth2: {{token_url: 'https://a.example', {OAUTH}}}"),
        "The client secret file secret is not UTF-8",
        files={"secret": b"\xff"},
    ),
    Case(
        "a console for everybody",
        config(rest='console: {bind: ":8090"}'),
        (
            "gateway.yaml:4: console: is open to other machines; a token_file, or tls with "
            "client_ca_file, or a bind to 127.0.0.1"
        ),
    ),
    Case(
        "a console's token that is too short",
        config(rest='console: {bind: ":8090", token_file: secret}'),
        "The console's token file secret must hold one line of 16 to 4096 bytes",
        files={"secret": b"x"},
    ),
    Case(
        "a collector's token on the network",
        config(rest="otlp: {url: 'http://collector:4318', token_file: secret}"),
        (
            "gateway.yaml:4: otlp: would show its token on the network; a url with https, or of "
            "this machine"
        ),
        files={"secret": b"x"},
    ),
    Case(
        "a collector over gRPC",
        config(rest="otlp: {url: 'grpc://collector:4317'}"),
        "gateway.yaml:4: otlp.url: is not a URL of HTTP; https://host/path",
    ),
    Case(
        "a share in words",
        config(rest="otlp: {url: 'http://127.0.0.1:4318', share: all}"),
        "gateway.yaml:4: otlp.share: is not a number; 0.1 for a tenth, without quotes",
    ),
    Case(
        "a collector's authorities without a certificate",
        config(rest="otlp: {url: 'https://collector:4318', ca_file: ca}"),
        (
            "The file ca of the collector's authorities holds no certificate in PEM form, or "
            "cannot be read"
        ),
        files={"ca": b"x"},
    ),
    Case(
        "usage records in a folder that cannot be made",
        config(rest="usage: {folder: no/usage}"),
        (
            "gateway.yaml:4: usage.folder: is no folder, nor in one; a path, relative to the "
            "configuration's"
        ),
    ),
    Case(
        "pseudonyms without a key",
        config(rest="usage: {folder: usage, principals: pseudonymous}"),
        (
            "gateway.yaml:4: usage: has pseudonyms or their key alone; both principals: "
            "pseudonymous and pseudonym_key_file, or neither"
        ),
    ),
    Case(
        "a key of pseudonyms that is too short",
        config(rest="usage: {folder: usage, principals: pseudonymous, pseudonym_key_file: secret}"),
        "The pseudonym key file secret must hold 16 bytes or more",
        files={"secret": b"x"},
    ),
    Case(
        "usage records where a file is in the way",
        config(rest="usage: {folder: u}"),
        "The folder of usage records u cannot be used: File exists",
        files={"u/usage": b"x"},
    ),
    Case(
        "a topic of records in a cluster that does not exist",
        sent("cluster: mian, records: 'persistent://ops/usage/records'"),
        "gateway.yaml:4: usage.topic.cluster: names no cluster; did you mean 'main'?",
    ),
    Case(
        "a topic of records that is not kept",
        sent("cluster: main, records: 'non-persistent://ops/usage/records'"),
        (
            "gateway.yaml:4: usage.topic.records: is no whole name of a topic that is kept; "
            "persistent://tenant/namespace/topic"
        ),
    ),
    Case(
        "a topic of records by its short name",
        sent("cluster: main, records: records"),
        (
            "gateway.yaml:4: usage.topic.records: is no whole name of a topic that is kept; "
            "persistent://tenant/namespace/topic"
        ),
    ),
    Case(
        "a partition for events",
        sent(f"cluster: main, records: '{RECORDS}', events: '{EVENTS}-partition-1'"),
        (
            "gateway.yaml:4: usage.topic.events: is no whole name of a topic that is kept; "
            "persistent://tenant/namespace/topic"
        ),
    ),
    Case(
        "records among the brokers' own topics",
        sent("cluster: main, records: 'persistent://pulsar/system/records'"),
        (
            "gateway.yaml:4: usage.topic.records: is in the tenant of the brokers' own topics; "
            "a topic of another tenant"
        ),
    ),
    Case(
        "records and events in one topic",
        sent(f"cluster: main, records: '{RECORDS}', events: '{RECORDS}'"),
        (
            "gateway.yaml:4: usage.topic.events: is also the topic of records, which are of "
            "another kind; choose another"
        ),
    ),
    Case(
        "a topic of events that are not written",
        sent(f"cluster: main, records: '{RECORDS}', events: '{EVENTS}'", "events: false, "),
        (
            "gateway.yaml:4: usage.topic.events: has no effect: no events are written; set "
            "usage.events: true, or leave it out"
        ),
    ),
    Case(
        "an audit in a folder that does not exist",
        config(rest="audit: {file: no/audit.jsonl}"),
        (
            "gateway.yaml:4: audit.file: is not in a folder that exists; a path, relative to the "
            "configuration's"
        ),
    ),
]
