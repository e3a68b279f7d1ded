"""Claiming: the oldest task first, each to one worker."""

import steps
from user import done


def the_oldest_task_is_claimed_first(user, room):
    made = user.job(room)
    tasks = [user.submit(room, made["full_name"])["id"] for _ in range(5)]
    assert [user.claim(made["worker_id"])["id"] for _ in range(5)] == tasks
    assert user.claim(made["worker_id"]) is None


def the_answer_is_the_claimed_task(user, room):
    made = user.job(room)
    task = user.submit(room, made["full_name"], {"a": 1})
    answer = user.post("/tasks/claim", json={"worker_id": made["worker_id"]})
    assert answer.status_code == 200
    claimed = {**task, "status": "claimed", "worker_id": made["worker_id"], "queue_position": None}
    assert answer.json() == {"task": claimed}
    assert list(answer.json()["task"]) == list(task)
    assert user.post("/tasks/claim", json={"worker_id": made["worker_id"]}).text == '{"task":null}'


def the_oldest_task_is_claimed_first_across_jobs_and_rooms(user, room):
    worker = user.worker()
    jobs = [user.job(room, name, worker=worker)["full_name"] for name in ("One", "Two")]
    jobs.append(user.job(steps.unique("room"), worker=worker)["full_name"])
    jobs.append(user.job("@global", steps.unique("Job"), worker=worker)["full_name"])
    tasks = [user.submit(steps.unique("room"), job)["id"] for job in jobs[::-1] + jobs]
    assert [user.claim(worker)["id"] for _ in tasks] == tasks


def a_worker_gets_only_tasks_of_its_jobs(user, room):
    job = user.job(room, "One")["full_name"]
    user.submit(room, job)
    assert user.claim(user.worker()) is None
    assert user.claim(user.job(room, "Two")["worker_id"]) is None


def each_task_goes_to_one_worker(user, room, aside):
    workers = [user.worker() for _ in range(4)]
    for worker in workers:
        job = user.job(room, worker=worker)["full_name"]
    tasks = {user.submit(room, job)["id"] for _ in range(12)}
    claimed = []

    def take_until_all_are_gone(worker):
        while len(claimed) < len(tasks):
            # Null does not mean empty: upstream gives up where many claim at once.
            if task := user.claim(worker):
                assert task["worker_id"] == worker
                claimed.append(task["id"])

    for taking in [aside(take_until_all_are_gone, worker) for worker in workers]:
        taking.result(steps.PATIENCE)
    assert sorted(claimed) == sorted(tasks)


def an_unknown_worker_claims_nothing(user):
    answer = user.post("/tasks/claim", json={"worker_id": steps.NOBODY})
    assert steps.is_problem(answer, 404, "worker-not-found", "Not Found", f"Worker {steps.NOBODY} not found")


def another_users_worker_claims_nothing_even_for_a_superuser(user, other):
    answer = other.post("/tasks/claim", json={"worker_id": user.worker()})
    assert steps.is_problem(answer, 403, "forbidden", "Forbidden", "Worker belongs to a different user")


def a_claim_needs_a_worker_id(user):
    answer = user.post("/tasks/claim", json={})
    assert steps.is_refused_field(answer, "body", "worker_id", kind="missing")
    answer = user.post("/tasks/claim", json={"worker_id": "x"})
    assert steps.is_refused_field(answer, "body", "worker_id", kind="uuid_parsing")


def a_claimed_task_is_not_claimed_again(user, room):
    first, second = user.worker(), user.worker()
    for worker in (first, second):
        job = user.job(room, worker=worker)["full_name"]
    task = user.submit(room, job)["id"]
    assert user.claim(first)["id"] == task
    assert user.claim(second) is None
    assert done(user.task(task), 200)["worker_id"] == first
