"""The real client lives through a server that restarts and a cable that is cut."""

import pytest
import steps
import user as people
from client import Frames, Rotate
from user import done

pytestmark = pytest.mark.alone


class Scene:
    """A client behind a proxy that can be cut, and another user that reads and submits beside it."""

    def __init__(self, deployment, room, connect, proxy):
        self.node = deployment.node()
        self.cable = proxy(self.node.url)
        self.user = people.guest(self.node.url)
        self.performed = []
        self.client = connect(
            self.user.at(self.cable.url),
            execute=lambda task: self.performed.append(task.task_id),
            heartbeat_interval=0.5,
        )
        self.room = room
        self.listing = self.client.serve(lambda path: path, room=room)
        self.frames = self.client.serve(lambda index: bytes([index]), cls=Frames, room=room)
        self.client.jobs.register(Rotate, room=room)

    def is_served(self, number):
        """Reads of both kinds and a task, none of them asked before."""
        # A question that nobody heard is in flight for a while, so each look asks another.
        asked = iter(range(number * 100, number * 100 + 100))

        def answered():
            answer = self.user.read(self.listing, {"path": f"/{next(asked)}"}, wait=1)
            return answer.status_code == 200

        steps.until("an answer", answered)
        answer = self.user.read(self.frames, {"index": number}, wait=30)
        assert answer.content == bytes([number])
        task = self.submit()
        assert done(self.user.task(task, wait=30), 200)["status"] == "completed"
        assert task in self.performed

    def submit(self):
        return self.user.submit(self.room, f"{self.room}:modifiers:Rotate", {"angle": 1})["id"]


@pytest.fixture
def scene(deployment, room, connect, proxy):
    return Scene(deployment, room, connect, proxy)


@pytest.mark.parametrize("end", ["stop", "kill"])
def a_client_survives_a_restart_of_the_server(scene, end):
    scene.is_served(1)
    worker = scene.client.jobs.worker_id
    getattr(scene.node, end)()
    scene.node.start()
    scene.cable.mend(scene.node.url)
    scene.user = scene.user.at(scene.node.url)
    scene.is_served(2)
    assert scene.client.jobs.worker_id == worker


def a_task_submitted_before_the_restart_is_done_after_it(scene):
    scene.cable.cut()
    task = scene.submit()
    scene.node.kill()
    scene.node.start()
    scene.user = scene.user.at(scene.node.url)
    assert done(scene.user.task(task), 200)["status"] == "pending"
    scene.cable.mend(scene.node.url)
    assert done(scene.user.task(task, wait=30), 200)["status"] == "completed"


def a_client_survives_a_cut_connection(scene):
    scene.is_served(1)
    scene.cable.cut()
    steps.until("the client to notice", lambda: not scene.client.socket.connected)
    task = scene.submit()
    scene.cable.mend()
    assert done(scene.user.task(task, wait=30), 200)["status"] == "completed"
    scene.is_served(2)


def a_cut_connection_fails_no_task_and_removes_no_provider(scene):
    scene.cable.cut()
    steps.until("the client to notice", lambda: not scene.client.socket.connected)
    info = f"/rooms/{scene.room}/providers/{scene.listing['full_name']}/info"
    assert scene.user.get(info).status_code == 200
    assert scene.user.get(f"/rooms/{scene.room}/jobs/{scene.room}:modifiers:Rotate").status_code == 200


@pytest.mark.wakeline_only
def a_read_that_began_during_the_cut_is_answered_after_it(scene, aside):
    """Upstream asks once, when nobody hears it, and not again for 30 seconds."""
    scene.cable.cut()
    steps.until("the client to notice", lambda: not scene.client.socket.connected)
    reading = aside(scene.user.read, scene.listing, {"path": "/x"}, wait=30)
    # Once this has been answered with nothing, the other is held too.
    assert scene.user.read(scene.listing, {"path": "/x"}, wait=1).status_code == 504
    scene.cable.mend()
    assert reading.result(2 * steps.PATIENCE).json() == "/x"
