"""The exported file: what it contains, when it runs which forward, and that its parameters are the original's."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from cuda_l1.errors import CandidateError, TaskError
from cuda_l1.export.dropin import dropin_candidate, render_dropin
from cuda_l1.export.guard import MappingSpec, Spec, ValueSpec
from cuda_l1.export.probe import guard_for
from cuda_l1.types import Candidate, Environment, Origin, Task

PLACE = Environment(device="cpu", device_name="test", lane="0", rung="R0", torch=torch.__version__)

REFERENCE = """
import torch
import torch.nn as nn

SIZE = 8


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.register_buffer("shift", torch.ones(size))

    def forward(self, x, y):
        return self.fc(x) * y + self.shift


def get_inputs():
    return [torch.randn(4, SIZE), torch.randn(4, SIZE)]


def get_init_inputs():
    return [SIZE]
"""

# The optimised forward leaves a mark, so that a test sees which one ran.
SUBCLASS = (
    REFERENCE
    + """

CALLS = []


class ModelNew(Model):
    def __init__(self, size):
        super(ModelNew, self).__init__(size)
        self.packed, self.seen = None, -1

    def forward(self, x, y):
        CALLS.append(1)
        if self.seen != self.fc.weight._version:
            self.packed, self.seen = self.fc.weight.t().contiguous(), self.fc.weight._version
        return (x @ self.packed + self.fc.bias) * y + self.shift
"""
)

RENAMED = """
import torch

CALLS = []


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        layer = torch.nn.Linear(size, size)
        self.w, self.b = layer.weight, layer.bias
        self.register_buffer("ones", torch.ones(size))

    def forward(self, x, y):
        CALLS.append(1)
        return torch.nn.functional.linear(x, self.w, self.b) * y + self.ones
"""

LOADING = """
import torch

CALLS = []


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("table", torch.zeros(size + 2, size))

    def load_reference(self, state):
        self.table.copy_(torch.cat([state["fc.weight"].t(), state["fc.bias"][None], state["shift"][None]]))

    def forward(self, x, y):
        CALLS.append(1)
        return (x @ self.table[:-2] + self.table[-2]) * y + self.table[-1]
"""


def make_task(source: str = REFERENCE) -> Task:
    return Task(suite="file", name="linear", source=source)


def make_candidate(task: Task, source: str) -> Candidate:
    origin = Origin(proposer="techniques", techniques=("packing",))
    return Candidate(task_sha=task.sha, task_id=task.id, source=source, origins=(origin,))


def load(folder: Path, source: str) -> ModuleType:
    """The drop-in as a user imports it: from a file of its own."""
    path = folder / f"dropin_{abs(hash(source))}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def dropin(folder: Path, candidate: str = SUBCLASS, reference: str = REFERENCE) -> ModuleType:
    task = make_task(reference)
    return load(folder, render_dropin(task, make_candidate(task, candidate), guard_for(task, PLACE)))


def marked(reference: str, signature: str, result: str) -> str:
    """A candidate beside its reference that notes each construction and each call."""
    return f"""{reference}

CALLS, BUILT = [], []


class ModelNew(Model):
    def __init__(self):
        super(ModelNew, self).__init__()
        BUILT.append(1)

    def forward(self, {signature}):
        CALLS.append(1)
        return {result}
