"""`python -m tests.support.plain`: what a process without models says of settings. It reads a
list of them from standard input."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING

from gateway.config import face

if TYPE_CHECKING:
    from gateway.config.model import Configuration


def said_of(configuration: Configuration) -> str:
    """Return all settings as text, and what their methods say."""
    from gateway.config.show import shown

    lines = [shown(configuration)]
    for listener in configuration.listeners:
        methods = listener.identity.methods()
        lines.append(f"{listener.binds} {[(name, it.verified_by) for name, it in methods.items()]}")
        if listener.identity.token is not None:
            lines.append(str([it.algorithms for it in listener.identity.token.all_issuers()]))
    for name, cluster in configuration.clusters.items():
        has = cluster.has_tls, cluster.header_is_inside_tls
        lines.append(f"{configuration.protocol_of(name)} {has}")
    limits = configuration.limits
    lines.append(f"{limits.all_collected} {limits.all_held} {limits.deciding}")
    return "\n".join(lines)


if __name__ == "__main__":
    face.checks = False
    for configuration in pickle.load(sys.stdin.buffer):
        print(said_of(configuration))
    assert "pydantic" not in sys.modules
