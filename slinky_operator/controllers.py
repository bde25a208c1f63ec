"""Which controllers this process runs: those that are always on, and those that its settings switch on.

What is switched off is not imported: all of it together took a seventh of the CPU of a start. These imports inside a
function are the only ones of a controller, and the checks of types and of layers see them.
"""

from __future__ import annotations

from typing import Final

from slinky_operator.autoscaling import spec as autoscaling
from slinky_operator.cluster import spec as cluster
from slinky_operator.loginset import spec as loginset
from slinky_operator.nodeset import spec as nodeset
from slinky_operator.reconcile.spec import ControllerSpec
from slinky_operator.settings import Settings
from slinky_operator.token import spec as token

ALWAYS: Final = (cluster.SPEC, nodeset.SPEC, loginset.SPEC, token.SPEC, autoscaling.SPEC)


def wanted(settings: Settings) -> tuple[ControllerSpec, ...]:
    """The controllers of this process, in the order in which they are built.

    A new one is added here: docs/development/add-a-kind.md has what else it needs.
    """
    found = [*ALWAYS]
    if settings.node_labels_config_map:
        from slinky_operator.node_labels import spec as node_labels

        found.append(node_labels.SPEC)
    if settings.slurmjobs:
        from slinky_operator.slurmjob import spec as slurmjob

        found.append(slurmjob.SPEC)
    if settings.sylabs_jobs:
        from slinky_operator.sylabs import spec as sylabs

        found += sylabs.SPECS
    if settings.virtual_nodes_clusters:
        from slinky_operator.virtual_nodes.nodes import spec as virtual_nodes
        from slinky_operator.virtual_nodes.pods import spec as virtual_pods

        found += [virtual_nodes.SPEC, virtual_pods.SPEC]
    if settings.virtual_nodes_clusters and settings.sylabs_jobs:
        from slinky_operator.virtual_nodes.sylabs_pods import spec as virtual_sylabs_pods

        found.append(virtual_sylabs_pods.SPEC)
    if settings.bridge_clusters:
        from slinky_operator.bridge.nodes import spec as bridge_nodes
        from slinky_operator.bridge.pods import spec as bridge_pods

        found += [bridge_nodes.SPEC, bridge_pods.SPEC]
    return tuple(found)
