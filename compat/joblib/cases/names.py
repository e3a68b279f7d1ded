"""Rooms and names as they come in paths: raw, percent-encoded, with slashes and colons."""

from urllib.parse import quote

import pytest
import steps
from user import done, job, provider

ODD = ["a/b", "a:b", "a/b:c/d", "ä ö", "a%2Fb", "x?y#z", "info", "tasks", "a+b"]


def _path(name):
    """As JavaScript's encodeURIComponent sends it."""
    return quote(name, safe="-_.!~*'()")


@pytest.mark.parametrize("room_id", ["ro@om", "a:b", "@local", "@"])
def a_room_with_an_at_or_a_colon_is_refused(user, room_id):
    detail = f"Room ID '{room_id}' contains invalid characters (@ or :)"
    name = f"{room_id}:modifiers:Rotate"
    for answer in (
        user.put(f"/rooms/{room_id}/jobs", job()),
        user.get(f"/rooms/{room_id}/jobs"),
        user.get(f"/rooms/{room_id}/jobs/{name}"),
        user.get(f"/rooms/{room_id}/jobs/{name}/tasks"),
        user.get(f"/rooms/{room_id}/workers"),
        user.get(f"/rooms/{room_id}/tasks"),
        user.post(f"/rooms/{room_id}/tasks/{name}", json={}),
        user.put(f"/rooms/{room_id}/providers", provider()),
        user.get(f"/rooms/{room_id}/providers"),
        user.get(f"/rooms/{room_id}/providers/{name}/info"),
        user.get(f"/rooms/{room_id}/providers/{name}"),
    ):
        assert steps.is_problem(answer, 400, "invalid-room-id", "Bad Request", detail)


def a_room_may_have_any_other_name(user, room):
    for room_id in (f"{room} x", f"{room}-ä", f"{room}.1", f"{room}~"):
        made = done(user.put(f"/rooms/{_path(room_id)}/jobs", job()), 201)
        assert made["room_id"] == room_id
        assert done(user.get(f"/rooms/{_path(room_id)}/tasks"), 200)["total"] == 0


@pytest.mark.parametrize("name", ODD)
def a_job_of_any_name_is_found_and_used(user, room, name):
    made = user.job(room, name)
    assert made["full_name"] == f"{room}:modifiers:{name}"
    full = _path(made["full_name"])
    assert done(user.get(f"/rooms/{room}/jobs/{full}"), 200)["id"] == made["id"]
    task = user.submit(room, full)
    assert task["job_name"] == made["full_name"]
    listed = done(user.get(f"/rooms/{room}/jobs/{full}/tasks"), 200)
    assert [item["id"] for item in listed["items"]] == [task["id"]]
    assert user.claim(made["worker_id"])["job_name"] == made["full_name"]


@pytest.mark.parametrize("name", ODD)
def a_provider_of_any_name_is_found_and_read(user, room, name):
    made = user.provider(room, name)
    full = _path(made["full_name"])
    assert done(user.get(f"/rooms/{room}/providers/{full}/info"), 200)["id"] == made["id"]
    steps.is_empty(user.upload(made, {"path": "/"}, b'"here"'))
    answer = user.get(f"/rooms/{room}/providers/{full}", params={"path": "/"})
    assert (answer.status_code, answer.content) == (200, b'"here"')


def names_are_taken_raw_and_encoded(user, room):
    made = user.job("@global", steps.unique("Job"))
    for full in (made["full_name"], quote(made["full_name"], safe="")):
        assert done(user.get(f"/rooms/{room}/jobs/{full}"), 200)["id"] == made["id"]
    offered = user.provider("@global", steps.unique("provider"))
    for full in (offered["full_name"], quote(offered["full_name"], safe="")):
        assert done(user.get(f"/rooms/{room}/providers/{full}/info"), 200)["id"] == offered["id"]
        assert done(user.get(f"/rooms/%40global/providers/{full}/info"), 200)["id"] == offered["id"]


def slashes_in_names_are_taken_raw_too(user, room):
    made = user.job(room, "a/b")
    assert done(user.get(f"/rooms/{room}/jobs/{room}:modifiers:a/b"), 200)["id"] == made["id"]
    offered = user.provider(room, "a/b")
    assert done(user.get(f"/rooms/{room}/providers/{room}:filesystem:a/b/info"), 200)["id"] == offered["id"]


def an_unknown_path_is_not_found(user):
    for answer in (user.get("/nope"), user.post("/tasks/claim/x")):
        assert answer.status_code == 404
