"""Guests that take too much, or will not go: each is ended with the reason, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from wall_support import LIMITS, ROLES

from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.environment import guest_environment
from cuda_l1.evaluator.findings.observed import STOLEN_S
from cuda_l1.evaluator.guest import group
from cuda_l1.evaluator.guest.channel import Channel, ProtocolError
from cuda_l1.evaluator.processes import Template, choose_rung, wait
from waiting import eventually


def alive(pid: int) -> bool:
    return group.state_of(pid) not in (None, "Z", "X")


def processes_with(marker: str) -> list[int]:
    """Processes whose command line holds `marker`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if marker.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def test_an_endless_printer_neither_blocks_nor_fills_anything(template, run):
    guest = run(template, "print('first line')\nwhile True: print('x' * 1000)")
    ready = wait([], [guest], time.monotonic() + 1.0)
    assert not ready.exited, "printing alone is no reason to end a guest"
    guest.kill("deadline")
    assert guest.exit.reason == "deadline" and not guest.exit.oom
    text = guest.log_tail()
    assert text.startswith("first line") and "left out" in text
    assert len(text) < LIMITS.log_bytes + 100
    assert os.fstat(guest.log.fileno()).st_size < LIMITS.log_bytes + 100


def test_a_full_work_directory_ends_the_guest(template, run):
    guest = run(
        template,
        """
        for number in range(1000):
            with open(f"part{number}", "wb") as file:
                file.write(b"x" * (1 << 20))
        channel.receive()
        """,
    )
    assert guest.wait(20).reason == "disk"


def test_one_large_file_ends_the_guest(template, run):
    source = "import os; fd = os.open('one', os.O_CREAT | os.O_WRONLY); os.posix_fallocate(fd, 0, 64 << 20)"
    assert run(template, source + "; channel.receive()").wait(20).reason == "disk"


HIDDEN = {
    "unnamed": """
        import os, time
        kept = []
        for number in range(64):
            kept.append(open(f"part{number}", "wb"))
            os.unlink(f"part{number}")
            kept[-1].write(b"x" * (1 << 20))
        """,
    "deep": """
        import os
        for _ in range(2200):
            os.mkdir("a"), os.chdir("a")
        """,
    "deeper-than-python-recurses": """
        import os
        for _ in range(1500):
            os.mkdir("a"), os.chdir("a")
        open("full", "wb").write(b"x" * (64 << 20))
        """,
}
"""What a look at a folder does not show, or Python's own ways of removing one stumble over."""


@pytest.mark.parametrize("hidden", HIDDEN)
def test_nothing_is_hidden_in_the_work_directory_and_nothing_is_left(template, run, hidden):
    guest = run(template, textwrap.dedent(HIDDEN[hidden]) + "channel.receive()")
    assert guest.wait(20).reason == "disk"
    guest.close()
    assert not guest.work_dir.exists()


def test_a_small_file_without_a_name_is_nobodys_matter(template, run):
    guest = run(
        template, "import tempfile\nkept = tempfile.TemporaryFile()\nkept.write(b'x' * 4096)\nchannel.receive()"
    )
    assert not wait([], [guest], time.monotonic() + 1.0).exited
    guest.close()


def test_memory_beyond_the_limit_ends_the_guest(template, run):
    limits = LIMITS.model_copy(update={"memory_bytes": 256 << 20})
    guest = run(template, "held = bytearray(512 << 20); channel.receive()", limits)
    end = guest.wait(20)
    assert end.reason == "memory" and end.oom and end.signal == signal.SIGKILL
    assert guest.peak_bytes > 256 << 20


def test_memory_of_children_counts(template, run):
    limits = LIMITS.model_copy(update={"memory_bytes": 256 << 20})
    source = """
    import os
    for _ in range(4):
        if os.fork() == 0:
            held = bytearray(100 << 20)
            channel.receive()
    channel.receive()
    """
    assert run(template, source, limits).wait(20).reason == "memory"


def test_a_storm_of_processes_ends_the_guest(template, run):
    source = """
    import os, time
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    channel.receive()
    """
    guest = run(template, source)
    end = guest.wait(30)
    assert end.reason == "processes"
    assert not group.descendants(guest.pid) and not alive(guest.pid)


