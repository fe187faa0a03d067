"""All metrics, for tests that look at each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gateway.policy.accounts import AccountBook
from gateway.policy.principals import PrincipalBook
from gateway.telemetry.denials import DeniedTenant
from gateway.telemetry.exposition import (
    LatencyExposition,
    PrincipalExposition,
    ProgressExposition,
    TenantExposition,
    TopicExposition,
)
from gateway.telemetry.figures import (
    AgentFigures,
    AuditFigures,
    BrokerFailures,
    BrokerHealth,
    ClusterFigures,
    CrewFigures,
    Denied,
    ExportFigures,
    IssuerFigures,
    ListenerFigures,
    LogFigures,
    OpeningFigures,
    PlaneFigures,
    ReloadFigures,
    RuleFigures,
    SentFigures,
    ShipperFigures,
    StoreFigures,
    StreamFigures,
    TlsFigures,
)
from gateway.telemetry.latency import Histogram, ListenerLatencies, SlowSends
from gateway.telemetry.process import CrewMetrics, ProcessMetrics, Sources
from gateway.telemetry.progress import Position, Progress
from gateway.tls.files import Expiry, Kind
from gateway.wire.account import Action
from gateway.workers.merging import merge
from tests.support.subjects import subject_of, topic_of


def exposition() -> str:
    """Return all metrics of a gateway with workers, each with at least one sample."""
    principals = PrincipalBook()
    book = AccountBook(watchers=[principals])
    for action in (Action.PRODUCE, Action.CONSUME):
        account = book.open(action, subject_of("topic", principal="alice"))
        account.messages += 1
        account.refused += 1
        account.redelivered += 1
        account.queued += 1
        account.begin_wait("r", 0.0)
        account.end_wait(1.0)
    book.deny(topic_of("topic"), "produce")
    progress = Progress()
    progress.of("orders")[0] = 2
    progress.commit(Position("shop", "orders", 0, 1))
    latencies = ListenerLatencies(SlowSends())
    tenant = latencies.of("t", proven=True)
    for histogram in (tenant.send, tenant.own, tenant.lookup, tenant.first_message):
        histogram.add(1.0)
    listener = ListenerFigures()
    listener.shaken("TLSv1.3", resumed=False)
    listener.authenticated("token", accepted=True)
    listener.opened("library 1.0")
    listener.traffic("127.0.0.1:6650").open += 1
    sources = Sources(
        version="1",
        listeners={"a": listener},
        dials={"b": Histogram()},
        delays=Histogram(),
        clusters={"b": ClusterFigures(errors=Counter({("Produce", 6): 1}))},
        plane=lambda: PlaneFigures(0, 0, 0, 0, 0, 0),
        brokers=lambda: [BrokerHealth("b", "127.0.0.1:6650", healthy=True)],
        failures=lambda: [BrokerFailures("b", "silent", 0)],
        rules=lambda: [RuleFigures("r", "publish.bytes", "shadow")],
        log=LogFigures(),
        audit=AuditFigures(),
        usage={"usage": StreamFigures()},
        shipper=ShipperFigures({"usage": SentFigures()}),
        export={"spans": ExportFigures()},
        openings=OpeningFigures(),
        latencies={"a": latencies},
        denied={Denied("clients", "r", "produce", "enforce"): 1},
        denied_tenants={DeniedTenant("clients", "t", "produce", "enforce"): 1},
        issuers={"https://issuer.example": IssuerFigures()},
        agent=AgentFigures(),
        tls=TlsFigures(expiries={"listener a": [Expiry(Kind.CERTIFICATE, Path("a.crt"), 0)]}),
        reloads=ReloadFigures(loaded_at=0),
        store=StoreFigures(),
    )
    crew = CrewMetrics(lambda: CrewFigures(1, 0), LogFigures())
    worker = [
        *ProcessMetrics(sources).chunks(),
        *LatencyExposition({"a": latencies}).chunks(),
        *TenantExposition({"b": book}, verified=True).chunks(),
        *PrincipalExposition({"b": principals}, verified=True).chunks(),
        *TopicExposition({"b": book}, verified=True).chunks(),
        *ProgressExposition({"b": progress}).chunks(),
    ]
    texts = [chunk.decode() for chunk in crew.chunks()], [chunk.decode() for chunk in worker]
    return b"".join(merge(texts)).decode()
