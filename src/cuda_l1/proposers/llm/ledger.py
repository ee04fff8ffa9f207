"""What replies have cost so far: tokens and money, per model."""

from __future__ import annotations

from dataclasses import dataclass

from cuda_l1.types import Reply


@dataclass
class Account:
    """One model's side of the ledger."""

    model: str
    endpoint: str
    replies: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0
    """None: it has no known price."""

    def add(self, reply: Reply) -> None:
        self.replies += 1
        self.tokens_in += reply.cost.tokens_in
        self.tokens_out += reply.cost.tokens_out
        self.usd = None if self.usd is None or reply.cost.usd is None else self.usd + reply.cost.usd

    @property
    def mean_tokens_out(self) -> int:
        """Of a reply; 0 before the first."""
        return self.tokens_out // self.replies if self.replies else 0


class Ledger:
    """All accounts of a run, in the order in which models first cost something."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[str, str], Account] = {}

    def account(self, model: str, endpoint: str) -> Account:
        """That of a model at a place, opened where there is none."""
        return self._accounts.setdefault((model, endpoint), Account(model, endpoint))

    def add(self, reply: Reply) -> None:
        """Books a reply."""
        self.account(reply.model, reply.endpoint).add(reply)

    @property
    def replies(self) -> int:
        return sum(account.replies for account in self._accounts.values())

    @property
    def tokens(self) -> int:
        """Of questions and answers together."""
        return sum(account.tokens_in + account.tokens_out for account in self._accounts.values())

    @property
    def known_usd(self) -> float:
        """What is known to be spent: models without a price count nothing."""
        return sum(account.usd or 0.0 for account in self._accounts.values())
