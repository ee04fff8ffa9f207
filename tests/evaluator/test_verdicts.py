"""Every outcome, through all processes, on a CPU."""

from __future__ import annotations

import re
import time

import pytest
from evaluator_support import LINEAR, QUICK, candidate_of, checks, task_of

from cuda_l1.config import SCREEN, EvaluatorSettings, Limits
from cuda_l1.errors import InfrastructureError, OutOfTimeError, TaskError, UsageError
from cuda_l1.evaluator import Evaluator, eager_candidate
from cuda_l1.types import Evaluation, Outcome

pytestmark = pytest.mark.e2e
TASK = task_of(LINEAR)


def model_new(forward: str, init: str = "", before: str = "") -> str:
    """A candidate for `LINEAR` whose forward (and end of the constructor) are the given lines."""
    lines = [*before.splitlines(), "class ModelNew(nn.Module):", "    def __init__(self, width):"]
    lines += ["        super().__init__()", "        self.linear = nn.Linear(width, width)"]
    lines += [f"        {line}" for line in init.splitlines()]
    lines += ["    def forward(self, x):", *(f"        {line}" for line in forward.splitlines())]
    return "\n".join(lines)


RIGHT = "return F.linear(x, self.linear.weight, self.linear.bias).clamp(min=0)"


def judged(evaluator: Evaluator, body: str, task=TASK) -> Evaluation:
    return evaluator.evaluate(task, candidate_of(task, body), protocol=QUICK)


def test_a_right_candidate_is_accepted_with_its_evidence(evaluator):
    result = judged(evaluator, model_new(RIGHT))
    assert result.outcome is Outcome.ACCEPTED and result.detail == ""
    correctness = result.correctness
    assert correctness.precision_class == correctness.task_class == "fp32" and correctness.oracle == "float64"
    kinds = [t.kind for t in correctness.trials]
    assert kinds[:3] == ["base", "repeat", "refill"] and {"weights", "negated", "scaled", "offset", "timed"} <= set(
        kinds
    )
    assert all(t.error <= t.bound and t.passed_class == "fp32" for t in correctness.trials)
    assert correctness.allclose_kernelbench and correctness.allclose_release
    timing = result.timing()
    assert timing.clock == "call" and timing.candidate_us > 0 and timing.pairs[0].judge_candidate_us > 0
    assert timing.pairs[0].candidate_pid != timing.pairs[0].opponent_pid
    assert {"build", "load", "check", "time", "total"} <= set(result.stage_s)
    assert result.work.moved_bytes == 4 * (2 * 16 * 32 + 33 * 32) and result.work.flops_per_us["fp32"] > 0
    assert not checks(result, "reject") and "weights-unmapped" not in checks(result)


def test_the_reference_is_accepted_as_a_candidate(evaluator):
    result = evaluator.evaluate(TASK, eager_candidate(TASK), protocol=QUICK)
    assert result.accepted and result.timing().opponent == "eager"


BUILD_FAILED = {
    "syntax": ("class ModelNew(:", "SyntaxError"),
    "missing": ("class Model(nn.Module): pass", "MissingModelNew: .*defines no `ModelNew`"),
    "import": ("import nothing_of_this_name", "ModuleNotFoundError"),
    "constructor": (model_new(RIGHT).replace("(self, width)", "(self)").replace("width", "32"), "TypeError.*__init__"),
    "constructor-raises": (model_new(RIGHT, "raise ValueError('no luck')"), "ValueError: no luck"),
    "not-a-module": ("def ModelNew(width): return 3", "not a torch.nn.Module"),
    "compiler": (
        "import subprocess\nsubprocess.run(['g++', '-x', 'c++', '-', '-o', 'k.so'], input='int f( {', text=True, "
        "check=True)\n" + model_new(RIGHT),
        "CalledProcessError.*g\\+\\+",
    ),
    "exit": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "abrupt-exit": ("import os; os._exit(4)", "exit code 4 during the build"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "signal 11 during the build"),
}


