"""Settings of a broker that wants to know who its clients are, by each mechanism of SASL, and of
clients and gateways that do by SCRAM."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path

from gateway.wire.scram import scram_keys

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
PREFIX = "listener.name.plaintext"
MODULES = "org.apache.kafka.common.security"
SASL = f"""\
listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.enabled.mechanisms={",".join(MECHANISMS)}
{PREFIX}.plain.sasl.jaas.config={MODULES}.plain.PlainLoginModule required \\
  username="alice" password="se:cret" user_alice="se:cret";
{PREFIX}.scram-sha-256.sasl.jaas.config={MODULES}.scram.ScramLoginModule required;
{PREFIX}.scram-sha-512.sasl.jaas.config={MODULES}.scram.ScramLoginModule required;
{PREFIX}.oauthbearer.sasl.jaas.config={MODULES}.oauthbearer.OAuthBearerLoginModule required \\
  unsecuredLoginStringClaim_sub="broker";
"""
USERS = [f"{it}=[name=alice,password=se:cret]" for it in ("SCRAM-SHA-256", "SCRAM-SHA-512")]

SALT = b"salt of a test"
ITERATIONS = 4096


def users_file(folder: Path, passwords: Mapping[str, str], mechanisms: Iterable[str]) -> Path:
    """Write the file by which a gateway knows users. `passwords`: by their names."""
    path = folder / "users"
    pairs = ((user, mechanism) for user in passwords for mechanism in mechanisms)
    path.write_text("".join(_line(*it, passwords[it[0]]) + "\n" for it in pairs))
    return path


def _line(user: str, mechanism: str, password: str) -> str:
    keys = scram_keys(mechanism, password.encode(), SALT, ITERATIONS)
    encoded = (b64encode(it).decode() for it in (SALT, keys.stored, keys.server))
    return ":".join((user, mechanism, str(ITERATIONS), *encoded))


def shown_by(user: str, password: str, mechanism: str) -> dict[str, str]:
    """Return settings of a client of librdkafka that says who it is, without TLS."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }
