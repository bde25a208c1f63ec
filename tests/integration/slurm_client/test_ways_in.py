"""Ways to prove to a real slurmrestd who is asking: a Bearer token, and the unix socket of ``rest_auth/local``."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from slurm_client import MintedToken, SlurmClient, errors
from tests.integration.slurm_client.conftest import PARSERS
from tests.support.daemons import _ENTER
from tests.support.slurm_host import NOBODY, SlurmHost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCAL = """
sackd -D & sackd=$!
until [ -S /run/slurm/sack.socket ]; do kill -0 $sackd || exit 1; sleep 0.1; done
exec setpriv --reuid={uid} --regid={uid} --clear-groups \\
    slurmrestd -a rest_auth/local -s openapi/slurmctld unix:/var/spool/rest/socket
"""


@pytest.fixture(params=sorted(PARSERS))
def host(request: pytest.FixtureRequest) -> SlurmHost:
    cluster: SlurmHost = request.getfixturevalue(f"slurm_{request.param.replace('.', '_')}")
    return cluster


async def test_a_bearer_token_is_taken_and_a_bad_one_is_not(host: SlurmHost) -> None:
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root"), bearer=True) as slurm:
        assert "w-0" in await slurm.nodes()
        assert (await slurm.request("GET", "/slurm/{version}/node/w-0")).body["nodes"][0]["name"] == "w-0"
    async with SlurmClient(host.url, MintedToken(b"x" * 32, "root"), bearer=True) as slurm:
        with pytest.raises(errors.Unauthorized):
            await slurm.nodes()
    async with SlurmClient(host.url) as slurm:
        with pytest.raises(errors.Unauthorized, match="this client sends no token"):
            await slurm.nodes()


@pytest.fixture
def socket(host: SlurmHost) -> Iterator[Path]:
    """A socket of a slurmrestd that knows its users by their processes, so it must see those: no PID namespace."""
    folder = host.folder / "spool" / "rest"
    folder.mkdir(exist_ok=True)
    os.chown(folder, NOBODY, NOBODY)
    path = folder / "socket"
    path.unlink(missing_ok=True)
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", _ENTER, "enter", "sh", "-c", LOCAL.format(uid=NOBODY)],
        env=host._environment(),
        start_new_session=True,
    ) as process:
        host.wait_for(path.is_socket, "slurmrestd listens on its socket")
        yield path
        os.killpg(process.pid, signal.SIGTERM)


async def test_a_unix_socket_needs_no_token(socket: Path) -> None:
    async with SlurmClient("http://slurm", unix_socket=socket) as slurm:
        assert (await slurm.ping())[0].responding
        assert "w-0" in await slurm.nodes()
        with pytest.raises(errors.NotFound) as unknown:
            await slurm.node("nosuch")
        assert f" on unix:{socket}" in str(unknown.value)
