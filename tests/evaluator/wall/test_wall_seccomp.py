"""The system-call filter, run in a small BPF machine: both architectures, without installing it."""

from __future__ import annotations

import errno
import struct

import pytest

from cuda_l1.evaluator.guest import seccomp

ALLOW, ASK = 0x7FFF0000, 0x7FC00000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMN = {"x86_64": 0, "aarch64": 1}
OWN_PID = 4242


def verdict(
    machine: str,
    number: int,
    *arguments: int,
    only_signal: int | None = None,
    audit: int | None = None,
    cuda: bool = False,
    loopback: bool = False,
    ask: bool = False,
) -> int:
    """What the filter answers: ALLOW, ASK, or the errno of a refusal."""
    wide = [value & (1 << 64) - 1 for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<IIQ6Q", number, AUDIT[machine] if audit is None else audit, 0, *wide)
    program = seccomp.program(machine, only_signal, cuda=cuda, loopback=loopback, ask=ask)
    place = accumulator = 0
    while True:
        code, if_true, if_false, constant = program[place]
        place += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, constant)[0]
        elif code == 0x54:
            accumulator &= constant
        elif code == 0x06:
            return constant if constant in (ALLOW, ASK) else constant & 0xFFFF
        else:
            tests = {
                0x15: accumulator == constant,
                0x35: accumulator >= constant,
                0x45: bool(accumulator & constant),
            }
            place += if_true if tests[code] else if_false


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request):
    return request.param


def number_of(machine: str, name: str) -> int:
    number = seccomp._NUMBERS[name][COLUMN[machine]]
    assert number is not None
    return number


def test_jumps_fit_and_every_path_ends(machine):
    program = seccomp.program(machine, OWN_PID)
    assert len(program) < 4096 and all(max(if_true, if_false) < 256 for _, if_true, if_false, _ in program)
    for number in range(512):
        assert verdict(machine, number) in {ALLOW, errno.EPERM, errno.ENOSYS}


def test_ordinary_calls_pass(machine):
    ordinary = {"x86_64": (0, 1, 2, 9, 16, 59, 61, 202, 257), "aarch64": (63, 64, 56, 222, 29, 221, 260, 98)}
    assert {verdict(machine, number) for number in ordinary[machine]} == {ALLOW}


@pytest.mark.parametrize(
    "name", ["socket", "ptrace", "bpf", "mount", "unshare", "setns", "keyctl", "sched_setaffinity"]
)
def test_refused_calls(machine, name):
    assert verdict(machine, number_of(machine, name)) == errno.EPERM


def test_calls_with_a_known_fallback_look_absent(machine):
    assert verdict(machine, number_of(machine, "clone3")) == errno.ENOSYS


def test_other_architectures_and_x32_see_nothing(machine):
    assert verdict(machine, 1, audit=0x40000003) == errno.ENOSYS
    assert verdict(machine, 0x40000000 | 41) == errno.ENOSYS


def test_new_processes_are_asked_about_and_threads_are_not(machine):
    clone = number_of(machine, "clone")
    assert verdict(machine, clone, 0x3D0F00, ask=True) == ALLOW  # what pthread_create asks for
    assert verdict(machine, clone, 17, ask=True) == verdict(machine, clone, 0x4111, ask=True) == ASK
    assert verdict(machine, clone, 0x10000000 | 17, ask=True) == errno.EPERM
    for name in ("fork", "vfork"):
        if number := seccomp._NUMBERS[name][COLUMN[machine]]:
            assert (verdict(machine, number), verdict(machine, number, ask=True)) == (ALLOW, ASK)


def test_clone_makes_threads_and_children_but_no_namespaces(machine):
    clone = number_of(machine, "clone")
    assert verdict(machine, clone, 0x3D0F00) == ALLOW  # what pthread_create asks for
    assert verdict(machine, clone, 17) == ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, clone, flag | 17) == errno.EPERM


def test_socket_pairs_only_of_connected_kinds(machine):
    pair = number_of(machine, "socketpair")
    assert verdict(machine, pair, 1, 1 | 0o2000000) == ALLOW
    assert verdict(machine, pair, 1, 5) == ALLOW
    assert verdict(machine, pair, 1, 2) == errno.EPERM
    assert verdict(machine, pair, 1, 2 | 0o2000000) == errno.EPERM