def test_processes_that_fork_while_being_killed_do_not_escape(template, run, tmp_path):
    marker = f"storm-{os.getpid()}-{time.monotonic_ns()}"
    source = f"""
    import subprocess, sys, os
    code = "import os,sys,time\\nfor _ in range(8): time.sleep(0.01); os.fork() and os._exit(0)\\n"
    for _ in range(4):
        subprocess.Popen([sys.executable, "-S", "-c", code + "time.sleep(60)", {marker!r}], start_new_session=True)
    channel.send({{}})
    channel.receive()
    """
    guest = run(template, source, LIMITS.model_copy(update={"processes": 1000}))
    guest.channel.receive(20)
    guest.kill()
    assert eventually(lambda: not processes_with(marker), 10)


def test_a_guest_that_ignores_every_signal_is_killed(template, run):
    source = """
    import signal
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    channel.send({})
    while True: pass
    """
    guest = run(template, source)
    guest.channel.receive(20)
    assert guest.kill("deadline").signal == signal.SIGKILL
    assert not alive(guest.pid)


@pytest.mark.parametrize("ending", ["kill", "exit"])
def test_daemons_do_not_survive(template, run, ending):
    marker = f"daemon-{os.getpid()}-{time.monotonic_ns()}"
    source = f"""
    import subprocess, os
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            code = "import time; open('up', 'w'); time.sleep(600)"
            os.execvp("python3", ["python3", "-S", "-c", code, {marker!r}])
        os._exit(0)
    os.wait()
    while not os.path.exists("up"): pass
    channel.send({{}})
    if {ending == "kill"!r}: channel.receive()
    """
    guest = run(template, source)
    guest.channel.receive(20)
    assert ending == "exit" or len(processes_with(marker)) == 1
    guest.kill() if ending == "kill" else guest.wait(20)
    assert not processes_with(marker)


def test_stopping_and_resuming_takes_the_children_along(template, run):
    source = """
    import os, time
    if os.fork() == 0:
        os.setsid()
    channel.send({})
    while True:
        open(f"ticks{os.getpid()}", "a").write("x"); time.sleep(0.001)
    """
    guest = run(template, source)
    for _ in range(2):
        guest.channel.receive(20)

    def ticks() -> list[int]:
        return [path.stat().st_size for path in sorted(guest.work_dir.glob("ticks*"))]

    assert eventually(lambda: len(ticks()) == 2)
    guest.stop()
    before = ticks()
    time.sleep(0.1)
    assert ticks() == before
    guest.resume()
    assert eventually(lambda: all(now > then for now, then in zip(ticks(), before, strict=True)))
    guest.stop()
    assert guest.kill().signal == signal.SIGKILL, "a stopped guest can be killed"


def test_a_process_whose_first_thread_has_ended_is_stopped_too(template, run):
    source = """
    import ctypes, os, threading, time
    def tick():
        while True:
            open("ticks", "a").write("x"); time.sleep(0.001)
    if os.fork() == 0:
        threading.Thread(target=tick).start()
        ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
    channel.send({})
    channel.receive()
    """
    guest = run(template, source)
    guest.channel.receive(20)
    ticks = guest.work_dir / "ticks"
    assert eventually(lambda: ticks.exists() and ticks.stat().st_size > 5)
    guest.stop()
    before = ticks.stat().st_size
    time.sleep(0.1)
    assert ticks.stat().st_size == before and sum(guest.stolen_s()) < STOLEN_S


def test_what_continues_itself_by_a_timer_is_seen(template, run):
    source = """
    import ctypes, signal
    libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
    signal.signal(signal.SIGCONT, lambda *_: None)
    event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)  # struct sigevent: value, signal, SIGEV_SIGNAL
    assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
    again_and_again = (ctypes.c_long * 4)(0, 500_000_000, 0, 500_000_000)  # one may come before it is stopped
    assert libc.timer_settime(timer, 0, again_and_again, None) == 0
    channel.send({})
    while True:
        sum(range(1000))
    """
    guest = run(template, source)
    guest.channel.receive(20)
    guest.stop()
    assert eventually(lambda: sum(guest.stolen_s()) > STOLEN_S)
    (stolen_s,) = guest.stolen_s()
    guest.resume()
    assert guest.stolen_s()[0] >= stolen_s, "it stays known"
    guest.stop()
    assert len(guest.stolen_s()) == 2


