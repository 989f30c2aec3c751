"""Triton kernels of a decode step, each beside a twin in plain PyTorch.

Import a module of this package only when `kernels.choose` picks it: they import triton, which CPU installations lack.
"""
