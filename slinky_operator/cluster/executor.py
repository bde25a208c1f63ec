"""Carries out actions in order, one Cluster at a time. No rules: `plan` decides what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, assert_never

from slinky_api.events import EventReason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import (
    Action,
    AdoptKey,
    ApplyAccounts,
    AskAccounting,
    AskAgent,
    AskClaim,
    AskDirectory,
    AskForKeys,
    AskNames,
    AskStates,
    AskUse,
    AskVolumes,
    Connect,
    CountJobs,
    Disconnect,
    EmitEvent,
    EndPreflight,
    ExcludeSlurmdKinds,
    GrowClaim,
    HoldBackNodeSets,
    Hurry,
    KeepKeys,
    KeepMonitor,
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
    UseReplicas,
    UseSlurmKey,
    Write,
)
from slinky_operator.cluster.context import Tools
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.memory import Memory
from slinky_operator.cluster.parts.accounting import query as accounting_queries
from slinky_operator.cluster.parts.accounts import apply as accounts
from slinky_operator.cluster.parts.claims import writes as claim_writes
from slinky_operator.cluster.parts.deletion import writes as deletion
from slinky_operator.cluster.parts.identity import query as directory_query
from slinky_operator.cluster.parts.job_counts import query as job_counts_query
from slinky_operator.cluster.parts.keys import writes as key_writes
from slinky_operator.cluster.parts.keys.proof import query as key_questions
from slinky_operator.cluster.parts.monitoring import writes as monitors
from slinky_operator.cluster.rollout import agent_queries, reload, slurm_queries
from slinky_operator.cluster.rollout.agent_queries import Agent
from slinky_operator.cluster.writes import kubernetes_writes
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    NODESETS,
    PODS,
)
from slinky_operator.reconcile.text import cut, joined
from slinky_operator.slurm.connection.own_tokens import OwnTokens
from slinky_operator.slurm.volumes.query import Looker, ask_volumes
from slurm_client import StaticToken, TokenProvider

LONGEST_EVENT: Final = 900
"""Characters of an Event: Kubernetes takes 1024."""


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
            tools.recorder.event(_reference(cluster), EventType.NORMAL, "Adopted", adoption.told(memory.adopted))
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
        case KeepMonitor():
            return await monitors.keep(action, cluster, memory, tools)
        case Connect():
            token: TokenProvider = StaticToken(action.token)
            if action.keys:
                token = OwnTokens(action.keys, action.lifetime)
            entry = await tools.clients.put(
                cluster.uid,
                cluster.namespace,
                cluster.name,
                endpoint=action.endpoint,
                token=token,
                fingerprint=action.fingerprint,
                replicas=action.replicas,
            )
            entry.slurm_key = action.slurm_key
            return True
        case UseReplicas():
            client = tools.clients.get(cluster.uid)
            if client is not None:
                client.replicas.use(action.urls)
        case UseSlurmKey():
            client = tools.clients.get(cluster.uid)
            if client is not None:
                client.slurm_key = action.key
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
            tools.changes.preflight_started(cluster.uid, action.preflight.name, tools.clock())
            return await kubernetes_writes.start_preflight(action, cluster, memory, tools)
        case EndPreflight():
            memory.judge(action.name, action.verdict)
            outcome = action.verdict.outcome.name.lower()
            tools.changes.preflight_ended(cluster.uid, action.name, outcome, tools.clock())
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
            memory.mounted = await agent_queries.ask_files(tools.http, _agent(action.pod, cluster, tools), tools.clock)
            return memory.mounted.files is not None
        case AskNames():
            agent = _agent(action.pod, cluster, tools)
            memory.names = await agent_queries.ask_names(tools.http, agent, action.names, memory.names, tools.clock)
            return not memory.names.why
        case AskDirectory():
            agent, said = _agent(action.pod, cluster, tools), memory.directory
            memory.directory = await directory_query.ask_directory(tools.http, agent, tools.clock)
            return said is None or replace(memory.directory, asked_at=said.asked_at) != said
        case AskVolumes():
            return await _ask_volumes(action, cluster, memory, tools)
        case AskClaim():
            memory.claim = await kubernetes_writes.ask_claim(action.name, cluster.namespace, tools)
            return bool(memory.claim.deleted)
        case GrowClaim():
            known = memory.claims.get(action.name)
            memory.claims[action.name] = size = await claim_writes.grow(action, cluster.namespace, tools)
            return size.shows_other_than(known)
        case Reload():
            memory.loaded = await reload.reload(tools.clients.get(cluster.uid), action, tools.clock)
            return True
        case AskForKeys():
            proof = await key_questions.ask_for_keys(action, memory.key_proof, tools.ask_daemon, tools.clock)
            memory.key_proof = proof
            return not any(one.lacks for one in proof.found.values())
        case CountJobs():
            memory.jobs = (
                await job_counts_query.count(tools.clients.get(cluster.uid), memory.jobs, tools.clock) or memory.jobs
            )
        case AskAccounting():
            client, before = tools.clients.get(cluster.uid), memory.accounting
            memory.accounting = await accounting_queries.ask_accounting(client, cluster.slurm_name, tools.clock, before)
            if before is not None and before.why and memory.accounts is not None:
                memory.accounts = replace(memory.accounts, stale=True)
            return memory.accounting is not None and (
                before is None or replace(memory.accounting, at=before.at) != before
            )
        case ApplyAccounts():
            return await _apply_accounts(action, cluster, memory, tools)
        case TearDown():
            return await deletion.tear_down(action, cluster, memory, tools)
        case EmitEvent():
            tools.recorder.event(action.obj, action.type, action.reason, action.message)
            if action.obj["kind"] == NODESETS.kind:
                memory.reported_nodesets |= {(action.obj["metadata"]["name"], action.message)}
            else:
                memory.last_events[action.reason] = action.message
        case _:
            assert_never(action)
    return False


def _agent(pod: Object, cluster: Cluster, tools: Tools) -> Agent:
    return Agent(tools.agent_url(pod), pod["metadata"]["uid"], cluster.namespace, cluster.uid)


async def _ask_volumes(action: AskVolumes, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Remember the room of a pod's volumes, and show it in the metrics; whether it is other than before."""
    name = action.pod["metadata"]["name"]
    before = memory.volumes.get(name)
    looker = Looker(tools.agent_url(action.pod), action.pod["metadata"]["uid"], cluster.namespace)
    found = await ask_volumes(tools.http, looker, volumes.NAMES, tools.clock)
    memory.volumes[name] = found
    client = tools.clients.get(cluster.uid)
    if client is not None:
        client.volumes = {
            volume: (room.share_of_bytes, room.share_of_inodes)
            for one in memory.volumes.values()
            for volume, room in one.rooms.items()
        }
    return before is None or replace(found, asked_at=before.asked_at) != before


async def _apply_accounts(action: ApplyAccounts, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Make a batch of changes in slurmdbd, and tell of it."""
    before = memory.accounts
    found = await accounts.apply_accounts(tools.clients.get(cluster.uid), action, before, tools.clock)
    memory.accounts = found.outcome
    if found.done:
        foreign = before is not None and before.settled and before.version == action.version and not before.stale
        reason = EventReason.ACCOUNTS_PUT_BACK if foreign else EventReason.ACCOUNTS_CHANGED
        told = f"changed by somebody else, and put back: {joined(found.done)}" if foreign else joined(found.done)
        kind = EventType.WARNING if foreign else EventType.NORMAL
        tools.recorder.event(_reference(cluster), kind, reason, cut(told, LONGEST_EVENT))
    return before is None or replace(before, at=0.0, cost=0.0) != replace(found.outcome, at=0.0, cost=0.0)
