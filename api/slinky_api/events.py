"""Reasons of the Events that report what the operator has done; reasons of conditions are in `conditions`.

A reason is part of the interface: alerts and scripts select Events by it. A condition that changes is reported under
its own reason.
"""

from enum import StrEnum

__all__ = ["EventReason"]


class EventReason(StrEnum):
    """Reasons of Events, in the order of a NodeSet's life, then those of a Cluster and of the operator itself."""

    AUTOSCALED = "Autoscaled"
    """Autoscaling has changed replicas; the message has the jobs that they are for."""

    DRAINING = "Draining"
    """Slurm nodes were drained; the message has the reason, and the jobs that run there."""

    UNDRAINED = "Undrained"
    """Slurm nodes that the operator had drained were resumed."""

    PODS_DELETED = "PodsDeleted"
    """Pods were deleted, which Slurm had shown as empty or whose jobs the user had given up."""

    PODS_REPAIRED = "PodsRepaired"
    """Pods were recreated because their slurmds ran and did not register."""

    PODS_REPLACED = "PodsReplaced"
    """Pods on bad Kubernetes Nodes were recreated, once their nodes were proven to hold no job."""

    MACHINE_REPLACED = "MachineReplaced"
    """A bad Kubernetes Node was cordoned, its machine is rebooted or deleted, or the Node was uncordoned after that."""

    PODS_EVICTED = "PodsEvicted"
    """Kubelets have evicted pods, with their jobs, for want of disk, inodes or memory; the message has their words."""

    JOBS_GIVEN_UP = "JobsGivenUp"
    """Pods were deleted with their jobs, as the user had asked; the message names the jobs."""

    RECORDS_LEFT = "RecordsLeft"
    """Records of nodes stay in Slurm after their NodeSet, whose jobs were given up, since other jobs name the nodes."""

    NODES_DOWN = "NodesDown"
    """Nodes were set DOWN because their pods had ended with jobs: Slurm requeues or fails these."""

    CLAIM_DELETED = "ClaimDeleted"
    """Claims were deleted, as the retention policy of the NodeSet says."""

    PODS_ADOPTED = "PodsAdopted"
    """Pods made for an earlier Cluster of the same name now belong to this one."""

    PODS_TAKEN_OVER = "PodsTakenOver"
    """Pods were taken over from another operator."""

    GUARD_RESTORED = "GuardRestored"
    """The object that keeps pods from being collected was deleted and has been made again."""

    CHECKS_TRIED = "ChecksTried"
    """A node tries new or changed health checks before the others run them; the message names both."""

    CHECKS_APPROVED = "ChecksApproved"
    """Health checks have passed on the node that tried them, and now run on all nodes."""

    TRAITS_REFUSED = "TraitsRefused"
    """Slurm has refused the features or the topology of nodes."""

    TOPOLOGY_NOT_SUPPORTED = "TopologyNotSupported"
    """The REST API of this Slurm cannot set the topology of nodes."""

    PARTITION_STATE_KEPT = "PartitionStateKept"
    """A state of a partition that somebody set by hand was written into the configuration, so that it stays."""

    JOB_SUBMITTED = "JobSubmitted"
    """A SlurmJob was submitted; the message has the number of the job, and what Slurm said about it."""

    JOB_WAITS = "JobWaits"
    """The job of a SlurmJob is in the queue for a reason that may need help: a limit, or a partition that is down. The
    message has Slurm's word for it; there is one Event for each."""

    JOB_ENDED = "JobEnded"
    """The job of a SlurmJob has ended; the message says how."""

    LATE_JOB_CANCELLED = "LateJobCancelled"
    """A call to Slurm whose answer was lost reached it late; its job, the second of a SlurmJob, was cancelled."""

    ENDED_JOB_CANCELLED = "EndedJobCancelled"
    """A job that had ended was in Slurm's queue again, because slurmctld was killed before it had written the end; it
    was cancelled."""

    JOB_CANCELLED = "JobCancelled"
    """The job of a SlurmJob was cancelled: the SlurmJob is being deleted, its annotation asks for that, or its work has
    ended elsewhere (spec.external.ended)."""

    END_NOT_RECORDED = "EndNotRecorded"
    """How the work of a job without a script has ended is not in Slurm's accounting, and the operator has given up; the
    message has the exit code, and why."""

    VIRTUAL_NODE_CREATED = "VirtualNodeCreated"
    """A partition of a Cluster has become a Kubernetes Node."""

    VIRTUAL_NODE_REMOVED = "VirtualNodeRemoved"
    """A virtual Node without pods was removed; the message says why."""

    BRIDGE_NODES_CREATED = "BridgeNodesCreated"
    """Kubernetes Nodes have become nodes of Slurm; the message names the first of them, and their size."""

    BRIDGE_NODES_DELETED = "BridgeNodesDeleted"
    """Idle nodes of Slurm were deleted whose Kubernetes Nodes are gone, not chosen any more, or have another size."""

    SLURMJOB_CREATED = "SlurmJobCreated"
    """A SlurmJob was made of an object of an old kind; the message names it, and fields that have no effect."""

    JOB_LEFT_BEHIND = "JobLeftBehind"
    """A SlurmJob was deleted without its job being cancelled, since there is no Cluster to cancel it in."""

    JOB_KEPT = "JobKept"
    """A pod on a virtual Node was deleted because of an outage that nobody had ordered; its Slurm job runs on. The
    message names the SlurmJob, and how to cancel it."""

    JOB_TAKEN_OVER = "JobTakenOver"
    """A pod has taken over the Slurm job of the pod in whose place its controller has created it."""

    UNSUPPORTED_POD_SPEC = "UnsupportedPodSpec"
    """A pod on a virtual Node cannot run as a Slurm job; the message has the field, and what to do."""

    KEY_REPLACED = "KeyReplaced"
    """A signing key of the user has replaced the one that the operator had made."""

    KEY_RESTORED = "KeyRestored"
    """A signing key that had been changed under running daemons was restored."""

    PASSWORD_RESTORED = "PasswordRestored"  # noqa: S105
    """The Secret with the password of the database was missing and was created again with the same password."""

    PASSWORD_REPLACED = "PasswordReplaced"  # noqa: S105
    """The password of the database was lost, and another one has been made."""

    MAINTENANCE_BEGUN = "MaintenanceBegun"
    """A maintenance window of a Cluster has begun; the message has its end."""

    MAINTENANCE_ENDED = "MaintenanceEnded"
    """A maintenance window of a Cluster has ended, early or in time."""

    RESERVATIONS_CHANGED = "ReservationsChanged"
    """Reservations for maintenance windows were made, changed or deleted in Slurm."""

    ACCOUNTS_CHANGED = "AccountsChanged"
    """slurmdbd was changed as ``spec.accounting.tree`` asks; the message has the first changes."""

    ACCOUNTS_PUT_BACK = "AccountsPutBack"
    """Somebody else had changed in slurmdbd what ``spec.accounting.tree`` names, and it was put back."""

    NODE_LABELS_INVALID = "NodeLabelsInvalid"
    """The ConfigMap with labels of Nodes cannot be read; what is on the Nodes stays."""

    NODE_LABELS_KEPT = "NodeLabelsKept"
    """A label or resource of a Node that somebody else had set stays, although another value is wanted."""

    NODE_LABELS_LEFT_OUT = "NodeLabelsLeftOut"
    """Partitions, features or GRES whose names cannot be labels of a Node."""

    KUBELET_API = "KubeletApi"
    """The certificate of virtual Nodes, or the authority of those who read output, cannot be used or ends soon."""

    OTHER_OPERATOR = "OtherOperator"
    """Another operator for the same kinds runs in this cluster."""
