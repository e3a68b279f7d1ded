"""What Wakeline adds beside the routes of upstream."""

import pytest
import steps
import user as people
from user import User, done

pytestmark = pytest.mark.wakeline_only
NUMBERED = {"type": "object", "properties": {"index": {"type": "integer"}, "keys": {"type": "string"}}}


def in_dev_mode_no_token_is_needed(url, room):
    nobody = User(url)
    made = nobody.job("@global", steps.unique("Job"))
    task = nobody.submit(room, made["full_name"])["id"]
    assert nobody.claim(made["worker_id"])["id"] == task


def a_claim_is_held_until_there_is_a_task(user, room, aside):
    made = user.job(room)
    claiming = aside(_claim, user, made["worker_id"], 30)
    task = user.submit(room, made["full_name"])["id"]
    assert done(claiming.result(steps.PATIENCE), 200)["task"]["id"] == task


def a_held_claim_without_a_task_is_answered_with_null(user, room):
    made = user.job(room)
    assert done(_claim(user, made["worker_id"], 1), 200) == {"task": None}


def a_held_claim_gets_tasks_of_a_job_that_its_worker_registers_later(user, room, aside):
    worker = user.worker()
    claiming = aside(_claim, user, worker, 30)
    job = user.job(room, worker=worker)["full_name"]
    task = user.submit(room, job)["id"]
    assert done(claiming.result(steps.PATIENCE), 200)["task"]["id"] == task


def one_task_wakes_one_of_many_held_claims(user, room, aside):
    workers = [user.worker() for _ in range(3)]
    for worker in workers:
        job = user.job(room, worker=worker)["full_name"]
    claims = [aside(_claim, user, worker, 20) for worker in workers]
    tasks = [user.submit(room, job)["id"] for _ in range(3)]
    claimed = [done(claim.result(steps.PATIENCE), 200)["task"]["id"] for claim in claims]
    assert sorted(claimed) == sorted(tasks)


def a_provider_sends_heartbeats_of_its_worker(user, other, room):
    provider = user.provider(room)
    before = _heartbeat(user, provider)
    done(user.patch(f"/providers/{provider['id']}"), 200)
    assert _heartbeat(user, provider) > before
    assert steps.is_problem(user.patch(f"/providers/{steps.NOBODY}"), 404, "provider-not-found", "Not Found")
    assert steps.is_problem(other.patch(f"/providers/{provider['id']}"), 403, "forbidden", "Forbidden")


def a_provider_is_read_by_its_category_and_name(user, room, connect):
    connect(user).serve(lambda path: path, room=room)
    answer = _read(user, room, "filesystem/local")
    assert (answer.status_code, answer.json()) == (200, "/x")


def a_global_provider_is_read_by_its_category_and_name(user, room, connect):
    name = steps.unique("provider")
    connect(user).serve(lambda path: path, room="@global", name=name)
    answer = _read(user, room, f"filesystem/{name}")
    assert (answer.status_code, answer.json()) == (200, "/x")


def a_parameter_that_is_not_of_the_schema_is_refused_by_name(user, room):
    provider = user.provider(room, schema=NUMBERED)
    answer = user.read(provider, {"index": "seven"}, wait=0)
    assert steps.is_refused_field(answer, "query", "index")


def a_parameter_that_is_missing_is_refused_by_name(user, room):
    provider = user.provider(room, schema={**NUMBERED, "required": ["index"]})
    assert steps.is_refused_field(user.read(provider, {"keys": "a"}, wait=0), "query", "index")


def parameters_of_the_schema_are_passed_on_as_texts(user, room, listen):
    provider, serving = user.provider(room, schema=NUMBERED), listen(user)
    serving.serve(provider)
    assert user.read(provider, {"index": 7, "keys": "a,b"}, wait=0).status_code == 504
    assert serving.expect("provider_request")["params"] == '{"index":"7","keys":"a,b"}'


def a_result_has_an_etag_and_is_not_sent_twice(user, room):
    provider = user.provider(room)
    user.upload(provider, {}, b"[1]")
    first = user.read(provider, wait=0)
    tag = first.headers["etag"]
    again = user.read(provider, wait=0, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag
    assert user.read(provider, wait=0, headers={"If-None-Match": '"another"'}).content == b"[1]"
    user.upload(provider, {}, b"[2]")
    changed = user.read(provider, wait=0, headers={"If-None-Match": tag})
    assert (changed.status_code, changed.content) == (200, b"[2]")
    assert changed.headers["etag"] != tag


def a_lost_workers_task_is_retried_as_often_as_the_job_allows(user, room):
    job = user.job(room, max_retries=1)
    task = user.submit(room, job["full_name"])["id"]
    user.claim(job["worker_id"])
    done(user.move(task, "running"), 200)
    user.delete(f"/workers/{job['worker_id']}")
    requeued = done(user.task(task), 200)
    assert (requeued["status"], requeued["worker_id"], requeued["started_at"]) == ("pending", None, None)
    assert (requeued["completed_at"], requeued["error"]) == (None, None)
    heir = user.job(room, max_retries=1)["worker_id"]
    assert user.claim(heir)["id"] == task
    user.delete(f"/workers/{heir}")
    ended = done(user.task(task), 200)
    assert (ended["status"], ended["error"]) == ("failed", "Worker disconnected")


@pytest.mark.alone
def a_token_is_renewed_before_it_expires(deployment):
    user = people.guest(deployment.node(admin=True, token_lifetime=6).url)
    fresh = steps.until("a fresh token", lambda: user.get("/workers").headers.get("x-refreshed-token"))
    assert fresh != user.token
    # Else a worker that never logs in again would end with its first token.
    steps.until("the end of the first token", lambda: user.post("/workers").status_code == 401)
    assert User(user.base_url, fresh).worker()


def a_young_token_is_not_renewed(user):
    assert "x-refreshed-token" not in user.get("/workers").headers


@pytest.mark.alone
def an_unanswered_read_may_be_a_404(deployment, room):
    user = people.guest(deployment.node(flags=["--jobs-timeout-status", "404"]).url)
    answer = user.read(user.provider(room), wait=0)
    assert steps.is_problem(answer, 404, "provider-timeout", "Not Found")
    assert answer.headers["retry-after"] == "2"


@pytest.mark.alone
def results_may_be_kept_in_files(deployment, room):
    user = people.guest(deployment.node(results="files").url)
    provider, content = user.provider(room, content_type="application/octet-stream"), bytes(range(256)) * 10_000
    user.upload(provider, {}, content)
    assert user.read(provider, wait=0).content == content


def _claim(user, worker, wait):
    return user.post("/tasks/claim", json={"worker_id": worker}, headers={"Prefer": f"wait={wait}"})


def _read(user, room, short):
    return user.get(f"/rooms/{room}/providers/{short}", params={"path": "/x"}, headers={"Prefer": "wait=30"})


def _heartbeat(user, provider):
    workers = done(user.get("/workers", params={"limit": 500}), 200)["items"]
    return next(item["last_heartbeat"] for item in workers if item["id"] == provider["worker_id"])
