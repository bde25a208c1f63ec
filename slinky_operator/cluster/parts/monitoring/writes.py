"""The part of `executor` about ServiceMonitors, a kind that many API servers do not serve."""

from __future__ import annotations

from typing import Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import KeepMonitor, Write
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.writes import kubernetes_writes
from slinky_operator.kube import errors
from slinky_operator.kube.resources import SERVICEMONITORS
from slinky_operator.reconcile.writes.children import has_settled, is_current

NOT_SERVED: Final = (
    f"the API server does not serve {SERVICEMONITORS.api_version}: install the CRDs of the Prometheus Operator, or set "
    "spec.metrics.serviceMonitor.enabled to false"
)
NOT_ALLOWED: Final = "the operator's chart gives this right with rbac.serviceMonitors=true"


async def keep(action: KeepMonitor, cluster: Cluster, memory: Memory, context: PassContext) -> bool:
    """Write a ServiceMonitor unless it is as it should be; return whether there is news of its success."""
    child = action.child
    memory.writes.monitors[child.name] = child.digest, context.clock()
    before = memory.writes.denied.get(child.key)
    try:
        live = await context.live(child.resource, child.name, cluster.namespace)
        if live is None or not (
            is_current(child.body, live) or has_settled(child, live, memory.writes.settled.get(child.key))
        ):
            _ = await kubernetes_writes.write(Write(child, live), cluster, memory, context)
        else:
            memory.writes.denied.pop(child.key, None)
    except errors.Forbidden as error:
        memory.writes.denied[child.key] = Denied(child.digest, f"{error.message}; {NOT_ALLOWED}", context.clock())
    except errors.NotFound:
        memory.writes.denied[child.key] = Denied(child.digest, NOT_SERVED, context.clock())
    after = memory.writes.denied.get(child.key)
    return (before and before.why) != (after and after.why)
