"""The judge's view of a task: what a call changes, what its truth is, and which tasks are refused in one line."""

from __future__ import annotations

import pytest
import torch
from evaluator_support import LINEAR, reference_of
from safetensors.torch import save_file

from cuda_l1.evaluator.guest import arithmetic, oracle, state
from cuda_l1.evaluator.guest.audit import audit
from cuda_l1.evaluator.guest.random_tasks import EvalMode
from cuda_l1.evaluator.guest.reference import BadTask, Reference, is_short_of_memory, structure_of
from cuda_l1.evaluator.guest.runner import describe_error
from cuda_l1.evaluator.guest.session import RunnerFailure

INPUTS = "\ndef get_inputs():\n    return [torch.randn(4, 3)]\n"


def model(forward: str, init: str = "", inputs: str = INPUTS) -> str:
    """A task whose constructor and forward are the given lines."""
    lines = ["class Model(nn.Module):", "    def __init__(self):", "        super().__init__()"]
    lines += [f"        {line}" for line in init.splitlines()]
    lines += ["    def forward(self, x):", *(f"        {line}" for line in forward.splitlines())]
    return "\n".join(lines) + "\n" + inputs


def test_a_plain_task_changes_nothing(tmp_path):
    reference = reference_of(tmp_path, LINEAR)
    inputs = reference.draw()
    reference.learn_changes(inputs)
    assert reference.changed_args == reference.changed_state == [] and not reference.aliases
    assert reference.mode == "train" and reference.oracle_place == "float64"


def test_truth_is_the_same_function_in_float64(tmp_path):
    reference = reference_of(tmp_path, LINEAR)
    inputs = reference.draw()
    truth = reference.truth(inputs, reference.public).tensors[0]
    weight, bias = reference.public["linear.weight"].double(), reference.public["linear.bias"].double()
    assert torch.allclose(truth, torch.relu(inputs[0].double() @ weight.t() + bias), atol=1e-14)
    noise = oracle.max_error(reference.call(inputs, reference.public).tensors[0], truth)
    assert 0 < noise < 1e-6


def test_other_weights_reach_model_and_twin(tmp_path):
    reference = reference_of(tmp_path, LINEAR)
    inputs = reference.draw()
    zeros = {name: torch.zeros_like(t) for name, t in reference.public.items()}
    assert not reference.truth(inputs, zeros).tensors[0].any()
    assert not reference.call(inputs, zeros).tensors[0].any()
    assert reference.call(inputs, reference.public).tensors[0].any()


def test_a_changed_argument_is_an_answer(tmp_path):
    reference = reference_of(tmp_path, model("x.add_(1)\nreturn x.sum(1)"))
    inputs = reference.draw()
    before = inputs[0].clone()
    reference.learn_changes(inputs)
    assert reference.changed_args == [0]
    answer = reference.call(inputs, reference.public)
    assert torch.equal(answer.tensors[1], before + 1) and torch.equal(inputs[0], before)


def test_a_view_of_an_argument_is_noticed(tmp_path):
    reference = reference_of(tmp_path, model("return x.t()"))
    reference.learn_changes(reference.draw())
    assert reference.aliases == {0}


@pytest.mark.parametrize(
    ("forward", "aliases", "shares", "exposes", "overlaps"),
    [
        ("return x[:, :1], x * 2, x.t()", {0, 2}, {2}, set(), set()),
        ("y = x * 2\nreturn x.sum(), y, y[:, -1]", set(), {2}, set(), set()),
        ("return (x * 2).chunk(3, -1)", set(), set(), set(), set()),
        ("return x * self.w, self.w", set(), set(), {1}, set()),
        ("m = x.mean(1, keepdim=True)\nreturn x - m, m.expand(4, 3)", set(), set(), set(), {1}),
    ],
)
def test_whose_memory_outputs_are_is_known_of_each(tmp_path, forward, aliases, shares, exposes, overlaps):
    reference = reference_of(tmp_path, model(forward, "self.w = nn.Parameter(torch.randn(3))"))
    reference.learn_changes(reference.draw())
    found = reference.aliases, reference.shares, reference.exposes, reference.overlaps
    assert found == (aliases, shares, exposes, overlaps)
    others = aliases | shares | exposes
    assert [reference.owns(place) for place in range(3)] == [place not in others for place in range(3)]


