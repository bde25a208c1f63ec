"""Reads and writes the ConfigMap with the health checks of a NodeSet.

A write holds for the version that was read: one that somebody else has changed is read again, and decided upon again.
"""

from __future__ import annotations

from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.nodeset.execute.context import PassContext
from slinky_operator.nodeset.model import check_tables
from slinky_operator.nodeset.model.actions import KeepChecks
from slinky_operator.nodeset.model.check_tables import StoredChecks


async def keep(context: PassContext, action: KeepChecks) -> None:
    """Read the ConfigMap, or write it; what it has then is in the outcome.

    Raises
    ------
    KubeError
        The API server failed or refused.
    """
    context.outcome.acted = True
    if action.data is None:
        context.outcome.checks = await _read(context)
        return
    nodeset, stored = context.nodeset, action.stored
    body = check_tables.build(nodeset, action.data)
    try:
        if stored.uid:
            gone = dict.fromkeys(stored.data.keys() - action.data.keys())
            obj = await context.kube.merge_patch(
                CONFIGMAPS,
                check_tables.name(nodeset),
                {"data": {**action.data, **gone}},
                nodeset.namespace,
                uid=stored.uid,
                resource_version=stored.version,
            )
        else:
            obj = await context.kube.create(CONFIGMAPS, body)
    except (kube_errors.AlreadyExists, kube_errors.Conflict, kube_errors.NotFound):
        context.outcome.checks = await _read(context)
        return
    context.outcome.checks = check_tables.read(obj)
    for reason, text in action.events:
        context.say(reason, text)


async def _read(context: PassContext) -> StoredChecks | None:
    name = check_tables.name(context.nodeset)
    try:
        obj = await context.kube.get(CONFIGMAPS, name, context.nodeset.namespace)
    except kube_errors.NotFound:
        return StoredChecks()
    if not check_tables.is_ours(context.nodeset, obj):
        context.outcome.refusals.append(f"there is a ConfigMap {name} that is not ours: no health check runs")
        return None
    return check_tables.read(obj)
