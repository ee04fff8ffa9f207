"""What would end in an assertion on a GPU is refused before it runs, and nothing else is."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from evaluator_support import reference_of
from torch._subclasses.fake_tensor import FakeTensorMode

from cuda_l1.evaluator.guest.device_asserts import DeviceAsserts
from cuda_l1.evaluator.guest.oracle import Choices
from cuda_l1.evaluator.guest.reference import BadTask

X = torch.rand(4, 5, generator=torch.Generator().manual_seed(0))
BY_INDEX = {
    "index": lambda i: X[i],
    "index from the end": lambda i: X[-1 - i],
    "index of columns": lambda i: X[:, i],
    "index beside a mask": lambda i: X.unsqueeze(0)[torch.tensor([True]), i],
    "index_put": lambda i: X.clone().index_put((i,), torch.zeros(2, 5)),
    "gather": lambda i: X.gather(0, i.view(2, 1)),
    "index_select": lambda i: X.index_select(0, i),
    "index_add": lambda i: X.index_add(0, i, torch.zeros(2, 5)),
    "index_copy": lambda i: X.index_copy(0, i, torch.zeros(2, 5)),
    "index_fill": lambda i: X.index_fill(0, i, 1.0),
    "scatter": lambda i: X.scatter(0, i.view(2, 1), 1.0),
    "scatter_add": lambda i: X.scatter_add(0, i.view(2, 1), torch.ones(2, 1)),
    "scatter_reduce": lambda i: X.scatter_reduce(0, i.view(2, 1), torch.ones(2, 1), "amax"),
    "take": lambda i: X.take(3 * i),
    "put": lambda i: X.clone().put_(3 * i, torch.zeros(2)),
    "embedding": lambda i: F.embedding(i, X),
    "embedding_bag": lambda i: F.embedding_bag(i, X, torch.tensor([0, 1])),
    "cross_entropy": lambda i: F.cross_entropy(X[:2], i),
    "cross_entropy of pixels": lambda i: F.cross_entropy(X[:, :2].unsqueeze(0), i.view(1, 2)),
    "cross_entropy, smoothed": lambda i: F.cross_entropy(X[:2], i, label_smoothing=0.1),
    "multi_margin_loss": lambda i: F.multi_margin_loss(X[:2], i),
    "multilabel_margin_loss": lambda i: F.multilabel_margin_loss(X[:1, :3], F.pad(i, (0, 1), value=-1).view(1, 3)),
    "max_unpool2d": lambda i: F.max_unpool2d(X[:1, :2].view(1, 1, 2), i.view(1, 1, 2), (1, 2), output_size=(1, 4)),
}
BY_NUMBERS = {
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x, torch.ones(4, 5)),
    "bernoulli": torch.bernoulli,
    "bernoulli_": lambda x: torch.empty(4, 5).bernoulli_(x),
    "multinomial": lambda x: torch.multinomial(x, 2),
    "poisson": torch.poisson,
}


@pytest.mark.parametrize("operation", BY_INDEX.values(), ids=BY_INDEX)
def test_an_index_out_of_range_is_refused(operation):
    with DeviceAsserts() as asked:
        operation(torch.tensor([0, 2]))
    assert asked.any
    with DeviceAsserts(), pytest.raises(ValueError, match="not among"):
        operation(torch.tensor([1, 27]))


@pytest.mark.parametrize("operation", BY_NUMBERS.values(), ids=BY_NUMBERS)
def test_a_number_that_is_none_of_these_is_refused(operation):
    with DeviceAsserts() as asked:
        operation(X)
    assert asked.any
    for other in (-X, torch.full((4, 5), torch.nan)):
        with DeviceAsserts(), pytest.raises(ValueError, match="aten"):
            operation(other)


def test_a_truth_that_is_no_share_is_refused():
    with DeviceAsserts(), pytest.raises(ValueError, match="between zero and one"):
        F.binary_cross_entropy(X, X + 1.0)


def test_more_elements_than_there_are_are_refused():
    with DeviceAsserts() as asked:
        assert X[:, :1].masked_scatter(X[0] >= 0, torch.ones(20)).shape == (4, 5)
    assert asked.any
    with DeviceAsserts(), pytest.raises(ValueError, match="more than the 19 elements"):
        X[:, :1].masked_scatter(X[0] >= 0, torch.ones(19))


def test_bags_and_groups_that_end_before_they_begin_are_refused():
    tokens, rows = torch.tensor([0, 1, 2, 3]), torch.randn(8, 16, dtype=torch.bfloat16)
    experts = torch.randn(3, 16, 16, dtype=torch.bfloat16)
    with DeviceAsserts():
        F.embedding_bag(tokens, X, torch.tensor([0, 0, 3, 4]))
        F.embedding_bag(tokens, X, torch.tensor([0, 3, 4]), include_last_offset=True)
        torch._grouped_mm(rows, experts, offs=torch.tensor([0, 3, 8], dtype=torch.int32))
    with DeviceAsserts(), pytest.raises(ValueError, match="a bag ends"):
        F.embedding_bag(tokens, X, torch.tensor([0, 3, 1]))
    for ends in ([3, 2, 8], [-1, 3, 8]):
        with DeviceAsserts(), pytest.raises(ValueError, match="a group ends"):
            torch._grouped_mm(rows, experts, offs=torch.tensor(ends, dtype=torch.int32))


def test_what_follows_a_list_of_targets_is_never_looked_at():
    """A CPU asks for more."""
    with DeviceAsserts(), pytest.raises(RuntimeError, match="target"):
        F.multilabel_margin_loss(X[:1], torch.tensor([[0, 4, -100, 9, -1]]))
    with DeviceAsserts(), pytest.raises(ValueError, match="a target"):
        F.multilabel_margin_loss(X[:1], torch.tensor([[0, 5, -1, -1, -1]]))


def test_operations_are_taken_apart_where_nothing_else_does_that():
    with DeviceAsserts() as asked, torch.inference_mode():
        assert X.repeat_interleave(2).shape == (40,) and not asked.any
        assert X.repeat_interleave(torch.tensor([2]), 0, output_size=8).shape == (8, 5)
        with pytest.raises(ValueError, match="not among"):
            F.cross_entropy(X[:2], torch.tensor([1, 27]))


@pytest.mark.parametrize("operation", BY_NUMBERS.values(), ids=BY_NUMBERS)
def test_what_is_asked_is_nothing_that_a_reference_asks(operation):
    """It compares numbers, which a reference that has no edges does not."""
    with Choices() as seen, DeviceAsserts() as asked:
        operation(X)
    assert asked.any and not (seen.edges or seen.found)


@torch.library.custom_op("cuda_l1_tests::gather", mutates_args=())
def gather(x: torch.Tensor, places: list[int]) -> torch.Tensor:
    """Named as one of PyTorch's, with arguments of its own."""
    return x[places]


