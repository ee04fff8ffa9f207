"""Losses: the end of a task. One number per sample, or one for all."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Sketch
from cuda_l1.tasks.synth.stages.stage import FLAT, Stage

_ROWS = frozenset({"rows", "wide"})

_WITH_TARGET = {
    "mse": "F.mse_loss({x}, {y}, REDUCTION)",
    "smooth-l1": "F.smooth_l1_loss({x}, {y}, REDUCTION)",
    "huber": "F.huber_loss({x}, {y}, REDUCTION, delta=0.5)",
    "l1": "F.l1_loss({x}, {y}, REDUCTION)",
    "log-cosh": "torch.log(torch.cosh(({x} - {y}).clamp(-8.0, 8.0)))",
    "charbonnier": "torch.sqrt(({x} - {y}) ** 2 + 1e-3)",
    "relative": "({x} - {y}).abs() / ({x}.abs() + {y}.abs() + 1e-2)",
}
_BINARY = {
    "binary-cross-entropy": "F.binary_cross_entropy_with_logits({x}, {y}, REDUCTION)",
    "hinge": "torch.clamp(1.0 - {x} * (2.0 * {y} - 1.0), min=0.0)",
    "focal": "(1.0 - torch.sigmoid({x} * (2.0 * {y} - 1.0))) ** 2 * F.softplus(-{x} * (2.0 * {y} - 1.0))",
    "soft-margin": "torch.log1p(torch.exp(-{x} * (2.0 * {y} - 1.0)))",
}


def _elements(s: Sketch, formula: str, target: str) -> None:
    """An element-wise loss; summed up over features, or over everything."""
    other = s.input("target", s.shape, target)
    per_sample = s.draw.chance(0.5)
    text = formula.replace("{y}", other)
    if "REDUCTION" in text and not per_sample:
        s.set(text.replace("REDUCTION", f'reduction="{s.draw.choice(("mean", "sum"))}"'), cost=3)
        s.become("scalar")
        return
    text = text.replace("REDUCTION", 'reduction="none"')
    inner = text if text.endswith(")") and text.startswith(("F.", "torch.")) else f"({text})"
    how = s.draw.choice(("mean", "sum"))
    s.set(f"{inner}.{how}(dim=-1)" if per_sample else f"{inner}.{how}()", cost=4)
    s.become("column" if per_sample else "scalar", *(s.shape[:-1] if per_sample else ()))


def _cross_entropy(s: Sketch) -> None:
    target = s.input("target", s.shape[:1], f"torch.randint(0, {s.width.text}, ({{shape}},))")
    smooth = ", label_smoothing=0.1" if s.draw.chance(0.4) else ""
    if s.draw.chance(0.5):
        s.set(f'F.cross_entropy({{x}}, {target}, reduction="none"{smooth})', cost=2)
        s.become("column", s.shape[0])
    else:
        s.set(f"F.cross_entropy({{x}}, {target}{smooth})", cost=2)
        s.become("scalar")


def _written_cross_entropy(s: Sketch) -> None:
    target = s.input("target", s.shape[:1], f"torch.randint(0, {s.width.text}, ({{shape}},))")
    s.set(f"torch.logsumexp({{x}}, dim=-1) - {{x}}.gather(-1, {target}[:, None]).squeeze(-1)", cost=2)
    s.become("column", s.shape[0])


def _soft_targets(s: Sketch) -> None:
    teacher = s.input("teacher", s.shape)
    temperature = s.draw.choice(("2.0", "4.0"))
    s.line(f"goal = F.softmax({teacher} / {temperature}, dim=-1)")
    s.line(f"student = F.log_softmax(x / {temperature}, dim=-1)")
    formula = s.draw.choice(("-(goal * student)", "goal * (torch.log(goal + 1e-8) - student)"))
    s.set(f"({formula}).sum(dim=-1)", cost=6)
    s.become("column", *s.shape[:-1])


def _contrastive(s: Sketch) -> None:
    other = s.input("other", s.shape)
    rows = s.shape[0].value
    s.flops += 2.0 * s.numel * rows
    s.bytes += 8 * rows * rows
    s.line(f"logits = F.normalize(x, dim=-1) @ F.normalize({other}, dim=-1).T / 0.1")
    s.set("torch.logsumexp(logits, dim=-1) - logits.diagonal()", cost=3)
    s.become("column", s.shape[0])


def _triplet(s: Sketch) -> None:
    near, far = s.input("positive", s.shape), s.input("negative", s.shape)
    s.line(f"closer = (x - {near}).pow(2).sum(dim=-1)")
    s.line(f"farther = (x - {far}).pow(2).sum(dim=-1)")
    s.set("F.softplus((closer - farther) / {x}.shape[-1])", cost=4)
    s.become("column", *s.shape[:-1])


def _cosine(s: Sketch) -> None:
    other = s.input("other", s.shape)
    s.set(f"1.0 - F.cosine_similarity({{x}}, {other}, dim=-1)", cost=3)
    s.become("column", *s.shape[:-1])


def _dice(s: Sketch) -> None:
    target = s.input("target", s.shape, "(torch.rand({shape}) < 0.3).float()")
    s.line("chance = torch.sigmoid(x)")
    s.line(f"overlap = 2.0 * (chance * {target}).sum(dim=-1) + 1.0")
    s.set(f"1.0 - overlap / (chance.sum(dim=-1) + {target}.sum(dim=-1) + 1.0)", cost=4)
    s.become("column", *s.shape[:-1])


def _divergence(s: Sketch) -> None:
    """A latent Gaussian against the standard one."""
    other = s.input("logvar", s.shape, "0.3 * torch.randn({shape})")
    s.set(f"-0.5 * (1.0 + {other} - {{x}} * {{x}} - {other}.exp()).sum(dim=-1)", cost=4)
    s.become("column", *s.shape[:-1])


STAGES = (
    *(
        Stage(f"{name}-loss", "loss", FLAT, partial(_elements, formula=formula, target="torch.randn({shape})"), 3, 2)
        for name, formula in _WITH_TARGET.items()
    ),
    *(
        Stage(
            f"{name}-loss",
            "loss",
            FLAT,
            partial(_elements, formula=text, target="(torch.rand({shape}) < 0.5).float()"),
            3,
            2,
        )
        for name, text in _BINARY.items()
    ),
    Stage("cross-entropy", "loss", _ROWS, _cross_entropy, 8, 2),
    Stage("written-cross-entropy", "loss", _ROWS, _written_cross_entropy, 4, 2),
    Stage("distillation", "loss", FLAT, _soft_targets, 5, 3),
    Stage("contrastive-loss", "loss", _ROWS, _contrastive, 5, 3),
    Stage("triplet-loss", "loss", FLAT, _triplet, 4, 3),
    Stage("cosine-loss", "loss", FLAT, _cosine, 4, 2),
    Stage("dice-loss", "loss", FLAT, _dice, 4, 3),
    Stage("latent-divergence", "loss", FLAT, _divergence, 4, 2),
)