def test_who_works_for_what_is_stopped_and_ends_is_seen(template, run):
    source = """
    import fcntl, os, signal
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    work = ": > begun; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"
    signal.signal(signal.SIGCONT, lambda *_: os.posix_spawn("/bin/sh", ["sh", "-c", work], {}))
    fcntl.fcntl(channel.fileno(), fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(channel.fileno(), 10, signal.SIGCONT)  # F_SETSIG: a message continues it
    fcntl.fcntl(channel.fileno(), fcntl.F_SETFL, fcntl.fcntl(channel.fileno(), fcntl.F_GETFL) | os.O_ASYNC)
    channel.send({})
    while True:
        signal.pause()
    """
    guest = run(template, source)
    guest.channel.receive(20)
    guest.stop()
    assert sum(guest.stolen_s()) < STOLEN_S
    guest.channel.send({})
    assert eventually(lambda: (guest.work_dir / "begun").exists() and guest.threads() == 1)
    assert sum(guest.stolen_s()) > STOLEN_S


def test_garbage_on_the_channel_is_a_protocol_error(template, run):
    for source in (
        "import os; os.write(channel.fileno(), b'\\x00\\xffgarbage'); channel.receive()",
        "import os; os.write(channel.fileno(), b'J{\"a\":' + b'[' * 20000); channel.receive()",
        "import os; os.write(channel.fileno(), b'J' + b'x' * 100000); channel.receive()",
    ):
        guest = run(template, source)
        assert wait([guest.channel], [guest], time.monotonic() + 20).channels
        with pytest.raises(ProtocolError):
            guest.channel.receive(1)


def test_exit_code_signal_and_log(template, run):
    assert run(template, "raise SystemExit(7)").wait(20).code == 7
    guest = run(template, "import sys; print('out'); print('err', file=sys.stderr); raise RuntimeError('boom')")
    assert guest.wait(20).code == 1
    assert "boom" in guest.log_tail() and guest.log_tail().startswith("out\nerr\n")
    assert guest.log_tail(5) == guest.log_tail()[-5:]
    crashed = run(template, "import ctypes; ctypes.string_at(0)").wait(20)
    assert (crashed.signal, crashed.code, crashed.reason, crashed.oom) == (signal.SIGSEGV, None, None, False)
    assert crashed.max_rss_bytes > 10 << 20


def test_output_of_compiled_code_is_flushed(template, run):
    guest = run(template, "import ctypes; ctypes.CDLL(None).printf(b'from C')")
    guest.wait(20)
    assert guest.log_tail() == "from C"


def test_the_channel_of_a_guest_can_be_given_to_another_guest(template, run):
    ours, theirs = Channel.pair()
    talker = run(template, "channel.send({'from': 'talker'})", channel=ours)
    listener = run(
        template,
        """
        message, fds = channel.receive(20, max_fds=1)
        other = type(channel).from_fd(fds[0])
        channel.send(other.receive(20)[0])
        """,
    )
    listener.channel.send({}, [theirs.fileno()])
    theirs.close()
    assert listener.channel.receive(20)[0] == {"from": "talker"}
    with pytest.raises(ValueError, match="somebody else"):
        talker.channel  # noqa: B018


