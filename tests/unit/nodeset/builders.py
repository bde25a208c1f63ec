"""What tests of rules are made of: pods, records and jobs of the NodeSet `ns/a`."""

from __future__ import annotations

from slinky_operator.nodeset.model.member import Member, join
from slinky_operator.nodeset.model.pod_facts import Pod
from slurm_client.models import Job, Node

OWNER = "ns/a"
"""Tag of the NodeSet."""


def joined(pod: Pod, record: Node | None = None, *jobs: Job) -> Member:
    """A pod with the record and the jobs of its node."""
    return join(pod, {pod.node_name: record}, {pod.node_name: jobs}, OWNER)
