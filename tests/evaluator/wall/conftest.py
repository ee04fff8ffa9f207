"""Real guests for the tests of the wall: one fork template per rung, and a role that runs any Python text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wall_support import LIMITS, ROLES

from cuda_l1.config import Limits
from cuda_l1.evaluator.environment import guest_environment
from cuda_l1.evaluator.guest import probe
from cuda_l1.evaluator.guest.channel import ChannelClosed
from cuda_l1.evaluator.processes import Guest, Template

Spawn = Callable[..., Guest]


@pytest.fixture(scope="session")
def refused() -> dict[str, str]:
    """Rung to reason, for the rungs that this machine refuses."""
    return probe.highest_rung()[1]


@pytest.fixture(scope="session")
def templates(refused: dict[str, str]) -> Iterator[Callable[[str], Template]]:
    """The template of a rung, started once; a refused rung skips the test with the command that raises it."""
    started: dict[str, Template] = {}

    def of(rung: str) -> Template:
        if rung in refused:
            pytest.skip(f"{rung} is refused here ({refused[rung]}); to allow it: {probe.advice(rung)}")
        if rung not in started:
            started[rung] = Template.start(guest_environment(OMP_NUM_THREADS="1"), rung=rung, role_folder=ROLES)
        return started[rung]

    yield of
    for template in started.values():
        template.close()


@pytest.fixture(params=["R0", "R1", "R2"])
def template(request: pytest.FixtureRequest, templates: Callable[[str], Template]) -> Template:
    """Every rung."""
    return templates(request.param)


@pytest.fixture(params=["R1", "R2"])
def confined(request: pytest.FixtureRequest, templates: Callable[[str], Template]) -> Template:
    """Every rung that confines."""
    return templates(request.param)


@pytest.fixture
def run() -> Iterator[Spawn]:
    """Spawn a guest that runs Python text with `channel` and `spec` in reach; closed after the test."""
    guests: list[Guest] = []

    def start(template: Template, source: str, limits: Limits = LIMITS, **more: Any) -> Guest:
        spec = {"source": textwrap.dedent(source)} | more.pop("spec", {})
        guests.append(template.spawn("script", spec, limits=limits, **more))
        return guests[-1]

    yield start
    for guest in guests:
        guest.close()


@pytest.fixture
def ask(run: Spawn) -> Callable[..., dict[str, Any]]:
    """Run Python text in a guest and return the one message that it sends."""

    def answer(template: Template, source: str, timeout_s: float = 30.0, **more: Any) -> dict[str, Any]:
        guest = run(template, source, **more)
        try:
            return guest.channel.receive(timeout_s)[0]
        except ChannelClosed:
            pytest.fail(f"the guest ended without an answer: {guest.wait(10)}\n{guest.log_tail()}")

    return answer
