"""What models cost: `prices.toml`, which a person writes, since prices change and differ from contract to contract.

["some-model"]                       # as the endpoint calls it
input = 0.15                         # US dollars for a million tokens
output = 0.60

["some-model at localhost:8000"]     # the same model elsewhere
input = 0
output = 0
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from cuda_l1.config import config_home
from cuda_l1.errors import UsageError
from cuda_l1.texts import read_text
from cuda_l1.types import Frozen
from cuda_l1.validation import first_problem

MILLION = 1_000_000


class Price(Frozen):
    """US dollars for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    """What a model thinks aloud counts as output."""

    def usd(self, tokens_in: int, tokens_out: int) -> float:
        """What so many tokens cost."""
        return (self.input * tokens_in + self.output * tokens_out) / MILLION


Prices = Mapping[str, Price]


def default_prices() -> Path:
    """Where prices are looked for when no file is named."""
    return config_home() / "prices.toml"


def load_prices(named: str | None = None) -> Prices:
    """The prices of the file `named`, else of `default_prices()`; none where that is not there.

    Raises UsageError: a named file that is not there, no TOML, or an entry that is no price.
    """
    path = Path(named).expanduser() if named else default_prices()
    if named is None and not path.is_file():
        return {}
    try:
        tables = tomllib.loads(read_text(path, encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"prices {path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"prices {path}: is no TOML ({' '.join(str(error).split())})") from error
    return {name: _price(path, name, table) for name, table in tables.items()}


def _price(path: Path, name: str, table: object) -> Price:
    try:
        return Price.model_validate(table, strict=True)
    except ValidationError as error:
        raise UsageError(
            f'prices {path}, "{name}": give input = and output =, US dollars for a million tokens '
            f"({first_problem(error)}){_unquoted(name, table)}"
        ) from error


def _unquoted(name: str, table: object) -> str:
    """To TOML `[a-1.5]` is a table within a table: what to write instead, where that is what somebody did."""
    full = name
    while isinstance(table, dict) and (inner := next((k for k, v in table.items() if isinstance(v, dict)), None)):
        full, table = f"{full}.{inner}", table[inner]
    return "" if full == name else f'; a name with a dot wants quotes: ["{full}"]'


def price_of(prices: Prices, model: str, place: str) -> Price | None:
    """The price of a model at a place, else of the model anywhere; None where it is unknown."""
    return prices.get(f"{model} at {place}") or prices.get(model)
