"""A runner replaced by a program that sends whatever it likes is never ACCEPTED with wrong outputs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest
from evaluator_support import LINEAR, QUICK, candidate_of, checks, task_of

from cuda_l1.types import Candidate, Evaluation, Outcome

pytestmark = pytest.mark.e2e
TASK = task_of(LINEAR)

HONEST = """
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        {before}
        return torch.relu(self.linear(x))
"""

SOCKETS = """
import gc, json, os, random, socket, stat, time

ROLE = open("/proc/self/comm").read().strip()

def channel():
    for fd in range(3, 100):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                return socket.socket(fileno=os.dup(fd))
        except OSError:
            pass

def say(message):
    channel().send(b"J" + json.dumps(message).encode())
"""


def honest() -> Candidate:
    return candidate_of(TASK, HONEST.format(before="pass"))


@pytest.fixture(scope="module", autouse=True)
def _an_honest_one_is_accepted_after_all_of_them(evaluator) -> Iterator[None]:
    yield
    assert evaluator.evaluate(TASK, honest(), protocol=QUICK).accepted


def verdict(evaluator, *parts: str) -> Evaluation:
    """The candidate made of these parts; afterwards an honest one must pass the trials of the same evaluator."""
    body = "\n".join(textwrap.dedent(part) for part in parts)
    result = evaluator.evaluate(TASK, candidate_of(TASK, body), protocol=QUICK)
    assert evaluator.verify(TASK, honest()).outcome is Outcome.ACCEPTED
    return result


BYTES = {
    "noise": "channel().send(os.urandom(200))",
    "empty-object": "say({})",
    "list": "channel().send(b'J[1]')",
    "deep": "channel().send(b'J' + b'[' * 20000)",
    "descriptors": "socket.send_fds(channel(), [b'J{}'], [0, 1, 2])",
    "error-number": "say({'error': 5})",
    "error-odd": "say({'error': {'type': [1], 'message': {'a': None}, 'memory': 'x'}})",
    "surrogate": "say({'error': {'type': 'E', 'message': '\\ud800\\0'}})",
    "flood": "[channel().send(b'J{}') for _ in range(30)]",
    "closed": "[os.close(fd) for fd in range(3, 20) if os.path.exists(f'/proc/self/fd/{fd}')]",
}


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("role", ["build", "runner"])
def test_bytes_at_import(evaluator, role, kind):
    attack = f"if ROLE == 'cuda-l1-{role}':\n    {BYTES[kind]}\n    time.sleep(0.05)\n"
    wrong = HONEST.format(before="return torch.zeros_like(x)")
    result = verdict(evaluator, SOCKETS, attack, wrong)
    assert not result.accepted and result.detail.isprintable(), result


@pytest.mark.parametrize("kind", ["noise", "empty-object", "error-odd", "flood"])
def test_bytes_in_a_call(evaluator, kind):
    result = verdict(evaluator, SOCKETS, HONEST.format(before=f"{BYTES[kind]}; return torch.zeros_like(x)"))
    assert not result.accepted and result.detail.isprintable()


IMPOSTOR = """
def runner():
    return next(o for o in gc.get_objects() if type(o).__name__ == "Runner")

class Impostor:
    \"\"\"Answers every operation of the judge's itself, with well-formed replies.\"\"\"

    def __init__(self):
        self.runner, self.end = runner(), channel()
        self.seen, self.calls = None, 0
        self.serve({"op": "load"})

    def hear(self):
        packet, fds, _, _ = socket.recv_fds(self.end, 1 << 20, 8)
        if not packet:
            os._exit(0)
        return json.loads(packet[1:])

    def serve(self, message):
        while True:
            reply = getattr(self, message["op"], lambda message: {})(message)
            self.end.send(b"J" + json.dumps(reply).encode())
            message = self.hear()

    def match(self, message):
        return {"unmapped": []}

    def inputs(self, message):
        self.shown = message["value"]["$list"][0]
        return {}

    def flat(self, buffer, at):
        return buffer.bytes_at(at["at"], 16 * 32 * 4 + 4 * at["skip"]).view(torch.float32)[at["skip"]:]

    def put(self, slots):
        self.calls += 1
        for slot in slots:
            self.fill(self.flat(self.runner._outputs, slot), self.flat(self.runner._inputs, self.shown))
            self.last = self.flat(self.runner._outputs, slot).clone()

    def held(self, message):
        for slot in message["slots"]:
            self.flat(self.runner._outputs, slot).copy_(self.last)
        return {"state": False}

    def call(self, message):
        self.put(message["slots"])
        return {"structure": "T", "reused": False, "us": 0.1, "outputs": [
            {"dtype": "float32", "shape": [16, 32], "stride": [32, 1], "device": "cpu", "alias": False}]}

    def block(self, message):
        for index in range(message["calls"]):
            if index:
                self.hear()
            self.put(message["slots"])
            if index + 1 < message["calls"]:
                self.end.send(b'J{"us": 0.1}')
        return {"samples": [0.1] * message["calls"]}

    def empty(self, message):
        return {"us": 0.1}

    def fill(self, out, x):
        FILL

