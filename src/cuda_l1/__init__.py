"""Make PyTorch modules faster, and prove it.

    import cuda_l1
    fast = cuda_l1.optimize(module, example_inputs)      # an nn.Module with `.report`
    cuda_l1.evaluate("ref.py", "candidate.py").outcome   # a verdict that the candidate cannot touch

Importing this package loads no torch.
"""
