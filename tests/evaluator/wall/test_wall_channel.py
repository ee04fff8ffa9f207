"""A channel gives JSON objects within limits or a clear error, whatever the other end sends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_l1.evaluator.guest.channel import MAX_BYTES, MAX_DEPTH, Channel, ChannelClosed, ProtocolError


@contextlib.contextmanager
def raw_pair():
    """A channel and the bare socket of a hostile other end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = Channel(ours)
    with theirs:
        yield channel, theirs
    channel.close()


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("message", [{}, {"a": [1, 2.5, None, "ü"]}, {"big": "x" * 3_000_000}])
def test_round_trip(message):
    left, right = Channel.pair()
    left.send(message)
    assert right.receive(5) == (message, [])


def test_descriptors_travel_with_small_and_large_messages():
    left, right = Channel.pair()
    for size in (1, 100_000):
        read, write = os.pipe()
        left.send({"text": "x" * size}, [write])
        _, (copy,) = right.receive(5, max_fds=1)
        os.write(copy, b"hello")
        assert os.read(read, 5) == b"hello"
        assert not os.get_inheritable(copy)
        for fd in (read, write, copy):
            os.close(fd)


def test_descriptors_nobody_asked_for_are_closed():
    left, right = Channel.pair()
    before = open_fds()
    for size in (1, 100_000):
        left.send({"text": "x" * size}, [0, 0, 0])
        with pytest.raises(ProtocolError, match="3 descriptors"):
            right.receive(5, max_fds=2)
    assert open_fds() == before


def test_end_of_file_and_timeout():
    left, right = Channel.pair()
    with pytest.raises(TimeoutError):
        right.receive(0.01)
    left.close()
    with pytest.raises(ChannelClosed):
        right.receive(5)
    with pytest.raises(ChannelClosed):
        right.send({"a": 1})
    with pytest.raises(ChannelClosed):
        left.receive(5)


def test_the_last_message_of_one_that_died_without_reading_arrives():
    left, right = Channel.pair()
    right.send({"unread": True})
    left.send({"last": "words"})
    left.close()
    assert right.receive(5)[0] == {"last": "words"}
    with pytest.raises(ChannelClosed):
        right.receive(5)


def test_a_reader_that_stops_reading_cannot_block_the_sender():
    left, _right = Channel.pair()
    with pytest.raises(TimeoutError):
        for _ in range(10_000):
            left.send({"x": "y" * 20_000}, timeout=0.05)


def test_too_large_a_message_is_refused_by_the_sender():
    left, _ = Channel.pair()
    with pytest.raises(ValueError, match="above the limit"):
        left.send({"x": "y" * MAX_BYTES})


@pytest.mark.parametrize(
    "packet",
    [
        b"J",
        b"J[1]",
        b"J1",
        b"Jnull",
        b'J{"a":',
        b"J\xff\xfe",
        b'J{"a":' + b"[" * 30_000,
        b"J" + b"{" + b'"a":{' * 200 + b"}" * 201,
        b'J{"n":' + b"9" * 5000 + b"}",
        b"X{}",
        b"M",
        b"M{}",
        b"J" + b" " * 60_000 + b"{}",
        b"\x80\x04\x95pickle",
    ],
)
def test_what_is_no_message_is_a_protocol_error(packet):
    with raw_pair() as (channel, hostile):
        hostile.sendall(packet)
        with pytest.raises(ProtocolError):
            channel.receive(5)


@given(st.binary(min_size=1, max_size=300))
def test_arbitrary_bytes_never_raise_anything_else(packet):
    with raw_pair() as (channel, hostile):
        hostile.sendall(packet)
        try:
            message, fds = channel.receive(5)
        except ProtocolError:
            return
        assert isinstance(message, dict) and fds == []


def test_nesting_limit_is_exact():
    left, right = Channel.pair()
    deepest = json.loads("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    left.send({"a": deepest})
    assert right.receive(5)[0] == {"a": deepest}
    left.send({"a": [deepest]})
    with pytest.raises(ProtocolError, match="nested"):
        right.receive(5)
    left.send({"many": [[]] * 100})
    assert len(right.receive(5)[0]["many"]) == 100


def test_a_large_message_must_be_in_a_sealed_memfd():
    before = open_fds()
    with raw_pair() as (channel, hostile):
        unsealed = os.memfd_create("x", os.MFD_ALLOW_SEALING)
        read, write = os.pipe()
        null = os.open("/dev/zero", os.O_RDONLY)
        for fd in (unsealed, read, write, null):
            socket.send_fds(hostile, [b"M"], [fd])
            with pytest.raises(ProtocolError):
                channel.receive(5)
            os.close(fd)
    assert open_fds() == before


def test_hundreds_of_descriptors_are_refused_and_closed():
    with raw_pair() as (channel, hostile):
        before = open_fds()
        socket.send_fds(hostile, [b"J{}"], [0] * 250)
        with pytest.raises(ProtocolError):
            channel.receive(5, max_fds=128)
        assert open_fds() == before


def test_patching_modules_later_changes_nothing(monkeypatch):
    left, right = Channel.pair()
    for target, name in ((json, "loads"), (json, "dumps"), (os, "close"), (os, "pread"), (socket, "socket")):
        monkeypatch.setattr(target, name, None)
    left.send({"a": "x" * 100_000})
    assert right.receive(5)[0] == {"a": "x" * 100_000}


def test_from_fd_takes_only_packet_sockets():
    read, write = os.pipe()
    with pytest.raises(ProtocolError):
        Channel.from_fd(read)
    stream, other = socket.socketpair()
    with pytest.raises(ProtocolError):
        Channel.from_fd(stream.detach())
    other.close()
    for fd in (read, write):
        os.close(fd)


def test_waiting_receiver_is_woken():
    left, right = Channel.pair()
    sender = threading.Timer(0.05, left.send, [{"late": True}])
    sender.start()
    assert right.receive(10)[0] == {"late": True}
    sender.join()
