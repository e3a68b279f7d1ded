#!/usr/bin/env python3
"""A provider of the real zndraw-joblib: its JobManager over python-socketio, answering small JSON.

    peers/joblib/provider.py --url http://127.0.0.1:8100 --room my-room --name python

It is read at /v1/joblib/rooms/my-room/providers/my-room:bench:python?key=anything, and runs until it
is ended.
"""

import argparse
import os
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What a JobManager asks of its ApiManager is there.
sys.path.insert(0, str(HERE.parents[1] / "compat" / "joblib"))


def serve(url, room, name):
    from typing import ClassVar

    import socketio
    import user
    from zndraw_joblib import JobManager, Provider
    from zndraw_socketio import wrap

    class Read(Provider):
        category: ClassVar[str] = "bench"
        key: str

        def read(self, handler):
            return {"key": self.key, "text": handler}

    api = user.guest(url.rstrip("/"))
    client = socketio.Client()
    with JobManager(api, wrap(client)) as manager:
        client.connect(api.base_url, auth={"token": api.token}, wait=True)
        manager.register_provider(Read, name=name, handler="x" * 150, room=room)
        print(f"serving {room}:bench:{name}", flush=True)
        manager.wait()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--room", required=True)
    arguments.add_argument("--name", required=True)
    given = arguments.parse_args()
    # Runs in the environment of the host, which has the client too.
    host = runpy.run_path(str(HERE / "start"))
    if Path(sys.prefix) != host["HOME"]:
        python = host["python"]()
        os.execv(python, [python, __file__, *sys.argv[1:]])
    serve(given.url, given.room, given.name)


if __name__ == "__main__":
    main()
