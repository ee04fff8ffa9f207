"""The sections of a recipe. The paper gives no figures for most of these; each default of ours has its reason."""

from __future__ import annotations

from os.path import expanduser
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, field_validator

from cuda_l1.config import YEAR_S, Limits, Precision, PromptSettings, SamplerSettings, Settings
from cuda_l1.scoring import Scale, Shaping
from cuda_l1.types import Clock


class Changeable(NamedTuple):
    """Marks a key of a recipe that a run may go on with another value of."""

    until: tuple[str, ...] = ()
    """As long as the run has no folder of these names; empty: always, since nothing that is learned follows from it, so
    it is not in the digest either."""


ALWAYS = Changeable()
WEIGHTS = Changeable(("start", "sft", "self", "contrastive"))
"""Until a run has any."""

# Far more than anybody means, so that what is beyond is a slip, and is said at once.
MOST_STEPS = 100_000_000
MOST_TOKENS = 1 << 24
MOST_WIDTH = 1 << 18
MOST_REPLIES = 1 << 20
"""Also of tasks, variants and sequences."""
MOST_SEED = (1 << 32) - 1
"""NumPy takes no larger one."""


def at_home(*names: str) -> Any:
    """What makes these keys of a section, paths or lists of them, begin in the home folder where they begin with `~`: a
    shell does that for what is typed, and nobody for a file."""

    def expanded(value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        return tuple(map(expanduser, value)) if isinstance(value, tuple) else value and expanduser(value)

    return field_validator(*names)(expanded)


class ModelSection(Settings):
    """`[model]`: the policy that training begins with."""

    _home = at_home("path")
    path: str | None = None
    """A folder with model and tokenizer as `save_pretrained` writes them. None: a decoder of its own from random
    weights, with a tokenizer trained on the data, of the sizes below."""
    vocabulary: int = Field(4096, ge=300, le=1 << 20)
    """Entries of the tokenizer, at most: byte-level BPE, which can write any text."""
    hidden: int = Field(256, ge=16, le=MOST_WIDTH)
    """Width of the decoder; a multiple of `heads`."""
    intermediate: int = Field(704, ge=16, le=MOST_WIDTH)
    """Width inside a feed-forward layer; 2.75 times `hidden` is as large as an ungated one of 4."""
    layers: int = Field(6, ge=1, le=1024)
    heads: int = Field(4, ge=1, le=1024)
    key_value_heads: int = Field(2, ge=1, le=1024)
    """Divides `heads`."""
    context: int = Field(4096, ge=128, le=MOST_TOKENS)
    """Tokens of prompt and reply together, at most."""
    lora_rank: int | None = Field(None, ge=1, le=MOST_WIDTH)
    """Train low-rank adapters of this rank in place of all weights; None: all weights."""


class DataSection(Settings):
    """`[data]`: what is learned from. Nothing of an evaluation suite is, unless `allow_overlap` says so."""

    _home = at_home("examples")
    tasks: tuple[str, ...] = ()
    """Suites as `cuda-l1 collect` takes them, e.g. `synth:0:200`: variants are collected from them, sampled for them
    and rewarded on them."""
    examples: tuple[str, ...] = ()
    """Folders that `cuda-l1 collect` has written; stage 1 learns from these rows too."""
    attempts: int = Field(20, ge=1, le=MOST_REPLIES)
    """Of the techniques on each task, where variants are collected; CUDA-L1's number."""
    keep: int = Field(3, ge=1, le=MOST_REPLIES)
    """Right variants that stay of each task: more than `sft.exemplars`, or no example shows as many beside its answer.
    CUDA-L1, whose first stage shows none, keeps two."""
    techniques: tuple[str, ...] = ()
    """The techniques that write, by name; none: all."""
    unjudged: tuple[str, ...] = ()
    """Tasks whose variants techniques write and nobody judges, e.g. `synth:1000:2000`, for stage 1 alone: a policy from
    nothing learns to read a task from many more of them than verdicts can be paid for. Each is written by one process.
    """
    unjudged_each: int = Field(2, ge=1, le=MOST_REPLIES)
    """Variants of each of these tasks, at most."""
    against: tuple[str, ...] = ()
    """Evaluation suites beside the built-in one and KernelBench: their tasks are left out."""
    allow_overlap: bool = False
    """Train on tasks of evaluation suites, and say so in every model card."""


class PromptSection(Settings):
    """`[prompt]`: how all stages ask. What differs between machines and searches, facts of the device, rooflines and
    failed attempts, is not in it."""

    kind: Literal["contrastive", "compact"] = "contrastive"
    """`compact` for small policies: the contrastive question in few tokens, answered by what continues the task's file.
    """
    language: Literal["auto", "cuda", "triton", "cpp", "pytorch"] = "auto"
    """What the policy is asked to write; auto: whatever is fastest."""
    exemplar_tokens: int = Field(6000, ge=200, le=MOST_TOKENS)
    """A longer exemplar is shortened, whole lines at a time."""
    analysis: bool = True
    """Answers begin with a section that compares the variants shown; off to see what it is worth."""

    @property
    def settings(self) -> PromptSettings:
        """What `prompts.render` is told."""
        return PromptSettings(
            kind=self.kind,
            language=self.language,
            device_facts=False,
            roofline=False,
            failures=0,
            exemplar_tokens=self.exemplar_tokens,
            analysis=self.analysis,
        )


class SftSection(Settings):
    """`[sft]`: stage 1, supervised fine-tuning."""

    steps: int = Field(1000, ge=1, le=MOST_STEPS)
    """Updates of the weights."""
    batch: int = Field(16, ge=1, le=MOST_REPLIES)
    """Sequences of an update on one device; with `packing` each holds several examples."""
    accumulate: int = Field(1, ge=1, le=MOST_REPLIES)
    """Batches whose gradients are added up before an update."""
    learning_rate: float = Field(1e-3, gt=0, le=1)
    """Right for a few million parameters from random weights; 1e-5 for all weights of a trained 7B model."""
    warmup: float = Field(0.05, ge=0, lt=1)
    """Share of the steps over which the learning rate rises; it then falls as a cosine."""
    max_length: int = Field(2048, ge=64, le=MOST_TOKENS)
    """Tokens of prompt and reply; longer examples are left out and counted, never cut."""
    packing: bool = True
    """Put several examples into one sequence of `max_length`."""
    compile: bool = False
    """Compute the policy's layers by `torch.compile`, which compiles them in the first steps."""
    exemplars: Annotated[int, Changeable(("start", "held-out"))] = Field(2, ge=0, le=16)
    """Earlier variants in a prompt, at most: each example is shown with 0 to so many, so that later stages meet no
    form of prompt that the policy has never seen."""
    other_names: Annotated[float, Changeable(("unjudged",))] = Field(0.0, ge=0, le=1)
    """Share of the training examples whose attributes and arguments have other names, in question and answer alike, so
    that a policy from nothing learns to read them in its question."""
    tellings: int = Field(1, ge=1, le=1024)
    """How often each judged variant of a training task is told, each time with other variants beside it and, by
    `other_names`, under other names: beside thousands of unjudged ones, which are shown without scores, what a score
    in a question means is else a rarity that is not learned."""
    answers: Literal["any", "faster"] = "any"
    """`faster`: a judged variant answers questions that show slower ones alone, and the fastest of its task also those
    that show it, so that a policy learns to write nothing slower than what it is shown. With `any` it learns to write
    one of the task's variants that is not shown, whatever its speed."""
    checkpoint_every: int = Field(200, ge=1, le=MOST_STEPS)
    """Steps from one checkpoint to the next."""
    final: Literal["best", "last"] = "best"
    """Which checkpoint the stage leaves: that with most tokens of answers about validation tasks right, where there are
    some, or the last."""


class SelfSupervisedSection(Settings):
    """`[self_supervised]`: stage 2, likelihood training on the policy's own right samples."""

    rounds: int = Field(10, ge=1, le=MOST_STEPS)
    """Sample, evaluate, train; so many times at most."""
    tasks: int = Field(64, ge=1, le=MOST_REPLIES)
    """Training tasks of a round, drawn anew for each."""
    samples: int = Field(8, ge=1, le=MOST_REPLIES)
    """Replies to each task in a round."""
    validation_tasks: int = Field(16, ge=0, le=MOST_REPLIES)
    """Tasks of the validation split that every round asks about, the same ones; 0, or where there are none: the
    training tasks decide about the end and the choice of the checkpoint."""
    batch: int = Field(16, ge=1, le=MOST_REPLIES)
    """Right replies of an update."""
    epochs: float = Field(1.0, gt=0, le=1024)
    """How often a round's right replies are learned from; more than once, and they are no longer its own."""
    learning_rate: float = Field(1e-4, gt=0, le=1)
    """A tenth of stage 1's: a policy that already writes right variants has little to move."""
    patience: int = Field(3, ge=1, le=MOST_STEPS)
    """Rounds without a gain after which the stage ends."""
    min_gain: float = Field(0.01, ge=0, le=1)
    """Of the success rate; less is no gain. With 128 validation replies the rate has a standard error of 0.04."""


class ContrastiveSection(Settings):
    """`[contrastive]`: stage 3, GRPO on measured execution time with scored variants in the prompt."""

    rounds: int = Field(200, ge=1, le=MOST_STEPS)
    """Ask, judge, learn; so many times."""
    prompts: int = Field(4, ge=1, le=MOST_REPLIES)
    """Questions of a round, each about one task."""
    group: int = Field(8, ge=2, le=MOST_REPLIES)
    """Replies to one question, which are compared with each other."""
    iterations: int = Field(1, ge=1, le=1024)
    """Updates from the replies of one round; with more than one the ratio of probabilities is clipped."""
    lag: int = Field(0, ge=0, le=1)
    """1: the next round's replies are written while those of this one are judged, by a policy that is one update older
    than the one that learns from them; for rewards that are measured on other devices than the policy is trained on."""
    batch: int = Field(8, ge=1, le=MOST_REPLIES)
    """Replies that go through the model at a time on one device while it learns; divides `prompts` x `group`."""
    learning_rate: float = Field(1e-5, gt=0, le=1)
    """A tenth of what stage 1 begins with, or less: the gradient of a few dozen replies is noisy."""
    warmup: float = Field(0.05, ge=0, lt=1)
    """Share of the updates over which the learning rate rises, whole ones alone; it then stays."""
    kl: float = Field(0.0, ge=0, le=1024)
    """Weight of the divergence from the policy that the stage begins with. 0 needs no second model: rewards are
    measured, not learnt, so that a policy far from its beginning is no sign of one that cheats a model of rewards."""
    clip_low: float = Field(0.2, gt=0, le=1)
    """The ratio of probabilities is clipped at 1 - this; PPO's figure."""
    clip_high: float | None = Field(None, gt=0, le=1024)
    """The same above 1; None: as below. 0.28 (clip-higher) keeps more exploration."""
    loss: Literal["grpo", "dr_grpo", "dapo", "bnpo", "cispo"] = "grpo"
    """How tokens are averaged, by TRL's names; `grpo`: in each reply first."""
    shaping: Shaping = "smoothed"
    """What a speed-up counts: `smoothed` is CUDA-L1's; `raw`, `log` (of 1 + speed-up), `rank` (in its group)."""
    clip: float = Field(1.5, gt=0, le=1024)
    """A smoothed reward lies within -clip and clip; CUDA-L1's figure."""
    noise: float = Field(0.05, ge=0, lt=1)
    """Share of a task's mean reward that smoothed rewards are divided by at least: two screens of a variant differ by
    some 2 %. Where all replies are right and about as fast this would else count as much as being right does elsewhere,
    unless `scale` is `group`, which divides by what a group differs by anyway. 0: CUDA-L1's formula."""
    scale: Scale = "group"
    """Whose standard deviation rewards are divided by: of their `group`, of the whole `batch`, or `none`."""
    sampler: Annotated[SamplerSettings, Changeable(("self", "held-out"))] = SamplerSettings()
    """Which earlier variants a prompt shows."""
    min_pass_rate: float = Field(0.5, ge=0, le=1)
    """The share of executable and right replies in the first round below which the stage does not begin: where next to
    nothing succeeds there is nothing to compare."""
    checkpoint_every: int = Field(20, ge=1, le=MOST_STEPS)
    """Rounds from one checkpoint to the next."""
    validate_every: int = Field(20, ge=0, le=MOST_STEPS)
    """Rounds from one validation to the next, and so to a checkpoint; the last round is validated, too, and what the
    stage begins with. It leaves the best of these policies. 0, or where there is no validation task: the last one."""
    validation_tasks: int = Field(16, ge=0, le=MOST_REPLIES)
    """Tasks of the validation split that every validation asks about, the same ones."""
    validation_samples: int = Field(8, ge=1, le=MOST_REPLIES)
    """Replies to each of them."""
    validate_by: Literal["log_reward", "reward", "pass_rate"] = "log_reward"
    """Which figure of a validation task is averaged over the tasks: the mean of log(1 + reward), in which a right reply
    as fast as the reference counts 0.69 and one three times as fast twice that; the mean reward, of which a few tasks
    with great speed-ups are most; or the share of right replies, as in stage 2, whatever their speed."""
    patience: int = Field(0, ge=0, le=MOST_STEPS)
    """Validations without a better one than before after which the stage ends; 0: it has all of its rounds."""


class GenerationSection(Settings):
    """`[generation]`: how the policy is sampled."""

    temperature: float = Field(1.0, gt=0, le=1024)
    """1: what is sampled is what is trained."""
    top_p: float = Field(1.0, gt=0, le=1)
    max_new_tokens: int = Field(1024, ge=1, le=MOST_TOKENS)
    """Of a reply; a longer one has no answer."""
    batch: int = Field(32, ge=1, le=4096)
    """Replies that are written at a time."""
    engine: Literal["transformers", "vllm-server", "vllm-colocate"] = "transformers"
    """Who writes in stage 3: the model that is trained, a server (`vllm serve`) on other GPUs that is given its
    weights, or vLLM beside it on the same GPU, which sleeps while others compute."""
    server: Annotated[str | None, ALWAYS] = None
    """The server's address, e.g. `http://node1:8000`; None: TRL's default, port 8000 here."""
    vllm_memory: Annotated[float, ALWAYS] = Field(0.3, gt=0, lt=1)
    """Share of a GPU's memory for `vllm-colocate`, weights included; TRL's default. A server has a setting of its own.
    """


class EvaluationSection(Settings):
    """`[evaluation]`: where and how rewards are measured."""

    _home = at_home("table", "reviewer_key_file")
    device: str = "auto"
    """`auto`, `cpu`, `cuda` (every visible GPU like the first), `cuda:N`, or some of one kind: `cuda:6,cuda:7`, where
    others train or serve."""
    clock: Clock | None = None
    """Of the rewards; None: device time on a GPU, the time that a caller waits on a CPU."""
    precision: Precision = "default"
    """The least exact class of a success."""
    denominator: Literal["reference", "best-baseline"] = "reference"
    """What a reward of 1 is as fast as: the task's reference, or the fastest of its baselines of a class that counts,
    each of which is judged once for every task, as candidates are. One task's rewards are all divided by the same
    figure, so that `smoothed` and `rank`, and `scale = "group"`, learn the same from either."""
    reviewer: Annotated[str | None, ALWAYS] = None
    """URL of an OpenAI-compatible endpoint that is asked about jumps in speed-up, as `--reviewer`; None: nobody. Where
    it is decides nothing; whether there is one does (`recipe.decisive`)."""
    reviewer_model: str | None = None
    """None: the only one that the endpoint serves."""
    reviewer_key_file: Annotated[str | None, ALWAYS] = None
    """A file whose first line is its key; None: $OPENAI_API_KEY where the URL is at $OPENAI_BASE_URL or OpenAI's, else
    no key."""
    table: Annotated[str | None, ALWAYS] = None
    """A file of verdicts that several runs look up and add to, so that none is measured twice; each run still draws
    exemplars from its own archive alone. None: what is new to the run is measured."""
    limits: Limits = Limits()
    within_s: Annotated[float, ALWAYS] = Field(1800.0, gt=0, le=YEAR_S)
    """For the verdicts on all replies of a round; what takes longer is the machine's fault, and teaches nothing. As
    long again for all of a round's second opinions."""
    at_once: Annotated[int | None, ALWAYS] = Field(None, ge=1, le=1024)
    """Evaluators side by side, each with processes and memory of its own; None: as many as cores and memory allow.
    Fewer where a model lies in the same GPU's memory."""
    cores: int | None = Field(None, ge=1, le=1 << 20)
    """Of a CPU: each evaluator builds, checks and times on a lane of so many cores of its own, at the same time as the
    others, and verdicts of all lanes count as of one place. The first `run.threads` cores are in no lane. None: all
    share all cores, and time one after the other."""
    held_out_tasks: int = Field(64, ge=1, le=MOST_REPLIES)
    """Tasks that decided nothing, for the one evaluation of a finished run, at most."""
    held_out_suites: tuple[str, ...] = ()
    """Suites that the one evaluation asks about, too, as many tasks of each at most: `builtin`, for example, or what
    `bench` takes. They are kept away from training like `data.against`, and their figures stand apart."""
    held_out_samples: int = Field(8, ge=1, le=MOST_REPLIES)
    """Replies to each of them."""
    held_out_rounds: int = Field(1, ge=1, le=MOST_REPLIES)
    """Parts that the replies to a task are asked for in, one after the other: questions of a later one can show what
    the policy wrote in those before it. With 1 no variant of a held-out task is ever shown."""

    @property
    def places(self) -> tuple[str, ...]:
        """The devices that are named."""
        return tuple(each.strip() for each in self.device.split(","))

    @property
    def kind(self) -> str:
        """`cpu` or `cuda`; `auto` must be resolved by then."""
        return self.device.partition(":")[0]


class RunSection(Settings):
    """`[run]`: what holds for all stages."""

    _home = at_home("archive")
    seed: int = Field(0, ge=0, le=MOST_SEED)
    """Of weights, order, samples and draws."""
    archive: str | None = None
    """Path or address of the database; None: `archive.sqlite` in the run's folder."""
    device: Annotated[Literal["auto", "cpu", "cuda"], WEIGHTS] = "auto"
    """Where the policy is trained."""
    threads: Annotated[int, WEIGHTS] = Field(1, ge=1, le=1024)
    """Of torch on a CPU: where others compute too, one is often the fastest."""
    samples: Annotated[int, ALWAYS] = Field(2, ge=0, le=MOST_REPLIES)
    """Replies that are written to `samples.jsonl` at each checkpoint, the most likely ones."""
    tracking: Annotated[Literal["tensorboard", "trackio", "wandb", "none"], ALWAYS] = "tensorboard"
    """Where curves go beside `metrics.jsonl`."""
    keep_checkpoints: Annotated[int, ALWAYS] = Field(2, ge=1, le=MOST_STEPS)
    """The latest so many checkpoints of a stage stay."""
    shard_mib: Annotated[int | None, ALWAYS] = Field(None, ge=1, le=1 << 20)
    """A policy is written in files of at most so many MiB, save one that holds a single larger tensor; None: in one.
    Step checkpoints, which hold the optimiser's state in one file anyway, are as the trainer writes them."""
    bf16_weights: bool = False
    """Write policies in bfloat16: half the size, rounded to 8 bits of precision, which is where the next stage begins.
    """

    @property
    def on_gpu(self) -> bool:
        """Whether the policy is trained on a GPU; `auto` must be resolved by then."""
        return self.device == "cuda"
