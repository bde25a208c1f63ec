"""The part of `executor` that writes Secrets with keys.

Each write may be repeated, and a cache may be outdated.

No key is ever logged, reported or kept anywhere but in Secrets and in memory.
"""

from __future__ import annotations

import base64
import logging
from typing import Final, TypeAlias, assert_never

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import KeepKeys, MakeKey, MakePassword, PutKeyBack, ReadKeys, SealKey
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, SECRETS, STATEFULSETS
from slinky_operator.slurm import naming

logger = logging.getLogger(__name__)

_REFUSALS: Final = (errors.Invalid, errors.Forbidden, errors.BadRequest)


PASSWORD_SIZE: Final = 24
"""Random bytes of a password, which is twice as many hexadecimal digits."""

FIRST_KEY: Final = "generated"
"""Id (kid) of the key in a set that the operator makes."""

KeyAction: TypeAlias = MakeKey | MakePassword | PutKeyBack | SealKey | KeepKeys | ReadKeys


async def carry_out(action: KeyAction, cluster: Cluster, memory: Memory, context: PassContext) -> bool:
    """Carry out one action; returns whether another round is worthwhile at once."""
    match action:
        case MakeKey():
            await _make(action, cluster, memory, context)
        case MakePassword():
            password = context.random_bytes(PASSWORD_SIZE).hex().encode()
            await _create(action.body, action.key, password, cluster, memory, context)
        case PutKeyBack():
            await _put_back(action, cluster, memory, context)
        case SealKey():
            await _seal(action, cluster, context)
        case KeepKeys():
            await _keep(action, cluster, memory, context)
        case ReadKeys():
            memory.keys.asked = action.purpose, context.clock()
            for name in action.secrets:
                context.sources.forget(cluster.namespace, name)
        case _:
            assert_never(action)
    return True


async def _make(action: MakeKey, cluster: Cluster, memory: Memory, context: PassContext) -> None:
    """Create a Secret with a new key, after checking past the caches for what may have had another."""
    name = action.body["metadata"]["name"]
    why = await _had_another(action, cluster, context)
    if why:
        memory.writes.denied["Secret", name] = Denied("", f"no key is made: {why}", context.clock())
        context.sources.forget(cluster.namespace, action.copy)
    else:
        value = context.random_bytes(action.size)
        if action.key == naming.SLURM_JWKS:
            value = key_sets.of_one(FIRST_KEY, value)
        await _create(action.body, action.key, value, cluster, memory, context)


async def _put_back(action: PutKeyBack, cluster: Cluster, memory: Memory, context: PassContext) -> None:
    """Create a Secret with a known key, replacing another one if there is one; and emit an Event."""
    if action.replaces:
        try:
            await context.kube.delete(SECRETS, action.body["metadata"]["name"], cluster.namespace, uid=action.replaces)
        except (errors.NotFound, errors.Conflict):
            logger.info("Secret %s/%s has gone already", cluster.namespace, action.body["metadata"]["name"])
    if await _create(action.body, action.key, action.value, cluster, memory, context):
        context.recorder.event(action.tell.obj, action.tell.type, action.tell.reason, action.tell.message)


async def _seal(action: SealKey, cluster: Cluster, context: PassContext) -> None:
    """Make a Secret immutable."""
    try:
        await context.kube.merge_patch(SECRETS, action.secret, {"immutable": True}, cluster.namespace, uid=action.uid)
    except (errors.NotFound, errors.Conflict):
        logger.info("Secret %s/%s has been replaced", cluster.namespace, action.secret)
    context.sources.forget(cluster.namespace, action.secret)


async def _keep(action: KeepKeys, cluster: Cluster, memory: Memory, context: PassContext) -> None:
    """Write the copy, unless a Secret of that name belongs to somebody else."""
    name = action.body["metadata"]["name"]
    found = await context.live(SECRETS, name, cluster.namespace)
    try:
        if found is None:
            await context.kube.create(SECRETS, action.body, cluster.namespace)
        elif labels.LABEL_CLUSTER_UID in (found["metadata"].get("labels") or {}):
            body = {**action.body, "metadata": {**action.body["metadata"], "uid": found["metadata"]["uid"]}}
            await context.kube.apply(SECRETS, body, force=True)
        else:
            why = adoption.not_ours(SECRETS, name, cluster)
            memory.writes.denied["Secret", name] = Denied("", why, context.clock())
            return
        memory.writes.denied.pop(("Secret", name), None)
    except errors.AlreadyExists:
        logger.info("Secret %s/%s is there already", cluster.namespace, name)
    except _REFUSALS as error:
        memory.writes.denied["Secret", name] = Denied("", error.message, context.clock())
    context.sources.forget(cluster.namespace, name)


async def _create(body: Object, key: str, value: bytes, cluster: Cluster, memory: Memory, context: PassContext) -> bool:
    """Create a Secret; returns whether it was created."""
    name = body["metadata"]["name"]
    created = False
    try:
        data = {key: base64.b64encode(value).decode()}
        await context.kube.create(SECRETS, {**body, "data": data}, cluster.namespace)
        created = True
        memory.writes.denied.pop(("Secret", name), None)
    except errors.AlreadyExists:
        # The next round shows whose it is and what it contains.
        logger.info("Secret %s/%s is there already", cluster.namespace, name)
    except _REFUSALS as error:
        memory.writes.denied["Secret", name] = Denied("", error.message, context.clock())
    context.sources.forget(cluster.namespace, name)
    return created


async def _had_another(action: MakeKey, cluster: Cluster, context: PassContext) -> str:
    """The existing object that had another key; empty if there is none."""
    for resource, name in ((STATEFULSETS, action.controller), (SECRETS, action.copy)):
        if await context.live(resource, name, cluster.namespace) is not None:
            return f"{resource.kind} {name} is there already, and daemons may run with another key"
    selector = f"{labels.LABEL_CLUSTER_NAME}={cluster.name},{labels.LABEL_NODESET_UID}"
    async for page in context.kube.pages(PODS, cluster.namespace, label_selector=selector, page_size=1):
        for pod in page.items:
            name = pod["metadata"]["name"]
            return f"pod {name} of a NodeSet is there already, whose slurmd runs with another key"
    return ""
