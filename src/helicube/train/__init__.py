"""Data, training loops and evaluation."""
