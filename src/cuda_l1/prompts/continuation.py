"""A variant as what follows the reference in one file: what is new about it, in few tokens."""

from __future__ import annotations

import ast

from cuda_l1.prelude import contracted, expanded
from cuda_l1.prompts.python_text import tree_of


def continuation(reference: str, source: str) -> str:
    """What follows the text of `reference` in `source`; all of `source` where it does not begin with that. A line
    stands for each prelude of a generated candidate."""
    head = reference.strip()
    text = source.strip()
    return contracted(text.removeprefix(head).strip("\n") + "\n" if head else source)


def whole_file(reference: str, source: str) -> str:
    """The file of an answer that continues `reference`, with its preludes; without the reference where the answer
    defines a `Model` of its own."""
    tree = tree_of(source)  # without preludes, which define no `Model`: they are most of a long text
    source = expanded(source)
    own = tree is not None and any(isinstance(node, ast.ClassDef) and node.name == "Model" for node in tree.body)
    return source if own or not reference.strip() else f"{reference.rstrip()}\n\n\n{source.lstrip()}"
