"""Whether accounting works: what the spec, the daemons' pods and slurmdbd itself show. Pure.

slurmctld goes on without slurmdbd, and keeps what it has to tell until that is back: accounting that fails makes no
Cluster unready. Only one that starts with an empty state waits for slurmdbd, since it has all resources (TRES) and
associations from there. Slurm's own answer comes last, since what Kubernetes knows of a pod explains it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import in_conf, slurmctld_addresses, stored, variants
from slinky_operator.cluster.parts.accounting.question import last_answer
from slinky_operator.cluster.parts.accounting.slurmdbd_conf import KEEPS
from slinky_operator.cluster.trials.engine import Stage, Trial
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.pod_trouble import DaemonTrouble
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import parse
from slinky_operator.slurm.conf.render import SLURM_CONF

Word = Literal["True", "False", "Unknown"]

GOES_ON: Final = (
    "A slurmctld that has reached slurmdbd before goes on, and keeps what it has to tell until slurmdbd is back; a new "
    "one waits for it"
)

ANSWERS: Final = "slurmdbd answers, and slurmctld has registered with it"

UNTRIED: Final = Trial(Stage.PASSED)
"""No configuration waits for a trial."""

_DAEMONS: Final = (naming.DATABASE_CONTAINER, naming.ACCOUNTING_CONTAINER)


@dataclass(frozen=True, slots=True)
class SlurmdbdTrial:
    """What is known of slurmdbd's next configuration."""

    trial: Trial = UNTRIED


def of_accounting(
    snapshot: Snapshot, stuck: Iterable[DaemonTrouble], trial: Trial = UNTRIED
) -> tuple[Word, Reason, str] | None:
    """Status, reason and message of `AccountingReady`; `None` for a Cluster without accounting.

    Parameters
    ----------
    stuck
        Why pods of the daemons do not start.
    trial
        What is known of slurmdbd's next configuration.
    """
    cluster = snapshot.cluster
    if variants.wanted(cluster) is None:
        return None
    found = _of_spec(snapshot) or _of_trial(trial) or _of_pods(snapshot, tuple(stuck))
    if found is not None:
        return ("False", *found)
    return _of_slurm(snapshot)


def _of_spec(snapshot: Snapshot) -> tuple[Reason, str] | None:
    """What is wrong with the settings, or could not be written."""
    problem = stored.contents(snapshot).problem
    if problem is not None:
        return problem.reason, problem.message
    for name in stored.names(snapshot.cluster):
        denied = snapshot.memory.writes.denied.get(("Secret", name))
        if denied is not None:
            return Reason.CHILD_REFUSED, f"Secret {name}: {denied.why}"
    return None


def _of_trial(trial: Trial) -> tuple[Reason, str] | None:
    """Why slurmdbd keeps its earlier configuration; nothing while a trial runs."""
    if trial.stage is Stage.REFUSED:
        return Reason.CONFIG_REFUSED, f"spec.accounting.extraConf: slurmdbd refuses it: {trial.message}. {KEEPS}"
    if trial.stage is Stage.STUCK:
        return Reason.CONFIG_UNTRIED, f"spec.accounting.extraConf: {trial.message}. {KEEPS} until it is tried"
    return None


def _of_pods(snapshot: Snapshot, stuck: tuple[DaemonTrouble, ...]) -> tuple[Reason, str] | None:
    words = [str(one) for one in stuck if one.daemon in _DAEMONS]
    if words:
        return Reason.DAEMON_STUCK, f"{'; '.join(words)}. {GOES_ON}"
    if variants.runs_database(snapshot.cluster) and not _is_ready(snapshot, naming.database(snapshot.cluster.name)):
        return Reason.DAEMONS_STARTING, f"{_starting(snapshot, 'MariaDB', naming.COMPONENT_DATABASE)}. {GOES_ON}"
    if variants.runs_slurmdbd(snapshot.cluster) and not in_conf.slurmdbd_is_ready(snapshot):
        return Reason.DAEMONS_STARTING, f"{_starting(snapshot, 'slurmdbd', naming.COMPONENT_ACCOUNTING)}. {GOES_ON}"
    return None