def test_a_given_work_directory_outlives_its_guest(template, run, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    guest = run(template, "open('made', 'w').write('x')", work_dir=folder)
    own = run(template, "pass")
    assert guest.wait(20).code == 0 and own.wait(20).code == 0
    guest.close(), own.close()
    assert (folder / "made").read_text() == "x"
    assert not own.work_dir.exists()


def test_wait_returns_at_the_deadline_and_names_what_ended(template, run):
    sleeper = run(template, "channel.receive()")
    assert not wait([sleeper.channel], [sleeper], time.monotonic() + 0.05)
    sleeper.channel.send({})
    assert sleeper in wait([], [sleeper], time.monotonic() + 20).exited


def test_the_lane_and_the_thread_of_a_guest(template, ask):
    core = min(os.sched_getaffinity(0))
    answer = ask(
        template,
        """
        import os
        channel.send({'lane': sorted(os.sched_getaffinity(0)), 'threads': len(os.listdir('/proc/self/task'))})
        """,
        lane=[core],
    )
    assert answer == {"lane": [core], "threads": 1}


@pytest.mark.parametrize("rung", ["R0", "R1", "R2"])
def test_everything_dies_with_the_template(templates, run, rung):
    templates(rung)  # skips where refused
    with Template.start(guest_environment(), rung=rung, role_folder=ROLES) as template:
        guest = run(template, "channel.send({})\nwhile True: pass")
        guest.channel.receive(20)
        os.kill(template.pid, signal.SIGKILL)
        assert eventually(lambda: not alive(guest.pid))
        with pytest.raises(InfrastructureError, match="template"):
            template.spawn("script", {"source": ""})
        with pytest.raises(InfrastructureError, match="template"):
            guest.wait(5)


@pytest.mark.parametrize("rung", ["R0", "R1", "R2"])
def test_everything_dies_with_the_parent(templates, rung, tmp_path):
    templates(rung)
    marker = f"orphan-{os.getpid()}-{time.monotonic_ns()}"
    program = f"""
import sys, time
from pathlib import Path
from cuda_l1.evaluator.environment import guest_environment
from cuda_l1.evaluator.findings.observed import STOLEN_S
from cuda_l1.evaluator.processes import Template
template = Template.start(guest_environment(), rung={rung!r}, role_folder=Path({str(ROLES)!r}))
source = '''
import subprocess
subprocess.Popen(["python3", "-S", "-c", "import time; time.sleep(600)", {marker!r}], start_new_session=True)
channel.send({{}})
while True: pass
'''
guest = template.spawn("script", {{"source": source}})
guest.channel.receive(30)
print(template.pid, guest.pid, flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    pids = [int(text) for text in parent.stdout.readline().split()]
    assert len(pids) == 2 and len(processes_with(marker)) >= 1
    parent.kill()
    parent.communicate()
    assert eventually(lambda: not any(map(alive, pids)))
    assert eventually(lambda: not processes_with(marker))


def test_what_a_template_has_found_out_its_guests_know(ask):
    functions = ("mimetypes:init", "os:no_such_function", "zlib:crc32")  # the last two fail
    with Template.start(guest_environment(), rung="R0", role_folder=ROLES, preload=functions) as template:
        answer = ask(template, "import mimetypes\nchannel.send({'known': mimetypes.inited})")
    assert answer == {"known": True}


def test_a_role_that_does_not_exist_and_a_template_that_cannot_start(templates):
    with pytest.raises(InfrastructureError, match="could not be confined"):
        templates("R0").spawn("no-such-role", {}).pid  # noqa: B018
    with pytest.raises(InfrastructureError, match="did not start"):
        Template.start({"LD_PRELOAD": "", "PATH": ""}, rung="R0", role_folder=Path(__file__).parent / "broken_roles")


def test_a_rung_asked_for_by_name_must_work(monkeypatch):
    from cuda_l1.evaluator.guest import probe

    monkeypatch.setattr(probe, "highest_rung", lambda: ("R1", {"R2": "unshare: Operation not permitted"}))
    assert choose_rung("auto") == "R1" and choose_rung("R0") == "R0" and choose_rung("R1") == "R1"
    with pytest.raises(InfrastructureError, match=r"refuses sandbox rung R2: unshare.*to allow it: "):
        choose_rung("R2")


def test_the_parent_imports_no_torch():
    code = "import sys, cuda_l1.evaluator.processes, cuda_l1.evaluator.environment; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_limits_are_within_those_that_we_were_started_with() -> None:
    asked = """
    import resource
    from cuda_l1.evaluator.guest import life

    for kind, hard in ((resource.RLIMIT_FSIZE, 1 << 20), (resource.RLIMIT_NOFILE, 64)):
        resource.setrlimit(kind, (hard, hard))
    life._set_limits(1 << 30)
    print(*resource.getrlimit(resource.RLIMIT_FSIZE), *resource.getrlimit(resource.RLIMIT_NOFILE))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(asked)], capture_output=True, text=True)
    assert done.stdout.split() == [str(1 << 20)] * 2 + ["64"] * 2, done.stderr
