"""Providers: offered, listed, described, taken back."""

import steps
from user import SCHEMA, User, done, provider

FIELDS = ["id", "room_id", "category", "name", "full_name", "schema", "worker_id", "created_at"]


def a_new_provider_is_answered_with_all_but_its_content_type(user, room):
    worker = user.worker()
    answer = user.offer(room, worker=worker, schema=SCHEMA, content_type="application/x-msgpack")
    assert answer.status_code == 201
    made = answer.json()
    assert list(made) == FIELDS
    steps.at(made["created_at"])
    assert made == {
        "id": made["id"],
        "room_id": room,
        "category": "filesystem",
        "name": "local",
        "full_name": f"{room}:filesystem:local",
        "schema": SCHEMA,
        "worker_id": worker,
        "created_at": made["created_at"],
    }


def the_same_provider_again_is_the_same_provider(user, room):
    worker = user.worker()
    made = done(user.offer(room, worker=worker), 201)
    assert done(user.offer(room, worker=worker), 200) == made


def a_provider_may_be_registered_again_with_another_schema_and_worker(user, room):
    first, second = user.worker(), user.worker()
    made = done(user.offer(room, worker=first, schema=SCHEMA), 201)
    again = done(user.offer(room, worker=second, schema={"title": "another"}), 200)
    assert again == {**made, "schema": {"title": "another"}, "worker_id": second}
    assert _info(user, again) == again


def a_provider_may_be_registered_again_with_another_content_type(user, room):
    done(user.offer(room, content_type="text/plain"), 201)
    made = done(user.offer(room, content_type="application/octet-stream"), 200)
    user.upload(made, {}, b"x")
    assert user.read(made).headers["content-type"] == "application/octet-stream"


def each_registration_without_a_worker_creates_one(user, room):
    first = done(user.offer(room), 201)["worker_id"]
    second = done(user.offer(room), 200)["worker_id"]
    assert first != second
    for worker in (first, second):
        assert user.patch(f"/workers/{worker}").status_code == 200


def a_provider_is_deleted_with_its_last_worker_only(user, room):
    first, second = user.worker(), user.worker()
    user.provider(room, worker=first)
    made = user.provider(room, worker=second)
    user.delete(f"/workers/{first}")
    assert _info(user, made) == made


def the_schema_may_be_called_as_the_real_client_calls_it(user, room):
    fields = {"category": "filesystem", "name": "local", "schema_": SCHEMA}
    assert done(user.put(f"/rooms/{room}/providers", fields), 201)["schema"] == SCHEMA
    assert user.provider(room, "empty")["schema"] == {}


def the_content_type_is_json_by_default(user, room):
    made = user.provider(room)
    user.upload(made, {}, b"[]")
    assert user.read(made).headers["content-type"] == "application/json"


def any_category_is_allowed(user, room):
    for category in ("filesystem", "frames", "anything at all"):
        assert user.provider(room, category=category)["category"] == category


def an_unknown_worker_is_refused(user, other, room):
    for worker in (steps.NOBODY, other.worker()):
        answer = user.offer(room, worker=worker)
        detail = f"Worker '{worker}' not found or not owned by user"
        assert steps.is_problem(answer, 404, "worker-not-found", "Not Found", detail)
    assert done(user.get(f"/rooms/{room}/providers/{room}:filesystem:local/info"), 404)


def missing_and_wrong_fields_are_refused(user, room):
    answer = user.put(f"/rooms/{room}/providers", {})
    assert steps.is_refused_field(answer, "body", "category", kind="missing")
    assert steps.is_refused_field(answer, "body", "name", kind="missing")
    for field, value in (("name", 3), ("schema", []), ("content_type", 1), ("worker_id", "x")):
        answer = user.put(f"/rooms/{room}/providers", {**provider(), field: value})
        assert steps.is_refused_field(answer, "body", field)


