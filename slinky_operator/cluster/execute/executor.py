"""Carries out actions, in order, one Cluster at a time. No rules: what is to be done was decided in `plan`."""

from __future__ import annotations

import logging
from typing import assert_never

from slinky_api import labels
from slinky_api.v1alpha1.cluster import Cluster
from slinky_operator.cluster import succession
from slinky_operator.cluster.actions import (
    Action,
    AdoptKey,
    AskAgent,
    AskClaim,
    AskNames,
    AskStates,
    AskUse,
    Connect,
    CountJobs,
    Disconnect,
    EmitEvent,
    EndPreflight,
    ExcludeSlurmdKinds,
    HoldBackNodeSets,
    Hurry,
    KeepKeys,
    MakeKey,
    PutKeyBack,
    ReadKeys,
    Reload,
    Remove,
    ReplacePod,
    SealKey,
    SetFinalizer,
    StartPreflight,
    TearDown,
    TouchPod,
    TryKey,
    Write,
)
from slinky_operator.cluster.execute import key_writes, reload, slurm_queries
from slinky_operator.cluster.execute.admission import refused_parts
from slinky_operator.cluster.execute.context import Tools
from slinky_operator.cluster.memory import Claim, Denied, Memory, left_out_again
from slinky_operator.kube import errors
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    NODESETS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    SECRETS,
    Resource,
)
from slinky_operator.reconcile.children import Settled, is_current
from slinky_operator.reconcile.finalizers import set_finalizer
from slurm_client import MintedToken, StaticToken, TokenProvider

logger = logging.getLogger(__name__)


