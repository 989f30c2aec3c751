"""Prompts in, meshes out."""