def _starting(snapshot: Snapshot, daemon: str, component: str) -> str:
    """That a daemon is starting, or has no pod.

    Only the Events of a StatefulSet say why the API server refuses its pods; its status has no word about it.
    """
    name = naming.daemon(snapshot.cluster.name, component)
    owner = snapshot.children.get(("StatefulSet", name))
    # A pod that is being deleted counts until it has gone.
    lost = next(filter(None, map(lost_node, snapshot.pods.daemons.get(component) or ())), "")
    if lost:
        return f"{daemon}: {lost}"
    if owner is None or snapshot.pods.daemons.get(component) or (owner.get("status") or {}).get("replicas"):
        return f"{daemon} is starting"
    namespace = snapshot.cluster.namespace
    return f"{daemon} has no pod; if that lasts, kubectl -n {namespace} describe statefulset {name} says why"


def lost_node(pod: Object) -> str:
    """That the Node of a pod does not answer; empty if it does.

    Kubernetes then says that the pod is not ready, while its containers stay as their kubelet has last shown them.
    """
    status = pod.get("status") or {}
    ready: Object = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), {})
    containers = status.get("containerStatuses") or ()
    if ready.get("status") != "False" or not containers or not all(one.get("ready") for one in containers):
        return ""
    node, name = (pod.get("spec") or {}).get("nodeName", ""), pod["metadata"]["name"]
    return (
        f"Node {node} of pod {name} does not answer, NotReady since {ready.get('lastTransitionTime', '')}. Once "
        f"the machine is switched off, kubectl delete node {node} lets another one start the pod"
    )


def _of_slurm(snapshot: Snapshot) -> tuple[Word, Reason, str]:
    """What slurmdbd has answered."""
    config_map = snapshot.children.get(("ConfigMap", naming.config(snapshot.cluster.name))) or {}
    if not in_conf.has_accounting(parse((config_map.get("data") or {}).get(SLURM_CONF, ""))):
        return (
            "False",
            Reason.CONFIG_PENDING,
            "slurmdbd is there; slurm.conf does not name it yet (ConfigApplied says why)",
        )
    answer = last_answer(snapshot.memory.answers)
    if answer is None:
        known = find(snapshot.cluster.status.conditions, ClusterCondition.ACCOUNTING_READY)
        if known is not None and known.status == "True":
            # An operator that has just started knows nothing yet.
            return "True", Reason.AS_EXPECTED, known.message
        return "Unknown", Reason.CONNECTING, "slurmdbd has not been asked yet: that needs a slurmrestd with its calls"
    name = snapshot.cluster.slurm_name
    missing = "" if answer.controller else f"slurmdbd answers; slurmctld of cluster {name} has not registered with it"
    if answer.why or missing:
        return "False", Reason.ACCOUNTING_DOWN, f"{answer.why or missing}{_where(snapshot)}. {GOES_ON}"
    return _of_address(snapshot)


def _of_address(snapshot: Snapshot) -> tuple[Word, Reason, str]:
    """Whether the slurmctld that slurmdbd has is the Cluster's own."""
    if slurmctld_addresses.is_taken(snapshot):
        return "False", Reason.CLUSTER_NAME_TAKEN, slurmctld_addresses.taken(snapshot)
    awaited = slurmctld_addresses.awaited(snapshot)
    if awaited:
        return "False", Reason.DAEMONS_STARTING, f"{awaited}. {GOES_ON}"
    return "True", Reason.AS_EXPECTED, ANSWERS


def _where(snapshot: Snapshot) -> str:
    """What may be wrong with a slurmdbd elsewhere: Slurm has the same words for each; empty for one of the operator's.

    Slurm 26.05: a closed port, an unknown host and another key of auth/jwt are all `Unable to connect to database`.
    """
    accounting = snapshot.cluster.spec.accounting
    if accounting is None or accounting.external is None:
        return ""
    port = accounting.external.port or naming.SLURMDBD_PORT
    return (
        f"; spec.accounting.external is {accounting.external.host}, port {port}: it must be reachable from the pods "
        "and have the keys of auth.slurmKeyRef and auth.jwtKeyRef (its log says so if it has others)"
    )


def _is_ready(snapshot: Snapshot, name: str) -> bool:
    live = snapshot.children.get(("StatefulSet", name)) or {}
    return bool((live.get("status") or {}).get("readyReplicas"))
