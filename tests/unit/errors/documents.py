"""Mistakes of the whole file, its shape and single values."""

from __future__ import annotations

from tests.unit.errors.case import KEY, Case, config, verify

THE_FILE = [
    Case("an empty file", "", "gateway.yaml:1: is empty; at least version, listeners and clusters"),
    Case("not UTF-8", b"version: \xff", "gateway.yaml: is not UTF-8 text; save it as UTF-8"),
    Case(
        "control characters",
        "version: \x01",
        "gateway.yaml: holds characters that YAML does not allow; use plain UTF-8 text",
    ),
    Case(
        "not a mapping",
        "- version: 1",
        "gateway.yaml:1: is not a mapping; indented lines of `key: value`, or leave it out",
    ),
    Case(
        "a bracket too many",
        "version: 1\nlisteners: [[{name: a}]",
        (
            "gateway.yaml:3: is not YAML: while parsing a flow sequence, did not find "
            "expected ',' or ']'; check the indentation (spaces only), and put values with "
            "[ ] { } or # in quotes"
        ),
    ),
    Case(
        "a variable within brackets",
        "version: 1\nlisteners: [{bind: ${BIND}}]",
        (
            "gateway.yaml:2: is not YAML: while parsing a flow mapping, did not find "
            "expected ',' or '}'; check the indentation (spaces only), and put values with "
            "[ ] { } or # in quotes"
        ),
    ),
    Case(
        "tabs",
        "version: 1\nlisteners:\n\t- name: a",
        (
            "gateway.yaml:3: is not YAML: while scanning for the next token, found "
            "character that cannot start any token; check the indentation (spaces only), "
            "and put values with [ ] { } or # in quotes"
        ),
    ),
    Case(
        "two documents",
        "version: 1\n---\nversion: 1",
        (
            "gateway.yaml:2: is not YAML: expected a single document in the stream, but "
            "found another document; check the indentation (spaces only), and put values "
            "with [ ] { } or # in quotes"
        ),
    ),
    Case(
        "too many levels",
        "version: " + "[" * 40,
        (
            "gateway.yaml:1: is not YAML: found more than 32 levels; check the indentation "
            "(spaces only), and put values with [ ] { } or # in quotes"
        ),
    ),
    Case(
        "a tag that the value does not fit",
        "version: !!int abc",
        (
            "gateway.yaml:1: is not YAML: found a value that cannot be read; check the "
            "indentation (spaces only), and put values with [ ] { } or # in quotes"
        ),
    ),
    Case(
        "a key twice",
        config(rest="log: {level: info, level: debug}"),
        "gateway.yaml:4: log.level: occurs twice, first in line 4; keep one",
    ),
]

SHAPES_AND_KEYS = [
    Case(
        "an unknown version",
        config(version="version: 2"),
        (
            "gateway.yaml:1: version: is not a version that this gateway understands; 1, "
            "without quotes"
        ),
    ),
    Case(
        "a version in quotes",
        config(version="version: '1'"),
        (
            "gateway.yaml:1: version: is not a version that this gateway understands; 1, "
            "without quotes"
        ),
    ),
    Case(
        "a missing key",
        config(version=""),
        "gateway.yaml:2: version: is missing; for example version: 1",
    ),
    Case(
        "a misspelt key",
        config(rest="deadline: {idle: 1m}"),
        "gateway.yaml:4: deadline: is not a key known here; did you mean 'deadlines'?",
    ),
    Case(
        "an unknown key",
        config(rest="log: {xyzzy: 1}"),
        "gateway.yaml:4: log.xyzzy: is not a key known here; known here: burst, format, level, "
        "longest_text, principals, queue, queue_lines",
    ),
    Case(
        "a value that is not a choice",
        config(rest="log: {format: xml}"),
        "gateway.yaml:4: log.format: is not understood; one of 'json', 'console' or 'auto'",
    ),
    Case(
        "a part that is not a mapping",
        config(rest="log: json"),
        "gateway.yaml:4: log: is not a mapping; indented lines of `key: value`, or leave it out",
    ),
    Case(
        "a list in place of clusters",
        config(clusters="[main]"),
        (
            "gateway.yaml:2: listeners[0].cluster: names no cluster; known here: "
            "none\ngateway.yaml:3: clusters: is not a mapping; indented lines of `key: "
            "value`"
        ),
    ),
    Case(
        "a mapping in place of a list",
        config(listener="trace: {a: 1}"),
        (
            "gateway.yaml:2: listeners[0].trace: is not a list; indented lines of `- "
            "entry`, or [entry, entry]"
        ),
    ),
    Case(
        "a key that is not text",
        config(rest="1: 2"),
        "gateway.yaml:4: [1]: is not a text; keys are texts",
    ),
    Case(
        "an empty list", config(listeners="[]"), "gateway.yaml:2: listeners: is empty; at least one"
    ),
]

