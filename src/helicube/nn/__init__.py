"""Single-device mathematics."""
