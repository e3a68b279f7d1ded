"""A host of the real zndraw-joblib on a ground: `peers/joblib`."""

from pathlib import Path

import guarded
from node import Node

START = Path(__file__).resolve().parents[2] / "peers" / "joblib" / "start"
READY = r"running on (http://\S+) "


def node(
    ground,
    number,
    *,
    admin=False,
    worker_timeout=None,
    result_ttl=None,
    inflight_ttl=None,
    read_hold=None,
    max_read_hold=None,
    token_lifetime=None,
):
    # It gives up on a locked file after 5 seconds unless told, and many cases write at once.
    database = ground.database or f"sqlite:///{ground.place}/jobs.db?timeout=60"
    # A secret of the length that the signing library asks for, or it warns at each token.
    environment = {"ZNDRAW_AUTH_SECRET_KEY": "a secret that is longer than 32 bytes"}
    if admin:
        environment["ZNDRAW_AUTH_DEFAULT_ADMIN_EMAIL"] = guarded.ADMIN
        environment["ZNDRAW_AUTH_DEFAULT_ADMIN_PASSWORD"] = guarded.PASSWORD
    if worker_timeout is not None:
        environment["ZNDRAW_JOBLIB_SWEEPER_INTERVAL_SECONDS"] = "1"
    for name, seconds in (
        ("ZNDRAW_JOBLIB_WORKER_TIMEOUT_SECONDS", worker_timeout),
        ("ZNDRAW_JOBLIB_PROVIDER_RESULT_TTL_SECONDS", result_ttl),
        ("ZNDRAW_JOBLIB_PROVIDER_INFLIGHT_TTL_SECONDS", inflight_ttl),
        ("ZNDRAW_JOBLIB_PROVIDER_LONG_POLL_DEFAULT_SECONDS", read_hold),
        ("ZNDRAW_JOBLIB_PROVIDER_LONG_POLL_MAX_SECONDS", max_read_hold),
        ("ZNDRAW_AUTH_TOKEN_LIFETIME_SECONDS", token_lifetime),
    ):
        if seconds is not None:
            environment[name] = str(seconds)
    command = [str(START), "--port", "0", "--database", database, "--redis", ground.redis]
    return Node(command, ground.place / f"node-{number}.log", READY, environment)
