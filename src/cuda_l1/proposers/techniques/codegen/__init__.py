"""From a piece of a graph to one generated kernel: expressions, loop nests, and what prints them.

    Lowering(nodes).run(nodes, outputs)   graph nodes -> expressions over dense index spaces    lowering, lower_*
    schedule(values)                      expressions -> loop nests, each one set of loops      axes, schedule
    plan_nest(nest, buffers)              a nest -> loops, memory accesses, passes              plan
    cpp.python_source(kernels)            plans -> C++ and the Python that calls it             cpp, cpp_*
    traced_function(name, region)         expressions -> a short function that is traced        traced
    functions(graph, write)               regions of a graph with what is written for them      regions, calls

Nothing here knows a task or a technique, and nothing here executes what it writes.
"""
