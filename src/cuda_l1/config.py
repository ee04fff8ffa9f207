"""Frozen settings, a docstring per field. Importable without torch."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from cuda_l1.errors import UsageError
from cuda_l1.types import Clock, Frozen

Precision = Literal["default", "fp32", "tf32", "relaxed"]


_NUMBERS = (int, float, int | None, float | None)


class Settings(Frozen):
    """What a person may write: no number of it is infinite, or a truth value, and no text has what no path can hold."""

    model_config = ConfigDict(allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _is_meant(cls, value: object, info: ValidationInfo) -> object:
        assert info.field_name is not None
        if isinstance(value, bool) and cls.model_fields[info.field_name].annotation in _NUMBERS:
            raise ValueError("must be a number, no truth value")
        if isinstance(value, str) and "\0" in value:
            raise ValueError("must not hold a zero byte")
        return value


YEAR_S = 366 * 86400.0
"""A deadline later than this is a slip."""


class Limits(Settings):
    """Deadlines and caps for code that is not trusted. Baselines get ten times the deadlines."""

    build_s: float = Field(180.0, gt=0, le=YEAR_S)
    """Importing the candidate, compilers included."""
    first_call_s: float = Field(120.0, gt=0, le=YEAR_S)
    """The first call in a mode and with inputs of a layout: Triton and torch.compile compile in it."""
    call_factor: float = Field(10.0, gt=0, le=1e6)
    """Later calls: this many times the reference's time, plus five seconds."""
    verdict_s: float = Field(300.0, gt=0, le=YEAR_S)
    """Examining a task's reference, and a candidate's trials, each by itself; trials may take `first_call_s` longer.
    Building, waiting for a device and timing are in neither."""
    memory_bytes: int = Field(16 << 30, gt=0, le=1 << 50)
    """Host memory of a guest and its children."""
    work_bytes: int = Field(2 << 30, gt=0, le=1 << 50)
    """Size of the work directory."""
    processes: int = Field(256, gt=0, le=1 << 22)
    """Processes and threads of a guest."""
    log_bytes: int = Field(1 << 20, gt=0, le=1 << 32)
    """stdout and stderr together; the head and the tail are kept."""

    def within(self, seconds: float) -> Limits:
        """The same limits with no deadline later than so many seconds from now, a tenth of a second at the least."""
        most = max(seconds, 0.1)
        names = ("build_s", "first_call_s", "verdict_s")
        return self.model_copy(update={name: min(getattr(self, name), most) for name in names})

    def times(self, factor: float) -> Limits:
        """The same limits with every deadline multiplied."""
        return self.model_copy(
            update={
                "build_s": self.build_s * factor,
                "first_call_s": self.first_call_s * factor,
                "call_factor": self.call_factor * factor,
                "verdict_s": self.verdict_s * factor,
            }
        )


class Protocol(Frozen):
    """How much evidence a verdict rests on. Stored by name in the evaluation."""

    name: Literal["screen", "final"]
    first_pairs: int = Field(1, ge=1)
    """Fresh pairs of runners timed before the number is fixed."""
    max_pairs: int = Field(1, ge=1)
    pair_s: float = Field(0.3, gt=0)
    """Seconds of samples in a pair, all opponents and clocks together."""
    min_samples: int = Field(5, ge=1)
    """Samples per side and clock in a pair, however slow the call."""
    max_samples: int = Field(200, ge=1)
    """Samples per side and clock in a pair, however fast the call."""
    budget_s: float = Field(60.0, gt=0)
    """Beyond the first pairs timing opens no new ones after this long; the first ones may take three times as much."""
    profile_above: float | None = Field(None, ge=0)
    """A candidate that its first pair shows to be faster than this many times eager is profiled after its samples;
    None: nobody asks. On a GPU starting the profiler takes seconds."""


