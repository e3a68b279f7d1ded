"""The server as a whole: health, numbers, maintenance."""

import asyncio

import pytest
from queen import Queen

import steps


async def the_server_is_healthy(queen):
    assert (await queen.admin.health())["status"] in ("healthy", "ok", "ready")


async def a_client_with_several_urls_works_when_one_is_down(queue, url):
    client = Queen(["http://127.0.0.1:9", url])
    try:
        for n in range(4):
            await steps.push(client, queue, n)
        assert steps.data(await steps.drain(client, queue, 4)) == [0, 1, 2, 3]
    finally:
        await client.close()


async def metrics_are_answered(queen):
    await queen.admin.metrics()


async def the_status_has_what_the_dashboard_shows(queen, queue):
    await steps.push(queen, queue, 1)
    status = await queen.admin.get_status()
    assert {"queues", "messages", "leases", "timeRange", "throughput", "errors"} <= set(status)
    assert {"from", "to"} <= set(status["timeRange"])
    assert {"active", "partitionsWithLeases"} <= set(status["leases"])


async def the_analytics_have_points(queen):
    analytics = await queen.admin.get_analytics(interval="hour")
    assert {"from", "to", "interval", "dataPoints"} <= set(analytics)
    assert all({"timestamp", "messages"} <= set(point) for point in analytics["dataPoints"])


async def the_metrics_of_the_system_are_answered(queen):
    metrics = await queen.admin.get_system_metrics()
    assert {"timeRange", "replicas", "replicaCount", "pointCount", "bucketMinutes"} <= set(metrics)


async def the_metrics_of_the_workers_are_answered(queen):
    metrics = await queen.admin.get_worker_metrics()
    assert {"timeRange", "queues", "workers", "summary", "timeSeries"} <= set(metrics)


async def statistics_are_refreshed_on_demand(queen, queue):
    await steps.push(queen, queue, 1)
    answer = await queen.admin.refresh_consumer_stats()
    assert answer["refreshedAt"]


@pytest.mark.client("0.15")
async def the_statistics_of_the_database_are_answered(queen):
    stats = await queen.admin.get_postgres_stats()
    assert stats["timestamp"]


@pytest.mark.alone
@pytest.mark.client("0.15")
async def no_message_is_lost_by_maintenance_of_pushes(queen, queue, url):
    # One attempt: a refusal is not tried again while the maintenance lasts.
    client = Queen({"urls": [url], "retry_attempts": 1})
    answer = await queen.admin.set_maintenance_mode(True)
    try:
        assert answer["maintenanceMode"] is True
        assert (await queen.admin.get_maintenance_mode())["maintenanceMode"] is True
        accepted = []

        async def on_error(items, error):
            pass

        results = await client.queue(queue).push({"data": "during"}).on_error(on_error)
        if results:
            assert results[0]["status"] in ("buffered", "queued")
            accepted.append("during")
    finally:
        answer = await queen.admin.set_maintenance_mode(False)
        await client.close()
    assert answer["maintenanceMode"] is False
    for expected in accepted:
        assert steps.data(await steps.drain(queen, queue, 1)) == [expected]
    await steps.push(queen, queue, "after")
    assert steps.data(await steps.pop_waiting(queen, queue)) == ["after"]


@pytest.mark.alone
@pytest.mark.client("0.15")
async def maintenance_of_pops_delivers_no_message(queen, queue):
    await steps.push(queen, queue, 1)
    answer = await queen.admin.set_pop_maintenance_mode(True)
    try:
        assert answer["popMaintenanceMode"] is True
        assert (await queen.admin.get_pop_maintenance_mode())["popMaintenanceMode"] is True
        assert await steps.pop_now(queen, queue) == []
        await steps.push(queen, queue, 2)
    finally:
        answer = await queen.admin.set_pop_maintenance_mode(False)
    assert answer["popMaintenanceMode"] is False
    assert steps.data(await steps.drain(queen, queue, 2)) == [1, 2]


@pytest.mark.alone
@pytest.mark.client("0.15")
async def a_waiting_pop_is_answered_after_maintenance(queen, other, queue):
    await steps.push(queen, queue, 1)
    await queen.admin.set_pop_maintenance_mode(True)
    try:
        seen = []

        async def handler(message):
            seen.append(message["data"])

        builder = other.queue(queue).batch(1).limit(1)
        consuming = asyncio.create_task(steps.within(builder.consume(handler)))
        await asyncio.sleep(0.3)
        assert seen == []
    finally:
        await queen.admin.set_pop_maintenance_mode(False)
    await consuming
    assert seen == [1]