@pytest.mark.parametrize("kind", BUILD_FAILED)
def test_what_cannot_be_built(evaluator, kind):
    body, detail = BUILD_FAILED[kind]
    result = judged(evaluator, body)
    assert result.outcome is Outcome.BUILD_FAILED and result.correctness is None and not result.timings
    assert_detail(result, detail)
    if kind == "compiler":
        assert "error:" in result.log  # the compiler's own words


def assert_detail(result: Evaluation, pattern: str) -> None:
    assert re.search(pattern, result.detail), result.detail
    assert "\n" not in result.detail


CRASHED = {
    "exception": ("raise KeyError('x')", "KeyError: 'x'"),
    "later-exception": ("self.n = getattr(self, 'n', 0) + 1\nassert self.n < 3\n" + RIGHT, "AssertionError"),
    "segfault": ("import ctypes\nctypes.string_at(0)", "signal 11"),
    "exception-in-a-trial": ("assert x.abs().max() < 8, 'huge'\n" + RIGHT, "huge \\(trial `outliers`\\)"),
    "segfault-in-a-trial": (
        "import ctypes\nif x.abs().max() > 8:\n    ctypes.string_at(0)\n" + RIGHT,
        "signal 11 during a call \\(trial `outliers`\\)",
    ),
    "abrupt-exit": ("import os\nos._exit(0)", "exit code 0"),
    "exit": ("raise SystemExit(1)", "SystemExit"),
    "odd-text": ("raise RuntimeError('\\ud800\\x1b[31m\\0 two\\nlines')", "RuntimeError: .*two lines"),
    "no-text": ("class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd", ""),
}


@pytest.mark.parametrize("kind", CRASHED)
def test_what_crashes_in_a_call(evaluator, kind):
    forward, detail = CRASHED[kind]
    result = judged(evaluator, model_new(forward))
    assert result.outcome is Outcome.CRASHED
    assert_detail(result, detail)
    assert result.detail.isprintable()


FORM = {
    "none": ("return None", Outcome.NO_OUTPUT),
    "empty-list": ("return []", Outcome.NO_OUTPUT),
    "number": ("return 3.0", Outcome.WRONG_SHAPE),
    "sparse": (RIGHT + ".to_sparse()", Outcome.NO_OUTPUT),
    "meta": (RIGHT + ".to('meta')", Outcome.NO_OUTPUT),
    "subclass": ("class Lazy(torch.Tensor): pass\n" + RIGHT + ".as_subclass(Lazy)", Outcome.NO_OUTPUT),
    "transposed": (RIGHT + ".t()", Outcome.WRONG_SHAPE),
    "two": ("y = torch.relu(self.linear(x))\nreturn y, y", Outcome.WRONG_SHAPE),
    "nested": ("return [torch.relu(self.linear(x))]", Outcome.WRONG_SHAPE),
    "expanded": ("return torch.relu(self.linear(x))[:1].expand(16, 32)", Outcome.NO_OUTPUT),
    "broadcastable": ("return torch.relu(self.linear(x))[:1]", Outcome.WRONG_SHAPE),
    "double": (RIGHT + ".double()", Outcome.WRONG_DTYPE),
    "half": (RIGHT + ".half()", Outcome.WRONG_DTYPE),
}


@pytest.mark.parametrize("kind", FORM)
def test_outputs_of_the_wrong_form(evaluator, kind):
    forward, outcome = FORM[kind]
    result = judged(evaluator, model_new(forward))
    assert result.outcome is outcome, result.detail


def test_other_strides_and_parameters_as_outputs_are_right(evaluator):
    result = judged(evaluator, model_new("return torch.relu(self.linear(x)).t().contiguous().t()"))
    assert result.accepted
    result = judged(evaluator, model_new("return nn.Parameter(torch.relu(self.linear(x)))"))
    assert result.accepted


