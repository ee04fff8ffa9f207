"""What the audit says of sound and of odd tasks."""

from __future__ import annotations

import math

import pytest
import torch
from evaluator_support import LINEAR, reference_of
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cuda_l1.evaluator.guest import audit as task_audit
from cuda_l1.evaluator.guest import oracle
from cuda_l1.evaluator.guest.audit import Facts, _keeps_dropout_state, audit
from cuda_l1.evaluator.guest.case import Case
from cuda_l1.evaluator.guest.plans import Plan
from cuda_l1.evaluator.guest.reference import BadTask


def task(forward: str, inputs: str = "[torch.randn(16, 32)]", init: str = "pass") -> str:
    return f"""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            {init}

        def forward(self, x):
            {forward}

    def get_inputs():
        return {inputs}
    """


PIXELS = "[torch.randint(0, 256, (65536, 3), dtype=torch.uint8)]"


@pytest.fixture
def look(tmp_path):
    return lambda body: audit(reference_of(tmp_path, body))


def test_a_sound_task_has_no_flags(look):
    facts: Facts = look(LINEAR)
    assert facts.flags == [] == facts.forgeries_passed and facts.task_class == "fp32" and facts.mode == "train"
    assert facts.relaxed_allowed and not facts.jumpy and not facts.random
    assert facts.input_bytes == facts.output_bytes == 16 * 32 * 4 and facts.reference_us > 0
    assert facts.outputs == [{"shape": [16, 32], "dtype": "float32", "stride": [32, 1]}]


@pytest.mark.parametrize(
    ("forward", "inputs", "own"),
    [
        ("return x.float() * (x < 1e20)", "[torch.randint(0, 9, (16, 32))]", "fp32"),
        ("return x + (torch.full((16, 32), float('inf')) < 3)", "[torch.randint(0, 9, (16, 32))]", "exact"),
        ("return torch.where(x == -1e9, 0, x * 2)", "[torch.randn(16, 32).half()]", "fp16"),
        ("return x * 2 * (x != 1e39)", "[torch.randn(16, 32, dtype=torch.complex64)]", "fp32"),
        ("return x.long() - 9 > 0", "[torch.randint(0, 19, (16, 32)).to(torch.uint16)]", "exact"),
    ],
)
def test_what_an_input_cannot_hold_is_not_put_there(look, forward, inputs, own):
    assert look(task(forward, inputs)).task_class == own


@pytest.mark.parametrize(
    ("body", "passed"),
    [
        (task("return x * 0.0"), {"zeros", "other-inputs"}),
        (task("return torch.relu(x)", "[torch.rand(16, 32)]"), set()),  # the sign trials tell it from a copy
        (task("return x.clone()"), {"input-copy"}),
        (task("return x.new_ones(4) * 2 + 0 * x.sum()"), {"other-inputs"}),
        (task("return x.half().float()", "[torch.randn(16, 32).half().float()]"), {"input-copy"}),
    ],
    ids=["zero", "relu", "copy", "constant", "copy-of-half"],
)
def test_degenerate_tasks_are_told_by_the_forgery_that_passes(look, body, passed):
    facts = look(body)
    assert passed <= set(facts.forgeries_passed) and bool(facts.forgeries_passed) == bool(passed)
    assert ("degenerate" in facts.flags) == bool(passed)


def test_inputs_and_weights_that_do_not_matter_are_flagged(look):
    assert "insensitive-inputs" in look(task("return x * 2", "[torch.ones(16, 32)]")).flags
    assert "insensitive-weights" in look(task("return x * 2", init="self.linear = nn.Linear(4, 4)")).flags
    assert "insensitive-weights" not in look(LINEAR).flags
    table = 'self.register_buffer("table", torch.arange(32.0))'
    assert "insensitive-weights" not in look(task("return x * self.table", init=table)).flags, "none was varied"


def test_cancellation_is_ill_conditioned(look):
    facts = look(task("return (x + 1e6) - 1e6"))
    assert "ill-conditioned" in facts.flags


def test_where_train_mode_is_ill_conditioned_eval_mode_is_judged(look):
    facts = look(
        task(
            "return self.norm(x * 0.1 + 1e3)",
            init="self.norm = nn.BatchNorm1d(32)",
        )
    )
    assert facts.mode == "eval" and "eval-mode" in facts.flags and "ill-conditioned" not in facts.flags