def test_a_call_that_gives_an_argument_back_is_noticed_whenever_it_does(tmp_path):
    reference = reference_of(tmp_path, model("return x if bool((x > 100).any()) else x * 2"))
    inputs = reference.draw()
    reference.learn_changes(inputs)
    assert not reference.aliases
    reference.call([inputs[0] + 200], reference.public)
    assert reference.aliases


def test_a_lazy_module_has_no_weights_to_compare(tmp_path):
    with pytest.raises(BadTask, match="give them their sizes"):
        reference_of(tmp_path, model("return self.l(x)", "self.l = nn.LazyLinear(4)"))


STATEFUL = {
    "buffer": ("self.norm = nn.BatchNorm1d(3)", "return self.norm(x)", {"norm.running_mean", "norm.running_var"}),
    "attribute": ("self.h = torch.zeros(4, 3)", "self.h = torch.tanh(x + self.h)\nreturn self.h * 2", {"h"}),
    "kept-input": ("self.h = torch.zeros(4, 3)", "y = x - self.h\nself.h = x\nreturn y", {"h"}),
    "kept-in-a-buffer": (
        "self.register_buffer('h', torch.zeros(4, 3))",
        "y = x - self.h\nself.h = x\nreturn y",
        {"h"},
    ),
    "none-at-first": (
        "self.h = None",
        "self.h = x if self.h is None else torch.tanh(x + self.h)\nreturn self.h * 2",
        {"h"},
    ),
    "made-in-forward": ("", "self.last = x * 2\nreturn self.last + 1", {"last"}),
    "tuple": (
        "self.hc = (torch.zeros(4, 3), torch.ones(4, 3))",
        "h, c = self.hc\nself.hc = (torch.tanh(x + h), c * 2)\nreturn self.hc[0] + c",
        {"hc.0", "hc.1"},
    ),
}


@pytest.mark.parametrize("kind", STATEFUL)
def test_changed_state_is_an_answer_and_every_call_starts_alike(tmp_path, kind):
    init, forward, names = STATEFUL[kind]
    reference = reference_of(tmp_path, model(forward, init))
    inputs = reference.draw()
    reference.learn_changes(inputs)
    assert names <= set(reference.changed_state)
    reference.rough_us(inputs)
    first = reference.call(inputs, reference.public)
    reference.call(reference.draw(), reference.public)
    again = reference.call(inputs, reference.public)
    truth = reference.truth(inputs, reference.public)
    reference.truth(reference.draw(), reference.public)
    late = reference.truth(inputs, reference.public)
    for a, b, t, u in zip(first.tensors, again.tensors, truth.tensors, late.tensors, strict=True):
        assert state.same(a, b) and state.same(t, u) and oracle.max_error(a, t) < 1e-5


def test_eval_mode_reaches_model_and_twin(tmp_path):
    reference = reference_of(tmp_path, model("return F.dropout(x, 0.5, self.training)"))
    inputs = reference.draw()
    reference.truth(inputs, reference.public)
    reference.set_mode("eval")
    assert torch.equal(reference.call(inputs, reference.public).tensors[0], inputs[0])
    assert torch.equal(reference.truth(inputs, reference.public).tensors[0], inputs[0].double())


def test_a_model_that_constructs_itself_in_eval_mode_stays_there(tmp_path):
    assert reference_of(tmp_path, model("return x * 1.5", "self.eval()")).mode == "eval"


def test_constructor_arguments_may_be_named(tmp_path):
    body = LINEAR.replace("return [32]", "return {'width': 32}")
    assert reference_of(tmp_path, body).public["linear.weight"].shape == (32, 32)


