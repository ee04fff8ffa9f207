"""The nouns: Task, Candidate, Evaluation, Record. Frozen, validated, importing nothing of ours and no torch.

Identity is a content hash, so cache, de-duplication, resume and citation all use the same key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    computed_field,
    model_serializer,
    model_validator,
)

Clock = Literal["device", "call", "throughput"]
PrecisionClass = Literal["fp32", "tf32", "bf16", "fp16", "exact", "relaxed"]
Severity = Literal["note", "suspect", "reject"]
Language = Literal["pytorch", "cpp", "cuda", "triton"]
Speedup = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Frozen(BaseModel):
    """Base of every record: immutable, no unknown fields, floats may be infinite but are written as null."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values for some fields; what follows from fields, a hash say, is computed anew."""
        copied = super().model_copy(update=update, deep=deep)
        for name in vars(copied).keys() - type(self).model_fields.keys():  # cached properties
            del vars(copied)[name]
        return copied


def digest(*parts: str) -> str:
    """SHA-256 over length-prefixed parts, so that ("ab", "c") and ("a", "bc") differ. Hex, 64 characters."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode()
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


# ── Task ──────────────────────────────────────────────────────────────────────────────────────────


class Weights(Frozen):
    """A safetensors file with the state that a task is optimised for; the path is not part of its identity."""

    path: str
    sha256: str


class Task(Frozen):
    """One workload in KernelBench's format: source that defines `Model`, `get_inputs()`, `get_init_inputs()`.

    Shapes, dtype and constructor arguments are written into the source, so the source is the task.
    """

    model_config = ConfigDict(extra="ignore")  # reading back what `model_dump` wrote: sha and id are computed anew

    suite: str
    """Where it came from: `builtin`, `kernelbench`, `synth`, `release`, `file`, `module`, or a public set."""
    name: str
    """Unique within the suite, e.g. `diagonal_matmul` or `level1/12_Matmul_with_diagonal`."""
    source: str
    """Python text; executed only inside the sandbox, or by a proposer working on the user's own file."""
    level: int | None = None
    """KernelBench's level, where there is one."""
    weights: Weights | None = None
    """State loaded into `Model` after construction (live modules, `--weights`)."""

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def sha(self) -> str:
        return digest(self.source, self.weights.sha256 if self.weights else "")

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def id(self) -> str:
        return f"{self.suite}/{self.name}@{self.sha[:12]}"


# ── Candidate ─────────────────────────────────────────────────────────────────────────────────────


class Cost(Frozen):
    """What making a candidate took."""

    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0
    """None: the price is unknown."""
    wall_s: float = 0.0


class Origin(Frozen):
    """Who wrote a candidate and from what. Several proposers may write the same text."""

    proposer: str
    """`techniques`, `baselines`, `llm`, `policy`, `file`, `release`, or `import`: a public set brought it along."""
    techniques: tuple[str, ...] = ()
    model: str | None = None
    parents: tuple[str, ...] = ()
    prompt_sha: str | None = None
    template: str | None = None
    """Name and hash of the prompt's template files."""
    seed: int | None = None
    cost: Cost = Cost()


class Candidate(Frozen):
    """Source text that defines `ModelNew`, a drop-in for one task's `Model`."""

    model_config = ConfigDict(extra="ignore")

    task_sha: str
    task_id: str
    source: str
    language: Language = "pytorch"
    origins: tuple[Origin, ...] = ()
    rationale: str = ""

    @classmethod
    def of(cls, task: Task, source: str, origin: Origin, rationale: str = "") -> Self:
        """A text for `task`, its language read off the text."""
        return cls(
            task_sha=task.sha,
            task_id=task.id,
            source=source,
            language=detect_language(source),
            origins=(origin,),
            rationale=rationale,
        )

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def id(self) -> str:
        return digest(self.task_sha, self.language, self.source)

    @property
    def is_baseline(self) -> bool:
        """Whether it is what PyTorch itself offers, and nobody proposed it."""
        return bool(self.origins) and all(origin.proposer == "baselines" for origin in self.origins)

    @property
    def label(self) -> str:
        """A short name for people: the techniques or the proposer of the first origin."""
        if not self.origins:
            return self.id[:8]
        first = self.origins[0]
        return " + ".join(first.techniques) or first.model or first.proposer


