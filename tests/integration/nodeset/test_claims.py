"""Claims of pods on a real API server: retained, reused, deleted by policy, and never taken from other owners."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.resources import EVENTS, PERSISTENTVOLUMECLAIMS, PODS
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines

SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
MARK = labels.ANNOTATION_CLAIM_RETENTION
TEMPLATES = [{"metadata": {"name": "data"}, "spec": SPEC}]


async def apply(site: Site, count: int, **policy: str) -> None:
    await site.apply(count, volumeClaimTemplates=TEMPLATES, persistentVolumeClaimRetentionPolicy=policy)


async def up(site: Site, count: int, **policy: str) -> None:
    await apply(site, count, **policy)
    await site.until(lambda: site.ready(count), f"{count} nodes are ready")


async def claims(site: Site) -> dict[str, str]:
    """Uids by name, of those that are not going; nobody takes off the finalizer that guards them here."""
    found = (await site.kube.list(PERSISTENTVOLUMECLAIMS, site.namespace)).items
    return {
        one["metadata"]["name"]: one["metadata"]["uid"] for one in found if "deletionTimestamp" not in one["metadata"]
    }


async def has(site: Site, *names: str) -> bool:
    return set(await claims(site)) == set(names)


async def test_a_claim_outlives_its_pod_and_its_nodeset(site: Site, machines: Machines) -> None:
    await up(site, 2)
    first = await claims(site)
    assert set(first) == {"data-a-0", "data-a-1"}
    pod = await site.kube.get(PODS, "a-1", site.namespace)
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-a-1"}} in pod["spec"]["volumes"]

    await site.scale(1)
    await site.until(lambda: _are(site, ["a-0"]), "one pod is left")
    await site.delete(Propagation.FOREGROUND)
    await site.until(lambda: _are(site, []), "no pod is left")
    assert await claims(site) == first


async def test_a_nodeset_made_anew_finds_the_claims_of_the_last_one(site: Site, machines: Machines) -> None:
    await up(site, 1)
    first = await claims(site)
    await site.delete(Propagation.BACKGROUND)
    await site.until(site.gone, "the NodeSet is gone")

    await up(site, 1)
    assert await claims(site) == first


async def test_what_a_scale_in_has_kept_stays_when_the_policy_changes(site: Site, machines: Machines) -> None:
    await up(site, 4, whenScaled="Retain")
    first = await claims(site)
    await site.scale(3)
    await site.until(lambda: _are(site, ["a-0", "a-1", "a-2"]), "one is gone")

    await apply(site, 3, whenScaled="Delete", whenDeleted="Delete")
    await site.until(lambda: site.ready(3), "the policy is seen")
    await site.scale(2)
    await site.until(lambda: has(site, "data-a-0", "data-a-1", "data-a-3"), "only the claim of this scale-in goes")
    await site.until(lambda: _deleted(site, "whenScaled: Delete says: data-a-2"), "an Event names it")

    site.slurm.add_job(nodes=["a-1"])
    await site.scale(1)
    await site.until(lambda: _are(site, ["a-1"]), "the idle one goes")
    await site.until(lambda: has(site, "data-a-1", "data-a-3"), "with its claim")
    await site.delete(Propagation.BACKGROUND)
    for job in list(site.slurm.jobs.values()):
        site.slurm.finish_job(job.id)
    await site.until(site.gone, "the NodeSet is gone")
    assert await claims(site) == {"data-a-3": first["data-a-3"]}
    await site.until(lambda: _deleted(site, "whenDeleted: Delete says: data-a-1"), "an Event names what went")


async def test_a_change_of_mind_keeps_what_was_to_go(site: Site, machines: Machines) -> None:
    await up(site, 2, whenScaled="Delete")
    first = await claims(site)
    jobs = [site.slurm.add_job(nodes=[name]) for name in ("a-0", "a-1")]
    await site.until(lambda: site.sees("a-1"), "the operator sees the nodes")
    await site.scale(1)
    await site.until(lambda: _marks(site, {"Delete"}), "one of the claims says that it goes")
    await site.crash()
    await apply(site, 1, whenScaled="Retain")
    await site.start()
    await site.until(lambda: _marks(site, {"Retain"}), "it says that it stays")
    for job in jobs:
        site.slurm.finish_job(job.id)
    await site.until(lambda: site.ready(1), "one pod is left")

    await apply(site, 1, whenScaled="Delete")
    await site.until(lambda: site.ready(1), "the policy is seen")
    assert await claims(site) == first
    await site.scale(2)
    await site.until(lambda: site.ready(2), "the pod comes back to its claim")
    await site.until(lambda: _marks(site, set()), "which serves again")
    assert await claims(site) == first


async def _marks(site: Site, wanted: set[str]) -> bool:
    found = (await site.kube.list(PERSISTENTVOLUMECLAIMS, site.namespace)).items
    notes = [one["metadata"].get("annotations") or {} for one in found]
    return {one[MARK] for one in notes if MARK in one} == wanted


async def _deleted(site: Site, words: str) -> bool:
    events = (await site.kube.list(EVENTS, site.namespace)).items
    return any(one["reason"] == "ClaimDeleted" and words in one["message"] for one in events)


async def _are(site: Site, names: list[str]) -> bool:
    return await site.names() == names


async def test_an_update_brings_each_pod_back_to_its_claim(site: Site, machines: Machines) -> None:
    await up(site, 3, whenScaled="Delete")
    job = site.slurm.add_job(nodes=["a-2"])
    await apply(site, 1, whenScaled="Delete")
    await site.until(lambda: _are(site, ["a-2"]), "the busy one is left, whose ordinal is the highest")
    await site.until(lambda: has(site, "data-a-2"), "the claims of the others go")
    await site.until(lambda: _has_seen(site, "data-a-2"), "and the operator has seen it")
    site.slurm.finish_job(job.id)
    kept = await claims(site)

    await site.apply(
        1,
        volumeClaimTemplates=TEMPLATES,
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"},
        features=["new"],
    )
    await site.until(lambda: _updated(site), "it is updated")
    assert await site.names() == ["a-2"]
    assert await claims(site) == kept


def _has_seen(site: Site, *names: str) -> bool:
    """Whether these are all the claims that are not going, by what the operator has seen."""
    staying = [one for one in site.claims.store if "deletionTimestamp" not in one["metadata"]]
    return {one["metadata"]["name"] for one in staying} == set(names)


async def _updated(site: Site) -> bool:
    obj = await site.nodeset()
    status = obj["status"]
    seen = status["observedGeneration"] == obj["metadata"]["generation"]
    return bool(seen and status["updatedReplicas"] == status["readyReplicas"] == 1)


@pytest.mark.parametrize("propagation", [Propagation.BACKGROUND, Propagation.FOREGROUND])
async def test_claims_go_with_the_nodeset_where_the_spec_says_so(
    site: Site, machines: Machines, propagation: Propagation
) -> None:
    await up(site, 2, whenDeleted="Delete")
    job = site.slurm.add_job(nodes=["a-1"])
    await site.delete(propagation)
    await site.until(lambda: _are(site, ["a-1"]), "the idle one is gone")
    assert set(await claims(site)) == {"data-a-0", "data-a-1"}

    site.slurm.finish_job(job.id)
    await site.until(lambda: has(site), "all claims go with the last pod")


async def test_a_claim_of_somebody_else_is_told_and_left_alone(site: Site, machines: Machines) -> None:
    body: dict[str, Any] = {"metadata": {"name": "data-a-1", "namespace": site.namespace}, "spec": SPEC}
    theirs = await site.kube.apply(PERSISTENTVOLUMECLAIMS, body, field_manager="user")
    await apply(site, 2, whenDeleted="Delete", whenScaled="Delete")
    await site.until(lambda: _told(site), "the condition names the claim")
    assert await site.names() == ["a-0"]

    label = {"nodeset.slinky.slurm.net/name": "a", "nodeset.slinky.slurm.net/pod-name": "a-1"}
    await site.kube.merge_patch(PERSISTENTVOLUMECLAIMS, "data-a-1", {"metadata": {"labels": label}}, site.namespace)
    await site.until(lambda: site.ready(2), "once handed over, it is used")
    assert (await claims(site))["data-a-1"] == theirs["metadata"]["uid"]


async def _told(site: Site) -> bool:
    return "claim data-a-1 that is not ours" in (await site.condition("Degraded")).get("message", "")