if ROLE == "cuda-l1-runner":
    Impostor()
"""

MADE_UP = {
    "nothing": "pass",
    "zeros": "out.zero_()",
    "the-input": "out.copy_(x)",
    "relu-of-the-input": "out.copy_(x.clamp(min=0))",
    "once-right": "self.keep = getattr(self, 'keep', None) if self.calls > 1 else answer(x); out.copy_(self.keep)",
    "right-while-checked": "out.copy_(answer(x)) if self.calls < 10 else out.zero_()",
}
ANSWER = """
def answer(x):
    torch.manual_seed(42)
    linear = nn.Linear(32, 32)
    with torch.no_grad():
        return torch.relu(linear(x.view(16, 32))).flatten()
"""


@pytest.mark.parametrize("kind", MADE_UP)
def test_made_up_outputs_in_well_formed_replies(evaluator, kind):
    impostor = IMPOSTOR.replace("FILL", MADE_UP[kind])
    result = verdict(evaluator, SOCKETS, ANSWER, impostor, HONEST.format(before="pass"))
    assert result.outcome in (Outcome.WRONG_VALUES, Outcome.NONDETERMINISTIC), result.detail


def test_an_impostor_must_know_weights_that_it_was_never_told(evaluator):
    result = verdict(
        evaluator, SOCKETS, ANSWER, IMPOSTOR.replace("FILL", "out.copy_(answer(x))"), HONEST.format(before="pass")
    )
    assert result.outcome is Outcome.WRONG_VALUES and "trial `weights`" in result.detail


REPLAY = """
if ROLE == "cuda-l1-runner":
    def block(self, message, fds):
        \"\"\"Says that each call is finished before it has begun, with the outputs of the call before.\"\"\"
        end = channel()
        told = [b'J{"us": 0.1}', b"J{}"] * message["calls"]
        for reply in told[:-1]:
            end.send(reply)
        for _ in told[:-1]:
            end.recv(1 << 20)
        return {"form": []}

    operations = next(o for o in gc.get_objects() if type(o) is dict and "set_mode" in o and "block" in o
                      and getattr(o["block"], "__self__", None) is not None)
    operations["block"] = lambda message, fds: block(None, message, fds)
"""


def test_replies_before_the_calls(evaluator):
    finder = IMPOSTOR.split("class Impostor")[0]
    result = verdict(evaluator, SOCKETS, finder, REPLAY, HONEST.format(before="pass"))
    assert result.outcome is Outcome.WRONG_VALUES and "timed call" in result.detail, (result.outcome, result.detail)


SLOW_AND_DENIED = """
import sys

if ROLE == "cuda-l1-runner":
    harness = next(m for name, m in sys.modules.items() if name.endswith("guest.runner"))
    start, true = time.perf_counter_ns(), harness._now
    harness._now = lambda: 1000
"""


def test_time_that_does_not_pass_is_seen_from_outside(evaluator):
    # Twenty milliseconds, where the reference takes ten microseconds: more than a busy machine excuses.
    # Only calls that are timed take it: all others of a verdict would be most of the test.
    timed = "'block' in (sys._getframe(depth).f_code.co_name for depth in range(1, 8))"
    end = f"end = time.perf_counter() + 0.02 * ({timed})"
    slow = HONEST.format(before=f"{end}\n        while time.perf_counter() < end: pass")
    result = verdict(evaluator, SOCKETS, SLOW_AND_DENIED, slow)
    assert result.outcome is Outcome.REJECTED and "clock-mismatch" in checks(result, "reject")
