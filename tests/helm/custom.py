"""What objects of custom kinds look like, as far as the chart makes them.

Written by hand from the API references of Prometheus' operator (monitoring.coreos.com/v1) and of
cert-manager (cert-manager.io/v1): their definitions come with no package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "minLength": 1}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_GO_DURATION: Schema = {"type": "string", "pattern": r"^([0-9]+(h|m|s|ms))+$"}
_PROMETHEUS_DURATION: Schema = {"type": "string", "pattern": r"^([0-9]+(w|d|h|m|s|ms))+$"}


def _map(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def _object(version: str, kind: str, spec: Schema) -> Schema:
    metadata = _map({"name": _TEXT, "namespace": _TEXT}, {"labels": _TEXTS, "annotations": _TEXTS})
    fixed = {"apiVersion": {"const": version}, "kind": {"const": kind}}
    return _map({**fixed, "metadata": metadata, "spec": spec})


_MONITORING = "monitoring.coreos.com/v1"
_SELECTOR = _map({"matchLabels": _TEXTS})
_ENDPOINT = _map({"port": _TEXT, "path": {"type": "string", "pattern": "^/"}}, {
    "interval": _PROMETHEUS_DURATION
})  # fmt: skip
_ALERT = _map(
    {"alert": _TEXT, "expr": _TEXT},
    {"for": _PROMETHEUS_DURATION, "labels": _TEXTS, "annotations": _TEXTS},
)
_GROUP = _map({"name": _TEXT, "rules": _list(_ALERT)})
_CERTIFICATE = _map(
    {
        "secretName": _TEXT,
        "issuerRef": _map(
            {"name": _TEXT},
            {"kind": {"enum": ["Issuer", "ClusterIssuer"]}, "group": _TEXT},
        ),
        "dnsNames": _list(_TEXT),
    },
    {
        "duration": _GO_DURATION,
        "renewBefore": _GO_DURATION,
        "usages": _list({"enum": ["server auth", "client auth", "digital signature"]}),
        "privateKey": _map(
            {},
            {
                "algorithm": {"enum": ["RSA", "ECDSA", "Ed25519"]},
                "size": {"type": "integer"},
                "rotationPolicy": {"enum": ["Never", "Always"]},
            },
        ),
    },
)

KINDS: Mapping[tuple[str, str], Schema] = {
    (version, kind): _object(version, kind, spec)
    for version, kind, spec in (
        (
            _MONITORING,
            "ServiceMonitor",
            _map({"selector": _SELECTOR, "endpoints": _list(_ENDPOINT)}),
        ),
        (
            _MONITORING,
            "PodMonitor",
            _map({"selector": _SELECTOR, "podMetricsEndpoints": _list(_ENDPOINT)}),
        ),
        (_MONITORING, "PrometheusRule", _map({"groups": _list(_GROUP)})),
        ("cert-manager.io/v1", "Certificate", _CERTIFICATE),
    )
}
"""By `apiVersion` and `kind`: the schema of an object."""