@pytest.mark.parametrize(
    "forward",
    ["keep = torch.rand_like(x) > 0.3; return x * keep, int(keep.sum())", "self.n += 1; return x * 2, self.n"],
    ids=["drawn", "counted"],
)
def test_numbers_that_differ_from_call_to_call_are_to_be_tensors(look, forward):
    with pytest.raises(BadTask, match=r"from call to call \(\[T,\d+\], then \[T,\d+\]\): return .* as tensors$"):
        look(task(forward, init="self.n = 0"))
    look(task(forward.replace("int(keep.sum())", "keep.sum()").replace(", self.n", ", 3"), init="self.n = 0"))


def test_dropout_is_random_and_batch_norm_is_stateful(look):
    facts = look(task("return F.dropout(x, 0.5, self.training)"))
    assert facts.random and "random" in facts.flags
    facts = look(task("return self.norm(x)", init="self.norm = nn.BatchNorm1d(32)"))
    assert not facts.random and "stateful" in facts.flags


@pytest.mark.parametrize(
    "body",
    [
        task("return (x * 8).round() / 8", "[torch.randn(64, 256)]"),
        task("return x.argmax(-1)", "[torch.randn(20000, 64)]"),
        task("return torch.where(x > 1 + x.mean(), 1.0, -1.0) + x", "[torch.randn(1000, 256)]"),
        task("return (x / x.abs().amax() * 127).round().clamp(-127, 127).to(torch.int8)", "[torch.randn(64, 64)]"),
        task("return (x.float() @ torch.tensor([0.299, 0.587, 0.114])).round().to(torch.uint8)", PIXELS),
    ],
    ids=["round", "argmax", "threshold", "int8", "pixels"],
)
def test_rounding_and_selection_jump(look, body):
    facts = look(body)
    assert facts.jumpy and "ill-conditioned" not in facts.flags


@pytest.mark.parametrize(
    ("made", "jumps"), [("torch.round(w / scale) * scale", True), ("torch.where(w > 0, w, 0.1 * w)", False)]
)
def test_rounded_weights_jump(look, made, jumps):
    body = f"""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(16, 32, 3, bias=False)

            def forward(self, x):
                w = self.conv.weight
                scale = w.abs().amax((1, 2, 3), keepdim=True) / 127
                return F.conv2d(x, {made})

        get_inputs = lambda: [torch.randn(2, 16, 8, 8)]
    """
    assert look(body).jumpy is jumps


@pytest.mark.parametrize(
    "forward",
    [
        "return torch.softmax(x, -1)",
        "return 1 / (x * x + 1e-3)",
        "return torch.relu(x)",
        "return F.layer_norm(x, (32,))",
        "return x.amax(-1)",
        "return torch.exp(3 * x)",
        "return torch.exp(5 * x)",
        "return torch.where(x > 0, x, 0.1 * x)",
    ],
)
def test_smooth_tasks_do_not_jump(look, forward):
    assert not look(task(forward)).jumpy


@pytest.mark.parametrize(
    "forward", ["return (x.float() @ torch.tensor([2.0, 3.0, 4.0])).long()", "return x.long().argmax(-1)"]
)
def test_integers_of_integers_do_not_jump_where_nothing_is_rounded(look, forward):
    assert not look(task(forward, PIXELS)).jumpy


def test_integer_outputs_are_of_class_exact(look):
    facts = look(task("return x.cumsum(0)", "[torch.randint(0, 100, (64,))]"))
    assert facts.task_class == "exact" and not facts.relaxed_allowed and facts.flags == []


def test_half_precision_tasks_are_of_their_own_class(look):
    body = task(
        "return self.linear(x)", "[torch.randn(16, 32).bfloat16()]", "self.linear = nn.Linear(32, 32).bfloat16()"
    )
    facts = look(body)
    assert facts.task_class == "bf16" and facts.flags == []


def test_a_half_precision_task_that_names_its_dtype_is_not_ill_conditioned(look):
    """In float32 and float64 such casts are lifted alike: rounding to the task's own dtype is no bad condition."""
    forward = "y = (x + x.flip(0)).float(); y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5); "
    facts = look(task(f"{forward}return x[0] * y.to(torch.bfloat16)", "[torch.randn(16, 512).bfloat16()]"))
    assert facts.task_class == "bf16" and facts.flags == []


HEAD = "self.head = nn.Linear(32, 32)"


@pytest.mark.parametrize(
    ("forward", "init", "own"),
    [
        ("return self.head(x.bfloat16()).float()", f"{HEAD}.bfloat16()", "bf16"),
        ("return F.cross_entropy(self.head(x.half()).float(), torch.arange(16))", f"{HEAD}.half()", "fp16"),
        ("with torch.autocast('cpu', dtype=torch.bfloat16): return self.head(x).float()", HEAD, "bf16"),
        ("return self.head(x) + 0 * x.half()", HEAD, "fp32"),
        ("return self.head(x.half()), x.cumsum(1)", f"{HEAD}.half()", "fp32"),
        ("return self.head(x.half().float()) + x.half()", HEAD, "fp16"),
    ],
    ids=["cast", "loss", "autocast", "aside", "beside", "rounded-inputs"],
)
def test_what_is_computed_in_half_precision_and_cast_is_of_that_class(look, forward, init, own):
    facts = look(task(forward, init=init))
    assert facts.task_class == own and facts.flags == [], facts.details