VALUES = [
    Case(
        "an empty text",
        config(name=""),
        "gateway.yaml:2: listeners[0].name: is empty; leave the line out or give it a value",
    ),
    Case(
        "a number in place of a text",
        verify("secret_file: secret, audience: 7"),
        "gateway.yaml:2: listeners[0].identity.token.audience: is not a text; put it in quotes",
        files={"secret": KEY},
    ),
    Case(
        "a duration without unit",
        config(rest="deadlines: {idle: long}"),
        (
            "gateway.yaml:4: deadlines.idle: is not a duration; 500ms, 10s, 2m or a number "
            "of seconds"
        ),
    ),
    Case(
        "a size with an unknown unit",
        config(rest="limits: {buffered: 64 blocks}"),
        "gateway.yaml:4: limits.buffered: is not a size; 64KiB, 5MB or a number of bytes",
    ),
    Case(
        "a number in quotes",
        config(rest="limits: {connections: '7'}"),
        "gateway.yaml:4: limits.connections: is not a whole number; digits only, without quotes",
    ),
    Case(
        "a wrong number of workers",
        config(rest="workers: many"),
        "gateway.yaml:4: workers: is not a number of processes; 1 to 64 without quotes, or auto",
    ),
    Case(
        "a value out of bounds",
        config(rest="deadlines: {idle: 2h}"),
        "gateway.yaml:4: deadlines.idle: is out of bounds; from 1s to 1h",
    ),
    Case(
        "too little memory for frames",
        config(rest="limits: {buffered: 1MiB}"),
        "gateway.yaml:4: limits: leave too little memory for the rest; "
        "make buffered at least four times collected_frame",
    ),
    Case(
        "collected frames smaller than one frame",
        config(rest="limits: {collected: 5MiB}"),
        "gateway.yaml:4: limits: allow more for one frame than for all; raise collected to "
        "collected_frame",
    ),
    Case(
        "handshakes smaller than one frame",
        config(rest="limits: {handshakes: 32KiB}"),
        "gateway.yaml:4: limits: allow more for one frame than for all; raise handshakes to "
        "handshake_frame",
    ),
    Case(
        "memory shares that leave too little",
        config(rest="limits: {collected: 128MiB, handshakes: 96MiB}"),
        "gateway.yaml:4: limits: leave too little memory for the rest; "
        "lower collected and handshakes, or raise buffered",
    ),
    Case(
        "too much memory for held frames",
        config(rest="limits: {buffered: 64MiB, held: 48MiB}"),
        "gateway.yaml:4: limits: leave too little memory for the rest; lower held, or raise "
        "buffered",
    ),
    Case(
        "a listener with an invalid name",
        config(name="a/b"),
        (
            "gateway.yaml:2: listeners[0].name: is not a name; letters, digits, and . _ - "
            "inside, 63 at most"
        ),
    ),
]

ENVIRONMENT_VARIABLES = [
    Case(
        "a variable that is not set",
        config(bind="${EXAMPLE_HOST}:1"),
        (
            "gateway.yaml:2: listeners[0].bind: uses the environment variable EXAMPLE_HOST, which "
            "is not set; set it, or give a default: ${EXAMPLE_HOST:-...}"
        ),
    ),
    Case(
        "an unclosed variable",
        config(bind="${EXAMPLE_HOST:1"),
        (
            "gateway.yaml:2: listeners[0].bind: has a ${ that is not a variable; ${NAME}, "
            "${NAME:-default}, or $$ for a dollar"
        ),
    ),
    Case(
        "a variable that is not UTF-8",
        config(bind="${EXAMPLE_HOST}:1"),
        (
            "gateway.yaml:2: listeners[0].bind: uses the environment variable EXAMPLE_HOST, "
            "which is not UTF-8; set it to UTF-8 text"
        ),
        environment={"EXAMPLE_HOST": "\udcff"},
    ),
    Case(
        "a variable with a wrong value",
        config(bind="${EXAMPLE_HOST}:1"),
        (
            "gateway.yaml:2: listeners[0].bind: has an invalid host; host:port, "
            "[IPv6 address]:port in quotes, or :port for all addresses (the value comes "
            "from EXAMPLE_HOST)"
        ),
        environment={"EXAMPLE_HOST": "a b"},
    ),
]

CASES = [*THE_FILE, *SHAPES_AND_KEYS, *VALUES, *ENVIRONMENT_VARIABLES]
