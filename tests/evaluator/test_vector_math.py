"""Functions of MKL's that choose their code in their first call."""

from __future__ import annotations

import os

import pytest
import torch

from cuda_l1.evaluator.guest import vector_math


def test_each_is_called_for_both_precisions(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    for name in vector_math.FUNCTIONS:
        function = getattr(torch, name)
        monkeypatch.setattr(
            torch, name, lambda values, f=function, n=name: called.append((n, values.dtype)) or f(values)
        )
    vector_math.call_once()
    assert {dtype for _, dtype in called} == {torch.float32, torch.float64}
    assert len(called) == 2 * len(vector_math.FUNCTIONS)


def test_a_guest_calls_them_before_it_has_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda_l1.evaluator.guest.channel import Channel
    from cuda_l1.evaluator.guest.judge import Judge
    from cuda_l1.evaluator.guest.runner import Runner

    order: list[str] = []
    monkeypatch.setattr(vector_math, "call_once", lambda: order.append("functions"))
    monkeypatch.setattr(torch, "set_num_threads", lambda count: order.append("threads"))
    runner, judge = Runner.__new__(Runner), Judge(Channel.pair()[0])
    told = {"threads": 2, "device": "cpu"}
    assert runner.warm(told, [])["pid"] == os.getpid()
    judge.warm(told, [])
    assert order == ["functions", "threads"] * 2
