"""What servers stand on: a store of their own, with Redis or without. Two of them are two nodes."""

import glob
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import upstream
import wakeline

HOSTS = {"wakeline": wakeline, "upstream": upstream}


class Ground:
    def __init__(self, host, store, redis, place):
        self.host = host
        self.place = Path(place)
        self.redis = os.environ["WAKELINE_TEST_REDIS"] if redis or host == "upstream" else None
        self.database = database(os.environ["WAKELINE_TEST_POSTGRES"]) if store == "postgres" else None
        # Nodes on other grounds share the Redis, and must not hear these.
        self.channel = f"joblib-{uuid.uuid4().hex[:16]}"
        self._nodes = []

    def node(self, **settings):
        """A server that is ready. Settings have the names in `wakeline.py` and `upstream.py`."""
        self._nodes.append(HOSTS[self.host].node(self, len(self._nodes), **settings))
        return self._nodes[-1].start()

    def end(self):
        for node in self._nodes:
            node.stop()


def database(url):
    """A new database there. It goes away with the PostgreSQL of the test run."""
    name = f"joblib_{uuid.uuid4().hex[:16]}"
    # Not Debian's wrapper on PATH first: it guesses a cluster and needs Perl.
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"), reverse=True)
    psql = places[0] if places else shutil.which("psql")
    if psql is None:
        raise RuntimeError("psql is not installed; on Debian: apt-get install postgresql-client")
    command = [psql, "--no-psqlrc", "--quiet", "--dbname", url, "--command", f"CREATE DATABASE {name}"]
    subprocess.run(command, check=True)
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
