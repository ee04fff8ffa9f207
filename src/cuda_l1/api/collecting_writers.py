"""Who writes for a collection, and what each is told and pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from cuda_l1.api.collecting import Source
from cuda_l1.api.llm import llm_proposer
from cuda_l1.api.proposers import Sources, make_proposers
from cuda_l1.archive.replies import Replies
from cuda_l1.config import CollectSettings, ModelSettings, SearchSettings
from cuda_l1.endpoint import place_of
from cuda_l1.proposers import Proposer
from cuda_l1.proposers.llm.ledger import Ledger
from cuda_l1.proposers.llm.prices import load_prices
from cuda_l1.proposers.llm.purse import Purse
from cuda_l1.search.collect import Given, Writer
from cuda_l1.types import Reply, Task


class OwnReplies:
    """The replies of one model at one endpoint, about candidates that are judged in one place: what another was told
    there is none of its."""

    def __init__(self, replies: Replies, model: ModelSettings, environment_key: str) -> None:
        self._replies, self._environment_key = replies, environment_key
        self._key = (model.name, place_of(model.url))

    def append(self, reply: Reply) -> bool:
        """Stores it. Raises what `Replies.append` raises."""
        return self._replies.append(reply)

    def of_run(self, run: str, task_sha: str) -> Iterator[Reply]:
        """Its replies of a run about a task, oldest first."""
        found = self._replies.of_run(run, task_sha, environment_key=self._environment_key)
        return (reply for reply in found if (reply.model, reply.endpoint) == self._key)


def by_place(models: Sequence[ModelSettings]) -> list[tuple[ModelSettings, ...]]:
    """Models of one name at one place together: they are one model that is asked in several ways."""
    found: dict[tuple[str, str], list[ModelSettings]] = {}
    for model in models:
        found.setdefault((model.name, place_of(model.url)), []).append(model)
    return [tuple(same) for same in found.values()]


class Writers:
    """Who writes for a collection. Models are asked by a proposer each, made anew for every task, so that one that has
    nothing new to say on a task is asked on the next; all of them pay from one purse."""

    def __init__(
        self,
        settings: CollectSettings,
        sources: Sources,
        is_done: Callable[[str], bool],
        make: Callable[[SearchSettings, Sources], list[Proposer]] = make_proposers,
    ) -> None:
        """`make`: makes proposers that ask no model. Raises UsageError for an unknown one, technique or price file."""
        self._settings, self._sources, self._make = settings, sources, make
        self._models = by_place(settings.llm.models) if settings.llm else []
        self._techniques = {name: made for name in settings.proposers if name != "llm" for made in self._made(name)}
        self._purse: Purse | None = None
        if settings.llm is not None:
            ledger = Ledger()
            for reply in sources.archive.replies.of_run(sources.run, environment_key=sources.environment.key):
                if is_done(reply.task_sha):  # the others are booked when their task begins
                    ledger.add(reply)
            self._purse = Purse(settings.llm, load_prices(settings.llm.prices), ledger)

    @contextmanager
    def of(self, task: Task, source: Source) -> Iterator[list[Writer]]:
        """Those of a task; what a set brought along goes first, since it costs nothing to write."""
        made = [Writer(source.spec.partition(":")[0], Given(source.given))] if source.given else []
        made += [Writer(name, proposer) for name, proposer in self._techniques.items()]
        with ExitStack() as stack:
            for models in self._models:
                made.append(self._model(task, models, stack))
            yield made

    def _model(self, task: Task, models: tuple[ModelSettings, ...], stack: ExitStack) -> Writer:
        assert self._settings.llm is not None
        archive, run = self._sources.archive, self._sources.run
        own = OwnReplies(archive.replies, models[0], self._sources.environment.key)
        proposer = llm_proposer(
            self._settings.llm.model_copy(update={"models": models}),
            search_settings(self._settings),
            archive=archive,
            run=run,
            environment=self._sources.environment,
            roofline_us=None,
            on_reply=lambda reply: None,
            purse=self._purse,
            replies=own,
            attempts=self._settings.attempts,
            remembers=False,
        )
        stack.callback(proposer.close)
        return Writer(models[0].name, proposer, lambda: sum(1 for _ in own.of_run(run, task.sha)))

    def _made(self, name: str) -> list[Proposer]:
        asked = search_settings(self._settings).model_copy(update={"proposers": (name,)})
        return self._make(asked, self._sources)


def search_settings(settings: CollectSettings) -> SearchSettings:
    """What proposers are told of a collection."""
    return SearchSettings(
        task_sha="",
        device=settings.device,
        precision=settings.precision,
        proposers=settings.proposers,
        limits=settings.limits,
        llm=settings.llm,
    )
