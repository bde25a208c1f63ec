"""Has the machines of bad Nodes rebooted or deleted: the part of `executor` that concerns all that runs on a Node.

Each step is taken by what the API server itself shows of the Node at that moment, and by fresh answers of the Slurms of
all slurmd pods there. The Node is cordoned first; once nothing but pods of DaemonSets and mirror pods is left beside
slurmd pods that are proven empty, the mark says that the request is sent, and then it is: an operator that is killed in
between has sent nothing, and sends nothing twice. No pod is evicted.

Nothing here waits: it says what keeps a Node, and a later pass looks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.health import ReplacePolicy
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Creator, Getter, Lister, Patcher
from slinky_operator.kube.resources import NODES, PODS, REBOOTNODES, Resource
from slinky_operator.nodeset.execute.hosts import proof, requests
from slinky_operator.nodeset.execute.hosts.proof import PROOF_HOLDS, Bridged, SlurmOf
from slinky_operator.nodeset.health.machines import TAKES, why_in_use
from slinky_operator.nodeset.model import machines
from slinky_operator.nodeset.model.machines import REBOOT_NODE, MachineRules, Mark
from slinky_operator.reconcile.cached.kept_fields import prune_pod
from slinky_operator.reconcile.text import cut, joined, moment, named
from slurm_client import errors as slurm_errors

PODS_TOLD: Final = 3
"""Pods named that a Node waits for."""

ANSWERS_WITHIN: Final = 10.0
"""Seconds for all Slurms with pods on a Node; one of them that hangs must not hold up the pass of another's NodeSet."""

NOT_ALLOWED: Final = (kube_errors.Forbidden, kube_errors.Invalid, kube_errors.BadRequest)
"""Rights, and admission policies."""

LONGEST: Final = 300
"""Characters of why a Node waits."""

TRIES: Final = 5
"""How often a mark is taken back while others, such as the kubelet, write the Node."""


class MachineKube(Getter, Lister, Creator, Patcher, Protocol):
    """What is used of a client."""

    async def delete(self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None) -> Object:
        """Delete an object of a uid."""
        ...


class Refused(Exception):
    """Why nothing is done about a machine at the moment."""


