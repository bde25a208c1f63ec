"""What in Slurm's configuration does not go with pods, as measured with Slurm 26.05. Pure.

- A suspended job leaves its CPUs to others while its pods run on, since nothing stops them. That is refused: pods of
  two jobs would share a machine that has room for one. GANG suspends jobs in turn, and lets partitions and QOS suspend.
- With GraceTime slurmctld signals the preempted job first, which makes the node NOT_RESPONDING for up to a minute.
  Pods get no signal, but an annotation with the new deadline. It is said, and nodes are made.
- Without AccountingStorageEnforce Slurm takes an account or QOS that the user does not have for another one, silently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_operator.bridge.nodes.model.wishes import Problem
from slinky_operator.reconcile.text import named
from slurm_client.models import Partition

_NONE: Final = timedelta(0)
_PORT: Final = 6817
LARGEST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class Configuration:
    """What matters of Slurm's configuration."""

    gres_types: frozenset[str] = frozenset()
    port: int = _PORT
    """Where slurmctld listens."""
    suspends: str = ""
    """The setting with which jobs may be suspended for others; empty if there is none."""
    enforces: bool = True
    """Whether accounts and QOS of jobs are checked."""
    node_sets: frozenset[str] = frozenset()
    """Names that partitions have for sets of nodes: Slurm would take one for all nodes in it."""
    patient: tuple[str, ...] = field(default=())
    """Partitions with a grace time, by name, that have nodes of the bridge."""


def configuration_of(conf: Mapping[str, Any], partitions: Iterable[Partition], name: str) -> Configuration:
    """Read the answers of Slurm.

    Parameters
    ----------
    conf
        slurm.conf as slurmctld has loaded it.
    name
        What partitions name for nodes of the bridge.
    """
    known = list(partitions)
    ours = [one for one in known if name in _words(one.node_sets) or one.node_list.upper() == "ALL"]
    port = next((int(word) for word in _words(conf.get("SlurmctldPort")) if _is_port(word)), _PORT)
    return Configuration(
        gres_types=frozenset(_words(conf.get("GresTypes"))),
        port=port,
        suspends=_suspends(_words(conf.get("PreemptMode")), ours),
        enforces=bool({word.lower() for word in _words(conf.get("AccountingStorageEnforce"))} - {"none", "0"}),
        node_sets=frozenset(word for one in known for word in _words(one.node_sets)),
        patient=tuple(sorted(one.name for one in ours if one.grace_time is not None and one.grace_time > _NONE)),
    )


def problems_of(found: Configuration) -> Iterable[Problem]:
    """What keeps new nodes from being made."""
    if found.suspends:
        yield (
            Reason.PREEMPTION_UNSUITABLE,
            (
                f"{found.suspends}: a suspended job leaves its CPUs to others, but its pods run. No node is made; set "
                "PreemptMode to CANCEL or REQUEUE"
            ),
        )


def unknown_kinds(kinds: Sequence[str]) -> Iterable[Problem]:
    """What to do about generic resources that Kubernetes Nodes have and Slurm does not know; nodes are made without."""
    if kinds:
        names = sorted({kind.partition(":")[0] for kind in kinds})
        yield (
            Reason.GRES_UNKNOWN,
            (
                f"Kubernetes Nodes have {named(kinds)}, which slurm.conf does not know, so Slurm gives none away: add "
                f"GresTypes={','.join(names)}"
            ),
        )


def remarks_of(found: Configuration, accounts: Collection[str]) -> Iterable[str]:
    """What administrators should know.

    Parameters
    ----------
    accounts
        That tenants of the Cluster are granted.
    """
    if found.patient:
        yield (
            f"partitions {named(found.patient)} have a GraceTime: pods learn of a preemption by the annotation "
            f"{labels.ANNOTATION_BRIDGE_DEADLINE} alone, and its nodes take no job for up to a minute"
        )
    if accounts and not found.enforces:
        yield (
            "slurm.conf has no AccountingStorageEnforce, so Slurm does not check the accounts that spec.jobs.tenants "
            "grants: add AccountingStorageEnforce=associations,limits,qos"
        )


def _suspends(modes: Sequence[str], ours: Sequence[Partition]) -> str:
    """The setting with which slurmctld may suspend jobs of these partitions, given the modes of all partitions."""
    general = sorted({word.upper() for word in modes} & {"GANG", "SUSPEND"})
    if general:
        return f"slurm.conf has PreemptMode={','.join(general)}"
    names = [one.name for one in ours if "SUSPEND" in one.preempt_modes]
    return f"PreemptMode=SUSPEND of partition {named(names)}" if names else ""


def _words(value: object) -> list[str]:
    """The words of a value, which is a text with commas or a list of words."""
    texts = value if isinstance(value, list) else [value]
    return [
        word for text in texts if isinstance(text, str | int) for word in str(text).replace("-", ",").split(",") if word
    ]


def _is_port(word: str) -> bool:
    return word.isascii() and word.isdigit() and 0 < int(word[:6]) <= LARGEST_PORT