"""


def pair(module: ModuleType) -> tuple[torch.nn.Module, torch.nn.Module]:
    """(original, drop-in), equal weights."""
    torch.manual_seed(1)
    original = module.Model(*module.get_init_inputs())
    torch.manual_seed(1)
    return original, module.ModelNew(*module.get_init_inputs())


def check(module: ModuleType, original: torch.nn.Module, new: torch.nn.Module, *, fast: bool) -> None:
    inputs = module.get_inputs()
    before = len(module.CALLS)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(new(*inputs), original(*inputs))
    assert (len(module.CALLS) > before) == fast


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("candidate", [SUBCLASS, LOADING])
def test_an_optimiser_that_counts_no_versions_is_noticed(tmp_path: Path, candidate: str, fused: bool) -> None:
    module = dropin(tmp_path, candidate)
    original, new = pair(module)
    check(module, original, new, fast=True)
    for each in (original, new):
        optimizer = torch.optim.AdamW(each.parameters(), lr=0.1, fused=fused)
        for parameter in each.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    check(module, original, new, fast=True)


def test_a_method_of_the_users_keeps_its_name(tmp_path: Path) -> None:
    own = "".join(
        f"    def {name}(self):\n        self.{name}_ran = True\n\n" for name in ("refresh", "_original", "_owner")
    )
    calls = "        self.refresh(), self._original(), self._owner()\n"
    text = REFERENCE.replace("    def forward", f"{own}    def forward").replace(
        "torch.ones(size))\n", f"torch.ones(size))\n{calls}"
    )
    module = dropin(tmp_path, text + SUBCLASS.removeprefix(REFERENCE), text)
    original, new = pair(module)
    assert new.refresh_ran and new._original_ran and new._owner_ran
    check(module, original, new, fast=True)
    new._dropin_refresh()
    check(module, original, new, fast=True)


def test_a_nested_tensor_runs_the_original(tmp_path: Path) -> None:
    reference = REFERENCE.replace("self.fc(x) * y + self.shift", "torch.nn.functional.relu(x)")
    module = dropin(tmp_path, reference + "\nCALLS = []\n\nclass ModelNew(Model):\n    pass\n", reference)
    new = module.ModelNew(8)
    nested = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(3, 8)])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new(*module.get_inputs())
        assert new(nested, nested).is_nested
    assert new.report["fallbacks"] == {"arguments": 1}


def test_the_same_arguments_give_the_same_text_and_no_import_of_ours() -> None:
    task = make_task()
    candidate = make_candidate(task, SUBCLASS)
    first, second = (render_dropin(task, candidate, guard_for(task, PLACE)) for _ in range(2))
    assert first == second
    assert "cuda_l1" not in [line.split()[1] for line in first.splitlines() if line.startswith(("import ", "from "))]
    assert "import cuda_l1" not in first


def test_constructor_arguments_by_keyword(tmp_path: Path) -> None:
    listed, named = "    return [SIZE]\n", "    return {'size': SIZE}\n"
    module = dropin(tmp_path, SUBCLASS.replace(listed, named), REFERENCE.replace(listed, named))
    given = module.get_init_inputs()
    original, new = module.Model(**given), module.ModelNew(**given)
    new.load_state_dict(original.state_dict())
    check(module, original, new, fast=True)


@pytest.mark.parametrize(
    "statement", ["raise SystemExit(3)", "raise RuntimeError('3\\nmore')", "import no_such_module"]
)
def test_a_task_that_cannot_be_run_is_one_line(statement: str) -> None:
    with pytest.raises(TaskError, match=r"^the task cannot be run: .*(3|'no_such_module')$"):
        guard_for(make_task(f"{REFERENCE}\n\n{statement}\n"), PLACE)


def test_a_dropin_is_a_candidate_with_its_parent_named() -> None:
    task = make_task()
    candidate = make_candidate(task, SUBCLASS)
    made = dropin_candidate(task, candidate, guard_for(task, PLACE))
    assert made.id != candidate.id
    assert made.origins[0].parents == (candidate.id,)
    assert made.label == "packing"


@pytest.mark.parametrize("candidate", [SUBCLASS, RENAMED, LOADING], ids=["subclass", "renamed", "load_reference"])
def test_state_dict_keys_equal_the_originals_and_new_weights_are_used(tmp_path: Path, candidate: str) -> None:
    module = dropin(tmp_path, candidate)
    original, new = pair(module)
    assert list(new.state_dict()) == list(original.state_dict())
    check(module, original, new, fast=True)
    other = {name: torch.randn_like(t) for name, t in original.state_dict().items()}
    original.load_state_dict(other)
    new.load_state_dict(other)
    check(module, original, new, fast=True)
    with torch.no_grad():
        original.fc.weight.mul_(2)
        new.fc.weight.mul_(2)
    check(module, original, new, fast=True)


@pytest.mark.parametrize("candidate", [SUBCLASS, RENAMED], ids=["subclass", "renamed"])
def test_replaced_and_assigned_tensors_are_used(tmp_path: Path, candidate: str) -> None:
    module = dropin(tmp_path, candidate)
    original, new = pair(module)
    check(module, original, new, fast=True)
    other = {name: torch.randn_like(t) for name, t in original.state_dict().items()}
    original.load_state_dict(other)
    new.load_state_dict(other, assign=True)
    check(module, original, new, fast=True)
    original.fc = torch.nn.Linear(8, 8)
    new.fc = original.fc
    check(module, original, new, fast=True)


def test_a_constructor_that_packs_does_not_serve_old_weights(tmp_path: Path) -> None:
    eager = SUBCLASS.replace(
        "self.packed, self.seen = None, -1",
        "self.packed, self.seen = self.fc.weight.detach().t().contiguous(), self.fc.weight._version",
    )
    module = dropin(tmp_path, eager)
    original, new = pair(module)
    check(module, original, new, fast=True)


def test_without_a_partner_the_error_names_the_tensor(tmp_path: Path) -> None:
    module = dropin(tmp_path, RENAMED.replace("layer.weight", "torch.nn.Parameter(layer.weight.detach() + 1)"))
    _, new = pair(module)
    with torch.no_grad(), pytest.raises(RuntimeError, match=r"no tensor that stands for fc\.weight"):
        new(*module.get_inputs())


def odd(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape)


OTHER_CALLS = {
    "shape": lambda m, x, y: m(x[:2], y[:2]),
    "strides": lambda m, x, y: m(x.t().contiguous().t(), y),
    "alignment": lambda m, x, y: m(odd(x), y),
    "dtype": lambda m, x, y: m(x, y.double()),
    "arguments": lambda m, x, y: m(x, y=y),
}


@pytest.mark.parametrize("kind", OTHER_CALLS)
def test_an_unverified_call_runs_the_original_warns_once_and_is_counted(tmp_path: Path, kind: str) -> None:
    module = dropin(tmp_path)
    original, new = pair(module)
    check(module, original, new, fast=True)
    inputs = module.get_inputs()
    before = len(module.CALLS)
    with torch.no_grad():
        with pytest.warns(UserWarning, match=r"original forward runs .*report\['fallbacks'\]"):
            found = OTHER_CALLS[kind](new, *inputs)
        torch.testing.assert_close(found, OTHER_CALLS[kind](original, *inputs))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            OTHER_CALLS[kind](new, *inputs)
    assert len(module.CALLS) == before
    assert new.report["fallbacks"] == {kind: 2}


def test_a_missing_argument_raises_the_originals_error(tmp_path: Path) -> None:
    module = dropin(tmp_path)
    _, new = pair(module)
    with torch.no_grad(), pytest.warns(UserWarning), pytest.raises(TypeError, match="missing 1 required"):
        new(module.get_inputs()[0])


def test_grad_mode_falls_back_only_where_something_requires_grad(tmp_path: Path) -> None:
    module = dropin(tmp_path)
    _, new = pair(module)
    inputs = module.get_inputs()
    with pytest.warns(UserWarning, match="no_grad"):
        new(*inputs).sum().backward()
    assert new.fc.weight.grad is not None
    assert new.report["fallbacks"] == {"grad": 1} and not module.CALLS
    new.requires_grad_(False)
    new(*inputs)
    assert len(module.CALLS) == 1
    inputs[0].requires_grad_(True)
    new(*inputs)
    assert new.report["fallbacks"] == {"grad": 2}


def test_autocast_and_transforms_and_tracing_run_the_original(tmp_path: Path) -> None:
    module = dropin(tmp_path)
    original, new = pair(module)
    inputs = module.get_inputs()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new(*inputs)
        calls = len(module.CALLS)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.testing.assert_close(new(*inputs), original(*inputs))
        batched = [torch.stack([i, i + 1]) for i in inputs]
        torch.testing.assert_close(torch.func.vmap(new)(*batched), original(*batched))
        traced = torch.jit.trace(new, tuple(inputs), check_trace=False)
        other = module.get_inputs()
        torch.testing.assert_close(traced(*other), original(*other))
    assert len(module.CALLS) == calls
    assert new.report["fallbacks"]["autocast"] == 1
    assert new.report["fallbacks"]["transform"] >= 2


def test_a_call_like_one_before_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = dropin(tmp_path)
    original, new = pair(module)
    check(module, original, new, fast=True)
    looked: list[object] = []
    reason = module._dropin_reason
    monkeypatch.setattr(module, "_dropin_reason", lambda *given: looked.append(given) or reason(*given))
    check(module, original, new, fast=True)
    assert not looked
    with torch.inference_mode():
        new(*module.get_inputs())
    assert len(looked) == 1


@pytest.mark.parametrize("broken", [None, int], ids=["without TensorGuards", "with another signature"])
def test_without_torchs_own_guards_every_call_is_looked_at(tmp_path: Path, broken: object) -> None:
    module = dropin(tmp_path)
    module._dropin_guards = broken
    original, new = pair(module)
    for _ in range(3):
        check(module, original, new, fast=True)
    x, y = module.get_inputs()
    calls = len(module.CALLS)
    with torch.no_grad(), pytest.warns(UserWarning, match="another shape"):
        new(x[:2], y[:2])
    assert len(module.CALLS) == calls
    with torch.no_grad():
        torch.testing.assert_close(new(x, x), original(x, x))
    assert len(module.CALLS) == calls + 1


def test_an_outer_compile_traces_the_original(tmp_path: Path) -> None:
    module = dropin(tmp_path)
    original, new = pair(module)
    compiled = torch.compile(new, backend="eager", fullgraph=True)
    inputs = module.get_inputs()
    with torch.no_grad():
        torch.testing.assert_close(compiled(*inputs), original(*inputs))
    assert not module.CALLS


def test_inference_mode_runs_the_optimised_forward(tmp_path: Path) -> None:
    module = dropin(tmp_path)
    original, new = pair(module)
    with torch.inference_mode():
        inputs = module.get_inputs()
        torch.testing.assert_close(new(*inputs), original(*inputs))
    assert module.CALLS
    check(module, original, new, fast=True)


def test_casting_falls_back_and_casting_back_recovers(tmp_path: Path) -> None:
    module = dropin(tmp_path)
    original, new = pair(module)
    check(module, original, new, fast=True)
    new.double()
    with torch.no_grad(), pytest.warns(UserWarning):
        assert new(*(t.double() for t in module.get_inputs())).dtype is torch.float64
    new.float()
    check(module, original, new, fast=True)


def test_copies_and_pickles_are_independent_and_still_fast(tmp_path: Path) -> None:
    module = dropin(tmp_path)
    original, new = pair(module)
    check(module, original, new, fast=True)
    for copied in (copy.deepcopy(new), pickle.loads(pickle.dumps(new))):
        check(module, original, copied, fast=True)
        with torch.no_grad():
            copied.fc.weight.zero_()
    check(module, original, new, fast=True)


def test_buffers_that_the_forward_replaces_stay_the_modules_own(tmp_path: Path) -> None:
    counting = "        self.shift = self.shift + 1\n        return"
    reference = REFERENCE.replace("        return self.fc", f"{counting} self.fc")
    candidate = SUBCLASS.replace(REFERENCE, reference).replace("        return (x @", f"{counting} (x @")
    module = dropin(tmp_path, candidate, reference)
    original, new = pair(module)
    for _ in range(3):
        check(module, original, new, fast=True)
    torch.testing.assert_close(new.shift, original.shift)


def test_plain_tensor_attributes_are_carried_in_and_out(tmp_path: Path) -> None:
    plain = REFERENCE.replace('self.register_buffer("shift", torch.ones(size))', "self.shift = torch.ones(size)")
    counting = "        self.shift = self.shift + 1\n        return"
    reference = plain.replace("        return self.fc", f"{counting} self.fc")
    candidate = SUBCLASS.replace(REFERENCE, reference).replace("        return (x @", f"{counting} (x @")
    module = dropin(tmp_path, candidate, reference)
    original, new = pair(module)
    for _ in range(2):
        check(module, original, new, fast=True)
    torch.testing.assert_close(new.shift, original.shift)


def test_a_mode_that_matters_is_guarded_and_one_that_does_not_is_free(tmp_path: Path) -> None:
    dropping = REFERENCE.replace("self.fc = ", "self.drop = nn.BatchNorm1d(size)\n        self.fc = ")
    module = dropin(tmp_path, SUBCLASS.replace(REFERENCE, dropping), dropping)
    original, new = pair(module)
    check(module, original, new, fast=True)
    original.eval(), new.eval()
    check(module, original, new, fast=False)
    assert new.report["fallbacks"] == {"mode": 1}
    free = dropin(tmp_path)
    original, new = pair(free)
    original.eval(), new.eval()
    check(free, original, new, fast=True)


def test_one_submodule_in_another_mode_is_seen(tmp_path: Path) -> None:
    dropping = REFERENCE.replace("self.fc = ", "self.drop = nn.Dropout(0.5)\n        self.fc = ")
    dropping = dropping.replace("torch.ones(size))\n", "torch.ones(size))\n        self.eval()\n")
    module = dropin(tmp_path, SUBCLASS.replace(REFERENCE, dropping), dropping)
    original, new = pair(module)
    check(module, original, new, fast=True)
    new.drop.train()
    check(module, original, new, fast=False)


def test_another_torch_version_warns_at_construction(tmp_path: Path) -> None:
    task = make_task()
    guard = guard_for(task, PLACE).model_copy(update={"torch": "2.9.0"})
    module = load(tmp_path, render_dropin(task, make_candidate(task, SUBCLASS), guard))
    with pytest.warns(UserWarning, match=r"elsewhere \(torch .* instead of 2\.9\.0\)"):
        module.ModelNew(8)


def test_names_that_mean_two_things_stay_apart(tmp_path: Path) -> None:
    reference = REFERENCE.replace("* y + self.shift", "* helper(y) + self.shift") + "\n\ndef helper(y):\n    return y\n"
    candidate = RENAMED.replace(") * y", ") * helper(y)") + "\n\ndef helper(y):\n    return y * 1.0\n"
    candidate += "\n\nclass Model:\n    pass\n"
    task = make_task(reference)
    module = load(tmp_path, render_dropin(task, make_candidate(task, candidate), guard_for(task, PLACE)))
    torch.manual_seed(0)
    original = module._dropin_Original(8)
    torch.manual_seed(0)
    new = module.ModelNew(8)
    check(module, original, new, fast=True)
    with torch.no_grad(), pytest.warns(UserWarning):
        assert new(*(t[:2] for t in module.get_inputs())).shape == (2, 8)
    assert module.helper.__code__ is not module._dropin_module.helper.__code__


def test_future_imports_go_first(tmp_path: Path) -> None:
    future = "from __future__ import annotations\n"
    module = dropin(tmp_path, f'"""A docstring."""\n{future}{RENAMED}', future + REFERENCE)
    original, new = pair(module)
    check(module, original, new, fast=True)


def test_text_that_is_not_python_is_the_candidates_fault() -> None:
    task = make_task()
    with pytest.raises(CandidateError, match="not Python"):
        render_dropin(task, make_candidate(task, "def ("), guard_for(task, PLACE))


NESTED = """
import torch


