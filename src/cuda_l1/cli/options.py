"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, a summary last.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.", metavar="DEVICE")]
ArchiveOption = Annotated[
    str | None,
    typer.Option("--archive", help="The archive: a path or a database URL; default $CUDA_L1_ARCHIVE.", metavar="WHERE"),
]
Dtype = Annotated[str | None, typer.Option("--dtype", help="fp32, bf16, fp16, ...", metavar="DTYPE")]
Inputs = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="SPEC",
        help="For file.py::ClassName: 'randn(8,128,4096):bf16', a .pt file, or module:function.",
    ),
]
Init = Annotated[
    str | None, typer.Option("--init", metavar="ARGS", help="Constructor arguments, e.g. '512, bias=True'.")
]
Weights = Annotated[
    str | None, typer.Option("--weights", metavar="FILE", help="A safetensors file or a saved state_dict.")
]

LimitsOption = Annotated[
    str | None,
    typer.Option(
        "--limits",
        metavar="NAME=NUMBER,...",
        help="Deadlines and caps of an evaluation, e.g. 'verdict_s=600,memory_bytes=34359738368'.",
    ),
]
FinalBudget = Annotated[
    str, typer.Option("--final-budget", metavar="TIME", help="For the pairs of a final beyond its first five.")
]

ReviewerOption = Annotated[
    str | None,
    typer.Option(
        "--reviewer",
        metavar="URL",
        help="An OpenAI-compatible endpoint to ask about a jump in speed-up; the sources are sent there. Default: off.",
    ),
]
ReviewerModel = Annotated[
    str | None,
    typer.Option("--reviewer-model", metavar="NAME", help="Its model; default: the only one that it serves."),
]
ReviewerKeyFile = Annotated[
    str | None,
    typer.Option(
        "--reviewer-key-file",
        metavar="FILE",
        help="Its first line is the reviewer's key; default: $OPENAI_API_KEY where that is for its address, else none.",
    ),
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="For --proposer llm: a model as its endpoint calls it, once for each; with settings behind it: "
        "'NAME,temperature=0.7,max_tokens=16000,concurrency=8,url=http://host:8000/v1'.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Where models are served; default $OPENAI_BASE_URL."),
]
KeyFile = Annotated[
    str | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="Its first line is the key for --base-url; default: $OPENAI_API_KEY where that is for it, else none.",
    ),
]
MaxUsd = Annotated[
    float | None,
    typer.Option("--max-usd", metavar="X", help="What all models together may cost in a search, by --prices."),
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", help="Tokens of all questions and answers of a search.")
]
PricesOption = Annotated[
    str | None,
    typer.Option("--prices", metavar="FILE", help="What models cost; default ~/.config/cuda-l1/prices.toml."),
]
SamplerOption = Annotated[
    str | None,
    typer.Option(
        "--sampler",
        metavar="KIND",
        help="Which earlier variants a model is shown: bucket, island, random, top, none, or a control, "
        "bucket-shuffled-scores and bucket-hidden-scores; e.g. 'bucket,count=2'. A search takes "
        "bucket, with a policy what it was trained with.",
    ),
]
PromptOption = Annotated[
    str | None,
    typer.Option(
        "--prompt",
        metavar="KIND",
        help="contrastive, one-shot or compact, e.g. 'contrastive,language=triton,max_tokens=16000'. A "
        "search takes contrastive, with a policy what it was trained with.",
    ),
]
Repair = Annotated[
    bool, typer.Option("--repair/--no-repair", help="Hand what fails back once, with what was said about it.")
]
GenerationOption = Annotated[
    str | None,
    typer.Option(
        "--generation",
        metavar="NAME=VALUE,...",
        help="For --proposer policy:FOLDER: how it writes, e.g. 'temperature=0.8,max_new_tokens=1024,batch=16,"
        "device=cuda:1'.",
    ),
]
AtOnce = Annotated[
    int | None,
    typer.Option(
        "--at-once",
        metavar="N",
        min=1,
        max=1024,
        help="Evaluators side by side: fewer leave each more memory. Default: as many as cores and memory allow.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Of the draws of earlier variants, and of a policy's replies.")
]

Shapes = Annotated[
    str | None,
    typer.Option(
        "--shapes",
        metavar="SIZES",
        help="Try accepted candidates at other sizes: auto (when given alone), or e.g. 'batch_size=1,7,64 dim=512'.",
    ),
]


class BareShapes(TyperCommand):
    """A command whose `--shapes` may stand alone, which means `auto`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        filled = []
        for word, following in zip(args, [*args, "--"][1:], strict=True):
            filled.append(word)
            if word == "--shapes" and following.strip() not in ("", "auto") and "=" not in following:
                filled.append("auto")
        return super().parse_args(ctx, filled)


class Commands(TyperGroup):
    """The commands; what is wrong about a value is told as everywhere."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            from cuda_l1.validation import plain

            if isinstance(error.__cause__, ValidationError):
                error.message = plain(error.__cause__.errors()[0])
            raise


RequireShapes = Annotated[
    bool, typer.Option("--require-shapes", help="Only a candidate that holds at all of --shapes is a success.")
]


class PrecisionChoice(StrEnum):
    """The least exact class that may win; `default` is the task's own."""

    default = "default"
    fp32 = "fp32"
    tf32 = "tf32"
    relaxed = "relaxed"


class ClockChoice(StrEnum):
    """The objective: device time (the default on a GPU), or what a caller waits for (the default on a CPU)."""

    device = "device"
    call = "call"


class OwnProtocolChoice(StrEnum):
    """How much evidence: `final` has an interval, `screen` is quick."""

    final = "final"
    screen = "screen"


class ProtocolChoice(StrEnum):
    """The same, and what a published harness says."""

    final = "final"
    screen = "screen"
    cuda_l1 = "cuda-l1"
    kernelbench = "kernelbench"
    kernelbench_2025 = "kernelbench-2025"


PrecisionOption = Annotated[
    PrecisionChoice, typer.Option("--precision", help="The least exact class that may win; default: the task's own.")
]