def detect_language(source: str) -> Language:
    """The language of a candidate's fast path, from what its text uses; decides nothing but the label."""
    if "@triton.jit" in source:
        return "triton"
    if "__global__" in source:
        return "cuda"
    if 'extern "C"' in source or "cpp_sources" in source:
        return "cpp"
    return "pytorch"


# ── Evaluation ────────────────────────────────────────────────────────────────────────────────────


class Outcome(StrEnum):
    """How an evaluation ended. Exactly one per evaluation."""

    ACCEPTED = "ACCEPTED"
    """Right in every trial, timed, and nothing rejected it."""
    BUILD_FAILED = "BUILD_FAILED"
    """Syntax error, import error, compiler error, no `ModelNew`, or a constructor that raises."""
    CRASHED = "CRASHED"
    """An exception in a call, a signal, an illegal memory access, a full work directory."""
    TIMED_OUT = "TIMED_OUT"
    """A build, a call or the whole verdict passed its deadline."""
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    """Host or device memory ran out."""
    NO_OUTPUT = "NO_OUTPUT"
    """Returned no tensor where one was due, or something that is not a plain materialised tensor."""
    WRONG_SHAPE = "WRONG_SHAPE"
    """Number or shape of the outputs differs from the reference's."""
    WRONG_DTYPE = "WRONG_DTYPE"
    """Dtype or device of an output differs from the reference's."""
    WRONG_VALUES = "WRONG_VALUES"
    """An output, or an argument or buffer that the reference changes, is outside every class's bound."""
    NONDETERMINISTIC = "NONDETERMINISTIC"
    """Two runs on the same inputs: one passes, one fails; or random where the reference is not."""
    REJECTED = "REJECTED"
    """A finding of severity `reject`: the evidence shows an attack on the verdict."""


class Trial(Frozen):
    """One correctness trial: what was varied, and how far candidate and reference lay from the float64 oracle."""

    kind: str
    """`base`, `repeat`, `refill`, `touched`, `outliers`, `weights`, `touched-weights`, `negated`, `scaled`, `shrunk`,
    `offset`, those of `plans.UNDRAWN_PLANS` (`mixed`, `rows`, ...) and `plans.RANGE_PLANS` (`near-1e5`, ...), `row`,
    `seeds`, `timed`; under a compatibility protocol `allclose`."""
    error: float | None
    """Largest element error |x - truth| / (|truth| + rms(truth)); null when non-finite. Of an `allclose`: the least
    tolerance, absolute and relative, at which the candidate passes."""
    reference_error: float | None
    """The same for the reference with all TF32 off: the noise floor."""
    bound: float
    """What the task's class allows in this trial."""
    passed_class: PrecisionClass | None
    """Most exact class whose bound holds in this trial, of `timed` the verdict's; null when none does."""


class Correctness(Frozen):
    """The evidence behind a right or wrong answer."""

    trials: tuple[Trial, ...]
    precision_class: PrecisionClass | None
    """Most exact class whose bound held in every trial."""
    task_class: PrecisionClass
    """The class of the task, that of eager as shipped."""
    oracle: str = "float64"
    """How truth was computed, e.g. `float64`, `float64 in slices`."""
    allclose_kernelbench: bool | None = None
    """KernelBench's own verdict (allclose 1e-4, half 1e-2) on the first trial; decides nothing."""
    allclose_release: bool | None = None
    """The CUDA-L1 release's verdict (allclose 1e-2) on the first trial; decides nothing."""


def default_clock(device: str) -> Clock:
    """The objective where none is named: device time on a GPU (`cuda`), call time on a CPU (`cpu`)."""
    return "device" if device == "cuda" else "call"


def other_clock(clock: Clock) -> Clock:
    """Of `device` and `call`, which are both scored, the one that is not `clock`."""
    return "call" if clock == "device" else "device"


