"""NVSentinel's DrainRequests, whose CRD comes late: nodes drain, and DrainComplete is written; on a real API server."""

from __future__ import annotations

import pytest

from slinky_api.labels import ANNOTATION_POD_CORDON
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CUSTOMRESOURCEDEFINITIONS, DRAIN_REQUESTS, NODES, PODS
from slinky_operator.nodeset.model.drain_requests import STATE_LABEL
from tests.integration.nodeset.conftest import Site, reason
from tests.integration.nodeset.machines import Machines

OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "drainrequests.nvsentinel.nvidia.com"},
    "spec": {
        "group": DRAIN_REQUESTS.group,
        "scope": "Namespaced",
        "names": {"plural": "drainrequests", "kind": "DrainRequest"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}},
            }
        ],
    },
}


async def complete(site: Site, name: str) -> str:
    """Reason and message of DrainComplete, if it is True."""
    status = (await site.kube.get(DRAIN_REQUESTS, name, site.namespace)).get("status") or {}
    found = [one for one in status.get("conditions") or () if one["type"] == "DrainComplete"]
    return f"{found[0]['reason']}: {found[0]['message']}" if found and found[0]["status"] == "True" else ""


def cordon(value: str | None) -> Object:
    return {"metadata": {"annotations": {ANNOTATION_POD_CORDON: value}}}


async def ask(site: Site, name: str, host: str) -> None:
    """Create a request as NVSentinel does, once its kind is served."""
    spec = {
        "nodeName": host,
        "errorCode": ["XID-79"],
        "entitiesImpacted": [{"type": "GPU", "value": "0"}],
        "reason": "GPU has fallen\noff the bus",
        "podsToDrain": {"elsewhere": ["somebody"]},
    }

    kind = {"apiVersion": DRAIN_REQUESTS.api_version, "kind": DRAIN_REQUESTS.kind}
    body = {**kind, "metadata": {"name": name}, "spec": spec}

    async def created() -> bool:
        try:
            await site.kube.create(DRAIN_REQUESTS, body, site.namespace)
        except errors.NotFound:
            return False
        return True

    await site.until(created, "the kind is served")


async def test_a_request_is_served_under_jobs_and_undone_with_it(site: Site, machines: Machines) -> None:
    machines.hosts = [await site.add_host("bad"), await site.add_host("good")]
    bad = machines.hosts[0]
    await site.apply(4)
    await site.until(lambda: site.ready(4), "four nodes are ready")
    job = site.slurm.add_job(nodes=["a-0"])
    site.slurm.update_node("a-2", state="IDLE+DRAIN+DYNAMIC_NORM", reason="disk")
    await site.crash()
    site.serves_drain_requests = True
    await site.start()
    with pytest.raises(errors.NotFound):
        await site.kube.list(DRAIN_REQUESTS, site.namespace)

    await site.kube.create(CUSTOMRESOURCEDEFINITIONS, CRD)
    await ask(site, "one", bad)
    await site.until(lambda: reason(site, "a-0"), "the node there is drained")
    words = "[NVSentinel] XID-79 GPU:0 - GPU has fallen off the bus"
    assert reason(site, "a-0") == f"slurm-operator: drain-request ({site.namespace}/a): {words}"
    assert reason(site, "a-2") == "disk"
    assert not reason(site, "a-1") + reason(site, "a-3")
    await ask(site, "nobody", "no-such-node")
    await site.until(lambda: complete(site, "nobody"), "a Node without pods needs no drain")
    assert await complete(site, "nobody") == "NoPods: No Slinky pods found on node"

    # Requests are looked at in turn: this one, whose job runs, was looked at before.
    assert await complete(site, "one") == ""
    await site.kube.merge_patch(NODES, bad, {"metadata": {"labels": {STATE_LABEL: "draining"}}})
    site.slurm.finish_job(job.id)
    await site.until(lambda: complete(site, "one"), "its nodes are proven empty")
    assert await complete(site, "one") == "DrainComplete: All Slinky pods drained successfully"
    assert await site.names() == ["a-0", "a-1", "a-2", "a-3"]

    # While NVSentinel works on the Node it stays drained, whether the request is there or not.
    await site.kube.delete(DRAIN_REQUESTS, "one", site.namespace, uid=None)
    await ask(site, "another", await site.add_host("new"))
    await site.until(lambda: complete(site, "another"), "requests have been listed again")
    await site.kube.merge_patch(PODS, "a-1", cordon("true"), site.namespace)
    await site.until(lambda: reason(site, "a-1"), "a pass after that: a-1 is drained")
    await site.kube.merge_patch(PODS, "a-1", cordon(None), site.namespace)
    await site.until(lambda: not reason(site, "a-1"), "the next one: a-1 is given back")
    assert reason(site, "a-0") == f"slurm-operator: drain-request ({site.namespace}/a): {words}"
    await site.kube.merge_patch(NODES, bad, {"metadata": {"labels": {STATE_LABEL: None}}})
    await site.until(lambda: not reason(site, "a-0"), "it is given back")
    assert reason(site, "a-2") == "disk"
