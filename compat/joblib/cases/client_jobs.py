"""The real client does jobs: by hand, and by itself."""

import threading
import uuid
from typing import Any, ClassVar

import pytest
import steps
from client import Rotate
from user import done
from zndraw_joblib import Category, Extension, JobManager


class Select(Extension):
    category: ClassVar[Category] = Category.SELECTION
    ids: list[int]
    name: str = "ä"

    def run(self, vis: Any, **kwargs: Any) -> Any:
        return vis, kwargs


def a_job_is_registered_with_its_schema(user, room, connect):
    client = connect(user)
    client.jobs.register(Rotate, room=room)
    found = done(user.get(f"/rooms/{room}/jobs/{room}:modifiers:Rotate"), 200)
    assert found["schema"] == Rotate.model_json_schema()
    assert found["workers"] == [str(client.jobs.worker_id)]
    assert f"{room}:modifiers:Rotate" in client.jobs


def one_worker_does_all_jobs_of_a_client(user, room, connect):
    client = connect(user)
    worker = client.jobs.create_worker()
    client.jobs.register(Rotate, room=room)
    client.jobs.register(Select, room=room)
    assert client.jobs.worker_id == worker
    found = done(user.get(f"/rooms/{room}/workers", params={"limit": 500}), 200)["items"]
    assert [item["job_count"] for item in found if item["id"] == str(worker)] == [2]


def the_first_registration_makes_the_worker(user, room, connect):
    client = connect(user)
    assert client.jobs.worker_id is None
    client.jobs.register(Rotate, room=room)
    assert isinstance(client.jobs.worker_id, uuid.UUID)


def a_job_is_registered_again_and_by_another_client(user, other, room, connect):
    first, second = connect(user), connect(other)
    for client in (first, first, second):
        client.jobs.register(Rotate, room=room)
    found = done(user.get(f"/rooms/{room}/jobs/{room}:modifiers:Rotate"), 200)
    assert sorted(found["workers"]) == sorted([str(first.jobs.worker_id), str(second.jobs.worker_id)])


def a_global_job_is_registered_by_default(user, room, connect):
    name = steps.unique("Job").replace("-", "_")
    job = type(name, (Rotate,), {"__module__": __name__})
    client = connect(user)
    client.jobs.register(job)
    task = client.jobs.submit(job(angle=3), room)
    assert done(user.task(task), 200)["job_name"] == f"@global:modifiers:{name}"
    assert client.jobs.claim().extension == job(angle=3)


def a_task_is_claimed_started_and_completed_by_single_calls(user, room, connect):
    client = connect(user)
    client.jobs.register(Select, room=room, run_kwargs={"model": "big"})
    task = client.jobs.submit(Select(ids=[1, 2]), room, job_room=room)
    claimed = client.jobs.claim()
    assert (claimed.task_id, claimed.room_id) == (task, room)
    assert claimed.job_name == f"{room}:selections:Select"
    assert claimed.extension == Select(ids=[1, 2], name="ä")
    assert claimed.extension.run("vis", **claimed.run_kwargs) == ("vis", {"model": "big"})
    client.jobs.start(claimed)
    assert done(user.task(task), 200)["status"] == "running"
    client.jobs.complete(claimed)
    assert done(user.task(task), 200)["status"] == "completed"
    assert client.jobs.claim() is None


def a_task_is_failed_and_cancelled_by_single_calls(user, room, connect):
    client = connect(user)
    client.jobs.register(Rotate, room=room)
    tasks = [client.jobs.submit(Rotate(), room, job_room=room) for _ in range(3)]
    first, second, third = [client.jobs.claim() for _ in tasks]
    client.jobs.fail(first, "boom")
    client.jobs.start(second)
    client.jobs.cancel(second)
    client.jobs.fail_by_id(third.task_id, "by id")
    found = [done(user.task(task), 200) for task in tasks]
    assert [(task["status"], task["error"]) for task in found] == [
        ("failed", "boom"),
        ("cancelled", None),
        ("failed", "by id"),
    ]


def the_client_listens_for_tasks(user, room, connect):
    client, stop = connect(user), threading.Event()
    client.jobs.register(Rotate, room=room)
    for angle in (1, 2, 3):
        client.jobs.submit(Rotate(angle=angle), room, job_room=room)
    angles = []
    for claimed in client.jobs.listen(polling_interval=0.1, stop_event=stop):
        angles.append(claimed.extension.angle)
        if len(angles) == 3:
            stop.set()
    assert angles == [1, 2, 3]