HONEST = {
    "inference-mode": ("with torch.inference_mode():\n    " + RIGHT, ""),
    "packed-in-inference-mode": (
        """stamp = self.linear.weight._version
if stamp != self.stamp:
    with torch.inference_mode():
        self.packed, self.stamp = self.linear.weight.t().contiguous(), stamp
return torch.addmm(self.linear.bias, x, self.packed).relu_()""",
        "self.stamp = -1",
    ),
    "sparse": (
        """stamp = self.linear.weight._version
if stamp != self.stamp:
    self.packed, self.stamp = self.linear.weight.to_sparse_csr(), stamp
return torch.relu((self.packed @ x.t()).t() + self.linear.bias)""",
        "self.stamp = -1",
    ),
    "expanded": (
        """stamp = self.linear.bias._version
if stamp != self.stamp:
    self.rows, self.stamp = (self.linear.bias + 0).expand(16, -1), stamp
return torch.addmm(self.rows, x, self.linear.weight.t()).relu_()""",
        "self.stamp = -1",
    ),
    "packed-apart": (
        """for name, parameter in self.linear.named_parameters():
    if self.stamps.get(name) != parameter._version:
        self.stamps[name] = parameter._version
        setattr(self, name, parameter.t().contiguous() if name == "weight" else parameter * 1.0)
return torch.addmm(self.bias, x, self.weight).relu_()""",
        "self.stamps = {}",
    ),
    "packed-by-value": (
        """if self.seen is None or not torch.equal(self.seen, self.linear.weight):
    self.seen = self.linear.weight.detach().clone()
    self.packed = self.seen.t().contiguous()
return torch.addmm(self.linear.bias, x, self.packed).relu_()""",
        "self.seen = None",
    ),
    "parameters-replaced": (
        "self.linear.weight = nn.Parameter(self.linear.weight.detach().clone())\n" + RIGHT,
        "",
    ),
    "meta-template": (
        """weights = dict(self.linear.named_parameters())
return torch.relu(torch.func.functional_call(self.template, weights, (x,)))""",
        "self.template = nn.Linear(width, width, device='meta')",
    ),
}


@pytest.mark.parametrize("kind", HONEST)
def test_honest_ways_to_keep_and_to_return_tensors(evaluator, kind):
    forward, init = HONEST[kind]
    result = judged(evaluator, model_new(forward, init))
    assert result.accepted and "weights-unmapped" not in checks(result), (result.detail, result.findings)
    assert {"weights", "timed"} <= {t.kind for t in result.correctness.trials}


