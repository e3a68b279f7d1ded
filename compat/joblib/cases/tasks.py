"""Tasks: submitted, listed, and their place in the queue."""

import steps
from user import User, done

FIELDS = [
    "id",
    "job_name",
    "room_id",
    "status",
    "created_at",
    "started_at",
    "completed_at",
    "worker_id",
    "error",
    "payload",
    "queue_position",
]


def a_submitted_task_is_answered_with_all_its_fields(user, room):
    job = user.job(room)["full_name"]
    answer = user.post(f"/rooms/{room}/tasks/{job}", json={"payload": {"a": 1, "b": [None, "ä"]}})
    assert answer.status_code == 202
    task = answer.json()
    assert list(task) == FIELDS
    assert task == {
        "id": task["id"],
        "job_name": job,
        "room_id": room,
        "status": "pending",
        "created_at": task["created_at"],
        "started_at": None,
        "completed_at": None,
        "worker_id": None,
        "error": None,
        "payload": {"a": 1, "b": [None, "ä"]},
        "queue_position": 1,
    }
    steps.at(task["created_at"])
    assert answer.headers["location"] == f"/v1/joblib/tasks/{task['id']}"
    assert answer.headers["retry-after"] == "1"


def a_task_without_a_payload_has_an_empty_one(user, room):
    assert user.submit(room, user.job(room)["full_name"])["payload"] == {}


def the_keys_of_a_payload_keep_their_order(user, room):
    payload = {"z": 1, "a": {"y": 2, "b": 3}}
    task = user.submit(room, user.job(room)["full_name"], payload)
    found = done(user.task(task["id"]), 200)["payload"]
    assert list(found) == ["z", "a"] and list(found["a"]) == ["y", "b"]


def a_payload_that_is_no_object_is_refused(user, room):
    job = user.job(room)["full_name"]
    answer = user.post(f"/rooms/{room}/tasks/{job}", json={"payload": 3})
    assert steps.is_refused_field(answer, "body", "payload", kind="dict_type")
    assert user.post(f"/rooms/{room}/tasks/{job}").status_code == 422


def a_task_of_an_unknown_job_is_refused(user, room):
    answer = user.post(f"/rooms/{room}/tasks/{room}:modifiers:Nope", json={})
    detail = f"Job '{room}:modifiers:Nope' not found"
    assert steps.is_problem(answer, 404, "job-not-found", "Not Found", detail)
    answer = user.post(f"/rooms/{room}/tasks/nope", json={})
    assert steps.is_problem(answer, 404, "job-not-found", "Not Found", "Invalid job name format: nope")


def a_task_of_a_deleted_job_is_refused(user, room):
    made = user.job(room)
    user.delete(f"/workers/{made['worker_id']}")
    assert user.post(f"/rooms/{room}/tasks/{made['full_name']}", json={}).status_code == 404


def an_internal_job_without_an_executor_takes_no_tasks(user, room):
    job = user.job("@internal", steps.unique("Job"))["full_name"]
    answer = user.post(f"/rooms/{room}/tasks/{job}", json={})
    detail = f"Internal job '{job}' is registered but no executor is available"
    assert steps.is_problem(answer, 503, "internal-job-not-configured", "Service Unavailable", detail)
    assert done(user.get(f"/rooms/{room}/tasks"), 200)["total"] == 0


def any_job_may_be_submitted_into_any_room(user, room):
    job = user.job(room)["full_name"]
    elsewhere = steps.unique("room")
    task = user.submit(elsewhere, job)
    assert (task["room_id"], task["job_name"]) == (elsewhere, job)
    assert _listed(user, f"/rooms/{elsewhere}/tasks") == [task["id"]]
    assert _listed(user, f"/rooms/{room}/tasks") == []


def a_task_is_read_without_a_token(user, url, room):
    task = user.submit(room, user.job(room)["full_name"], {"a": 1})
    answer = User(url).task(task["id"])
    assert answer.json() == task
    assert list(answer.json()) == FIELDS
    assert "preference-applied" not in answer.headers


def an_unknown_task_is_not_found(user):
    detail = f"Task '{steps.NOBODY}' not found"
    for answer in (user.task(steps.NOBODY), user.task(steps.NOBODY, wait=5), user.move(steps.NOBODY, "running")):
        assert steps.is_problem(answer, 404, "task-not-found", "Not Found", detail)
    assert steps.is_refused_field(user.task("not-a-uuid"), "path", "task_id", kind="uuid_parsing")


def a_room_lists_its_tasks_newest_first(user, url, room):
    one, two = user.job(room, "One")["full_name"], user.job(room, "Two")["full_name"]
    tasks = [user.submit(room, job) for job in (one, two, one)]
    listed = done(User(url).get(f"/rooms/{room}/tasks"), 200)
    assert listed["items"] == tasks[::-1]
    assert [list(item) for item in listed["items"]] == [FIELDS] * 3
    assert {**listed, "items": []} == steps.page([], total=3)


def a_job_lists_its_tasks_in_the_room(user, url, room):
    one, two = user.job(room, "One")["full_name"], user.job(room, "Two")["full_name"]
    tasks = [user.submit(room, one)["id"] for _ in range(2)]
    user.submit(room, two)
    user.submit(steps.unique("room"), one)
    assert _listed(User(url), f"/rooms/{room}/jobs/{one}/tasks") == tasks[::-1]


def the_tasks_of_an_unknown_job_are_not_found(user, room):
    answer = user.get(f"/rooms/{room}/jobs/{room}:modifiers:Nope/tasks")
    assert steps.is_problem(answer, 404, "job-not-found", "Not Found")


def tasks_are_listed_by_status(user, room):
    made = user.job(room)
    first, second = [user.submit(room, made["full_name"])["id"] for _ in range(2)]
    user.claim(made["worker_id"])
    for path in (f"/rooms/{room}/tasks", f"/rooms/{room}/jobs/{made['full_name']}/tasks"):
        assert _listed(user, path, status="pending") == [second]
        assert _listed(user, path, status="claimed") == [first]
        assert _listed(user, path, status="failed") == []
        assert done(user.get(path, params={"status": "claimed"}), 200)["total"] == 1


def an_unknown_status_is_refused(user, room):
    job = user.job(room)["full_name"]
    for path in (f"/rooms/{room}/tasks", f"/rooms/{room}/jobs/{job}/tasks"):
        assert steps.is_refused_field(user.get(path, params={"status": "bogus"}), "query", "status", kind="enum")


def the_position_counts_the_pending_tasks_of_the_job(user, room):
    one, two = user.job(room, "One"), user.job(room, "Two")
    first = user.submit(room, one["full_name"])
    assert user.submit(room, two["full_name"])["queue_position"] == 1
    second = user.submit(steps.unique("room"), one["full_name"])
    third = user.submit(room, one["full_name"])
    assert [task["queue_position"] for task in (first, second, third)] == [1, 2, 3]
    assert user.claim(one["worker_id"])["queue_position"] is None
    assert [_position(user, task) for task in (first, second, third)] == [None, 1, 2]
    done(user.move(second["id"], "cancelled"), 200)
    assert [_position(user, task) for task in (first, second, third)] == [None, None, 1]
    listed = done(user.get(f"/rooms/{room}/tasks"), 200)["items"]
    assert [item["queue_position"] for item in listed] == [1, 1, None]


def _position(user, task):
    return done(user.task(task["id"]), 200)["queue_position"]


def _listed(user, path, **params):
    return [item["id"] for item in done(user.get(path, params=params), 200)["items"]]
