"""A Wakeline of a deployment."""

import os

import guarded
from node import Node

TIMES = {
    "worker_timeout": "--jobs-worker-timeout",
    "result_ttl": "--jobs-result-ttl",
    "inflight_ttl": "--jobs-inflight-ttl",
    "read_hold": "--jobs-read-hold",
    "max_read_hold": "--jobs-max-read-hold",
    "token_lifetime": "--jobs-token-lifetime",
}


def node(deployment, number, *, admin=False, results=None, flags=(), **times):
    data = str(deployment.place / f"data-{number}")
    command = [os.environ["WAKELINE_BIN"], "serve", "--listen", "127.0.0.1:0", "--data", data]
    if deployment.database:
        command += ["--store", deployment.database]
        if deployment.redis:
            command += ["--bus", deployment.redis]
        command += ["--bus-channel", deployment.channel]
    if results:
        command += ["--jobs-results", results]
    elif deployment.redis:
        command += ["--jobs-results", "redis", "--jobs-redis", deployment.redis]
    # Its own default has none for files.
    command += ["--jobs-categories", "modifiers,selections,analysis"]
    if admin:
        command += ["--jobs-admin-email", guarded.ADMIN, "--jobs-admin-password", guarded.PASSWORD]
        command += ["--jobs-guests", "true", "--jobs-registration", "true"]
        # As upstream's are.
        command += ["--jobs-open-lists", "true"]
    for name, seconds in times.items():
        command += [TIMES[name], f"{seconds}s"]
    return Node([*command, *flags], deployment.place / f"node-{number}.log")
