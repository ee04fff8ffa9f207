"""A model that writes: prompts in, replies out, a batch at a time."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cuda_l1.config import GenerationSettings
from cuda_l1.endpoint import one_line
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.prompts.tokens import TokenCounter
from cuda_l1.proposers.policy.checkpoint import Checkpoint
from cuda_l1.proposers.policy.sampling import EndWhen, draws
from cuda_l1.proposers.policy.writing import write
from cuda_l1.types import Prompt

INSTALL = "pip install 'cuda-l1[train]'"
DEFAULT_NEW_TOKENS = 4096
TEMPLATE_TOKENS = 64
"""Room for what a chat template and the borders between its parts add to the two messages."""

PADDED = 0.1
"""Share of a model's tokens that may be nobody's: sizes are rounded up, in Qwen2.5 by 0.2 %."""


@dataclass(frozen=True)
class Written:
    """One reply."""

    text: str
    finish_reason: str
    """`stop`, or `length` where it was not at its end."""
    tokens_in: int
    tokens_out: int


class Policy:
    """A causal language model with its tokenizer, on one device."""

    def __init__(self, model: Any, tokenizer: Any, settings: GenerationSettings, *, context_tokens: int | None) -> None:
        """`model` and `tokenizer` are those of transformers; the model's own generation settings are not used.

        Raises UsageError where the tokenizer's tokens are not the model's, or the context has no room for a prompt.
        """
        if mismatch := mismatched(model, tokenizer):
            raise UsageError(mismatch)
        self._model, self._tokenizer, self._settings = model, tokenizer, settings
        self._context = context_tokens
        self.max_new_tokens = settings.max_new_tokens or min(DEFAULT_NEW_TOKENS, (context_tokens or 1 << 30) // 2)
        """Of one reply."""
        if context_tokens is not None and self.max_new_tokens + TEMPLATE_TOKENS >= context_tokens:
            raise UsageError(
                f"max_new_tokens = {self.max_new_tokens} leaves no room for a prompt in the model's context of "
                f"{context_tokens} tokens"
            )
        self.counter = TokenCounter("the policy's tokenizer", self._count)

    @classmethod
    def load(cls, checkpoint: Checkpoint, settings: GenerationSettings, device: str) -> Policy:
        """The policy of a checkpoint, in float32 on a CPU, as it was stored on a GPU. `device`: `cpu` or `cuda[:N]`.

        Raises UsageError: transformers is missing, or what is stored is no model that it can load; InfrastructureError:
        it does not fit on the device.
        """
        require_transformers()
        model, tokenizer = _loaded(checkpoint, device)
        new_tokens = settings.max_new_tokens or checkpoint.format.max_new_tokens
        try:
            asked = settings.model_copy(update={"max_new_tokens": new_tokens})
            return cls(model, tokenizer, asked, context_tokens=checkpoint.context_tokens)
        except UsageError as error:
            raise UsageError(f"checkpoint {checkpoint.path}: {error}") from error

    @property
    def prompt_tokens(self) -> int | None:
        """The most that a prompt may have by `counter`; None: no limit is known."""
        return None if self._context is None else self._context - self.max_new_tokens - TEMPLATE_TOKENS

    @property
    def settings(self) -> GenerationSettings:
        """How it writes."""
        return self._settings

    def generate(
        self, prompts: Sequence[Prompt], seeds: Sequence[int], *, is_over: Callable[[], bool] = lambda: False
    ) -> list[Written | None]:
        """A reply to each prompt, in order; None for those that were being written when `is_over` became true.

        Equal prompts with equal seeds in equal batches give equal texts. Raises InfrastructureError where the device's
        memory does not hold the batch.
        """
        import torch

        try:
            ends = sorted(_end_tokens(self._model, self._tokenizer))
            with torch.inference_mode(), _as_it_is(self._model), any_length():
                return self._generate(prompts, seeds, ends, is_over)
        except torch.OutOfMemoryError as error:
            raise InfrastructureError(
                f"the device has no memory for {len(prompts)} replies of {self.max_new_tokens} tokens at a time; "
                f"give a smaller batch ({one_line(error, 120)})"
            ) from error
        finally:
            return_memory()

    def _generate(
        self, prompts: Sequence[Prompt], seeds: Sequence[int], ends: list[int], is_over: Callable[[], bool]
    ) -> list[Written | None]:
        from cuda_l1.proposers.policy.captured import generating

        device = self._model.device
        texts = [self._chat(prompt) for prompt in prompts]
        tokens = self._tokenizer(
            texts, padding=True, padding_side="left", add_special_tokens=False, return_tensors="pt"
        )
        end = EndWhen(is_over)
        drawn = draws(seeds, self._settings.temperature, self._settings.top_p, device)
        found = write(
            generating(self._model),
            input_ids=tokens["input_ids"].to(device),
            attention_mask=tokens["attention_mask"].to(device),
            generation_config=_generation_config(
                do_sample=False,  # `draws` does
                max_new_tokens=self.max_new_tokens,
                eos_token_id=ends,
                pad_token_id=_pad_token(self._tokenizer, ends),
            ),
            on_left=drawn[-1].keep if drawn else lambda staying: None,
            is_over=lambda: end.has_ended,
            logits_processor=drawn,
            stopping_criteria=[end],
        )
        new = found[:, tokens["input_ids"].shape[1] :].tolist()
        asked = tokens["attention_mask"].sum(dim=1).tolist()
        return [self._written(row, count, ends, end.has_ended) for row, count in zip(new, asked, strict=True)]

    def _written(self, row: list[int], asked: int, ends: list[int], was_ended: bool) -> Written | None:
        """What a row of tokens says, up to its first end."""
        at = next((place for place, token in enumerate(row) if token in ends), None)
        if at is None and was_ended:
            return None
        said = row if at is None else row[:at]
        text = self._tokenizer.decode(said, skip_special_tokens=True)
        return Written(text, "length" if at is None else "stop", asked, len(said))

    def _chat(self, prompt: Prompt) -> str:
        messages = messages_of(prompt, self._tokenizer)
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    def _count(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def mismatched(model: Any, tokenizer: Any) -> str | None:
    """Why a tokenizer is not that of a model, by their numbers of tokens; None where it may be."""
    known, tokens = model.get_input_embeddings().weight.shape[0], len(tokenizer)
    if (1 - PADDED) * known <= tokens <= known:
        return None
    return f"the tokenizer has {tokens} tokens and the model {known}: they do not belong together"


def messages_of(prompt: Prompt, tokenizer: Any) -> list[dict[str, str]]:
    """The conversation that a policy continues, in training too.

    What the texts that it quotes spell of the tokenizer's marks for turns is no mark here: each is parted by a space,
    since a tokenizer reads the finished conversation and cannot know who wrote them.
    """
    marks = sorted(_marks(tokenizer), key=len, reverse=True)
    return [
        {"role": role, "content": _parted(text, marks)}
        for role, text in (("system", prompt.system), ("user", prompt.user))
    ]


def _marks(tokenizer: Any) -> Iterator[str]:
    """Special tokens, and the added ones that the chat template writes."""
    special, template = set(tokenizer.all_special_tokens), str(tokenizer.chat_template)
    added = (token for token in tokenizer.get_added_vocab() if token in special or token in template)
    return (token for token in {*special, *added} if len(token.strip()) > 1)


def _parted(text: str, marks: Sequence[str]) -> str:
    for mark in marks:
        text = text.replace(mark, f"{mark[0]} {mark[1:]}")
    return text


def any_length() -> contextlib.AbstractContextManager[None]:
    """Without cuDNN's attention, which makes a plan for each new length: 50 ms of an H100's host for each token."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