class Model(torch.nn.Module):
    def forward(self, xs, options, k):
        return xs[0] * options["scale"] + xs[1] * k


def get_inputs():
    return [[torch.randn(4, 6).t(), torch.randn(6, 4)], {"scale": torch.randn(4)}, 3]


def get_init_inputs():
    return []
"""


def test_nested_arguments_and_values_are_guarded(tmp_path: Path) -> None:
    module = dropin(tmp_path, marked(NESTED, "xs, options, k", "super().forward(xs, options, k)"), NESTED)
    original, new = pair(module)
    check(module, original, new, fast=True)
    xs, options, k = module.get_inputs()
    before = len(module.CALLS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new(xs, options, 4)
        new(tuple(xs), options, k)
        new([xs[0].contiguous(), xs[1]], options, k)
        new(xs, {"scale": options["scale"], "more": 1}, k)
    assert len(module.CALLS) == before
    assert new.report["fallbacks"] == {"arguments": 3, "strides": 1}


@pytest.mark.parametrize(
    ("spec", "like", "others"),
    [
        (MappingSpec(items={"b": ValueSpec(value=1), "a": ValueSpec(value=2)}), {"b": 1, "a": 2},
         [{"a": 2, "b": 1}, {"b": 1}, {"b": 1, "a": 2, "c": 3}, {"b": 1, "a": 3}, [1, 2]]),
        (MappingSpec(items={}), {}, [{"a": 1}, [], None]),
        (ValueSpec(value=0.0), 0.0, [-0.0, 0, False]),
        (ValueSpec(value=float("nan")), float("nan"), [0.0, float("inf")]),
    ],
)  # fmt: skip
def test_what_is_no_tensor_is_guarded_by_value(spec: Spec, like: object, others: list[object]) -> None:
    text = " and ".join(f"({condition})" for _, condition in spec.conditions("a0", "cpu"))
    assert eval(text, {"a0": like})
    assert not any(eval(text, {"a0": other}) for other in others)


WITHOUT_ARGUMENTS = """
import torch


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(size))

    def forward(self):
        return self.table * 2


