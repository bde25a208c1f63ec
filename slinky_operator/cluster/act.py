"""Carries out actions, in order, one Cluster at a time. No rules: what is to be done was decided in `plan`."""

from __future__ import annotations

import base64
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

import httpx

from slinky_api import labels
from slinky_api.v1alpha1.cluster import Cluster
from slinky_operator.cluster.actions import (
    Action,
    AskAgent,
    Connect,
    CountJobs,
    Disconnect,
    Hurry,
    MakeKey,
    Reload,
    ReplacePod,
    SetFinalizer,
    TearDown,
    Tell,
    TouchPod,
    Write,
)
from slinky_operator.cluster.memory import Denied, Jobs, Loaded, Memory, Mounted
from slinky_operator.cluster.sources import Sources
from slinky_operator.cluster.status import count_jobs
from slinky_operator.cluster.texts import Texts
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient, Object
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.resources import CLUSTERS, NODESETS, PODS, SECRETS, Resource
from slinky_operator.slurm import naming
from slinky_operator.slurm.clients import ClientMap
from slurm_client import MintedToken, StaticToken
from slurm_client import errors as slurm_errors

logger = logging.getLogger(__name__)

AGENT_TIMEOUT: Final = 2.0
"""Seconds for one question to the agent."""

RELOAD_TIMEOUT: Final = 20.0
"""Seconds for a reconfigure, and for the look at its outcome."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What actions are carried out with."""

    kube: KubeClient
    sources: Sources
    texts: Texts
    clients: ClientMap
    recorder: Recorder
    http: httpx.AsyncClient
    """For asking agents."""

    clock: Callable[[], float] = time.monotonic
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    agent_url: Callable[[Object], str] = lambda pod: agent_url(pod)  # noqa: PLW0108 - defined below


def agent_url(pod: Object) -> str:
    """Where the agent in a pod answers."""
    address = str(pod["status"]["podIP"])
    return f"http://{f'[{address}]' if ':' in address else address}:{naming.AGENT_PORT}/files"


