"""A role for tests: runs the Python text of its spec, as foreign code would run in a guest."""


def main(channel, spec):
    exec(compile(spec["source"], "<guest>", "exec"), {"channel": channel, "spec": spec})
