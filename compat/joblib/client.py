"""The real client: a JobManager with its Socket.IO connection, and what it offers in these cases."""

from contextlib import suppress
from typing import Any, ClassVar

import socketio
from zndraw_joblib import Category, Extension, JobManager, Provider
from zndraw_socketio import wrap

import listener
import steps


class Rotate(Extension):
    category: ClassVar[Category] = Category.MODIFIER
    angle: float = 0.0

    def run(self, vis: Any, **kwargs: Any) -> Any:
        return self.angle


class Listing(Provider):
    """Answers with what its handler, a function, makes of the path."""

    category: ClassVar[str] = "filesystem"
    path: str = "/"

    def read(self, handler: Any) -> Any:
        return handler(self.path)


class Frames(Provider):
    """The same in bytes."""

    category: ClassVar[str] = "frames"
    content_type: ClassVar[str] = "application/x-msgpack"
    index: int

    def read(self, handler: Any) -> Any:
        return handler(self.index)


class Client:
    """One process's connection, as ZnDraw makes it."""

    def __init__(self, user, *, transports=None, polling_interval=0.5, **options):
        self.user = user
        self.socket = socketio.Client(handle_sigint=False, reconnection_delay=0.2, reconnection_delay_max=0.5)
        self.jobs = JobManager(user, wrap(self.socket), polling_interval=polling_interval, **options)
        self.socket.connect(
            user.base_url, auth={"token": user.token}, transports=transports, wait_timeout=steps.PATIENCE
        )

    def serve(self, handler, *, cls=Listing, room, name="local"):
        """Offers a provider; answers with what the reading cases need to know of it."""
        identity = self.jobs.register_provider(cls, name=name, handler=handler, room=room)
        self.settled()
        return {"id": str(identity), "room_id": room, "full_name": f"{room}:{cls.category}:{name}"}

    def settled(self):
        """The joins have no answer of their own; what is acknowledged came after them."""
        self.socket.call("room_join", {"room_id": steps.unique("after"), "client_type": "pyclient"}, timeout=30)

    def close(self):
        # It tells the socket first, and fails if there is none.
        with suppress(socketio.exceptions.BadNamespaceError):
            self.jobs.disconnect()
        listener.hang_up(self.socket)
