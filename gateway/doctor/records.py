"""Asks brokers for the topics to which the shipper sends usage records, by means of the shipper's
client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.assembly import make_brief
from gateway.doctor.finding import Finding, fail, ok, skip
from gateway.verifiers import explained

if TYPE_CHECKING:
    from gateway.config import model
    from gateway.identity.credential import StoredCredential
    from gateway.usage.shipment import Brief

_REMEDY = (
    "See that the tenant and the namespace are there, and that the credential of the cluster may "
    "produce to the topic: its role must not be one of the brokers' proxyRoles. While the topic "
    "is away, files of records wait in usage.folder."
)


def has_any(configuration: model.Configuration) -> bool:
    """Return whether the gateway sends usage records to a topic, by the configuration."""
    return configuration.usage is not None and configuration.usage.topic is not None


async def examine(
    configuration: model.Configuration, own: StoredCredential | None
) -> list[Finding]:
    """Ask the brokers once about each topic to which usage records are sent; return the findings.
    `own`: the gateway's credential for these brokers; None if it is unusable."""
    brief = make_brief(configuration)
    if brief is None:
        return []
    if own is None:
        check, why = "topics of records", "the gateway's own credential cannot be read, see above"
        return [skip(check, f"not tried: {why}")]
    return await trio.to_thread.run_sync(partial(_ask, brief, own), abandon_on_cancel=True)


def _ask(brief: Brief, own: StoredCredential) -> list[Finding]:
    try:
        from gateway.usage.client import Client, service_of
        from gateway.usage.sending import UnavailableError
    except ModuleNotFoundError as missing:
        return [
            fail("topics of records", str(explained(missing)), "Install it, or drop the topic.")
        ]
    shown = own.current()
    findings = []
    for topic in brief.topics.values():
        check = f"topic {topic}"
        try:
            client = Client(service_of(brief), lambda: (shown.method, shown.data))
            try:
                parts = client.partitions(topic)
            finally:
                client.close()
        except UnavailableError as error:
            findings.append(fail(check, str(error), _REMEDY))
        else:
            findings.append(ok(check, f"brokers answer for it: {_words(parts)}"))
    return findings


def _words(parts: int) -> str:
    return "no partitions" if parts == 1 else f"{parts} partitions"
