"""All metrics except those per topic."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.denials import DeniedTenant
from gateway.telemetry.figures import (
    BROKERS,
    AgentFigures,
    AuditFigures,
    BrokerFailures,
    BrokerHealth,
    ClusterFigures,
    Denied,
    IssuerFigures,
    ListenerFigures,
    LogFigures,
    OpeningFigures,
    PlaneFigures,
    ReloadFigures,
    RuleFigures,
    StoreFigures,
)
from gateway.telemetry.process import ProcessMetrics, Sources
from gateway.wire.contract import EndReason
from gateway.wire.services import LookupOutcome

STORE = ("up", "processes", "calls", "failures", "questions", "refusals")


def sources(
    listeners: Mapping[str, ListenerFigures] | None = None,
    clusters: Mapping[str, ClusterFigures] | None = None,
    reloads: ReloadFigures | None = None,
    store: StoreFigures | None = None,
    audit: AuditFigures | None = None,
) -> Sources:
    return Sources(
        version="1.2.3",
        listeners=listeners or {"clients": ListenerFigures()},
        clusters=clusters or {"main": ClusterFigures()},
        plane=lambda: PlaneFigures(
            buffered=7, held=5, collected=3, remembered=4, turns=9, resets=2
        ),
        brokers=lambda: [BrokerHealth("main", "b:6650", healthy=True)],
        failures=lambda: [BrokerFailures("main", "silent", 3)],
        rules=lambda: [
            RuleFigures("tenants", "publish.messages", "enforce", 12, 3, 40, 1.5),
            RuleFigures("trial", "publish.bytes", "shadow", 1, 0, 0, 2.5, 7000.0),
        ],
        log=LogFigures(dropped=11),
        openings=OpeningFigures(displaced=3),
        reloads=reloads,
        store=store,
        audit=audit,
    )


def families(metrics: ProcessMetrics) -> dict[str, Metric]:
    return {
        it.name: it for it in text_string_to_metric_families(b"".join(metrics.chunks()).decode())
    }


def values(family: Metric, *labels: str) -> dict[tuple[str, ...], float]:
    return {tuple(it.labels[label] for label in labels): it.value for it in family.samples}


def test_connections_are_exposed_by_listener_and_state() -> None:
    figures = ListenerFigures(accepted=10, accept_failures=2, opening=1, open=3, stopped=True)
    found = families(ProcessMetrics(sources(listeners={"clients": figures})))
    assert values(found["gateway_connections"], "listener", "state") == {
        ("clients", "opening"): 1,
        ("clients", "open"): 0,
        ("clients", "draining"): 3,
    }
    assert values(found["gateway_connections_accepted"], "listener") == {("clients",): 10}
    assert values(found["gateway_accept_failures"], "listener") == {("clients",): 2}


def test_every_end_reason_is_there_from_the_start() -> None:
    listener = ListenerFigures()
    metrics = ProcessMetrics(sources(listeners={"clients": listener}))
    zeros = values(families(metrics)["gateway_connections_ended"], "reason")
    assert zeros == {(reason.value,): 0 for reason in EndReason}
    listener.ended[EndReason.IDLE] += 1
    assert values(families(metrics)["gateway_connections_ended"], "reason")["idle",] == 1


def test_every_lookup_outcome_is_there_from_the_start() -> None:
    cluster = ClusterFigures(redirects=4)
    cluster.lookups[LookupOutcome.CONNECT] += 2
    found = families(ProcessMetrics(sources(clusters={"main": cluster})))
    assert values(found["gateway_lookups"], "cluster", "outcome") == {
        ("main", "connect"): 2,
        ("main", "failed"): 0,
        ("main", "refused"): 0,
    }
    assert values(found["gateway_lookup_redirects"], "cluster") == {("main",): 4}


def test_errors_of_answers_are_exposed_if_there_are_any() -> None:
    cluster = ClusterFigures()
    cluster.errors["Produce", 6] += 2
    found = families(ProcessMetrics(sources(clusters={"main": cluster})))
    labels = "cluster", "request", "code"
    assert values(found["gateway_answer_errors"], *labels) == {("main", "Produce", "6"): 2}
    assert "gateway_answer_errors" not in families(ProcessMetrics(sources()))


def test_dropped_lines_of_the_audit_are_exposed_if_there_is_one() -> None:
    found = families(ProcessMetrics(sources(audit=AuditFigures(dropped=5))))
    assert values(found["gateway_audit_lines_dropped"]) == {(): 5}
    assert values(found["gateway_log_lines_dropped"]) == {(): 11}
    assert "gateway_audit_lines_dropped" not in families(ProcessMetrics(sources()))


def test_brokers_plane_and_build_are_exposed() -> None:
    found = families(ProcessMetrics(sources()))
    assert values(found["gateway_broker_healthy"], "cluster", "broker") == {("main", "b:6650"): 1}
    failures = values(found["gateway_broker_failures"], "cluster", "cause")
    assert failures == {("main", "silent"): 3}
    assert values(found["gateway_buffered_bytes"]) == {(): 7}
    assert values(found["gateway_collected_bytes"]) == {(): 3}
    assert values(found["gateway_remembered_bytes"]) == {(): 4}
    assert values(found["gateway_held_bytes"]) == {(): 5}
    assert values(found["gateway_reactor_turns"]) == {(): 9}
    assert values(found["gateway_producer_resets"]) == {(): 2}
    assert values(found["gateway_log_lines_dropped"]) == {(): 11}
    python = ".".join(map(str, sys.version_info[:3]))
    assert values(found["gateway_build_info"], "version", "python") == {("1.2.3", python): 1}


def test_rules_are_exposed_by_dimension() -> None:
    found = families(ProcessMetrics(sources()))
    tenants = ("tenants", "publish.messages", "enforce")
    trial = ("trial", "publish.bytes", "shadow")
    told = {
        "gateway_rule_limits": {tenants: 12, trial: 1},
        "gateway_rule_waiting": {tenants: 3, trial: 0},
        "gateway_rule_waits": {tenants: 40, trial: 0},
        "gateway_rule_wait_seconds": {tenants: 1.5, trial: 2.5},
    }
    assert {it: values(found[it], "rule", "limit", "mode") for it in told} == told
    assert values(found["gateway_rule_shadow_held"], "rule", "limit") == {trial[:2]: 7000}


def test_reloads_are_exposed_if_there_are_rules() -> None:
    figures = ReloadFigures(loaded_at=1234.5, generation=3, loaded=2, refused=7)
    found = families(ProcessMetrics(sources(reloads=figures)))
    assert values(found["gateway_rules_reloads"], "outcome") == {("loaded",): 2, ("refused",): 7}
    assert values(found["gateway_rules_generation"]) == {(): 3}
    assert values(found["gateway_rules_last_reload_timestamp_seconds"]) == {(): 1234.5}
    assert not [name for name in families(ProcessMetrics(sources())) if "rules" in name]


def test_the_store_is_exposed_if_there_is_one() -> None:
    figures = StoreFigures(calls=40, failures=2, asked=90, refused=1, processes=4, lost=True)
    found = families(ProcessMetrics(sources(store=figures)))
    told = {name: found[f"gateway_store_{name}"].samples[0].value for name in STORE}
    counted = {"calls": 40, "failures": 2, "questions": 90, "refusals": 1}
    assert told == {"up": 0, "processes": 4, **counted}
    assert not [name for name in families(ProcessMetrics(sources())) if "store" in name]


def test_issuers_are_exposed_if_there_are_any() -> None:
    figures = IssuerFigures(keys=2, fetched=7, failed=1)
    with_issuers = replace(sources(), issuers={"https://a.example": figures})
    found = families(ProcessMetrics(with_issuers))
    assert values(found["gateway_issuer_keys"], "issuer") == {("https://a.example",): 2}
    assert values(found["gateway_issuer_fetches"], "issuer", "outcome") == {
        ("https://a.example", "fetched"): 7,
        ("https://a.example", "failed"): 1,
    }
    assert not [name for name in families(ProcessMetrics(sources())) if "issuer" in name]


def test_denied_rights_are_exposed_by_rule_and_by_tenant() -> None:
    denied = {Denied("clients", "r", "produce", "enforce"): 4}
    tenants = {DeniedTenant("clients", "acme", "produce", "enforce"): 3}
    found = families(ProcessMetrics(replace(sources(), denied=denied, denied_tenants=tenants)))
    key = ("clients", "r", "produce", "enforce")
    assert values(found["gateway_access_denied"], "listener", "rule", "right", "mode") == {key: 4}
    key = ("clients", "acme", "produce", "enforce")
    labels = "listener", "tenant", "right", "mode"
    assert values(found["gateway_tenant_access_denied"], *labels) == {key: 3}


def test_traffic_is_exposed_by_listener_and_broker() -> None:
    figures = ListenerFigures()
    traffic = figures.traffic("b:6650")
    traffic.open, traffic.to_broker.bytes, traffic.to_client.bytes = 2, 30, 40
    found = families(ProcessMetrics(sources({"clients": figures})))
    assert values(found["gateway_broker_connections"], "listener", "broker") == {
        ("clients", "b:6650"): 2
    }
    assert values(found["gateway_broker_bytes"], "broker", "direction") == {
        ("b:6650", "to_broker"): 30,
        ("b:6650", "to_client"): 40,
    }


def test_brokers_beyond_the_bound_are_one() -> None:
    figures = ListenerFigures()
    for number in range(BROKERS + 5):
        figures.traffic(f"b{number}:6650").open += 1
    assert figures.traffic("another").open == 5
    assert len(figures.brokers) == BROKERS + 1


def test_answers_of_a_policy_agent_are_exposed_if_there_is_one() -> None:
    figures = AgentFigures(known=3, allowed=5, denied=2, failed=1, stated=4)
    found = families(ProcessMetrics(replace(sources(), agent=figures)))
    assert values(found["gateway_policy_agent_known"]) == {(): 3}
    assert values(found["gateway_policy_agent_answers"], "outcome") == {
        ("allowed",): 5,
        ("denied",): 2,
        ("failed",): 1,
        ("stated",): 4,
    }
    assert not [name for name in families(ProcessMetrics(sources())) if "agent" in name]


def test_counters_end_in_total_and_have_no_creation_times() -> None:
    text = b"".join(ProcessMetrics(sources()).chunks()).decode()
    for name in ("connections_ended", "connections_accepted", "lookups", "lookup_redirects"):
        assert f"# TYPE gateway_{name}_total counter" in text
    assert "_created" not in text
    assert "# TYPE gateway_reactor_turns_total counter" in text


def test_the_process_itself_is_exposed() -> None:
    found = families(ProcessMetrics(sources()))
    assert values(found["process_open_fds"])[()] > 0
    assert values(found["process_resident_memory_bytes"])[()] > 0


def test_two_registries_do_not_clash() -> None:
    assert list(ProcessMetrics(sources()).chunks())
    assert list(ProcessMetrics(sources()).chunks())
