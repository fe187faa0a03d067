"""The gateway's figures as a test reads them: scraped, parsed by the reference parser, picked by
labels.
"""

import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

SCRAPE_SECONDS = 5
# Figures may be gathered at intervals rather than at each scrape.
SETTLE_SECONDS = 5


def scrape(url: str) -> str:
    with urllib.request.urlopen(url, timeout=SCRAPE_SECONDS) as answer:
        text: str = answer.read().decode()
        return text


def total(exposition: str, name: str, **labels: str) -> float:
    """The sum of all samples of `name` that carry `labels`; 0 where there is none."""
    samples = (
        sample for family in text_string_to_metric_families(exposition) for sample in family.samples
    )
    return sum(
        sample.value
        for sample in samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def settled_total(url: str, expected: float, name: str, **labels: str) -> float:
    """The total as soon as it is `expected`; after a while, whatever it is by then."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (found := total(scrape(url), name, **labels)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return found
