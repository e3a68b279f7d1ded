"""A server process: started, stopped, killed, started again, with a log to show. And a database for it."""

import glob
import os
import re
import shutil
import subprocess
import time
import uuid
from urllib.parse import urlsplit, urlunsplit

STARTS_WITHIN = 60
STOPS_WITHIN = 30
LOOK_EVERY = 0.05
# The end of a log says what went wrong; all of it may be much.
SHOWN_LINES = 300
# What a Wakeline writes once it can be asked.
WAKELINE = r"listening on +(http://\S+)\n"


class Node:
    def __init__(self, command, log, ready=WAKELINE, environment=None):
        """`ready` finds the URL in what the process writes."""
        self._command = command
        self._log = log
        self._ready = re.compile(ready)
        # The settings of the user who runs the tests are not for this server.
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


def database():
    """The URL of a new database. It goes away with the PostgreSQL of the test run."""
    url = os.environ["WAKELINE_TEST_POSTGRES"]
    name = f"compat_{uuid.uuid4().hex[:16]}"
    # Not Debian's wrapper on PATH first: it guesses a cluster and needs Perl.
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"), reverse=True)
    psql = places[0] if places else shutil.which("psql")
    if psql is None:
        raise RuntimeError("psql is not installed; on Debian: apt-get install postgresql-client")
    command = [psql, "--no-psqlrc", "--quiet", "--dbname", url, "--command", f"CREATE DATABASE {name}"]
    subprocess.run(command, check=True)
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
