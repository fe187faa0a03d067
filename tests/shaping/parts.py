"""The measured scenarios. An *act* is one scenario, or several that are played side by side."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.clients.loads import Offer

from .scenarios import FREE, Flow, Limit, Scenario, Unit, Way

Act = tuple[Scenario, ...]
CLIENTS = ("python", "go", "java")
ALL_IT_CAN = 1_000_000.0
"""Messages a second: more than any client sends one by one."""
MOST_READ, MOST_BYTES = 300_000, 200_000_000
"""Limits of what is read back, since reading takes time."""

USUAL = Offer()


@dataclass(frozen=True)
class Cell:
    """A limit and its load.

    `times`: the load of all producers as a multiple of the limit. `clients`: the clients in use;
    `beside`: other ways of limiting the Go client, which takes least of the machine.
    """

    limit: Limit
    times: float = 10.0
    offer: Offer = USUAL
    programs: int = 1
    producers: int = 1
    clients: tuple[str, ...] = CLIENTS
    beside: tuple[Way, ...] = ()

    @property
    def pairs(self) -> Iterator[tuple[str, Way]]:
        yield from ((client, Way.GATEWAY) for client in self.clients)
        yield from (("go", way) for way in self.beside)

    def scenario(self, client: str, way: Way, seconds: float) -> Scenario:
        each = self.times * self._messages / (self.programs * self.producers)
        many = self._messages * (seconds + 2)
        return Scenario(
            *("accuracy", self.name, client, self.limit),
            (Flow(each, producers=self.producers),),
            way=way,
            offer=self.offer,
            programs=self.programs,
            seconds=seconds,
            reads=many <= MOST_READ and many * self.offer.size <= MOST_BYTES,
        )

    @property
    def _messages(self) -> float:
        """Return the messages a second that the limit lets pass."""
        return self.limit.rate / (self.offer.size if self.limit.unit is Unit.BYTES else 1)

    @property
    def name(self) -> str:
        how = [f"batches of {self.offer.batch}" if self.offer.batch else "single"]
        if self.limit.unit is Unit.BYTES:
            how += [f"{self.offer.size / 1000:g} KB each", f"{self.offer.pending} pending"]
        if self.programs * self.producers > 1:
            how += [f"{self.producers} producers on each of {self.programs} connections"]
        return ", ".join(how)


def _messages(rate: float, times: float, batch: int = 0, **others: Any) -> Cell:
    """Return a cell whose client has a window wide enough for the rate: half a second of it."""
    offer = Offer(batch=batch, pending=max(1000, int(rate / 2)))
    return Cell(Limit(rate), times, offer, **others)


def _bytes(
    rate: float, times: float, size: int, pending: int, batch: int = 0, **others: Any
) -> Cell:
    return Cell(Limit(rate, Unit.BYTES), times, Offer(size, batch, pending), **others)


GO = ("go",)
BROKER, BOTH = (Way.BROKER,), (Way.BROKER, Way.PROXY)
ACCURACY = (
    _messages(10, 10, beside=BROKER),
    _messages(100, 10, clients=GO, beside=BROKER),
    _messages(1_000, 10, beside=BOTH),
    _messages(10_000, 3, beside=BROKER),
    _messages(10, 10, batch=10, clients=GO),
    _messages(1_000, 10, batch=100, beside=BOTH),
    _messages(10_000, 5, batch=100),
    _messages(100_000, 2, batch=1000, beside=BROKER),
    _messages(1_000, 10, programs=2, producers=4),
    _messages(10_000, 3, batch=100, programs=2, producers=5, clients=GO),
    _bytes(100_000, 10, 1_000, 1000, beside=BROKER),
    _bytes(1_000_000, 10, 10_000, 300, clients=GO, beside=BOTH),
    _bytes(1_000_000, 10, 1_000, 1000, batch=50),
    _bytes(2_000_000, 5, 20_000, 1000),
    _bytes(10_000_000, 5, 10_000, 300, beside=BROKER),
    _bytes(10_000_000, 5, 50_000, 1000),
    _bytes(100_000_000, 2, 100_000, 30, clients=GO, beside=BROKER),
    _bytes(500_000_000, 2, 1_000_000, 4, clients=GO),
)

"""With a thousand large messages pending, a producer has more than may wait."""


def accuracy(*, short: bool) -> Iterator[Act]:
    seconds = 3.0 if short else 10.0
    yield from over_time(seconds)
    for cell in ACCURACY[1:3] if short else ACCURACY:
        for client, way in [("python", Way.GATEWAY)] if short else cell.pairs:
            yield (cell.scenario(client, way, seconds),)


def over_time(seconds: float) -> Iterator[Act]:
    """Yield one act for the picture, in which a client's surplus fails at once."""
    for way in (Way.GATEWAY, Way.BROKER):
        yield (
            Scenario(
                *("accuracy", "over time", "python", Limit(500), (Flow(1500.0),)),
                way=way,
                offer=Offer(blocks=False),
                warm_up=2.0,
                seconds=seconds,
                curve=True,
            ),
        )


