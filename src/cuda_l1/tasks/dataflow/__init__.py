"""What a task's text computes, read without executing it: the graph of its operators, and a digest of that graph."""

from cuda_l1.tasks.dataflow.graph import Node, canonical
from cuda_l1.tasks.dataflow.reading import Unreadable, read_graph

__all__ = ["Node", "Unreadable", "canonical", "read_graph"]
