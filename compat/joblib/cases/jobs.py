"""Jobs: offered by workers, listed by rooms."""

import steps
from user import SCHEMA, User, done, job

FIELDS = ["id", "room_id", "category", "name", "full_name", "schema", "workers", "worker_id"]


def a_new_job_is_answered_with_all_its_fields(user, room):
    worker = user.worker()
    made = user.register(room, worker=worker)
    assert made.status_code == 201
    assert list(made.json()) == FIELDS
    assert made.json() == {
        "id": made.json()["id"],
        "room_id": room,
        "category": "modifiers",
        "name": "Rotate",
        "full_name": f"{room}:modifiers:Rotate",
        "schema": SCHEMA,
        "workers": [worker],
        "worker_id": worker,
    }


def the_same_job_again_is_the_same_job(user, room):
    worker = user.worker()
    first = done(user.register(room, worker=worker), 201)
    assert done(user.register(room, worker=worker), 200) == first


def a_second_worker_joins_the_job(user, room):
    first, second = user.worker(), user.worker()
    made = done(user.register(room, worker=first), 201)
    joined = done(user.register(room, worker=second), 200)
    assert joined["id"] == made["id"]
    assert sorted(joined["workers"]) == sorted([first, second])
    assert joined["worker_id"] == second


def a_registration_without_a_worker_creates_one(user, room):
    made = done(user.register(room), 201)
    assert made["workers"] == [made["worker_id"]]
    assert done(user.patch(f"/workers/{made['worker_id']}"), 200)["id"] == made["worker_id"]
    again = done(user.register(room), 200)
    assert again["worker_id"] != made["worker_id"]


def a_null_worker_counts_as_none(user, room):
    fields = {**job(), "worker_id": None}
    assert done(user.put(f"/rooms/{room}/jobs", fields), 201)["worker_id"]


def the_schema_may_be_called_as_the_real_client_calls_it(user, room):
    fields = {"category": "modifiers", "name": "Rotate", "schema_": SCHEMA}
    assert done(user.put(f"/rooms/{room}/jobs", fields), 201)["schema"] == SCHEMA
    assert done(user.register(room), 200)["schema"] == SCHEMA


def a_job_without_a_schema_has_an_empty_one(user, room):
    fields = {"category": "modifiers", "name": "Rotate"}
    assert done(user.put(f"/rooms/{room}/jobs", fields), 201)["schema"] == {}


def another_schema_is_a_conflict(user, room):
    user.job(room)
    for schema in ({}, {**SCHEMA, "title": "Rotate"}):
        answer = user.register(room, schema=schema)
        detail = f"Schema mismatch for job '{room}:modifiers:Rotate'"
        assert steps.is_problem(answer, 409, "schema-conflict", "Conflict", detail)


def the_order_of_a_schemas_keys_does_not_matter(user, room):
    user.job(room)
    turned = {"properties": {"a": {"type": "number"}}, "type": "object"}
    assert user.register(room, schema=turned).status_code == 200


def a_category_that_is_not_allowed_is_refused(user, room):
    answer = user.register(room, category="nope")
    detail = "Category 'nope' not in allowed list: ['modifiers', 'selections', 'analysis']"
    assert steps.is_problem(answer, 400, "invalid-category", "Bad Request", detail)


def the_three_categories_are_allowed(user, room):
    for category in ("modifiers", "selections", "analysis"):
        assert user.job(room, category=category)["full_name"] == f"{room}:{category}:Rotate"


def an_unknown_worker_is_refused_and_no_job_is_created(user, room):
    answer = user.register(room, worker=steps.NOBODY)
    detail = f"Worker '{steps.NOBODY}' not found or not owned by user"
    assert steps.is_problem(answer, 404, "worker-not-found", "Not Found", detail)
    assert user.get(f"/rooms/{room}/jobs/{room}:modifiers:Rotate").status_code == 404


def another_users_worker_is_refused_even_to_a_superuser(user, other, room):
    answer = user.register(room, worker=other.worker())
    assert steps.is_problem(answer, 404, "worker-not-found", "Not Found")


def the_name_and_the_category_are_needed(user, room):
    answer = user.put(f"/rooms/{room}/jobs", {"name": "x"})
    assert steps.is_refused_field(answer, "body", "category", kind="missing")
    assert answer.json()["detail"] == [
        {"type": "missing", "loc": ["body", "category"], "msg": "Field required", "input": {"name": "x"}}
    ]
    answer = user.put(f"/rooms/{room}/jobs", {"category": "modifiers"})
    assert steps.is_refused_field(answer, "body", "name", kind="missing")


def fields_of_the_wrong_type_are_refused(user, room):
    for field, value in (("name", 3), ("schema", "x"), ("worker_id", "not-a-uuid")):
        answer = user.put(f"/rooms/{room}/jobs", {**job(), field: value})
        assert steps.is_refused_field(answer, "body", field)


