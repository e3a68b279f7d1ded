"""Pages: limits, offsets and totals of every list."""

import pytest
import steps
from user import done

LISTS = ["workers", "jobs", "room workers", "tasks", "job tasks", "providers"]


@pytest.fixture
def path(request, user, room):
    """A list in which at least three things are."""
    worker = user.worker()
    for name in ("One", "Two", "Three"):
        job = user.job(room, name, worker=user.worker())["full_name"]
        user.provider(room, name, worker=worker)
    for _ in range(3):
        user.submit(room, job)
    return {
        "workers": "/workers",
        "jobs": f"/rooms/{room}/jobs",
        "room workers": f"/rooms/{room}/workers",
        "tasks": f"/rooms/{room}/tasks",
        "job tasks": f"/rooms/{room}/jobs/{job}/tasks",
        "providers": f"/rooms/{room}/providers",
    }[request.param]


@pytest.mark.parametrize("path", LISTS, indirect=True)
def a_page_has_at_most_fifty_items_by_default(user, path):
    answer = done(user.get(path), 200)
    assert list(answer) == ["items", "total", "limit", "offset"]
    assert (answer["limit"], answer["offset"]) == (50, 0)
    assert len(answer["items"]) == min(answer["total"], 50) >= 3


@pytest.mark.parametrize("path", LISTS, indirect=True)
def a_limit_of_0_gives_the_total(user, path):
    answer = done(user.get(path, params={"limit": 0}), 200)
    assert answer["items"] == []
    assert answer["total"] >= 3
    assert answer["limit"] == 0


@pytest.mark.parametrize("path", LISTS, indirect=True)
def a_page_starts_where_the_last_one_ended(user, path):
    answer = done(user.get(path, params={"limit": 1, "offset": 1}), 200)
    assert len(answer["items"]) == 1
    assert (answer["limit"], answer["offset"]) == (1, 1)
    beyond = done(user.get(path, params={"offset": 1_000_000}), 200)
    assert (beyond["items"], beyond["offset"]) == ([], 1_000_000)
    assert beyond["total"] >= 3


@pytest.mark.parametrize("path", LISTS, indirect=True)
def limits_and_offsets_have_bounds(user, path):
    assert done(user.get(path, params={"limit": 500}), 200)["limit"] == 500
    answer = user.get(path, params={"limit": 501})
    assert answer.json()["detail"] == [
        {
            "type": "less_than_equal",
            "loc": ["query", "limit"],
            "msg": "Input should be less than or equal to 500",
            "input": "501",
            "ctx": {"le": 500},
        }
    ]
    answer = user.get(path, params={"limit": -1, "offset": -1})
    assert steps.is_refused_field(answer, "query", "limit", kind="greater_than_equal")
    assert steps.is_refused_field(answer, "query", "offset", kind="greater_than_equal")
    assert steps.is_refused_field(user.get(path, params={"limit": "x"}), "query", "limit", kind="int_parsing")


def consecutive_pages_have_every_item_once(user, room):
    job = user.job(room)["full_name"]
    tasks = [user.submit(room, job)["id"] for _ in range(5)]
    pages = [done(user.get(f"/rooms/{room}/tasks", params={"limit": 2, "offset": at}), 200) for at in (0, 2, 4)]
    assert [item["id"] for page in pages for item in page["items"]] == tasks[::-1]
    assert [page["total"] for page in pages] == [5, 5, 5]


def an_empty_list_is_an_empty_page(user, room):
    assert done(user.get(f"/rooms/{room}/tasks"), 200) == steps.page([])
