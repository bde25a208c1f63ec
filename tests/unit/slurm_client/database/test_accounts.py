"""Accounts, users, associations and QOS: what is read and written, what is refused before anything is sent."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client import errors, wire
from slurm_client.decode.database import accounts, qos
from slurm_client.decode.database import limits as decode_limits
from slurm_client.decode.names import Nameless
from slurm_client.encode.database import accounts as encode
from slurm_client.encode.database import limits as encode_limits
from slurm_client.encode.database import qos as encode_qos
from slurm_client.models import (
    INFINITE,
    AccountSpec,
    AssociationKey,
    AssociationLimits,
    AssociationSpec,
    QosLimits,
    QosSpec,
    UserSpec,
)
from slurm_client.notation.tres import Tres
from tests.unit.slurm_client.database.slurmdbd import Slurmdbd, client
from tests.unit.slurm_client.spec import complaints_about_request
from tests.unit.slurm_client.strategies import objects

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from slurm_client import SlurmClient

VALUES = {"count": 7, "minutes": timedelta(hours=2), "tres": Tres.parse("cpu=4,gres/gpu:h100=2")}


def full(kind: Any) -> Any:
    """Return limits with every one set."""
    return kind(**{each.name: VALUES[each.metadata["kind"]] for each in dataclasses.fields(kind)})


def keys(model: str) -> frozenset[str]:
    """Return the keys of an object in any parser."""
    return frozenset().union(*(wire.fields(version, model) for version in wire.PARSERS))


names = st.text(min_size=1, max_size=8)


@given(objects(keys("Account"), name=names), objects(keys("User"), name=names), objects(keys("Wckey")))
def test_any_account_user_and_wckey_with_a_name_is_read(
    account: dict[str, Any], user: dict[str, Any], wckey: dict[str, Any]
) -> None:
    hash(accounts.account(account))
    hash(accounts.user(user))
    hash(accounts.wckey(wckey))


@given(objects(keys("Assoc"), account=names), objects(keys("Qos"), name=names))
def test_any_association_and_qos_is_read(association: dict[str, Any], entry: dict[str, Any]) -> None:
    assert accounts.association(association).account == association["account"]
    assert qos.qos(entry).name == entry["name"]


def test_what_has_no_name_is_not_passed_over() -> None:
    for decode in (accounts.account, accounts.user, accounts.association, qos.qos):
        with pytest.raises(Nameless):
            decode({})


@pytest.mark.parametrize("kind", [AssociationLimits, QosLimits])
def test_limits_are_written_where_they_are_read(kind: Any) -> None:
    for wanted in (
        full(kind),
        kind(**{each.name: INFINITE for each in dataclasses.fields(kind) if "tres" not in each.name}),
    ):
        body: dict[str, Any] = {}
        encode_limits.add_limits(body, wanted)
        found = decode_limits.limits(kind, body)
        assert found == wanted
        assert encode_limits.unlike(wanted, found) == []
        assert kind() == decode_limits.limits(kind, {})


def test_limits_that_are_not_as_wanted_are_named() -> None:
    wanted = AssociationLimits(max_jobs=3, group_tres=Tres.parse("cpu=4,mem=1G"), group_wall=timedelta(seconds=61))
    found = AssociationLimits(max_jobs=4, group_tres=Tres.parse("mem=1024,cpu=4"), group_wall=timedelta(minutes=2))
    assert encode_limits.unlike(wanted, found) == ["max_jobs"]
    assert encode_limits.unlike(AssociationLimits(max_jobs=INFINITE), AssociationLimits()) == []
    assert encode_limits.unlike(AssociationLimits(max_jobs=INFINITE), found) == ["max_jobs"]
    assert encode_limits.unlike(AssociationLimits(max_jobs=0), AssociationLimits(max_jobs=INFINITE)) == ["max_jobs"]


ASSOCIATION = AssociationSpec(
    account="physics",
    cluster="test",
    user="alice",
    partition="all",
    shares=3,
    priority=9,
    qos=["normal"],
    default_qos="normal",
    comment="hm",
    is_default=True,
    limits=full(AssociationLimits),
)


@pytest.mark.parametrize("version", wire.PARSERS)
def test_bodies_are_what_each_parser_takes(version: str) -> None:
    old = "total" not in wire.fields(version, "QosLimitsMaxTresMinutes")
    account = encode.account(AccountSpec(name="a", coordinators=["alice"]), "d", "o")
    user = encode.user(UserSpec(name="alice", administrator_level="Operator", default_account="a", default_wckey="w"))
    wanted = QosSpec(
        name="fast",
        description="d",
        flags=["DENY_LIMIT"],
        priority=3,
        preempts=["normal"],
        preempt_modes=["REQUEUE"],
        grace_time=timedelta(seconds=30),
        usage_factor=1.5,
        usage_threshold=0.5,
        limits=dataclasses.replace(full(QosLimits), **({"group_tres_minutes": None} if old else {})),
    )
    root = dataclasses.replace(ASSOCIATION, user="", partition="", parent_account="root")
    for name, body in (
        ("db_post_accounts", {"accounts": [account]}),
        ("db_post_users", {"users": [user]}),
        ("db_post_associations", {"associations": [encode.association(ASSOCIATION)]}),
        ("db_post_users_association", {"association_condition": encode.new_association(ASSOCIATION), "user": {}}),
        ("db_post_accounts_association", {"association_condition": encode.new_association(root)}),
        ("db_post_qos", {"qos": [encode_qos.qos(wanted)]}),
    ):
        assert not complaints_about_request(version, name, body), name


def test_a_new_association_names_no_empty_list_and_no_limit_that_it_has_not() -> None:
    spec = AssociationSpec(
        account="a", cluster="c", limits=AssociationLimits(max_jobs=INFINITE, group_tres=Tres(), group_jobs=0)
    )
    assert encode.new_association(spec) == {
        "accounts": ["a"],
        "clusters": ["c"],
        "association": {"grpjobs": {"set": True, "infinite": False, "number": 0}},
    }


REFUSED: list[Callable[[SlurmClient], Awaitable[Any]]] = [
    lambda slurm: slurm.db.delete_association(AssociationKey("")),
    lambda slurm: slurm.db.delete_association(AssociationKey("a")),
    lambda slurm: slurm.db.delete_association(AssociationKey("", "c", "u")),
    lambda slurm: slurm.db.delete_association(AssociationKey("a", "c", "", "p")),
    lambda slurm: slurm.db.delete_account(""),
    lambda slurm: slurm.db.delete_account("root"),
    lambda slurm: slurm.db.delete_user(""),
    lambda slurm: slurm.db.delete_qos(""),
    lambda slurm: slurm.db.update_association(AssociationSpec(account="a", cluster="c", qos=[])),
    lambda slurm: slurm.db.create_association(AssociationSpec(account="a", cluster="c", user="u", parent_account="b")),
    lambda slurm: slurm.db.associations(account=""),
    lambda slurm: slurm.db.create_account(AccountSpec(name="")),
    lambda slurm: slurm.db.create_account(AccountSpec(name="a", coordinators="alice")),
    lambda slurm: slurm.db.update_association(
        AssociationSpec(account="a", cluster="c", limits=AssociationLimits(max_jobs="5"))  # type: ignore[arg-type]
    ),
]


@pytest.mark.parametrize("call", REFUSED)
async def test_what_could_mean_more_than_one_is_refused_unsent(
    call: Callable[[SlurmClient], Awaitable[Any]],
) -> None:
    slurmdbd = Slurmdbd()
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.InvalidArgument):
            await call(slurm)
    assert not [each for each in slurmdbd.requests if "slurmdb/" in each]


async def test_a_limit_that_a_parser_has_not_is_refused_unsent() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/qos/": (200, {"qos": [{"name": "fast"}]})})
    async with client(slurmdbd, api_version="v0.0.41") as slurm:
        with pytest.raises(errors.NotSupported) as error:
            await slurm.db.update_qos(QosSpec(name="fast", limits=QosLimits(group_tres_minutes=Tres.parse("cpu=1"))))
    having = (each for each in wire.PARSERS if "total" in wire.fields(each, "QosLimitsMaxTresMinutes"))
    assert error.value.available_in == tuple(having)
    assert not [each for each in slurmdbd.requests if "POST" in each]


def entry(user: str = "", partition: str = "", number: int = 0, account: str = "a") -> dict[str, Any]:
    return {"account": account, "cluster": "c", "user": user, "partition": partition, "id": number}


async def test_an_association_without_a_number_is_not_deleted_where_others_match() -> None:
    slurmdbd = Slurmdbd(answers={"slurmdb/associations/": (200, {"associations": [entry("u"), entry("u", "p")]})})
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.NotSupported):
            await slurm.db.delete_association(AssociationKey("a", "c", "u"))
    assert not [each for each in slurmdbd.requests if "DELETE" in each]


async def test_the_association_of_an_account_is_not_deleted_with_those_below_it() -> None:
    for below in (entry("u", number=2), {**entry(number=2, account="b"), "parent_account": "a"}):
        slurmdbd = Slurmdbd(answers={"slurmdb/associations/": (200, {"associations": [entry(number=1), below]})})
        async with client(slurmdbd) as slurm:
            with pytest.raises(errors.Conflict, match="below"):
                await slurm.db.delete_association(AssociationKey("a", "c"))
        assert not [each for each in slurmdbd.requests if "DELETE" in each]


async def test_what_slurm_passes_over_in_silence_is_an_error() -> None:
    nothing: dict[str, Any] = {"errors": [], "warnings": []}
    slurmdbd = Slurmdbd(answers={"slurmdb/associations/": (200, {**nothing, "associations": [entry("u", number=3)]})})
    async with client(slurmdbd) as slurm:
        with pytest.raises(errors.InvalidRequest, match=r"limits\.max_jobs"):
            await slurm.db.update_association(
                AssociationSpec(account="a", cluster="c", user="u", limits=AssociationLimits(max_jobs=3))
            )
        slurmdbd.answers = {
            "slurmdb/associations/": (200, {**nothing, "associations": []}),
            "slurmdb/users_association/": (304, None),
        }
        with pytest.raises(errors.NotFound, match="made no association"):
            await slurm.db.create_association(AssociationSpec(account="a", cluster="c", user="u"))
