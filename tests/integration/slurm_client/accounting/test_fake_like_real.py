"""The fake's slurmdbd answers as the real one: statuses, errors, and every key of every object, in each data parser."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.slurm_client.conftest import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.slurm_client.accounting.clusters import AccountingCluster, Answer, FakeCluster

pytestmark = pytest.mark.long(160)

_serial = itertools.count(1)

NO_LIMIT = {"set": False, "infinite": True, "number": 0}


@pytest.fixture(params=cases("real", oldest=False))
def case(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    chosen: tuple[str, str, str] = request.param
    return chosen


class Both:
    """Asks the real cluster and the fake the same."""

    def __init__(self, real: AccountingCluster, fake: FakeCluster, version: str) -> None:
        self.real, self.fake, self.version = real, fake, version

    async def ask(self, method: str, path: str, body: Any = None, *, as_user: str = "root", **query: str) -> Answer:
        """Ask both, compare, and return the answer of the real one. ``CLUSTER`` stands for the cluster's name."""
        answers = []
        for each in (self.real, self.fake):
            own = _filled(body, each.cluster)
            filled = {key: _filled(value, each.cluster) for key, value in query.items()}
            answers.append(await each.ask(self.version, method, path, own, as_user=as_user, **filled))
        (status, real), (fake_status, fake) = answers
        assert (fake_status, different(fake, real)) == (status, set()), f"{method} {path} {query}"
        return status, real


def _filled(value: Any, cluster: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, cluster) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, cluster) for each in value]
    return cluster if value == "CLUSTER" else value


def different(fake: Any, real: Any) -> set[str]:
    """Return in which parts two answers differ: keys and their types, numbers of errors, sources of warnings."""
    return set(_shape(fake)) ^ set(_shape(real))


def _shape(answer: Any) -> Iterator[str]:
    if not isinstance(answer, dict):
        yield f"text: {bool(answer)}"
        return
    for key, value in answer.items():
        if key == "errors":
            yield from (f"error {each['error_number']}" for each in value)
        elif key == "warnings":
            # Flags in a query need no value, and bring a warning about the type if they have one.
            yield from (f"warning of {each['source']}" for each in value if "Expected" not in each["description"])
        elif value != []:
            yield from _keys(value, key)


