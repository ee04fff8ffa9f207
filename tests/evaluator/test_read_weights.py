"""Where the elements of the weights lie that an answer is made of."""

from __future__ import annotations

import torch
from evaluator_support import reference_of

from cuda_l1.evaluator.guest import read_weights, state, weight_forms
from cuda_l1.evaluator.guest.read_weights import read_elements

TABLE = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(500, 8)
            self.places = nn.Parameter(torch.randn(200, 8))
            self.linear = nn.Linear(64, 64)
            self.calls = torch.zeros(())

        def forward(self, ids):
            self.calls = self.calls + 1
            x = self.words(ids) + self.places[: ids.shape[1]]
            return self.linear(x.flatten(1))

    def get_inputs():
        return [torch.randint(0, 500, (2, 8))]
"""
ROUNDED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(500, 8)

        def forward(self, ids):
            BODY

    def get_inputs():
        return [torch.randint(0, 500, (4,))]
"""


def test_rows_that_inputs_choose_are_found_and_touched(tmp_path):
    reference = reference_of(tmp_path, TABLE)
    inputs, weights = reference.draw(), reference.other_weights()
    read = read_elements(reference, inputs, weights)
    assert set(read) == {"words.weight", "places"}, "all of the matrix is read"
    rows = set(inputs[0].flatten().tolist())
    assert set((read["words.weight"] // 8).tolist()) == rows and set((read["places"] // 8).tolist()) == set(range(8))
    live = state.collect(reference.model)
    assert all(torch.equal(live[name], value) for name, value in reference.public.items()), "all is as it was"
    for exchanged in (True, False):
        part = (("words.weight",), ("places",))
        touched = weight_forms.with_touched(weights, part, any_sign=True, exchanged=exchanged, read=read)
        for name in read:
            changed = (touched[name] != weights[name]).any(1).nonzero().flatten().tolist()
            assert changed and {row * 8 for row in changed} <= {int(at) // 8 * 8 for at in read[name]}


def test_sparse_gradients_name_places_too(tmp_path):
    reference = reference_of(tmp_path, TABLE.replace("nn.Embedding(500, 8)", "nn.Embedding(500, 8, sparse=True)"))
    inputs = reference.draw()
    read = read_elements(reference, inputs, reference.public)
    assert set((read["words.weight"] // 8).tolist()) == set(inputs[0].flatten().tolist())


def test_of_many_places_some_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(read_weights, "MOST_NAMED", 16)
    reference = reference_of(tmp_path, TABLE)
    inputs = reference.draw()
    named = read_elements(reference, inputs, reference.public)["words.weight"]
    assert 0 < len(named) <= 16 and set((named // 8).tolist()) <= set(inputs[0].flatten().tolist())


def test_without_a_gradient_nothing_is_said(tmp_path):
    for body in ("return self.words.weight.detach()[ids]", "return self.words(ids).round().long()"):
        reference = reference_of(tmp_path, ROUNDED.replace("BODY", body))
        assert read_elements(reference, reference.draw(), reference.public) == {}
