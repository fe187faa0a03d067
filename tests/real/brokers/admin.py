"""The few calls of a broker's REST interface that tests need."""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

REQUEST_SECONDS = 15


class AdminError(Exception):
    """The broker answered with an error status."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        super().__init__(f"{method} {path}: {status} {body}")
        self.status = status


@dataclass(frozen=True)
class Admin:
    """REST calls to one broker; `token` is a superuser's if the broker requires tokens."""

    url: str
    token: str | None = None

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Return the decoded JSON answer, or its text if it is not JSON. Raises AdminError."""
        data = None if body is None else json.dumps(body).encode()
        call = urllib.request.Request(
            f"{self.url}/{path}", data, {"Content-Type": "application/json"}, method=method
        )
        if self.token:
            call.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(call, timeout=REQUEST_SECONDS) as answer:
                return _decode(answer.read())
        except urllib.error.HTTPError as error:
            raise AdminError(
                method, path, error.code, error.read().decode(errors="replace")
            ) from error

    def is_healthy(self) -> bool:
        """Return True if the broker serves: its health check passes and the default namespace
        exists."""
        try:
            self.request("GET", "admin/v2/brokers/health")
            return "public/default" in self.request("GET", "admin/v2/namespaces/public")
        except (AdminError, OSError):
            return False

    def create_tenant(self, tenant: str) -> None:
        clusters = self.request("GET", "admin/v2/clusters")
        self.request(
            "PUT", f"admin/v2/tenants/{tenant}", {"adminRoles": [], "allowedClusters": clusters}
        )

    def create_namespace(self, namespace: str) -> None:
        self.request("PUT", f"admin/v2/namespaces/{namespace}")

    def forbid_topic_creation(self, namespace: str) -> None:
        """Forbid clients to create topics of this namespace by using them."""
        self.request(
            "POST",
            f"admin/v2/namespaces/{namespace}/autoTopicCreation",
            {"allowAutoTopicCreation": False},
        )

    def drop_repeats(self, namespace: str) -> None:
        """Drop messages of this namespace that their producer has sent before."""
        self.request("POST", f"admin/v2/namespaces/{namespace}/deduplication", True)

    def grant(self, namespace: str, role: str, *actions: str) -> None:
        """Permit `role` the `actions` in `namespace`: both produce and consume if none is named."""
        self.request(
            "POST",
            f"admin/v2/namespaces/{namespace}/permissions/{role}",
            list(actions or ("produce", "consume")),
        )

    def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        self.request("PUT", f"admin/v2/{topic_path(topic)}/partitions", partitions)

    def partitions(self, topic: str) -> int:
        """Return the number of partitions; 0 for a topic that is not partitioned."""
        found = self.request("GET", f"admin/v2/{topic_path(topic)}/partitions")["partitions"]
        assert isinstance(found, int)
        return found

    def grow_partitions(self, topic: str, partitions: int) -> None:
        self.request("POST", f"admin/v2/{topic_path(topic)}/partitions", partitions)

    def unload(self, topic: str) -> None:
        """Close the topic at its broker; clients are told and reopen it."""
        self.request("PUT", f"admin/v2/{topic_path(topic)}/unload")

    def terminate(self, topic: str) -> None:
        """Close the topic for new messages; its producers are closed."""
        self.request("POST", f"admin/v2/{topic_path(topic)}/terminate")

    def stats(self, topic: str) -> dict[str, Any]:
        answer = self.request("GET", f"admin/v2/{topic_path(topic)}/stats")
        assert isinstance(answer, dict)
        return answer


def topic_path(topic: str) -> str:
    """Return `persistent://tenant/ns/name`, with or without the scheme, as a path of the REST
    interface."""
    domain, _, rest = topic.rpartition("://")
    tenant, namespace, name = rest.split("/", 2)
    return f"{domain or 'persistent'}/{tenant}/{namespace}/{quote(name, safe='')}"


def _decode(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")
