"""The command line where eager is a CPU's only baseline: compiling is most of a short search, and beside the point of
whoever starts this. `tests/packaging/test_docs.py` searches with every baseline."""

from cuda_l1.cli import main
from cuda_l1.proposers.baselines import _CPU

if __name__ == "__main__":
    del _CPU["compile"]
    main()