def get_inputs():
    return []


def get_init_inputs():
    return [8]
"""


def test_a_forward_without_arguments(tmp_path: Path) -> None:
    fast = WITHOUT_ARGUMENTS + "\nCALLS = []\n\n\nclass ModelNew(Model):\n    def forward(self):\n"
    fast += "        CALLS.append(1)\n        return self.table + self.table\n"
    module = dropin(tmp_path, fast, WITHOUT_ARGUMENTS)
    original, new = pair(module)
    check(module, original, new, fast=True)
    before = len(module.CALLS)
    with pytest.warns(UserWarning, match="the original forward runs"):
        new().sum().backward()
    assert new.table.grad is not None and len(module.CALLS) == before and new.report["fallbacks"] == {"grad": 1}


def test_outputs_that_a_later_call_overwrites_are_handed_out_as_copies(tmp_path: Path) -> None:
    reusing = SUBCLASS.replace(
        "        return (x @",
        "        self.out = getattr(self, 'out', torch.empty(4, 8))\n        return self.out.copy_((x @",
    )
    reusing = reusing.replace("* y + self.shift\n", "* y + self.shift)\n").replace(
        REFERENCE.replace("* y + self.shift\n", "* y + self.shift)\n"), REFERENCE
    )
    task = make_task()
    guard = guard_for(task, PLACE, clone=True)
    module = load(tmp_path, render_dropin(task, make_candidate(task, reusing), guard))
    original, new = pair(module)
    inputs, others = module.get_inputs(), module.get_inputs()
    with torch.no_grad():
        first = new(*inputs)
        new(*others)
        torch.testing.assert_close(first, original(*inputs))
    assert len(module.CALLS) == 2


OPTIONAL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x, mask=None, more={}):
        y = x * 2
        if isinstance(mask, torch.Tensor):
            y = y * mask
        return y if more.get("bias") is None else y + more["bias"]


def get_inputs():
    return [torch.randn(4, 6), torch.rand(4, 6), {"bias": torch.randn(6)}]


def get_init_inputs():
    return []
"""


