"""Mistakes in values fail, with what to do."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helm.rendering import CHART, PARENT, HelmError, rendered, rendered_with

pytestmark = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")


def _rule(**settings: object) -> dict[str, Any]:
    return {"rules": {"all.yaml": {"version": 1, "rules": [{"id": "all", **settings}]}}}


def _kafka(ids: object) -> dict[str, Any]:
    ports = {"host": "kafka.example", "ids": ids, "first_port": 9101}
    clients = {"name": "kafka", "protocol": "kafka", "bind": ":9092", "cluster": "main"}
    return {**clients, "advertise": {"ports": ports}}


LIMIT = {"publish": {"messages": "100/s"}}
LISTENER = {"name": "clients", "bind": ":6650", "cluster": "main"}

MISTAKES: Mapping[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"replica": 2}, "additional properties 'replica' not allowed"),
    "unknown setting": (
        {"config": {"limits": {"conections": 5}}},
        "at '/config/limits': additional properties 'conections' not allowed",
    ),
    "setting out of bounds": (
        {"config": {"limits": {"connections": 0}}},
        "at '/config/limits/connections': minimum: got 0, want 1",
    ),
    "wrong duration": (
        {"config": {"deadlines": {"idle": "10 parsecs"}}},
        "at '/config/deadlines/idle': '10 parsecs' does not match pattern",
    ),
    "listener without a cluster": (
        {"config": {"listeners": [{"name": "clients", "bind": ":6650"}]}},
        "at '/config/listeners/0': missing property 'cluster'",
    ),
    "another cluster without brokers": (
        {"config": {"clusters": {"other": {}}}},
        "at '/config/clusters/other': missing property 'brokers'",
    ),
    "ids of brokers that nobody can count": (
        {"config": {"listeners": [_kafka("${BROKERS}")]}},
        'advertise.ports.ids of listener kafka of config: "${BROKERS}" is no id',
    ),
    "rule with a wrong rate": (
        _rule(limit={"publish": {"messages": "fast"}}),
        "at '/rules/all.yaml/rules/0/limit/publish/messages': 'fast' does not match pattern",
    ),
    "rule with an unknown key": (
        _rule(limits=LIMIT),
        "at '/rules/all.yaml/rules/0': additional properties 'limits' not allowed",
    ),
    "rule with two kinds": (_rule(limit=LIMIT, allow=["produce"]), "oneOf"),
    "rules in a file that is not read": ({"rules": {"all.txt": {"version": 1}}}, "all.txt"),
    "a secret where the chart has its own": (
        {"secrets": {"tls": {"secretName": "x"}}},
        "secrets.tls: the chart mounts another Secret there; choose another name",
    ),
    "two rules of one id": (
        {
            "rules": {
                "a.yaml": {"version": 1, "rules": [{"id": "all", "limit": LIMIT}]},
                "b.yaml": {"version": 1, "rules": [{"id": "all", "limit": LIMIT}]},
            }
        },
        "rules: the id all of b.yaml is also in a.yaml; choose another",
    ),
    "grace too short": (
        {"terminationGracePeriodSeconds": 35},
        (
            "terminationGracePeriodSeconds is 35, but preStopSleepSeconds (10), "
            "config.deadlines.grace (25) and config.usage.topic (0) take 35: pods would be killed "
            "with clients on them; make it 36 or more"
        ),
    ),
    "grace too short for records": (
        {
            "terminationGracePeriodSeconds": 40,
            "config": {
                "usage": {
                    "folder": "/var/lib/broker-gateway/usage",
                    "topic": {"cluster": "main", "records": "persistent://a/b/c"},
                }
            },
        },
        "make it 41 or more",
    ),
    "grace of the environment": (
        {"config": {"deadlines": {"grace": "${GRACE:-25s}"}}},
        'config.deadlines.grace: "${GRACE:-25s}" cannot be compared',
    ),
    "a budget of one": (
        {"replicas": 1},
        (
            "podDisruptionBudget: one replica cannot stay while its node is drained; have two or "
            "more, or set podDisruptionBudget.enabled to false"
        ),
    ),
    "a budget of one by scaling": (
        {"autoscaling": {"enabled": True, "minReplicas": 1}},
        "podDisruptionBudget: one replica cannot stay",
    ),
    "a budget for all": (
        {"podDisruptionBudget": {"maxUnavailable": 3}},
        "podDisruptionBudget: maxUnavailable is 3 of 3 replicas",
    ),
    "scaling the wrong way": (
        {"autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 4}},
        "autoscaling: minReplicas is more than maxReplicas",
    ),
    "scaling by nothing": (
        {"autoscaling": {"enabled": True, "cpu": ""}},
        "autoscaling: nothing says when to scale",
    ),
    "an edge without a certificate": (
        {"mode": "edge", "secrets": {"issuer": {"secretName": "x"}}},
        "config names secrets/tls/tls.crt, but there is no certificate; set tls.secretName",
    ),
    "an edge without an issuer": (
        {"mode": "edge", "tls": {"secretName": "x"}},
        (
            "config names secrets/issuer/public.pem, but no Secret is mounted there; set "
            "secrets.issuer.secretName"
        ),
    ),
    "an edge without rules": (
        {
            "mode": "edge",
            "tls": {"secretName": "x"},
            "secrets": {"issuer": {"secretName": "x"}},
        },
        "rules: access of listener edge is closed, and no rule allows anything",
    ),
    "a certificate for nobody": (
        {"tls": {"secretName": "x"}},
        "tls: there is a certificate, but config does not use it",
    ),
    "two certificates": (
        {
            "tls": {
                "secretName": "x",
                "certManager": {"enabled": True, "issuer": {"name": "x"}, "dnsNames": ["x"]},
            }
        },
        "tls: cert-manager makes a Secret of its own",
    ),
    "a certificate of nobody": (
        {"tls": {"certManager": {"enabled": True, "dnsNames": ["a.example"]}}},
        "tls.certManager: it needs an issuer and hosts",
    ),
    "seal keys of a sidecar": (
        {
            "mode": "sidecar",
            "config": {
                "clusters": {"main": {"names": {"sealed": {"keys": [{"file": "secrets/seal/a"}]}}}}
            },
        },
        "sidecars make seal keys of their own; set sealKeys.existingSecret",
    ),
    "health on loopback": (
        {"config": {"admin": {"bind": "127.0.0.1:8080"}}},
        "config.admin.bind: probes come from outside the pod",
    ),
    "a port of the environment": (
        {"config": {"listeners": [{**LISTENER, "bind": "${BIND}"}]}},
        'listener clients of config: the bind "${BIND}" ends with no number',
    ),
    "loopback alone": (
        {"config": {"listeners": [{**LISTENER, "bind": "127.0.0.1:6650"}]}},
        "config.listeners: all bind to loopback",
    ),
    "a port of root": (
        {"config": {"listeners": [{**LISTENER, "bind": ":443"}]}},
        "config.listeners: port 443 needs rights that the gateway's user lacks",
    ),
    "a port of no listener": (
        {"service": {"ports": {"6651": 443}}},
        "service.ports: no listener has port 6651",
    ),
    "networks without a balancer": (
        {"service": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}},
        "service.loadBalancerSourceRanges: only a balancer keeps clients out by it",
    ),
    "a store out of reach": (
        {"config": {"store": {"url": "redis://valkey:6379"}}},
        "networkPolicy.egress: no rule lets pods reach the store redis://valkey:6379",
    ),
    "brokers out of reach": (
        {"config": {"clusters": {"main": {"brokers": "pulsar://[fd00::12]:16650,b:6650"}}}},
        "networkPolicy.brokers.ports: pods could not reach port 16650 of cluster main",
    ),
    "targets out of reach": (
        {"config": {"clusters": {"main": {"targets": {"ports": [6650, 16651]}}}}},
        "networkPolicy.brokers.ports: pods could not reach port 16651 of cluster main",
    ),
    "too little memory": (
        {"config": {"limits": {"buffered": "1GiB"}}},
        (
            "resources.limits.memory is 768Mi, but config.limits (connections: 10000, remembered: "
            "128 MiB, buffered: 1GiB) can take 1525 MiB"
        ),
    ),
    "too little memory for what connections keep by default": (
        {"config": {"limits": {"remembered": None}}},
        (
            "resources.limits.memory is 768Mi, but config.limits (connections: 10000, remembered: "
            "512 MiB, buffered: 256MiB) can take 1371 MiB"
        ),
    ),
    "too little memory for TLS": (
        {
            "tls": {"secretName": "gateway-tls"},
            "config": {
                "listeners": [
                    LISTENER
                    | {
                        "tls": {
                            "certificates": [
                                {
                                    "certificate_file": "secrets/tls/tls.crt",
                                    "key_file": "secrets/tls/tls.key",
                                }
                            ]
                        }
                    }
                ]
            },
        },
        "buffered: 256MiB) can take 1051 MiB",
    ),
    "too little memory of one's own": (
        {"resources": {"limits": {"memory": "300M"}}},
        "resources.limits.memory is 300M, but config.limits",
    ),
    "two monitors": (
        {"monitoring": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}},
        "monitoring: a ServiceMonitor and a PodMonitor would read everything twice",
    ),
}
"""By what is wrong: values, and what Helm says about them."""


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_fails_with_what_to_do(what: str, tmp_path: Path) -> None:
    values, expected = MISTAKES[what]
    with pytest.raises(HelmError) as raised:
        rendered_with(values, tmp_path)
    assert expected in str(raised.value)


def test_a_sidecar_of_another_mode_fails(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("broker-gateway: {mode: shaper}")
    chart = tmp_path / "application"
    shutil.copytree(PARENT, chart)
    shutil.copytree(CHART, chart / "charts" / "broker-gateway")
    (chart / "values.yaml").write_text("{}")
    with pytest.raises(HelmError, match=r"broker-gateway\.sidecar: mode is not sidecar"):
        rendered(file, chart=chart)
