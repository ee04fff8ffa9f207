"""Whether one more question may be asked: `--max-usd` and `--max-tokens`, with what is under way counted in."""

from __future__ import annotations

from dataclasses import dataclass

from cuda_l1.config import LlmSettings, ModelSettings
from cuda_l1.endpoint import place_of
from cuda_l1.proposers.llm.ledger import Ledger
from cuda_l1.proposers.llm.prices import Price, Prices, price_of
from cuda_l1.types import Cost, Prompt

CHARACTERS_PER_TOKEN = 3
"""For texts that no server has counted: rather too many tokens than too few."""


@dataclass(frozen=True)
class Reserved:
    """What a question may cost."""

    tokens: int
    usd: float


def estimated_tokens(text: str) -> int:
    """Tokens of a text that nobody has counted, rather too many."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


class Purse:
    """The limits of a run over its ledger. With `max_tokens` for each answer they hold; else they may be passed by what
    is under way when they are reached."""

    def __init__(self, settings: LlmSettings, prices: Prices, ledger: Ledger) -> None:
        self._settings, self._prices, self.ledger = settings, prices, ledger
        self._reserved: list[Reserved] = []

    def price(self, model: str, place: str) -> Price | None:
        """What a model costs there, if that is known."""
        return price_of(self._prices, model, place)

    def cost(self, model: str, place: str, *, tokens_in: int, tokens_out: int, wall_s: float) -> Cost:
        """Of a reply."""
        price = self.price(model, place)
        usd = price.usd(tokens_in, tokens_out) if price else None
        return Cost(tokens_in=tokens_in, tokens_out=tokens_out, usd=usd, wall_s=wall_s)

    def estimate(self, model: ModelSettings, prompt: Prompt) -> Reserved:
        """What a question may cost: its answer as long as it may be, else as long as those before."""
        tokens_in = estimated_tokens(prompt.system + prompt.user)
        place = place_of(model.url)
        tokens_out = model.max_tokens or self.ledger.account(model.name, place).mean_tokens_out
        price = self.price(model.name, place)
        return Reserved(tokens_in + tokens_out, price.usd(tokens_in, tokens_out) if price else 0.0)

    def objection(self, asked: Reserved) -> str | None:
        """Why a question that costs this may not be asked; None where it may."""
        limits = self._settings
        tokens = self.ledger.tokens + sum(other.tokens for other in self._reserved)
        if limits.max_tokens is not None and tokens + asked.tokens > limits.max_tokens:
            return f"--max-tokens {limits.max_tokens}: {tokens} are spent, one more question takes about {asked.tokens}"
        usd = self.ledger.known_usd + sum(other.usd for other in self._reserved)
        if limits.max_usd is not None and usd + asked.usd > limits.max_usd:
            return f"--max-usd {limits.max_usd:g}: {usd:.4f} are spent, one more question costs about {asked.usd:.4f}"
        return None

    def reserve(self, asked: Reserved) -> None:
        """Counts a question in, until `release`."""
        self._reserved.append(asked)

    def release(self, asked: Reserved) -> None:
        """Takes it out again: its reply is in the ledger, or there is none."""
        self._reserved.remove(asked)
