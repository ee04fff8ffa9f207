"""From a piece of a graph to one generated kernel: expressions, loop nests, and what prints them as C++ or Triton.

    program = lower(nodes, outputs)         graph nodes -> expressions over dense index spaces   (lowering, lower_*)
    nests = schedule(program)               expressions -> loop nests, one pass over memory each  (axes, schedule)
    plan = plan_nest(nest)                  a nest -> loops, operands, passes                     (plan)
    cpp.function(...), triton.function(...) plans -> source text

Nothing here knows a task or a technique, and nothing here executes what it writes.
"""