class Machines:
    """What is done about machines.

    Parameters
    ----------
    kube
        A client.
    rules
        What the operator's settings allow.
    slurm_of
        The Slurm of a Cluster.
    bridged
        The Slurms of which Nodes are nodes themselves.
    now
        The wall clock.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        kube: MachineKube,
        rules: MachineRules,
        slurm_of: SlurmOf,
        bridged: Bridged = lambda _hosts: {},
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kube, self.rules, self._clock, self._now = kube, rules, clock, now
        self._slurm_of, self._bridged = slurm_of, bridged

    async def go_on(self, name: str, wanted: Mark, *, is_shown: bool = True) -> tuple[str, str]:
        """Take the next step with a Node: what has been done, for an Event, and what it waits for.

        Parameters
        ----------
        name
            The Node.
        wanted
            What its mark is to say; not sent.
        is_shown
            Whether the cache shows its cordon. Before that, only the cordon is written: a cache that is late could
            show a Node that is well and free, whose machine has been asked for.
        """
        try:
            return await self._go_on(name, wanted, is_shown=is_shown)
        except (Refused, slurm_errors.SlurmError) as error:
            return "", f"Node {name}: {cut(str(error), LONGEST)}"
        except NOT_ALLOWED as error:
            return "", _not_allowed(name, error)
        except (kube_errors.Conflict, kube_errors.NotFound):
            # Somebody has just written it, or it is gone: the next pass sees how it is.
            return "", ""

    async def give_back(self, name: str, owner: str) -> tuple[str, str]:
        """Uncordon a Node that was cordoned for a NodeSet: what has been done, for an Event, and what it waits for."""
        try:
            node = await self._kube.get(NODES, name)
            mark = _mark(node)
            if mark is None or mark.owner != owner or (mark.is_sent and _boot_id(node) in {"", mark.boot_id}):
                return "", ""
            pending = await self._pending(mark, node)
            if pending:
                return "", f"Node {name} stays cordoned: {pending}"
            taken: dict[str, Any] = {labels.ANNOTATION_NODE_MACHINE: None}
            if self.rules.reboot_by not in {"", REBOOT_NODE} and not _asked_by_others(node, self.rules.reboot_by):
                taken[self.rules.reboot_by] = None
            patch = {"metadata": {"annotations": taken}, "spec": {"unschedulable": None}}
            await self._patch(node, patch)
        except NOT_ALLOWED as error:
            return "", _not_allowed(name, error)
        except (kube_errors.Conflict, kube_errors.NotFound):
            return "", ""
        why = "its machine has started again" if mark.is_sent else "its machine is no longer to be replaced"
        return f"uncordoned Node {name}: {why}", ""

    async def _go_on(self, name: str, wanted: Mark, *, is_shown: bool) -> tuple[str, str]:
        node = await self._kube.get(NODES, name)
        mark = _mark(node)
        if _boot_id(node) != wanted.boot_id or node["metadata"].get("deletionTimestamp"):
            return "", ""
        if mark is not None and mark.owner == wanted.owner and self._is_awaited(mark, wanted):
            return "", f"Node {name}: waits for its machine since {mark.began}"
        is_cordoned = bool((node.get("spec") or {}).get("unschedulable"))
        await self._check_mark(node, mark, wanted, is_cordoned=is_cordoned)
        ours, others = await self._pods_on(name)
        self._check_owners(ours)
        if mark is None or not is_cordoned:
            await self._patch(node, _marked(wanted))
            return f"cordoned Node {name}, whose machine is to be replaced ({wanted.policy})", ""
        if not is_shown:
            return "", ""
        if others:
            raise Refused(f"waits for pods that are not evicted: {named(others, PODS_TOLD)}")
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                held = await proof.why_held(
                    self._kube, name, ours, self._slurm_of, self._bridged, self._clock, self._now(), why_in_use
                )
        except TimeoutError:
            raise Refused("waits for the Slurms of its slurmd pods, which do not answer") from None
        if held:
            raise Refused(f"waits: {joined(held[:PODS_TOLD])}")
        try:
            async with asyncio.timeout(PROOF_HOLDS):
                return await self._send(node, wanted), ""
        except TimeoutError:
            raise Refused("waits for the API server") from None

    async def _pods_on(self, name: str) -> tuple[list[Object], list[str]]:
        """The pods of NodeSets on a Node, with what rules read of them, and names of those of others that count."""
        ours, others = list[Object](), list[str]()
        async for one in self._kube.each(PODS, None, field_selector=f"spec.nodeName={name}"):
            if (one["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_UID):
                # Users decide what else is in a pod, and who may make one may give it the label.
                prune_pod(one)
                ours.append(one)
            elif _counts(one):
                others.append(_name(one))
        return ours, sorted(others)

    def _is_awaited(self, mark: Mark, wanted: Mark) -> bool:
        """Whether the end of this very boot has been asked for, a short while ago at most.

        A try may have another time than the one that has been sent: the cache of NodeSets did not show that yet.
        """
        if not mark.is_sent or mark.boot_id != wanted.boot_id:
            return False
        begun = moment(mark.began)
        return mark.began == wanted.began or (begun is not None and self._now() - begun < TAKES)

    async def _check_mark(self, node: Object, mark: Mark | None, wanted: Mark, *, is_cordoned: bool) -> None:
        """Raise if a Node is in the hands of somebody else, or of an earlier try."""
        if mark is None:
            if is_cordoned:
                raise Refused("has been cordoned by somebody else: its machine is left alone until it is uncordoned")
            return
        if mark.owner != wanted.owner:
            raise Refused(f"NodeSet {mark.owner} has its machine replaced")
        pending = await self._pending(mark, node)
        if pending:
            raise Refused(f"an earlier try has asked for it: {pending}")
        if not is_cordoned and mark.began == wanted.began:
            raise Refused("has been uncordoned by somebody: its machine is left alone until it is cordoned again")

    def _check_owners(self, pods: list[Object]) -> None:
        """Raise if a Node has pods of NodeSets that may not act on machines: their jobs would be kept out by others."""
        others = sorted({key[0] for one in pods if not self.rules.allow((key := proof.nodeset_of(one))[0])})
        if others:
            raise Refused(f"has slurmd pods of namespaces that nodeLife.namespaces does not name: {named(others, 3)}")

    async def _send(self, node: Object, wanted: Mark) -> str:
        """Mark the request as sent, and send it; returns what has been done."""
        name = node["metadata"]["name"]
        if wanted.policy == ReplacePolicy.REBOOT:
            return await self._reboot(node, name, wanted)
        return await self._delete(node, name, wanted)

    async def _reboot(self, node: Object, name: str, wanted: Mark) -> str:
        sent, by = replace(wanted, is_sent=True), self.rules.reboot_by
        if by != REBOOT_NODE:
            if _asked_by_others(node, by):
                raise Refused(f"has the annotation {by} of somebody else")
            # One write: the annotation is the request.
            await self._patch(node, _marked(sent, {by: wanted.began}))
            return f"asked for a reboot of Node {name}, by the annotation {by}"
        request = requests.reboot_name(wanted, name)
        body = {
            "apiVersion": REBOOTNODES.api_version,
            "kind": REBOOTNODES.kind,
            "metadata": {"name": request, "labels": {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY}},
            "spec": {"nodeName": name, "force": False},
        }

        async def create() -> None:
            # One that exists has the name of this try, which has asked before: an operator that was killed then, or a
            # lost answer.
            with suppress(kube_errors.AlreadyExists):
                await self._kube.create(REBOOTNODES, body)

        await self._ask(node, wanted, create, f"RebootNode {request} has not been created")
        return f"asked for a reboot of Node {name}, by RebootNode {request}"

    async def _ask(self, node: Object, wanted: Mark, request: Callable[[], Awaitable[None]], failed: str) -> None:
        """Mark a request as sent, and send it; the mark of one that is refused is taken back.

        Parameters
        ----------
        failed
            What has not been done, if it is refused.
        """
        _ = await self._patch(node, _marked(replace(wanted, is_sent=True)))
        try:
            await request()
        except kube_errors.Fenced:
            raise
        except kube_errors.KubeError as error:
            if isinstance(error, kube_errors.Unavailable) and error.maybe_done:
                # It counts as sent.
                raise
            await self._take_back(node["metadata"]["name"], wanted)
            if isinstance(error, NOT_ALLOWED):
                raise
            raise Refused(f"{failed}: {error}") from error

    async def _take_back(self, name: str, wanted: Mark) -> None:
        """Mark a request as not sent: otherwise its Node would stay cordoned until somebody removes the mark."""
        for _ in range(TRIES):
            node = await self._kube.get(NODES, name)
            if _mark(node) != replace(wanted, is_sent=True):
                return
            with suppress(kube_errors.Conflict):
                _ = await self._patch(node, _marked(wanted))
                return

    async def _delete(self, node: Object, name: str, wanted: Mark) -> str:
        machine, namespace = requests.machine_of(node)
        if not machine or not namespace:
            if not self.rules.delete_nodes:
                raise Refused(
                    f"has no Machine of Cluster API ({requests.MACHINE}), and Nodes themselves are not deleted "
                    "(nodeLife.deleteNodes of the operator's chart)"
                )
            await self._ask(node, wanted, self._deletion(NODES, node, name), "it has not been deleted")
            return f"deleted Node {name}"
        there = await requests.machine(self._kube, machine, namespace)
        if there is None:
            raise Refused(f"its Machine {namespace}/{machine} does not exist")
        resource, found = there
        if ((found.get("status") or {}).get("nodeRef") or {}).get("name") != name:
            raise Refused(f"its Machine {namespace}/{machine} is that of another Node")
        deletion = self._deletion(resource, found, machine, namespace)
        await self._ask(node, wanted, deletion, f"Machine {namespace}/{machine} has not been deleted")
        return f"deleted Machine {namespace}/{machine} of Node {name}"

    def _deletion(
        self, resource: Resource, obj: Object, name: str, namespace: str | None = None
    ) -> Callable[[], Awaitable[None]]:
        async def delete() -> None:
            # Another one of its name is refused.
            with suppress(kube_errors.NotFound):
                _ = await self._kube.delete(resource, name, namespace, uid=obj["metadata"]["uid"])

        return delete

    async def _pending(self, mark: Mark, node: Object) -> str:
        """What may still follow from what has been sent; empty if nothing may."""
        by_kind = self.rules.reboot_by == REBOOT_NODE
        return await requests.pending(self._kube, mark, node, by_kind=by_kind) if mark.is_sent else ""

    async def _patch(self, node: Object, patch: Object) -> Object:
        """Merge into a Node that nobody has written since it was read."""
        metadata = node["metadata"]
        return await self._kube.merge_patch(
            NODES, metadata["name"], patch, resource_version=metadata["resourceVersion"], uid=metadata["uid"]
        )


def _not_allowed(name: str, error: kube_errors.KubeError) -> str:
    words = cut(str(error), LONGEST)
    return f"Node {name}: {words}; the chart slurm-node-life gives the operator the rights"


def _mark(node: Object) -> Mark | None:
    return machines.read(node["metadata"].get("annotations") or {})


def _asked_by_others(node: Object, key: str) -> bool:
    """Whether a Node has an annotation for a reboot that is not the operator's: that has the time of its try."""
    value = (node["metadata"].get("annotations") or {}).get(key)
    mark = _mark(node)
    return value is not None and (mark is None or not mark.is_sent or value != mark.began)


def _boot_id(node: Object) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("bootID") or "")


def _marked(mark: Mark, more: Mapping[str, str] | None = None) -> Object:
    annotations = {labels.ANNOTATION_NODE_MACHINE: mark.text(), **(more or {})}
    return {"metadata": {"annotations": annotations}, "spec": {"unschedulable": True}}


def _counts(pod: Object) -> bool:
    """Whether a pod of others keeps a Node: it has not ended, and goes when it is deleted."""
    metadata = pod["metadata"]
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return False
    if "kubernetes.io/config.mirror" in (metadata.get("annotations") or {}):
        return False
    owners = metadata.get("ownerReferences") or ()
    return not any(one.get("controller") and one.get("kind") == "DaemonSet" for one in owners)


def _name(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata.get('namespace')}/{metadata['name']}"
