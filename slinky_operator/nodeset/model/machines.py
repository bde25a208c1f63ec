"""What is done about the machine of a Kubernetes Node: who may ask for it, and the mark that says how far it is.

The mark is an annotation. It goes onto a Node with the operator's cordon and leaves it with that, so a cordon without
one is somebody else's. It names the boot of the machine that is to end: another boot is the proof that it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.health import ReplacePolicy

REBOOT_NODE: Final = "RebootNode"
"""In place of an annotation: the machine is rebooted by who serves NVSentinel's kind of that name."""

ANY: Final = "*"
"""In place of namespaces."""

BY_HAND: Final = f"remove the annotation {labels.ANNOTATION_NODE_MACHINE} and uncordon the Node"
"""What to do about a Node whose machine will not start again."""

_SENT: Final = "sent"


@dataclass(frozen=True, slots=True)
class MachineRules:
    """What the operator's settings allow."""

    namespaces: frozenset[str] = frozenset()
    """Whose NodeSets may ask for it; `ANY` for all."""
    node_label: str = ""
    """Label, as key=value, that a Node must have; empty for any Node."""
    reboot_by: str = ""
    """`REBOOT_NODE`, or the key of an annotation for a daemon of the site; empty if nothing reboots machines."""
    delete_nodes: bool = False
    """Whether a Node without a Machine of Cluster API is deleted itself."""

    def allow(self, namespace: str) -> bool:
        """Whether NodeSets of a namespace may ask for it."""
        return not self.namespaces.isdisjoint({namespace, ANY})

    def fit(self, own: Mapping[str, str]) -> bool:
        """Whether a Node with these labels may be rebooted or deleted."""
        key, _, value = self.node_label.partition("=")
        return not key or own.get(key) == value


@dataclass(frozen=True, slots=True)
class Mark:
    """What is done about a machine, as written on its Node."""

    owner: str
    """The NodeSet, as <namespace>/<name>."""
    policy: str
    boot_id: str
    """Of the machine that is to be rebooted, or deleted."""
    began: str
    """When the try began, as in the status of the NodeSet."""
    is_sent: bool = False
    """Whether it has been asked for: until the machine has another boot id, it may reboot at any moment."""

    def text(self) -> str:
        """The annotation."""
        return " ".join((self.owner, self.policy, self.boot_id, self.began, *([_SENT] if self.is_sent else [])))


def read(annotations: Mapping[str, str]) -> Mark | None:
    """The mark of a Node; None without one, or if it cannot be read."""
    words = str(annotations.get(labels.ANNOTATION_NODE_MACHINE) or "").split(" ")
    match words:
        case [owner, policy, boot_id, began]:
            return Mark(owner, policy, boot_id, began)
        case [owner, policy, boot_id, began, last] if last == _SENT:
            return Mark(owner, policy, boot_id, began, is_sent=True)
        case _:
            return None


def refusal(policy: ReplacePolicy, rules: MachineRules | None, namespace: str) -> str:
    """Why a NodeSet may not have a policy for machines; empty if it may."""
    field = f"spec.health.replace.policy {policy}"
    if rules is None or not rules.allow(namespace):
        return (
            f"{field} has no effect: NodeSets of namespace {namespace} may not act on machines. An administrator can "
            "allow it by nodeLife.namespaces of the operator's chart"
        )
    if policy is ReplacePolicy.REBOOT and not rules.reboot_by:
        return f"{field} has no effect: nodeLife.rebootBy of the operator's chart does not say who reboots machines"
    return ""
