"""`cuda-l1 prompt`: what a language model would be asked, with what the archive holds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import command
from cuda_l1.cli.output import Output
from cuda_l1.texts import many

if TYPE_CHECKING:
    from cuda_l1.archive import Archive


class Kind(StrEnum):
    """Which question."""

    contrastive = "contrastive"
    one_shot = "one-shot"
    compact = "compact"
    repair = "repair"


class Written(StrEnum):
    """What the model is asked to write."""

    auto = "auto"
    cuda = "cuda"
    triton = "triton"
    cpp = "cpp"
    pytorch = "pytorch"


class Sampler(StrEnum):
    """How the earlier variants are drawn."""

    bucket = "bucket"
    island = "island"
    random = "random"
    top = "top"
    none = "none"
    shuffled = "bucket-shuffled-scores"
    hidden = "bucket-hidden-scores"


@command(kept="nothing was changed")
def prompt(
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="A built-in name, a file, file.py::ClassName, or a task of a suite.")
    ],
    kind: Annotated[Kind, typer.Option(help="contrastive: earlier variants with scores; repair: the last failure.")] = (
        Kind.contrastive
    ),
    language: Annotated[Written, typer.Option(help="What to write; auto goes by the device.")] = Written.auto,
    sampler: Annotated[Sampler, typer.Option(help="How the earlier variants are drawn.")] = Sampler.bucket,
    exemplars: Annotated[int, typer.Option(min=0, max=16, help="How many earlier variants.")] = 2,
    seed: Annotated[int, typer.Option(help="Of the draw.", min=0)] = 0,
    profile: Annotated[bool, typer.Option("--profile", help="Say what is known about the best variant.")] = False,
    failures: Annotated[int, typer.Option(min=0, max=8, help="How many failed attempts.")] = 2,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1000, help="A longer prompt loses parts, failed attempts first, then is an error."),
    ] = None,
    template: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A Jinja template of your own for the user message.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A model's folder or tokenizer.json; default: an estimate.")
    ] = None,
    device: o.Device = "auto",
    inputs: o.Inputs = None,
    init: o.Init = None,
    weights: o.Weights = None,
    dtype: o.Dtype = None,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> None:
    """Print what a language model would be asked about TASK, with what the archive holds, and its number of tokens.

    It is the next question of a search that has the same settings, --seed included.

    Example: cuda-l1 prompt diagonal_matmul --device cpu

    Example: cuda-l1 prompt model.py --kind one-shot --language triton --tokenizer Qwen3-8B/
    """
    from cuda_l1.api.places import resolve_device
    from cuda_l1.api.prompting import show_prompt
    from cuda_l1.config import PromptSettings, SamplerSettings
    from cuda_l1.prompts.build import prompt_tokens
    from cuda_l1.prompts.tokens import ESTIMATE, load_tokenizer
    from cuda_l1.tasks import load_task

    output = Output(as_json=json)
    counter = load_tokenizer(tokenizer) if tokenizer else ESTIMATE
    settings = PromptSettings(
        kind="contrastive" if kind is Kind.repair else kind.value,
        language=language.value,
        profile=profile,
        failures=failures,
        template=str(template) if template else None,
        max_tokens=max_tokens,
    )
    place = resolve_device(device)
    loaded = load_task(task, device=place, dtype=dtype, inputs=inputs, init=init, weights=weights)
    with _archive(archive) as opened:
        made, notes = show_prompt(
            loaded,
            settings,
            SamplerSettings(kind=sampler.value, count=exemplars),
            archive=opened,
            device=place,
            seed=seed,
            repair=kind is Kind.repair,
            counter=counter,
        )
    size = prompt_tokens(made, counter)
    if not json:
        output.text(f"# system\n\n{made.system}\n# user\n\n{made.user}")
        output.say(f"{size} tokens ({counter.name}), {made.template}, {many(len(made.exemplars), 'earlier variant')}")
    for note in notes:
        output.say(note)
    output.record("prompt", made, sha=made.sha, tokens=size, tokenizer=counter.name)
    output.summary(task_id=loaded.id, tokens=size, tokenizer=counter.name, exemplars=len(made.exemplars))


def _archive(where: str | None) -> Archive:
    """The archive, an empty one where nobody has made one yet; one that is named must be there."""
    from cuda_l1.archive import Archive

    return Archive.look() if where is None else Archive.open(where, create=False)