def test_tensors_that_hold_nothing_to_ask_are_let_through():
    i = torch.tensor([0, 2])
    with DeviceAsserts(), FakeTensorMode() as fake:
        assert F.embedding(fake.from_tensor(i), fake.from_tensor(X)).shape == (2, 5)
    with DeviceAsserts():
        assert X.to("meta")[i.to("meta")].shape == (2, 5)
        assert torch.equal(gather(X, [0, 2]), X[i])


def test_weights_of_nothing_and_counts_of_another_sum_are_refused():
    with DeviceAsserts(), pytest.raises(ValueError, match="no weight of a row"):
        torch.multinomial(torch.zeros(2, 3), 1)
    counts = torch.tensor([2, 1])
    with DeviceAsserts():
        assert counts.repeat_interleave(counts, output_size=3).tolist() == [2, 2, 1]
    with DeviceAsserts(), pytest.raises(ValueError, match="not 4 in all"):
        counts.repeat_interleave(counts, output_size=4)
    with DeviceAsserts(), pytest.raises(ValueError, match="below zero"):
        counts.repeat_interleave(-counts)
    with DeviceAsserts(), pytest.raises(ValueError, match="assertion"):
        torch._assert_async(torch.tensor(False))


def test_what_means_nothing_is_not_refused():
    with DeviceAsserts():
        F.cross_entropy(X[:2], torch.tensor([1, -100]))
        F.cross_entropy(X[:2], torch.tensor([1, 7]), ignore_index=7)
        assert X[torch.tensor([True, False, True, False])].shape == (2, 5)
        assert X[torch.zeros(0, dtype=torch.int64)].shape == (0, 5)
        X.unsqueeze(0)[:, torch.tensor([3])]
        F.embedding(torch.zeros(0, dtype=torch.int64), X)
    with DeviceAsserts() as asked:
        F.dropout(X @ X.T, 0.5)
        X.masked_fill(X > 0.5, 0.0).softmax(-1).topk(2)
    assert not asked.any


def test_a_reference_on_a_gpu_refuses_what_it_does_not_stand(tmp_path):
    text = """
class Model(nn.Module):
    def forward(self, x, index):
        return x[index]
def get_inputs():
    return [torch.randn(4, 3), torch.randint(4, (8,))]
"""
    reference = reference_of(tmp_path, text)
    inputs = reference.draw()
    whole = reference.call(inputs, reference.public).tensors[0]
    with pytest.raises(BadTask, match="out of bounds"):
        reference.call([inputs[0], inputs[1] + 4], reference.public)
    reference.device = "cuda"  # as far as it is told, so that it asks
    try:
        run = reference._run(lambda model, args: model(*args), reference.model, inputs)
        assert torch.equal(run, whole)
        with pytest.raises(ValueError, match="not among"):
            reference._run(lambda model, args: model(*args), reference.model, [inputs[0], inputs[1] + 4])
    finally:
        reference.device = "cpu"


def test_a_reference_without_such_kernels_is_watched_for_a_few_calls_alone(tmp_path, monkeypatch):
    text = """
class Model(nn.Module):
    def forward(self, x):
        return x.exp()
def get_inputs():
    return [torch.randn(4, 3)]
"""
    reference = reference_of(tmp_path, text)
    reference.device, watched = "cuda", []
    monkeypatch.setattr(DeviceAsserts, "__enter__", lambda self: watched.append(self) or self)
    monkeypatch.setattr(DeviceAsserts, "__exit__", lambda self, *_: None)
    for _ in range(20):
        reference._run(lambda model, args: model(*args), reference.model, [X])
    assert len(watched) == 8