def each_refusal_raises_its_own_exception(user, other, room, connect):
    client = connect(user, max_startup_retries=1)
    client.jobs.register(Rotate, room=room)
    with pytest.raises(KeyError):
        client.jobs.submit(Rotate(), room, job_room=steps.unique("room"))
    task = client.jobs.submit(Rotate(), room, job_room=room)
    claimed = client.jobs.claim()
    with pytest.raises(ValueError, match="Cannot transition"):
        client.jobs.complete(claimed)
    client.jobs.fail(claimed, "over")
    with pytest.raises(ValueError, match="Cannot transition"):
        client.jobs.fail_by_id(task, "again")
    another = type("Rotate", (Rotate,), {"__module__": __name__, "__annotations__": {"more": int}})
    with pytest.raises(ValueError, match="Schema mismatch"):
        client.jobs.register(another, room=room)
    assert steps.is_empty(other.delete(f"/workers/{client.jobs.worker_id}"))
    with pytest.raises(KeyError):
        client.jobs.heartbeat()


def in_auto_serve_mode_tasks_are_done(user, room, connect):
    angles = []
    client = connect(user, execute=lambda task: angles.append(task.extension.run(None)))
    client.jobs.register(Rotate, room=room)
    tasks = [client.jobs.submit(Rotate(angle=angle), room, job_room=room) for angle in range(5)]
    for task in tasks:
        assert done(user.task(task, wait=30), 200)["status"] == "completed"
    assert angles == [0, 1, 2, 3, 4]


def in_auto_serve_mode_a_task_that_raises_has_failed(user, room, connect):
    def execute(task):
        raise RuntimeError(f"cannot turn by {task.extension.angle}")

    client = connect(user, execute=execute)
    client.jobs.register(Rotate, room=room)
    task = client.jobs.submit(Rotate(angle=7), room, job_room=room)
    ended = done(user.task(task, wait=30), 200)
    assert (ended["status"], ended["error"]) == ("failed", "cannot turn by 7.0")
    again = client.jobs.submit(Rotate(angle=8), room, job_room=room)
    assert done(user.task(again, wait=30), 200)["status"] == "failed"


def a_worker_is_woken_by_the_event_not_by_its_poll(user, room, connect):
    performed = threading.Event()
    client = connect(user, execute=lambda task: performed.set(), polling_interval=600)
    client.jobs.register(Rotate, room=room)
    client.settled()

    # The first may come before the server knows the worker to be there; a later one may not.
    def submit():
        client.jobs.submit(Rotate(), room, job_room=room)
        return performed.wait(1)

    steps.until("a task that was done", submit)


def many_workers_share_the_tasks(user, room, connect):
    performed, lock = [], threading.Lock()

    def execute(task):
        with lock:
            performed.append(task.task_id)

    clients = [connect(user, execute=execute) for _ in range(3)]
    for client in clients:
        client.jobs.register(Rotate, room=room)
    tasks = [clients[0].jobs.submit(Rotate(), room, job_room=room) for _ in range(12)]
    for task in tasks:
        assert done(user.task(task, wait=30), 200)["status"] == "completed"
    assert sorted(performed) == sorted(tasks)


def heartbeats_are_sent_automatically(user, room, connect):
    client = connect(user, heartbeat_interval=0.2)
    client.jobs.register(Rotate, room=room)
    first = _heartbeat(user, room, client)
    steps.until("a later heartbeat", lambda: _heartbeat(user, room, client) > first)


def a_client_that_disconnects_removes_its_worker_with_jobs_and_providers(user, room, connect):
    client = connect(user)
    client.jobs.register(Rotate, room=room)
    provider = client.serve(lambda path: path, room=room)
    worker = client.jobs.worker_id
    task = client.jobs.submit(Rotate(), room, job_room=room)
    client.jobs.claim()
    client.jobs.disconnect()
    assert done(user.task(task), 200)["error"] == "Worker disconnected"
    assert user.get(f"/rooms/{room}/jobs/{room}:modifiers:Rotate").status_code == 404
    assert user.read(provider, wait=0).status_code == 404
    assert user.patch(f"/workers/{worker}").status_code == 404
    assert client.jobs.worker_id is None


def a_client_that_leaves_its_block_has_disconnected(user, room, connect):
    client = connect(user)
    with client.jobs as jobs:
        jobs.register(Rotate, room=room)
    assert user.get(f"/rooms/{room}/jobs/{room}:modifiers:Rotate").status_code == 404


def a_client_without_a_socket_polls(user, room):
    performed = threading.Event()
    with JobManager(user, execute=lambda task: performed.set(), polling_interval=0.2) as jobs:
        jobs.register(Rotate, room=room)
        jobs.submit(Rotate(), room, job_room=room)
        assert performed.wait(steps.PATIENCE)


def a_client_whose_worker_was_removed_stops(user, other, room, connect):
    client = connect(user, execute=lambda task: None, polling_interval=0.2)
    client.jobs.register(Rotate, room=room)
    other.delete(f"/workers/{client.jobs.worker_id}")
    # Wait() is what a worker's main program does.
    waiting = threading.Thread(target=client.jobs.wait, daemon=True)
    waiting.start()
    waiting.join(steps.PATIENCE)
    assert not waiting.is_alive()


def _heartbeat(user, room, client):
    found = done(user.get(f"/rooms/{room}/workers", params={"limit": 500}), 200)["items"]
    return next(item["last_heartbeat"] for item in found if item["id"] == str(client.jobs.worker_id))
