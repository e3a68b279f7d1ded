"""One client, one queue and one group of its own for each case."""

import os
from importlib.metadata import version

import pytest
import pytest_asyncio
from queen import Queen

import steps
from pytest_cases import keep

CLIENT = version("queen-mq")
# Or "own": only those that are not for the other releases.
CASES = os.environ.get("QUEEN_CASES", "all")
# Where the server has its messages, if that is known.
STORE = os.environ.get("QUEEN_STORE", "")

# Each client would read all the world's certificates for a connection without encryption.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.path.dirname(__file__)


def pytest_report_header():
    return f"queen-mq {CLIENT} against {url_of_the_server()}"


def pytest_collection_modifyitems(config, items):
    keep(config, items, _is_for_this_client)


def _is_for_this_client(item):
    store = item.get_closest_marker("store")
    if store is not None and store.args[0] != STORE:
        return False
    mark = item.get_closest_marker("client")
    if mark is None:
        return CASES == "all"
    return CLIENT.startswith(mark.args[0])


def url_of_the_server():
    return os.environ.get("QUEEN_URL", "http://127.0.0.1:6632")


@pytest.fixture
def url():
    return url_of_the_server()


@pytest_asyncio.fixture
async def queen(url):
    client = Queen(url)
    yield client
    await client.close()


@pytest_asyncio.fixture
async def other(url):
    """A second client, as another process would have it."""
    client = Queen(url)
    yield client
    await client.close()


@pytest.fixture
def queue():
    return steps.unique("queue")


@pytest.fixture
def group():
    return steps.unique("group")