class Pair(Frozen):
    """Samples of one fresh pair of runners, microseconds."""

    candidate_us: tuple[FiniteFloat, ...]
    opponent_us: tuple[FiniteFloat, ...]
    judge_candidate_us: FiniteFloat | None = None
    """The judge's own figure for the candidate: the median of its round trips, on a GPU of its windows."""
    judge_opponent_us: FiniteFloat | None = None
    candidate_pid: int
    opponent_pid: int
    log_ratio: FiniteFloat
    """log(t_opponent / t_candidate) of this pair, from the clock that counts."""


class Timing(Frozen):
    """One clock against one opponent."""

    clock: Clock
    opponent: str
    """`eager`, or the baseline's name."""
    opponent_id: str
    pairs: tuple[Pair, ...]
    speedup: Speedup
    """exp(mean log ratio): how many times faster than the opponent."""
    speedup_low: Speedup | None = None
    """95 % interval; null at `screen`, which has a single pair."""
    speedup_high: Speedup | None = None
    candidate_us: FiniteFloat
    """Median over pairs of the per-pair median, microseconds."""
    opponent_us: FiniteFloat
    empty_us: FiniteFloat | None = None
    """The same clock for a candidate that returns ready outputs."""
    best_of: tuple[str, ...] = ()
    """For the best baseline: the baselines that it was best of."""


CHECKS = (
    *("alignment", "backend-flag", "baseline-failed", "busy-machine", "caching", "clock", "clock-mismatch"),
    *("dead-kernel", "deferred-work", "drawn-ahead", "exit", "few-pairs", "file-access", "frame", "gc", "host-clock"),
    *("late-write", "monkey-patch", "multi-stream", "network", "no-opinion", "outside-work", "patched", "physics"),
    *("precision", "reused-output", "review", "signal", "silent-fallback", "small-parts", "stream", "thread"),
    *("threads-left", "unread", "unstable", "weights-unmapped"),
)
"""What a finding of these rules may be called; a record of earlier ones may hold others."""


class Finding(Frozen):
    """Something a check saw. Only `reject` changes the outcome; `suspect` keeps a result out of headlines."""

    check: str
    severity: Severity
    evidence: str
    static: bool = False
    """Read off the candidate's text; all others are evidence from running it."""


UNSOUND_FLAGS = frozenset({"degenerate", "ill-conditioned", "insensitive-inputs"})
"""What the judge says of a task on which being right proves nothing, so that no figure of it stands in a headline."""


def unsound(flags: Iterable[str]) -> tuple[str, ...]:
    """Those among a task's flags, in order; none where figures of it mean something."""
    return tuple(sorted(UNSOUND_FLAGS.intersection(flags)))


def proves_little(flags: Iterable[str]) -> str | None:
    """One line for people where a task has such a flag, else None."""
    found = ", ".join(unsound(flags))
    return f"{found} task: being right on it proves little, `cuda-l1 tasks audit` says why" if found else None


class Work(Frozen):
    """What one call of a task's reference asks of a device, counted operation by operation behind the wall, and what
    the device was measured to do at the most."""

    moved_bytes: int = Field(ge=0)
    """Inputs and weights that it reads, each byte once, and its outputs; nothing between them."""
    flops: int = Field(ge=0)
    """Of matrix products, convolutions, attention and recurrent layers; else one for each element of an operation."""
    bytes_per_us: float = Field(gt=0)
    """Read and written by a large copy, the best of a few."""
    flops_per_us: dict[str, float]
    """Of a large product, the best of a few, by precision class; on a CPU `fp32` alone."""


class ProfiledPart(Frozen):
    """A kernel, or an operator of torch's, within one call."""

    name: str
    calls: int = Field(ge=0)
    us: float = Field(ge=0)
    """All its calls together: device time of a kernel; of an operator its own, without the operators that it calls."""


class CallProfile(Frozen):
    """Where the time of one untimed call went, by torch's profiler in the candidate's process: told from there, so it
    is shown and decides nothing."""

    kind: Literal["kernels", "operators"]
    """`kernels` on a GPU, with copies and fills of memory; `operators` of torch's on a CPU."""
    total_us: float = Field(ge=0)
    """Of all kernels together; on a CPU of the call, which a profiler makes longer."""
    parts: tuple[ProfiledPart, ...] = ()
    """The longest first, at most twelve."""
    outside_us: float | None = None
    """On a CPU: spent in no operator of torch's, so in Python and in code of the candidate's own."""


