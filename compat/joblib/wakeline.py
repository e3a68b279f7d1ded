"""A Wakeline on a ground."""

import os

import guarded
from node import Node

READY = r"listening on +(http://\S+)\n"


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
    results=None,
    flags=(),
):
    """Times are in seconds. Upstream has nothing for `results` and `flags`."""
    data = str(ground.place / f"data-{number}")
    command = [os.environ["WAKELINE_BIN"], "serve", "--listen", "127.0.0.1:0", "--data", data]
    if ground.database:
        command += ["--store", ground.database]
        if ground.redis:
            command += ["--bus", ground.redis]
        command += ["--bus-channel", ground.channel]
    if results:
        command += ["--jobs-results", results]
    elif ground.redis:
        command += ["--jobs-results", "redis", "--jobs-redis", ground.redis]
    # Its own default has none for files.
    command += ["--jobs-categories", "modifiers,selections,analysis"]
    if admin:
        command += ["--jobs-admin-email", guarded.ADMIN, "--jobs-admin-password", guarded.PASSWORD]
        command += ["--jobs-guests", "true", "--jobs-registration", "true"]
        # As upstream's are.
        command += ["--jobs-open-lists", "true"]
    for flag, seconds in (
        ("--jobs-worker-timeout", worker_timeout),
        ("--jobs-result-ttl", result_ttl),
        ("--jobs-inflight-ttl", inflight_ttl),
        ("--jobs-read-hold", read_hold),
        ("--jobs-max-read-hold", max_read_hold),
        ("--jobs-token-lifetime", token_lifetime),
    ):
        if seconds is not None:
            command += [flag, f"{seconds}s"]
    return Node([*command, *flags], ground.place / f"node-{number}.log", READY)
