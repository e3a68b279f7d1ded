"""What leads from one state of a task to another, and who sees the times."""

import pytest
import steps
from user import done

STATES = ["pending", "claimed", "running", "completed", "failed", "cancelled"]
LEADS = {
    "pending": ["claimed", "cancelled"],
    "claimed": ["running", "failed", "cancelled"],
    "running": ["completed", "failed", "cancelled"],
}
# How a task gets there, beginning with a claim.
WAYS = {
    "pending": [],
    "claimed": ["claim"],
    "running": ["claim", "running"],
    "completed": ["claim", "running", "completed"],
    "failed": ["claim", "failed"],
    "cancelled": ["claim", "cancelled"],
}


@pytest.mark.parametrize("after", STATES)
@pytest.mark.parametrize("before", STATES)
def the_table_of_transitions_holds(user, room, before, after):
    task = _in_state(user, room, before)
    answer = user.move(task, after)
    if after in LEADS.get(before, []):
        assert done(answer, 200)["status"] == after
    else:
        detail = f"Cannot transition from '{before}' to '{after}'"
        assert steps.is_problem(answer, 409, "invalid-task-transition", "Conflict", detail)
        assert done(user.task(task), 200)["status"] == before


def a_task_that_runs_has_a_start_and_one_that_ended_an_end(user, room):
    task = _in_state(user, room, "claimed")
    claimed = done(user.task(task), 200)
    assert (claimed["started_at"], claimed["completed_at"]) == (None, None)
    running = done(user.move(task, "running"), 200)
    assert running["completed_at"] is None
    ended = done(user.move(task, "completed"), 200)
    assert ended["started_at"] == running["started_at"]
    times = [steps.at(ended[field]) for field in ("created_at", "started_at", "completed_at")]
    assert times == sorted(times)
    assert ended["error"] is None
    assert ended["worker_id"] == claimed["worker_id"]


@pytest.mark.parametrize("status", ["failed", "cancelled", "completed"])
def the_error_of_an_ended_task_is_kept(user, room, status):
    task = _in_state(user, room, "running")
    ended = done(user.move(task, status, "boom\n  at line 1 ä"), 200)
    assert ended["error"] == "boom\n  at line 1 ä"
    assert done(user.task(task), 200) == ended


def an_error_before_the_end_is_left_out(user, room):
    task = _in_state(user, room, "claimed")
    assert done(user.move(task, "running", "boom"), 200)["error"] is None


def an_empty_error_is_stored_as_null(user, room):
    task = _in_state(user, room, "running")
    assert done(user.move(task, "failed", ""), 200)["error"] is None


def a_task_that_a_superuser_claims_has_no_worker(user, room):
    task = _in_state(user, room, "pending")
    assert done(user.move(task, "claimed"), 200)["worker_id"] is None


def a_task_that_was_cancelled_is_not_claimed(user, room):
    made = user.job(room)
    first, second = [user.submit(room, made["full_name"])["id"] for _ in range(2)]
    done(user.move(first, "cancelled"), 200)
    assert user.claim(made["worker_id"])["id"] == second
    assert user.claim(made["worker_id"]) is None


def an_unknown_status_is_refused(user, room):
    task = _in_state(user, room, "claimed")
    assert steps.is_refused_field(user.move(task, "bogus"), "body", "status", kind="enum")
    answer = user.patch(f"/tasks/{task}", json={})
    assert steps.is_refused_field(answer, "body", "status", kind="missing")
    assert steps.is_refused_field(user.move("not-a-uuid", "running"), "path", "task_id", kind="uuid_parsing")


def _in_state(user, room, state):
    made = user.job(room)
    task = user.submit(room, made["full_name"])["id"]
    for step in WAYS[state]:
        if step == "claim":
            assert user.claim(made["worker_id"])["id"] == task
        else:
            done(user.move(task, step), 200)
    return task
