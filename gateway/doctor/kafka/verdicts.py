"""Makes findings and advice from the responses of Kafka brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from gateway import protocols
from gateway.doctor.endpoints import in_ranges
from gateway.doctor.finding import Finding, Status, fail, ok, skip, warn
from gateway.doctor.kafka.hello import SPOKEN, Broker, Login, Versions, known_api
from gateway.doctor.reach import Unreached, judge_unreached
from gateway.doctor.strangers import Stranger
from gateway.wire.address import Address
from gateway.wire.kafka.addresses import FETCH, METADATA, PRODUCE
from gateway.wire.kafka.authenticating import Rejected
from gateway.wire.kafka.plugin import PLUGIN

SHOWN = (PRODUCE, FETCH, METADATA)
"""APIs whose newest versions show roughly how old a broker is. No response names its release."""


def judge_broker(
    check: str, broker: Address, answer: Broker | Stranger | Unreached, seconds: float
) -> Finding:
    """Return the finding about one address of a broker: whether the response from there (`answer`)
    is that of a Kafka broker which the gateway can use. `broker`: the broker as the configuration
    names it. `seconds`: how long it took to connect."""
    if isinstance(answer, Unreached):
        return judge_unreached(check, broker, answer.code)
    if isinstance(answer, Stranger):
        return _judge_stranger(check, broker, answer)
    missing = [known_api(key).name for key in SHOWN if key not in answer.versions]
    if missing:
        return fail(
            check,
            f"speaks {SPOKEN}, and serves no clients: it does not offer {', '.join(missing)}",
            "It may be a controller's port: name the one that brokers have for clients (see "
            "`listeners` in server.properties), usually 9092.",
        )
    apart = [known_api(key).name for key in SHOWN if _is_apart(key, answer.versions[key])]
    newest = ", ".join(f"{known_api(key).name} up to {answer.versions[key].most}" for key in SHOWN)
    if apart:
        return fail(
            check,
            f"has no version of {', '.join(apart)} in common with the gateway: it knows {newest}",
            "Use a newer broker; or a newer gateway, if it is the broker that is newer.",
        )
    return ok(check, f"speaks {SPOKEN}, knows {newest}; connected in {seconds * 1000:.0f} ms")


def _is_apart(key: int, versions: Versions) -> bool:
    own = known_api(key).request
    return versions.most < own.first or versions.least > own.last


def _judge_stranger(check: str, broker: Address, peer: Stranger) -> Finding:
    port, usual = ("port with TLS", 9093) if broker.tls else ("plain port", 9092)
    detail = f"{peer.words(SPOKEN)}: not a broker's {port}"
    match peer:
        case Stranger.TLS:
            remedy = "If it is a listener with SSL or SASL_SSL, name it by its URL with TLS:"
            return fail(check, detail, remedy, _brokers(broker, tls=True))
        case Stranger.PLAIN:
            remedy = (
                "Name a listener with SSL or SASL_SSL, usually 9093; or, if clear text may pass "
                "between gateway and broker:"
            )
            return fail(check, detail, remedy, _brokers(broker, tls=False))
        case _:
            wants = " Or it wants a certificate of the gateway, without a word." * broker.tls
            remedy = (
                f"See that the port is one of the broker's `listeners` in server.properties, "
                f"usually {usual}, and that what lies between (a balancer, a mesh) has a broker "
                f"behind it.{wants}"
            )
            return fail(check, detail, remedy)


def _brokers(broker: Address, *, tls: bool) -> str:
    return f"brokers: {protocols.url_of(PLUGIN.name, [broker._replace(tls=tls)])}"


def judge_login(check: str, logins: Iterable[Login | Rejected | None]) -> list[Finding]:
    """Return the finding about the gateway's credential at the addresses of a broker; none if no
    credential was shown."""
    shown = [login for login in logins if login is not None]
    return [min(map(partial(_judge_login, check), shown), key=_is_ok)] if shown else []


def _judge_login(check: str, login: Login | Rejected) -> Finding:
    if isinstance(login, Login):
        return ok(check, f"accepts the gateway's credential ({login.mechanism})")
    offers = f"; it offers {', '.join(login.offered)}" if login.offered else ""
    return fail(
        check,
        login.denial.text + offers,
        "Every client would be refused. See that the broker has this user with this password, and "
        "that `credential` of the cluster names both. PLAIN needs brokers with TLS, or "
        "`without_tls`.",
    )


def _is_ok(finding: Finding) -> bool:
    return finding.status is Status.OK


def judge_metadata(check: str, metadata: Mapping[int, Address] | Stranger) -> Finding:
    """Return the finding about the brokers that a broker's metadata lists. `metadata`: see
    `Broker`."""
    if metadata is Stranger.CLOSED:
        return skip(
            check,
            "not tried: the broker tells nobody where brokers are who has not shown a credential "
            "(SASL)",
            "Should clients be refused as target_refused: the addresses in advertised.listeners "
            "have to be in `targets`, and each node.id needs an address in `advertise`.",
        )
    if isinstance(metadata, Stranger) or not metadata:
        words = _NO_METADATA[metadata] if isinstance(metadata, Stranger) else "names no broker"
        return warn(
            check,
            f"asked where all brokers are, it {words}",
            "Clients would hear the same; the broker's log has the reason.",
        )
    number = "1 broker" if len(metadata) == 1 else f"{len(metadata)} brokers"
    return ok(check, f"{number}, with the ids {in_ranges(sorted(metadata))}")


_NO_METADATA = {
    Stranger.SILENT: "gives no answer",
    Stranger.STRANGE: "gives an answer that cannot be read",
}