BAD = {
    "no-model": ("def get_inputs(): return []", "task defines no `Model`"),
    "no-inputs": (model("return x", inputs=""), "task defines no `get_inputs`"),
    "syntax": ("class Model(:", "cannot be imported: SyntaxError"),
    "exit": ("raise SystemExit(3)", "cannot be imported: SystemExit"),
    "constructor": (model("return x", "raise KeyError('width')"), "the constructor of Model raised: KeyError"),
    "bare-argument": (model("return x") + "\ndef get_init_inputs():\n    return 'ab'", "gives a str, and no list of"),
    "no-arguments": (model("return x") + "\ndef get_init_inputs():\n    pass", "gives a NoneType, and no list of"),
    "not-a-module": ("class Model: pass\n" + INPUTS, "`Model` is not a torch.nn.Module"),
    "init-object": (
        model("return x") + "\ndef get_init_inputs():\n    return [object()]",
        "get_init_inputs\\(\\) gives",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_task_is_one_line(tmp_path, kind):
    body, message = BAD[kind]
    with pytest.raises(BadTask, match=message) as caught:
        reference_of(tmp_path, body)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def get_inputs():\n    raise OSError('no file')", "get_inputs\\(\\) raised: OSError: no file"),
        ("def get_inputs():\n    return {'x': torch.ones(3)}", "a dict is no list of arguments, in the order of"),
        ("def get_inputs():\n    pass", "a NoneType is no list of arguments"),
        ("def get_inputs():\n    exit(1)", "get_inputs\\(\\) raised: SystemExit"),
        ("def get_inputs():\n    return [torch.eye(3).to_sparse()]", "cannot cross"),
        ("import random\ndef get_inputs():\n    return [torch.ones(random.randint(1, 10**6))]", "other shapes"),
    ],
)
def test_bad_inputs_are_one_line(tmp_path, body, message):
    reference = reference_of(tmp_path, model("return x", inputs=body))
    with pytest.raises(BadTask, match=message):
        for _ in range(3):
            reference.draw()


@pytest.mark.parametrize(
    "result", ["x.to_sparse()", "{'mask': (x, x.to_sparse())}", "{1, 2}", "x.to('meta')", "object()"]
)
def test_a_forward_whose_result_cannot_cross_is_the_tasks_fault(tmp_path, result):
    reference = reference_of(tmp_path, model(f"return {result}"))
    with pytest.raises(BadTask, match=r"Model.forward gives what cannot cross to a candidate"):
        reference.learn_changes(reference.draw())


def test_a_forward_that_raises_is_the_tasks_fault(tmp_path):
    reference = reference_of(tmp_path, model("return x @ x"))
    with pytest.raises(BadTask, match=r"Model.forward raised RuntimeError"):
        reference.call(reference.draw(), reference.public)


def test_the_nesting_of_outputs_as_text():
    x = torch.ones(1)
    assert structure_of(x) == "T"
    assert structure_of((x, [x, None], {"a": x})) == structure_of([x, (x, None), {"a": x}]) == "[T,[T,None],{'a':T}]"
    assert structure_of({1: x}) != structure_of({"1": x})
    assert structure_of([x, 1]) != structure_of([x, 2])
    assert structure_of(["a" * 100 + "b"]) != structure_of(["a" * 100 + "c"])


def test_a_dict_is_an_answer_in_the_order_of_its_keys(tmp_path):
    reference = reference_of(tmp_path, model("return {2: x + 2, 'b': [x, {'d': -x, 'c': x * 2}], 1: x + 1}"))
    inputs = reference.draw()
    answer, x = reference.call(inputs, reference.public), inputs[0]
    assert answer.structure == "{1:T,2:T,'b':[T,{'c':T,'d':T}]}"
    for got, due in zip(answer.tensors, (x + 1, x + 2, x, x * 2, -x), strict=True):
        assert torch.equal(got, due)


def test_a_runner_that_dies_in_eval_mode_leaves_the_reference_as_it_was(tmp_path):
    reference = reference_of(tmp_path, model("return self.drop(x)", "self.drop = nn.Dropout(0.5)"))
    before = reference.mode, reference.changed_args, reference.changed_state
    in_eval = EvalMode.learn(reference)
    assert in_eval is not None and not in_eval.facts.random

    class Dead:
        def ask(self, *_, **__):
            raise RunnerFailure("DIED", "the runner is gone", "a call")

    with pytest.raises(RunnerFailure):
        in_eval.check(reference, Dead(), {"mapped": True})
    assert (reference.mode, reference.changed_args, reference.changed_state) == before


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
    ids=["torch", "cublas", "driver", "cpu", "python"],
)
def test_whatever_says_that_memory_is_short_is_believed(error):
    assert is_short_of_memory(error) and describe_error(error)["memory"]