def test_the_driver_may_listen_locally_and_nobody_may_connect(machine):
    local, connected = number_of(machine, "socket"), number_of(machine, "connect")
    for kind in (1, 5):
        assert verdict(machine, local, 1, kind | 0o2000000, cuda=True) == ALLOW
        assert verdict(machine, local, 2, kind, cuda=True) == errno.EPERM
    assert verdict(machine, local, 1, 2, cuda=True) == errno.EPERM, "a datagram socket needs no connection"
    for name in ("bind", "listen"):
        assert verdict(machine, number_of(machine, name), 3, cuda=True) == ALLOW
    assert verdict(machine, connected, 3, cuda=True) == errno.EPERM


def test_with_a_loopback_sockets_of_three_families_connect(machine):
    made = number_of(machine, "socket")
    for family, answer in (
        (1, ALLOW),
        (2, ALLOW),
        (10, ALLOW),
        (16, errno.EPERM),
        (17, errno.EPERM),
        (38, errno.EPERM),
    ):
        assert verdict(machine, made, family, 1, cuda=True, loopback=True) == answer
    for name in ("connect", "bind", "listen", "accept4"):
        assert verdict(machine, number_of(machine, name), 3, cuda=True, loopback=True) == ALLOW
    assert verdict(machine, number_of(machine, "ptrace"), 0, cuda=True, loopback=True) == errno.EPERM


def test_prctl_all_but_outliving_the_keeper(machine):
    prctl = number_of(machine, "prctl")
    assert verdict(machine, prctl, 15, 1234) == ALLOW
    assert verdict(machine, prctl, 1, 9) == ALLOW
    assert verdict(machine, prctl, 1, 0) == errno.EPERM


def test_limits_of_other_processes(machine):
    prlimit = number_of(machine, "prlimit64")
    assert verdict(machine, prlimit, 0, 7) == ALLOW
    assert verdict(machine, prlimit, 1, 7) == errno.EPERM


def test_limits_of_time_are_read_and_not_set(machine):
    """The kernel's SIGKILL for one cannot be told from somebody else's."""
    prlimit, setrlimit = number_of(machine, "prlimit64"), number_of(machine, "setrlimit")
    for resource in (0, 15):
        assert verdict(machine, setrlimit, resource, 0x7000) == errno.EPERM
        assert verdict(machine, prlimit, 0, resource, 0, 0x7000) == ALLOW
        for new in (0x7000, 1 << 32):
            assert verdict(machine, prlimit, 0, resource, new, 0) == errno.EPERM
    assert verdict(machine, setrlimit, 7, 0x7000) == verdict(machine, prlimit, 0, 7, 0x7000, 0) == ALLOW
    assert verdict(machine, prlimit, 1, 0, 0, 0x7000) == errno.EPERM


def test_signals_are_free_where_landlock_or_a_namespace_holds_them(machine):
    for name in ("kill", "tgkill", "pidfd_send_signal"):
        assert verdict(machine, number_of(machine, name), 1, 9) == ALLOW


def test_signals_reach_only_oneself_otherwise(machine):
    kill, tgkill = number_of(machine, "kill"), number_of(machine, "tgkill")
    for target, answer in ((OWN_PID, ALLOW), (0, ALLOW), (1, errno.EPERM), (-1, errno.EPERM)):
        assert verdict(machine, kill, target, 9, only_signal=OWN_PID) == answer
    assert verdict(machine, tgkill, OWN_PID, 5, 6, only_signal=OWN_PID) == ALLOW
    assert verdict(machine, tgkill, 1, 5, 6, only_signal=OWN_PID) == errno.EPERM
    assert verdict(machine, number_of(machine, "tkill"), 1, only_signal=OWN_PID) == errno.EPERM
    fcntl = number_of(machine, "fcntl")
    assert verdict(machine, fcntl, 3, 8, 1, only_signal=OWN_PID) == errno.EPERM
    assert verdict(machine, fcntl, 3, 15, 1, only_signal=OWN_PID) == errno.EPERM
    assert verdict(machine, fcntl, 3, 2, 1, only_signal=OWN_PID) == ALLOW


def test_an_unknown_architecture_is_refused_not_ignored():
    with pytest.raises(OSError, match="no system-call filter for riscv64"):
        seccomp.program("riscv64", None)
