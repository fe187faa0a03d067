"""Questions that a test asks without a client library, and the gateway's counts of them."""

from .frames import Command, Connection, Kind, ServerError
from .gateways import CLUSTER, Gateway
from .metrics import scrape, total

TOKEN = "the brokers do not look at it"
REDIRECT, CONNECT, FAILED = range(3)  # field 3 of a LOOKUP_RESPONSE


def lookup(url: str, topic: str, token: str | None = None) -> Command:
    """Return the answer to one lookup on a new connection."""
    with Connection(url) as connection:
        connection.connect(token or TOKEN)
        answer = connection.lookup(topic)
    assert answer
    assert answer.kind == Kind.LOOKUP_RESPONSE
    return answer


def name_in(answer: Command) -> str:
    """Return the broker named in a lookup's answer, as a client sends it back."""
    assert answer.fields[3] == CONNECT
    return answer.text(1).removeprefix("pulsar://")


def figure(gateway: Gateway | None, name: str, **labels: str) -> float:
    assert gateway is not None
    return total(scrape(gateway.metrics_url), name, **labels)


def healthy(gateway: Gateway | None) -> float:
    """Return the number of brokers that the gateway knows to be healthy. Connections alternate
    between these."""
    return figure(gateway, "gateway_broker_healthy", cluster=CLUSTER)


def lookups(gateway: Gateway | None, outcome: str) -> float:
    return figure(gateway, "gateway_lookups_total", cluster=CLUSTER, outcome=outcome)


def redirects(gateway: Gateway | None) -> float:
    return figure(gateway, "gateway_lookup_redirects_total", cluster=CLUSTER)


def ended(gateway: Gateway | None, reason: str) -> float:
    return figure(gateway, "gateway_connections_ended_total", reason=reason)


def assert_refused(url: str, token: str, what: str = "", **others: str) -> None:
    """Assert that a client with this token (and `others`, as of `Connection.connect`) is told that
    the token is false, and is closed."""
    with Connection(url) as connection:
        answer = connection.connect(token, **others)
        assert answer is not None, f"{what}: closed without an ERROR"
        assert (answer.kind, answer.fields.get(2)) == (Kind.ERROR, ServerError.AUTHENTICATION), what
        assert connection.receive() is None, f"{what}: still open"
