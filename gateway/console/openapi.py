"""The OpenAPI document of the console's API (OpenAPI 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gateway import __version__
from gateway.console.guard import ACTION

_TEXTS = {
    "/status": "Listeners, brokers, rules, denials, the process; without rates.",
    "/feed": "Server-sent events: `history`, the sums of the last minutes, then `second` each "
    "second: rates, tenants, topics, waits, latency, and the status.",
    "/connections": "Open connections.",
    "/connections/{id}": "One connection, with its producers and consumers.",
    "/topics": "Topics, with totals since the start.",
    "/slowest": "The slowest sends of the last five minutes.",
    "/configuration": "The configuration in force, without secrets.",
    "/openapi.json": "This document.",
    "/connections/{id}/close": "Close a connection. Its client connects again.",
    "/drain": "Stop as at SIGTERM: clients move to other gateways, then the process ends.",
    "/reload": "Read rules again.",
    "/log": "Write log lines from another level on, for a limited time.",
    "/trace": "Trace the frames of clients that connect from a network or as a principal, for a "
    "limited time.",
}

_PAGED = {
    "search": ("string", "Part of a name, in any case."),
    "sort": ("string", "A field of the rows."),
    "descending": ("boolean", "By default true."),
    "limit": ("integer", "Rows, up to 1000; by default 100."),
    "offset": ("integer", "Rows before these."),
}
_PARAMETERS = {
    "/connections": _PAGED,
    "/topics": _PAGED,
    "/slowest": {"topic": ("string", "One topic, by the name that metrics use.")},
}

_SECONDS = {
    "type": "number",
    "exclusiveMinimum": 0,
    "maximum": 3600,
    "default": 300,
    "description": "For how long.",
}
_BODIES: dict[str, dict[str, Any]] = {
    "/log": {
        "required": ["level"],
        "properties": {
            "level": {"enum": ["debug", "info", "warning", "error"]},
            "event": {"type": "string", "description": "One log event; by default all."},
            "seconds": _SECONDS,
        },
    },
    "/trace": {
        "oneOf": [{"required": ["client"]}, {"required": ["principal"]}],
        "properties": {
            "client": {"type": "string", "description": "An address or a network."},
            "principal": {"type": "string", "description": "Whom clients are known as."},
            "seconds": _SECONDS,
        },
    },
}


def document(reads: Iterable[str], actions: Iterable[str]) -> dict[str, Any]:
    """Return the OpenAPI document of the console's API. `reads`: paths that are read by GET.
    `actions`: paths of actions, which take POST."""
    paths: dict[str, Any] = {}
    for path in reads:
        name = path.replace(":int", "")
        paths.setdefault(f"/api/v1{name}", {})["get"] = _operation(name)
    for path in actions:
        name = path.replace(":int", "")
        paths.setdefault(f"/api/v1{name}", {})["post"] = _operation(name, is_action=True)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Broker gateway", "version": __version__},
        "security": [{}, {"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": paths,
    }


def _operation(name: str, *, is_action: bool = False) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": parameter, "in": "query", "schema": {"type": kind}, "description": text}
        for parameter, (kind, text) in _PARAMETERS.get(name, {}).items()
    ]
    if "{id}" in name:
        parameters.append(
            {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        )
    if is_action:
        parameters.append(
            {"name": ACTION.decode(), "in": "header", "required": True, "schema": {"const": "1"}}
        )
    kind = "text/event-stream" if name == "/feed" else "application/json"
    operation: dict[str, Any] = {
        "summary": _TEXTS[name],
        "parameters": parameters,
        "responses": {
            "200": {"description": "Done." if is_action else "The answer.", "content": {kind: {}}},
            "4XX": {"description": "An error, with its text in `error`."},
        },
    }
    if name in _BODIES:
        schema = {"type": "object", **_BODIES[name]}
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return operation
