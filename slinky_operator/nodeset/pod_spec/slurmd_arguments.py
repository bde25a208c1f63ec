"""The arguments of slurmd: the user's, and those that set the node's identity."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import Confinement
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.slurm_nodes import identity
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates import confinement
from slinky_operator.slurm.slurmd import node_conf
from slinky_operator.slurm.slurmd.launch import CONF, CONF_SERVER, Launch


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of the slurmds of a NodeSet, without the name of each node."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    def of(self, place: PodSlot) -> list[str]:
        """Those of one slurmd."""
        return [*self.before, place.node, *self.after]


def build(nodeset: NodeSet, cluster: Cluster, launch: Launch, container: Mapping[str, Any]) -> Arguments:
    """Arguments of slurmd: the user's, without their `--conf`, and the operator's with that merged in.

    Parameters
    ----------
    launch
        How the template starts slurmd.
    container
        The merged container, whose resources decide what the node offers.
    """
    server = naming.conf_server(cluster)
    # An entrypoint that uses a shell decides itself whether slurmd stays in the foreground.
    flags = ("-Z",) if launch.joined else ("-D", "-Z")
    before = [*launch.arguments, *(flag for flag in flags if flag not in launch.arguments), "-N"]
    after = ["--instance-id", "$(POD_UID)", "--extra", identity.tag(nodeset.namespace, nodeset.name)]
    if nodeset.spec.confinement is Confinement.CONSTRAIN:
        after += confinement.ARGUMENTS
    elif server is not None and not launch.names_conf_server:
        after += [CONF_SERVER, server]
    line = node_conf.node_line(nodeset, container.get("resources") or {}, launch.conf, machine=launch.is_whole)
    after += [CONF, shlex.quote(line) if launch.joined else line]
    return Arguments(tuple(before), tuple(after))
