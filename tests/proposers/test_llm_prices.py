"""The file of prices, and what a person can write wrong into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_l1.errors import UsageError
from cuda_l1.proposers.llm.prices import Price, load_prices, price_of

FILE = """
["org/some-model"]
input = 0.15
output = 0.6

["org/some-model at localhost:8000"]
input = 0
output = 0
"""


def test_a_price_is_of_a_model_anywhere_or_at_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_prices() == {}
    (tmp_path / "cuda-l1").mkdir()
    (tmp_path / "cuda-l1" / "prices.toml").write_text(FILE)
    prices = load_prices()
    assert prices == load_prices(str(tmp_path / "cuda-l1" / "prices.toml"))
    assert price_of(prices, "org/some-model", "api.example.com") == Price(input=0.15, output=0.6)
    assert price_of(prices, "org/some-model", "localhost:8000") == Price(input=0, output=0)
    assert price_of(prices, "another", "localhost:8000") is None
    assert Price(input=0.15, output=0.6).usd(2_000_000, 500_000) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[m]\ninput = 1", '"m": give input = and output ='),
        ("[m]\ninput = 1\noutput = -1", '"m": give'),
        ("[m]\ninput = inf\noutput = 1", '"m": give'),
        ("[m]\ninput = '1'\noutput = 1", '"m": give'),
        ("[m]\ninput = 1\noutput = 1\ncurrency = 'EUR'", '"m": give'),
        ("[m]\ninput = 1\nouptut = 1", r"output: is missing"),
        ("[m-1.5.b]\ninput = 1\noutput = 1", r'a name with a dot wants quotes: \["m-1\.5\.b"\]'),
        ("m = 3", '"m": give'),
        ("[m", "is no TOML"),
        (None, "cannot be read"),
    ],
)
def test_a_mistake_is_one_line(text: str | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        load_prices(str(path))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
