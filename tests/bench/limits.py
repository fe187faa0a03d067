"""Proxies that know no protocol, set as well as they can be: what any proxy could reach.

HAProxy with larger buffers and splicing, two relays in C that count nothing, nginx, and a relay of
trio, which says what the gateway could reach.
"""

import shlex
import subprocess
import sys
from pathlib import Path

from tests.bench.load import compiled
from tests.bench.proxies import HOST, RELAYED, Recipe, Shown, Tuning, haproxy, installed
from tests.bench.rounds import say
from tests.bench.rows import Door
from tests.real.brokers.jars import MissingToolError
from tests.real.brokers.ports import free_ports

SOURCE = Path(__file__).with_name("relay.c")

BUFFER = 512 << 10
"""Bytes; as much as the gateway reads at a time."""

PIPE = 1 << 20
"""Bytes; the most that Linux gives to everybody (`fs.pipe-max-size`)."""

PIPES = 64
"""Of HAProxy, which would have one for every fourth connection, and count their descriptors at its
start: no row has more than 32 connections, and each two directions."""

TUNED = Tuning(
    process=(f"tune.bufsize {BUFFER}", f"tune.pipesize {PIPE}", f"maxpipes {PIPES}"),
    proxies=("option splice-auto",),
)


def recipes(folder: Path, build: Path, broker: str, connections: int, shown: Shown) -> list[Recipe]:
    """Return the recipes. With certificates to be shown, HAProxy and trio: the others have no TLS
    here. `build`: where compiled programs are kept. Raises MissingToolError, BenchError."""
    tuned = haproxy(folder, broker, connections, shown, "HAProxy, tuned", TUNED)
    bare = trio(folder, broker, shown)
    if shown:
        return [tuned, bare]
    return [tuned, *relays(folder, build, broker), *_nginx(folder, broker, connections), bare]


def trio(folder: Path, broker: str, shown: Shown) -> Recipe:
    """Return the recipe of bare.py."""
    port, secured = free_ports(HOST, 2)
    command = [sys.executable, "-m", "tests.bench.bare", str(port), broker]
    doors = {Door.ECDSA: secured} if Door.ECDSA in shown else {}
    if doors:
        command += [str(secured), str(shown[Door.ECDSA])]
    return Recipe(
        "trio, reading nothing",
        tuple(command),
        port,
        folder / "trio.log",
        serves=RELAYED,
        doors=doors,
        environment={"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )


def relays(folder: Path, build: Path, broker: str) -> list[Recipe]:
    """Return two recipes of relay.c. Raises MissingToolError, BenchError."""
    binary = compiled(SOURCE, build / "relay", "-Wextra")
    return [
        Recipe(
            f"relay, {name}",
            (str(binary), str(port), broker, how),
            port,
            folder / f"relay-{how}.log",
            serves=RELAYED,
        )
        for name, how, port in zip(
            ("copying", "splicing"), ("copy", "splice"), free_ports(HOST, 2), strict=True
        )
    ]


def _nginx(folder: Path, broker: str, connections: int) -> list[Recipe]:
    try:
        return [nginx(folder, broker, connections)]
    except MissingToolError as missing:
        say(f"without nginx: {missing}")
        return []


# One process does all, so that its CPU time and memory are nginx's.
_NGINX = """\
{module}
daemon off;
master_process off;
pid "{folder}/nginx.pid";
error_log stderr;
events {{ worker_connections {sockets}; }}
stream {{
    proxy_connect_timeout 5s;
    proxy_timeout 10m;
    server {{
        listen {bind} backlog=4096;
        proxy_pass {broker};
        proxy_buffer_size {buffer};
    }}
}}
"""


def nginx(folder: Path, broker: str, connections: int) -> Recipe:
    """Return the recipe of nginx's stream module: one worker. Raises MissingToolError."""
    program = installed("nginx")
    if program is None:
        raise MissingToolError("nginx", "is not installed (Debian's packages: nginx-core, nginx)")
    (port,) = free_ports(HOST, 1)
    file = folder / "nginx.conf"
    file.write_text(
        _NGINX.format(
            module=_module(program),
            folder=folder,
            sockets=2 * connections + 16,  # both ends of each, and its own
            bind=f"{HOST}:{port}",
            broker=broker,
            buffer=BUFFER,
        )
    )
    # Its own log would be where only root may write, until the configuration is read.
    command = (program, "-e", "stderr", "-p", str(folder), "-c", str(file))
    return Recipe("nginx", command, port, folder / "nginx.log", serves=RELAYED)


def _module(program: str) -> str:
    """Return the line that loads the stream module: none where it is built in. Raises
    MissingToolError."""
    said = subprocess.run(
        [program, "-V"], check=True, capture_output=True, text=True, timeout=10
    ).stderr
    arguments = shlex.split(said.partition("configure arguments:")[2])
    options = {name: value for name, _, value in (it.partition("=") for it in arguments)}
    if options.get("--with-stream") == "":
        return ""
    module = Path(options.get("--modules-path", "")) / "ngx_stream_module.so"
    if "--with-stream" not in options or not module.exists():
        why = "is not installed (Debian's package is libnginx-mod-stream)"
        raise MissingToolError("nginx's stream module", why)
    return f'load_module "{module}";'