def low(*, short: bool) -> Iterator[Act]:
    """A client with a thousand waiting messages would give up the last of them."""
    base = Scenario("low", "", "", Limit(10), (), warm_up=40.0, seconds=80.0)
    if short:
        base = replace(base, warm_up=2.0, seconds=5.0)
    rates, clients = ((10.0,), CLIENTS[:1]) if short else ((5.0, 10.0, 20.0), CLIENTS)
    yield tuple(
        replace(base, name="1000 pending", client=client, limit=Limit(rate), flows=(Flow(100.0),))
        for rate in rates
        for client in clients
    )


def neighbour(*, short: bool) -> Iterator[Act]:
    """A client without a limit, beside one that offers just what may pass or ten times as much."""
    limit = Limit(500)
    base = Scenario("neighbour", "", "", limit, (), seconds=2.0 if short else 8.0, reads=False)
    beside = {"2000 a second": 2000.0} | ({} if short else {"all it can": ALL_IT_CAN})
    for client in CLIENTS[:1] if short else CLIENTS:
        for name, rate in beside.items():
            for times in (1, 10, 10, 1):
                flows = (Flow(times * limit.rate), Flow(rate, FREE))
                yield (replace(base, name=f"{name}, {times}", client=client, flows=flows),)
    if not short:
        for times in (1, 10):
            flows = (Flow(times * limit.rate), Flow(2000.0, FREE))
            each = replace(base, name=f"2000 a second, {times}", client="go", flows=flows)
            yield (replace(each, way=Way.BROKER),)


def fairness(*, short: bool) -> Iterator[Act]:
    """Fifty producers."""
    base = Scenario("fairness", "", "", Limit(1000), (), seconds=3.0 if short else 10.0)
    for client in CLIENTS[:1] if short else CLIENTS:
        for programs in (1, 5):
            yield (
                replace(
                    base,
                    name=f"{programs} connections",
                    client=client,
                    programs=programs,
                    flows=(Flow(100.0, producers=50 // programs),),
                ),
            )


def calm(*, short: bool) -> Iterator[Act]:
    """Libraries with their defaults: their surplus fails at once, except that the Go client
    blocks."""
    base = Scenario("calm", "", "", Limit(50), (), seconds=300.0, warm_up=10.0)
    if short:
        base = replace(base, seconds=3.0, warm_up=1.0)
    yield tuple(
        replace(each, way=way, limit=Limit(rate), flows=(Flow(10 * rate),))
        for way in ((Way.GATEWAY,) if short else (Way.GATEWAY, Way.BROKER))
        for rate in ((50.0,) if short else (5.0, 50.0, 500.0))
        for each in _libraries(base, CLIENTS[:1] if short else CLIENTS, rate)
    )


def _libraries(base: Scenario, clients: tuple[str, ...], rate: float) -> Iterator[Scenario]:
    """Deduplicated producers block at a full queue, so that no message is missing in the end."""
    usual = Offer(pending=0, blocks=False)
    for client in clients:
        offer = replace(usual, blocks=client == "go")
        yield replace(base, name="as it comes", client=client, offer=offer)
        if rate == 50:
            yield replace(base, name="deduplicated", client=client, deduplicated=True)
    if "java" in clients:
        offer = replace(usual, pending=1000)
        yield replace(base, name="maxPendingMessages 1000", client="java", offer=offer)


PARTS: Mapping[str, Callable[..., Iterator[Act]]] = {
    "accuracy": accuracy,
    "low": low,
    "neighbour": neighbour,
    "fairness": fairness,
    "calm": calm,
}
"""The parts that real clients play with a real broker."""