def a_room_lists_its_own_and_the_global_providers_newest_first(user, room):
    everywhere = user.provider("@global", steps.unique("provider"))
    first, second = user.provider(room, "first"), user.provider(room, "second")
    elsewhere = user.provider(steps.unique("room"))
    listed = done(user.get(f"/rooms/{room}/providers", params={"limit": 500}), 200)
    assert list(listed) == ["items", "total", "limit", "offset"]
    ours = [everywhere["id"], first["id"], second["id"], elsewhere["id"]]
    assert [item for item in listed["items"] if item["id"] in ours] == [second, first, everywhere]
    only = done(user.get("/rooms/@global/providers", params={"limit": 500}), 200)["items"]
    assert [item["id"] for item in only if item["id"] in ours] == [everywhere["id"]]


def a_provider_is_described(user, room):
    made = user.provider(room, schema=SCHEMA)
    answer = _info(user, made)
    assert answer == made
    assert list(answer) == FIELDS


def a_global_provider_is_described_from_any_room(user, room):
    made = user.provider("@global", steps.unique("provider"))
    assert _info(user, made, room) == made


def another_rooms_provider_is_not_described_or_read(user, room):
    made = user.provider(room)
    elsewhere = steps.unique("room")
    detail = f"Provider '{made['full_name']}' not accessible from room '{elsewhere}'"
    for answer in (user.get(_path(made, elsewhere)), user.read(made, room=elsewhere)):
        assert steps.is_problem(answer, 404, "provider-not-found", "Not Found", detail)


def from_global_every_provider_is_described_and_read(user, room):
    made = user.provider(room)
    user.upload(made, {}, b"1")
    assert _info(user, made, "@global") == made
    assert user.read(made, room="@global").content == b"1"


def an_unknown_provider_is_not_found(user, room):
    name = f"{room}:filesystem:nope"
    for path in (f"/rooms/{room}/providers/{name}/info", f"/rooms/{room}/providers/{name}"):
        answer = user.get(path)
        assert steps.is_problem(answer, 404, "provider-not-found", "Not Found", f"Provider '{name}' not found")


def a_name_of_fewer_than_three_parts_is_no_provider(user, room):
    answer = user.get(f"/rooms/{room}/providers/nope/info")
    assert steps.is_problem(answer, 404, "provider-not-found", "Not Found", "Invalid provider name format: nope")
    answer = user.get(f"/rooms/{room}/providers/nope")
    assert steps.is_problem(answer, 404, "provider-not-found", "Not Found", "Invalid provider name format: nope")


def a_removed_provider_is_not_found(user, room):
    made = user.provider(room)
    user.upload(made, {}, b"1")
    assert steps.is_empty(user.delete(f"/providers/{made['id']}"))
    assert user.read(made).status_code == 404
    assert user.get(_path(made)).status_code == 404
    assert user.upload(made, {}, b"1").status_code == 404
    answer = user.delete(f"/providers/{made['id']}")
    detail = f"Provider '{made['id']}' not found"
    assert steps.is_problem(answer, 404, "provider-not-found", "Not Found", detail)
    assert steps.is_refused_field(user.delete("/providers/x"), "path", "provider_id", kind="uuid_parsing")


def a_worker_outlives_its_provider(user, room):
    made = user.provider(room)
    user.delete(f"/providers/{made['id']}")
    assert user.patch(f"/workers/{made['worker_id']}").status_code == 200


def another_superuser_may_register_and_remove_my_provider(user, other, room):
    mine = user.provider(room)
    theirs = done(other.offer(room), 200)
    assert theirs["id"] == mine["id"]
    assert theirs["worker_id"] != mine["worker_id"]
    assert steps.is_empty(user.delete(f"/providers/{mine['id']}"))


def providers_are_listed_and_described_without_a_token(user, url, room):
    made = user.provider(room)
    nobody = User(url)
    assert done(nobody.get(_path(made)), 200) == made
    assert made in done(nobody.get(f"/rooms/{room}/providers", params={"limit": 500}), 200)["items"]


def _info(user, provider, room=None):
    return done(user.get(_path(provider, room)), 200)


def _path(provider, room=None):
    return f"/rooms/{room or provider['room_id']}/providers/{provider['full_name']}/info"
