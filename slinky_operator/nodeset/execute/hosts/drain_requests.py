"""Serves NVSentinel's DrainRequests, beside the passes: they find there which Nodes are to be drained, and drain them.

The requests of one namespace are listed every few seconds: there are as many as there are bad Nodes, and their CRD may
be missing, which a cache would wait for. A request is complete when every slurmd pod on its Node may be deleted by the
proof that permits deletions: a fresh answer from each Slurm concerned. Which pods these are the API server itself says,
after that answer: the cache may lack one, whose jobs would end with the machine. Then the condition `DrainComplete` is
written as NVSentinel's own plugin writes it. No job is ended, and no pod deleted.

Passes bring the first question about, so it is asked by the leader only.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from slinky_api import labels
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter, Lister
from slinky_operator.kube.resources import DRAIN_REQUESTS, PODS, Resource
from slinky_operator.nodeset.execute.hosts import proof
from slinky_operator.nodeset.execute.hosts.proof import Bridged, SlurmOf
from slinky_operator.nodeset.model import drain_requests
from slinky_operator.nodeset.model.drain_requests import COMPLETE, DrainRequest
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.reconcile.cached.indexes import HOST_INDEX
from slinky_operator.reconcile.text import joined, named, stamp
from slinky_operator.slurm.pods import pod_ownership
from slurm_client import errors as slurm_errors

logger = logging.getLogger(__name__)

EVERY_S: Final = 5.0
"""Seconds between two lists."""

AWAY_EVERY_S: Final = 60.0
"""The same while the kind is not there, or may not be read."""

UNSEEN_EVERY_S: Final = 60.0
"""Seconds after which it is looked again whether pods that the cache does not show are gone: each look is a list."""

PODS_TOLD: Final = 3
"""Pods named that a request waits for."""

MOST: Final = 1_000
"""Requests that are served at a time; further ones wait until these are complete. All of them drain."""


class RequestKube(Getter, Lister, Protocol):
    """What is used of a client."""

    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, *, uid: str | None = None
    ) -> Object:
        """Merge a status into that of an object."""
        ...


@dataclass(frozen=True, slots=True)
class Unseen:
    """Pods on a Node that the cache does not show."""

    at: float
    """When they were found, in monotonic seconds."""
    words: str


class DrainRequests:
    """The requests as they were last listed.

    Parameters
    ----------
    kube
        A client.
    namespace
        Where NVSentinel creates them.
    pods
        The cache of slurmd pods, with `HOST_INDEX`.
    slurm_of
        The Slurm of a Cluster, by the namespace and the name of the Cluster; None if there is none.
    bridged
        The Slurms of which Kubernetes Nodes are nodes themselves.
    now, clock, sleep
        The wall clock, monotonic seconds, and how to let them pass.
    """

    def __init__(
        self,
        kube: RequestKube,
        namespace: str,
        pods: Store,
        slurm_of: SlurmOf,
        bridged: Bridged = lambda _hosts: {},
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._kube, self._namespace, self._pods, self._slurm_of = kube, namespace, pods, slurm_of
        self._bridged = bridged
        self._now, self._clock, self._sleep = now, clock, sleep
        self._asked = asyncio.Event()
        self._tell: Callable[[Key], None] = lambda _key: None
        self._told = ""
        """Why they are not served, as last logged."""
        self._by_host: Mapping[str, DrainRequest] | None = None
        self._waits: Mapping[str, str] = {}
        """Why requests wait, by uid, as last logged."""
        self._unseen: Mapping[str, Unseen] = {}
        """Pods that the cache does not show, by the uid of the request."""

    def subscribe(self, tell: Callable[[Key], None]) -> None:
        """Call `tell` with the key of each NodeSet that has pods on a Node whose request has changed."""
        self._tell = tell

    def by_host(self) -> Mapping[str, DrainRequest] | None:
        """The request of each Node, None while nobody has listed them; asks for them from now on."""
        self._asked.set()
        return self._by_host

    async def run(self) -> None:
        """List and serve them until cancelled."""
        _ = await self._asked.wait()
        while True:
            pause = EVERY_S
            try:
                await self._look()
                self._log("")
            except (kube_errors.NotFound, kube_errors.Forbidden) as error:
                # Without a list nothing is known to have gone: what is drained stays drained.
                self._log(f"DrainRequests in {self._namespace} are not served: {error}")
                pause = AWAY_EVERY_S
            except kube_errors.KubeError as error:
                logger.info("DrainRequests in %s were not listed: %s", self._namespace, error)
            except Exception:
                # A bug; what is known stays, and the question is repeated.
                logger.exception("DrainRequests in %s were not served", self._namespace)
            await self._sleep(pause)

    async def _look(self) -> None:
        read = [drain_requests.read(obj) async for obj in self._kube.each(DRAIN_REQUESTS, self._namespace)]
        found = [one for one in read if one is not None]
        waiting = [one for one in found if not one.is_complete]
        if len(waiting) > MOST:
            logger.warning("%s has %d open DrainRequests; %d are served", self._namespace, len(waiting), MOST)
        before, self._by_host = self._by_host, drain_requests.by_host(found)
        for key in self._concerned(before, self._by_host):
            self._tell(key)
        await self._serve(waiting[:MOST])

    def _concerned(self, before: Mapping[str, DrainRequest] | None, now: Mapping[str, DrainRequest]) -> frozenset[Key]:
        """NodeSets with pods on Nodes whose request has changed; all once, which wait for what is known."""
        hosts = (
            self._pods.values(HOST_INDEX)
            if before is None
            else [host for host in before.keys() | now.keys() if before.get(host) != now.get(host)]
        )
        return frozenset(proof.nodeset_of(obj) for host in hosts for obj in self._pods.find(HOST_INDEX, host))

    async def _serve(self, requests: Sequence[DrainRequest]) -> None:
        """Write which requests are complete, of those that are proven to be, and log why others wait.

        Requests that concern other Slurms do not wait for each other.
        """
        pods = {one.host: list(self._pods.find(HOST_INDEX, one.host)) for one in requests}
        together: dict[frozenset[Key], list[DrainRequest]] = {}
        for one in requests:
            together.setdefault(frozenset(proof.by_cluster(pods[one.host])), []).append(one)
        waits: dict[str, str] = {}
        for found in await gather_limited(self._serve_some(some, pods) for some in together.values()):
            if isinstance(found, BaseException):
                raise found
            waits |= found
        for one in requests:
            words = waits.get(one.uid, "")
            if words and words != self._waits.get(one.uid):
                logger.info("DrainRequest %s of Node %s waits: %s", one.name, one.host, words)
        self._waits = waits
        self._unseen = {uid: found for uid, found in self._unseen.items() if uid in waits}

    async def _serve_some(
        self, requests: Sequence[DrainRequest], pods: Mapping[str, Sequence[Object]]
    ) -> dict[str, str]:
        """The same for some of them; returns why requests wait, by uid."""
        hosts = [one.host for one in requests]
        why = await self._why_kept([obj for host in hosts for obj in pods[host]])
        held = await proof.held(hosts, self._bridged, self._clock)
        deadline = asyncio.get_running_loop().time() + proof.PROOF_HOLDS
        waits: dict[str, str] = {}
        ready: list[DrainRequest] = []
        for one in requests:
            reasons = [why[uid] for obj in pods[one.host] if (uid := obj["metadata"]["uid"]) in why]
            if one.host in held:
                reasons.append(proof.BRIDGED)
            if reasons:
                waits[one.uid] = joined(reasons[:PODS_TOLD])
            else:
                ready.append(one)
        results = await gather_limited(self._finish(one, pods[one.host], deadline) for one in ready)
        # One that cannot be written keeps no other from being.
        for one, result in zip(ready, results, strict=True):
            if isinstance(result, kube_errors.Forbidden | kube_errors.Fenced):
                raise result
            if result:
                waits[one.uid] = f"it was not completed: {result}" if isinstance(result, BaseException) else result
        return waits

    async def _finish(self, request: DrainRequest, proven: Sequence[Object], deadline: float) -> str:
        """Complete a request, if the API server shows no other slurmd pod on its Node than those proven to be empty.

        Parameters
        ----------
        proven
            The pods, by answers of Slurm that hold until the deadline.
        deadline
            Seconds of the event loop's clock.

        Returns
        -------
        str
            Why it waits; empty if it is complete.
        """
        found = self._unseen.get(request.uid)
        if found is not None and self._clock() - found.at < UNSEEN_EVERY_S:
            return found.words
        uids = {obj["metadata"]["uid"] for obj in proven}
        try:
            async with asyncio.timeout_at(deadline):
                has_pods, others = False, list[str]()
                async for one in self._kube.each(PODS, None, field_selector=f"spec.nodeName={request.host}"):
                    if not _may_be_slurmd(one):
                        continue
                    has_pods = True
                    if one["metadata"]["uid"] not in uids and not _has_ended(one):
                        others.append(_name(one))
                if not others:
                    await self._complete(request, has_pods=has_pods)
                    return ""
        except TimeoutError:
            return "the API server takes too long"
        names = named(sorted(others), PODS_TOLD)
        words = (
            f"pods there look like slurmd's, and the operator does not see them: {names}. One that has lost its labels "
            "is named by its NodeSet, with the command to run; others are new, have no room in the operator's memory, "
            "or are another operator's"
        )
        self._unseen = {**self._unseen, request.uid: Unseen(self._clock(), words)}
        return words

    async def _complete(self, request: DrainRequest, *, has_pods: bool) -> None:
        reason, words = "NoPods", "No Slinky pods found on node"
        if has_pods:
            reason, words = COMPLETE, "All Slinky pods drained successfully"
        condition = {
            "type": COMPLETE,
            "status": "True",
            "lastTransitionTime": stamp(self._now()),
            "reason": reason,
            "message": words,
        }
        try:
            # A merge replaces the list: NVSentinel's plugin, which is not there, is the only other writer of it.
            _ = await self._kube.patch_status(
                DRAIN_REQUESTS, request.name, {"conditions": [condition]}, request.namespace, uid=request.uid
            )
        except kube_errors.NotFound:
            return
        logger.info("DrainRequest %s of Node %s is complete: %s", request.name, request.host, words)

    async def _why_kept(self, pods: Iterable[Object]) -> Mapping[str, str]:
        """Why slurmd pods keep their Nodes, by uid; the others do not, by a fresh answer of each Slurm concerned."""
        by_cluster = proof.by_cluster(pods)
        calls = (
            proof.reasons(self._kube, self._slurm_of, cluster, some, self._clock, self._now())
            for cluster, some in by_cluster.items()
        )
        answers = await gather_limited(calls)
        found: dict[str, str] = {}
        for ((namespace, name), some), answer in zip(by_cluster.items(), answers, strict=True):
            if not isinstance(answer, BaseException):
                found |= answer
                continue
            what = "NodeSets" if isinstance(answer, kube_errors.KubeError) else "Slurm"
            if not isinstance(answer, kube_errors.KubeError | slurm_errors.SlurmError):
                logger.error("nodes of Cluster %s/%s were not proven empty", namespace, name, exc_info=answer)
            words = f"{what} of Cluster {namespace}/{name}: {answer}"
            found |= dict.fromkeys((obj["metadata"]["uid"] for obj in some), words)
        return found

    def _log(self, words: str) -> None:
        if words and words != self._told:
            logger.warning("%s", words)
        elif self._told and not words:
            logger.warning("DrainRequests in %s are served", self._namespace)
        self._told = words


def _name(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata.get('namespace')}/{metadata['name']}"


def _may_be_slurmd(pod: Object) -> bool:
    """Whether a pod is a NodeSet's, by its labels or, if somebody has taken these off, by its owners."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or ()
    return labels.LABEL_NODESET_UID in (metadata.get("labels") or {}) or any(map(pod_ownership.is_of_nodeset, owners))


def _has_ended(pod: Object) -> bool:
    return pod_facts.has_ended(pod.get("status") or {}, deleting="deletionTimestamp" in pod["metadata"])
