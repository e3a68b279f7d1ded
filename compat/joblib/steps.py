"""What the cases have in common: names of their own, and waiting with a bound."""

import os
import time
import uuid
from datetime import datetime

# How long a case waits for what must come, in seconds: two cores may be compiling beside it.
PATIENCE = 30
CHECK_EVERY = 0.05
NOBODY = "00000000-0000-0000-0000-000000000000"


def unique(kind):
    return f"{kind}-{uuid.uuid4().hex[:12]}"


def until(what, check):
    """Calls `check` until it returns a true value, and returns that."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := check():
            return found
        time.sleep(CHECK_EVERY)
    raise AssertionError(f"waited in vain: {what}")


def at(text):
    """A time of the wire: in UTC, with a Z. Upstream leaves the Z out on SQLite."""
    if (os.environ.get("JOBLIB_HOST"), os.environ.get("JOBLIB_STORE")) != ("upstream", "sqlite"):
        assert text.endswith("Z"), text
    return datetime.fromisoformat(text.removesuffix("Z") + "+00:00")


def page(items, total=None, limit=50, offset=0):
    return {"items": items, "total": len(items) if total is None else total, "limit": limit, "offset": offset}


def is_problem(response, status, kind, title, detail=None):
    """Problems are RFC 9457, with exactly these members in this order."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert list(body) == ["type", "title", "status", "detail"]
    assert (body["type"], body["title"], body["status"]) == (f"/v1/problems/{kind}", title, status)
    if detail is not None:
        assert body["detail"] == detail
    return True


def is_refused_field(response, *path, kind=None):
    """422 as FastAPI writes it: a list, each entry with the place of the mistake."""
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/json"
    entries = response.json()["detail"]
    places = [tuple(entry["loc"]) for entry in entries]
    assert path in places, entries
    entry = entries[places.index(path)]
    assert list(entry)[:4] == ["type", "loc", "msg", "input"]
    assert kind is None or entry["type"] == kind
    return True


def is_empty(response):
    assert (response.status_code, response.content) == (204, b""), response.text
    return True
