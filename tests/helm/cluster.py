"""As much of a Kubernetes API, on loopback, as Helm needs to install, upgrade and remove the chart.

Objects are kept as they come; nothing is checked, and nothing runs. Patches replace lists, which
suits Secrets and ConfigMaps, not containers.
"""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.helm.rendering import MINORS

Document = dict[str, Any]

GROUPS = {
    "v1": {
        "ConfigMap": "configmaps",
        "Pod": "pods",
        "Secret": "secrets",
        "Service": "services",
        "ServiceAccount": "serviceaccounts",
    },
    "apps/v1": {"Deployment": "deployments"},
    "autoscaling/v2": {"HorizontalPodAutoscaler": "horizontalpodautoscalers"},
    "networking.k8s.io/v1": {"NetworkPolicy": "networkpolicies"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
}
"""By group and version: kinds that the chart makes, with their plurals."""


KINDS = {plural: kind for kinds in GROUPS.values() for kind, plural in kinds.items()}
"""By plural: the kind."""


def _resources(version: str) -> Document:
    verbs = ["get", "list", "create", "update", "patch", "delete"]
    listed = [
        {"name": plural, "singularName": "", "namespaced": True, "kind": kind, "verbs": verbs}
        for kind, plural in GROUPS[version].items()
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": listed}


def _group(version: str) -> Document:
    found = {"groupVersion": version, "version": version.partition("/")[2]}
    name = version.partition("/")[0]
    return {"name": name, "versions": [found], "preferredVersion": found}


DISCOVERY: dict[str, Document] = {
    "/version": {"major": "1", "minor": MINORS[0][2:], "gitVersion": f"v{MINORS[0]}.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(it) for it in GROUPS if "/" in it],
    },
    "/api/v1": _resources("v1"),
    **{f"/apis/{it}": _resources(it) for it in GROUPS if "/" in it},
}
"""By path: what there is."""


def _missing(path: str) -> Document:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "NotFound",
        "message": f"{path} not found",
        "code": 404,
    }


def _merged(old: Any, patch: Any) -> Any:
    """Return what a JSON merge patch makes; directives of strategic ones are ignored."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif not key.startswith("$"):
            found[key] = _merged(found.get(key), value)
    return found


# -- protocol buffers --------------------------------------------------------------------------

_ENVELOPE = b"k8s\x00"
"""Begins an object in protocol buffers, in which Helm writes its own Secrets."""


def _read(body: bytes) -> Document:
    """Return the object of a request: JSON, or a Secret in protocol buffers."""
    if not body.startswith(_ENVELOPE):
        found: Document = json.loads(body)
        return found
    secret = _fields(_fields(body.removeprefix(_ENVELOPE))[2][0])
    metadata = _fields(secret[1][0])
    data = {key: base64.b64encode(it).decode() for key, it in _entries(secret.get(2, []))}
    labels = {key: it.decode() for key, it in _entries(metadata.get(11, []))}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": metadata[1][0].decode(), "labels": labels},
        "type": secret[3][0].decode(),
        "data": data,
    }


def _entries(found: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the entries of a map."""
    for fields in map(_fields, found):
        yield fields[1][0].decode(), fields[2][0]


def _fields(message: bytes) -> dict[int, list[bytes]]:
    """Return the fields of a message that are bytes, by number; numbers among them are left out."""
    found: dict[int, list[bytes]] = {}
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        length, position = _varint(message, position)
        if tag & 7 == 2:
            found.setdefault(tag >> 3, []).append(message[position : position + length])
            position += length
    return found


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        shift, position = shift + 7, position + 1
        if byte < 0x80:
            return value, position


class Cluster:
    """A context in which `url` answers. `objects`: by path, such as
    /api/v1/namespaces/NAMESPACE/secrets/NAME."""

    def __init__(self) -> None:
        self.objects: dict[str, Document] = {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, url: str, body: Document | None) -> Document | None:
        """Do what a request asks, and return the answer; None: there is no such object."""
        path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
        if method == "POST" and body is not None:
            return self._stored(f"{path}/{body['metadata']['name']}", body)
        if path in DISCOVERY:
            return DISCOVERY[path]
        if path.rpartition("/")[2] in KINDS:
            return self._listed(path, query.get("labelSelector", [""])[0])
        if path not in self.objects:
            return None
        if method == "PATCH":
            return self._stored(path, _merged(self.objects[path], body))
        if method == "PUT" and body is not None:
            return self._stored(path, body)
        return self.objects.pop(path) if method == "DELETE" else self.objects[path]

    def _stored(self, path: str, found: Document) -> Document:
        self.objects[path] = found
        return found

    def _listed(self, path: str, selector: str) -> Document:
        wanted = dict(it.split("=", 1) for it in selector.split(",") if it)
        items = [
            it
            for name, it in self.objects.items()
            if name.rpartition("/")[0] == path
            and wanted.items() <= it["metadata"].get("labels", {}).items()
        ]
        kind = KINDS[path.rpartition("/")[2]]
        return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": items}


def _handler(cluster: Cluster) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            written = self.rfile.read(length)
            # Options of a deletion say nothing that matters here.
            body = _read(written) if written and self.command != "DELETE" else None
            if self.path.startswith("/openapi/v2"):
                self._send(200, b"")  # no schemas, in protocol buffers: nothing is checked
                return
            found = cluster.answer(self.command, self.path, body)
            answer = found or _missing(self.path)
            self._send(200 if found else 404, json.dumps(answer).encode())

        def _send(self, status: int, answer: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler
