"""Checks the HTTP services that the gateway depends on: issuers of keys and tokens, and the policy
agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from gateway.assembly import make_agent, make_oauth
from gateway.config import model
from gateway.doctor.finding import Finding, fail, ok
from gateway.doctor.reach import run_all
from gateway.errors import ConfigurationError
from gateway.identity.keysets import read_key_set
from gateway.verifiers import explained
from gateway.verifiers.tokens import keys_of
from gateway.wire.account import Right
from gateway.wire.contract import Credential
from gateway.wire.services import Undecided
from gateway.wire.subject import Caller, Subject

NAME = "gateway-doctor"
"""The principal in the question to the policy agent."""

_KEYS = (
    "See that the URL is right, that this machine reaches it, and that its certificate is signed "
    "by an authority of ca_file. While it does not answer, the keys that are known stay in use, "
    "and a gateway that starts accepts no token of this issuer."
)
_TOKEN = (
    "See that the URL, client_id and the secret are those that the issuer registered. Without a "
    "token the gateway is not ready, and refuses clients."
)
_AGENT = (
    "See that it is up, and that url names a rule whose result is true or false, or an object with "
    "allow. While it does not answer, while_away holds."
)


class Given(NamedTuple):
    """A token that an issuer has just given to the gateway. `lifetime`: how many seconds it is
    valid."""

    credential: Credential
    lifetime: float

    def current(self) -> Credential:
        """Return the token as a credential; see `StoredCredential`."""
        return self.credential


Check = Callable[[], Awaitable[Finding]]


def has_any(configuration: model.Configuration) -> bool:
    """Return whether the configuration names an issuer to which requests are sent, or a policy
    agent."""
    return next(_checks(configuration), None) is not None


async def examine(configuration: model.Configuration) -> list[Finding]:
    """Send one request to each issuer and to the policy agent, all concurrently; return the
    findings about them."""
    return await run_all(list(_checks(configuration)))


def _checks(configuration: model.Configuration) -> Iterator[Check]:
    seen = set()
    for listener in configuration.listeners:
        token = listener.identity.token
        for issuer in () if token is None else token.all_issuers():
            source = (issuer.jwks_url, issuer.discovery and issuer.issuer, issuer.ca_file)
            if any(source[:2]) and source not in seen:
                seen.add(source)
                yield partial(_examine_keys, issuer)
    for name, cluster in configuration.clusters.items():
        if cluster.credential is not None and cluster.credential.oauth2 is not None:
            yield partial(_examine_token, name, cluster.credential.oauth2)
    if configuration.opa is not None:
        yield partial(_examine_agent, configuration.opa)


async def _examine_keys(issuer: model.Issuer) -> Finding:
    check = f"keys of {issuer.jwks_url or issuer.issuer}"
    try:
        _, fetch = keys_of(issuer)
        keys = read_key_set(await fetch(), "the answer")
    except ModuleNotFoundError as missing:
        return fail(check, str(explained(missing)), _KEYS)
    except (OSError, ConfigurationError) as error:
        return fail(check, str(error), _KEYS)
    ids = ", ".join(sorted(id or "without an id" for id, _ in keys))
    return ok(check, f"{len(keys)} usable: {ids}")


async def own_token(settings: model.OAuth2) -> Given:
    """Fetch the gateway's own token from its issuer. Raises `OSError`, `ValueError`,
    `ConfigurationError`."""
    own = make_oauth(settings, _unheard)
    lifetime = await own.renew()
    credential = own.current()
    assert isinstance(credential, Credential), "it was given just now"
    return Given(credential, lifetime)


async def _examine_token(cluster: str, settings: model.OAuth2) -> Finding:
    check = f"own token for {cluster}"
    try:
        given = await own_token(settings)
    except (OSError, ValueError, ConfigurationError) as error:
        return fail(check, str(error), _TOKEN)
    return ok(check, f"given, for {given.lifetime:.0f} s")


async def _examine_agent(settings: model.PolicyAgent) -> Finding:
    check, heard = f"policy agent {settings.url}", dict[str, Any]()
    try:
        agent = make_agent(settings, lambda _event, **values: heard.update(values))
    except ConfigurationError as error:
        return fail(check, str(error), _AGENT)
    nobody = Subject(Caller(principal=NAME))
    question = agent.judge(Right.ADMINISTER, nobody)
    assert isinstance(question, Undecided), "nothing was asked before"
    await question.ask()
    await agent.close()
    if heard:
        return fail(check, str(heard["error"]), _AGENT)
    verb = "may" if agent.judge(Right.ADMINISTER, nobody) else "may not"
    return ok(check, f"answers: {NAME} {verb} administer")


def _unheard(*_: object, **__: object) -> None:
    """Log nothing: what fails is a finding."""