def test_whatever_stands_in_place_of_a_verified_tensor_runs_the_original(tmp_path: Path) -> None:
    """After a verified call too, when little is looked at before the call is known."""
    module = dropin(tmp_path, marked(OPTIONAL, "x, mask, more", "x * 2 * mask + more['bias']"), OPTIONAL)
    original, new = pair(module)
    check(module, original, new, fast=True)
    x, mask, more = module.get_inputs()
    others = [(x,), (x, None), (x, 2.0), (x, mask), (x, mask, {"bias": None}), (x, None, more), (x, [mask], more)]
    before = len(module.CALLS)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in others:
            torch.testing.assert_close(new(*given), original(*given))
    assert len(module.CALLS) == before and new.report["fallbacks"] == {"arguments": len(others)}
    check(module, original, new, fast=True)


COUNTING = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(6)

    def forward(self, x):
        return self.norm(x) * 2


def get_inputs():
    return [torch.randn(8, 6)]


def get_init_inputs():
    return []
"""


def test_in_train_mode_counted_batches_are_no_reason_to_build_anew(tmp_path: Path) -> None:
    """Neither those that the optimised forward counts itself nor what somebody puts back between calls."""
    module = dropin(tmp_path, marked(COUNTING, "x", "2 * self.norm(x)"), COUNTING)
    original, new = pair(module)
    module.BUILT.clear()
    with torch.no_grad():
        for _ in range(4):
            for each in (original, new):
                each.norm.num_batches_tracked.copy_(torch.tensor(7))
            inputs = module.get_inputs()
            torch.testing.assert_close(new(*inputs), original(*inputs))
            torch.testing.assert_close(new.state_dict(), original.state_dict())
    assert len(module.CALLS) == 4 and len(module.BUILT) == 1


TIED = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, 8, bias=False)
        self.head = nn.Linear(6, 8, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(x @ self.embed.weight.t() @ self.embed.weight)


def get_inputs():
    return [torch.randn(4, 6)]


def get_init_inputs():
    return []
"""