SCREEN = Protocol(name="screen")
FINAL = Protocol(name="final", first_pairs=5, max_pairs=20)
LEAST_PAIRS = 3
"""Pairs that are enough where the first ones take too long. Two are not: with them the interval of a speed-up of 30 can
still hold 1."""
FIRST_PAIRS_PATIENCE = 3.0
"""The first pairs together take too long where they pass this many times the protocol's budget."""


class CompatProtocol(Frozen):
    """A published harness, as far as it decides what is accepted and what is measured (docs/compatibility.md).

    Its figures say what that harness would have said. They never win, are never exported and stand in no headline.
    """

    name: Literal["cuda-l1", "kernelbench", "kernelbench-2025"]
    tolerance: float
    """`atol` and `rtol` of the one comparison, torch.allclose against the reference in its own arithmetic."""
    trials: int
    """Inputs that are compared."""
    eval_mode: bool = False
    """Compared in eval mode; timed, as all of them do, in the mode in which the constructor leaves the model."""
    seeds_candidate: bool = False
    """The candidate's call is seeded as the reference's is: dropout passes."""
    looks_for_lazy: bool = False
    """One output is looked at first: a plain torch.Tensor with storage, on the device."""
    refuses: tuple[str, ...] = ()
    """Texts that hold one of these are not run."""
    shares_names: bool = False
    """The candidate's text is executed where the reference's was: it may use its imports, constants and `Model`."""
    cast_to_fp32: bool = False
    """Every tensor among inputs and arguments and the models themselves, integers included."""
    rounds: int = 1
    """Fresh models each, timed one round after the other; the speed-up is the mean of theirs."""
    samples: int
    """Timed calls of each side in a round."""
    alternates: bool = False
    """Each sample has new inputs, given to both sides in random order; else one set of inputs for all calls."""
    discard: int = 0
    """First timed calls that do not count."""
    flushes: bool = False
    """256 MB are written before each timed call, so that the L2 cache is cold."""
    shares_process: bool = True
    """Reference and candidate are timed in one process, where what one sets globally reaches the other."""
    gives_up_below: float = 0.0
    """A round with a speed-up below this is the last."""
    digits: int | None = None
    """Significant digits that the two mean times are rounded to before they are divided."""


CUDA_L1 = CompatProtocol(
    name="cuda-l1",
    tolerance=1e-2,
    trials=10,
    eval_mode=True,
    seeds_candidate=True,
    looks_for_lazy=True,
    refuses=("time.sleep(", "input(", "while True:"),
    rounds=7,
    samples=10,
    alternates=True,
    gives_up_below=0.3,
)
"""CUDA-L1's release: `eval/eval_cuda.py` of November 2025."""
KERNELBENCH = CompatProtocol(
    name="kernelbench",
    tolerance=1e-4,
    trials=5,
    shares_names=True,
    cast_to_fp32=True,
    samples=100,
    discard=1,
    flushes=True,
    digits=3,
)
"""KernelBench as of March 2026, in fp32, timed by CUDA events: its defaults."""
KERNELBENCH_2025 = CompatProtocol(
    name="kernelbench-2025",
    tolerance=1e-2,
    trials=5,
    shares_names=True,
    samples=100,
    shares_process=False,
    digits=3,
)
"""KernelBench from its release to October 2025."""
COMPAT: dict[str, CompatProtocol] = {each.name: each for each in (CUDA_L1, KERNELBENCH, KERNELBENCH_2025)}
AnyProtocol = Protocol | CompatProtocol
ProtocolName = Literal["final", "screen", "cuda-l1", "kernelbench", "kernelbench-2025"]


def protocol_named(name: ProtocolName, final_budget_s: float) -> AnyProtocol:
    """The protocol of that name; `final` with this budget."""
    if name in COMPAT:
        return COMPAT[name]
    return SCREEN if name == "screen" else FINAL.model_copy(update={"budget_s": final_budget_s})


WARM_UPS = 3
"""Calls of each side before a published harness times: three in all of them."""


