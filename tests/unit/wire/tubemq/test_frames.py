"""Frames and envelopes, as real clients and servers write them."""

from __future__ import annotations

import struct

import pytest

from gateway.errors import PeerError
from gateway.wire.tubemq.envelopes import (
    failed,
    parsed,
    read_reply,
    read_request,
    succeeded,
    written,
)
from gateway.wire.tubemq.frames import BLOCK, HEAD, MOST_BLOCKS, TOKEN, framed, head, length, whole
from gateway.wire.tubemq.methods import CLOSE_IN_CPP, GET_MESSAGES, METHODS, SEND_MESSAGE

from .frames import Vector, in_blocks, in_blocks_of, vector, vectors

every_vector = pytest.mark.parametrize("it", vectors(), ids=lambda it: f"{it.sender}: {it.name}")


@every_vector
def test_what_is_read_and_written_again_is_the_same(it: Vector) -> None:
    """But for the zeros behind requests of C++."""
    envelope = whole(it.frame).envelope
    if it.is_request:
        request = read_request(envelope)
        method = METHODS.get(request.body.method)
        assert (method is None) == (request.body.method == CLOSE_IN_CPP)
        if method is not None:
            message = parsed(method.request(), request.body.request)
            request.body.request = message.SerializeToString()
        again = written(*request)
    else:
        reply = read_reply(envelope)
        body = reply.body or reply.error
        assert body is not None
        if reply.body is not None:
            message = parsed(METHODS[reply.body.method].reply(), reply.body.data)
            reply.body.data = message.SerializeToString()
        again = written(reply.connection, reply.header, body)
    if it.sender == "cpp":
        assert envelope.startswith(again)
        assert not envelope[len(again) :].strip(b"\0")
    else:
        assert again == envelope
        assert framed(head(it.frame).serial, again) == it.frame


@every_vector
def test_the_length_of_a_frame_is_known_at_its_last_block(it: Vector) -> None:
    for size in (1, 7, 100, 8192):
        frame = in_blocks_of(size, it.frame)
        if head_blocks(frame) > MOST_BLOCKS:
            continue
        assert length(frame) == length(frame + b"more") == len(frame)
        for cut in range(len(frame)):
            found = length(frame[:cut])
            assert found > cut or (not found and cut < HEAD.size + 4)
        assert whole(frame).envelope == whole(it.frame).envelope


def head_blocks(frame: bytes) -> int:
    blocks: int = HEAD.unpack_from(frame)[2]
    return blocks


def test_blocks_that_are_written_are_full_and_none_is_empty() -> None:
    for size in (1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK):
        blocks = list(in_blocks(framed(5, bytes(size))))
        assert all(len(it) == BLOCK for it in blocks[:-1])
        assert sum(map(len, blocks)) == size
        assert blocks[-1]


def test_a_reply_of_the_gateways_own_is_read_like_a_servers() -> None:
    own = succeeded(9, SEND_MESSAGE, b"data")
    reply = read_reply(whole(own).envelope)
    real = read_reply(whole(vector("sendMessageP2B", "server").frame).envelope)
    assert head(own).serial == 9
    assert reply.body is not None
    assert (reply.body.method, reply.body.data) == (SEND_MESSAGE, b"data")
    assert (reply.connection, reply.header) == (real.connection, real.header)
    error = read_reply(whole(failed(9, "no")).envelope).error
    assert error is not None
    assert error.stackTrace == "no"


@pytest.mark.parametrize(("token", "blocks"), [(TOKEN - 1, 1), (TOKEN, 0), (TOKEN, 3585)])
def test_a_head_that_is_none_is_refused(token: int, blocks: int) -> None:
    with pytest.raises(PeerError):
        head(struct.pack(">IiI", token, 1, blocks))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "ends within a length"),
        (b"\x80\x80\x80\x80\x80\x01", "ends within a length"),
        (b"\x05\x08", "ends within a message"),
        (b"\x00", "lacks a required field"),
        (b"\x02\x08\x00\x02\xff\xff", "cannot be read"),
        (b"\x02\x08\x00\x02\x08\x01\x00", "lacks a required field"),
    ],
)
def test_an_envelope_that_is_torn_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(PeerError, match=said):
        read_request(data)


@pytest.mark.parametrize("field", [b"\x12\x01\xff", b"\x52\x03\x12\x01\xff"])
def test_a_text_that_is_no_text_is_refused(field: bytes) -> None:
    """Of a topic, and of a token within another message."""
    request = read_request(whole(vector("sendMessageP2B").frame).envelope).body.request
    with pytest.raises(PeerError, match="not UTF-8"):
        parsed(METHODS[SEND_MESSAGE].request(), request + field)


def test_the_messages_without_texts_have_none() -> None:
    found = METHODS[GET_MESSAGES].reply.DESCRIPTOR.fields_by_name["messages"].message_type
    assert found is not None
    assert not [it for it in found.fields if it.type in (it.TYPE_STRING, it.TYPE_MESSAGE)]


def test_what_follows_the_third_message_is_ignored() -> None:
    envelope = whole(vector("sendMessageP2B").frame).envelope
    assert read_request(envelope + bytes(9)) == read_request(envelope)
