"""A plain python-socketio connection that keeps every event in the order in which it comes."""

import threading
import time

import engineio
import socketio

import steps


class Listener:
    def __init__(self, user, transports=None):
        self._arrived = threading.Condition()
        self._events = []
        self._client = _Client(reconnection=False, handle_sigint=False)
        self._client.on("*", self._keep)
        self._client.connect(
            user.base_url, auth={"token": user.token}, transports=transports, wait_timeout=steps.PATIENCE
        )

    def close(self):
        hang_up(self._client)

    @property
    def transport(self):
        return self._client.transport()

    def enter(self, room, client_type="pyclient"):
        """Into a room, with the server's acknowledgement."""
        return self._client.call("room_join", {"room_id": room, "client_type": client_type}, timeout=steps.PATIENCE)

    def serve_job(self, job, worker=None):
        self._send("join_job_room", job_name=job["full_name"], worker_id=worker or job["worker_id"])

    def leave_job(self, job):
        self._send("leave_job_room", job_name=job["full_name"], worker_id=job["worker_id"])

    def serve(self, provider):
        self._send("join_provider_room", provider_name=provider["full_name"], worker_id=provider["worker_id"])

    def leave(self, provider):
        self._send("leave_provider_room", provider_name=provider["full_name"], worker_id=provider["worker_id"])

    def say(self, event, payload):
        """Anything, right or wrong."""
        self._client.emit(event, payload)

    def all(self, event, **fields):
        with self._arrived:
            return [payload for name, payload in self._events if name == event and _has(payload, fields)]

    def expect(self, event, count=1, **fields):
        """The last of so many, once they are there."""
        deadline = time.monotonic() + steps.PATIENCE
        with self._arrived:
            while len(found := self.all(event, **fields)) < count:
                if not self._arrived.wait(deadline - time.monotonic()):
                    raise AssertionError(f"{event} {fields} did not come; {self._events} did")
        return found[count - 1]

    def _send(self, event, **fields):
        self.say(event, fields)
        # The join has no answer of its own; what is acknowledged came after it.
        self.enter(steps.unique("after"))

    def _keep(self, event, *arguments):
        with self._arrived:
            # The real client takes one object and nothing else.
            self._events.append((event, arguments[0] if len(arguments) == 1 else arguments))
            self._arrived.notify_all()


def hang_up(client):
    """Disconnects. A poll that the server holds is not waited for: upstream holds it for 25 seconds."""
    is_polling = client.connected and client.transport() == "polling"
    leaving = threading.Thread(target=client.disconnect, daemon=True)
    leaving.start()
    if not is_polling:
        leaving.join()


class _InOrder(engineio.Client):
    def _trigger_event(self, event, *arguments, **options):
        # Else each message has a thread of its own, and they overtake one another.
        if event == "message":
            options["run_async"] = False
        return super()._trigger_event(event, *arguments, **options)


class _Client(socketio.Client):
    def _engineio_client_class(self):
        return _InOrder


def _has(payload, fields):
    return all(payload.get(name) == value for name, value in fields.items())
