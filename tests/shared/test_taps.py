"""No test lets a client of a gateway bypass the taps; a search of the tests' own code checks this.

`reach` and `tapped` give clients the URL of a tap, and fail the test at its end if the tap has seen
a broker. Only code that puts a tap in front of a gateway knows the gateway's own URL.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

GATEWAYS_OWN_URL = r"\buntapped_url\b"
STARTS_A_GATEWAY = r'"-m", (?:"gateway", "(?:run|demo)"|\*program)|-m gateway (?:run|demo)'
OPENS_A_CLIENT = r"\b(?:pulsar|client_library)\.Client\("

ALLOWED = {
    GATEWAYS_OWN_URL: {
        "real/gateways.py": "defines it",
        "support/balancer.py": "defines it",
        "real/fixtures.py": "puts a tap before it",
        "shared/rolled.py": "puts a tap before it, or knows a test that does",
        "real/test_attacks.py": "opens connections of an attacker, which read every frame",
        "real/test_orders.py": "is compared with a record, which names no broker's address",
        "real/test_versions.py": "puts a tap before it",
        "faults/trial.py": "is measured beside a direct connection, which has no tap either",
        "shared/test_manager.py": "puts a tap before it",
        "systemd/service.py": "defines it",
        "systemd/test_units.py": "puts a tap before it",
        "shared/test_leaks.py": "puts a tap before it, which has to find something",
        "shaping/ways.py": "is measured beside a broker's own limit, without a tap as that",
        "shaping/many.py": "is measured without a tap",
        "shaping/transactions.py": "is measured without a tap",
        "shaping/dispatch.py": "is measured without a tap",
        "shaping/replicas.py": "is measured without a tap",
        "real/test_chained.py": "another gateway connects to it, which has a tap",
        "edge/test_authorized.py": "a tap cannot read TLS, and reads all else",
        "edge/test_chain.py": "a tap cannot read what it passes on",
        "edge/test_tls.py": "a tap cannot read what it passes on",
        "edge/test_proxied.py": "puts a tap before it, unless it speaks TLS",
        "edge/test_identity.py": "a tap cannot read what it passes on",
        "edge/test_usage_topic.py": "leads to a broker, which only the shipper connects to",
        "scenes/pulsar/test_tls.py": "a tap cannot read what it passes on",
        "pipeline/test_real_loop.py": "puts a tap before it, but not before attackers",
        "sandbox/test_gateway.py": "a tap would hide that the gateway resets a connection",
    },
    STARTS_A_GATEWAY: {
        "real/gateways.py": "gives nobody its URL but who puts a tap before it",
        "hostile/process.py": "its clients and its broker are bytes of the tests' own",
        "bench/proxies.py": "is no test: it measures without a tap",
        "soak/hostile.py": "is measured without a tap",
        "soak/pods.py": "is measured without a tap",
        "unit/test_command.py": "no client: its broker is an echo",
        "docs/test_commands.py": "what pages show, among it the demo with its own clients",
        "demo/running.py": "the demo's own clients: it begins them together with the gateway",
        "demo/test_demo.py": "the same, by make",
    },
    OPENS_A_CLIENT: {
        "real/clients.py": "opens all of them, at URLs of routes",
        "clients/python/client.py": "a program that is given its URL, as those in Go and Java are",
        "clients/python/load.py": "a program that is given its URL, too",
        "unit/lab/demo/test_table.py": "a text that the demo shows",
        "kubernetes/test_manifests.py": "a program of a Job, which has a sidecar",
    },
}
"""The allowed files and their reasons, by pattern."""


def found(pattern: str) -> Iterator[str]:
    for path in sorted(TESTS.rglob("*.py")):
        if path != Path(__file__).resolve() and re.search(pattern, path.read_text("utf-8")):
            yield path.relative_to(TESTS).as_posix()


@pytest.mark.parametrize("pattern", ALLOWED, ids=["own url", "starts", "opens"])
def test_every_way_past_the_taps_is_listed_with_its_reason(pattern: str) -> None:
    assert set(found(pattern)) == set(ALLOWED[pattern]), (
        "use `reach` or `tapped`, or remove it from the list"
    )
