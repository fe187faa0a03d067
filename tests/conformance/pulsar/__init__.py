"""Pulsar's samples: what peers write, what they could write, and what only an attacker writes."""

from __future__ import annotations

from functools import partial

from tests.conformance.battery import Spec

from . import to_broker, to_client
from .common import of_later_versions

_PLAIN = tuple(
    spec
    for unknown_pass, mode in ((True, "pass"), (False, "mask"))
    for spec in (
        Spec(
            name=f"pulsar to broker, unknown: {mode}",
            make=partial(to_broker.make, unknown_pass=unknown_pass),
            samples=(
                *(to_broker.SAMPLES if unknown_pass else ()),
                of_later_versions(pass_=unknown_pass),
            ),
            lies=to_broker.LIES if unknown_pass else (),
            limits=unknown_pass,
            carry_bound=to_broker.CARRY_BOUND,
        ),
        Spec(
            name=f"pulsar to client, unknown: {mode}",
            make=partial(to_client.make, unknown_pass=unknown_pass),
            samples=(
                *(to_client.SAMPLES if unknown_pass else ()),
                of_later_versions(pass_=unknown_pass),
            ),
            lies=to_client.LIES if unknown_pass else (),
            limits=False,
            carry_bound=to_client.CARRY_BOUND,
            reads=True,
        ),
    )
)

SPECS = (
    *_PLAIN,
    Spec(
        name="pulsar to client, checksums: verify",
        make=partial(to_client.make, unknown_pass=True, verify=True),
        samples=to_client.SAMPLES,
        lies=to_client.LIES,
        limits=False,
        carry_bound=to_client.CARRY_BOUND,
        reads=True,
    ),
)
