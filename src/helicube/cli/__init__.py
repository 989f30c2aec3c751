"""One file per command, no logic of its own."""
