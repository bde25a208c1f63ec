"""Carries out actions in order, one Cluster at a time. No rules: `plan` decides what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from slinky_api.v1alpha1.cluster import Cluster
from slinky_operator.cluster import succession
from slinky_operator.cluster.actions import (
    Action,
    AdoptKey,
    AskAccounting,
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
    MakePassword,
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
from slinky_operator.cluster.execute import accounting_queries, key_writes, kubernetes_writes, reload, slurm_queries
from slinky_operator.cluster.execute.context import Tools
from slinky_operator.cluster.memory import Memory
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    NODESETS,
    PODS,
)
from slurm_client import MintedToken, StaticToken, TokenProvider


async def act(actions: tuple[Action, ...], cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Carry out actions in order, until one fails.

    Returns
    -------
    bool
        Whether something was learned that no cache shows, so that another round is worthwhile at once.

    Raises
    ------
    SupersededError
        The Cluster is gone.
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
    """The object that an Event is about."""
    about = {"name": cluster.name, "namespace": cluster.namespace, "uid": cluster.uid}
    return {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "metadata": about}


async def _carry_out(action: Action, cluster: Cluster, memory: Memory, tools: Tools) -> bool:  # noqa: C901, PLR0911, PLR0912, PLR0915 - one each
    match action:
        case SetFinalizer():
            await kubernetes_writes.set_finalizer(action, memory, tools)
        case MakeKey() | MakePassword() | PutKeyBack() | SealKey() | KeepKeys() | ReadKeys() | TryKey():
            return await key_writes.carry_out(action, cluster, memory, tools)
        case AdoptKey():
            await kubernetes_writes.adopt_key(action, cluster, memory, tools)
            return True
        case Write():
            return await kubernetes_writes.write(action, cluster, memory, tools)
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
            await kubernetes_writes.touch(action, tools)
            memory.touched = action.hash, tools.clock()
        case ReplacePod():
            pod = action.pod["metadata"]
            await kubernetes_writes.remove(PODS, pod["name"], pod["namespace"], pod["uid"], tools)
            memory.replaced |= {(action.component, action.hash)}
        case StartPreflight():
            return await kubernetes_writes.start_preflight(action, cluster, memory, tools)
        case EndPreflight():
            memory.judge(action.name, action.verdict)
            return True
        case ExcludeSlurmdKinds():
            memory.left_out = dict(action.left_out)
            return True
        case Remove():
            await kubernetes_writes.remove(action.resource, action.name, cluster.namespace, action.uid, tools)
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
            memory.claim = await kubernetes_writes.ask_claim(action.name, cluster.namespace, tools)
            return bool(memory.claim.deleted)
        case Reload():
            memory.loaded = await reload.reload(tools.clients.get(cluster.uid), action, tools.clock)
            return True
        case CountJobs():
            memory.jobs = (
                await slurm_queries.count(tools.clients.get(cluster.uid), memory.jobs, tools.clock) or memory.jobs
            )
        case AskAccounting():
            client, before = tools.clients.get(cluster.uid), memory.accounting
            memory.accounting = await accounting_queries.ask_accounting(client, cluster.slurm_name, tools.clock)
            return memory.accounting is not None and (
                before is None or replace(memory.accounting, at=before.at) != before
            )
        case TearDown():
            return await kubernetes_writes.tear_down(action, cluster, memory, tools)
        case EmitEvent():
            tools.recorder.event(action.obj, action.type, action.reason, action.message)
            if action.obj["kind"] == NODESETS.kind:
                memory.reported_nodesets |= {(action.obj["metadata"]["name"], action.message)}
            else:
                memory.last_events[action.reason] = action.message
        case _:
            assert_never(action)
    return False