ONE_NAME = """
import torch

CALLS = []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.NAME = torch.nn.Linear(6, 8, bias=False)

    def forward(self, x):
        CALLS.append(1)
        weight = self.NAME.weight
        return x @ weight.t() @ weight @ weight.t()
"""


INHERITED = f"""{TIED}

CALLS = []


class ModelNew(Model):
    def forward(self, x):
        CALLS.append(1)
        weight = self.NAME.weight
        return x @ weight.t() @ weight @ weight.t()
"""

RELOADED = """
import torch

CALLS = []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(6, 6))
        self.register_buffer("weight", torch.zeros(8, 6))

    def load_reference(self, state):
        self.weight.copy_(state["NAME.weight"])
        self.table.copy_(self.weight.t() @ self.weight)

    def forward(self, x):
        CALLS.append(1)
        return x @ self.table @ self.weight.t()
"""

UNTIED = TIED.replace("        self.head.weight = self.embed.weight\n", "")


def draw(*modules: torch.nn.Module, names: tuple[str, ...] = ("embed", "head")) -> None:
    """One new parameter for these layers of each module, which `modules` themselves are not told of."""
    for module in modules:
        torch.manual_seed(2)
        parameter = torch.nn.Parameter(torch.randn(8, 6) / 4)
        for name in names:
            getattr(module, name).weight = parameter


