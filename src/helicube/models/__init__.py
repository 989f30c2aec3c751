"""Single-device models, readable from top to bottom."""
