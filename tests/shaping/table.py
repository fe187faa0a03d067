"""The results as Markdown: a table for each part, with the runs of a scenario combined."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median

from tests.apache_kafka.greedy import NAMES
from tests.soak.report import MIB, table

from .results import Passed, Trial
from .scenarios import FREE, Unit, Way

TOLERANCE = 0.01
"""How far the rate may deviate from the limit, if one frame is not more."""
MOSTLY = 0.5
"""Share of the time: a client that is reset has nothing waiting for a moment."""

NOTHING = "-"

Trials = Sequence[Trial]


def _flow(trial: Trial, topic: str = "") -> Passed:
    """Return the flow of a topic; the limited flow is the first."""
    return next(it for it in trial.flows if not topic or it.topic == topic)


def passed(trial: Trial) -> float:
    """Return the passed rate in the units of the limit."""
    return _flow(trial).passed * (trial.size if trial.unit == Unit.BYTES else 1)


def deviation(trial: Trial) -> float:
    """Return the relative excess over the limit; negative if less passed."""
    return passed(trial) / trial.limit - 1


def is_exact(trial: Trial) -> bool:
    """Return True if the deviation is within the tolerance, or within one frame if that is more."""
    batch = max(1, int(trial.offer.get("batch", 0)))
    frame = batch * (trial.size if trial.unit == Unit.BYTES else 1)
    allowed = max(TOLERANCE * trial.limit * trial.seconds, frame)
    # A little more, since the size of a message is an average.
    return abs(passed(trial) - trial.limit) * trial.seconds <= allowed * 1.001


def was_above(trial: Trial) -> bool:
    """Return True if more was offered than may pass, so that something waited nearly all the time.
    This is unknown if a broker limits."""
    return bool(trial.gateway.get("waiting", 1.0) >= MOSTLY)


def _grouped(
    trials: Iterable[Trial], key: Callable[[Trial], tuple[object, ...]]
) -> Mapping[tuple[object, ...], list[Trial]]:
    """Return the trials by key, in an order for readers."""
    groups: dict[tuple[object, ...], list[Trial]] = defaultdict(list)
    for trial in sorted(trials, key=lambda it: (it.unit, it.client, it.name, it.limit, it.way)):
        groups[key(trial)].append(trial)
    return groups


def amount(value: float, unit: str) -> str:
    """Return an amount as a rule would write it."""
    if unit == Unit.MESSAGES:
        return f"{value:,.0f}/s"
    for name, size in (("MB", 1e6), ("KB", 1e3)):
        if value >= size:
            return f"{value / size:,.0f} {name}/s"
    return f"{value:,.0f} B/s"


# -- accuracy ------------------------------------------------------------------------------------

COLUMNS = (
    ("python", Way.GATEWAY),
    ("go", Way.GATEWAY),
    ("java", Way.GATEWAY),
    ("go", Way.BROKER),
    ("go", Way.PROXY),
)


def accuracy(trials: Trials) -> str:
    head = ["limit", "offered", *(_column(client, way) for client, way in COLUMNS)]
    return table(head, _accuracy(trials)) + "\n\n" + _whole(trials)


def _column(client: str, way: Way) -> str:
    return client if way is Way.GATEWAY else f"{way} ({client})"


def _accuracy(trials: Trials) -> Iterator[list[str]]:
    measured = [it for it in trials if not it.curve]
    measured.sort(key=lambda it: (it.unit == Unit.BYTES, it.limit, it.name))
    for (unit, limit, name), group in groupby(measured, lambda it: (it.unit, it.limit, it.name)):
        mine = list(group)
        yield [amount(limit, unit), name, *(_exactness(mine, *column) for column in COLUMNS)]


def _exactness(group: Trials, client: str, way: str) -> str:
    mine = [it for it in group if (it.client, it.way) == (client, way) and not it.failure]
    if not mine:
        return NOTHING
    worst = max(mine, key=lambda it: abs(deviation(it)))
    off = f"{100 * deviation(worst):+.2f} %"
    if not any(map(was_above, mine)):
        return f"reached {amount(passed(worst), worst.unit)}"
    return off if all(map(is_exact, mine)) else f"**{off}**"


def _whole(trials: Trials) -> str:
    """Return what the gateway lost and doubled of the messages read back."""
    flows = [flow for it in trials if it.way == Way.GATEWAY for flow in it.flows]
    read = [it for it in flows if it.stored is not None]
    figures = {
        "messages read back": sum(it.stored or 0 for it in read),
        "missing": sum(it.missing for it in read),
        "stored twice": sum(it.doubled for it in read),
        "out of order": sum(it.disordered for it in read),
        "connections lost": sum(int(it.gateway.get("ended", 0)) for it in trials),
    }
    return "; ".join(f"{name}: {value:,}" for name, value in figures.items())


# -- others --------------------------------------------------------------------------------------


def low(trials: Trials) -> str:
    groups = _grouped(trials, lambda it: (it.client, it.limit))
    head = [
        "client",
        "limit",
        "acknowledged",
        "off by",
        "failed",
        "longest wait",
        "missing, doubled",
    ]
    return table(head, (_low(group) for _, group in groups.items()))


def _low(group: Trials) -> list[str]:
    trial = group[-1]
    flow = _flow(trial)
    return [
        trial.client,
        amount(trial.limit, trial.unit),
        f"{flow.passed:.2f}/s",
        f"{100 * deviation(trial):+.2f} %",
        _errors([trial]),
        f"{flow.waits.longest:.1f} s",
        _kept(flow),
    ]


def _kept(flow: Passed) -> str:
    """Return the lost and the doubled messages, if known."""
    return NOTHING if flow.stored is None else f"{flow.missing}, {flow.doubled}"


def _errors(trials: Trials) -> str:
    found = Counter[str]()
    for trial in trials:
        found.update(_flow(trial).failed)
    return ", ".join(f"{name} {count:,}" for name, count in sorted(found.items())) or "0"


def neighbour(trials: Trials) -> str:
    head = [
        *("client", "limited by", "B sends", "B passed beside A at 1", "at 10 times", "ratio"),
        *("B's p99 at 1", "at 10 times", "ratio"),
    ]
    return table(head, _neighbour(trials))


def _neighbour(trials: Trials) -> Iterator[list[str]]:
    groups = _grouped(trials, lambda it: (it.client, it.way, it.name.partition(",")[0]))
    for (client, way, load), group in groups.items():
        by_times = {
            times: [_flow(it, FREE) for it in group if it.name.endswith(f", {times}")]
            for times in (1, 10)
        }
        if not all(by_times.values()):
            continue
        rates = [median(it.passed for it in flows) for flows in by_times.values()]
        waits = [1000 * median(it.waits.most for it in flows) for flows in by_times.values()]
        yield [
            *(str(client), str(way), str(load)),
            *(f"{rate:,.0f}/s" for rate in rates),
            _ratio(rates),
            *(f"{wait:.1f} ms" for wait in waits),
            _ratio(waits),
        ]


def _ratio(values: Sequence[float]) -> str:
    return f"{values[1] / values[0]:.2f}" if values[0] else NOTHING


def fairness(trials: Trials) -> str:
    groups = _grouped(trials, lambda it: (it.client, it.programs))
    head = ["client", "connections", "producers", "off by", "Jain's index"]
    return table(head, (_fair(group) for _, group in groups.items()))


def _fair(group: Trials) -> list[str]:
    trial = min(group, key=lambda it: _flow(it).fairness)
    flow = _flow(trial)
    off = f"{100 * deviation(trial):+.2f} %"
    return [trial.client, str(trial.programs), str(flow.producers), off, f"{flow.fairness:.4f}"]


def calm(trials: Trials) -> str:
    groups = _grouped(trials, lambda it: (it.client, it.name, it.limit, it.way))
    head = [
        *("client", "how", "limit", "by", "acknowledged", "off by", "failed", "longest wait"),
        *("missing, doubled", "connections lost", "memory", "held"),
    ]
    return table(head, (_calm(group) for _, group in groups.items()))


def _calm(group: Trials) -> list[str]:
    trial = group[-1]
    flow, told = _flow(trial), trial.gateway
    memory = f"{told['memory before'] / MIB:.0f} → {told['memory'] / MIB:.0f} MiB" if told else ""
    return [
        *(trial.client, trial.name, amount(trial.limit, trial.unit), trial.way),
        *(f"{flow.passed:.2f}/s", f"{100 * deviation(trial):+.2f} %", _errors([trial])),
        *(f"{flow.waits.longest:.1f} s", _kept(flow)),
        f"{told['ended']:.0f}" if told else NOTHING,
        *(memory, f"{told['buffered'] / MIB:.2f} MiB" if told else ""),
    ]


def cost(trials: Trials) -> str:
    latest = {trial.name: trial for trial in trials}
    head = ["frames", "no rule", "1", "10", "1000", "most"]
    return table(head, (_cost(trial) for trial in latest.values()))


def _cost(trial: Trial) -> list[str]:
    costs = {int(count): float(value) for count, value in trial.facts.items()}
    none = costs[0]
    ratios = [f"{value:.3f} µs ({value / none:.2f})" for count, value in costs.items() if count]
    return [trial.name, f"{none:.3f} µs", *ratios, f"{max(costs.values()) / none:.2f}"]


def limits(trials: Trials) -> str:
    head = ["limits", "a producer", "one under a limit of its own", "so a limit"]
    return table(head, (_limits(trial) for trial in trials))


def _limits(trial: Trial) -> list[str]:
    sizes = (f"{trial.facts[name]:,.0f} B" for name in ("producer", "limited", "limit"))
    return [f"{trial.facts['limits']:,}", *sizes]


def transactions(trials: Trials) -> str:
    names = ("moved", "missing", "doubled", "committed", "aborted", "failed", "longest")
    rows = (
        [it.client, amount(it.limit, it.unit), *(f"{it.facts[name]:,.4g}" for name in names)]
        for it in trials
    )
    return table(["client", "limit", *names[:-1], "longest, s"], rows)


def dispatch(trials: Trials) -> str:
    head = ["limit", "sent", "how", "received", "off by", "the other one", "its p99"]
    return table(head, map(_dispatch, trials))


def _dispatch(trial: Trial) -> list[str]:
    facts = trial.facts
    return [
        *(amount(trial.limit, trial.unit), f"{facts['times']:g} times", trial.name),
        *(f"{facts['passed']:,.1f}/s", f"{100 * facts['off']:+.2f} %"),
        f"{facts['free']:,.0f}/s" if "free" in facts else NOTHING,
        f"{1000 * facts['free most']:.1f} ms" if "free" in facts else NOTHING,
    ]


def replicas(trials: Trials) -> str:
    names = (
        "client, limit, offered, store, all together, off by, before, each, most apart, "
        "calls a second, longest wait without a limit"
    )
    return table(names.split(", "), (row for trial in trials for row in _replicas(trial)))


def _replicas(trial: Trial) -> Iterator[list[str]]:
    calls = f"{sum(trial.facts['calls']) / len(trial.facts['calls']):.1f} each"
    for number, phase in enumerate(trial.facts["phases"]):
        shares = phase["shares"]
        mean = sum(shares) / len(shares)
        apart = max(abs(share - mean) for share in shares) / mean if mean else 0.0
        yield [
            *(trial.client, amount(trial.limit, trial.unit), trial.name, phase["name"]),
            *(amount(sum(shares), trial.unit), f"{100 * phase['off']:+.2f} %"),
            f"{100 * phase['settling']:+.1f} %",
            " ".join(f"{share:,.0f}" for share in shares),
            f"{100 * apart:.1f} %",
            NOTHING if number else calls,
            f"{1000 * phase['longest']:.0f} ms",
        ]


def kafka(trials: Trials) -> str:
    return _by_client(trials, NAMES)


def tubemq(trials: Trials) -> str:
    return _by_client(trials, ["java"])


def crowd(trials: Trials) -> str:
    """Return how much passes, however many connections wait for nothing."""
    rows = [
        [
            *(it.client, it.name, f"{it.facts['size']:,.0f}", amount(it.limit, it.unit)),
            *(f"{100 * it.facts['off']:+.2f} %", f"{it.facts['ahead']:+.1f} s"),
            *(str(it.facts["ended"]), f"{100 * it.facts['cpu']:.0f} %"),
        ]
        for it in trials
    ]
    # Ahead: how long the limit takes for what has passed since the start, less that time.
    heads = ["protocol", "connections", "bytes at once", "limit", "off", "ahead", "ended", "CPU"]
    return table(heads, rows)


def _by_client(trials: Trials, clients: Sequence[str]) -> str:
    """Return how exact limits are, with a column for each client."""
    groups = _grouped(trials, lambda it: (it.name, it.limit))
    rows = (_of_clients(group, clients) for _, group in sorted(groups.items()))
    return table(["", "limit", *clients], rows)


def _of_clients(group: Trials, clients: Sequence[str]) -> list[str]:
    off = {it.client: it.facts["off"] for it in group}
    figures = [f"{100 * off[it]:+.2f} %" if it in off else NOTHING for it in clients]
    return [group[0].name, amount(group[0].limit, group[0].unit), *figures]


TABLES: Mapping[str, Callable[[Trials], str]] = {
    "accuracy": accuracy,
    "low": low,
    "neighbour": neighbour,
    "fairness": fairness,
    "cost": cost,
    "limits": limits,
    "calm": calm,
    "transactions": transactions,
    "dispatch": dispatch,
    "replicas": replicas,
    "kafka": kafka,
    "tubemq": tubemq,
    "crowd": crowd,
}


def failed(trials: Trials) -> str:
    """Return the trials without figures."""
    rows = [[it.part, it.name, it.client, it.way, it.failure] for it in trials if it.failure]
    return table(["part", "scenario", "client", "by", "why"], rows) if rows else ""
