"""The kubelet API with mounted certificates that end, that have ended, and that are none."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from slinky_operator.kube.objects import Object
from slinky_operator.virtual_nodes.kubelet.answers import Answers
from slinky_operator.virtual_nodes.kubelet.certificate import self_signed
from slinky_operator.virtual_nodes.kubelet.service import KubeletApi, Serving
from tests.support.kubelet_callers import until

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
SECRET = "the Secret in virtualNodes.certificateSecret of the operator's chart"


class Kube:
    """An API server that publishes no authority."""

    async def get(self, *_: Any, **__: Any) -> Object:
        return {"data": {}}


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[KubeletApi, list[str]]]:
    """The API with the pair in a folder, and what administrators see."""
    told: list[str] = []
    answers = cast("Answers", SimpleNamespace(answer=None))
    api = KubeletApi(
        Serving("127.0.0.1", 0, folder, None, ("127.0.0.1",)), answers, Kube(), tell=told.append, now=lambda: NOW
    )
    task = asyncio.create_task(api.run())
    await until(lambda: bool(api.port), "it does not listen")
    try:
        yield api, told
    finally:
        _ = task.cancel()
        _ = await asyncio.wait({task})


async def shown(port: int) -> bytes:
    """The certificate that a connection gets."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found


def mount(folder: Path, age: int) -> bytes:
    """Mount a certificate for a year that was made so many days ago."""
    pair = self_signed(("127.0.0.1",), NOW - timedelta(days=age))
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


async def test_a_certificate_that_ends_is_told_of_with_what_to_do(tmp_path: Path) -> None:
    mount(tmp_path, 300)
    async with serving(tmp_path) as (api, told):
        assert told == []
        mount(tmp_path, 360)
        await api.look()
        said = "the certificate of virtual Nodes"
        fails = "where the API server verifies it: renew"
        assert told == [f"{said} ends 2026-12-03T12:00:00Z, and kubectl logs will fail {fails} {SECRET}"]
        ended = mount(tmp_path, 366)
        await api.look()
        assert told[1:] == [f"{said} ended 2026-11-27T12:00:00Z, and kubectl logs fails {fails} {SECRET}"]
        assert await shown(api.port) == ended


async def test_a_pair_that_is_none_from_the_start_lets_another_stand_in(tmp_path: Path) -> None:
    mount(tmp_path, 0)
    (tmp_path / "tls.key").write_text("none\n")
    async with serving(tmp_path) as (api, told):
        (said,) = told
        assert "the certificate and its key cannot be used: tls.key is no key. " in said
        assert said.endswith(f"correct {SECRET}")
        own = await shown(api.port)
        await api.look()
        assert await shown(api.port) == own
        renewed = mount(tmp_path, 0)
        await api.look()
        assert await shown(api.port) == renewed
        assert told == [said]