@pytest.mark.parametrize("raised", [ValueError, SystemExit])
def test_an_error_whose_text_raises_is_described(raised):
    class Odd(Exception):
        def __str__(self):
            raise raised

    described = describe_error(Odd())
    assert described["type"] == "Odd" and described["message"] == f"its text cannot be read ({raised.__name__})"
    assert not described["memory"]


def test_other_errors_are_no_matter_of_memory(tmp_path):
    for error in (RuntimeError("CUDA error: an illegal memory access"), ValueError("out of memory"), KeyError("x")):
        assert not is_short_of_memory(error) and not describe_error(error)["memory"]
    reference = reference_of(tmp_path, model("raise RuntimeError('CUBLAS_STATUS_ALLOC_FAILED')"))
    reference.device = "cuda:0"  # where somebody else may hold what this needs
    with pytest.raises(torch.OutOfMemoryError, match="ALLOC_FAILED"):
        reference._answer(reference.model, [torch.zeros(2)], {}, arithmetic.run_plain, 1)


def test_shapes_that_depend_on_values_are_no_task(tmp_path):
    from cuda_l1.evaluator.guest.audit import audit

    with pytest.raises(BadTask, match=r"shapes of outputs depend .* not supported"):
        audit(reference_of(tmp_path, model("return x[x[:, 0] > 0]", inputs=INPUTS.replace("4, 3", "4096, 3"))))


