"""The service under test: started, killed and started again on the same port and folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCRIPT = Path(__file__).with_name("studio_server.py")
START_S = PATIENCE_S = 120.0


def until(page: Page, expression: str) -> None:
    """Wait for a JavaScript expression; Playwright's own way needs eval, which the page's policy forbids."""
    end = time.monotonic() + PATIENCE_S
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"not so after {PATIENCE_S:.0f} s: {expression}"
        page.wait_for_timeout(50)


def begin(page: Page, prompt: str, *, seed: int, variants: int = 1) -> str:
    """Press Enter and wait until the page has taken the job, as it heeds no press before; the job's id.

    Seeds tell a page's jobs apart: it forgets a job that has ended, and shows the seed of what came of it.
    """
    page.fill("#seed", str(seed))
    page.check(f"input[name=variants][value='{variants}']", force=True)
    page.fill("#prompt", prompt)
    with page.expect_response("**/v1/objects") as answer:
        page.press("#prompt", "Enter")
    job = str(answer.value.json()["id"])
    until(page, f"sessionStorage.job === '{job}' || {shows(seed)}")
    return job


def shows(seed: int) -> str:
    """True, in JavaScript, where the page shows a finished object of this seed."""
    return f"document.querySelector('#result-facts').textContent.includes('seed {seed} ')"


class Studio:
    """A process that serves the studio with a small model.

    Args:
        folder: data directory; its log lies beside it.
        key: asked of every client; none by default.
        step_s: seconds that each call of the engine takes at least; a job's 40 tokens take a handful.
    """

    def __init__(self, folder: Path, step_s: float, key: str | None = None) -> None:
        self.folder, self.step_s, self.key = folder, step_s, key
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, str(SCRIPT), str(self.port), str(self.folder), str(self.step_s)]
        command += [self.key] if self.key else []
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"})
        until = time.monotonic() + START_S
        while not self.answers():
            assert self.process.poll() is None, f"the service did not start:\n{self.log.read_text()[-3000:]}"
            assert time.monotonic() < until, f"the service does not answer after {START_S:.0f} s"
            time.sleep(0.1)

    @property
    def log(self) -> Path:
        return self.folder.with_suffix(".log")

    def answers(self) -> bool:
        try:
            return bool(self.get("/healthz"))
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def get(self, path: str) -> Any:
        """JSON of a route, without the browser."""
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.load(answer)

    def kill(self) -> None:
        """As if the power failed."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
