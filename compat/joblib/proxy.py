"""A TCP proxy that can be cut: the cable between a client and its server."""

import selectors
import socket
import struct
import threading
from urllib.parse import urlsplit

CHUNK = 65536
# Closing then resets the connection, as a cable that was cut looks to both ends.
RESET = struct.pack("ii", 1, 0)


class Proxy:
    def __init__(self, url):
        self.target = url
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._open = set()
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Resets all connections, and every new one."""
        with self._lock:
            self._is_cut = True
            for end in self._open:
                _reset(end)
            self._open.clear()

    def mend(self, url=None):
        """Lets connections through again, perhaps to another server."""
        with self._lock:
            self.target = url or self.target
            self._is_cut = False

    def close(self):
        # Shut down first: closing alone does not wake a thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=[client], daemon=True).start()

    def _carry(self, client):
        target = urlsplit(self.target)
        try:
            server = socket.create_connection((target.hostname, target.port))
        except OSError:
            _reset(client)
            return
        with self._lock:
            if self._is_cut:
                _reset(client)
                _reset(server)
                return
            self._open |= {client, server}
        _exchange(client, server)
        with self._lock:
            self._open -= {client, server}


def _exchange(client, server):
    with selectors.DefaultSelector() as ready, client, server:
        try:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(CHUNK)
                    if not data:
                        return
                    key.data.sendall(data)
        # Cut from the other thread, or by one of the ends.
        except (OSError, ValueError):
            return


def _reset(end):
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        # Wakes the thread that waits for it.
        end.shutdown(socket.SHUT_RDWR)
        end.close()
    except OSError:
        pass
