"""Who may do what to whose: two users and an admin, on a server that is not in dev mode."""

import pytest
import steps
from user import done


def a_worker_is_removed_by_its_owner_or_a_superuser(alice, bob, admin):
    worker = alice.worker()
    answer = bob.delete(f"/workers/{worker}")
    assert steps.is_problem(answer, 403, "forbidden", "Forbidden", "Worker belongs to different user")
    assert steps.is_empty(admin.delete(f"/workers/{worker}"))
    assert steps.is_empty(alice.delete(f"/workers/{alice.worker()}"))


def only_the_owner_of_a_worker_sends_its_heartbeats(alice, bob, admin):
    worker = alice.worker()
    for other in (bob, admin):
        answer = other.patch(f"/workers/{worker}")
        assert steps.is_problem(answer, 403, "forbidden", "Forbidden", "Worker belongs to different user")
    assert alice.patch(f"/workers/{worker}").status_code == 200


@pytest.mark.parametrize("scope", ["@global", "@internal"])
def global_jobs_need_a_superuser(alice, admin, scope):
    name = steps.unique("Job")
    answer = alice.register(scope, name)
    detail = "Admin required for @global/@internal job registration"
    assert steps.is_problem(answer, 403, "forbidden", "Forbidden", detail)
    assert admin.register(scope, name).status_code == 201
    assert alice.register(scope, name).status_code == 403


def global_providers_need_a_superuser(alice, admin):
    name = steps.unique("provider")
    answer = alice.offer("@global", name)
    detail = "Admin required for @global provider registration"
    assert steps.is_problem(answer, 403, "forbidden", "Forbidden", detail)
    assert admin.offer("@global", name).status_code == 201


def any_user_registers_jobs_in_a_room_with_its_own_worker(alice, bob, room):
    first = alice.job(room)
    second = bob.job(room)
    assert second["id"] == first["id"]
    assert sorted(second["workers"]) == sorted([first["worker_id"], second["worker_id"]])
    answer = bob.register(room, worker=first["worker_id"])
    assert steps.is_problem(answer, 404, "worker-not-found", "Not Found")


def a_user_claims_only_for_its_own_worker(alice, bob, admin, room):
    made = alice.job(room)
    task = bob.submit(room, made["full_name"])["id"]
    for other in (bob, admin):
        answer = other.post("/tasks/claim", json={"worker_id": made["worker_id"]})
        assert steps.is_problem(answer, 403, "forbidden", "Forbidden", "Worker belongs to a different user")
    assert alice.claim(made["worker_id"])["id"] == task


def a_claimed_task_is_updated_by_the_workers_owner_or_a_superuser(alice, bob, admin, room):
    made = alice.job(room)
    task = bob.submit(room, made["full_name"])["id"]
    alice.claim(made["worker_id"])
    for status in ("running", "failed", "cancelled", "completed"):
        answer = bob.move(task, status)
        assert steps.is_problem(answer, 403, "forbidden", "Forbidden", "Not authorized to update this task")
    assert done(alice.move(task, "running"), 200)["status"] == "running"
    assert done(admin.move(task, "cancelled"), 200)["status"] == "cancelled"


def a_pending_task_is_updated_by_a_superuser_only(alice, bob, admin, room):
    job = alice.job(room)["full_name"]
    task = bob.submit(room, job)["id"]
    for status in ("claimed", "cancelled", "running"):
        answer = alice.move(task, status)
        assert steps.is_problem(answer, 403, "forbidden", "Forbidden", "Task not claimed by any worker")
    assert done(admin.move(task, "cancelled"), 200)["status"] == "cancelled"


@pytest.mark.wakeline_only
def a_submitter_cancels_its_pending_task(alice, bob, room):
    """Upstream refuses: it knows who submitted the task, and does not look."""
    made = alice.job(room)
    pending, claimed = [bob.submit(room, made["full_name"])["id"] for _ in range(2)]
    # Nothing else is theirs to say.
    assert bob.move(pending, "claimed").status_code == 403
    assert done(bob.move(pending, "cancelled"), 200)["status"] == "cancelled"
    assert alice.claim(made["worker_id"])["id"] == claimed
    assert bob.move(claimed, "cancelled").status_code == 403


def rights_are_checked_before_the_transition(alice, bob, room):
    made = alice.job(room)
    task = bob.submit(room, made["full_name"])["id"]
    alice.claim(made["worker_id"])
    done(alice.move(task, "failed"), 200)
    assert bob.move(task, "running").status_code == 403
    assert alice.move(task, "running").status_code == 409


def a_provider_is_registered_again_by_its_owner_or_a_superuser(alice, bob, admin, room):
    mine = alice.provider(room)
    answer = bob.offer(room)
    detail = "Provider already registered by another user"
    assert steps.is_problem(answer, 403, "forbidden", "Forbidden", detail)
    theirs = done(admin.offer(room), 200)
    assert theirs["id"] == mine["id"]
    # It is the admin's now.
    assert alice.offer(room).status_code == 403


def a_provider_is_removed_by_its_owner_or_a_superuser(alice, bob, admin, room):
    one, two = alice.provider(room, "one"), alice.provider(room, "two")
    answer = bob.delete(f"/providers/{one['id']}")
    assert steps.is_problem(answer, 403, "forbidden", "Forbidden", "Provider belongs to different user")
    assert steps.is_empty(alice.delete(f"/providers/{one['id']}"))
    assert steps.is_empty(admin.delete(f"/providers/{two['id']}"))


def a_result_is_uploaded_by_the_providers_owner_or_a_superuser(alice, bob, admin, room):
    provider = alice.provider(room)
    answer = bob.upload(provider, {}, b'"false"')
    detail = "Not authorized to upload results for this provider"
    assert steps.is_problem(answer, 403, "forbidden", "Forbidden", detail)
    for owner in (alice, admin):
        assert steps.is_empty(owner.upload(provider, {}, b'"true"'))
    assert bob.read(provider, wait=0).content == b'"true"'


def any_user_reads_jobs_and_providers(alice, bob, room, connect):
    provider = connect(alice).serve(lambda path: path, room=room)
    assert bob.read(provider, {"path": "/x"}, wait=30).json() == "/x"


@pytest.mark.wakeline_only
def a_user_that_does_not_serve_the_provider_gets_no_requests(alice, bob, room, listen):
    """Upstream lets anybody join, and read what is asked."""
    provider = alice.provider(room)
    strange, own = listen(bob, room), listen(alice)
    strange.serve(provider)
    own.serve(provider)
    bob.read(provider, {"path": "/secret"}, wait=0)
    own.expect("provider_request")
    alice.upload(provider, {"path": "/secret"}, b"1")
    # It would have come before this.
    strange.expect("provider_result_ready")
    assert strange.all("provider_request") == []


@pytest.mark.wakeline_only
def a_user_that_does_not_do_the_job_gets_no_events_of_its_tasks(alice, bob, room, listen):
    """Upstream lets anybody join."""
    made = alice.job(room)
    strange, own = listen(bob, room), listen(alice)
    strange.serve_job(made)
    strange.serve_job(made, worker=bob.worker())
    own.serve_job(made)
    bob.submit(room, made["full_name"])
    own.expect("task_available")
    alice.claim(made["worker_id"])
    strange.expect("task_status_event", 2)
    assert strange.all("task_available") == []
