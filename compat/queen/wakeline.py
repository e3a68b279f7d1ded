"""A server for one run: its own store, a free port, a log to show, and gone afterwards."""

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


class Server:
    def __init__(self, binary, store, place):
        self._place = place
        flags = ["--listen", "127.0.0.1:0", "--data", str(place / "data")]
        if store == "postgres":
            flags += ["--store", _database(os.environ["WAKELINE_TEST_POSTGRES"])]
        self._command = [str(binary), "serve", *flags]

    def __enter__(self):
        with open(self._place / "out", "w") as out, open(self._place / "log", "w") as log:
            # Settings of the one who runs the tests are none of this server's.
            environment = {"PATH": os.environ.get("PATH", "")}
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment
            )
        try:
            self.url = self._until_listening()
        except Exception:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def has_ended(self):
        return self._process.poll() is not None

    def log(self):
        lines = (self._place / "log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-SHOWN_LINES:])

    def _until_listening(self):
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline:
            found = re.search(r"listening on +(http://\S+)\n", (self._place / "out").read_text())
            if found:
                return found[1]
            if self.has_ended():
                raise RuntimeError(f"the server ended at its start:\n{self.log()}")
            time.sleep(LOOK_EVERY)
        raise RuntimeError(f"the server does not listen:\n{self.log()}")


def _database(url):
    """A new database there. It goes away with the PostgreSQL of the test run."""
    name = f"queen_{uuid.uuid4().hex[:16]}"
    # Not Debian's wrapper on PATH first: it guesses a cluster and needs Perl.
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"), reverse=True)
    psql = places[0] if places else shutil.which("psql")
    if psql is None:
        raise RuntimeError("psql is not installed; on Debian: apt-get install postgresql-client")
    command = [psql, "--no-psqlrc", "--quiet", "--dbname", url, "--command", f"CREATE DATABASE {name}"]
    subprocess.run(command, check=True)
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
