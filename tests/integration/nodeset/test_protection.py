"""The label and annotations that protect pods from eviction, and what pods show, on a real API server."""

from __future__ import annotations

from typing import Any

from slinky_api import labels
from slinky_operator.kube.resources import PODS
from tests.integration.nodeset.conftest import Site, reason, up
from tests.integration.nodeset.machines import Machines


async def cordon(site: Site, value: str | None) -> None:
    patch = {"metadata": {"annotations": {labels.ANNOTATION_POD_CORDON: value}}}
    await site.kube.merge_patch(PODS, "a-0", patch, site.namespace)


async def shown(site: Site) -> tuple[bool, dict[str, Any], bool]:
    """Whether the pod is protected, the condition about its drain, and whether it still counts as registered."""
    pod = await site.kube.get(PODS, "a-0", site.namespace)
    conditions = {one["type"]: one for one in pod["status"]["conditions"]}
    protected = pod["metadata"]["labels"].get(labels.LABEL_POD_PROTECT) == "true"
    registered = conditions.get("nodeset.slinky.slurm.net/Registered", {}).get("status") == "True"
    return protected, conditions.get("nodeset.slinky.slurm.net/Drained", {}), registered


async def told_autoscalers(site: Site) -> tuple[str | None, str | None]:
    """What Cluster Autoscaler and Karpenter read on the pod."""
    annotations = (await site.kube.get(PODS, "a-0", site.namespace))["metadata"].get("annotations") or {}
    return annotations.get("cluster-autoscaler.kubernetes.io/safe-to-evict"), annotations.get(
        "karpenter.sh/do-not-disrupt"
    )


async def test_a_cordoned_pod_waits_for_its_job_and_may_then_be_evicted(site: Site, machines: Machines) -> None:
    await up(site, 1)
    job = site.slurm.add_job(nodes=["a-0"])
    await cordon(site, "true")

    async def told(protected: str, status: str, *words: str) -> bool:
        is_protected, condition, registered = await shown(site)
        fits = condition.get("status") == status and all(word in condition.get("message", "") for word in words)
        return registered and is_protected is (protected == "protected") and fits

    await site.until(lambda: told("protected", "False", f"job {job.id};", "cordon"), "the pod names its job")
    assert await told_autoscalers(site) == ("false", "true")
    site.slurm.finish_job(job.id)
    await site.until(lambda: told("bare", "True", "holds no job"), "it may be evicted")
    assert await told_autoscalers(site) == ("true", None)

    await cordon(site, None)
    await site.until(lambda: not reason(site, "a-0"), "the node is given back")
    assert (await shown(site))[0]
    assert await told_autoscalers(site) == ("false", "true")
    await site.until(lambda: told("protected", "False", "takes jobs"), "and the pod says so")


async def test_protection_follows_the_spec_without_an_update(site: Site, machines: Machines) -> None:
    await up(site, 1)
    before = await site.kube.get(PODS, "a-0", site.namespace)

    await site.apply(1, workloadDisruptionProtection=False)

    async def protected() -> bool:
        return (await shown(site))[0]

    async def bare() -> bool:
        return not await protected()

    await site.until(bare, "the label is off")
    assert await told_autoscalers(site) == (None, None)
    await site.apply(1, workloadDisruptionProtection=True)
    await site.until(protected, "and on again")
    assert await told_autoscalers(site) == ("false", "true")
    assert (await site.kube.get(PODS, "a-0", site.namespace))["metadata"]["uid"] == before["metadata"]["uid"]
