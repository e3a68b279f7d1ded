"""`Prefer: wait=N` at a task: held until it has ended."""

import pytest
import steps
from user import User, done


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def a_wait_ends_with_the_task(user, url, room, aside, status):
    def held():
        task = _running(user, room)
        waiting = aside(User(url).task, task, wait=50)
        ended = done(user.move(task, status), 200)
        answer = waiting.result(steps.PATIENCE)
        assert answer.json() == ended
        return _applied(answer)

    assert steps.until("a wait that began before the end", held) == "wait=50"


def a_wait_is_at_most_a_minute(user, room, aside):
    def held():
        task = _running(user, room)
        waiting = aside(user.task, task, wait=99999)
        user.move(task, "completed")
        return _applied(waiting.result(steps.PATIENCE))

    assert steps.until("a wait that began before the end", held) == "wait=60"


def a_wait_continues_while_the_task_is_running(user, room, aside):
    made = user.job(room)
    task = user.submit(room, made["full_name"])["id"]
    waiting = aside(user.task, task, wait=60)
    user.claim(made["worker_id"])
    done(user.move(task, "running"), 200)
    done(user.move(task, "completed"), 200)
    assert waiting.result(steps.PATIENCE).json()["status"] == "completed"


def after_the_wait_the_task_is_answered_in_its_present_state(user, room):
    task = _running(user, room)
    answer = user.task(task, wait=1)
    assert done(answer, 200)["status"] == "running"
    assert answer.headers["preference-applied"] == "wait=1"


@pytest.mark.parametrize("wait", ["wait=0", "wait=x", "wait=abc", "wait", "respond-async", "await=3"])
def a_read_without_a_readable_wait_is_answered_at_once(user, room, wait):
    task = _running(user, room)
    answer = user.get(f"/tasks/{task}", headers={"Prefer": wait})
    assert done(answer, 200)["status"] == "running"
    assert "preference-applied" not in answer.headers


def the_wait_is_found_among_other_preferences(user, room):
    task = _running(user, room)
    answer = user.get(f"/tasks/{task}", headers={"Prefer": "respond-async, wait=1; foo"})
    assert answer.headers["preference-applied"] == "wait=1"


def a_task_that_has_ended_is_answered_at_once(user, room):
    task = _running(user, room)
    user.move(task, "completed")
    assert "preference-applied" not in user.task(task, wait=60).headers


def a_wait_ends_when_the_worker_is_removed(user, room, aside):
    made = user.job(room)
    task = user.submit(room, made["full_name"])["id"]
    user.claim(made["worker_id"])
    waiting = aside(user.task, task, wait=60)
    user.delete(f"/workers/{made['worker_id']}")
    assert waiting.result(steps.PATIENCE).json()["error"] == "Worker disconnected"


def _applied(answer):
    """None if the end came before the wait."""
    return answer.headers.get("preference-applied")


def _running(user, room):
    made = user.job(room)
    task = user.submit(room, made["full_name"])["id"]
    user.claim(made["worker_id"])
    done(user.move(task, "running"), 200)
    return task