@pytest.mark.parametrize("parted", ["embed", "head"])
@pytest.mark.parametrize("name", ["embed", "head"])
@pytest.mark.parametrize("candidate", [ONE_NAME, INHERITED, RELOADED], ids=["one name", "both names", "load_reference"])
def test_weights_that_are_tied_no_longer_run_the_original(
    tmp_path: Path, candidate: str, name: str, parted: str
) -> None:
    """Before the first call and after a verified one, where the call is known at once."""
    module = dropin(tmp_path, candidate.replace("NAME", name), TIED)
    original, new = pair(module)
    draw(original, new, names=(parted,))
    check(module, original, new, fast=False)
    original, new = pair(module)
    check(module, original, new, fast=True)
    draw(original, new, names=(parted,))
    with torch.no_grad(), pytest.warns(UserWarning, match="were tied when this was verified"):
        new(*module.get_inputs())
    check(module, original, new, fast=False)
    assert new.report["fallbacks"] == {"tied": 2}
    draw(original, new)
    check(module, original, new, fast=True)


@pytest.mark.parametrize(
    ("candidate", "name"),
    [(ONE_NAME, "embed"), (ONE_NAME, "head"), (ONE_NAME, "own"), (INHERITED, "head"), (RELOADED, "head")],
    ids=["first name", "second name", "a name of its own", "both names", "load_reference"],
)
def test_tied_weights_that_are_replaced_together_are_used(tmp_path: Path, candidate: str, name: str) -> None:
    module = dropin(tmp_path, candidate.replace("NAME", name), TIED)
    original, new = pair(module)
    check(module, original, new, fast=True)
    draw(original, new)
    check(module, original, new, fast=True)
    with torch.no_grad():
        original.head.weight.mul_(0.5), new.head.weight.mul_(0.5)
    check(module, original, new, fast=True)
    assert not new.report["fallbacks"]


