"""Workers that fall silent: what they had is given back or failed."""

import pytest
import steps
import user as people
from client import Rotate
from user import done

pytestmark = pytest.mark.alone
# How long a worker may be silent, in seconds.
TIMEOUT = 2


@pytest.fixture
def user(deployment):
    return people.guest(deployment.node(worker_timeout=TIMEOUT).url)


def a_silent_worker_is_removed_with_its_jobs_and_providers(user, room, listen, aside):
    watching = listen(user, room)
    made = user.job(room)
    provider = user.provider(room, worker=made["worker_id"])
    task = user.submit(room, made["full_name"])["id"]
    user.claim(made["worker_id"])
    waiting = aside(user.task, task, wait=60)
    failed = watching.expect("task_status_event", status="failed")
    assert (failed["id"], failed["error"], failed["queue_position"]) == (task, "Worker disconnected", None)
    assert waiting.result(steps.PATIENCE).json()["status"] == "failed"
    assert done(user.task(task), 200)["worker_id"] is None
    # One for the offer, one for the end.
    watching.expect("jobs_invalidate", 2)
    watching.expect("providers_invalidate", 2)
    assert user.read(provider, wait=0).status_code == 404
    assert user.get(f"/rooms/{room}/jobs/{made['full_name']}").status_code == 404
    assert user.patch(f"/workers/{made['worker_id']}").status_code == 404


def unclaimed_tasks_wait_for_another_worker(user, room):
    made = user.job(room)
    task = user.submit(room, made["full_name"])["id"]
    _until_gone(user, made["worker_id"])
    assert done(user.task(task), 200)["status"] == "pending"
    heir = user.job(room)["worker_id"]
    assert user.claim(heir)["id"] == task


def a_worker_with_heartbeats_is_not_removed(user, room, connect):
    client = connect(user, heartbeat_interval=TIMEOUT / 8)
    client.jobs.register(Rotate, room=room)
    provider = client.serve(lambda path: path, room=room)
    # Younger than the client's, so it would go later.
    _until_gone(user, user.worker())
    assert str(client.jobs.worker_id) in _workers(user)
    assert user.read(provider, {"path": "/x"}, wait=30).json() == "/x"


def _until_gone(user, worker):
    steps.until("the end of the worker", lambda: worker not in _workers(user))


def _workers(user):
    return [item["id"] for item in done(user.get("/workers", params={"limit": 500}), 200)["items"]]
