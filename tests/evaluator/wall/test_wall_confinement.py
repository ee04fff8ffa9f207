"""What a guest can reach: nothing but its work directory, the interpreter and its channel, from rung R1 on.

Each test acts as hostile code inside a real guest. At R0 nothing is promised; what must hold there too says `template`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from wall_support import ROLES

from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.environment import guest_environment
from cuda_l1.evaluator.guest import namespaces, sandbox
from cuda_l1.evaluator.processes import Template
from waiting import eventually

SECRET = "the-planted-secret"


def attempt(expression: str) -> str:
    """A guest's text that sends what `expression` gives, or the error's name."""
    return textwrap.dedent("""
        import os, socket, signal, ctypes, subprocess, json
        try:
            result = {expression}
            channel.send({{"got": repr(result)}})
        except OSError as error:
            channel.send({{"error": type(error).__name__, "errno": error.errno}})
    """).format(expression=expression)


def test_a_planted_file_cannot_be_read(confined, ask, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    for path in (secret, Path(f"/proc/{os.getpid()}/root{secret}"), Path(f"/proc/{os.getpid()}/cwd/secret")):
        assert "error" in ask(confined, attempt(f"open({str(path)!r}).read()"))


def test_the_home_directory_cannot_be_listed(confined, ask):
    assert "error" in ask(confined, attempt(f"os.listdir({str(Path.home())!r})"))


def test_a_named_path_can_be_read_and_not_written(confined, ask, tmp_path):
    given = tmp_path / "given"
    given.write_text("hello")
    assert ask(confined, attempt(f"open({str(given)!r}).read()"), read_paths=[given]) == {"got": "'hello'"}
    assert "error" in ask(confined, attempt(f"open({str(given)!r}, 'w')"), read_paths=[given])
    assert given.read_text() == "hello"


def test_nothing_outside_the_work_directory_can_be_written(confined, ask, tmp_path):
    import torch

    for path in (
        tmp_path / "new",
        Path("/tmp/cuda-l1-new"),
        Path(torch.__file__).parent / "new",
        Path("/dev/shm/../x"),
    ):
        assert "error" in ask(confined, attempt(f"open({str(path)!r}, 'w')"))
        assert not path.exists()
    assert "error" in ask(confined, attempt(f"os.unlink({__file__!r})"))


def test_the_work_directory_is_shared_with_the_parent(template, run):
    guest = run(template, "open('made', 'w').write(open('given').read() + '!'); channel.receive()")
    (guest.work_dir / "given").write_text("hello")
    assert eventually(lambda: (guest.work_dir / "made").exists() and (guest.work_dir / "made").read_text() == "hello!")


def test_the_environment_holds_only_what_is_allowed(templates, template, run, monkeypatch):
    monkeypatch.setenv("PLANTED_TOKEN", SECRET)
    with Template.start(guest_environment(), rung=template.rung, role_folder=ROLES) as fresh:
        guest = run(
            fresh,
            """
            import os, subprocess
            shown = open("/proc/self/environ").read() + str(dict(os.environ))
            shown += subprocess.run(["env"], capture_output=True, text=True).stdout
            channel.send({"shown": shown})
            """,
        )
        shown = guest.channel.receive(30)[0]["shown"]
    assert SECRET not in shown and "HOME" in shown


def test_the_environment_of_other_processes_cannot_be_read(confined, ask):
    holder = subprocess.Popen([sys.executable, "-c", "input()"], env={"PLANTED": SECRET}, stdin=subprocess.PIPE)
    try:
        for pid in (os.getpid(), os.getppid(), holder.pid, confined.pid):
            for name in ("environ", "maps", "mem"):
                answer = ask(confined, attempt(f"open('/proc/{pid}/{name}', 'rb').read(1)"))
                assert answer.get("error") in ("PermissionError", "FileNotFoundError")
    finally:
        holder.communicate(b"")


def test_a_sibling_guest_cannot_be_read_or_signalled(confined, run, ask):
    sibling = run(confined, "channel.receive()")
    assert "error" in ask(confined, attempt(f"open('/proc/{sibling.pid}/mem', 'rb')"))
    assert "error" in ask(confined, attempt(f"os.kill({sibling.pid}, signal.SIGKILL)"))
    sibling.channel.send({})
    assert sibling.wait(10).code == 0


def test_no_process_outside_can_be_signalled(confined, ask):
    for pid in (os.getpid(), confined.pid):
        assert "error" in ask(confined, attempt(f"os.kill({pid}, 0)"))
    assert "error" in ask(confined, attempt("os.kill(os.getppid() or 1 << 22, signal.SIGKILL)"))


def test_its_own_children_can_be_signalled(confined, ask):
    answer = ask(
        confined,
        """
        import subprocess
        child = subprocess.Popen(["sleep", "60"])
        child.kill()
        channel.send({"code": child.wait(10)})
        """,
    )
    assert answer == {"code": -9}


@pytest.mark.parametrize("family", ["socket.AF_INET", "socket.AF_INET6", "socket.AF_UNIX", "16"])
def test_there_are_no_sockets(confined, ask, family):
    assert "error" in ask(confined, attempt(f"socket.socket({family}, socket.SOCK_STREAM)"))


def test_a_listener_of_ours_is_not_reached(confined, ask):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert "error" in ask(confined, attempt(f"socket.create_connection(('127.0.0.1', {port}), 2)"))


def test_socket_pairs_work_but_cannot_be_aimed(confined, ask):
    assert "got" in ask(confined, attempt("(lambda pair: pair[0].send(b'x'))(socket.socketpair())"))
    assert "error" in ask(confined, attempt("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"))


TALKS = """
    import os, socket
    server = socket.create_server(("127.0.0.1", 0))
    ours = socket.create_connection(server.getsockname())
    ours.sendall(b"hello")
    local = socket.socket(socket.AF_UNIX)
    local.bind("own"), local.listen()
    socket.socket(socket.AF_UNIX).connect("own")
    refused = []
    for family, place in spec["outside"]:
        try:
            socket.socket(family).connect(tuple(place) if isinstance(place, list) else place)
        except OSError as error:
            refused.append(type(error).__name__)
    for family, kind in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_NETLINK, socket.SOCK_RAW)):
        try:
            socket.socket(family, kind)
        except PermissionError:
            refused.append("no such family")
    channel.send({"heard": server.accept()[0].recv(9).decode(), "refused": refused})
