"""The fake's slurmdbd: accounts, associations, QOS, and a history that outlives what slurmctld remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
import pytest_asyncio

from slurm_client import wire
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.server import PARSERS_OF_RELEASE
from tests.unit.slurm_client.spec import complaints_about_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.thorough

KEY = b"k" * 32
CASES = [(release, version) for release, versions in PARSERS_OF_RELEASE.items() for version in versions]
TIMES = {"start_time": "now-1day", "end_time": "now+1day"}


def token(user: str = "root", key: bytes = KEY) -> str:
    return jwt.encode({"sun": user, "iat": 1, "exp": 2**33}, key, algorithm="HS256")


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd(key=KEY) as server:
        server.add_node("w-0", cpus=4)
        yield server


async def ask(
    fake: FakeSlurmrestd, method: str, path: str, body: object = None, *, sent: str = "", **query: str
) -> tuple[int, Any]:
    async with httpx.AsyncClient(headers={"X-SLURM-USER-TOKEN": sent or token()}) as http:
        url = f"{fake.url}/slurmdb/{fake.versions[-1]}/{path}"
        reply = await http.request(method, url, json=body, params=query)
    return reply.status_code, reply.json() if reply.content else None


@pytest.mark.parametrize(("release", "version"), CASES, ids=["-".join(case) for case in CASES])
async def test_every_answer_is_as_the_specification_of_its_parser_says(release: str, version: str) -> None:
    async with FakeSlurmrestd(release=f"{release}.5", versions=[version], key=KEY) as fake:
        fake.add_node("w-0", cpus=4)
        fake.finish_job(fake.add_job(nodes=["w-0"]).id, "FAILED")
        fake.add_job(nodes=["w-0"])
        fake.database.add_account("physics")
        fake.database.add_user("ada")
        fake.database.add_association("physics")
        fake.database.add_association("physics", user="ada", max={"jobs": {"active": 5}})
        fake.database.set_coordinators("physics", ["ada"])
        named = {"job_id": "1", "id": "1", "qos": "normal", "name": "ada", "account_name": "physics"}
        named["cluster_name"] = "fake"
        for endpoint in wire.endpoints(version):
            if endpoint.service != "slurmdb" or endpoint.method != "GET":
                continue
            query = {"user": "ada"} if endpoint.operation == "db_get_association" else {}
            path = endpoint.path.lstrip("/").format_map(named)
            status, answer = await ask(fake, "GET", path, **query)
            assert status == 200, endpoint.operation
            if (version, endpoint.operation) == ("v0.0.40", "db_get_diag"):
                # Slurm writes other keys there than its own specification has.
                del answer["statistics"]["rollups"]
            assert complaints_about_answer(version, endpoint.operation, answer) == [], endpoint.operation


async def test_the_history_keeps_a_job_that_slurmctld_has_forgotten(fake: FakeSlurmrestd) -> None:
    job = fake.add_job(nodes=["w-0"], name="long ago")
    fake.finish_job(job.id, "TIMEOUT")
    fake.forget_job(job.id)
    assert job.id not in fake.jobs
    _, answer = await ask(fake, "GET", f"job/{job.id}")
    (kept,) = answer["jobs"]
    assert (kept["name"], kept["state"]["current"]) == ("long ago", ["TIMEOUT"])
    _, answer = await ask(fake, "GET", "jobs/", state="TIMEOUT", **TIMES)
    assert [each["job_id"] for each in answer["jobs"]] == [job.id]
    _, answer = await ask(fake, "GET", "jobs/", state="FAILED", **TIMES)
    assert answer["jobs"] == []


async def test_jobs_are_found_by_the_time_in_which_they_were_there() -> None:
    now = 1_700_000_000.0
    async with FakeSlurmrestd(key=KEY, clock=lambda: now) as fake:
        fake.add_node("w-0", cpus=4)
        job = fake.add_job(nodes=["w-0"])
        now += 100
        fake.finish_job(job.id)
        now += 100
        for since, until, found in ((0, 50, 1), (50, 150, 1), (101, 200, 0), (-50, -1, 0), (100, 100, 1)):
            window = {"start_time": f"uts{1_700_000_000 + since}", "end_time": f"uts{1_700_000_000 + until}"}
            _, answer = await ask(fake, "GET", "jobs/", **window)
            assert len(answer["jobs"]) == found, (since, until)


async def test_an_account_goes_with_its_associations_and_its_users_stay(fake: FakeSlurmrestd) -> None:
    fake.database.add_user("ada")
    fake.database.add_association("physics")
    fake.database.add_association("physics", user="ada")
    status, answer = await ask(fake, "DELETE", "account/physics")
    assert (status, answer["removed_accounts"]) == (200, ["physics"])
    assert [each["account"] for each in fake.database.associations] == ["root", "root"]
    assert fake.database.users["ada"]["default"]["account"] == ""
    assert (await ask(fake, "DELETE", "account/physics"))[0] == 304


async def test_coordinators_of_an_account_above_are_not_direct(fake: FakeSlurmrestd) -> None:
    for name, parent in (("science", "root"), ("physics", "science")):
        fake.database.add_association(name, parent=parent)
    fake.database.set_coordinators("science", ["ada"])
    assert fake.database.coordinators_of("science") == {"ada": True}
    assert fake.database.coordinators_of("physics") == {"ada": False}


async def test_only_administrators_and_operators_change_what_is_there(fake: FakeSlurmrestd) -> None:
    body = {"accounts": [{"name": "physics", "description": "d", "organization": "o"}]}
    fake.database.add_user("ada")
    status, answer = await ask(fake, "POST", "accounts/", body, sent=token("ada"))
    assert (status, [each["error_number"] for each in answer["errors"]]) == (422, [2002])
    assert "physics" not in fake.database.accounts
    fake.database.add_user("ada", administrator_level=["Operator"])
    assert (await ask(fake, "POST", "accounts/", body, sent=token("ada")))[0] == 200
    assert "physics" in fake.database.accounts


async def test_slurmdbd_down_is_not_slurmctld_down(fake: FakeSlurmrestd) -> None:
    fault = fake.faults.slurmdbd_down()
    status, answer = await ask(fake, "GET", "accounts/")
    assert (status, [each["error_number"] for each in answer["errors"]]) == (502, [7000])
    async with httpx.AsyncClient(headers={"X-SLURM-USER-TOKEN": token()}) as http:
        assert (await http.get(f"{fake.url}/slurm/{fake.versions[-1]}/nodes/")).status_code == 200
    fake.faults.remove(fault)
    fake.faults.controller_down()
    assert (await ask(fake, "GET", "accounts/"))[0] == 200


async def test_a_bad_token_looks_like_a_slurmdbd_that_is_down(fake: FakeSlurmrestd) -> None:
    status, answer = await ask(fake, "GET", "accounts/", sent=token(key=b"x" * 32))
    assert (status, [each["error_number"] for each in answer["errors"]]) == (502, [7000])


async def test_slurmctlds_paths_are_none_of_slurmdbds(fake: FakeSlurmrestd) -> None:
    async with httpx.AsyncClient(headers={"X-SLURM-USER-TOKEN": token()}) as http:
        for path in ("slurm/{}/accounts/", "slurmdb/{}/nodes/"):
            assert (await http.get(f"{fake.url}/{path.format(fake.versions[-1])}")).status_code == 404
