"""Native CPU kernels for a few rows: products, one-query attention, a whole decode step; built on first use.

`load` gives the library, or None where there is no compiler: then plain PyTorch does the work. twins.py has the same
mathematics in plain PyTorch.
"""
