"""A server process: started, stopped, killed, started again, with a log to show."""

import os
import re
import subprocess
import time

STARTS_WITHIN = 60
STOPS_WITHIN = 30
LOOK_EVERY = 0.05
# The end of a log says what went wrong; all of it may be much.
SHOWN_LINES = 300


class Node:
    def __init__(self, command, place, ready, environment=None):
        """`ready` finds the URL in what the process writes, once it can be asked."""
        self._command = command
        self._log = place
        self._ready = re.compile(ready)
        # Settings of the one who runs the tests are none of this server's.
        self._environment = {"PATH": os.environ.get("PATH", ""), **(environment or {})}
        self._process = None

    def start(self):
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment
            )
        try:
            self.url = self._until_listening()
        except Exception:
            self.stop()
            raise
        return self

    def stop(self):
        """As an operator stops it."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        """As a power cut would."""
        self._process.kill()
        self._process.wait()

    def has_ended(self):
        return self._process.poll() is not None

    def log(self):
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-SHOWN_LINES:])

    def _until_listening(self):
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline:
            if found := self._ready.search(self._log.read_text(errors="replace")):
                return found[1]
            if self.has_ended():
                raise RuntimeError(f"the server ended at its start:\n{self.log()}")
            time.sleep(LOOK_EVERY)
        raise RuntimeError(f"the server does not listen:\n{self.log()}")