class KernelCounters(Frozen):
    """A kernel within one call, by Nsight Compute: of the longest of its launches, each of which began with cold
    caches. A figure that the tool does not have is null."""

    name: str
    """Of its function, without arguments."""
    launches: int = Field(ge=1)
    us: float = Field(ge=0)
    """All its launches together."""
    compute_pct: float | None = None
    """Of what the multiprocessors can do at most."""
    memory_pct: float | None = None
    """Of what the busiest part of the memory system (caches, device memory) can do at most."""
    read_bytes: float | None = None
    """From device memory."""
    written_bytes: float | None = None
    l2_hit_pct: float | None = None
    occupancy_pct: float | None = None
    """Warps on a multiprocessor of those that it has room for, while it works."""
    occupancy_limit_pct: float | None = None
    """What registers, shared memory and the size of blocks allow."""
    registers: float | None = None
    """Of a thread."""
    shared_bytes: float | None = None
    """Of a block."""
    waves: float | None = None
    """Blocks over those that the GPU holds at a time."""
    stall: str | None = None
    """What warps wait for most, as the tool calls it: `long_scoreboard` is an answer of the memory's, ..."""


class Counters(Frozen):
    """Hardware counters of one untimed call, or why there are none: told from the candidate's side of the wall, so they
    are shown and decide nothing."""

    kernels: tuple[KernelCounters, ...] = ()
    """The longest first, at most six."""
    missing: str = ""
    """One line; empty where there are some."""


class TaskAudit(Frozen):
    """What the judge says of a task before any candidate: may its verdicts be trusted, and how is it judged?"""

    task_id: str
    task_class: PrecisionClass
    mode: Literal["train", "eval"]
    """The mode in which it is checked and timed."""
    flags: tuple[str, ...] = ()
    """`degenerate`, `ill-conditioned`, `random`, `stateful`, `insensitive-inputs`, `insensitive-weights`."""
    forgeries_passed: tuple[str, ...] = ()
    """Which of `zeros`, `other-inputs`, `input-copy`, `rounded-fp16`, `rounded-bf16` the task's bound lets through."""
    reference_us: float | None = None
    """One rough call of the reference, host clock, on one core where inputs and weights are small; sets deadlines,
    decides nothing. What is timed as `eager` may use more cores."""
    input_bytes: int = 0
    output_bytes: int = 0
    roofline_us: float | None = None
    """On a GPU: bytes of inputs and outputs over the copy bandwidth that the judge measured. It takes every input byte
    to matter and no weight, so it is a mark to stop at, not a proof. Null on a CPU, whose caches hold the inputs."""
    work: Work | None = None
    """Bytes and operations of a call, with weights; null where the reference does not stand being counted."""
    details: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether results may stand in a headline."""
        return not unsound(self.flags)


class Environment(Frozen):
    """Where an evaluation ran: with the protocol, the key under which a duplicate is never paid for twice."""

    device: Literal["cpu", "cuda"]
    device_name: str
    lane: str
    """CPU: the cores, e.g. `0-1`; or how many, `1-core`, where the lane stands for every other of so many. CUDA: always
    `gpu`, since the device index is not part of it."""
    rung: str
    """Sandbox rung: R0, R1, R2."""
    torch: str
    cuda: str | None = None
    driver: str | None = None
    python: str = ""
    rules: int = 0
    """Number of the evaluator's rules (`evaluator.environment.RULES`); 0 in records from before they had one."""

    @property
    def key(self) -> str:
        """Identity of the measuring place and of the rules: same key, comparable figures."""
        return digest(*self._place, *([f"rules {self.rules}"] if self.rules else []))

    @property
    def place(self) -> str:
        """Identity of the measuring place alone: of two verdicts there, the one by later rules stands."""
        return digest(*self._place)

    @property
    def _place(self) -> tuple[str, ...]:
        return self.device, self.device_name, self.lane, self.rung, self.torch, self.cuda or "", self.driver or ""