class EvaluatorSettings(Frozen):
    """What an evaluator is opened with."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda`, `cuda:N`."""
    lane: tuple[int, ...] | None = Field(None, min_length=1)
    """CPU cores that candidates run on; default all that this process may use."""
    interchangeable: bool = False
    """The lane stands for every other of as many cores of this machine, which must be of one kind: verdicts carry how
    many cores it has (`1-core`) in place of which, and are found and compared wherever that is the same."""
    rung: Literal["auto", "R0", "R1", "R2"] = "auto"
    """Sandbox rung; auto takes the highest that the machine allows."""
    limits: Limits = Limits()
    cache_dir: str | None = None
    """Content-addressed build cache; default `$XDG_CACHE_HOME/cuda-l1`."""

    @model_validator(mode="after")
    def _has_a_lane(self) -> Self:
        if self.interchangeable and self.lane is None:
            raise ValueError("`interchangeable` is said of a `lane`: name its cores")
        return self


class ReviewerSettings(Settings):
    """A language model that is asked about a jump in speed-up."""

    url: str
    """Base URL of an OpenAI-compatible endpoint, e.g. `http://localhost:8000/v1`."""
    model: str | None = None
    """Default: the only one that the endpoint serves."""
    key_file: str | None = None
    """A file whose first line is the key."""
    key_env: str | None = None
    """The environment's variable that holds the key; with neither as for a `ModelSettings`."""
    timeout_s: float = Field(300.0, gt=0, le=YEAR_S)
    """How long one opinion may take, further attempts included; a search gives it no more than its budget can spare."""


class SamplerSettings(Settings):
    """Which earlier variants of a task a prompt shows."""

    kind: Literal["bucket", "island", "random", "top", "none", "bucket-shuffled-scores", "bucket-hidden-scores"] = (
        "bucket"
    )
    """The two last are controls: the scores stand beside the wrong variants, or are left out."""
    count: int = Field(2, ge=0, le=16)
    """Exemplars in a prompt; CUDA-L1's N."""
    bucket_width: float = Field(0.1, ge=0.01, le=10.0)
    """Width of a score bucket, in log speed-up; a multiple of 0.01."""
    temperature: float = Field(0.5, gt=0, le=1e6)
    """tau of P(bucket) ~ exp((mean score - mu) / tau), in units of the standard deviation of the buckets' means."""
    islands: int = Field(4, ge=1, le=16)
    """Populations of the sampler `island`; equally large for a power of two."""

    @field_validator("bucket_width")
    @classmethod
    def _multiple_of_a_bin(cls, width: float) -> float:
        if not math.isclose(width, round(width, 2), rel_tol=1e-9):
            raise ValueError("give a multiple of 0.01")
        return round(width, 2)


class PromptSettings(Settings):
    """What a prompt holds beside the task and its exemplars."""

    kind: Literal["contrastive", "one-shot", "compact"] = "contrastive"
    """`compact`: the task and scored variants alone, in few tokens, answered by what follows the task's own text; for
    policies that are trained on it."""
    language: Literal["auto", "cuda", "triton", "cpp", "pytorch"] = "auto"
    """What the model is asked to write; auto: CUDA C++ or Triton on a GPU, C++ on a CPU."""
    device_facts: bool = True
    roofline: bool = True
    profile: bool = False
    """What the best variant's verdict measured, what its text shows, and where a profiler says that its time goes."""
    failures: int = Field(2, ge=0, le=8)
    """Failed attempts shown with what the compiler or the check said."""
    exemplar_tokens: int = Field(6000, ge=200)
    """A longer exemplar is shortened, whole lines at a time."""
    analysis: bool = True
    """Ask for the section *Performance Analysis* before the design and the code; off to see what it is worth."""
    template: str | None = None
    """A Jinja file of one's own for the user message, in place of that of `kind`."""
    max_tokens: int | None = Field(None, ge=1000)
    """Of system and user message together. A longer prompt loses failed attempts, the oldest first, then the profile,
    known attacks and exemplars, the last first; one that is too long even so is not asked. Default: no limit but the
    model's own."""


