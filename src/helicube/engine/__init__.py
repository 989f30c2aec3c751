"""The decode engine: cache, sampling, graphs, scheduling."""
