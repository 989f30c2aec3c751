"""Processes that tests started, or that those started."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int) -> bool:
    """Whether anything of a process runs: a zombie only waits for its parent."""
    assert Path("/proc/self").is_dir(), "this needs Linux"
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
