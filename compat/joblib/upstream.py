"""A host of the real zndraw-joblib, of a deployment: `peers/joblib`."""

from pathlib import Path

import guarded
from node import Node

START = Path(__file__).resolve().parents[2] / "peers" / "joblib" / "start"
READY = r"running on (http://\S+) "
TIMES = {
    "worker_timeout": "ZNDRAW_JOBLIB_WORKER_TIMEOUT_SECONDS",
    "result_ttl": "ZNDRAW_JOBLIB_PROVIDER_RESULT_TTL_SECONDS",
    "inflight_ttl": "ZNDRAW_JOBLIB_PROVIDER_INFLIGHT_TTL_SECONDS",
    "read_hold": "ZNDRAW_JOBLIB_PROVIDER_LONG_POLL_DEFAULT_SECONDS",
    "max_read_hold": "ZNDRAW_JOBLIB_PROVIDER_LONG_POLL_MAX_SECONDS",
    "token_lifetime": "ZNDRAW_AUTH_TOKEN_LIFETIME_SECONDS",
}


def node(deployment, number, *, admin=False, **times):
    # It gives up on a locked file after 5 seconds unless told, and many cases write at once.
    database = deployment.database or f"sqlite:///{deployment.place}/jobs.db?timeout=60"
    # A secret of the length that the signing library asks for, or it warns at each token.
    environment = {"ZNDRAW_AUTH_SECRET_KEY": "a secret that is longer than 32 bytes"}
    if admin:
        environment["ZNDRAW_AUTH_DEFAULT_ADMIN_EMAIL"] = guarded.ADMIN
        environment["ZNDRAW_AUTH_DEFAULT_ADMIN_PASSWORD"] = guarded.PASSWORD
    if "worker_timeout" in times:
        environment["ZNDRAW_JOBLIB_SWEEPER_INTERVAL_SECONDS"] = "1"
    environment |= {TIMES[name]: str(seconds) for name, seconds in times.items()}
    command = [str(START), "--port", "0", "--database", database, "--redis", deployment.redis]
    return Node(command, deployment.place / f"node-{number}.log", READY, environment)
