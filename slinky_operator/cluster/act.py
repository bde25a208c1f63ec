"""Carries out actions, in order, one Cluster at a time. No rules: what is to be done was decided in `plan`."""

from __future__ import annotations

import base64
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import httpx

from slinky_api import labels
from slinky_api.v1alpha1.cluster import Cluster
from slinky_operator.cluster import asking
from slinky_operator.cluster.actions import (
    Action,
    AskAgent,
    AskUse,
    Connect,
    CountJobs,
    Disconnect,
    EndPreflight,
    Hold,
    Hurry,
    LeaveOut,
    MakeKey,
    Reload,
    Remove,
    ReplacePod,
    SetFinalizer,
    StartPreflight,
    TearDown,
    Tell,
    TouchPod,
    Write,
)
from slinky_operator.cluster.memory import Denied, Memory
from slinky_operator.cluster.sources import Sources
from slinky_operator.cluster.texts import Texts
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS, PODS, SECRETS, Resource
from slinky_operator.slurm.clients import ClientMap
from slurm_client import MintedToken, StaticToken

logger = logging.getLogger(__name__)


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
    agent_url: Callable[[Object], str] = asking.agent_url


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


async def _one(action: Action, cluster: Cluster, memory: Memory, tools: Tools) -> bool:  # noqa: C901, PLR0911, PLR0912 - one for each
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
            memory.touched = action.hash, tools.clock()
        case ReplacePod():
            pod = action.pod["metadata"]
            await _remove(PODS, pod["name"], pod["namespace"], pod["uid"], tools)
            memory.replaced |= {(action.component, action.hash)}
        case StartPreflight():
            return await _start_preflight(action, cluster, memory, tools)
        case EndPreflight():
            memory.judge(action.name, action.verdict)
            return True
        case LeaveOut():
            memory.unusable |= dict.fromkeys(action.images, tools.clock())
            return True
        case Remove():
            await _remove(action.resource, action.name, cluster.namespace, action.uid, tools)
        case Hold():
            memory.held, memory.held_for = dict(action.held), action.held_for
            return True
        case AskUse():
            memory.use = await asking.ask_use(tools.clients.get(cluster.uid), action.hash, tools.clock)
            return True
        case AskAgent():
            url = tools.agent_url(action.pod)
            memory.mounted = await asking.ask_agent(tools.http, url, action.pod["metadata"]["uid"], tools.clock)
            return memory.mounted.files is not None
        case Reload():
            memory.loaded = await asking.reload(tools.clients.get(cluster.uid), action, tools.clock)
            return True
        case CountJobs():
            memory.jobs = await asking.count(tools.clients.get(cluster.uid), memory.jobs, tools.clock) or memory.jobs
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


async def _remove(resource: Resource, name: str, namespace: str, uid: str, tools: Tools) -> None:
    try:
        await tools.kube.delete(resource, name, namespace, uid=uid)
    except (errors.NotFound, errors.Conflict):
        logger.info("%s %s/%s has gone, or has been replaced, already", resource.kind, namespace, name)


async def _start_preflight(action: StartPreflight, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Make the ConfigMap, then the pod; what stands already is taken as it is, since names tell contents."""
    wanted = action.preflight
    for child in (wanted.config_map, wanted.pod):
        try:
            await tools.kube.create(child.resource, dict(child.body), cluster.namespace)
        except errors.AlreadyExists:
            logger.info("%s %s/%s is there already", child.resource.kind, cluster.namespace, child.name)
        except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
            memory.denied[child.key] = Denied(child.digest, error.message, tools.clock())
            return True
        memory.denied.pop(child.key, None)
    return False


async def _tear_down(action: TearDown, cluster: Cluster, memory: Memory, tools: Tools) -> None:
    """Delete everything, then let the Cluster go. A cache may be late: the API server is asked for pods once more."""
    pods = await tools.kube.list(PODS, cluster.namespace, label_selector=f"{labels.LABEL_CLUSTER_UID}={cluster.uid}")
    if pods.items:
        logger.info("slurmd pods of %s/%s are left", cluster.namespace, cluster.name)
        return
    await tools.clients.close(cluster.uid)
    for resource, name, uid in action.children:
        await _remove(resource, name, cluster.namespace, uid, tools)
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