def test_complex_numbers_are_judged(look):
    body = task(
        "return torch.view_as_real(x * self.phase)",
        "[torch.randn(16, 32, dtype=torch.complex64)]",
        "self.phase = nn.Parameter(torch.randn(32, dtype=torch.complex64))",
    )
    facts = look(body)
    assert facts.task_class == "fp32" and "ill-conditioned" not in facts.flags


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        ("return torch.sqrt(-1 - x * x)", "own output 0 holds NaN"),
        ("return 3", "returns no tensor"),
        ("return x.nothing", "AttributeError"),
    ],
)
def test_a_reference_that_does_not_work_is_refused(look, forward, message):
    with pytest.raises(BadTask, match=message):
        look(task(forward))


@pytest.mark.parametrize(
    "body",
    [
        task("return F.binary_cross_entropy(x, (x > 0.5).to(x.dtype))", "[torch.rand(64, 256)]"),
        task("assert (x > 0).all()\n            return x.sqrt()", "[torch.rand(16, 32) + 0.1]"),
        task("assert x.dtype is torch.float32 or ((x == 0) | (x == 1)).all()\n            return x.cumsum(0)",
             "[torch.randint(0, 2, (16, 32)).float()]"),
        task("return torch.linalg.cholesky(self.spd) @ x", "[torch.randn(32, 8)]",
             "self.spd = nn.Parameter(0.9 * torch.ones(32, 32) + 0.1 * torch.eye(32))"),
    ],
    ids=["probabilities", "positive", "choices", "weights"],
)  # fmt: skip
def test_a_reference_may_refuse_what_its_task_does_not_draw(tmp_path, body):
    reference = reference_of(tmp_path, body)
    assert audit(reference).flags == []
    answer = reference.call(reference.draw(), reference.timed_weights)
    assert torch.isfinite(answer.tensors[0]).all()


@pytest.mark.parametrize(("forward", "signed"), [("x * self.scale", True), ("x * self.scale.sqrt()", False)])
def test_timed_weights_have_both_signs_where_the_reference_stands_them(tmp_path, forward, signed):
    body = task(f"return {forward}", "[torch.randn(8, 64)]", "self.scale = nn.Parameter(torch.ones(64))")
    reference = reference_of(tmp_path, body)
    scale = reference.timed_weights["scale"]
    assert bool((scale < 0).any()) is signed and not torch.equal(scale.abs(), torch.ones(64))


def test_where_numbers_end_at_one_jumps_are_looked_for_below_it(look):
    body = task(
        "assert (x <= 1).all()\n            return (x * 64).round()",
        "[torch.cat([torch.ones(1, 256), torch.rand(200, 256)])]",
    )
    assert look(body).jumpy


def test_a_count_of_calls_is_neither_randomness_nor_a_state_that_anyone_could_share(look):
    counts = "self.step += 1; return "
    with pytest.raises(BadTask, match=r"depend on `step`, .* keep it in a buffer"):
        look(task(f"{counts}torch.sigmoid(x / self.step)", init="self.step = 0"))
    with pytest.raises(BadTask, match="keep it in a buffer"):
        look(task(f"{counts}F.dropout(x, 0.5) / self.step", init="self.step = 0"))
    assert look(task(f"{counts}torch.sigmoid(x)", init="self.step = 0")).flags == []
    assert look(task(f"{counts}F.dropout(x, 0.5)", init="self.step = 0")).random
    assert look(task(f"{counts}x / self.step", init="self.register_buffer('step', torch.zeros(()))")).flags == [
        "stateful"
    ]


def test_other_weights_are_drawn_from_the_public_ones_whatever_ran_before(tmp_path):
    body = task("return self.norm(x)", init="self.norm = nn.BatchNorm1d(32)")
    reference = reference_of(tmp_path, body)
    audit(reference)
    assert reference.other_weights()["norm.num_batches_tracked"] == 1  # as one call leaves it


@pytest.mark.parametrize(("dropout", "keeps"), [(0.1, True), (0.0, False)])
def test_recurrent_networks_with_dropout_keep_a_state_of_their_own(dropout, keeps):
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.GRU(4, 4, num_layers=2, dropout=dropout))
    assert _keeps_dropout_state(model) is keeps


