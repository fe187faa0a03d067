"""Failing starts by command line, files and addresses, and the line that is printed."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest
import trio

from gateway import handing
from gateway.__main__ import main
from gateway.listening import binding
from gateway.system import manager
from tests.unit.errors.case import config

Fail = Callable[[pytest.MonkeyPatch], str]
"""Starts the command in an empty folder, and returns the last line that it printed."""


class Start(NamedTuple):
    """A start that fails, and the line that is printed. `forks`: needs a child that checks the
    file; all others check it themselves, as where the system has no room for another process."""

    name: str
    fail: Fail
    message: str
    forks: bool = False


def said(*arguments: str) -> str:
    """Return the last line on standard error of a command that must fail with status 2."""
    with redirect_stderr(StringIO()) as stderr:
        try:
            status: object = main(arguments)
        except SystemExit as ended:
            status = ended.code
    assert status == 2
    return stderr.getvalue().splitlines()[-1]


def command(*arguments: str) -> Fail:
    return lambda _: said(*arguments)


def run(text: str) -> str:
    Path("gateway.yaml").write_text(text)
    return said("run", "gateway.yaml")


# -- addresses -----------------------------------------------------------------------------------


def refused(error: OSError) -> Fail:
    """Return a start with a socket error; some occur only on some machines, or never as root."""

    def refuse(_: object) -> NoReturn:
        raise error

    def fail(monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setattr(binding, "_listen_at", refuse)
        return run(config(bind="gateway.example:443"))

    return fail


def taken(text: Callable[[str], str]) -> Fail:
    """Listen on an address that is in use; the port is reported as 6650."""

    def fail(_: pytest.MonkeyPatch) -> str:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = str(other.getsockname()[1])
            return run(text(port)).replace(port, "6650")

    return fail


def no_event_loop(monkeypatch: pytest.MonkeyPatch) -> str:
    """Run with the lowest limit under which Python itself can start."""

    def refuse(*_: object) -> NoReturn:
        raise ExceptionGroup("nurseries", [kernel(errno.EMFILE)])

    monkeypatch.setattr(trio, "run", refuse)
    return run(config())


def passed(name: str) -> Fail:
    """Start as a service manager does that passes a socket of this name, which is none."""

    def fail(monkeypatch: pytest.MonkeyPatch) -> str:
        given = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": name}
        for key, value in given.items():
            monkeypatch.setenv(key, value)
        with Path("file").open("w") as file:
            monkeypatch.setattr(manager.Manager.sockets, "__defaults__", (file.fileno(),))
            return run(config())

    return fail


def failing_child(monkeypatch: pytest.MonkeyPatch) -> str:
    """Start where the process that checks the file is killed."""

    def killed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(handing, "load_here", killed)
    return run(config())


def kernel(number: int) -> OSError:
    return OSError(number, os.strerror(number))


# -- files ---------------------------------------------------------------------------------------


def there_already(_: pytest.MonkeyPatch) -> str:
    Path("gateway.yaml").touch()
    return said("init", "edge", "gateway.yaml")


def not_writable(_: pytest.MonkeyPatch) -> str:
    Path("secrets").touch()
    return said("init", "edge", "gateway.yaml")


def unreadable(_: pytest.MonkeyPatch) -> str:
    Path("gateway.yaml").mkdir()
    return said("check", "gateway.yaml")


def no_rules(_: pytest.MonkeyPatch) -> str:
    Path("rules").mkdir()
    return said("rules", "check")


def none_named(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("GATEWAY_CONFIG", raising=False)
    return said("run")


def cut(fail: Fail) -> Fail:
    """Cut the list of choices: whether Python quotes them depends on its version."""
    return lambda monkeypatch: fail(monkeypatch).partition(" (choose from ")[0]


STARTS = [
    Start(
        "the process that checks the file fails",
        failing_child,
        "gateway.yaml: cannot be checked; the process that does so has failed",
        forks=True,
    ),
    Start(
        "a socket that is no listener's",
        passed("gateway.socket"),
        "the service manager passes a socket named 'gateway.socket', which is no listener; "
        "FileDescriptorName= of its unit is one of: clients",
    ),
    Start(
        "a socket that does not listen",
        passed("clients"),
        "the socket named 'clients' that the service manager passes does not listen on TCP; "
        "ListenStream= of its unit is a port or an address, with Accept=no",
    ),
    Start(
        "no command after rules",
        command("rules"),
        "gateway rules: error: the following arguments are required: RULES_COMMAND",
    ),
    Start(
        "a missing folder of rules",
        command("rules", "check"),
        "rules: cannot be read: no such file or directory; name a file of rules, or a folder of "
        "such files",
    ),
    Start(
        "a folder without rules",
        no_rules,
        "rules: has no files of rules in it; at least one *.yaml",
    ),
    Start(
        "an invalid topic",
        command("rules", "explain", "--action", "produce", "--topic", "a/b"),
        "gateway rules explain: error: argument --topic: is not a topic of pulsar; orders, or the "
        "whole name",
    ),
    Start(
        "an unknown protocol of a client",
        command("rules", "explain", "--action", "produce", "--protocol", "http"),
        "gateway rules explain: error: argument --protocol: is not a protocol; pulsar or kafka or "
        "tubemq",
    ),
    Start(
        "a client that is not an address",
        command("rules", "explain", "--action", "connect", "--client", "a.example"),
        "gateway rules explain: error: argument --client: is not an address; 10.1.2.3 or "
        "2001:db8::1",
    ),
    Start(
        "no command",
        command(),
        "gateway: error: the following arguments are required: COMMAND",
    ),
    Start(
        "an unknown command",
        cut(command("frobnicate")),
        "gateway: error: argument COMMAND: invalid choice: 'frobnicate'",
    ),
    Start(
        "an unknown use of init",
        cut(command("init", "router")),
        "gateway init: error: argument use: invalid choice: 'router'",
    ),
    Start(
        "an option of another command",
        command("check", "--trace"),
        "gateway: error: unrecognized arguments: --trace",
    ),
    Start(
        "no file",
        none_named,
        "gateway.yaml: cannot be read: no such file or directory; "
        "name another file, or write one with: gateway init",
    ),
    Start(
        "a folder as a file",
        unreadable,
        "gateway.yaml: cannot be read: is a directory; "
        "name another file, or write one with: gateway init",
    ),
    Start(
        "an existing file for init",
        there_already,
        "gateway.yaml: already exists; choose another name, or move it away first",
    ),
    Start(
        "a missing folder for init",
        command("init", "edge", "etc/gateway.yaml"),
        "etc/gateway.yaml: its folder does not exist; create it first: mkdir -p etc",
    ),
    Start(
        "a read-only folder for init",
        not_writable,
        "secrets: cannot be written: file exists; choose another folder, or let this user "
        "write there",
    ),
    Start(
        "a port in use",
        taken(lambda port: config(bind=f"127.0.0.1:{port}")),
        "cannot listen on 127.0.0.1:6650: address already in use; "
        "another bind, or ask why: gateway doctor",
    ),
    Start(
        "an admin port in use",
        taken(lambda port: config(rest=f"admin: {{bind: '127.0.0.1:{port}'}}")),
        "cannot listen on 127.0.0.1:6650: address already in use; "
        "another bind, or ask why: gateway doctor",
    ),
    Start(
        "a privileged port",
        refused(kernel(errno.EACCES)),
        "cannot listen on gateway.example:443: permission denied; "
        "another bind, or ask why: gateway doctor",
    ),
    Start(
        "an address that this machine lacks",
        refused(kernel(errno.EADDRNOTAVAIL)),
        "cannot listen on gateway.example:443: cannot assign requested address; "
        "another bind, or ask why: gateway doctor",
    ),
    Start(
        "an unknown host name",
        refused(socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
        "cannot listen on gateway.example:443: name or service not known; "
        "another bind, or ask why: gateway doctor",
    ),
    Start(
        "too few file descriptors",
        refused(kernel(errno.EMFILE)),
        "cannot listen on gateway.example:443: too many open files; "
        "another bind, or ask why: gateway doctor",
    ),
    Start(
        "no file descriptor for the event loop",
        no_event_loop,
        "cannot start: too many open files; raise the limit, for example: ulimit -n 21000",
    ),
]