def a_body_that_is_no_json_is_refused(user, room):
    headers = {"Content-Type": "application/json"}
    answer = user.ask("PUT", f"/v1/joblib/rooms/{room}/jobs", content="{bad", headers=headers)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["type"] == "json_invalid"


def a_job_is_found_by_its_name(user, url, room):
    made = user.job(room)
    found = done(User(url).get(f"/rooms/{room}/jobs/{made['full_name']}"), 200)
    assert list(found) == FIELDS
    assert found == {**made, "worker_id": None}


def a_job_is_found_from_any_room(user, room):
    made = user.job(room)
    elsewhere = f"/rooms/{steps.unique('room')}/jobs/{made['full_name']}"
    assert done(user.get(elsewhere), 200)["id"] == made["id"]


def a_name_of_fewer_than_three_parts_is_no_job(user, room):
    for name in ("nope", "a:b"):
        answer = user.get(f"/rooms/{room}/jobs/{name}")
        assert steps.is_problem(answer, 404, "job-not-found", "Not Found", f"Invalid job name format: {name}")


def an_unknown_job_is_not_found(user, room):
    name = f"{room}:modifiers:Nope"
    answer = user.get(f"/rooms/{room}/jobs/{name}")
    assert steps.is_problem(answer, 404, "job-not-found", "Not Found", f"Job '{name}' not found")


def a_room_lists_its_jobs_newest_first(user, url, room):
    first = user.job(room, "First")
    second = user.job(room, "Second", category="analysis")
    listed = done(User(url).get(f"/rooms/{room}/jobs", params={"limit": 500}), 200)
    assert list(listed) == ["items", "total", "limit", "offset"]
    mine = [item for item in listed["items"] if item["full_name"].startswith(room)]
    assert [list(item) for item in mine] == [["full_name", "category", "name", "workers"]] * 2
    assert [item["full_name"] for item in mine] == [second["full_name"], first["full_name"]]
    assert mine[1]["workers"] == first["workers"]


def global_jobs_are_listed_in_every_room_and_a_rooms_jobs_only_there(user, room):
    everywhere = user.job("@global", steps.unique("Job"))["full_name"]
    here = user.job(room)["full_name"]
    assert {everywhere, here} <= _names(user, room)
    elsewhere = _names(user, steps.unique("room"))
    assert everywhere in elsewhere and here not in elsewhere
    assert everywhere in _names(user, "@global") and here not in _names(user, "@global")


def internal_jobs_are_listed_in_rooms_but_not_in_global(user, room):
    name = user.job("@internal", steps.unique("Job"))["full_name"]
    assert name in _names(user, room)
    assert name in _names(user, "@internal")
    assert name not in _names(user, "@global")


def a_job_is_deleted_with_its_last_worker(user, room):
    first, second = user.worker(), user.worker()
    name = user.job(room, worker=first)["full_name"]
    user.job(room, worker=second)
    user.delete(f"/workers/{first}")
    assert done(user.get(f"/rooms/{room}/jobs/{name}"), 200)["workers"] == [second]
    user.delete(f"/workers/{second}")
    answer = user.get(f"/rooms/{room}/jobs/{name}")
    assert steps.is_problem(answer, 404, "job-not-found", "Not Found", f"Job '{name}' not found")
    assert name not in _names(user, room)


def a_job_with_pending_tasks_outlives_its_last_worker(user, room):
    worker = user.worker()
    name = user.job(room, worker=worker)["full_name"]
    task = user.submit(room, name)["id"]
    user.delete(f"/workers/{worker}")
    assert done(user.get(f"/rooms/{room}/jobs/{name}"), 200)["workers"] == []
    heir = user.job(room)["worker_id"]
    assert user.claim(heir)["id"] == task


def a_job_without_workers_is_deleted_with_its_last_task(user, room):
    worker = user.worker()
    name = user.job(room, worker=worker)["full_name"]
    task = user.submit(room, name)["id"]
    user.delete(f"/workers/{worker}")
    done(user.move(task, "cancelled"), 200)
    assert user.get(f"/rooms/{room}/jobs/{name}").status_code == 404
    assert done(user.task(task), 200)["job_name"] == name


def a_deleted_job_may_be_registered_with_a_new_schema(user, room):
    worker = user.worker()
    first = user.job(room, worker=worker)
    user.delete(f"/workers/{worker}")
    again = done(user.register(room, schema={"title": "another"}), 201)
    assert again["id"] == first["id"]
    assert again["schema"] == {"title": "another"}
    assert again["workers"] == [again["worker_id"]]


def _names(user, room):
    return {item["full_name"] for item in done(user.get(f"/rooms/{room}/jobs", params={"limit": 500}), 200)["items"]}