def test_buffers_that_follow_from_the_arguments_alone_are_no_data_and_need_no_partner(tmp_path):
    reference = reference_of(
        tmp_path,
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("table", torch.sin(torch.linspace(0, 1, 40)))
                self.register_buffer("codebook", torch.randn(8, 4))
                self.register_buffer("packed", torch.randint(-9, 9, (8, 4)).to(torch.int8))
                self.register_buffer("causal", torch.ones(9, 9).tril())
                self.register_buffer("drawn", torch.randn(8), persistent=False)
                self.register_buffer("angles", torch.linspace(0, 1, 40), persistent=False)
                self.register_buffer("mask", torch.ones(9), persistent=False)
                self.register_buffer("seen", torch.arange(3.0), persistent=False)
                self.slopes = torch.arange(4.0)

            def forward(self, x):
                self.seen += x
                return x + self.codebook.sum()

        def get_inputs():
            return [torch.randn(3)]
        """,
    )
    reference.learn_changes(reference.draw())
    assert reference.data == {"codebook", "packed"}
    assert reference.formulas == {"angles", "slopes"}  # who writes them down needs no tensor


def test_masks_that_a_checkpoint_has_as_any_constructor_does_are_no_data(tmp_path):
    body = """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("causal", torch.ones(9, 9).tril())
                self.register_buffer("hidden", torch.ones(9, 9).tril() == 0)
                self.register_buffer("pruned", (torch.rand(9, 9) < 0.5).float())
                self.register_buffer("kept", torch.ones(9, 9).tril())
                self.register_buffer("table", torch.linspace(1, 0, 9))

            def forward(self, x):
                return x * self.causal

        def get_inputs():
            return [torch.randn(9, 9)]
        """
    path = tmp_path / "weights.safetensors"
    own = reference_of(tmp_path, body)
    assert own.data == {"pruned"}
    save_file({**own.public, "kept": own.public["kept"].flip(0).contiguous()}, path)
    assert Reference(own.path, "cpu", str(path)).data == {"pruned", "kept", "table"}


def test_a_running_mean_that_a_batch_of_zeros_leaves_alone_is_changed_state_all_the_same(tmp_path):
    body = """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(4)
                self.still = nn.BatchNorm1d(4, track_running_stats=False)

            def forward(self, x):
                return self.norm(x.clamp(max=0.0)) + self.still(x)

        get_inputs = lambda: [torch.rand(8, 4)]
    """
    reference = reference_of(tmp_path, body)
    reference.learn_changes(reference.draw())
    assert set(reference.changed_state) == {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}


def test_what_is_added_to_an_argument_is_told_as_the_tasks_fault(tmp_path):
    inputs = "\ndef get_inputs():\n    return [torch.randn(4, 3), {}]\n"
    body = model("notes['sum'] = x.sum()\nreturn x + 1", inputs=inputs).replace(
        "forward(self, x)", "forward(self, x, notes)"
    )
    reference = reference_of(tmp_path, body)
    with pytest.raises(BadTask, match="adds to a list or dict among its arguments"):
        reference.learn_changes(reference.draw())


def learned(folder, text):
    reference = reference_of(folder, text)
    audit(reference)
    return reference


def test_state_that_no_draw_changes_is_learned_from_other_inputs(tmp_path):
    counts = model("self.clipped += (x.abs() > 9).sum()\nreturn x.clamp(-9, 9)", "self.clipped = torch.zeros(1)")
    reference = reference_of(tmp_path, counts)
    reference.learn_changes(reference.draw())
    assert reference.changed_state == []
    assert learned(tmp_path, counts).changed_state == ["clipped"]


def test_an_argument_that_no_draw_changes_is_learned_from_other_inputs(tmp_path):
    assert learned(tmp_path, model("x.clamp_(-9, 9)\nreturn x * 2")).changed_args == [0]


def test_state_that_only_many_calls_change_is_learned(tmp_path):
    init = "self.register_buffer('age', torch.zeros(1))\nself.register_buffer('book', torch.randn(4, 3))"
    forward = "self.age += 1\nself.book.copy_(torch.where(self.age > 3, x, self.book))\nreturn x + self.book"
    reference = learned(tmp_path, model(forward, init))
    assert reference.changed_state == ["age", "book"]
    aged = reference.aged()
    assert aged["age"] > 3 and set(aged) == set(reference.public) and not reference.model.age.any()
    assert torch.equal(reference.model.book, reference.public["book"])


def test_a_state_that_grows_does_not_age(tmp_path):
    grows = model("self.seen = torch.cat([self.seen, x])\nreturn self.seen.sum(0) * x", "self.seen = torch.zeros(1, 3)")
    assert learned(tmp_path, grows).aged() == {}


def test_a_table_that_is_made_when_it_is_needed_is_no_state(tmp_path):
    lazily = "if len(x) not in self._tables:\n    self._tables[len(x)] = torch.arange(3.0)\n"
    table = model(lazily + "return x + self._tables[len(x)]", "self._tables = {}")
    assert learned(tmp_path, table).changed_state == []
    kept = model("self._kept['last'] = x\nreturn x * 2", "self._kept = {}")
    assert learned(tmp_path, kept).changed_state == ["_kept.last"]


@pytest.mark.parametrize("where", ["self.count = 0", "self.own = [0]"])
def test_a_count_of_calls_is_told_wherever_it_is_kept(tmp_path, where):
    name = "self.count" if "count" in where else "self.own[0]"
    counted = model(f"{name} += 1\nreturn x * min(1.0, {name} / 8)", where)
    with pytest.raises(BadTask, match="Python number that every call changes"):
        learned(tmp_path, counted)


def test_a_mask_that_is_made_of_the_first_inputs_is_state(tmp_path):
    lazily = "if self.mask is None:\n    self.mask = (x == 0).all(-1, keepdim=True)\nreturn x.masked_fill(self.mask, 1)"
    assert learned(tmp_path, model(lazily, "self.mask = None")).changed_state == ["mask"]


def test_a_count_that_is_made_when_it_is_needed_is_state(tmp_path):
    lazily = "if self.step is None:\n    self.step = torch.zeros(1)\nself.step = self.step + 1\nreturn x * self.step"
    assert learned(tmp_path, model(lazily, "self.step = None")).changed_state == ["step"]


def test_a_reference_that_compiles_something_is_watched_like_any(tmp_path):
    """What PyTorch compiles in its own operations of higher order, as `flex_attention` does, too."""
    text = model("return torch.cond(x.sum() > 0, lambda x: x.exp(), lambda x: x.sin(), (x,))")
    facts = audit(reference_of(tmp_path, text))
    assert facts.task_class == "fp32" and not facts.random
