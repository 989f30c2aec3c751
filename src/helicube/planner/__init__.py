"""Which layout, how fast, how many users (numpy only)."""
