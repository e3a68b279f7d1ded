"""Workers: who does jobs, and whether they still live."""

import pytest
import steps
from user import User, done


def a_worker_is_answered_with_its_id_and_last_heartbeat(user):
    made = user.post("/workers")
    assert made.status_code == 201
    assert list(made.json()) == ["id", "last_heartbeat"]
    assert made.headers["content-type"] == "application/json"


def a_heartbeat_updates_the_time(user):
    made = done(user.post("/workers"), 201)
    beaten = done(user.patch(f"/workers/{made['id']}"), 200)
    assert list(beaten) == ["id", "last_heartbeat"]
    assert beaten["id"] == made["id"]
    assert steps.at(beaten["last_heartbeat"]) > steps.at(made["last_heartbeat"])


def the_list_of_workers_needs_no_token_and_counts_jobs(user, url, room):
    worker = user.worker()
    user.job(room, "One", worker=worker)
    user.job(room, "Two", worker=worker)
    listed = done(User(url).get("/workers", params={"limit": 500}), 200)
    assert list(listed) == ["items", "total", "limit", "offset"]
    mine = [item for item in listed["items"] if item["id"] == worker]
    assert list(mine[0]) == ["id", "last_heartbeat", "job_count"]
    assert mine[0]["job_count"] == 2


def workers_are_listed_newest_first(user):
    first, second = user.worker(), user.worker()
    listed = [item["id"] for item in done(user.get("/workers", params={"limit": 500}), 200)["items"]]
    assert listed.index(second) < listed.index(first)


def a_room_lists_the_workers_of_its_jobs(user, url, room):
    older, newer, idle = user.worker(), user.worker(), user.worker()
    user.job(room, worker=older)
    user.job(room, worker=newer)
    listed = done(User(url).get(f"/rooms/{room}/workers", params={"limit": 500}), 200)
    workers = [item["id"] for item in listed["items"]]
    assert [worker for worker in workers if worker in (older, newer, idle)] == [newer, older]
    assert listed["total"] >= 2
    elsewhere = done(user.get(f"/rooms/{steps.unique('room')}/workers", params={"limit": 500}), 200)
    assert older not in [item["id"] for item in elsewhere["items"]]


def a_room_lists_the_workers_of_global_jobs_too(user, room):
    worker = user.worker()
    user.job("@global", steps.unique("Job"), worker=worker)
    for seen_from in (room, "@global"):
        listed = done(user.get(f"/rooms/{seen_from}/workers", params={"limit": 500}), 200)
        assert worker in [item["id"] for item in listed["items"]]


def a_heartbeat_of_an_unknown_worker_is_refused(user):
    answer = user.patch(f"/workers/{steps.NOBODY}")
    assert steps.is_problem(answer, 404, "worker-not-found", "Not Found", f"Worker '{steps.NOBODY}' not found")


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def an_id_that_is_no_uuid_is_refused(user, method):
    answer = user.ask(method, "/v1/joblib/workers/not-a-uuid")
    assert steps.is_refused_field(answer, "path", "worker_id", kind="uuid_parsing")


def only_the_owner_sends_heartbeats_not_even_a_superuser(user, other):
    answer = other.patch(f"/workers/{user.worker()}")
    assert steps.is_problem(answer, 403, "forbidden", "Forbidden", "Worker belongs to different user")


def a_removed_worker_is_not_found(user):
    worker = user.worker()
    assert steps.is_empty(user.delete(f"/workers/{worker}"))
    again = user.delete(f"/workers/{worker}")
    assert steps.is_problem(again, 404, "worker-not-found", "Not Found", f"Worker '{worker}' not found")
    assert user.patch(f"/workers/{worker}").status_code == 404


def a_superuser_removes_the_worker_of_another(user, other):
    assert steps.is_empty(other.delete(f"/workers/{user.worker()}"))


def a_removed_worker_fails_its_claimed_tasks(user, room):
    worker = user.worker()
    job = user.job(room, worker=worker)["full_name"]
    claimed, running, pending = [user.submit(room, job)["id"] for _ in range(3)]
    assert user.claim(worker)["id"] == claimed
    assert user.claim(worker)["id"] == running
    done(user.move(running, "running"), 200)
    user.delete(f"/workers/{worker}")
    for task in (claimed, running):
        found = done(user.task(task), 200)
        assert (found["status"], found["error"], found["worker_id"]) == ("failed", "Worker disconnected", None)
        assert found["completed_at"]
    assert done(user.task(pending), 200)["status"] == "pending"


def a_removed_worker_removes_its_providers(user, room):
    worker = user.worker()
    provider = user.provider(room, worker=worker)
    user.delete(f"/workers/{worker}")
    answer = user.get(f"/rooms/{room}/providers/{provider['full_name']}/info")
    assert steps.is_problem(answer, 404, "provider-not-found", "Not Found")
    listed = done(user.get(f"/rooms/{room}/providers", params={"limit": 500}), 200)
    assert provider["id"] not in [item["id"] for item in listed["items"]]
