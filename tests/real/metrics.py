"""The gateway's metrics as a test reads them: scraped, parsed by the reference parser, and selected
by labels."""

import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

SCRAPE_SECONDS = 5
# Metrics may be gathered at intervals rather than at each scrape.
SETTLE_SECONDS = 5


def scrape(url: str) -> str:
    """Return all metrics, those of topics included."""
    return _read(url) + _read(f"{url}/topics")


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=SCRAPE_SECONDS) as answer:
        text: str = answer.read().decode()
        return text


def total(exposition: str, name: str, **labels: str) -> float:
    """Return the sum of all samples of `name` with these labels; 0 if there is none."""
    samples = (
        sample for family in text_string_to_metric_families(exposition) for sample in family.samples
    )
    return sum(
        sample.value
        for sample in samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def totals(exposition: str, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return the sums of the samples of `name` by the values of these labels."""
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name == name:
                key = tuple(sample.labels[label] for label in labels)
                found[key] = found.get(key, 0) + sample.value
    return found


def settled_total(url: str, expected: float, name: str, **labels: str) -> float:
    """Return the total as soon as it is `expected`; after a while, whatever it is by then."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (found := total(scrape(url), name, **labels)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return found