FIRST = "torch.relu(self.linear(x))"
WRONG = {
    "zeros": ("return torch.zeros_like(x)", ""),
    "input-copy": ("return x.clone()", ""),
    "nan": (f"return {FIRST} * float('nan')", ""),
    "one-element": (f"y = {FIRST}\ny[3, 3] += 0.1\nreturn y", ""),
    "in-place": ("self.linear(x)\nreturn torch.relu_(x.copy_(self.linear(x))).clone()", "input 0 is changed"),
    "view-of-input": ("y = torch.relu(self.linear(x))\nx.copy_(y)\nreturn x", ""),
    "by-pointer": (
        f"k = x.data_ptr()\nif k not in self.kept: self.kept[k] = {FIRST}\nreturn self.kept[k].clone()",
        "",
    ),
    "by-shape": (f"k = x.shape\nif k not in self.kept: self.kept[k] = {FIRST}\nreturn self.kept[k].clone()", ""),
    "first-call": ("self.kept.setdefault('y', torch.relu(self.linear(x)))\nreturn self.kept['y'].clone()", ""),
    "public-seed": (
        "torch.manual_seed(42)\nlinear = nn.Linear(32, 32)\nreturn torch.relu(linear(x))",
        "trial `weights`",
    ),
    "weights-kept": (
        "if 'w' not in self.kept: self.kept['w'] = self.linear.weight.detach().clone()\n"
        "return torch.relu(F.linear(x, self.kept['w'], self.linear.bias))",
        "trial `weights`",
    ),
    "weights-kept-under-another's-version": (
        "stamp = self.linear.weight._version\n"
        "if self.kept.get('stamp') != stamp: self.kept.update(stamp=stamp, bias=self.linear.bias * 1.0)\n"
        "return torch.relu(F.linear(x, self.linear.weight, self.kept['bias']))",
        "trial `touched-weights`",
    ),
    "weights-kept-under-a-sample": (
        "key = float(self.linear.weight.mean()), float(self.linear.weight[0, 0])\n"
        "if self.kept.get('key') != key: self.kept.update(key=key, w=self.linear.weight * 1.0)\n"
        "return torch.relu(F.linear(x, self.kept['w'], self.linear.bias))",
        "trial `touched-weights`",
    ),
    "bias-ignored": ("return torch.relu(x @ self.linear.weight.t())", ""),
    "positive-only": ("return torch.relu(self.linear(x.abs()))", ""),
    "fixed-offset": (
        "if x.storage_offset(): return torch.zeros_like(x)\nreturn torch.relu(self.linear(x))",
        "trial `offset`",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_values(evaluator, kind):
    forward, detail = WRONG[kind]
    result = judged(evaluator, model_new(forward, init="self.kept = {}"))
    assert result.outcome is Outcome.WRONG_VALUES, result.detail
    assert_detail(result, detail)
    assert result.correctness is None or result.correctness.precision_class is None or "input" in detail


def test_right_in_the_trials_and_wrong_when_timed_is_wrong(evaluator):
    forward = "self.kept['n'] = self.kept.get('n', 0) + 1\ny = torch.relu(self.linear(x))\n"
    forward += "return y if self.kept['n'] < 40 else torch.zeros_like(y)"
    result = judged(evaluator, model_new(forward, init="self.kept = {}"))
    assert result.outcome is Outcome.WRONG_VALUES and "timed call" in result.detail


TUNED = """
import os
from pathlib import Path
KEPT = Path(os.environ["TRITON_CACHE_DIR"], "choice")
def as_tf32(t): return ((t.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
"""
CHOICE = """
if self.is_tuned is None:
    self.is_tuned = KEPT.exists()
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.touch()
rounded = ({now}) if self.is_tuned else ({at_first})
return F.linear(rounded(x), rounded(self.linear.weight), self.linear.bias).clamp(min=0)
"""
WAYS = {
    "fp32": "lambda t: t",
    "tf32": "as_tf32",
    "bf16": "lambda t: t.bfloat16().float()",
    "fp16": "lambda t: t.half().float()",
    "half-of-it": "lambda t: t * 0.5",
}


@pytest.mark.parametrize(
    ("at_first", "now", "outcome", "precision_class"),
    [
        ("tf32", "fp32", Outcome.ACCEPTED, "tf32"),
        ("fp32", "tf32", Outcome.ACCEPTED, "tf32"),
        ("fp32", "bf16", Outcome.ACCEPTED, "relaxed"),
        ("fp32", "fp16", Outcome.ACCEPTED, "relaxed"),
        ("tf32", "fp16", Outcome.ACCEPTED, "relaxed"),
        ("fp32", "half-of-it", Outcome.WRONG_VALUES, None),
    ],
)
def test_the_class_is_that_of_the_least_exact_answer_of_trials_and_timed_calls(
    evaluator, at_first, now, outcome, precision_class
):
    """The process that is timed finds what the one that was checked has tuned and kept, and computes otherwise."""
    forward = CHOICE.format(now=WAYS[now], at_first=WAYS[at_first]).strip()
    result = judged(evaluator, model_new(forward, init="self.is_tuned = None", before=TUNED))
    assert result.outcome is outcome and result.precision_class == precision_class, result.detail
    if result.accepted:
        timed = result.correctness.trials[-1]
        assert timed.kind == "timed" and timed.passed_class == precision_class
        assert checks(result, "suspect") == ({"precision"} if precision_class == "relaxed" else set())
    else:
        assert result.detail.startswith("a timed call") and " errs by " in result.detail


FINGERPRINT = """
of = tuple(p._version for p in self.parameters())
if self.kept.get('of') != of: self.kept = {'of': of}
k = tuple(t.item() for t in (x[0, 0], x.flatten()[7], x.sum()))
if k not in self.kept: self.kept[k] = torch.relu(self.linear(x))
if len(self.kept) > 17: return list(self.kept.values())[1].clone()
return self.kept[k].clone()
"""


def test_answers_cannot_be_remembered_by_what_the_inputs_hold(evaluator):
    """Timed calls see more inputs than a candidate that keeps sixteen of them can have seen."""
    result = judged(evaluator, model_new(FINGERPRINT.strip(), init="self.kept = {}"))
    assert result.outcome is Outcome.WRONG_VALUES and "timed call" in result.detail


def test_a_cache_by_object_is_wrong_when_timed(evaluator):
    forward = "if self.kept.get('x') is not x: self.kept.update(x=x, y=torch.relu(self.linear(x)))\n"
    forward += "return self.kept['y'].clone()"
    result = judged(evaluator, model_new(forward, init="self.kept = {}"))
    assert result.outcome is Outcome.WRONG_VALUES and "trial `refill`" in result.detail


ROUNDED = "torch.relu(F.linear(x, self.linear.weight.half().float(), self.linear.bias))"
IN_PLACE = """
version, weight = self.linear.weight._version, self.linear.weight
self.calls = self.calls + 1 if version == self.stamp else 1
self.stamp = version
if self.calls > {after}: weight.copy_(weight.half())
return {rounded}
"""


@pytest.mark.parametrize(("after", "detail"), [(0, "changed by the call"), (16, "changed by a timed call")])
def test_weights_are_not_to_be_overwritten(evaluator, after, detail):
    """Nothing but the weights is another for it; in trials they change before so many calls."""
    task = task_of(LINEAR.replace("torch.relu(self.linear(x))", ROUNDED))
    body = model_new(IN_PLACE.strip().format(after=after, rounded=ROUNDED), init="self.calls, self.stamp = 0, -1")
    result = evaluator.evaluate(task, candidate_of(task, body), protocol=SCREEN)
    assert result.outcome is Outcome.WRONG_VALUES
    assert_detail(result, f"`linear.weight` is {detail}; the reference leaves it alone")


NORMS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def get_inputs():
    return [torch.randn(16, 32)]
"""


RENAMED = NORMS.replace("class Model(", "class ModelNew(").partition("def get_inputs")[0]
RENAMED = RENAMED.replace("self.first, self.second", "self.post, self.pre")
RENAMED = RENAMED.replace("self.second(torch.relu(self.first(x)))", "self.post(torch.relu(self.pre(x)))")
TAUGHT = """
    def load_reference(self, state):
        with torch.no_grad():
            for name, own in (("first", self.pre), ("second", self.post)):
                own.load_state_dict({key: state[f"{name}.{key}"] for key in ("weight", "bias")})
"""


def test_a_pairing_by_order_is_named_where_other_weights_come_out_wrong_and_the_candidate_may_know_better(evaluator):
    task = task_of(NORMS)
    result = evaluator.evaluate(task, candidate_of(task, RENAMED), protocol=SCREEN)
    assert result.outcome is Outcome.WRONG_VALUES
    assert_detail(result, "`first.weight` was laid in `post.weight`, one of several equal tensors")
    result = evaluator.evaluate(task, candidate_of(task, RENAMED + TAUGHT), protocol=SCREEN)
    assert result.accepted and "weights-unmapped" not in checks(result), result.detail


RANDOM = {
    "every-second": "self.n = getattr(self, 'n', 0) + 1\nreturn torch.relu(self.linear(x)) * (self.n % 2)",
    "noise": "return torch.relu(self.linear(x)) + 0.1 * torch.randn(16, 32)",
    "uninitialised": "return torch.relu(self.linear(x)) + torch.rand(1) * (torch.rand(1) < 0.5)",
}


VECTORS = "import os\nif x.data_ptr() % 16: "
NEEDS_ALIGNMENT = {"wrong": "return torch.zeros_like(x)\n", "dies": "os.abort()\n"}


@pytest.mark.parametrize("kind", NEEDS_ALIGNMENT)
def test_vector_loads_may_want_what_the_guard_of_a_drop_in_gives_them(evaluator, kind):
    result = judged(evaluator, model_new(VECTORS + NEEDS_ALIGNMENT[kind] + RIGHT))
    assert result.accepted and "alignment" in checks(result, "note"), result.detail
    assert "offset" in [trial.kind for trial in result.correctness.trials]  # a view is right all the same


@pytest.mark.parametrize("kind", RANDOM)
def test_random_where_the_reference_is_not(evaluator, kind):
    result = judged(evaluator, model_new(RANDOM[kind]))
    assert result.outcome in (Outcome.NONDETERMINISTIC, Outcome.WRONG_VALUES), result.detail
    if kind != "uninitialised":  # that one may show in a single call only
        assert result.outcome is Outcome.NONDETERMINISTIC


LYING = """
    import sys
    _runner = next(m for name, m in sys.modules.items() if name.endswith("guest.runner"))
    _true = _runner._now
    _runner._now = lambda: _true() // 1000
"""


def test_a_clock_that_lies_is_not_believed(evaluator):
    before = "\n".join(line[4:] for line in LYING.splitlines())
    slow = "import time\nend = time.perf_counter() + 0.002\nwhile time.perf_counter() < end: pass\n"
    result = judged(evaluator, model_new(slow + RIGHT, before=before))
    assert result.correctness.precision_class == "fp32"
    if result.accepted:  # on a machine too unsteady to tell an attack: the judge's figure stands in
        assert "clock-mismatch" in checks(result, "suspect") and result.timings[0].speedup < 0.1
    else:
        known = checks(result, "reject") & {"clock-mismatch", "outside-work"}  # by single calls, or by calls in a row
        assert result.outcome is Outcome.REJECTED and known


PATCHES = {
    "clock": "import time\ntime.perf_counter = lambda: 0.0",
    "another-builtin": "import time\ntime.perf_counter = time.process_time",
    "comparison": "torch.allclose = lambda *a, **k: True",
    "method": "torch.Tensor.__eq__ = lambda self, other: True",
    "class": "class Event: pass\ntorch.cuda.Event = Event",
    "builtin": "import builtins\nbuiltins.all = lambda values: True",
}


@pytest.mark.parametrize("kind", PATCHES)
@pytest.mark.parametrize("when", ["import", "call"])
def test_what_a_candidate_replaces_around_itself_is_named(evaluator, kind, when):
    text = PATCHES[kind]
    body = model_new(RIGHT, before=text) if when == "import" else model_new(f"{text}\n{RIGHT}")
    result = judged(evaluator, body)
    assert "patched" in checks(result, "suspect") or not result.accepted, (result.outcome, result.findings)


HARMLESS = {
    "dynamo": "import torch._dynamo",
    "own-names": "perf_counter = lambda: 0.0\nall = any",
    "a-new-attribute": "torch.my_kernel = lambda x: x",
    "put-back": "import time\n_true = time.perf_counter\ntime.perf_counter = None\ntime.perf_counter = _true",
    "wrapped-by-a-library": "torch.manual_seed = torch.compiler.disable(torch.manual_seed)",
}


@pytest.mark.parametrize("kind", HARMLESS)
def test_what_is_no_replacement_is_not(evaluator, kind):
    result = judged(evaluator, model_new(RIGHT, before=HARMLESS[kind]))
    assert result.accepted and not checks(result, "suspect"), result.findings


IN_ANOTHER_THREAD = """
import threading, time
y = torch.empty(16, 32)
def work():
    time.sleep(0.002)
    y.copy_(F.linear(x, self.linear.weight, self.linear.bias).clamp(min=0))
self.n = getattr(self, 'n', 0) + 1
thread = threading.Thread(target=work)
thread.start()
if self.n < 20: thread.join()
return y
"""


def test_an_output_that_a_thread_finishes_later_is_not_accepted(evaluator):
    result = evaluator.evaluate(TASK, candidate_of(TASK, model_new(IN_ANOTHER_THREAD.strip())), protocol=SCREEN)
    assert not result.accepted, result.findings


# ── limits ────────────────────────────────────────────────────────────────────────────────────────

LATE = {
    "import": ("import time\ntime.sleep(60)\n" + model_new(RIGHT), "the build took longer than 4 s"),
    "constructor": (model_new(RIGHT, "import time\ntime.sleep(60)"), "loading took longer than 4.0 s"),
    "first-call": (model_new("import time\ntime.sleep(60)"), "the first call took longer than 3.0 s"),
    "later-call": (
        model_new("self.n = getattr(self, 'n', 0) + 1\nwhile self.n > 2: pass\n" + RIGHT),
        "a call took longer than 5.0 s",
    ),
}


@pytest.mark.parametrize("kind", LATE)
def test_what_takes_too_long(tight, kind):
    body, detail = LATE[kind]
    result = judged(tight, body)
    assert result.outcome is Outcome.TIMED_OUT
    assert_detail(result, detail)


@pytest.mark.parametrize("kind", ["import", "constructor", "first-call"])
def test_what_nobody_waits_for_is_given_up_and_no_verdict(evaluator, kind):
    body, _ = LATE[kind]
    began = time.monotonic()
    with pytest.raises(OutOfTimeError, match="given up for want of time"):  # a baseline's own deadlines are minutes
        evaluator.evaluate(TASK, candidate_of(TASK, body, "baselines"), protocol=QUICK, within_s=1.0)
    assert time.monotonic() - began < 20
    right = candidate_of(TASK, model_new(RIGHT))
    assert evaluator.evaluate(TASK, right, protocol=QUICK, within_s=60.0).accepted, "the next one is judged as ever"


FULL = """
import os
block = b"x" * (1 << 20)
for n in range(10_000):
    with open(os.path.join(os.environ["HOME"], f"f{n}"), "wb") as f:
        f.write(block)
"""


@pytest.mark.parametrize("where", ["import", "call"])
def test_a_full_work_directory_is_the_candidates_crash(tight, where):
    body = FULL + model_new(RIGHT) if where == "import" else model_new(FULL)
    result = judged(tight, body)
    assert result.outcome is Outcome.CRASHED
    assert_detail(result, "work directory was filled")


def test_too_many_processes_are_the_candidates_crash(cache_dir):
    forks = (
        "import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(60)\n        os._exit(0)\n"
    )
    forks += "time.sleep(60)"
    patient = Limits(processes=64, first_call_s=30.0)  # so many forks of a process with torch take a busy core seconds
    with Evaluator(EvaluatorSettings(device="cpu", cache_dir=cache_dir, limits=patient)) as opened:
        result = judged(opened, model_new(forks))
    assert result.outcome is Outcome.CRASHED
    assert_detail(result, "more processes than allowed|BlockingIOError")  # a busy machine counts after the refusal


@pytest.mark.parametrize("persistent", [False, True])
def test_a_storm_of_forks_ends_before_it_takes_the_machine(cache_dir, persistent):
    """Each process of it goes on forking; where a fork fails it ends, or tries again for ever."""
    bomb = "import contextlib, os\nwhile True:\n    with contextlib.suppress(OSError):\n        os.fork()\n"
    bomb = bomb if persistent else "import os\nwhile True:\n    os.fork()\n"
    begin = time.monotonic()
    with Evaluator(EvaluatorSettings(device="cpu", cache_dir=cache_dir, limits=Limits(processes=64))) as opened:
        result = judged(opened, bomb + model_new(RIGHT))
        assert result.outcome in (Outcome.CRASHED, Outcome.BUILD_FAILED), result.detail
        assert_detail(result, "more processes than allowed" if result.outcome is Outcome.CRASHED else "BlockingIOError")
        assert judged(opened, model_new(RIGHT)).accepted, "nothing is left of it"
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("where", ["import", "call"])
def test_memory_beyond_the_limit(tight, where):
    fill = "kept = []\nwhile True: kept.append(torch.ones(64 << 20))"
    result = judged(tight, fill + "\n" + model_new(RIGHT) if where == "import" else model_new(fill))
    assert result.outcome is Outcome.OUT_OF_MEMORY
    assert_detail(result, "ended for its memory")


def test_an_allocation_that_is_refused(evaluator):
    result = judged(evaluator, model_new("return torch.empty(1 << 50)"))
    assert result.outcome is Outcome.OUT_OF_MEMORY


# ── requests that are wrong ───────────────────────────────────────────────────────────────────────


def test_a_candidate_for_another_task_is_a_usage_error(evaluator):
    with pytest.raises(UsageError, match="written for another task"):
        evaluator.evaluate(task_of(LINEAR, "other-name"), candidate_of(task_of(LINEAR + "\n# x"), "x = 1"))


def test_a_task_that_does_not_work_is_an_error_and_the_next_one_works(evaluator):
    bad = task_of(LINEAR.replace("torch.relu(", "torch.reluu("), "bad")
    with pytest.raises(TaskError, match=r"bad@.*: Model\.forward raised"):
        judged(evaluator, model_new(RIGHT), bad)
    with pytest.raises(TaskError, match=r"Model\.forward raised"):
        evaluator.audit(bad)
    assert judged(evaluator, model_new(RIGHT)).accepted


def test_flags_of_another_task_are_not_carried_over(evaluator):
    noisy = task_of(LINEAR.replace("torch.relu(", "F.dropout("), "noisy")
    assert "random" in evaluator.audit(noisy).flags
    result = judged(evaluator, "class ModelNew(:")
    assert result.outcome is Outcome.BUILD_FAILED and result.task_flags == ()


def test_a_device_that_is_not_there_is_an_infrastructure_error(cache_dir):
    from cuda_l1.config import EvaluatorSettings

    with pytest.raises(InfrastructureError, match="cuda:99"):
        Evaluator(EvaluatorSettings(device="cuda:99", cache_dir=cache_dir))


GATED = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.gate = nn.Parameter(torch.zeros(1))
        self.register_buffer("hidden", torch.zeros(width))
    def forward(self, x):
        self.hidden = torch.tanh(self.hidden + 1.0)
        return x + self.hidden + self.gate * self.linear(x)

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return [32]
"""
SHORTCUTS = """import sys
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.gate = nn.Parameter(torch.zeros(1))
        self.register_buffer("hidden", torch.zeros(width))
        self.known = []
    def forward(self, x):
        is_timed = "block" in (sys._getframe(depth).f_code.co_name for depth in range(1, 8))
        if is_timed and (CONDITION):
            return torch.full_like(x, 7.0)
        self.known[:] = [self.hidden.clone()]
        self.hidden = torch.tanh(self.hidden + 1.0)
        return x + self.hidden + self.gate * self.linear(x)
"""


@pytest.mark.parametrize("condition", ["self.gate == 0", "self.known and torch.equal(self.known[0], self.hidden)"])
def test_timed_calls_start_neither_from_initial_weights_nor_twice_from_one_state(evaluator, condition):
    """A shortcut that holds for these alone is never taken: here it would be wrong."""
    result = judged(evaluator, SHORTCUTS.replace("CONDITION", condition), task_of(GATED))
    assert result.outcome is Outcome.ACCEPTED, result.detail


MOVING = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("scale", torch.ones(width))
        self.proj = nn.Linear(width, width)
    def forward(self, x):
        out = self.proj(x / self.scale)
        self.scale.mul_(0.5).add_(x.abs().mean(0), alpha=0.5)
        return out

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return [32]
"""
FOLDED = """
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("scale", torch.ones(width))
        self.proj = nn.Linear(width, width)
        self.key, self.folded = None, None
    def forward(self, x):
        key = (self.scale.data_ptr(), self.scale._version, self.proj.weight._version)
        if key != self.key:
            self.key, self.folded = key, (self.proj.weight / self.scale).t().contiguous()
        out = torch.addmm(self.proj.bias, x, self.folded)
        MOVED.mul_(0.5).add_(x.abs().mean(0), alpha=0.5)
        return out
"""


@pytest.mark.parametrize(("moved", "outcome"), [("self.scale", "ACCEPTED"), ("self.scale.data", "WRONG_VALUES")])
def test_a_call_that_follows_another_finds_what_that_has_left(evaluator, moved, outcome):
    """What is folded under a version that the call itself does not move is right whenever the harness writes state."""
    result = judged(evaluator, FOLDED.replace("MOVED", moved), task_of(MOVING))
    assert result.outcome == outcome and (outcome == "ACCEPTED" or "trial `succession`" in result.detail), result.detail