class ModelSettings(Settings):
    """A language model that proposes, and how it is asked."""

    name: str = Field(min_length=1)
    """As its endpoint calls it."""
    url: str
    """Base URL of an OpenAI-compatible endpoint, e.g. `http://localhost:8000/v1`."""
    temperature: float | None = Field(None, ge=0)
    """None: the endpoint's own."""
    max_tokens: int | None = Field(None, ge=1)
    """Of one answer, what a model thinks aloud included; None: the endpoint's own limit."""
    concurrency: int = Field(4, ge=1, le=1024)
    """Questions under way, and answers that wait to be evaluated, at a time."""
    timeout_s: float = Field(600.0, gt=0, le=YEAR_S)
    """For one answer, further attempts and the pauses between them included."""
    retries: int = Field(5, ge=0, le=100)
    """Further attempts after a fault that may pass, with growing pauses, or those that the endpoint asks for."""
    key_file: str | None = None
    """A file whose first line is the key."""
    key_env: str | None = None
    """The environment's variable that holds the key. With neither, $OPENAI_API_KEY is sent where `url` is at the host
    of $OPENAI_BASE_URL (of OpenAI where that is not set), and no key anywhere else."""


class LlmSettings(Settings):
    """The proposer `llm`: who is asked what, and how much it may cost."""

    models: tuple[ModelSettings, ...] = Field(min_length=1)
    prompt: PromptSettings = PromptSettings()
    sampler: SamplerSettings = SamplerSettings()
    repair: bool = True
    """A candidate that fails is handed back once, with what the compiler or the check said."""
    max_usd: float | None = Field(None, gt=0)
    """All questions of a search together; needs the models' prices."""
    max_tokens: int | None = Field(None, ge=1)
    """All questions and answers of a search together."""
    prices: str | None = None
    """A file of prices; None: `prices.toml` in `config_home()`, where there is one."""
    seed: int = 0
    """Of the draws of exemplars."""


class PromptFormat(Settings):
    """What a policy was trained to read and write; `prompt_format.json` beside its weights."""

    prompt: PromptSettings = PromptSettings()
    """`template` is relative to the checkpoint's folder."""
    sampler: SamplerSettings = SamplerSettings()
    max_new_tokens: int | None = Field(None, ge=1)
    """The longest reply that it has learnt from."""
    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    """How it was sampled while it learned."""
    tokenizer: str | None = None
    """Digest of the tokens that its weights are of; None: not known."""
    questions: str | None = None
    """Name and version of the built-in template of its questions; None: not known, or one of its own."""


class GenerationSettings(Settings):
    """How a policy writes its replies."""

    temperature: float = Field(1.0, ge=0)
    """0: the most likely token, each time."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draw among the most likely tokens that together have this probability; 1: among all."""
    max_new_tokens: int | None = Field(None, ge=1)
    """Of one reply; None: as the checkpoint says, else half of its context, at most 4096."""
    batch: int = Field(8, ge=1, le=4096)
    """Replies that are written together."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:N`; auto: where candidates are judged, in turn with them."""
    seed: int = 0
    """Of the replies, and of the draws of exemplars."""


class PolicySettings(Frozen):
    """The proposer `policy`: a trained checkpoint that writes in this process."""

    checkpoint: str
    """A folder with weights, tokenizer and chat template."""
    sha: str
    """Digest of its files: other weights in the same folder are another policy."""
    prompt: PromptSettings = PromptSettings()
    sampler: SamplerSettings = SamplerSettings()
    generation: GenerationSettings = GenerationSettings()


