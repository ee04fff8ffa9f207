"""Drop-in artefacts: one self-contained file, its evidence, and `OptimizedModule` around a live module."""