@pytest.mark.parametrize("how", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_a_copy_knows_which_weights_were_tied(
    tmp_path: Path, how: Callable[[torch.nn.Module], torch.nn.Module]
) -> None:
    module = dropin(tmp_path, INHERITED.replace("NAME", "embed"), TIED)
    original, new = pair(module)
    check(module, original, how(new), fast=True)
    draw(original, new, names=("head",))
    check(module, original, how(new), fast=False)


BOTH_NAMES = """
import torch

CALLS = []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = (torch.nn.Linear(6, 8, bias=False) for _ in range(2))

    def forward(self, x):
        CALLS.append(1)
        return self.second(x @ self.first.weight.t() @ self.first.weight)
"""


def test_weights_that_are_tied_later_are_no_hindrance(tmp_path: Path) -> None:
    module = dropin(tmp_path, BOTH_NAMES, UNTIED)
    original, new = pair(module)
    draw(original, new)
    check(module, original, new, fast=True)


def test_a_state_that_is_assigned_parts_tied_weights(tmp_path: Path) -> None:
    module = dropin(tmp_path, INHERITED.replace("NAME", "embed"), TIED)
    original, new = pair(module)
    check(module, original, new, fast=True)
    other = {name: torch.randn(8, 6) / 4 for name in original.state_dict()}
    for each in (original, new):
        each.load_state_dict(other, assign=True)
    check(module, original, new, fast=False)


def test_without_inputs_tied_weights_are_looked_at_too(tmp_path: Path) -> None:
    alone = TIED.replace("forward(self, x)", "forward(self)").replace("[torch.randn(4, 6)]", "[]")
    alone = alone.replace("head(x @ self.embed.weight.t() @ self.embed.weight)", "head(self.embed.weight)")
    fast = INHERITED.replace(TIED, alone).replace("NAME", "embed").replace("forward(self, x)", "forward(self)")
    module = dropin(tmp_path, fast.replace("x @ weight.t() @ weight @", "weight @"), alone)
    original, new = pair(module)
    check(module, original, new, fast=True)
    check(module, original, new, fast=True)
    draw(original, new, names=("head",))
    check(module, original, new, fast=False)


@pytest.mark.parametrize("tied", [False, True])
def test_who_has_no_tied_weights_is_asked_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tied: bool) -> None:
    """A call that is known costs as much as it did: torch's own check, and nothing around it."""
    reference = TIED if tied else UNTIED
    module = dropin(tmp_path, INHERITED.replace(TIED, reference).replace("NAME", "embed"), reference)
    asked: list[object] = []
    monkeypatch.setattr(module._Dropin, "has_replaced", lambda dropin: asked.append(dropin))
    new = module.ModelNew()
    with torch.no_grad():
        new(*module.get_inputs())
        asked.clear()
        new(*module.get_inputs())
    assert bool(asked) == tied
    assert (type(new._dropin.known).__name__ == "function") == tied