async def act(actions: tuple[Action, ...], cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Carry out actions in order; the first that fails ends it.

    Returns
    -------
    bool
        Whether something was learned that no cache will tell, so that another look is worth while at once.

    Raises
    ------
    SupersededError
        If the Cluster is found to be gone.
    """
    again = False
    try:
        for action in actions:
            if again and isinstance(action, EmitEvent) and action.with_status:
                # The status is not written in this round, and the next one plans it again.
                continue
            again = await _carry_out(action, cluster, memory, tools) or again
    finally:
        if memory.adopted:
            tools.recorder.event(_reference(cluster), EventType.NORMAL, "Adopted", succession.told(memory.adopted))
            memory.adopted = ()
    return again


def _reference(cluster: Cluster) -> Object:
    """What an Event is about."""
    about = {"name": cluster.name, "namespace": cluster.namespace, "uid": cluster.uid}
    return {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "metadata": about}


async def _carry_out(action: Action, cluster: Cluster, memory: Memory, tools: Tools) -> bool:  # noqa: C901, PLR0911, PLR0912, PLR0915 - one each
    match action:
        case SetFinalizer():
            await _set_finalizer(action, memory, tools)
        case MakeKey() | PutKeyBack() | SealKey() | KeepKeys() | ReadKeys() | TryKey():
            return await key_writes.carry_out(action, cluster, memory, tools)
        case AdoptKey():
            await _adopt_key(action, cluster, memory, tools)
            return True
        case Write():
            return await _write(action, cluster, memory, tools)
        case Connect():
            token: TokenProvider = StaticToken(action.token)
            if action.keys:
                token = MintedToken(action.keys[0], lifetime=action.lifetime, others=action.keys[1:])
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
        case ExcludeSlurmdKinds():
            memory.left_out = dict(action.left_out)
            return True
        case Remove():
            await _remove(action.resource, action.name, cluster.namespace, action.uid, tools)
        case HoldBackNodeSets():
            memory.held, memory.held_for = dict(action.held), action.held_for
            return True
        case AskUse():
            memory.use = await slurm_queries.ask_use(tools.clients.get(cluster.uid), action.hash, tools.clock)
            return True
        case AskStates():
            memory.states = await slurm_queries.ask_states(tools.clients.get(cluster.uid), action.hash, tools.clock)
            return True
        case AskAgent():
            url = tools.agent_url(action.pod)
            memory.mounted = await slurm_queries.ask_agent(tools.http, url, action.pod["metadata"]["uid"], tools.clock)
            return memory.mounted.files is not None
        case AskNames():
            url = tools.agent_url(action.pod)
            uid = action.pod["metadata"]["uid"]
            memory.names = await slurm_queries.ask_names(tools.http, url, uid, memory.names, tools.clock)
            return not memory.names.why
        case AskClaim():
            memory.claim = await _ask_claim(action.name, cluster.namespace, tools)
            return bool(memory.claim.deleted)
        case Reload():
            memory.loaded = await reload.reload(tools.clients.get(cluster.uid), action, tools.clock)
            return True
        case CountJobs():
            memory.jobs = (
                await slurm_queries.count(tools.clients.get(cluster.uid), memory.jobs, tools.clock) or memory.jobs
            )
        case TearDown():
            return await _tear_down(action, cluster, memory, tools)
        case EmitEvent():
            tools.recorder.event(action.obj, action.type, action.reason, action.message)
            if action.obj["kind"] == NODESETS.kind:
                memory.reported_nodesets |= {(action.obj["metadata"]["name"], action.message)}
            else:
                memory.last_events[action.reason] = action.message
        case _:
            assert_never(action)
    return False


# Kubernetes


async def _set_finalizer(action: SetFinalizer, memory: Memory, tools: Tools) -> None:
    try:
        answer = await set_finalizer(tools.kube, action.resource, action.obj, action.finalizer, present=action.present)
    except errors.NotFound:
        if action.present:
            raise
    else:
        memory.note(answer, tools.clock())


async def _adopt_key(action: AdoptKey, cluster: Cluster, memory: Memory, tools: Tools) -> None:
    await succession.prove(tools.kube, cluster)
    patch = {"metadata": {"labels": {labels.LABEL_CLUSTER_UID: cluster.uid}}}
    try:
        await tools.kube.merge_patch(SECRETS, action.name, patch, cluster.namespace, uid=action.uid)
        memory.adopted += (f"Secret {action.name}",)
    except (errors.NotFound, errors.Conflict):
        logger.info("Secret %s/%s has gone, or has been replaced, already", cluster.namespace, action.name)
    tools.sources.forget(cluster.namespace, action.name)


async def _write(action: Write, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Apply an object; what is refused, or is somebody else's, is remembered and told."""
    child = action.child
    body = child.body
    found = action.live or await tools.live(child.resource, child.name, cluster.namespace)
    left = found is not None and succession.is_left(found, cluster)
    if found is not None and not left and not succession.is_ours(found, cluster):
        why = succession.not_ours(child.resource, child.name, cluster)
        memory.denied[child.key] = Denied("", why, tools.clock())
        return True
    if left:
        await succession.prove(tools.kube, cluster)
    uid = None if found is None else found["metadata"]["uid"]
    if uid is not None:
        body = {**body, "metadata": {**body["metadata"], "uid": uid}}
    try:
        # Where there was nothing, force is left out: what has come up meanwhile is not taken over.
        answer = await tools.kube.apply(child.resource, body, force=uid is not None)
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        memory.denied[child.key] = Denied(child.digest, error.message, tools.clock())
        return True
    if left:
        memory.adopted += (f"{child.resource.kind} {child.name}",)
    memory.note(answer, tools.clock())
    if is_current(child.body, answer):
        memory.settled.pop(child.key, None)
    else:
        memory.settled[child.key] = Settled.of(child, answer)
    return memory.denied.pop(child.key, None) is not None


async def _ask_claim(name: str, namespace: str, tools: Tools) -> Claim:
    found = await tools.live(PERSISTENTVOLUMECLAIMS, name, namespace)
    deleted = found["metadata"].get("deletionTimestamp") if found is not None else None
    return Claim(name, tools.clock(), deleted or "")


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
            whose = await refused_parts(action, cluster.namespace, tools.kube) if child is wanted.pod else {}
            if whose:
                memory.left_out |= left_out_again(memory.left_out, whose, tools.clock(), on_its_node=bool(wanted.node))
            else:
                memory.denied[child.key] = Denied(child.digest, error.message, tools.clock())
            return True
        memory.denied.pop(child.key, None)
    return False


async def _tear_down(action: TearDown, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Delete everything, then let the Cluster go. A cache may be late: the API server is asked for pods once more."""
    await succession.prove(tools.kube, cluster)
    node_sets = [
        obj
        for obj in (await tools.kube.list(NODESETS, cluster.namespace)).items
        if (obj.get("spec") or {}).get("clusterName") == cluster.name
    ]
    left = await _slurmd_pods(cluster, node_sets, tools)
    if left:
        memory.slurmd_pods_left = left, tools.clock()
        return True
    await tools.clients.close(cluster.uid)
    for resource, name, uid in action.children:
        await _remove(resource, name, cluster.namespace, uid, tools)
        if resource is SECRETS:
            tools.sources.forget(cluster.namespace, name)
    for obj in node_sets:
        if labels.FINALIZER_NODESET_CONFIG in (obj["metadata"].get("finalizers") or ()):
            await _set_finalizer(
                SetFinalizer(NODESETS, obj, labels.FINALIZER_NODESET_CONFIG, present=False), memory, tools
            )
    live = await tools.live(CLUSTERS, cluster.name, cluster.namespace)
    if live is not None and live["metadata"]["uid"] == cluster.uid:
        await _set_finalizer(SetFinalizer(CLUSTERS, live, labels.FINALIZER_CLUSTER, present=False), memory, tools)
    return False


async def _slurmd_pods(cluster: Cluster, node_sets: list[Object], tools: Tools) -> tuple[str, ...]:
    """Names of the pods that NodeSets of a Cluster have: by label, and by owner where somebody has taken the label."""
    uids = {obj["metadata"]["uid"] for obj in node_sets}
    pods = (await tools.kube.list(PODS, cluster.namespace)).items
    return tuple(
        sorted(
            pod["metadata"]["name"]
            for pod in pods
            if succession.has_slurmd(pod, cluster)
            or not uids.isdisjoint(one.get("uid") for one in pod["metadata"].get("ownerReferences") or ())
        )
    )
