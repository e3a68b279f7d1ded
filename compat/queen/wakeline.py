"""A server for one run: its own store, a free port, a log to show, and gone afterwards."""

from contextlib import contextmanager

from node import Node, database


@contextmanager
def server(binary, store, place):
    command = [str(binary), "serve", "--listen", "127.0.0.1:0", "--data", str(place / "data")]
    if store == "postgres":
        command += ["--store", database()]
    node = Node(command, place / "log").start()
    try:
        yield node
    finally:
        node.stop()