class Evaluation(Frozen):
    """What the evaluator found out about one candidate in one place under one protocol."""

    candidate_id: str
    outcome: Outcome
    detail: str = ""
    """One line: what was wrong and where; empty when ACCEPTED."""
    correctness: Correctness | None = None
    timings: tuple[Timing, ...] = ()
    findings: tuple[Finding, ...] = ()
    environment: Environment
    protocol: str
    """`screen`, `final`, or a compatibility protocol: `cuda-l1`, `kernelbench`, `kernelbench-2025`."""
    task_flags: tuple[str, ...] = ()
    """`degenerate`, `ill-conditioned`, `random`, `stateful`, `eval-mode`, `insensitive-inputs`, `insensitive-weights`:
    what the audit said of the task."""
    peak_bytes: int | None = None
    reference_peak_bytes: int | None = None
    stage_s: dict[str, float] = Field(default_factory=dict)
    """Seconds per stage: `build`, `judge`, `load`, `check`, `time` (with its parts `prepare`, `samples`, `witness`,
    `profile`), `counters`, `wait` (for the device), `total`."""
    log: str = ""
    """Tail of the candidate's own output and of the compiler's."""
    work: Work | None = None
    """Absent where it was not counted."""
    profile: CallProfile | None = None
    """Absent where nobody asked for one."""
    counters: Counters | None = None
    """Absent where nobody asked for them, and on a CPU."""

    @model_serializer(mode="wrap")
    def _without_what_is_absent(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A record from before there were these fields keeps its id, which is a hash of what is written."""
        fields: dict[str, Any] = written(self)
        absent = {name for name in ("work", "profile", "counters") if getattr(self, name) is None}
        return {name: value for name, value in fields.items() if name not in absent}

    @model_validator(mode="after")
    def _accepted_needs_evidence(self) -> Evaluation:
        if self.outcome is Outcome.ACCEPTED:
            if self.correctness is None or self.correctness.precision_class is None:
                raise ValueError("ACCEPTED needs correctness with a precision class")
            if not self.timings:
                raise ValueError("ACCEPTED needs timings")
            if any(f.severity == "reject" for f in self.findings):
                raise ValueError("ACCEPTED cannot carry a `reject` finding")
        return self

    @property
    def accepted(self) -> bool:
        return self.outcome is Outcome.ACCEPTED

    @property
    def precision_class(self) -> PrecisionClass | None:
        """Of what is right; `correctness` holds what the trials up to a failure showed."""
        return self.correctness.precision_class if self.correctness and self.accepted else None

    @property
    def default_clock(self) -> Clock:
        """The objective where none is named."""
        return default_clock(self.environment.device)

    def timing(self, opponent: str = "eager", clock: Clock | None = None) -> Timing | None:
        """The timing against `opponent` on `clock` (default: the device's objective), or None."""
        wanted = clock or self.default_clock
        return next((t for t in self.timings if t.opponent == opponent and t.clock == wanted), None)

    def best_baseline_timing(self, clock: Clock | None = None) -> Timing | None:
        """The timing against the best baseline of the same class, or None when baselines were not measured."""
        wanted = clock or self.default_clock
        return next((t for t in self.timings if t.best_of and t.clock == wanted), None)

    def suspects(self, ignore: Iterable[str] = ()) -> list[Finding]:
        """Suspect findings, save those of the checks in `ignore`."""
        skipped = set(ignore)
        return [f for f in self.findings if f.severity == "suspect" and f.check not in skipped]

    @property
    def disqualifying(self) -> list[Finding]:
        """Findings that keep a right result out of headlines, exports and wins: all that are suspect, save `precision`,
        since the class decides about that, and `unstable`, which counts with its middle figure."""
        return self.suspects(ignore=("precision", "unstable"))

    def told(self, *, counts: bool) -> str:
        """The outcome for people, who see of a right one that does not count that it does not."""
        return f"{self.outcome}, does not count" if self.accepted and not counts else str(self.outcome)


class HackCase(Frozen):
    """A confirmed attack on the verdict, with why it is one: what a reviewer is shown beside code like it."""

    model_config = ConfigDict(extra="ignore")

    name: str = Field(min_length=1)
    """For people, e.g. `clock/lazy-tuple`."""
    source: str = Field(min_length=1)
    """The attack's text."""
    why: str = Field(min_length=1)
    """What it does and what that gains it, in a sentence or two."""
    reference: str = ""
    """The text of the task that it was written for, where it is known."""

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def id(self) -> str:
        return digest(self.source)


# ── Language models ───────────────────────────────────────────────────────────────────────────────


class Exemplar(Frozen):
    """An earlier variant of a task's module, as a prompt shows it."""

    candidate_id: str
    source: str
    language: Language
    label: str
    """Who wrote it, in a few words."""
    score: float | None
    """Its reward: how many times faster than eager. None: withheld from the model, the control of an experiment."""
    bucket: int | None = None
    """Which score bucket it was drawn from, where the sampler has buckets."""


class Prompt(Frozen):
    """What a language model is asked: rendered text, and what it was rendered from."""

    system: str
    user: str
    template: str
    """Name and hash of the template files, e.g. `contrastive@1f3a9c20`."""
    exemplars: tuple[str, ...] = ()
    """Ids of the candidates shown, in the order in which they stand."""

    @property
    def sha(self) -> str:
        return digest(self.system, self.user)


ReplyProblem = Literal[
    "cut-off", "no-code", "several-blocks", "wrong-sections", "refusal", "no-model-new", "syntax-error", "empty"
]


class Reply(Frozen):
    """One answer of a language model, paid for whether or not it holds a candidate."""

    run: str
    task_sha: str
    model: str
    endpoint: str
    """Host and port; never a key."""
    prompt_sha: str
    template: str = ""
    """Name and hash of the prompt's template files."""
    exemplars: tuple[str, ...] = ()
    """Ids of the candidates that the prompt showed."""
    repairs: str | None = None
    """Id of the reply whose candidate it was asked to repair."""
    number: int
    """Which of the run's samples for this prompt and model, from 0."""
    environment_key: str = ""
    """The place (`Environment.key`) in which its candidate was to be judged; empty in replies that do not say."""
    time: datetime = Field(default_factory=lambda: datetime.now(UTC))
    text: str
    """The answer, without what a reasoning model thought aloud: only the marks of that stay, in its midst and where it
    never ended."""
    finish_reason: str = ""
    problem: ReplyProblem | None = None
    """Why it holds no candidate."""
    detail: str = ""
    """The problem in one line."""
    candidate_id: str | None = None
    cost: Cost = Cost()

    @property
    def id(self) -> str:
        """What it was asked and where, not what came back: the same question of a run is never paid for twice.

        Runs of equal settings have equal names on whichever device: their replies stay apart in a merged archive.
        """
        place = [self.environment_key] if self.environment_key else []
        return digest(self.run, self.model, self.endpoint, self.prompt_sha, str(self.number), *place)

    def is_of(self, environment_key: str) -> bool:
        """Whether it was asked for that place, as far as is known."""
        return self.environment_key in ("", environment_key)


class Verification(Frozen):
    """Whether a candidate is right on a task, from a verdict's trials alone: nothing is timed, nothing is recorded."""

    candidate_id: str
    task_sha: str
    """Of the task on which it was tried: its own at another size, say."""
    outcome: Outcome
    """ACCEPTED: right in every trial."""
    detail: str = ""
    correctness: Correctness | None = None
    findings: tuple[Finding, ...] = ()
    environment: Environment
    task_flags: tuple[str, ...] = ()
    stage_s: dict[str, float] = Field(default_factory=dict)

    @property
    def precision_class(self) -> PrecisionClass | None:
        """Of what is right."""
        is_right = self.outcome is Outcome.ACCEPTED
        return self.correctness.precision_class if self.correctness and is_right else None


class Record(Frozen):
    """One line of the archive: a candidate and what was found out about it."""

    run: str
    sequence: int
    time: datetime = Field(default_factory=lambda: datetime.now(UTC))
    candidate: Candidate
    evaluation: Evaluation

    @property
    def id(self) -> str:
        """Content hash: the same record in two archives has the same id, so `merge` unites.

        A field that is as it always is says nothing: one that a later release adds leaves the ids of earlier records.
        """
        evaluation = self.evaluation.model_dump_json(exclude_defaults=True)
        return digest(self.run, str(self.sequence), self.time.isoformat(), self.candidate.id, evaluation)
