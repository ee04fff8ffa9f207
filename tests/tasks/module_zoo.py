"""Small modules of many kinds, each with example inputs, for capture and printing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Sequential(nn.Linear(16, 8), nn.Tanh()))

    def forward(self, x):
        return self.blocks(x)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(8, 8)
        self.decode = nn.Linear(8, 8)
        self.decode.weight = self.encode.weight

    def forward(self, x):
        return self.decode(torch.relu(self.encode(x)))


class SharedChild(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x))


class Buffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(100, 64))
        self.register_buffer("mask", torch.rand(8) < 0.5)
        self.register_buffer("hidden_table", torch.randn(8, 100), persistent=False)
        self.plain = torch.linspace(0, 1, 8)

    def forward(self, x):
        return (x * self.plain).masked_fill(self.mask, -1.0) @ self.hidden_table @ self.table


class CountsCalls(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x):
        self.seen.add_(x.sum(dim=0))
        return x - self.seen


class TupleOut(nn.Module):
    def forward(self, x):
        values, indices = torch.sort(x, dim=-1)
        return values, (indices, x.argmax(dim=-1))


class DictOut(nn.Module):
    def forward(self, x):
        return {"sum": x.sum(-1), "parts": [x.exp(), None, 3], 1: x > 0}


class NestedArguments(nn.Module):
    def forward(self, x, states, options):
        h, c = states
        return x + h * options["scale"], c + options["shift"]


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 6, 3, 2, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


class ConvNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, stride=2)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)


class InPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 1:3] += 2.0
        y.clamp_(-1, 1).mul_(3)
        y[0] = float("inf")
        return y


class ChangesArgument(nn.Module):
    def forward(self, x, out):
        out.copy_(x * 2)
        return x + out


class Views(nn.Module):
    def forward(self, x):
        a, b, _ = x.chunk(3, dim=1)
        c, d = torch.split(a, [1, 1], dim=1)
        return torch.stack([c, d]).squeeze(2).transpose(0, 1), b[..., None].expand(-1, -1, 4), x.view(-1)[::2]


class Factories(nn.Module):
    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        mask = torch.ones_like(x).tril() == 0
        constant = torch.tensor([0.5, float("nan"), 1.0]).nan_to_num(2.0).sum()
        return (
            (x + positions).masked_fill(mask, float("-inf")),
            torch.zeros(2, 3).to(x.device),
            constant.to(x.device) * x,
        )


class Embeds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(50, 8, mode="mean")
        self.table = nn.Embedding(50, 8, padding_idx=0)

    def forward(self, items, offsets):
        return self.bag(items, offsets), self.table(items)


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
        with torch.no_grad():
            y = y.float() * 2
        return y


class Masked(nn.Module):
    def forward(self, x):
        chosen = x[x > 0]
        return chosen.sum(), x.index_fill(0, torch.tensor([0]), 1.0)


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        gates = torch.zeros(x.shape[0], 4).scatter(1, chosen, weights)
        return sum(gates[:, i, None] * expert(x) for i, expert in enumerate(self.experts))


class DefaultArguments(nn.Module):
    def forward(self, x, scale=2.0, *, bias=None, flip=False):
        y = x * scale
        y = y if bias is None else y + bias
        return y.flip(-1) if flip else y


class Keywords(nn.Module):
    """Attributes and arguments with awkward names."""

    def __init__(self) -> None:
        super().__init__()
        self.torch = nn.Linear(4, 4)
        self.params = nn.ParameterList([nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))])
        self.dict = nn.ParameterDict({"a-b": nn.Parameter(torch.randn(4))})

    def forward(self, torch_, linear):
        return self.torch(torch_) * self.params[0] + self.params[1] * linear + self.dict["a-b"]


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(32.0), 1e4 ** (-torch.arange(0, 16, 2) / 16))
        self.register_buffer("cis", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, x):
        z = torch.view_as_complex(x.reshape(2, 32, 8, 2))
        return torch.view_as_real(z * self.cis).flatten(2)


class Dropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) + torch.rand_like(x)


class Losses(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target, label_smoothing=0.1), F.kl_div(
            logits.log_softmax(-1), logits.flip(0).log_softmax(-1), log_target=True, reduction="batchmean"
        )


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


ZOO: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]]]] = {
    "linear": (lambda: nn.Linear(8, 4), lambda: (x(3, 8),)),
    "root_sequential": (lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)), lambda: (x(3, 8),)),
    "nested": (Nested, lambda: (x(3, 8),)),
    "tied": (Tied, lambda: (x(3, 8),)),
    "shared_child": (SharedChild, lambda: (x(3, 8),)),
    "buffers": (Buffers, lambda: (x(3, 8),)),
    "counts_calls": (CountsCalls, lambda: (x(3, 8),)),
    "tuple_out": (TupleOut, lambda: (x(3, 8),)),
    "dict_out": (DictOut, lambda: (x(3, 8),)),
    "nested_arguments": (NestedArguments, lambda: (x(3, 8), (x(3, 8), x(3, 8)), {"scale": x(8), "shift": 2})),
    "attention": (SelfAttention, lambda: (x(2, 6, 16),)),
    "mha": (lambda: nn.MultiheadAttention(16, 2, batch_first=True), lambda: (x(2, 6, 16),) * 3),
    "conv_norm_train": (ConvNorm, lambda: (x(2, 3, 16, 16),)),
    "conv_norm_eval": (lambda: ConvNorm().eval(), lambda: (x(2, 3, 16, 16),)),
    "in_place": (InPlace, lambda: (x(3, 4),)),
    "changes_argument": (ChangesArgument, lambda: (x(3, 4), x(3, 4))),
    "views": (Views, lambda: (x(2, 6),)),
    "factories": (Factories, lambda: (x(5, 5),)),
    "embeds": (Embeds, lambda: (torch.randint(0, 50, (10,)), torch.tensor([0, 4, 7]))),
    "autocast": (Autocast, lambda: (x(3, 8),)),
    "masked": (Masked, lambda: (x(3, 8),)),
    "experts": (Experts, lambda: (x(3, 8),)),
    "defaults": (DefaultArguments, lambda: (x(3, 8), 3.0)),
    "keywords": (Keywords, lambda: (x(3, 4), x(3, 4))),
    "rotary": (Rotary, lambda: (x(2, 32, 16),)),
    "dropped": (Dropped, lambda: (x(3, 8),)),
    "losses": (Losses, lambda: (x(3, 8), torch.randint(0, 8, (3,)))),
    "lstm": (lambda: nn.LSTM(8, 8, num_layers=2, batch_first=True), lambda: (x(2, 5, 8),)),
    "gru": (lambda: nn.GRU(8, 8, bidirectional=True), lambda: (x(5, 2, 8), x(2, 2, 8))),
    "transformer": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), lambda: (x(2, 6, 16),)),
    "transformer_eval": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(),
        lambda: (x(2, 6, 16),),
    ),
    "half": (lambda: nn.Linear(8, 4).bfloat16(), lambda: (x(3, 8).bfloat16(),)),
    "double": (lambda: nn.LayerNorm(8).double(), lambda: (x(3, 8).double(),)),
    "group_norm": (lambda: nn.GroupNorm(2, 8), lambda: (x(2, 8, 5).transpose(0, 1).contiguous().transpose(0, 1),)),
}
