"""The API by which a master of TubeMQ is told its brokers and topics, and says how they are."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

PATIENCE_S = 30
TOKEN = "tests"
"""What changes are asked with: `confModAuthToken` of a master's settings."""

Record = dict[str, Any]


class AdminError(Exception):
    """A master says that it has not done what it was asked."""


class Admin:
    """Asks the master whose API is at `host:port`."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/webapi.htm"

    def query(self, method: str, **fields: object) -> list[Record]:
        """Return the records of a response. Raises AdminError; OSError if there is none."""
        return self._ask("op_query", method, fields)

    def change(self, method: str, **fields: object) -> None:
        """Change something, all of it. Raises as `query`."""
        for each in self._ask("op_modify", method, {"confModAuthToken": TOKEN, **fields}):
            if not each.get("success", True):
                raise AdminError(f"{method}: {each}")

    def is_running(self, id: int) -> bool:
        """Return whether a broker has come, and knows what the master had to tell it. Raises as
        `query`."""
        found = self.query("admin_query_broker_run_status", brokerId=id)
        return [it["runStatus"] for it in found] == ["running"]

    def serving(self, id: int) -> dict[str, int]:
        """Return of how many partitions of each topic, its own ones included, a broker takes and
        gives messages. Raises as `query`."""
        found: dict[str, int] = {}
        for record in self.query("admin_query_topic_info", brokerId=id):
            for part in record["topicInfo"]:
                told = part["runInfo"]  # of a broker that is away, "-" for each
                serves = told["acceptPublish"] is True and told["acceptSubscribe"] is True
                found[record["topicName"]] = told["numPartitions"] if serves else 0
        return found

    def _ask(self, kind: str, method: str, fields: dict[str, object]) -> list[Record]:
        body = urlencode({"type": kind, "method": method, **fields}).encode()
        with urlopen(self._url, body, PATIENCE_S) as response:
            told = json.load(response)
        if not told["result"]:
            raise AdminError(f"{method}: {told['errMsg']}")
        records: list[Record] = told.get("data") or []
        return records
