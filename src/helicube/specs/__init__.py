"""Facts as frozen dataclasses (standard library only)."""
