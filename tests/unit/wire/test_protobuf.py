"""Where protobuf has no wheel (musl, free-threaded CPython), pip installs its version in Python,
which raises another error for a text that is not UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
from google.protobuf.internal import api_implementation
from gateway.errors import PeerError
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import decode, encode
from gateway.wire.tubemq.envelopes import parsed
from gateway.wire.tubemq.methods import METHODS, SEND_MESSAGE

assert api_implementation.Type() == "python"
connect = BaseCommand(type=BaseCommand.CONNECT)
connect.connect.client_version = "version"
refused = 0
for read in (
    lambda: decode(encode(connect).replace(b"version", b"ver\\xffion")),
    lambda: parsed(METHODS[SEND_MESSAGE].request(), b"\\x0a\\x01\\xff"),
):
    try:
        read()
    except PeerError:
        refused += 1
print(refused)
"""


@pytest.mark.tier("test")
def test_a_text_that_is_not_utf_8_is_refused_with_protobuf_in_python_too() -> None:
    env = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")
