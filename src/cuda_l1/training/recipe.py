"""What a training run is made of: frozen sections, a docstring per field, read from TOML. Importable without torch."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from cuda_l1.config import Settings
from cuda_l1.errors import UsageError
from cuda_l1.texts import read_text
from cuda_l1.training.sections import (
    ALWAYS,
    Changeable,
    ContrastiveSection,
    DataSection,
    EvaluationSection,
    GenerationSection,
    ModelSection,
    PromptSection,
    RunSection,
    SelfSupervisedSection,
    SftSection,
    at_home,
)
from cuda_l1.types import Frozen, digest
from cuda_l1.validation import plain


class Recipe(Settings):
    """A whole training run; its digest is in every model card."""

    _home = at_home("run_dir")
    run_dir: Annotated[str, ALWAYS] = Field(min_length=1)
    """The folder of the run: checkpoints, metrics, samples, and the archive unless `run.archive` names another."""
    model: ModelSection = ModelSection()
    data: DataSection = DataSection()
    prompt: PromptSection = PromptSection()
    sft: Annotated[SftSection, Changeable(("sft", "self"))] = SftSection()
    self_supervised: Annotated[SelfSupervisedSection, Changeable(("self",))] = SelfSupervisedSection()
    contrastive: Annotated[ContrastiveSection, Changeable(("contrastive",))] = ContrastiveSection()
    generation: GenerationSection = GenerationSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()

    @property
    def against(self) -> tuple[str, ...]:
        """Suites beside the built-in one and KernelBench that are kept away from training."""
        return (*self.data.against, *self.evaluation.held_out_suites)

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides the result, wherever the run lies; 64 hex characters."""
        return digest(json.dumps(decisive(self), sort_keys=True))


def decisive(recipe: Recipe) -> dict[str, Any]:
    """The values that the result follows from, by section."""
    values = recipe.model_dump(mode="json", exclude=_marked(Recipe))
    values["evaluation"]["reviewer"] = None if recipe.evaluation.reviewer is None else "somebody"
    return values


def changeable_until(name: str) -> frozenset[str]:
    """The folders of a run before which the decisive key of this dotted name may be given another value; empty: it may
    not at all."""
    found: set[str] = set()
    kind: Any = Recipe
    for part in name.split("."):
        field = kind.model_fields[part]
        found.update(folder for mark in field.metadata if isinstance(mark, Changeable) for folder in mark.until)
        kind = field.annotation
    return frozenset(found)


def _marked(kind: type[Frozen]) -> dict[str, Any]:
    """The keys of a section, and of those in it, that may always be changed: as pydantic leaves them out."""
    found: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        if ALWAYS in field.metadata:
            found[name] = True
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Frozen):
            found[name] = _marked(field.annotation)
    return {name: inner for name, inner in found.items() if inner}


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of a TOML file, with `section.key=value` from the command line in place of its values.

    A value is read as TOML, and as a text where it is none or where the key wants a text. Raises UsageError, one line:
    the file cannot be read, a key is unknown (the nearest is named), a value is not possible.
    """
    try:
        values = tomllib.loads(read_text(path, encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"recipe {path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"recipe {path}: is not text in UTF-8") from error
    except (ValueError, RecursionError) as error:  # also a number with thousands of digits, or a list in a list in ...
        raise UsageError(f"recipe {path}: cannot be read as TOML: {error}") from error
    for override in overrides:
        _override(values, override)
    return recipe_from(values, str(path))


def recipe_from(values: dict[str, Any], name: str) -> Recipe:
    """The recipe with these values; `name` says where they are from. Raises UsageError."""
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"recipe {name}: {_first_problem(error)}") from error


def as_toml(recipe: Recipe) -> str:
    """A recipe as a TOML file that reads back as the same; what is None is left out."""
    return "\n".join(_lines(recipe.model_dump(mode="json"), "")) + "\n"


def _lines(values: dict[str, Any], section: str) -> list[str]:
    """Plain values first: what stands below a section's head belongs to it."""
    plain = {key: value for key, value in values.items() if not isinstance(value, dict) and value is not None}
    found = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]  # JSON's are TOML's
    for key, value in values.items():
        if isinstance(value, dict):
            name = f"{section}.{key}" if section else key
            found += ["", f"[{name}]", *_lines(value, name)]
    return found


def _override(values: dict[str, Any], text: str) -> None:
    key, separator, value = text.partition("=")
    names = key.strip().split(".")
    if not separator or not all(names):
        raise UsageError(f"--set {text}: write section.key=value, e.g. sft.steps=100")
    at = values
    for name in names[:-1]:
        at = at.setdefault(name, {})
        if not isinstance(at, dict):
            raise UsageError(f"--set {text}: `{name}` is no section")
    at[names[-1]] = _value(value.strip(), is_text=_is_text(names))


def _value(text: str, *, is_text: bool) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, or nothing that Python reads
        return text
    return text if is_text and not isinstance(found, str) else found


def _is_text(names: Sequence[str]) -> bool:
    """Whether the key of these names takes a text: `2026-11-23` is a folder there, and no date."""
    kind: Any = Recipe
    for name in names:
        fields = getattr(kind, "model_fields", {})
        if name not in fields:
            return False
        kind = fields[name].annotation
    return kind is str or (get_origin(kind) is UnionType and str in get_args(kind))


def _first_problem(error: ValidationError) -> str:
    """The first mistake, an unknown key before others: a misspelt key is often missing elsewhere."""
    problems = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    first = problems[0]
    where = [str(part) for part in first["loc"]]
    if first["type"] != "extra_forbidden":
        return f"{'.'.join(where)}: {plain(first)}{_not(first)}"
    known = list(_section(where[:-1]).model_fields)
    close = difflib.get_close_matches(where[-1], known, n=1, cutoff=0.5)
    hint = f"; did you mean `{close[0]}`?" if close else f"; known are {', '.join(known)}"
    section = f"[{'.'.join(where[:-1])}]" if where[:-1] else "the top level"
    return f"{section} has no key `{where[-1]}`{hint}"


def _not(problem: ErrorDetails) -> str:
    """What was given in place of it, or how to give it."""
    if problem["type"] == "missing":
        return f"; give it in the recipe, or as --set {'.'.join(map(str, problem['loc']))}=..."
    try:
        return f", not {problem['input']!r:.80}"
    except ValueError:  # of an integer Python writes no more than some thousand digits
        return ", not a number of thousands of digits"


def _section(names: Sequence[str]) -> type[Frozen]:
    """The class of a section, by its names from the top."""
    found: type[Frozen] = Recipe
    for name in names:
        inner = found.model_fields[name].annotation
        assert isinstance(inner, type) and issubclass(inner, Frozen), names
        found = inner
    return found