def _keys(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of all keys in an object, with the types of what is there; lists of things by their first."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _keys(each, f"{path}/{key}")
    elif isinstance(value, list):
        yield f"{path}[]"
        if value and isinstance(value[0], dict):
            yield from _keys(value[0], f"{path}[]")
    else:
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        yield f"{path} {'number' if numeric else type(value).__name__}"


@pytest.fixture
def both(case: tuple[str, str, str], accounting: AccountingCluster, fake: FakeCluster) -> Both:
    return Both(accounting, fake, case[2])


async def test_the_service(both: Both) -> None:
    for path in ("ping/", "conf", "clusters/", "cluster/CLUSTER", "cluster/none", "tres/", "instances/", "instance/"):
        await both.ask("GET", path)
    for path, key in (("diag/", "statistics"), ("config", "clusters")):
        status, answer = await both.ask("GET", path)
        assert status == 200
        assert answer[key]


async def test_jobs(both: Both) -> None:
    for name in (*both.real.jobs,):
        for each in (both.real, both.fake):
            status, answer = await each.ask(both.version, "GET", f"job/{each.jobs[name]}")
            assert status == 200
            assert {job["name"] for job in answer["jobs"]} == {name}
        real = await both.real.ask(both.version, "GET", f"job/{both.real.jobs[name]}")
        fake = await both.fake.ask(both.version, "GET", f"job/{both.fake.jobs[name]}")
        assert different(fake[1], real[1]) == set()
        described = [_described(answer["jobs"]) for _, answer in (real, fake)]
        assert described[0] == described[1]
    for path in ("job/99999", "job/abc"):
        await both.ask("GET", path)


def _described(jobs: list[dict[str, Any]]) -> list[Any]:
    return sorted(
        (
            job["name"],
            job["state"]["current"],
            job["exit_code"]["status"],
            job["exit_code"]["return_code"]["number"],
            job["exit_code"]["signal"]["name"],
            job["array"]["task_id"],
            [(step["state"], step["exit_code"]["status"]) for step in job["steps"] if step["step"]["name"] == "batch"],
        )
        for job in jobs
    )


@pytest.mark.parametrize(
    "query",
    [
        {"users": "root", "start_time": "now-1hour"},
        {"account": "root", "start_time": "now-1hour"},
        {"account": "none", "start_time": "now-1hour"},
        {"job_name": "failed", "start_time": "now-1hour"},
        {"job_name": "failed,completed", "start_time": "now-1hour"},
        {"partition": "all", "start_time": "now-1hour"},
        {"partition": "none", "start_time": "now-1hour"},
        {"state": "FAILED", "start_time": "now-1hour", "end_time": "now"},
        {"state": "TIMEOUT", "start_time": "now-1hour", "end_time": "now"},
        {"state": "RUNNING"},
        {"state": "FAILED"},
        {"state": "BOGUS"},
        {"state": "FAILED,TIMEOUT"},
        {"start_time": "now-1hour"},
        {"start_time": "now+1hour"},
        {"start_time": "uts1700000000", "end_time": "uts1700000100"},
        {"start_time": "1700000000"},
        {"start_time": "2026-01-01T00:00:00"},
        {"start_time": "bogus"},
    ],
    ids=lambda query: "-".join(query.values()),
)
async def test_filters_of_jobs(both: Both, query: dict[str, str]) -> None:
    _, real = await both.ask("GET", "jobs/", **query)
    _, fake = await both.fake.ask(both.version, "GET", "jobs/", **query)
    known = set(both.real.jobs)
    assert {job["name"] for job in real.get("jobs", [])} & known == {
        job["name"] for job in fake.get("jobs", [])
    } & known


async def test_accounts(both: Both) -> None:
    name = f"account{next(_serial)}"
    given = {"name": name, "description": "of a test", "organization": "tests"}
    bodies: list[dict[str, Any]] = [
        {},
        {"accounts": []},
        {"accounts": [{"name": name}]},
        {"accounts": [{"description": "d", "organization": "o"}]},
        {"accounts": [given]},
        {"accounts": [given | {"description": "changed"}]},
    ]
    for body in bodies:
        await both.ask("POST", "accounts/", body)
    _, answer = await both.ask("GET", f"account/{name}")
    assert answer["accounts"][0]["description"] == "changed"
    await both.ask("GET", "accounts/", description="changed")
    await both.ask("GET", f"account/{name}", with_assocs="true", with_coords="true")
    await both.ask("POST", "accounts/", {"accounts": [given | {"name": "no"}]}, as_user="nobody")
    await both.ask("DELETE", f"account/{name}")
    await both.ask("DELETE", f"account/{name}")
    await both.ask("GET", f"account/{name}")


async def test_associations_from_the_first_to_the_last(both: Both) -> None:
    number = next(_serial)
    above, below, user, other = f"above{number}", f"below{number}", f"ada{number}", f"bob{number}"
    about = {"description": "d", "organization": "o"}

    def in_account(account: str, **limits: Any) -> dict[str, Any]:
        wanted = {"accounts": [account], "clusters": ["CLUSTER"], "association": limits}
        return {"association_condition": wanted, "account": about}

    await both.ask("POST", "accounts_association/", in_account(below, parent=above))
    await both.ask("POST", "accounts_association/", in_account(above, parent="root", fairshare=4))
    await both.ask("POST", "accounts_association/", in_account(above, parent="root", fairshare=4))
    await both.ask("POST", "accounts_association/", in_account(below, parent=above))
    await both.ask("GET", "associations/", account=above)
    for account in (above, "none"):
        wanted = {"accounts": [account], "clusters": ["CLUSTER"], "users": [user], "association": {"fairshare": 2}}
        await both.ask("POST", "users_association/", {"association_condition": wanted, "user": {}})
    _, answer = await both.ask("GET", "association/", user=user, account=above)
    assert answer["associations"][0]["shares_raw"] == 2
    await both.ask("POST", "users/", {"users": [{"name": other}]})
    mine = {"account": above, "cluster": "CLUSTER", "user": other}
    limit = {"set": True, "infinite": False, "number": 5}
    for change in (
        {"max": {"jobs": {"active": limit, "per": {"wall_clock": limit}}}, "shares_raw": 3, "comment": "hm"},
        {"max": {"jobs": {"active": limit | {"number": 6}}}},
        {"max": {"jobs": {"active": NO_LIMIT}}},
    ):
        await both.ask("POST", "associations/", {"associations": [mine | change]})
        found = [await each.ask(both.version, "GET", "association/", user=other) for each in (both.real, both.fake)]
        limits = [answer["associations"][0]["max"]["jobs"] for _, answer in found]
        assert limits[0] == limits[1]
    impossible: list[dict[str, Any]] = [{"account": "none"}, {"cluster": "none"}, {"qos": ["none"]}]
    for wish in impossible:
        await both.ask("POST", "associations/", {"associations": [mine | wish]})
    await both.ask("POST", "associations/", {"associations": [{"account": above, "cluster": "CLUSTER"}]})
    await both.ask("GET", "associations/", account=above)
    await both.ask("GET", "association/", account=above)
    await both.ask("DELETE", "association/", account=above)
    await both.ask("DELETE", "association/", user=other, account=above, cluster="CLUSTER")
    await both.ask("DELETE", "association/", user=other, account=above, cluster="CLUSTER")
    await both.ask("DELETE", "associations/", account=below)
    await both.ask("DELETE", f"user/{user}")
    await both.ask("GET", "associations/", user=user)
    for name in (above, below):
        await both.ask("DELETE", f"account/{name}")
    await both.ask("GET", "associations/", account=above)
    await both.ask("DELETE", f"user/{other}")


async def test_users_and_coordinators(both: Both) -> None:
    number = next(_serial)
    user, account = f"eve{number}", f"team{number}"
    about = {"description": "d", "organization": "o"}
    given = about | {"name": account}
    await both.ask("POST", "users/", {"users": [{"name": user, "administrator_level": ["Operator"]}]})
    await both.ask("POST", "users/", {"users": [{"name": user, "coordinators": [{"name": account, "direct": True}]}]})
    await both.ask("GET", f"user/{user}")
    await both.ask("GET", "user/none")
    await both.ask("GET", "users/", admin_level="Operator")
    wanted = {"accounts": [account], "association": {}}
    await both.ask("POST", "accounts_association/", {"association_condition": wanted, "account": about})
    for coordinators in ([{"name": user, "direct": True}], []):
        await both.ask("POST", "accounts/", {"accounts": [given | {"coordinators": coordinators}]})
        for path in (f"account/{account}", f"user/{user}"):
            for query in ({"with_coords": "true"}, {"with_assocs": "true"}, {}):
                await both.ask("GET", path, **query)
    _, real = await both.real.ask(both.version, "GET", f"account/{account}", with_coords="true")
    assert real["accounts"][0]["coordinators"] == []
    await both.ask("DELETE", f"user/{user}")
    await both.ask("DELETE", f"user/{user}")
    await both.ask("DELETE", f"account/{account}")


async def test_qos(both: Both) -> None:
    name = f"qos{next(_serial)}"
    two = {"set": True, "infinite": False, "number": 2}
    per_user = {"limits": {"max": {"jobs": {"active_jobs": {"per": {"user": two}}}}}}
    for change in ({}, {"priority": two, "description": "d"}, per_user):
        await both.ask("POST", "qos/", {"qos": [{"name": name, **change}]})
        found = [await each.ask(both.version, "GET", f"qos/{name}") for each in (both.real, both.fake)]
        records = [answer["qos"][0] | {"id": 0} for _, answer in found]
        assert records[0] == records[1]
    await both.ask("POST", "qos/", {"qos": [{"description": "without a name"}]})
    for path in ("qos/", f"qos/{name}", "qos/none"):
        await both.ask("GET", path)
    for path in (f"qos/{name}", f"qos/{name}"):
        await both.ask("DELETE", path)


async def test_wckeys_and_clusters(both: Both) -> None:
    number = next(_serial)
    user, key = f"kay{number}", f"key{number}"
    await both.ask("POST", "users/", {"users": [{"name": user}]})
    await both.ask("POST", "wckeys/", {"wckeys": [{"name": key, "user": user, "cluster": "CLUSTER"}]})
    _, answer = await both.ask("GET", "wckeys/", name=key)
    assert [each["name"] for each in answer["wckeys"]] == [key]
    for method in ("GET", "DELETE"):
        await both.ask(method, "wckey/99999")
    for method in ("GET", "DELETE", "GET", "DELETE"):
        await both.ask(method, f"wckey/{key}")
    await both.ask("DELETE", f"user/{user}")
    name = f"cluster{number}"
    await both.ask("POST", "clusters/", {"clusters": [{"name": name}]})
    for method in ("GET", "DELETE", "GET", "DELETE"):
        await both.ask(method, f"cluster/{name}")


async def test_a_token_that_is_not_taken(both: Both) -> None:
    kept = both.real.key, both.fake.key
    try:
        both.real.key = both.fake.key = b"another key of thirty-two bytes.."
        status, answer = await both.ask("GET", "accounts/")
    finally:
        both.real.key, both.fake.key = kept
    assert status == 502
    assert [each["error_number"] for each in answer["errors"]] == [7000]