@pytest.mark.parametrize(
    ("forward", "flags"),
    [
        ("return torch.sigmoid(x) * 3", set()),
        ("return x * 0.0 + 1.0", {"degenerate", "insensitive-inputs"}),
        ("return (x * 20).round() + torch.sigmoid(x)", set()),
        ("return x @ x.t()", set()),
        ("return x > 0, x.softmax(-1), x", set()),
        ("return x.sum()", set()),
    ],
)
def test_of_large_answers_a_part_tells_the_same(tmp_path, monkeypatch, forward, flags):
    body = f"""
        class Model(nn.Module):
            def forward(self, x):
                {forward}

        def get_inputs():
            return [torch.randn(256, 64)]
    """
    whole = audit(reference_of(tmp_path, body))
    kept: list[int] = []
    lattice = oracle.lattice

    def noted(shape, limit=oracle.LATTICE):
        places = lattice(shape, limit)
        if limit == 9000:
            kept.append(math.prod(len(each) for each in places))
        return places

    monkeypatch.setattr(task_audit, "LARGE", 9000)
    monkeypatch.setattr(oracle, "lattice", noted)
    part = audit(reference_of(tmp_path, body))
    same = ["task_class", "mode", "jumpy", "random", "flags", "forgeries_passed", "outputs"]
    same += [] if "sum" in forward else ["relaxed_allowed"]  # of two draws a single number may be near another's
    assert {name: getattr(part, name) for name in same} == {name: getattr(whole, name) for name in same}
    assert flags <= set(part.flags) and max(kept, default=1) <= 9000 and bool(kept) == ("sum" not in forward)


class LiveBytes(TorchDispatchMode):
    """The most bytes that the storages of results of operations have had at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.most, self._held = 0, {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self._held[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self._held = {key: held for key, held in self._held.items() if not held[0].expired()}
        self.most = max(self.most, sum(size for _, size in self._held.values()))
        return made


def test_a_large_answer_is_compared_in_parts(tmp_path, monkeypatch):
    """Truth is twice the answer, and nothing else of its size may lie beside it for long."""
    monkeypatch.setattr(oracle, "WHOLE", 1 << 15)
    reference = reference_of(tmp_path, task("return torch.sigmoid(x)", "[torch.randn(1, 1 << 21)]"))
    inputs = reference.draw()
    answer, size = reference.call(inputs, reference.public, "plain"), 4 << 21
    with LiveBytes() as live:
        case = Case(reference, Plan("base"), inputs, reference.public, seed=1, jumpy=False)
        assert case.sound and case.best_class(case.errors(answer), relaxed=True) == "fp32"
    assert size < live.most < 7 * size


@pytest.mark.gpu
def test_inputs_that_wait_in_the_hosts_memory_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(task_audit, "LARGE", 256)
    roomy = audit(reference_of(tmp_path, LINEAR, "cuda"))
    parked: list[bool] = []
    monkeypatch.setattr(task_audit, "_is_crowded", lambda *_: parked.append(True) or True)
    crowded = audit(reference_of(tmp_path, LINEAR, "cuda"))
    assert parked and (crowded.task_class, crowded.flags) == (roomy.task_class, roomy.flags)


MARKED = "[torch.randn(64, 128).masked_fill_(torch.arange(8192).view(64, 128) == 77, -1.0)]"
WITHOUT_MARKS = "return torch.where(x == -1.0, torch.zeros_like(x), x).sum(-1)"


@pytest.mark.parametrize(
    ("forward", "inputs", "jumps"),
    [
        (WITHOUT_MARKS, MARKED, False),
        (WITHOUT_MARKS.replace("1.0", "0.625"), MARKED.replace("1.0", "0.625"), False),
        (WITHOUT_MARKS, MARKED.replace("torch.randn(64, 128)", "torch.randn(64, 128).relu()"), False),
        ("return torch.round(x * 8)", MARKED, True),
    ],
)
def test_a_round_number_that_a_draw_holds_by_chance_makes_no_jumps(look, forward, inputs, jumps):
    assert look(task(forward, inputs)).jumpy == jumps


def test_round_numbers_are_left_where_they_are_few_and_no_others():
    drawn = torch.randn(8192, dtype=torch.float64)
    one, many, large = drawn.clone(), drawn.relu(), drawn.clone()
    one[77], many[::1000], large[77] = -1.0, -1.0, 9000.0
    assert task_audit._drawn_by_chance(one).nonzero().tolist() == [[77]]
    assert not task_audit._drawn_by_chance(many).any() and not task_audit._drawn_by_chance(large).any()
    assert not task_audit._drawn_by_chance(one[:100]).any(), "of a small tensor one is not few"
