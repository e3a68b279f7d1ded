"""Two nodes on one database: who serves is on one, who asks is on the other."""

import threading

import httpx
import pytest
import steps
import user as people
from client import Frames, Rotate
from user import done
from zndraw_joblib import request_hash

pytestmark = [pytest.mark.alone, pytest.mark.nodes]


@pytest.fixture
def nodes(deployment):
    return [deployment.node() for _ in range(2)]


@pytest.fixture
def here(nodes):
    return people.guest(nodes[0].url)


@pytest.fixture
def there(here, nodes):
    """The same user at the other node: its tokens are good everywhere."""
    return here.at(nodes[1].url)


def reads_are_served_across_nodes(here, there, room, connect):
    client = connect(here)
    listing = client.serve(lambda path: {"path": path}, room=room)
    frames = client.serve(lambda index: bytes([index, 0xFF]), cls=Frames, room=room)
    assert there.read(listing, {"path": "/x"}, wait=30).json() == {"path": "/x"}
    assert there.read(frames, {"index": 7}, wait=30).content == b"\x07\xff"
    assert here.read(frames, {"index": 7}, wait=0).content == b"\x07\xff"


def a_result_that_is_uploaded_on_one_node_answers_the_read_on_the_other(here, there, room, listen, aside):
    provider, watching = here.provider(room), listen(there, room)
    serving = listen(here)
    serving.serve(provider)
    reading = aside(there.read, provider, {"path": "/"}, wait=30)
    serving.expect("provider_request")
    here.upload(provider, {"path": "/"}, b"[1]")
    assert reading.result(steps.PATIENCE).json() == [1]
    assert watching.expect("provider_result_ready")["provider_name"] == provider["full_name"]


def a_hundred_identical_reads_on_two_nodes_share_one_request(here, there, room, listen, aside):
    provider, serving = here.provider(room), listen(here)
    serving.serve(provider)
    reads = [aside(user.read, provider, {"path": "/"}, wait=30) for user in (here, there) * 50]
    serving.expect("provider_request")
    for user in (here, there):
        user.read(provider, {"path": user.base_url}, wait=0)
        # Once its question is here, an earlier one would be here too.
        serving.expect("provider_request", request_id=request_hash({"path": user.base_url}))
    here.upload(provider, {"path": "/"}, b"[1]")
    answers = [read.result(2 * steps.PATIENCE) for read in reads]
    assert [(answer.status_code, answer.content) for answer in answers] == [(200, b"[1]")] * 100
    assert len(serving.all("provider_request", request_id=request_hash({"path": "/"}))) == 1


def a_task_of_one_node_is_done_on_the_other(here, there, room, connect, listen, aside):
    performed = threading.Event()
    client, watching = connect(here, execute=lambda task: performed.set(), polling_interval=600), listen(there, room)
    client.jobs.register(Rotate, room=room)
    client.settled()
    tasks = []

    # The first may come before the worker is known to be there; a later one may not.
    def submitted():
        tasks.append(there.submit(room, f"{room}:modifiers:Rotate", {})["id"])
        return performed.wait(1)

    steps.until("a task that was done", submitted)
    assert done(there.task(tasks[0], wait=30), 200)["status"] == "completed"
    for status in ("pending", "claimed", "running", "completed"):
        watching.expect("task_status_event", id=tasks[0], status=status)


def each_task_goes_to_one_worker_of_either_node(here, there, room, aside):
    workers = [(user, user.worker()) for user in (here, there) * 2]
    for user, worker in workers:
        job = user.job(room, worker=worker)["full_name"]
    tasks = [user.submit(room, job)["id"] for user in (here, there) * 6]
    claimed = []

    def take_until_all_are_gone(user, worker):
        while len(claimed) < len(tasks):
            if task := user.claim(worker):
                claimed.append(task["id"])

    for taking in [aside(take_until_all_are_gone, *worker) for worker in workers]:
        taking.result(2 * steps.PATIENCE)
    assert sorted(claimed) == sorted(tasks)