"""


def test_a_guest_with_a_loopback_talks_to_itself_and_to_nobody_else(templates, run, ask, tmp_path):
    """Sockets lie in many places: none outside may be in sight, save where only programs lie."""
    folders = [tmp_path, *(Path(each) for each in ("/run", "/var/lib", "/srv") if os.access(each, os.W_OK))]
    paths = [str(folder / f"cuda-l1-test-{os.getpid()}") for folder in folders]
    listeners = []
    try:
        for path in paths:
            listeners.append(socket.socket(socket.AF_UNIX))
            listeners[-1].bind(path)
            listeners[-1].listen()
            os.chmod(path, 0o777)
        listeners.append(socket.create_server(("127.0.0.1", 0)))
        abstract = f"\0cuda-l1-test-{os.getpid()}"
        listeners.append(socket.socket(socket.AF_UNIX))
        listeners[-1].bind(abstract)
        listeners[-1].listen()
        outside = [*((1, path) for path in [*paths, abstract]), (2, list(listeners[-2].getsockname()))]
        answer = ask(templates("R2"), TALKS, spec={"outside": outside}, loopback=True)
    finally:
        for listener in listeners:
            listener.close()
        for path in paths:
            Path(path).unlink(missing_ok=True)
    assert answer["heard"] == "hello"
    assert len(answer["refused"]) == len(outside) + 2
    with pytest.raises(InfrastructureError, match="sockets of its own are for a guest at R2"):
        run(templates("R1"), TALKS, loopback=True).wait_until_started()


REFUSED_CALLS = {
    "ptrace": (101, 117),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "io_uring_setup": (425, 425),
    "userfaultfd": (323, 282),
    "clock_settime": (227, 112),
    "sched_setaffinity": (203, 122),
    "setpriority": (141, 140),
    "shmget": (29, 194),
    "clone3": (435, 435),
}


def test_dangerous_system_calls_are_refused(confined, ask):
    column = ["x86_64", "aarch64"].index(os.uname().machine)
    numbers = {name: both[column] for name, both in REFUSED_CALLS.items()}
    answer = ask(
        confined,
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        answers = {}
        for name, number in spec["numbers"].items():
            answers[name] = [libc.syscall(number, 0, 0, 0, 0, 0), ctypes.get_errno()]
        channel.send(answers)
        """,
        spec={"numbers": numbers},
    )
    allowed = {name: result for name, result in answer.items() if result[0] != -1 or result[1] not in (1, 38)}
    assert not allowed


