"""Socket.IO events: what each says, exactly, and who hears it."""

import steps
from user import done
from zndraw_joblib import request_hash

STATUS = [
    "id",
    "name",
    "room_id",
    "status",
    "created_at",
    "started_at",
    "completed_at",
    "queue_position",
    "worker_id",
    "error",
]


def a_new_job_is_announced_to_its_room(user, room, listen):
    watching = listen(user, room)
    user.job(room)
    assert watching.expect("jobs_invalidate") == {}
    # Each worker that joins changes the list too.
    user.job(room)
    watching.expect("jobs_invalidate", 2)


def a_new_provider_is_announced_to_its_room(user, room, listen):
    watching = listen(user, room)
    provider = user.provider(room)
    assert watching.expect("providers_invalidate") == {}
    user.provider(room)
    watching.expect("providers_invalidate", 2)
    user.delete(f"/providers/{provider['id']}")
    watching.expect("providers_invalidate", 3)


def a_submitted_task_is_announced_with_nulls(user, room, listen):
    watching = listen(user, room)
    task = user.submit(room, user.job(room)["full_name"], {"a": 1})
    event = watching.expect("task_status_event")
    assert list(event) == STATUS
    assert event == _status(task)
    assert [event[field] for field in ("started_at", "completed_at", "worker_id", "error")] == [None] * 4
    assert event["queue_position"] == 1


def every_change_of_a_task_is_announced(user, room, listen):
    watching = listen(user, room)
    made = user.job(room)
    task = user.submit(room, made["full_name"])
    steps_of_life = [
        task,
        user.claim(made["worker_id"]),
        done(user.move(task["id"], "running"), 200),
        done(user.move(task["id"], "failed", "boom"), 200),
    ]
    watching.expect("task_status_event", len(steps_of_life))
    events = watching.all("task_status_event")
    assert events == [_status(step) for step in steps_of_life]
    assert [list(event) for event in events] == [STATUS] * 4
    assert (events[-1]["error"], events[-1]["queue_position"]) == ("boom", None)


def a_task_is_announced_to_its_room_and_not_to_the_jobs(user, room, listen):
    elsewhere = steps.unique("room")
    here, there = listen(user, room), listen(user, elsewhere)
    job = user.job(room)["full_name"]
    task = user.submit(elsewhere, job)
    assert there.expect("task_status_event")["id"] == task["id"]
    own = user.submit(room, job)
    here.expect("task_status_event")
    assert [event["id"] for event in here.all("task_status_event")] == [own["id"]]


def workers_of_the_job_get_the_events_of_its_tasks(user, room, listen):
    made, elsewhere = user.job(room), steps.unique("room")
    working = listen(user)
    working.serve_job(made)
    task = user.submit(elsewhere, made["full_name"])
    event = working.expect("task_available")
    assert list(event) == ["job_name", "room_id", "task_id"]
    assert event == {"job_name": made["full_name"], "room_id": elsewhere, "task_id": task["id"]}
    assert working.all("task_status_event") == []


def workers_that_left_the_job_get_no_events(user, room, listen):
    one, two = user.job(room, "One"), user.job(room, "Two")
    working = listen(user)
    for job in (one, two):
        working.serve_job(job)
    working.leave_job(one)
    user.submit(room, one["full_name"])
    user.submit(room, two["full_name"])
    working.expect("task_available", job_name=two["full_name"])
    assert working.all("task_available", job_name=one["full_name"]) == []


def a_result_is_announced_to_the_providers_room(user, room, listen):
    watching = listen(user, room)
    provider = user.provider(room)
    user.upload(provider, {"path": "/"}, b"[1]")
    event = watching.expect("provider_result_ready")
    assert list(event) == ["provider_name", "request_hash"]
    assert event == {"provider_name": provider["full_name"], "request_hash": request_hash({"path": "/"})}


def a_request_goes_to_the_workers_of_the_provider(user, room, listen):
    one, two = user.provider(room, "one"), user.provider(room, "two")
    serving, watching = listen(user), listen(user, room)
    serving.serve(one)
    user.read(two, {"path": "/x"}, wait=0)
    user.read(one, {"path": "/x"}, wait=0)
    event = serving.expect("provider_request")
    assert list(event) == ["request_id", "provider_name", "params"]
    assert event == {
        "request_id": request_hash({"path": "/x"}),
        "provider_name": one["full_name"],
        "params": '{"path":"/x"}',
    }
    user.upload(one, {"path": "/x"}, b"1")
    watching.expect("provider_result_ready")
    assert watching.all("provider_request") == []
    assert len(serving.all("provider_request")) == 1


def workers_that_left_the_provider_get_no_requests(user, room, listen):
    one, two = user.provider(room, "one"), user.provider(room, "two")
    serving = listen(user)
    for provider in (one, two):
        serving.serve(provider)
    serving.leave(one)
    user.read(one, wait=0)
    user.read(two, wait=0)
    serving.expect("provider_request", provider_name=two["full_name"])
    assert serving.all("provider_request", provider_name=one["full_name"]) == []


def a_removed_worker_is_announced_once_to_each_room(user, room, listen):
    watching = listen(user, room)
    worker = user.worker()
    for name in ("One", "Two"):
        job = user.job(room, name, worker=worker)["full_name"]
        user.provider(room, name, worker=worker)
    user.submit(room, job)
    task = user.claim(worker)
    watching.expect("task_status_event", 2)
    watching.expect("jobs_invalidate", 2)
    watching.expect("providers_invalidate", 2)
    user.delete(f"/workers/{worker}")
    failed = watching.expect("task_status_event", 3)
    assert failed["id"] == task["id"]
    assert (failed["status"], failed["error"]) == ("failed", "Worker disconnected")
    watching.expect("jobs_invalidate", 3)
    watching.expect("providers_invalidate", 3)
    user.job(room, "Three")
    user.provider(room, "three")
    watching.expect("jobs_invalidate", 4)
    watching.expect("providers_invalidate", 4)
    # An event that came twice would be here before the one after it.
    assert len(watching.all("jobs_invalidate")) == len(watching.all("providers_invalidate")) == 4


def a_job_deleted_with_its_last_task_is_announced(user, room, listen):
    worker = user.worker()
    job = user.job(room, worker=worker)["full_name"]
    task = user.submit(room, job)["id"]
    user.delete(f"/workers/{worker}")
    watching = listen(user, room)
    done(user.move(task, "cancelled"), 200)
    assert watching.expect("jobs_invalidate") == {}


def frontends_get_events_of_global_jobs_and_python_clients_do_not(user, room, listen):
    page, client = listen(user), listen(user)
    page.enter(room, "frontend")
    client.enter(room, "pyclient")
    user.job("@global", steps.unique("Job"))
    page.expect("jobs_invalidate")
    user.provider(room)
    client.expect("providers_invalidate")
    assert client.all("jobs_invalidate") == []


def _status(task):
    """The event of a task that was answered so."""
    return {field: task["job_name" if field == "name" else field] for field in STATUS}
