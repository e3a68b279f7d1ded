"""One room for each case, users for each process, and servers for those that need their own."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

# So that their assertions say what they found, as those of the cases do.
pytest.register_assert_rewrite("listener", "steps", "user")

import client as real
import listener as sockets
import proxy as cables
import steps
import user as people
from deployment import Deployment
from pytest_cases import keep

HOST = os.environ.get("JOBLIB_HOST", "wakeline")
STORE = os.environ.get("JOBLIB_STORE", "sqlite")
REDIS = bool(os.environ.get("JOBLIB_REDIS"))
# Or "nodes": only those that need several servers on one database.
CASES = os.environ.get("JOBLIB_CASES", "all")
# More than any case asks at the same time.
AT_ONCE = 120


def pytest_report_header():
    return f"zndraw-joblib against {HOST} on {STORE}{' with Redis' if REDIS else ''}"


def pytest_collection_modifyitems(config, items):
    keep(config, items, _is_for_this_run)


def _is_for_this_run(item):
    # What a case file imports is no case.
    if item.function.__module__ != item.module.__name__:
        return False
    if item.get_closest_marker("wakeline_only") and HOST != "wakeline":
        return False
    is_for_nodes = item.get_closest_marker("nodes") is not None
    if CASES == "nodes" and not is_for_nodes:
        return False
    return STORE == "postgres" or not is_for_nodes


@pytest.fixture(scope="session")
def url():
    """A server in dev mode: every user is a superuser."""
    return os.environ["JOBLIB_URL"]


@pytest.fixture(scope="session")
def guarded_url():
    """A server with an admin; the others are nobody in particular."""
    return os.environ["JOBLIB_GUARDED_URL"]


@pytest.fixture(scope="session")
def user(url):
    return people.guest(url)


@pytest.fixture(scope="session")
def other(url):
    return people.guest(url)


@pytest.fixture(scope="session")
def admin(guarded_url):
    return people.admin(guarded_url)


@pytest.fixture(scope="session")
def alice(guarded_url):
    return people.guest(guarded_url)


@pytest.fixture(scope="session")
def bob(guarded_url):
    return people.guest(guarded_url)


@pytest.fixture
def room():
    return steps.unique("room")


@pytest.fixture
def aside():
    """Runs a call beside the case, and gives its future."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield pool.submit


@pytest.fixture
def listen():
    """Connections that keep what they hear; in rooms, if some are named."""
    connections = []

    def connect(user, *rooms, **options):
        connections.append(sockets.Listener(user, **options))
        for room in rooms:
            connections[-1].enter(room)
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()


@pytest.fixture
def connect():
    """Real clients."""
    clients = []

    def connect(user, **options):
        clients.append(real.Client(user, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def proxy():
    """Cables to servers."""
    proxies = []

    def lay(url):
        proxies.append(cables.Proxy(url))
        return proxies[-1]

    yield lay
    for laid in proxies:
        laid.close()


@pytest.fixture
def deployment(tmp_path):
    """For servers of the case's own."""
    deployment = Deployment(HOST, STORE, REDIS, tmp_path)
    yield deployment
    deployment.end()