def return_memory() -> None:
    """What torch keeps of a GPU's memory for later is free for others again: candidates may be judged there next."""
    import torch

    torch.cuda.empty_cache()


@contextlib.contextmanager
def _as_it_is(model: Any) -> Iterator[None]:
    """Without dropout and without the penalties and cut-offs that a model's own generation settings may ask for."""
    inner = getattr(model, "get_base_model", lambda: model)()  # adapters would hand it what is set on them, for good
    was_training, own = model.training, inner.generation_config
    model.eval()
    inner.generation_config = _generation_config()
    try:
        yield
    finally:
        model.train(was_training)
        inner.generation_config = own


def _generation_config(**settings: Any) -> Any:
    import transformers

    make: Any = transformers.GenerationConfig  # it has no types
    return make(**settings)


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """What ends a reply, by the tokenizer and by the model's own settings."""
    said = model.generation_config.eos_token_id if model.generation_config else None
    ends = set(said) if isinstance(said, list) else {said}
    return {end for end in ends | {tokenizer.eos_token_id} if end is not None}


def _pad_token(tokenizer: Any, ends: list[int]) -> int:
    return tokenizer.pad_token_id if tokenizer.pad_token_id is not None else ends[0]


def require_transformers() -> None:
    """Raises UsageError, with the line that installs it, where transformers is missing. Loads nothing."""
    if importlib.util.find_spec("transformers") is None:
        raise UsageError(f"--proposer policy: needs transformers, which is not installed; run: {INSTALL}")


def _loaded(checkpoint: Checkpoint, device: str) -> tuple[Any, Any]:
    import torch
    import transformers

    where = f"checkpoint {checkpoint.path}"
    options = {"local_files_only": True, "trust_remote_code": False}
    dtype = torch.float32 if device == "cpu" else "auto"
    try:
        with _quiet(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint.path, **options)
            load: Any = transformers.AutoModelForCausalLM.from_pretrained  # its type knows nothing of `info`
            model, info = load(checkpoint.path, dtype=dtype, use_safetensors=True, output_loading_info=True, **options)
    except MemoryError as error:
        raise InfrastructureError(f"{where}: does not fit into memory ({one_line(error, 120)})") from error
    except Exception as error:  # a folder of somebody's: its readers raise kinds of their own, and ask for packages
        raise UsageError(f"{where}: cannot be loaded ({one_line(error, 200)})") from error
    if missing := sorted(info["missing_keys"]):
        raise UsageError(f"{where}: its weights are not those of its configuration; {missing[0]} is missing")
    if tokenizer.chat_template is None:
        raise UsageError(f"{where}: its tokenizer has no chat template (chat_template.jinja)")
    try:
        return model.to(device), tokenizer
    except RuntimeError as error:  # torch's kinds for a full device and for a broken one are of this
        raise InfrastructureError(f"{where}: cannot be put on {device} ({one_line(error, 120)})") from error


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without progress bars and warnings for as long as the block lasts."""
    log = transformers.utils.logging
    level, has_bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if has_bars:
            log.enable_progress_bar()
