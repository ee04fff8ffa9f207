"""A variant as what follows the reference in one file: what is new about it, in few tokens."""

from __future__ import annotations

import ast

from cuda_l1.prompts.python_text import tree_of


def continuation(reference: str, source: str) -> str:
    """What follows the text of `reference` in `source`; all of `source` where it does not begin with that."""
    head = reference.strip()
    text = source.strip()
    return text.removeprefix(head).strip("\n") + "\n" if head else source


def whole_file(reference: str, source: str) -> str:
    """The file of an answer that continues `reference`; `source` itself where it defines a `Model` of its own."""
    tree = tree_of(source)
    own = tree is not None and any(isinstance(node, ast.ClassDef) and node.name == "Model" for node in tree.body)
    return source if own or not reference.strip() else f"{reference.rstrip()}\n\n\n{source.lstrip()}"
