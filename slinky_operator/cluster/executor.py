"""Carries out actions in order, one Cluster at a time. No rules: `plan` decides what to do."""

from __future__ import annotations

from typing import assert_never

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import actions, adoption
from slinky_operator.cluster.context import PassContext, reference
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.claims import writes as claim_writes
from slinky_operator.cluster.parts.deletion import writes as deletion
from slinky_operator.cluster.parts.keys import writes as key_writes
from slinky_operator.cluster.parts.monitoring import writes as monitors
from slinky_operator.cluster.question import A, Question
from slinky_operator.cluster.rollout import reload
from slinky_operator.cluster.writes import kubernetes_writes
from slinky_operator.kube.events import EventType
from slinky_operator.kube.resources import NODESETS, PODS
from slinky_operator.slurm.connection.clients import OwnTokens
from slurm_client import StaticToken, TokenProvider


async def act(planned: tuple[actions.Action, ...], cluster: Cluster, memory: Memory, context: PassContext) -> bool:
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
        for action in planned:
            if again and isinstance(action, actions.EmitEvent) and action.with_status:
                # The status is not written in this round, and the next one plans it again.
                continue
            again = await _carry_out(action, cluster, memory, context) or again
    finally:
        if memory.adopted:
            context.recorder.event(reference(cluster), EventType.NORMAL, "Adopted", adoption.told(memory.adopted))
            memory.adopted = ()
    return again


async def _carry_out(action: actions.Action, cluster: Cluster, memory: Memory, context: PassContext) -> bool:  # noqa: C901, PLR0911, PLR0912, PLR0915 - one each
    match action:
        case actions.SetFinalizer():
            await kubernetes_writes.set_finalizer(action, memory, context)
        case (
            actions.MakeKey()
            | actions.MakePassword()
            | actions.PutKeyBack()
            | actions.SealKey()
            | actions.KeepKeys()
            | actions.ReadKeys()
        ):
            return await key_writes.carry_out(action, cluster, memory, context)
        case actions.AdoptKey():
            await kubernetes_writes.adopt_key(action, cluster, memory, context)
            return True
        case actions.Write():
            return await kubernetes_writes.write(action, cluster, memory, context)
        case actions.KeepMonitor():
            return await monitors.keep(action, cluster, memory, context)
        case actions.Connect():
            token: TokenProvider = StaticToken(action.token)
            if action.keys:
                token = OwnTokens(action.keys, action.lifetime)
            entry = await context.clients.put(
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
        case actions.UseReplicas():
            client = context.clients.get(cluster.uid)
            if client is not None:
                client.replicas.use(action.urls)
        case actions.UseSlurmKey():
            client = context.clients.get(cluster.uid)
            if client is not None:
                client.slurm_key = action.key
        case actions.Disconnect():
            await context.clients.close(cluster.uid)
        case actions.Hurry():
            client = context.clients.get(cluster.uid)
            if client is not None:
                client.hurry()
        case actions.TouchPod():
            await kubernetes_writes.touch(action, context)
            memory.rollout.touched = action.hash, context.clock()
        case actions.ReplacePod():
            pod = action.pod["metadata"]
            await kubernetes_writes.remove(PODS, pod["name"], pod["namespace"], pod["uid"], context)
            memory.rollout.replaced |= {(action.component, action.hash)}
        case actions.StartPreflight():
            context.changes.preflight_started(cluster.uid, action.preflight.name, context.clock())
            return await kubernetes_writes.start_preflight(action, cluster, memory, context)
        case actions.EndPreflight():
            memory.rollout.judge(action.name, action.verdict)
            outcome = action.verdict.outcome.name.lower()
            context.changes.preflight_ended(cluster.uid, action.name, outcome, context.clock())
            return True
        case actions.ExcludeSlurmdKinds():
            memory.rollout.left_out = dict(action.left_out)
            return True
        case actions.Remove():
            await kubernetes_writes.remove(action.resource, action.name, cluster.namespace, action.uid, context)
        case actions.HoldBackNodeSets():
            memory.rollout.held, memory.rollout.held_for = dict(action.held), action.held_for
            return True
        case actions.GrowClaim():
            known = memory.writes.claims.get(action.name)
            memory.writes.claims[action.name] = size = await claim_writes.grow(action, cluster.namespace, context)
            return size.shows_other_than(known)
        case actions.Reload():
            full = await _full(action, cluster, memory, context)
            memory.rollout.loaded = await reload.reload(context.clients.get(cluster.uid), action, context.clock, full)
            return True
        case actions.TearDown():
            return await deletion.tear_down(action, cluster, memory, context)
        case actions.Ask():
            return await _ask(action.question, cluster, memory, context)
        case actions.EmitEvent():
            context.recorder.event(action.obj, action.type, action.reason, action.message)
            if action.obj["kind"] == NODESETS.kind:
                memory.rollout.reported_nodesets |= {(action.obj["metadata"]["name"], action.message)}
            else:
                memory.last_events[action.reason] = action.message
        case _:
            assert_never(action)
    return False


async def _full(action: actions.Reload, cluster: Cluster, memory: Memory, context: PassContext) -> str:
    """What the volume of slurmctld's state has left, if that is next to nothing and no `reconfigure` was sent yet."""
    if action.room is None or (action.before is not None and action.before.asked is not None):
        return ""
    _ = await _ask(action.room, cluster, memory, context)
    answer = memory.answers.of(type(action.room), action.room.about)
    room = None if answer is None else answer.rooms.get(volumes.STATE)
    return room.left() if room is not None and room.is_full else ""


async def _ask(question: Question[A], cluster: Cluster, memory: Memory, context: PassContext) -> bool:
    """Ask a question and remember its answer; whether that is news."""
    kind, about = type(question), question.about
    before = memory.answers.of(kind, about)
    answer = await question.ask(cluster, memory.answers, context)
    memory.answers.note(kind, answer, about)
    return question.is_news(before, answer)