def events_and_answers_of_one_node_are_those_of_the_other(here, there, room, listen):
    watching = listen(there, room)
    made = here.job(room)
    watching.expect("jobs_invalidate")
    provider = here.provider(room)
    watching.expect("providers_invalidate")
    task = here.submit(room, made["full_name"])
    assert watching.expect("task_status_event")["id"] == task["id"]
    assert done(there.task(task["id"]), 200) == task
    assert done(there.get(f"/rooms/{room}/providers/{provider['full_name']}/info"), 200) == provider


def when_the_readers_node_is_killed_the_other_has_the_answer(here, there, nodes, room, connect, aside):
    answers, asked = threading.Event(), []

    def handler(path):
        asked.append(path)
        answers.wait(steps.PATIENCE)
        return path

    provider = connect(here).serve(handler, room=room)
    reading = aside(there.read, provider, {"path": "/x"}, wait=30)
    steps.until("the question", lambda: asked)
    nodes[1].kill()
    with pytest.raises(httpx.TransportError):
        reading.result(steps.PATIENCE)
    again = aside(here.read, provider, {"path": "/x"}, wait=30)
    assert here.read(provider, {"path": "/x"}, wait=0).status_code == 504
    answers.set()
    assert again.result(steps.PATIENCE).json() == "/x"
    assert asked == ["/x"]


@pytest.mark.wakeline_only
def when_the_providers_node_is_killed_the_read_on_the_other_node_is_answered(here, there, nodes, room, connect, proxy, aside):
    """Upstream asks once; who comes to another node is not asked what the first had been."""
    cable, may_answer, asked = proxy(nodes[0].url), threading.Event(), []

    def handler(path):
        asked.append(path)
        may_answer.wait(steps.PATIENCE)
        return path

    provider = connect(here.at(cable.url)).serve(handler, room=room)
    reading = aside(there.read, provider, {"path": "/x"}, wait=30)
    steps.until("the question", lambda: asked)
    nodes[0].kill()
    cable.cut()
    # What it was asked first it now answers into nothing.
    may_answer.set()
    cable.mend(nodes[1].url)
    assert reading.result(2 * steps.PATIENCE).json() == "/x"


def a_client_whose_node_is_killed_connects_to_the_other(here, there, nodes, room, connect, proxy):
    cable, performed = proxy(nodes[0].url), []
    client = connect(here.at(cable.url), execute=lambda task: performed.append(task.task_id))
    provider = client.serve(lambda path: path, room=room)
    client.jobs.register(Rotate, room=room)
    nodes[0].kill()
    cable.mend(nodes[1].url)
    # A question that nobody heard is in flight for a while, so each look asks another.
    asked = iter(range(1000))
    steps.until("an answer", lambda: there.read(provider, {"path": f"/{next(asked)}"}, wait=1).status_code == 200)
    task = there.submit(room, f"{room}:modifiers:Rotate", {})["id"]
    assert done(there.task(task, wait=30), 200)["status"] == "completed"
    assert performed == [task]


@pytest.mark.wakeline_only
def changes_of_a_room_on_two_nodes_are_told_in_their_order(here, there, room, listen, aside):
    done(here.ask("POST", "/v1/rooms", json={"room_id": room}), 201)
    hearing = [listen(user, room) for user in (here, there)]
    frame = {"b64:YXJyYXlzLmNvbG9ycw==": "wA==", "b64:YXJyYXlzLnJhZGlp": "wA=="}
    path, body = f"/v1/rooms/{room}/frames", {"frames": [frame]}
    appends = [aside(user.ask, "POST", path, json=body) for user in (here, there) * 40]
    for append in appends:
        done(append.result(steps.PATIENCE), 201)
    for listener in hearing:
        listener.expect("frames_invalidate", count=80)
        assert [event["count"] for event in listener.all("frames_invalidate")] == list(range(1, 81))
