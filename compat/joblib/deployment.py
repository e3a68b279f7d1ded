"""Servers with a store of their own, with Redis or without. Two of one deployment are two nodes."""

import os
import uuid
from pathlib import Path

import upstream
import wakeline
from node import database

HOSTS = {"wakeline": wakeline, "upstream": upstream}


class Deployment:
    def __init__(self, host, store, redis, place):
        self.host = host
        self.place = Path(place)
        self.redis = os.environ["WAKELINE_TEST_REDIS"] if redis or host == "upstream" else None
        self.database = database() if store == "postgres" else None
        # Nodes of other deployments share the Redis, and must not receive the wakes of these.
        self.channel = f"joblib-{uuid.uuid4().hex[:16]}"
        self._nodes = []

    def node(self, **settings):
        """A server that is ready. `admin`: with an admin and not in dev mode. Other settings are
        times in seconds, with the names in `TIMES`; `results` and `flags` only a Wakeline has."""
        self._nodes.append(HOSTS[self.host].node(self, len(self._nodes), **settings))
        return self._nodes[-1].start()

    def end(self):
        for node in self._nodes:
            node.stop()
