"""Requests to an API server, as JSON."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

Document = dict[str, Any]

PATIENCE_S = 30

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
"""Of a patch that merges lists by the names of their items."""


class MissingError(Exception):
    """There is no such object."""


class Api:
    """The API server at `url`. Raises `MissingError`, and HTTPError with what it answered."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # it makes its own certificate, on loopback

    def get(self, path: str) -> Document:
        return self._ask("GET", path)

    def list(self, path: str) -> list[Document]:
        """Return all objects of a kind."""
        items: list[Document] = self._ask("GET", path)["items"]
        return items

    def create(self, path: str, document: Document) -> Document:
        return self._ask("POST", path, document)

    def patch(self, path: str, change: Document, kind: str = MERGE) -> Document:
        return self._ask("PATCH", path, change, kind)

    def delete(self, path: str, options: Document) -> None:
        self._ask("DELETE", path, options)

    def _ask(
        self, method: str, path: str, body: Document | None = None, kind: str = "application/json"
    ) -> Document:
        request = urllib.request.Request(
            f"{self._url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": kind},
        )
        try:
            with urllib.request.urlopen(
                request, timeout=PATIENCE_S, context=self._context
            ) as answer:
                found: Document = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise MissingError(path) from None
            error.add_note(error.read().decode(errors="replace"))
            raise
        return found
