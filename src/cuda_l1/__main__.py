"""`python -m cuda_l1`: the same as `cuda-l1`."""

from cuda_l1.cli import main

main()
