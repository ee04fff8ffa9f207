"""Template files: loading, the hash that versions them, and one clear line for each mistake in a user's own."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cuda_l1.errors import UsageError
from cuda_l1.texts import read_text
from cuda_l1.types import digest

if TYPE_CHECKING:
    from jinja2 import Environment, Template

SYSTEM = "system.j2"
SYSTEM_COMPACT = "system_compact.j2"
BUILT_IN = {"contrastive": "contrastive.j2", "one-shot": "oneshot.j2", "compact": "compact.j2", "repair": "repair.j2"}
KNOWN = (
    "task", "language", "device", "facts", "roofline", "profile", "exemplars", "scores", "failures", "cases",
    "analysis", "data",
)  # fmt: skip
"""Variables of a template."""


class PromptTemplate(NamedTuple):
    """The two messages of a prompt as Jinja texts."""

    name: str
    user: str
    system: str = SYSTEM
    """The file of the system message."""
    fence: str | None = None
    """The word beside which texts of others stand, where none of them contains it; None: a hash."""

    @property
    def version(self) -> str:
        """Name and hash of all the texts that it is made of, e.g. `contrastive@1f3a9c20`."""
        word = [self.fence] if self.fence else []
        return f"{self.name}@{digest(*_parts(self.user), *_parts(_built_in(self.system)), *word)[:8]}"

    def render(self, values: dict[str, Any]) -> tuple[str, str]:
        """System and user message. Raises UsageError."""
        return _rendered("system", _built_in(self.system), values), _rendered(self.name, self.user, values)


def built_in_template(kind: str) -> PromptTemplate:
    """The template of `contrastive`, `one-shot`, `compact` or `repair`."""
    user = _built_in(BUILT_IN[kind])
    if kind == "compact":  # read by small policies, to which each letter of a hash is a token
        return PromptTemplate(kind, user, SYSTEM_COMPACT, fence="cited")
    return PromptTemplate(kind, user)


def load_template(path: Path) -> PromptTemplate:
    """A user's own template of the user message.

    Raises UsageError: it cannot be read, is no template, or names a variable that no prompt has.
    """
    try:
        text = read_text(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"template {path}: cannot be read ({getattr(error, 'strerror', None) or 'no UTF-8'})"
        ) from None
    _check(str(path), text)
    return PromptTemplate(path.stem, text)


def _check(name: str, text: str) -> None:
    from jinja2 import TemplateSyntaxError, meta, nodes

    try:
        tree = _environment().parse(text)
    except TemplateSyntaxError as error:
        raise UsageError(f"template {name}, line {error.lineno}: {error.message}") from error
    unknown = meta.find_undeclared_variables(tree) - set(KNOWN)
    if unknown:
        found = next(node for node in tree.find_all(nodes.Name) if node.name in unknown)
        raise UsageError(
            f"template {name}, line {found.lineno}: unknown variable `{found.name}`; known are {', '.join(KNOWN)}"
        )


def _rendered(name: str, text: str, values: dict[str, Any]) -> str:
    from jinja2 import TemplateError, TemplateNotFound

    try:
        return _compiled(text).render(values).strip() + "\n"
    except TemplateNotFound as error:
        raise UsageError(f"template {name}: it includes {error}, but only files of cuda_l1/prompts can be") from error
    except (
        TemplateError,
        TypeError,
        ValueError,
        ArithmeticError,
        LookupError,
        AttributeError,
        RecursionError,
    ) as error:
        raise UsageError(f"template {name}: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=64)
def _compiled(text: str) -> Template:
    """What takes most of the time of a rendering; `from_string` keeps nothing."""
    return _environment().from_string(text)


@lru_cache(maxsize=64)
def _parts(text: str) -> tuple[str, ...]:
    """A text and, in order, all that it includes."""
    from jinja2 import meta

    included = filter(None, meta.find_referenced_templates(_environment().parse(text)))
    return (text, *(part for name in included for part in _parts(_built_in(name))))


@cache
def _environment() -> Environment:
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        loader=FunctionLoader(lambda name: _built_in(name) if name in _names() else None),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        keep_trailing_newline=True,
    )


@cache
def _names() -> frozenset[str]:
    return frozenset(file.name for file in files("cuda_l1.prompts").iterdir() if file.name.endswith(".j2"))


@cache
def _built_in(name: str) -> str:
    return files("cuda_l1.prompts").joinpath(name).read_text("utf-8")
