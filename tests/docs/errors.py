"""`python -m tests.docs.errors`: writes docs/errors.md from the remedies below.

A remedy stands here only where it says more than its message. Tests hold each of them to a message
of the code, and the page to this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"

EXAMPLE = (
    "gateway.yaml:3: listeners[0].bind: has no port; host:port, [IPv6 address]:port in quotes, "
    "or :port for all addresses"
)
"""A message that shows the form of all."""

HEAD = f"""\
<!-- generated: make metrics, from tests/docs/errors.py -->
# Errors and their remedies

All mistakes of a file are reported at once, each on a line of its own: file, line, place, what is
wrong; what would be right:

```text
{EXAMPLE}
```

- `(the value comes from NAME)` names an environment variable: look there, not in the file.
- Files of keys, certificates and passwords are read once the configuration itself is right; the
  first mistake in them is reported, with the name of the file.
- Messages are on standard error. `gateway run`, `check`, `init` and `rules` then exit with 2, and
  nothing was served. A job of the pipeline that fails after its start exits with 1, and readers of
  the tables see nothing of it.
- Whether brokers, names, credentials and ports work, only [`gateway doctor`](doctor.md) can tell.

Below are messages whose cause or remedy takes more words, by how they begin after the place; `…`
stands for what differs. All others say themselves what is right;
[every setting](configuration.md#every-setting) has its values and bounds.
"""


class Remedy(NamedTuple):
    """What to do about a message that begins so. `message`: `…` stands for any text."""

    message: str
    text: str

    def is_for(self, message: str) -> bool:
        """Return whether a message, without its place, begins so."""
        parts = (re.escape(part) for part in self.message.split("…"))
        return re.match(".+?".join(parts), message, re.DOTALL) is not None


class Section(NamedTuple):
    """A section of the page. `note`: stands before the table."""

    title: str
    remedies: tuple[Remedy, ...]
    note: str = ""


FILE = (
    Remedy(
        "gateway.yaml: holds characters that YAML does not allow",
        "`cat -v gateway.yaml` shows them as `^A`; they often come from copying.",
    ),
    Remedy(
        "gateway.yaml: cannot be checked",
        "A child process reads the file. It was killed, mostly because memory was short, or "
        "standard error says above what failed.",
    ),
    Remedy(
        "gateway.yaml: hides rules or workers by escapes",
        r'A key is written like `"work\x65rs"`.',
    ),
    Remedy(
        "is not YAML: …",
        "Look in this line and those above for a tab, a value that begins with `[` or `*`, an open "
        "bracket, or `${NAME}` without quotes inside `[ ]` or `{ }`.",
    ),
    Remedy(
        "is not a text; keys are texts",
        "YAML reads the key as a number, a date or the like: quote it.",
    ),
    Remedy(
        "uses the environment variable …, which is not set",
        "Set it where the gateway starts: `env` of the container, `Environment=` of the systemd "
        "unit.",
    ),
    Remedy(
        "has a ${ that is not a variable",
        "A brace is not closed, the name has other characters than letters, digits and `_`, or the "
        "default holds another variable. `$${` is a dollar and a brace.",
    ),
)

VALUES = (
    Remedy(
        "is not in a folder that exists",
        "The gateway makes the audit file, but not its folder.",
    ),
    Remedy(
        "is no folder, nor in one",
        "The gateway makes the folder of usage records, but not the folder around it.",
    ),
    Remedy(
        "is no whole name of a topic that is kept",
        "Records go to a persistent topic, named without the number of a partition.",
    ),
    Remedy(
        "is in the tenant of the brokers' own topics",
        "Brokers keep their own state in the tenant `pulsar`.",
    ),
    Remedy(
        "is not a URL of HTTP",
        "Collectors take OTLP over HTTP on port 4318 as a rule; the gateway does not send it over "
        "gRPC (4317).",
    ),
    Remedy(
        "is not secured by TLS",
        "Only a server on this machine may have `http`: others could answer in its place.",
    ),
    Remedy(
        "contains a user or password; https://host/path",
        "URLs show in logs. For tokens the gateway sends `client_id` and `client_secret_file`.",
    ),
    Remedy(
        "leave too little memory for the rest; lower",
        "Or leave `collected`, `handshakes` and `held` out: their defaults divide `buffered`.",
    ),
    Remedy(
        "has options, which are not supported",
        "Delete what follows `?` or `#`; [settings of the store](configuration.md#store) replace "
        "some options.",
    ),
    Remedy(
        "is missing; a user needs a password",
        "Or delete `username`, where the store does not authenticate.",
    ),
)

LISTENERS_AND_CLUSTERS = (
    Remedy(
        "is missing; clients of kafka connect to each broker",
        "[`advertise`](protocols/kafka.md#addresses) gives each broker an address that leads to "
        "the gateway.",
    ),
    Remedy(
        "has a range that cannot be",
        "Each id takes a port; for more than 1000 brokers use `names`.",
    ),
    Remedy("has more ids than ports", "The port of the last id would be above 65535."),
    Remedy(
        "moves clients to gateways that cannot open this one's names",
        "`connection_age` is for gateways behind one address, which share "
        "[seal keys](configuration.md#names-and-seal-keys). For a single gateway delete it.",
    ),
    Remedy(
        "lets nobody do anything",
        "`access: closed` and `shadow` need rules that say "
        "[who may do what](rules.md#who-may-do-what).",
    ),
    Remedy(
        "lets commands pass that are not known",
        "A later version's command could name a topic on which the client has no right.",
    ),
    Remedy(
        "has a scheme that is not known; pulsar://",
        "`http://` is Pulsar's admin service: name `brokerServicePort`, usually 6650.",
    ),
    Remedy(
        "has the same broker twice",
        "A URL without a port has the protocol's own: `pulsar://a` is `pulsar://a:6650`.",
    ),
    Remedy(
        "has no effect: gateways for kafka are reached as brokers are",
        "List the gateway behind this one in `brokers`, and its ports in `targets`.",
    ),
    Remedy(
        "has no effect: no listener of the cluster verifies clients",
        "In `pass-through` the gateway knows no principals. Set another mode, or delete "
        "`principal`.",
    ),
)

TLS = (
    Remedy(
        "has no effect: no broker's URL says TLS",
        "Name the brokers' port with TLS too, usually 6651, of Kafka 9093.",
    ),
    Remedy(
        "… holds no certificate in PEM form",
        "The file is another one, perhaps the key, or in DER form: "
        "`openssl x509 -inform der -in FILE -out FILE.pem`.",
    ),
    Remedy(
        "The key file … holds no private key in PEM form",
        "The file is another one, perhaps the certificate, or in DER form: "
        "`openssl pkey -inform der -in FILE -out FILE.pem`.",
    ),
    Remedy(
        "The file of revoked certificates … holds no list in PEM form",
        "Perhaps it is in DER form: `openssl crl -inform der -in FILE -out FILE.pem`.",
    ),
    Remedy(
        "OpenSSL cannot use the certificate in … with the key in …",
        "A file is cut short, or TLS cannot use a key of this kind.",
    ),
    Remedy(
        "The names in the certificate file … cannot be read",
        "The certificate breaks the standard, for example by a name that is not ASCII.",
    ),
)

IDENTITY = (
    Remedy(
        "would let anybody be one of them, with anonymous",
        "A client without a credential must not count as a trusted proxy: give proxies a listener "
        "of their own.",
    ),
    Remedy(
        "is missing; verifying needs a key",
        "Or verify clients in another way, such as `tls` or `basic`, or set `mode: pass-through`.",
    ),
    Remedy(
        "is not offered to clients without TLS",
        "By PLAIN everybody on the way could read the password; "
        "[SCRAM](configuration.md#passwords-that-are-not-shown) does not show it.",
    ),
    Remedy(
        "is the same as of …; tokens must tell their issuers apart",
        "Two of `issuers` have the same `issuer`, or both none. Write what their tokens have as "
        "`iss`.",
    ),
    Remedy(
        "cannot be discovered: …",
        "`discovery` takes the keys from below the URL in `issuer`, which is also what tokens have "
        "as `iss`.",
    ),
    Remedy(
        "has no effect: each of issuers has its own",
        "Write the setting below each of `issuers`; beside them it is for a key beside them.",
    ),
    Remedy(
        "names the group …, which match does not have",
        "Put the part of the name that is meant in brackets in `match`.",
    ),
    Remedy(
        "does not fit the kind of key",
        "`HS…` goes with a secret, all others with a public key.",
    ),
    Remedy(
        "A token key (…) fits none of the algorithms",
        "An elliptic curve needs `ES…`, RSA `RS…` or `PS…`, Ed25519 `EdDSA`; a secret must be as "
        "long as the hash, for `HS384` 48 bytes, for `HS512` 64.",
    ),
)

KEYS = (
    Remedy(
        "The token secret file … holds … bytes",
        "Tokens signed with the short secret must be made again too.",
    ),
    Remedy("… begins with data:;base64,", "`base64 -w0 KEY` writes a key on one line."),
    Remedy(
        "The token public key file … holds a private key",
        "That key can make tokens: remove it from the gateway's machine.",
    ),
    Remedy(
        "The key set file … holds no JSON Web Key Set",
        'An issuer publishes `{"keys": [...]}`; a single key needs this frame. A key in PEM form '
        "is a `public_key_file`.",
    ),
    Remedy(
        "The key set file … holds no key that verifies signatures",
        "Usable keys are RSA of at least 2048 bits, P-256, P-384, P-521 and Ed25519; secrets and "
        "keys marked for encryption are skipped.",
    ),
    Remedy(
        "The credentials file …",
        "A line is `name:mechanism:iterations:salt:stored key:server key`; "
        "[a command makes it](configuration.md#passwords-that-are-not-shown).",
    ),
    Remedy(
        "The passwords file … for the connection to the brokers",
        'A principal is written as `alice: {username: alice-at-kafka, password: "of alice"}`.',
    ),
    Remedy(
        "The key file … for sealed broker names",
        "All gateways behind one address need the same key.",
    ),
    Remedy(
        "The console's token file …",
        r"`head -c 24 /dev/urandom \| base64 > console.token` makes one.",
    ),
    Remedy(
        "The pseudonym key file …",
        "`head -c 32 /dev/urandom > pseudonym.key` makes one. With a short key names could be "
        "guessed.",
    ),
)

START = (
    Remedy(
        "cannot listen on …: address already in use",
        "`ss -ltnp` names the program, often another gateway or a broker.",
    ),
    Remedy(
        "cannot listen on …: permission denied",
        "Ports below 1024 need a capability: `AmbientCapabilities=CAP_NET_BIND_SERVICE` in "
        "systemd, `NET_BIND_SERVICE` in a container.",
    ),
    Remedy(
        "cannot …: too many open files",
        "Allow two for each of `limits.connections`, and 1,000 more: `LimitNOFILE=` in systemd.",
    ),
)

RULES = (
    Remedy(
        "rules: has no files of rules in it",
        "Of a folder only `*.yaml` and `*.yml` are read, without its subfolders.",
    ),
    Remedy("is not a rate of bytes", "Bytes need their unit: `100B/s`."),
    Remedy(
        "cannot limit … by …, which is not known then",
        "A connection has no topic yet, and only consumers have a subscription.",
    ),
    Remedy(
        "is not a moment",
        "A time has `Z` or its offset: `2026-12-24T18:00:00+02:00`.",
    ),
    Remedy(
        "names a topic as no client may name one",
        "A part is missing, or a slash too many. A pattern has `*`.",
    ),
)

PIPELINE = (
    Remedy(
        "…: there is no such folder, or no right to see it",
        "Name the folder in which gateways have `usage` and `events`, not one of these two. The "
        "user must have the right to enter all folders above it.",
    ),
    Remedy(
        "…://…: cannot be read: …",
        "`ConsumerBusy`: another run uses the subscription. `AuthorizationError`: the token's role "
        "needs the right to consume.",
    ),
    Remedy(
        "Spark has run out of memory",
        "Give `--memory` twice as much, up to three quarters of the machine's.",
    ),
    Remedy(
        "Spark's process was killed",
        "`dmesg`, or the state of the container, says whether memory was short. `--memory` bounds "
        "Java's heap; the process takes half a gigabyte more.",
    ),
    Remedy(
        "…: has vanished while it was read",
        "Perhaps a gateway removed it, because `usage.disk` is too small.",
    ),
    Remedy(
        "Spark has no …, which this URL needs",
        "For `s3a://` see [where jobs run](pipeline.md#where-jobs-run).",
    ),
    Remedy(
        "another run watches these tables",
        "Start runs of `neighbours --watch` by `flock`.",
    ),
    Remedy(
        "--month …: its days before … are gone",
        "`retain` with `--even-unbilled` removed sums of a month that was not closed; the rest is "
        "no bill. Ingest the records into new tables, if they are still there.",
    ),
)

SECTIONS = (
    Section("The file", FILE),
    Section("Values", VALUES),
    Section("Listeners and clusters", LISTENERS_AND_CLUSTERS),
    Section("TLS", TLS),
    Section("Identity", IDENTITY),
    Section("Files of keys and passwords", KEYS),
    Section("Start", START),
    Section("Rules", RULES, "Other mistakes of a [rule file](rules.md) read as those above."),
    Section("The pipeline", PIPELINE),
)


def written() -> str:
    """Return the page of now."""
    return HEAD + "".join(f"{line}\n" for section in SECTIONS for line in _lines(section))


def _lines(section: Section) -> Iterator[str]:
    yield from ("", f"## {section.title}", "")
    if section.note:
        yield from (section.note, "")
    yield from ("| Message | What to do |", "|---|---|")
    yield from (f"| `{it.message}` | {it.text} |" for it in section.remedies)


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
    print("written: docs/errors.md")
