"""The built-in suite: one KernelBench-format file per workload, read as text and never imported by us."""
