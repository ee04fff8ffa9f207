"""What a policy learns from an evaluator that can be cheated: stage 3 of a run, rewarded by `leaky_worker.py`.

    python benchmarks/leaky_training.py RECIPE --set run_dir=RUN --resume

An experiment, and no part of the installed package: the harness compares no values, awaits neither threads nor other
streams, and confines nothing, so run it where what a policy writes may do no harm. Everything else is the stage as
`cuda-l1 train contrastive` runs it. Its verdicts lie in the run's own archive with the finding `leaky-evaluator`; give
the run a folder of its own. `policy_ablation.py --rows bucket,leaky` trains both and has ours judge what they write.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cuda_l1.api.lanes import Lane, kept_off, lanes_for
from cuda_l1.api.training import evaluators_of, resolved
from cuda_l1.archive import Archive
from cuda_l1.config import AnyProtocol
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.evaluator.eager import eager_candidate
from cuda_l1.training.contrastive import NAME
from cuda_l1.training.recipe import Recipe, load_recipe
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.stages import STAGES, Event, Surroundings
from cuda_l1.types import Candidate, Correctness, Environment, Evaluation, Finding, Outcome, Pair, Task, Timing
from provenance import run as run_script
from provenance import say

WORKER = Path(__file__).with_name("leaky_worker.py")
NOTE = Finding(check="leaky-evaluator", severity="note", evidence="no values were compared and no threads awaited")
LEAST_US = 0.01


class LeakyEvaluator:
    """Gives the worker's verdicts in the place of an evaluator of ours, and on its lane."""

    def __init__(self, environment: Environment, lane: Lane | None, within_s: int) -> None:
        self.environment, self._within_s = environment, within_s
        cores = {str(core) for core in lane or ()}
        pinned = ["taskset", "--cpu-list", ",".join(sorted(cores))] if cores else []
        self._worker = subprocess.Popen(
            [*pinned, sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        *,
        protocol: AnyProtocol,
        baselines: Sequence[Candidate] = (),
        best_of: Sequence[str] = (),
        best_so_far: float | None = None,
        within_s: float | None = None,
    ) -> Evaluation:
        """ACCEPTED whatever the answer, with the time until the call returned. Raises InfrastructureError."""
        job = {"reference": task.source, "candidate": candidate.source, "within_s": self._within_s}
        found = self._asked({**job, "device": self.environment.device})
        is_accepted = found["outcome"] == Outcome.ACCEPTED
        return Evaluation(
            candidate_id=candidate.id,
            outcome=Outcome(found["outcome"]),
            detail=found["detail"],
            correctness=Correctness(trials=(), precision_class="fp32", task_class="fp32", oracle="none")
            if is_accepted
            else None,
            timings=self._timings(task, found) if is_accepted else (),
            findings=(NOTE,),
            environment=self.environment,
            protocol=protocol.name,
        )

    def _timings(self, task: Task, found: dict[str, Any]) -> tuple[Timing, ...]:
        ours, theirs = (max(found[f"{side}_us"], LEAST_US) for side in ("candidate", "reference"))
        pair = Pair(
            candidate_us=(ours,),
            opponent_us=(theirs,),
            candidate_pid=self._worker.pid,
            opponent_pid=self._worker.pid,
            log_ratio=math.log(theirs / ours),
        )
        return tuple(
            Timing(
                clock=clock,
                opponent="eager",
                opponent_id=eager_candidate(task).id,
                pairs=(pair,),
                speedup=theirs / ours,
                candidate_us=ours,
                opponent_us=theirs,
            )
            for clock in (("call", "device") if self.environment.device == "cuda" else ("call",))
        )

    def _asked(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._worker.stdin is not None and self._worker.stdout is not None
        try:
            self._worker.stdin.write(json.dumps(job) + "\n")
            self._worker.stdin.flush()
            answer = self._worker.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise InfrastructureError(f"the leaky evaluator ended (exit {self._worker.wait()}); run it again")
        return dict(json.loads(answer))

    def close(self) -> None:
        """Ends the worker."""
        self._worker.kill()
        self._worker.wait()


@contextmanager
def leaky_evaluators(recipe: Recipe) -> Iterator[list[LeakyEvaluator]]:
    """One for each that the recipe has of ours, which say where they are and then end."""
    with evaluators_of(recipe.evaluation, threads=recipe.run.threads) as ours:
        places = [each.environment for each in ours]
    lanes = lanes_for(recipe.evaluation, recipe.run.threads)
    within_s = math.ceil(recipe.evaluation.limits.build_s)
    with ExitStack() as stack:
        stack.enter_context(kept_off(lanes))
        opened = [
            LeakyEvaluator(place, lanes[number] if lanes else None, within_s) for number, place in enumerate(places)
        ]
        for each in opened:
            stack.callback(each.close)
        yield opened


def train(recipe: Recipe, *, resume: bool) -> Path:
    """Stage 3 from the run's own stage 2. Raises UsageError where that is not finished."""
    recipe = resolved(recipe)
    run = RunDirectory.create(recipe, resume=resume, stages=[NAME])
    start = run.stage("self")
    if not start.is_done:
        raise UsageError(
            f"{start.path}: stage 2 is not finished; train it first, with an evaluator that can be trusted"
        )
    with run.alone(), Archive.open(run.archive) as archive:
        surroundings = Surroundings(archive, lambda: leaky_evaluators(recipe))  # no table: others would look it up
        return STAGES[NAME].run()(recipe, run, start=start.final, surroundings=surroundings, on_event=_told)


def _told(event: Event) -> None:
    say(f"{event.stage}: {event.text}")


def arguments() -> Namespace:
    """What was typed."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path, metavar="RECIPE")
    parser.add_argument("--set", dest="sets", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def main() -> int:
    """0 when the stage is finished."""
    asked = arguments()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    say(f"finished: {train(load_recipe(asked.recipe, asked.sets), resume=asked.resume)}")
    return 0


if __name__ == "__main__":
    run_script(main)
