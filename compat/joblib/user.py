"""A user with a token: plain HTTP, and the object that the real client calls an ApiManager."""

import httpx
from zndraw_joblib import request_hash

import guarded

JOBLIB = "/v1/joblib"
# Longer than any read or wait is held.
TIMEOUT = 90
CONNECTIONS = 200
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}}


class User:
    def __init__(self, url, token=None):
        self.base_url = url
        self.token = token
        limits = httpx.Limits(max_connections=CONNECTIONS)
        self.http = httpx.Client(timeout=TIMEOUT, limits=limits, verify=False, trust_env=False)

    def at(self, url):
        """The same one, at another node."""
        return User(url, self.token)

    def get_headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def raise_for_status(self, response):
        """As the real client asks of its ApiManager."""
        errors = {404: KeyError, 401: PermissionError, 403: PermissionError, 409: ValueError, 422: ValueError}
        if error := errors.get(response.status_code):
            raise error(response.text)
        response.raise_for_status()

    def ask(self, method, path, *, headers=None, **options):
        headers = {**self.get_headers(), **(headers or {})}
        return self.http.request(method, f"{self.base_url}{path}", headers=headers, **options)

    def get(self, path, **options):
        return self.ask("GET", JOBLIB + path, **options)

    def put(self, path, json, **options):
        return self.ask("PUT", JOBLIB + path, json=json, **options)

    def post(self, path, **options):
        return self.ask("POST", JOBLIB + path, **options)

    def patch(self, path, **options):
        return self.ask("PATCH", JOBLIB + path, **options)

    def delete(self, path):
        return self.ask("DELETE", JOBLIB + path)

    def worker(self):
        return done(self.post("/workers"), 201)["id"]

    def register(self, room, name="Rotate", *, worker=None, **fields):
        return self.put(f"/rooms/{room}/jobs", job(name, worker, **fields))

    def job(self, room, name="Rotate", *, worker=None, **fields):
        return done(self.register(room, name, worker=worker, **fields), 200, 201)

    def submit(self, room, job, payload=None):
        json = {} if payload is None else {"payload": payload}
        return done(self.post(f"/rooms/{room}/tasks/{job}", json=json), 202)

    def claim(self, worker):
        return done(self.post("/tasks/claim", json={"worker_id": worker}), 200)["task"]

    def move(self, task, status, error=None):
        fields = {"status": status} if error is None else {"status": status, "error": error}
        return self.patch(f"/tasks/{task}", json=fields)

    def task(self, task, wait=None):
        headers = {} if wait is None else {"Prefer": f"wait={wait}"}
        return self.get(f"/tasks/{task}", headers=headers)

    def offer(self, room, name="local", *, worker=None, **fields):
        return self.put(f"/rooms/{room}/providers", provider(name, worker, **fields))

    def provider(self, room, name="local", *, worker=None, **fields):
        return done(self.offer(room, name, worker=worker, **fields), 200, 201)

    def read(self, provider, params=None, *, room=None, wait=None, headers=None):
        """What the provider answers to these parameters, asked from its own room."""
        headers = {**({} if wait is None else {"Prefer": f"wait={wait}"}), **(headers or {})}
        room = room or provider["room_id"]
        return self.get(f"/rooms/{room}/providers/{provider['full_name']}", params=params, headers=headers)

    def upload(self, provider, params, content, headers=None):
        """The answer to these parameters, or to the hash itself."""
        asked = params if isinstance(params, str) else request_hash(params)
        headers = {"X-Request-Hash": asked, **(headers or {})}
        return self.post(f"/providers/{provider['id']}/results", content=content, headers=headers)


def guest(url):
    return User(url, done(User(url).ask("POST", "/v1/auth/guest"), 200)["access_token"])


def login(url, email, password):
    form = {"username": email, "password": password}
    return User(url, done(User(url).ask("POST", "/v1/auth/jwt/login", data=form), 200)["access_token"])


def admin(url):
    return login(url, guarded.ADMIN, guarded.PASSWORD)


def done(response, *statuses):
    assert response.status_code in statuses, (response.status_code, response.text)
    return response.json()


def job(name="Rotate", worker=None, *, category="modifiers", schema=SCHEMA, **more):
    fields = {"category": category, "name": name, "schema": schema, **more}
    return fields if worker is None else {**fields, "worker_id": worker}


def provider(name="local", worker=None, *, category="filesystem", **more):
    fields = {"category": category, "name": name, **more}
    return fields if worker is None else {**fields, "worker_id": worker}
