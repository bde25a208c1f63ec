"""A pod that is asked by way of the API server."""

from __future__ import annotations

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from tests.unit.kube.fake_api import client_of, running

PATH = "/api/v1/namespaces/ops/pods/https:operator-1:10350/proxy/arrived"


async def ask(client: KubeClient, most: int = 4096) -> Object:
    return await client.ask_pod("ops", "operator-1", 10350, "/arrived", most=most)


async def test_it_is_asked_over_tls_by_name_and_port() -> None:
    async with running() as fake, client_of(fake) as client:
        fake.page_size = 1
        assert await ask(client)
        assert [path for _, path, _ in fake.requests] == [PATH]


@pytest.mark.parametrize("fault", [503, 429])
async def test_a_failure_is_the_answer_and_no_reason_to_ask_again(fault: int) -> None:
    async with running() as fake, client_of(fake) as client:
        fake.page_size = 1
        fake.list_faults.append(fault)
        with pytest.raises(errors.KubeError):
            _ = await ask(client)
        assert len(fake.requests) == 1


async def test_a_long_answer_is_not_read() -> None:
    async with running() as fake, client_of(fake) as client:
        fake.page_size = 1
        with pytest.raises(errors.TooLong):
            _ = await ask(client, most=10)
