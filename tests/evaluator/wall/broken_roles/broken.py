raise RuntimeError("a role that cannot be imported")
