"""What the API server says of a Secret that was written: its version, and when that was."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

from slinky_operator.kube.resources import SECRETS
from slinky_operator.reconcile.secrets import SecretReader
from tests.integration.cluster.conftest import Bench

NAME = "mine"


def body(value: bytes) -> dict[str, dict[str, str]]:
    return {"data": {"slurm.jwks": base64.b64encode(value).decode()}}


async def test_each_write_of_a_secret_shows_even_one_that_puts_back_what_it_held(bench: Bench) -> None:
    about = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}}
    await bench.kube.create(SECRETS, {**about, **body(b"a")}, bench.namespace)
    reader = SecretReader(bench.kube)

    async def read() -> tuple[str, datetime, bytes]:
        found = (await reader.read(bench.namespace, [NAME], older_than=-1.0))[NAME]
        assert found.written_at is not None
        return found.version, found.written_at, found.data["slurm.jwks"]

    first, written, value = await read()
    assert value == b"a"
    assert abs(datetime.now(UTC) - written) < timedelta(minutes=1)
    assert (await read())[0] == first
    for other in (b"b", b"a"):
        await bench.kube.merge_patch(SECRETS, NAME, body(other), bench.namespace)
    later, again, value = await read()
    assert value == b"a"
    assert later != first
    assert again >= written
