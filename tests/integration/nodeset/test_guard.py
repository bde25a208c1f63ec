"""Somebody deletes the guard, on a real API server; its garbage collector, Slurm and the machines are simulated."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from slinky_operator.kube import errors
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.resources import CONFIGMAPS, EVENTS, PODS
from tests.integration.nodeset.conftest import Site, up
from tests.integration.nodeset.machines import Machines


async def delete_guard(site: Site) -> str:
    """Delete the guard, as `kubectl delete configmap` does; gives its uid."""
    (name,) = await site.guards()
    uid = str((await site.kube.get(CONFIGMAPS, name, site.namespace))["metadata"]["uid"])
    await site.kube.delete(CONFIGMAPS, name, site.namespace, uid=uid)
    return uid


async def collect(site: Site) -> None:
    """Take from the pods the owners that are no more, as the garbage collector does, and as often as it takes.

    The operator may be giving a pod the guard that has just been deleted, or another one, at this very moment.
    """
    pods = (await site.kube.list(PODS, site.namespace)).items
    # Listed after the pods: what is not there now is not yet to come.
    there = {one["metadata"]["uid"] for one in (await site.kube.list(CONFIGMAPS, site.namespace)).items}
    for pod in pods:
        owners = pod["metadata"]["ownerReferences"]
        left = [one for one in owners if one["kind"] != "ConfigMap" or one["uid"] in there]
        if left != owners:
            with suppress(errors.Conflict):  # changed meanwhile: the next round sees it as it is
                await site.kube.merge_patch(
                    PODS,
                    pod["metadata"]["name"],
                    {"metadata": {"ownerReferences": left}},
                    site.namespace,
                    resource_version=pod["metadata"]["resourceVersion"],
                )


async def held_by(site: Site) -> set[str]:
    """Uids of the guards that the pods name."""
    return {
        one["uid"]
        for pod in (await site.kube.list(PODS, site.namespace)).items
        for one in pod["metadata"]["ownerReferences"]
        if one["kind"] == "ConfigMap"
    }


async def are_guarded(site: Site, *, but_not_by: str) -> bool:
    await collect(site)
    pods = (await site.kube.list(PODS, site.namespace)).items
    kinds = {tuple(sorted(one["kind"] for one in pod["metadata"]["ownerReferences"])) for pod in pods}
    there = [await site.kube.get(CONFIGMAPS, name, site.namespace) for name in await site.guards()]
    found = await held_by(site)
    return kinds == {("ConfigMap", "NodeSet")} and found == {one["metadata"]["uid"] for one in there} - {but_not_by}


async def test_a_guard_deleted_by_hand_is_made_anew_and_given_back(site: Site, machines: Machines) -> None:
    await up(site, 2)
    for _ in range(2):
        old = await delete_guard(site)
        await site.until(partial(are_guarded, site, but_not_by=old), "the pods have a guard again")

    async def told() -> bool:
        return any(event["reason"] == "GuardRestored" for event in (await site.kube.list(EVENTS, site.namespace)).items)

    await site.until(told, "an Event says so")
    await site.scale(3)
    await site.until(lambda: site.ready(3), "a third pod comes up")
    assert len(await held_by(site)) == 1
    await site.delete(Propagation.BACKGROUND)
    await site.until(site.gone, "the NodeSet goes")
    assert await site.guards() == []


async def test_a_configmap_of_its_name_that_is_not_ours_is_told_and_left_alone(site: Site, machines: Machines) -> None:
    await up(site, 1)
    (name,) = await site.guards()
    await site.crash()
    await delete_guard(site)
    await collect(site)
    await site.kube.create(CONFIGMAPS, {"metadata": {"name": name, "namespace": site.namespace}, "data": {"a": "b"}})
    await site.start()

    async def says_so() -> bool:
        return f"there is a ConfigMap {name} that is not ours" in (await site.condition("Degraded")).get("message", "")

    await site.until(says_so, "the condition names it")
    assert await site.names() == ["a-0"]
    assert (await site.kube.get(CONFIGMAPS, name, site.namespace))["data"] == {"a": "b"}