async def act(actions: tuple[Action, ...], cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Carry out actions in order; the first that fails ends it.

    Returns
    -------
    bool
        Whether something was learned that no cache will tell, so that another look is worth while at once.
    """
    again = False
    for action in actions:
        again = await _one(action, cluster, memory, tools) or again
    return again


async def _one(action: Action, cluster: Cluster, memory: Memory, tools: Tools) -> bool:  # noqa: C901, PLR0912
    match action:
        case SetFinalizer():
            await _set_finalizer(action, memory, tools)
        case MakeKey():
            return await _make_key(action, cluster, memory, tools)
        case Write():
            return await _write(action, cluster, memory, tools)
        case Connect():
            token = MintedToken(action.key, lifetime=action.lifetime) if action.key else StaticToken(action.token)
            await tools.clients.put(
                cluster.uid,
                cluster.namespace,
                cluster.name,
                endpoint=action.endpoint,
                token=token,
                fingerprint=action.fingerprint,
            )
            return True
        case Disconnect():
            await tools.clients.close(cluster.uid)
        case Hurry():
            client = tools.clients.get(cluster.uid)
            if client is not None:
                client.hurry()
        case TouchPod():
            await _touch(action, tools)
        case ReplacePod():
            await _replace(action, tools)
            memory.replaced |= {(action.component, action.hash)}
        case AskAgent():
            memory.mounted = await _ask_agent(action, tools)
            return memory.mounted.files is not None
        case Reload():
            memory.loaded = await _reload(action, cluster, tools)
            return True
        case CountJobs():
            await _count_jobs(cluster, memory, tools)
        case TearDown():
            await _tear_down(action, cluster, memory, tools)
        case Tell():
            tools.recorder.event(action.obj, action.type, action.reason, action.message)
            if action.obj["kind"] == NODESETS.kind:
                memory.told |= {(action.obj["metadata"]["name"], action.message)}
        case _:
            assert_never(action)
    return False


# Kubernetes


async def _set_finalizer(action: SetFinalizer, memory: Memory, tools: Tools) -> None:
    metadata = action.obj["metadata"]
    old = metadata.get("finalizers") or []
    new = [one for one in old if one != action.finalizer] + ([action.finalizer] if action.present else [])
    try:
        answer = await tools.kube.merge_patch(
            action.resource,
            metadata["name"],
            {"metadata": {"finalizers": new}},
            metadata.get("namespace"),
            # The list is replaced whole: somebody else's finalizer, added meanwhile, must not be lost.
            resource_version=metadata["resourceVersion"],
            uid=metadata["uid"],
        )
    except errors.NotFound:
        if action.present:
            raise
    else:
        memory.note(answer, tools.clock())


async def _make_key(action: MakeKey, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    name = action.body["metadata"]["name"]
    value = base64.b64encode(tools.random_bytes(action.size)).decode()
    try:
        await tools.kube.create(SECRETS, {**action.body, "data": {action.key: value}}, cluster.namespace)
    except errors.AlreadyExists:
        # The next look tells whose it is and what is in it.
        logger.info("Secret %s/%s is there already", cluster.namespace, name)
    tools.sources.forget(cluster.namespace, name)
    memory.denied.pop(("Secret", name), None)
    return True


async def _write(action: Write, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Apply an object; what is refused, or is somebody else's, is remembered and told."""
    child = action.child
    body = child.body
    if action.live is None:
        found = await _live(child.resource, child.name, cluster.namespace, tools)
        if found is not None and not _is_ours(found, cluster):
            why = "there is one already that is not this Cluster's; rename or delete it"
            memory.denied[child.key] = Denied("", why, tools.clock())
            return True
        uid = None if found is None else found["metadata"]["uid"]
    else:
        uid = action.live["metadata"]["uid"]
    if uid is not None:
        body = {**body, "metadata": {**body["metadata"], "uid": uid}}
    try:
        # Where there was nothing, force is left out: what has come up meanwhile is not taken over.
        answer = await tools.kube.apply(child.resource, body, force=uid is not None)
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        memory.denied[child.key] = Denied(child.digest, error.message, tools.clock())
        return True
    memory.note(answer, tools.clock())
    return memory.denied.pop(child.key, None) is not None


async def _live(resource: Resource, name: str, namespace: str, tools: Tools) -> Object | None:
    try:
        return await tools.kube.get(resource, name, namespace)
    except errors.NotFound:
        return None


def _is_ours(obj: Object, cluster: Cluster) -> bool:
    return bool((obj["metadata"].get("labels") or {}).get(labels.LABEL_CLUSTER_UID) == cluster.uid)


async def _touch(action: TouchPod, tools: Tools) -> None:
    metadata = action.pod["metadata"]
    try:
        await tools.kube.merge_patch(
            PODS,
            metadata["name"],
            {"metadata": {"annotations": {labels.ANNOTATION_CONFIG_TOUCH: action.value}}},
            metadata["namespace"],
            uid=metadata["uid"],
        )
    except (errors.NotFound, errors.Conflict):
        logger.info("slurmctld's pod %s/%s has been replaced", metadata["namespace"], metadata["name"])


async def _replace(action: ReplacePod, tools: Tools) -> None:
    metadata = action.pod["metadata"]
    try:
        await tools.kube.delete(PODS, metadata["name"], metadata["namespace"], uid=metadata["uid"])
    except (errors.NotFound, errors.Conflict):
        logger.info("pod %s/%s has been replaced already", metadata["namespace"], metadata["name"])


async def _tear_down(action: TearDown, cluster: Cluster, memory: Memory, tools: Tools) -> None:
    """Delete everything, then let the Cluster go. A cache may be late: the API server is asked for pods once more."""
    pods = await tools.kube.list(PODS, cluster.namespace, label_selector=f"{labels.LABEL_CLUSTER_UID}={cluster.uid}")
    if pods.items:
        logger.info("slurmd pods of %s/%s are left", cluster.namespace, cluster.name)
        return
    await tools.clients.close(cluster.uid)
    for resource, name, uid in action.children:
        try:
            await tools.kube.delete(resource, name, cluster.namespace, uid=uid)
        except (errors.NotFound, errors.Conflict):
            logger.info("%s %s/%s has gone already", resource.kind, cluster.namespace, name)
        if resource is SECRETS:
            tools.sources.forget(cluster.namespace, name)
    for obj in (await tools.kube.list(NODESETS, cluster.namespace)).items:
        held = labels.FINALIZER_NODESET_CONFIG in (obj["metadata"].get("finalizers") or ())
        if held and (obj.get("spec") or {}).get("clusterName") == cluster.name:
            await _set_finalizer(
                SetFinalizer(NODESETS, obj, labels.FINALIZER_NODESET_CONFIG, present=False), memory, tools
            )
    live = await _live(CLUSTERS, cluster.name, cluster.namespace, tools)
    if live is not None and live["metadata"]["uid"] == cluster.uid:
        await _set_finalizer(SetFinalizer(CLUSTERS, live, labels.FINALIZER_CLUSTER, present=False), memory, tools)


# The agent and Slurm


async def _ask_agent(action: AskAgent, tools: Tools) -> Mounted:
    uid = action.pod["metadata"]["uid"]
    files: Mapping[str, str] | None = None
    why = ""
    try:
        answer = await tools.http.get(tools.agent_url(action.pod), timeout=AGENT_TIMEOUT)
        told: Any = answer.raise_for_status().json()
        found = told.get("files") if isinstance(told, dict) else None
        if isinstance(found, dict):
            files = {str(name): str(digest) for name, digest in found.items()}
        else:
            why = "the agent says nothing of files"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        why = f"the agent beside slurmctld cannot be asked: {str(error) or type(error).__name__}"
    return Mounted(uid, tools.clock(), files, why)


async def _reload(action: Reload, cluster: Cluster, tools: Tools) -> Loaded:
    """Reconfigure, then look whether the partitions are there: an answer alone proves nothing."""

    def ended(why: str, *, lost: bool = False) -> Loaded:
        return Loaded(action.pod_uid, action.hash, tools.clock(), proven=not why, why=why, lost=lost)

    client = tools.clients.get(cluster.uid)
    if client is None:
        return ended("there is no connection with Slurm")
    try:
        await client.client.reconfigure(timeout=RELOAD_TIMEOUT)
        shown = {one.name: one.node_sets for one in await client.client.partitions(timeout=RELOAD_TIMEOUT)}
    except slurm_errors.Unreachable as error:
        return ended(str(error), lost=True)
    except slurm_errors.SlurmError as error:
        return ended(str(error))
    missing = sorted(name for name in action.partitions if name not in shown)
    if missing:
        return ended(f"slurmctld does not show partition {', '.join(missing)} after a reconfigure")
    other = sorted(name for name, nodes in action.partitions.items() if shown[name] and nodes and shown[name] != nodes)
    client.hurry()
    return ended(f"slurmctld shows other nodes for partition {', '.join(other)}" if other else "")


async def _count_jobs(cluster: Cluster, memory: Memory, tools: Tools) -> None:
    client = tools.clients.get(cluster.uid)
    if client is None:
        return
    began = tools.clock()
    counts = memory.jobs.counts if memory.jobs is not None else None
    try:
        counts = count_jobs(await client.client.job_states())
    except slurm_errors.SlurmError as error:
        # The poll over nodes says whether Slurm answers; a count can wait.
        logger.info("jobs of %s/%s cannot be counted: %s", cluster.namespace, cluster.name, error)
    now = tools.clock()
    memory.jobs = Jobs(now, now - began, counts)