def test_namespaces_by_clone_are_refused(confined, ask):
    answer = ask(
        confined,
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
        result = libc.syscall(number, 0x10000000 | 17, 0, 0, 0, 0)
        if result == 0:
            os._exit(0)
        channel.send({"result": result, "errno": ctypes.get_errno()})
        """,
    )
    assert answer == {"result": -1, "errno": 1}


def test_it_holds_no_capability_and_cannot_gain_one(confined, ask):
    answer = ask(confined, "channel.send({'text': open('/proc/self/status').read()})")
    fields = dict(line.split(":\t") for line in answer["text"].splitlines() if ":\t" in line)
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
    if os.getuid() == 0:
        assert fields["CapBnd"] == "0" * 16


def test_it_may_do_what_candidates_do(template, ask):
    """The honest twin: threads, subprocesses, a compiler's temporary files, memfds, renames across folders."""
    answer = ask(
        template,
        """
        import os, subprocess, tempfile, threading, torch
        torch.set_num_threads(2)
        total = float(torch.ones(1 << 20).sum())
        with tempfile.TemporaryDirectory() as folder:
            open(f"{folder}/a", "w").write("x")
            os.makedirs("other")
            os.replace(f"{folder}/a", "other/a")
        os.close(os.memfd_create("x"))
        listed = subprocess.run(["ls", "other"], capture_output=True, text=True).stdout
        thread = threading.Thread(target=lambda: None)
        thread.start(); thread.join()
        channel.send({"total": total, "listed": listed})
        """,
    )
    assert answer == {"total": float(1 << 20), "listed": "a\n"}


def test_software_in_unusual_places_can_be_read_and_private_folders_cannot(monkeypatch, tmp_path):
    compiler = tmp_path / "opt" / "gcc" / "bin" / "gcc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    home = tmp_path / "home"
    (home / "lib").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{home}:{compiler.parent}")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{home}:{home}/lib:relative:")
    monkeypatch.syspath_prepend(str(tmp_path))
    paths = sandbox.software_paths([str(home), os.getcwd()])
    assert {str(tmp_path / "opt" / "gcc"), str(home / "lib"), sys.prefix} <= set(paths)
    assert not {str(home), str(tmp_path), "/", os.getcwd()} & set(paths)


def test_r2_sees_only_its_own_processes_and_folders(templates, ask, tmp_path):
    template = templates("R2")
    pids = ask(template, "import os; channel.send({'pids': [n for n in os.listdir('/proc') if n.isdigit()]})")["pids"]
    assert pids == ["1"]
    answer = ask(template, "import os; channel.send({'cwd': os.getcwd(), 'links': os.listdir('/sys/class/net')})")
    assert answer["cwd"] == "/tmp/cuda-l1-work"
    own = ask(
        template, "import os; channel.send({n: os.readlink(f'/proc/self/ns/{n}') for n in os.listdir('/proc/self/ns')})"
    )
    for name in ("net", "ipc", "mnt", "pid"):
        assert own[name] != os.readlink(f"/proc/self/ns/{name}")


def test_what_is_reached_through_a_link_stands_at_both_places(templates, ask, tmp_path):
    private, outside = tmp_path / "private", tmp_path / "outside"
    for folder in (private, outside):
        (folder / "venv").mkdir(parents=True)
        (folder / "link").symlink_to((outside if folder == private else private) / "venv")
    for path, seen in ((private / "link", {private / "link"}), (outside / "link", {private / "venv"})):
        assert namespaces._places(str(path), [str(private)]) == {str(place) for place in seen}
    link = tmp_path / "software"  # below /tmp, which is covered, and leads to what is not
    link.symlink_to(os.path.dirname(os.__file__))
    told = ask(templates("R2"), attempt(f"os.path.exists({str(link / 'os.py')!r})"), read_paths=[link])
    assert told == {"got": "True"}


def test_r2_shared_memory_is_its_own(templates, ask):
    name = f"cuda-l1-test-{os.getpid()}"
    source = f"open('/dev/shm/{name}', 'w').write('x'); import os; channel.send({{'seen': os.listdir('/dev/shm')}})"
    assert ask(templates("R2"), source)["seen"] == [name]
    assert not Path("/dev/shm", name).exists()


def test_each_guest_is_told_the_same_path_at_r2(templates, ask):
    seen = {ask(templates("R2"), "import os; channel.send({'d': os.getcwd()})")["d"] for _ in range(2)}
    assert len(seen) == 1


def test_a_role_gets_its_spec_and_extra_descriptors(template, ask):
    read, write = os.pipe()
    answer = ask(template, "import os; os.write(spec['fds'][0], b'hi'); channel.send(spec)", extra_fds=[write])
    os.close(write)
    assert os.read(read, 2) == b"hi"
    os.close(read)
    assert answer["work_dir"] and json.dumps(answer)
    assert len(answer["fds"]) == 1


def test_no_descriptor_of_ours_is_inherited(template, ask, tmp_path):
    with open(tmp_path / "open", "w") as ours:
        os.set_inheritable(ours.fileno(), True)
        links = ask(
            template,
            """
            import os
            links = []
            for name in os.listdir("/proc/self/fd"):
                try: links.append(os.readlink(f"/proc/self/fd/{name}"))
                except OSError: pass
            channel.send({"links": links})
            """,
        )["links"]
    others = [link for link in links if not link.startswith(("socket:", "pipe:", "/dev/null", "/proc/"))]
    assert others == []
    assert sum(link.startswith("socket:") for link in links) == 1
