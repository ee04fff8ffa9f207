"""The system-call filter of a guest: what no kernel, compiler or CUDA driver needs, and what reaches other processes.

Refused calls return an error instead of killing, so that a library that only tries goes on. x86-64 and aarch64.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct

from .kernel import syscall

_NUMBERS = {  # name: (x86-64, aarch64); None where the architecture has no such call
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "socketpair": (53, 199),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
    "clone3": (435, 435),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "setrlimit": (160, 164),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "fcntl": (72, 25),
    "seccomp": (317, 277),
}
_ABSENT = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")  # callers know how to do without
_CONDITIONAL = ("socketpair", "clone", "fork", "vfork", "prctl", "prlimit64", "setrlimit", "seccomp", "fcntl")
_CUDA_CALLS = ("socket", "bind", "listen")
_LOOPBACK_CALLS = ("socket", "connect", "bind", "listen", "accept", "accept4")
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of the table, AUDIT_ARCH
_SET_MODE_FILTER, _SPEC_ALLOW, _NEW_LISTENER = 1, 4, 8
_X32_BIT = 0x40000000
_CLONE_NEW_ANY, _CLONE_THREAD = 0x7E020000, 0x10000
_SOCK_TYPE_MASK, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5
_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_RLIMIT_CPU, _RLIMIT_RTTIME = 0, 15
_F_SETOWN, _F_SETOWN_EX = 8, 15

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO, _ASK = 0x7FFF0000, 0x00050000, 0x7FC00000
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def restrict(*, confine_signals: bool, cuda: bool = False, loopback: bool = False, ask: bool = False) -> int | None:
    """Install the filter for this thread and its children. Needs no_new_privs.

    `confine_signals`: allow signals to this process itself only, for kernels where Landlock cannot scope them; a
    guest's children then cannot be signalled by it either. `cuda`: the driver's `cuInit` makes a local socket and
    listens on it, and fails when it cannot; connecting stays refused. `loopback`: local and internet sockets, for a
    guest that sees no network and no socket but its own. `ask`: every new process waits for whoever holds the
    descriptor that is returned (`forks`); None where the kernel knows no such thing, or somebody above asks already.
    Raises `OSError` when the kernel or the architecture has no such filter.
    """
    if ask:
        with contextlib.suppress(OSError):
            return _install(_NEW_LISTENER, confine_signals=confine_signals, cuda=cuda, loopback=loopback)
    _install(0, confine_signals=confine_signals, cuda=cuda, loopback=loopback)
    return None


def _install(flags: int, *, confine_signals: bool, cuda: bool, loopback: bool) -> int:
    signals = os.getpid() if confine_signals else None
    instructions = program(platform.machine(), signals, cuda=cuda, loopback=loopback, ask=bool(flags))
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(buffer)), 16)
    column, _ = _ARCHITECTURES[platform.machine()]
    # SPEC_ALLOW: without it older kernels slow the whole process down (speculative store bypass off).
    return syscall("seccomp", _NUMBERS["seccomp"][column] or 0, _SET_MODE_FILTER, _SPEC_ALLOW | flags, header)


def program(
    machine: str, only_signal: int | None, *, cuda: bool = False, loopback: bool = False, ask: bool = False
) -> list[Instruction]:
    """The filter in BPF; `only_signal` is the process id that may be signalled, None for any. `ask`: about forks."""
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system-call filter for {machine}")
    column, architecture = _ARCHITECTURES[machine]
    numbers = {name: both[column] for name, both in _NUMBERS.items()}
    steps: list[Instruction] = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        _refuse(errno.ENOSYS),
        (_LOAD, 0, 0, _AT_NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        _refuse(errno.ENOSYS),
    ]
    for name, number in numbers.items():
        if number is None:
            continue
        if loopback and name in _LOOPBACK_CALLS:
            rule = _loopback_rule(name)
        elif cuda and name in _CUDA_CALLS:
            rule = _cuda_rule(name)
        else:
            rule = _rule(name, only_signal, _ASK if ask else _ALLOW)
        steps += _when(number, rule)
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _cuda_rule(name: str) -> list[Instruction]:
    """Local sockets that must be connected before they reach anything; they may be named, not connected."""
    if name != "socket":
        return []
    local = [_argument(0), (_EQUAL, 1, 0, _AF_UNIX), _refuse(errno.EPERM)]
    return [*local, *_connected_kind()]


def _loopback_rule(name: str) -> list[Instruction]:
    """Sockets that can reach nothing outside: their guest sees neither a network nor a socket of others."""
    return [_argument(0), *_among([_AF_UNIX, _AF_INET, _AF_INET6])] if name == "socket" else []


def _rule(name: str, only_signal: int | None, fork: int) -> list[Instruction]:
    """The instructions for one call; they end in a verdict, or are empty for a call that is allowed as it is. `fork`:
    the verdict on new processes."""
    if name in _ABSENT:
        return [_refuse(errno.ENOSYS)]
    if name in _SIGNALS:
        if only_signal is None:
            return []
        return _only(0, [only_signal, 0]) if name == "kill" else _only(0, [only_signal])
    if name not in _CONDITIONAL:
        return [_refuse(errno.EPERM)]
    match name:
        case "socketpair":  # a datagram pair could be aimed at any socket in the file system
            return _connected_kind()
        case "clone":
            refused = [(_ANY_BIT, 0, 1, _CLONE_NEW_ANY), _refuse(errno.EPERM)]
            return [
                _argument(0),
                *refused,
                (_ANY_BIT, 0, 1, _CLONE_THREAD),
                (_RETURN, 0, 0, _ALLOW),
                (_RETURN, 0, 0, fork),
            ]
        case "fork" | "vfork":
            return [(_RETURN, 0, 0, fork)]
        case "prctl":  # the guest must not outlive its keeper
            skip = (_EQUAL, 1, 0, _PR_SET_PDEATHSIG)
            return [_argument(0), skip, (_RETURN, 0, 0, _ALLOW), *_only(1, [_SIGKILL])]
        case "prlimit64":  # other processes of the user have limits too
            others = [_argument(0), (_EQUAL, 1, 0, 0), _refuse(errno.EPERM)]
            read = (_RETURN, 0, 0, _ALLOW)
            return [
                *others,
                *_of_time(1),
                _argument(2),
                (_EQUAL, 0, 2, 0),
                _argument(2, high=True),
                (_EQUAL, 1, 0, 0),
                _refuse(errno.EPERM),
                read,
            ]
        case "setrlimit":
            return [*_of_time(0), _refuse(errno.EPERM)]
        case "fcntl" if only_signal is not None:  # who gets SIGIO
            owners = [(_EQUAL, 1, 0, _F_SETOWN), (_EQUAL, 0, 1, _F_SETOWN_EX)]
            return [_argument(1), *owners, _refuse(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    return []


def _connected_kind() -> list[Instruction]:
    return [_argument(1), (_AND, 0, 0, _SOCK_TYPE_MASK), *_among([_SOCK_STREAM, _SOCK_SEQPACKET])]


def _of_time(argument: int) -> list[Instruction]:
    """Allow what is no limit of time, and go on for what is: SIGKILL that the kernel
    sends for one reaches process 1 of a namespace, too, and looks as if somebody outside had sent it."""
    return [_argument(argument), (_EQUAL, 2, 0, _RLIMIT_CPU), (_EQUAL, 1, 0, _RLIMIT_RTTIME), (_RETURN, 0, 0, _ALLOW)]


def _when(number: int, block: list[Instruction]) -> list[Instruction]:
    return [(_EQUAL, 0, len(block), number), *block] if block else []


def _only(argument: int, values: list[int]) -> list[Instruction]:
    return [_argument(argument), *_among(values)]


def _among(values: list[int]) -> list[Instruction]:
    """Allow when the loaded value is one of `values`, else refuse."""
    last = len(values) - 1
    tests = [(_EQUAL, last - place + 1, 0, value) for place, value in enumerate(values)]
    return [*tests, _refuse(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _argument(place: int, *, high: bool = False) -> Instruction:
    """Load the low 32 bits, which are all of an int in the kernel, or the `high` ones of a pointer."""
    return (_LOAD, 0, 0, _AT_ARGUMENTS + 8 * place + 4 * high)


def _refuse(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)
