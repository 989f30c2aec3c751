"""Process groups, collectives, exact softmax merge, Helix."""