class SearchSettings(Frozen):
    """One `optimize` run; its digest names the run directory, by which the same settings find their run again."""

    task_sha: str
    device: str = "auto"
    clock: Clock | None = None
    precision: Precision = "default"
    budget_s: float | None = 60.0
    """The whole command, baselines and confirmation included."""
    budget_evaluations: int | None = None
    """Evaluations, duplicates not counted."""
    proposers: tuple[str, ...] = ("techniques",)
    final_budget_s: float = Field(60.0, gt=0)
    """Seconds for the pairs of the final beyond the first five."""
    patience: int = 6
    """Stop after this many evaluations without a gain beyond 1 %."""
    limits: Limits = Limits()
    reviewer: ReviewerSettings | None = None
    """Who gives a second opinion on a jump in speed-up; None: nobody."""
    llm: LlmSettings | None = None
    """What the proposer `llm` is made of."""
    policy: PolicySettings | None = None
    """What the proposer `policy` is made of."""


class CollectSettings(Frozen):
    """One `collect` run; its digest names the run directory."""

    tasks: str
    """Digest of the hashes of all tasks, in order."""
    device: str
    proposers: tuple[str, ...] = ("techniques",)
    attempts: int = Field(20, ge=1)
    """Of each model, or other proposer, on each task; CUDA-L1's number."""
    keep: int = Field(2, ge=1)
    """Right variants of each model on each task; CUDA-L1's number."""
    precision: Precision = "default"
    """The least exact class of what is kept."""
    limits: Limits = Limits()
    llm: LlmSettings | None = None
    """The models of the proposer `llm`; their limits of money and tokens are for all tasks together."""


class BenchSettings(Frozen):
    """One `bench` run; its digest names the run directory. Shards of one suite have the same, and so are one run."""

    tasks: str
    """Digest of the hashes of all tasks of the suite, in order, the other shards' too."""
    device: Literal["cpu", "cuda"]
    protocol: Literal["screen", "final"] = "screen"
    baselines: tuple[str, ...]
    """Their names, eager first."""
    precision: Precision = "default"
    """The least exact class that the best baseline, and a winner of the search, may have."""
    clock: Clock | None = None
    max_gib: float | None = Field(None, gt=0)
    """Tasks of which a call takes more are scaled down to it, or skipped; None: those that do not fit are skipped."""
    optimize: bool = False
    """Search for something faster on each task, too."""
    budget_s: float | None = None
    """Of each search, baselines excluded."""
    budget_evaluations: int | None = None
    proposers: tuple[str, ...] = ("techniques",)
    final_budget_s: float = Field(60.0, gt=0)
    limits: Limits = Limits()
    llm: LlmSettings | None = None
    """What the proposer `llm` of the searches is made of."""
    policy: PolicySettings | None = None
    """What the proposer `policy` of the searches is made of."""


def config_home() -> Path:
    """`cuda-l1` under $XDG_CONFIG_HOME (default `~/.config`): what a person has written. Raises UsageError."""
    return _home("XDG_CONFIG_HOME", ".config") / "cuda-l1"


def data_home() -> Path:
    """`cuda-l1` under $XDG_DATA_HOME (default `~/.local/share`): what must not be lost. Raises UsageError."""
    return _home("XDG_DATA_HOME", ".local/share") / "cuda-l1"


def cache_home() -> Path:
    """`cuda-l1` under $XDG_CACHE_HOME (default `~/.cache`): what can be made again. Raises UsageError."""
    return _home("XDG_CACHE_HOME", ".cache") / "cuda-l1"


def probes_folder(cache: Path, torch_version: str) -> Path:
    """Where, below a cache directory, is kept what Inductor asked the machine's C++ compiler. No guest writes here, and
    it is there as a whole or not at all."""
    return cache / "probes" / torch_version


def _home(variable: str, default: str) -> Path:
    if named := os.environ.get(variable):
        return Path(named)
    try:
        return Path.home() / default
    except RuntimeError as error:
        raise UsageError(f"this user has no home folder; set HOME, or {variable}, to a folder that you own") from error
