"""Passes over a Token: made, renewed, taken away, and never written over what is not its own."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.kube.resources import CLUSTERS, SECRETS, TOKENS
from slinky_operator.token import plan
from tests.unit.token.worlds import KEY, OTHER_KEY, START, TokenWorld

ALICE: dict[str, Any] = {
    "auth": {"tokens": [{"namespaces": ["ns", "lab"], "usernames": ["alice"], "maxLifetime": "8h"}]}
}

OTHER_TOKEN = {
    "apiVersion": "slinky.slurm.net/v1alpha1", "kind": "Token", "name": "x", "uid": "other", "controller": True,
}  # fmt: skip


@pytest.fixture
def world() -> TokenWorld:
    made = TokenWorld()
    made.cluster()
    made.token(lifetime="15m")
    return made


async def test_a_token_is_in_a_secret_of_its_name_and_goes_with_it(world: TokenWorld) -> None:
    await world.step()
    claims = world.claims()
    assert claims is not None
    assert (claims.username, claims.issued, claims.life) == ("nobody", START, timedelta(minutes=15))
    secret = world.kube.objects["secrets", "ns", "portal"]
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["blockOwnerDeletion"]) == ("Token", "uid-of-ns-portal", False)
    assert world.ready()[:2] == ("True", "AsExpected")
    status = world.status()
    assert (status["username"], status["secretName"]) == ("nobody", "portal")
    assert (status["issuedAt"], status["expiresAt"]) == ("2026-11-22T12:00:00Z", "2026-11-22T12:15:00Z")


async def test_a_pass_that_finds_all_in_order_writes_nothing(world: TokenWorld) -> None:
    await world.step()
    result = await world.later(seconds=30)
    assert world.kube.writes == ["create"]
    assert len(world.kube.statuses) == 1
    assert result.requeue_after == plan.CHECK_S


async def test_it_is_renewed_at_half_of_its_life_long_before_it_ends(world: TokenWorld) -> None:
    world.token(lifetime="60s")
    await world.step()
    ends = []
    for _ in range(600):
        before = world.claims()
        result = await world.later(seconds=1)
        after = world.claims()
        assert before is not None
        assert after is not None
        assert after.expires - world.now >= timedelta(seconds=26)
        assert result.requeue_after is not None
        assert result.requeue_after <= 31
        if after != before:
            ends.append(after.issued - before.issued)
    assert {timedelta(seconds=26) <= one <= timedelta(seconds=34) for one in ends} == {True}
    assert len(set(ends)) > 1


async def test_a_pass_that_comes_late_renews_at_once(world: TokenWorld) -> None:
    await world.step()
    await world.later(hours=3)
    claims = world.claims()
    assert claims is not None
    assert claims.issued == world.now


async def test_a_clock_that_was_set_back_leaves_no_token_of_the_future(world: TokenWorld) -> None:
    await world.step()
    await world.later(hours=-1)
    claims = world.claims()
    assert claims is not None
    assert claims.issued == world.now


async def test_a_secret_that_was_deleted_or_changed_is_written_again(world: TokenWorld) -> None:
    await world.step()
    await world.kube.delete(SECRETS, "portal", "ns")
    await world.later(seconds=30)
    assert world.claims() is not None
    await world.kube.merge_patch(SECRETS, "portal", {"data": {"auth-token": "AAAA"}}, "ns")
    await world.later(seconds=30)
    assert world.claims() is not None


async def test_an_immutable_secret_of_its_own_is_made_again(world: TokenWorld) -> None:
    await world.step()
    await world.kube.merge_patch(SECRETS, "portal", {"immutable": True}, "ns")
    await world.later(minutes=8)
    await world.step()
    claims = world.claims()
    assert claims is not None
    assert claims.issued == world.now
    assert "immutable" not in world.kube.objects["secrets", "ns", "portal"]


@pytest.mark.parametrize("owners", [[], [OTHER_TOKEN]], ids=["a user's", "another Token's"])
async def test_a_secret_that_is_not_its_own_is_never_changed(world: TokenWorld, owners: list[Any]) -> None:
    world.secret("portal", "ns", {"auth-token": b"password", "more": b"x"}, ownerReferences=owners)
    before = json.dumps(world.kube.objects["secrets", "ns", "portal"])
    for _ in range(3):
        await world.later(minutes=10)
    world.cluster(auth={"tokens": [{"usernames": ["alice"]}]})
    await world.later(minutes=10)
    assert json.dumps(world.kube.objects["secrets", "ns", "portal"]) == before
    assert world.kube.writes == []


async def test_a_foreign_secret_is_named(world: TokenWorld) -> None:
    world.secret("portal", "ns", {"auth-token": b"password"})
    await world.step()
    status, reason, message = world.ready()
    assert (status, reason) == ("False", "SecretNotOwned")
    assert "Secret portal exists and it was not made for this Token" in message
    assert [one for one, _ in world.events.told] == ["SecretNotOwned"]
    assert "expiresAt" not in world.status()
    await world.later(seconds=30)
    assert len(world.events.told) == 1


async def test_a_token_made_again_waits_until_the_secret_of_the_former_is_collected(world: TokenWorld) -> None:
    await world.step()
    former = world.kube.objects["tokens", "ns", "portal"]
    await world.kube.delete(TOKENS, "portal", "ns")
    world.kube.put(TOKENS, {**former, "status": {}, "metadata": {**former["metadata"], "uid": "next"}})
    result = await world.step()
    assert result.requeue_after == plan.SOON_S
    assert world.ready()[1] == "SecretNotOwned"
    await world.kube.delete(SECRETS, "portal", "ns")
    await world.step()
    assert world.ready()[0] == "True"


@pytest.mark.parametrize("when", ["create", "renew", "clear"])
async def test_a_secret_that_changes_between_reading_and_writing_stays(world: TokenWorld, when: str) -> None:
    if when != "create":
        await world.step()
    if when == "clear":
        world.cluster(auth={"tokens": [{"usernames": ["alice"]}]})

    def replaced() -> None:
        world.kube.objects.pop(("secrets", "ns", "portal"), None)
        world.secret("portal", "ns", {"auth-token": b"password"})

    world.kube.before_write = replaced
    result = await world.later(minutes=10)
    assert world.value() == b"password"
    assert result.requeue_after == 0.5
    await world.step()
    assert world.value() == b"password"
    assert world.ready()[0] == "False"


async def test_a_grant_that_is_taken_away_takes_the_token(world: TokenWorld) -> None:
    world.cluster(**ALICE)
    world.token(username="alice")
    await world.step()
    assert world.claims() is not None
    world.cluster(auth={"tokens": [{"usernames": ["bob"]}]})
    await world.step()
    assert world.value() == b""
    status, reason, message = world.ready()
    assert (status, reason) == ("False", "NotGranted")
    assert "Cluster slurm does not grant tokens of alice to namespace ns" in message
    assert not {"issuedAt", "expiresAt", "secretName"} & world.status().keys()
    world.cluster(**ALICE)
    await world.step()
    assert world.claims() is not None


@pytest.mark.parametrize("user", ["slurm", "root"])
async def test_a_tenant_gets_neither_slurm_nor_root(world: TokenWorld, user: str) -> None:
    world.cluster(auth={"tokens": [{"namespaces": ["ns"], "usernames": ["*"]}]})
    world.token(username=user)
    await world.step()
    assert world.kube.writes == []
    assert world.ready()[1] == "NotGranted"
    assert world.ready()[2].endswith("spec.auth.tokens, by its exact name")


async def test_another_namespace_gets_what_is_granted_to_it(world: TokenWorld) -> None:
    world.cluster(**ALICE)
    for name, where in (("mine", "lab"), ("theirs", "evil")):
        world.token(name, where, username="alice", clusterRef={"name": "slurm", "namespace": "ns"})
        await world.step(name, where)
    assert world.claims("mine", "lab") is not None
    assert world.ready("theirs", "evil")[1] == "NotGranted"


async def test_a_tenant_does_not_learn_whether_a_cluster_exists(world: TokenWorld) -> None:
    messages = set()
    for name in ("slurm", "other"):
        world.token("spy", "evil", clusterRef={"name": name, "namespace": "ns"})
        await world.step("spy", "evil")
        messages.add((world.ready("spy", "evil")[1], world.ready("spy", "evil")[2].replace(name, "C")))
    assert len(messages) == 1


async def test_a_life_beyond_the_grant_is_refused_and_the_default_fits_into_it(world: TokenWorld) -> None:
    world.cluster(auth={"tokens": [{"usernames": ["alice"], "maxLifetime": "10m"}]})
    world.token(username="alice", lifetime="11m")
    await world.step()
    _, reason, message = world.ready()
    assert reason == "LifetimeTooLong"
    assert message.startswith("spec.lifetime is 660s, and the Cluster grants tokens of alice for 600s at most (spec.")
    world.token(username="alice")
    await world.step()
    claims = world.claims()
    assert claims is not None
    assert claims.life == timedelta(minutes=10)


async def test_a_grant_that_is_shortened_shortens_the_token(world: TokenWorld) -> None:
    world.cluster(auth={"tokens": [{"usernames": ["alice"]}]})
    world.token(username="alice")
    await world.step()
    world.cluster(auth={"tokens": [{"usernames": ["alice"], "maxLifetime": "1m"}]})
    await world.step()
    claims = world.claims()
    assert claims is not None
    assert claims.life == timedelta(minutes=1)


async def test_another_key_of_the_cluster_makes_another_token(world: TokenWorld) -> None:
    await world.step()
    world.cluster(key=OTHER_KEY)
    await world.later(seconds=1)
    assert world.claims(key=KEY) is None
    assert world.claims(key=OTHER_KEY) is not None


async def test_without_the_key_the_token_stays(world: TokenWorld) -> None:
    await world.step()
    before = world.value()
    await world.kube.delete(SECRETS, "slurm-auth-copy", "ns")
    await world.later(minutes=10)
    assert world.value() == before
    assert world.ready()[:2] == ("False", "ClusterNotReady")
    assert world.status()["expiresAt"] == "2026-11-22T12:15:00Z"


async def test_the_key_of_another_cluster_of_the_name_is_not_used(world: TokenWorld) -> None:
    world.secret("slurm-auth-copy", "ns", {"jwt.key": OTHER_KEY})
    await world.step()
    assert world.kube.writes == []


async def test_a_key_that_cannot_sign_is_said(world: TokenWorld) -> None:
    world.cluster(key=b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    await world.step()
    assert world.ready()[1] == "SecretInvalid"
    assert "BEGIN" not in world.ready()[2]


async def test_without_the_cluster_the_token_stays(world: TokenWorld) -> None:
    await world.step()
    before = world.value()
    await world.kube.delete(CLUSTERS, "slurm", "ns")
    await world.later(minutes=10)
    assert world.value() == before
    assert world.ready()[1:] == (
        "ClusterNotFound",
        "there is no Cluster slurm in namespace ns, or its spec is invalid",
    )


async def test_a_cluster_elsewhere_has_its_keys_elsewhere(world: TokenWorld) -> None:
    world.cluster(server="http://there:6820", token={"secretRef": {"name": "t"}})
    await world.step()
    assert world.ready()[1] == "NotSupported"


OF_CLUSTERS = ["slurm-auth-jwt", "x-auth-slurm", "y-auth-copy", "slurm-job-logs", "slurm-database", "slurm-accounting"]


@pytest.mark.parametrize("name", [*OF_CLUSTERS, "slurm-database-password", "slurm-exporter", "site-ssh-host-keys"])
async def test_names_of_secrets_of_clusters_are_kept(world: TokenWorld, name: str) -> None:
    world.token(secretRef={"name": name})
    await world.step()
    assert world.kube.writes == []
    assert world.ready()[1] == "SecretNameReserved"


async def test_one_that_does_not_say_outlives_half_a_day_without_an_operator(world: TokenWorld) -> None:
    world.token()
    await world.step()
    claims = world.claims()
    assert claims is not None
    assert claims.life == timedelta(hours=24)
    world.now += timedelta(hours=12)
    assert claims.expires > world.now


async def test_one_that_is_not_renewed_ends_once_and_is_restored_with_the_same_end(world: TokenWorld) -> None:
    world.token(refresh=False)
    await world.step()
    first = world.value()
    await world.later(minutes=10)
    assert world.value() == first
    await world.kube.delete(SECRETS, "portal", "ns")
    await world.later(minutes=1)
    claims = world.claims()
    assert claims is not None
    assert claims.expires == START + timedelta(minutes=15)
    await world.later(minutes=30)
    assert world.claims() == claims
    assert world.ready()[:2] == ("False", "TokenExpired")
    await world.kube.delete(SECRETS, "portal", "ns")
    await world.later(minutes=1)
    assert world.value() == b""
    assert world.status()["expiresAt"] == "2026-11-22T12:15:00Z"


async def test_no_more_are_served_than_the_limit_and_the_oldest_first(
    world: TokenWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MOST", 2)
    for name in ("b", "c", "d"):
        world.now += timedelta(seconds=1)
        world.token(name)
    for name in ("portal", "b", "c", "d"):
        await world.step(name)
    assert [world.ready(name)[1] for name in ("portal", "b", "c", "d")] == ["AsExpected"] * 2 + ["TooManyTokens"] * 2
    await world.kube.delete(TOKENS, "portal", "ns")
    await world.step("c")
    assert world.ready("c")[1] == "AsExpected"


async def test_many_are_looked_at_less_often(world: TokenWorld) -> None:
    for number in range(1000):
        world.token(f"t{number}", "other")
    result = await world.step()
    assert result.requeue_after == pytest.approx(100.1)


async def test_no_token_and_no_key_is_shown_or_logged(world: TokenWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await world.step()
    await world.later(minutes=8)
    shown = caplog.text + json.dumps(world.status()) + repr(world.events.told)
    assert world.value().decode() not in shown
    assert KEY.decode() not in shown


async def test_an_invalid_token_is_reported(world: TokenWorld) -> None:
    world.token(username="0")
    await world.step()
    assert world.ready()[:2] == ("False", "InvalidSpec")
    assert "username" in world.ready()[2]
    assert world.kube.writes == []


def test_a_cluster_triggers_its_tokens_when_grants_or_keys_change(world: TokenWorld) -> None:
    world.token("far", "lab", clusterRef={"name": "slurm", "namespace": "ns"})
    world.token("none", "lab", clusterRef={"name": "slurm"})
    trigger = world.reconciler.triggers.cluster
    old = world.kube.objects["clusters", "ns", "slurm"]
    about = old["metadata"]
    assert set(trigger(old, {**old, "metadata": {**about, "generation": 9}})) == {("ns", "portal"), ("lab", "far")}
    pending = {**old, "status": {"conditions": [{"type": "Degraded", "reason": "KeyPending"}]}}
    assert set(trigger(pending, old)) == {("ns", "portal"), ("lab", "far")}
    assert set(trigger(old, {**old, "status": {"jobs": {"running": 3}}})) == set()


def test_a_token_triggers_itself_unless_only_its_status_changed(world: TokenWorld) -> None:
    trigger = world.reconciler.triggers.token
    obj = world.kube.objects["tokens", "ns", "portal"]
    assert list(trigger(None, obj)) == [("ns", "portal")]
    assert list(trigger(obj, {**obj, "status": {"summary": "x"}})) == []
    touched = {**obj, "metadata": {**obj["metadata"], "annotations": {"touch": "1"}}}
    assert list(trigger(obj, touched)) == [("ns", "portal")]
