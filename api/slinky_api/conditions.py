"""Condition types and reasons, and how a condition is changed without losing its time.

A controller builds its wanted conditions and merges them with `merge`; the result differs from what is stored only
where something is different, so that a status is not written for nothing. The time is passed in.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.common import Condition

__all__ = [
    "LONGEST_AS_EXPECTED",
    "ClusterCondition",
    "LoginSetCondition",
    "NodeSetCondition",
    "PodCondition",
    "Reason",
    "SlurmJobCondition",
    "TokenCondition",
    "find",
    "is_true",
    "merge",
]


LONGEST_AS_EXPECTED: Final = 256
"""Most characters of the message of a condition that is as expected: a sentence, which nobody has to read."""


class ClusterCondition(StrEnum):
    """Condition types of a Cluster; Events report them in this order, and a reason of two by the first.

    ``Degraded`` names what others have shown before it.
    """

    READY = "Ready"
    """Slurm works: slurmrestd answers, accepts the operator's token and reaches slurmctld; ``status.isReady`` is true
    exactly then. ``ConfigApplied`` says which configuration it runs."""

    PROGRESSING = "Progressing"
    """A change is in progress and needs no help: daemons start, a configuration is tried or loaded, or the operator
    waits for jobs."""

    CONTROLLER_UP = "ControllerUp"
    """A slurmctld answers a ping."""

    API_REACHABLE = "ApiReachable"
    """slurmrestd answers."""

    TOKEN_VALID = "TokenValid"  # noqa: S105
    """slurmrestd accepts the operator's token."""

    CONFIG_APPLIED = "ConfigApplied"
    """The running daemons have the configuration that the spec describes."""

    ACCOUNTING_READY = "AccountingReady"
    """slurmdbd answers, and slurmctld has registered with it. Absent without accounting."""

    ACCOUNTS_APPLIED = "AccountsApplied"
    """slurmdbd has the accounts, users and QOS of ``spec.accounting.tree``. Absent without a tree."""

    DIRECTORY_REACHABLE = "DirectoryReachable"
    """SSSD beside slurmctld reaches the directory, as far as it has asked. Absent without ``identity.sssd``."""

    VOLUMES_HAVE_ROOM = "VolumesHaveRoom"
    """The volumes of slurmctld's state and of MariaDB have room. False before one is full, and until there is
    more room again; the message has the volume, what is left, and what to do."""

    CONTROLLER_HUNG = "ControllerHung"
    """slurmctld waited for itself within the last hour, and was started again. The message has when, and what to do.
    Absent otherwise."""

    EXPORTER_READY = "ExporterReady"
    """The exporter serves metrics of this Slurm. Absent without ``spec.metrics.exporter``."""

    VIRTUAL_NODES_READY = "VirtualNodesReady"
    """Every wanted partition is a Kubernetes Node. Absent without ``spec.jobs.virtualNodes``."""

    KUBELET_API_REACHABLE = "KubeletApiReachable"
    """The API server reaches the operator's pod, which answers ``kubectl logs`` of pods on virtual Nodes. The message
    has the address and what to open. Absent without ``spec.jobs.virtualNodes``, and until the API server has answered.
    """

    BRIDGE_READY = "BridgeReady"
    """Every chosen Kubernetes Node is a node of Slurm. Absent without ``spec.jobs.bridge``."""

    IN_MAINTENANCE = "InMaintenance"
    """A maintenance window is on: no job of users starts on its nodes. Absent without ``spec.maintenance``."""

    MAINTENANCE_RESERVED = "MaintenanceReserved"
    """Slurm has the reservations for the maintenance windows that are announced. False: the message has which it has
    not, why, and what to do. Absent without ``spec.maintenance``."""

    DEGRADED = "Degraded"
    """The Cluster is not as its spec asks, and needs help."""

    NODES_OUT_OF_SERVICE = "NodesOutOfService"
    """Nodes accept no jobs although the operator does not drain them: they are down, have an invalid registration, or
    are drained by others. The message has the first names, Slurm's reason, who set it and when."""

    DELETING = "Deleting"
    """The Cluster is being deleted; the message says what it waits for."""


class NodeSetCondition(StrEnum):
    """Condition types of a NodeSet."""

    READY = "Ready"
    """All desired pods are Ready and registered, and no change is in progress; pods excluded from an update count."""

    AVAILABLE = "Available"
    """No more nodes than maxUnavailable are missing."""

    PROGRESSING = "Progressing"
    """Pods are being created, updated or removed."""

    DEGRADED = "Degraded"
    """The NodeSet is not as its spec asks."""

    DRAINING = "Draining"
    """The operator drains nodes; the message names nodes, jobs and age."""

    RECORDS_KEPT = "RecordsKept"
    """Nodes without a pod keep their records in Slurm, drained, since unfinished jobs require or exclude these nodes,
    or reservations name them: without the record a job ends NODE_FAIL at the next reconfigure, or can no longer be
    changed. Absent while there are none."""

    NAME_CONFLICT = "NameConflict"
    """Another NodeSet, partition or node has a name that this NodeSet needs."""

    SLURM_REACHABLE = "SlurmReachable"
    """Slurm answers queries about the nodes. While it does not, no pod is deleted."""

    NODES_OUT_OF_SERVICE = "NodesOutOfService"
    """Nodes get no jobs although the operator does not drain them: they are down, do not respond, have an invalid
    registration, or are drained by others. The message has their names, Slurm's reason, who set it and when."""

    HEALTH_BUDGET_REACHED = "HealthBudgetReached"
    """Rules of ``spec.health`` match more Nodes than ``maxUnhealthy`` lets them drain: the message has those that wait.
    Absent without ``spec.health``."""

    REPLACEMENT_FAILED = "ReplacementFailed"
    """``spec.health.replace`` does not help: the message has the Nodes that are bad after all tries, or why it has no
    effect; while it is False, what machines wait for. Absent without a policy."""

    HEALTH_CHECKS_RUN = "HealthChecksRun"
    """All nodes run the checks of ``spec.health``. False while one node tries new or changed ones, if they fail there,
    and where checks cannot be run. Absent without checks."""

    CLUSTER_GONE = "ClusterGone"
    """The Cluster no longer exists, and it is unknown whether the remaining pods hold jobs."""

    VOLUMES_HAVE_ROOM = "VolumesHaveRoom"
    """The volumes of job output have room, as the servers of ``spec.jobLogs`` say, and no kubelet reports DiskPressure.
    False before one is full, and until there is more room again. Absent without ``spec.jobLogs`` while no kubelet
    does."""

    AUTOSCALING = "Autoscaling"
    """Autoscaling may set replicas; the message has the jobs that it counts, and those that it does not and why. False:
    it changes nothing, and why. Absent without ``spec.autoscaling``."""

    NODES_WATCHED = "NodesWatched"
    """The operator watches Kubernetes Nodes. Otherwise cordoned Nodes are not noticed, and DaemonSet mode is not
    available."""


class TokenCondition(StrEnum):
    """Condition types of a Token."""

    READY = "Ready"
    """The Secret has a token that is valid."""

    DEGRADED = "Degraded"
    """The Token is not as its spec asks, and needs help."""


class LoginSetCondition(StrEnum):
    """Condition types of a LoginSet."""

    READY = "Ready"
    """All desired pods accept logins."""

    SSHD_CONFIG_APPLIED = "SshdConfigApplied"
    """The running SSH servers have the configuration that the spec describes."""

    DEGRADED = "Degraded"
    """The LoginSet is not as its spec asks, and needs help."""


class SlurmJobCondition(StrEnum):
    """Condition types of a SlurmJob."""

    SUBMITTED = "Submitted"
    """Slurm has the job. While it has not, the message says why, and what to do."""

    RUNNING = "Running"
    """The job runs."""

    FINISHED = "Finished"
    """The job has ended, well or not, and will not run again; the reason says how."""

    LOGS_AVAILABLE = "LogsAvailable"
    """The pod with the output of the job can read all of it. Absent without ``spec.logs``."""

    PREPARED = "Prepared"
    """All files of ``spec.prepare`` are on the nodes; the job is not submitted before. Absent without the field."""

    RESULTS_COLLECTED = "ResultsCollected"
    """All results were copied that are to be. While they are not, the message says why, and what to do. Absent without
    ``spec.results``."""


class PodCondition(StrEnum):
    """Condition types that the operator writes on slurmd pods."""

    REGISTERED = "nodeset.slinky.slurm.net/Registered"
    """The node of this pod has registered with Slurm: from then on it may hold jobs."""

    SLURM_DRAINED = "nodeset.slinky.slurm.net/Drained"
    """Whether the node is drained and empty in Slurm; the message has source and reason."""


class Reason(StrEnum):
    """Reasons of conditions and Events."""

    # anything
    AS_EXPECTED = "AsExpected"
    INVALID_SPEC = "InvalidSpec"
    NOT_SUPPORTED = "NotSupported"
    RECONCILE_ERROR = "ReconcileError"
    FORBIDDEN = "Forbidden"
    REQUEST_REFUSED = "RequestRefused"
    API_UNAVAILABLE = "ApiUnavailable"
    INTERNAL_ERROR = "InternalError"
    OVER_BUDGET = "OverBudget"
    DELETING = "Deleting"
    APPLIED_WHILE_DELETING = "AppliedWhileDeleting"

    # reaching Slurm
    CONNECTING = "Connecting"
    SLURM_UNREACHABLE = "SlurmUnreachable"
    UNAUTHORIZED = "Unauthorized"
    CONTROLLER_DOWN = "ControllerDown"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105
    SECRET_KEY_NOT_FOUND = "SecretKeyNotFound"  # noqa: S105
    TOO_MANY_CLUSTERS = "TooManyClusters"
    SECRET_INVALID = "SecretInvalid"  # noqa: S105
    SECRET_NOT_ALLOWED = "SecretNotAllowed"  # noqa: S105
    KEY_LOST = "KeyLost"
    KEY_CHANGED = "KeyChanged"
    KEY_PENDING = "KeyPending"
    UNSUPPORTED_VERSION = "UnsupportedVersion"

    # the configuration
    CONFIG_PENDING = "ConfigPending"
    CONFIG_REFUSED = "ConfigRefused"
    CONFIG_UNTRIED = "ConfigUntried"
    CONFIG_ROLLED_BACK = "ConfigRolledBack"
    CONFIG_SOURCE_NOT_FOUND = "ConfigSourceNotFound"
    PARTITION_IN_USE = "PartitionInUse"
    NODES_IN_USE = "NodesInUse"
    GRES_IN_USE = "GresInUse"
    NODES_WITHOUT_ADDRESS = "NodesWithoutAddress"

    # users
    IDENTITY_REFUSED = "IdentityRefused"
    DIRECTORY_AWAY = "DirectoryAway"

    # volumes
    VOLUME_NEARLY_FULL = "VolumeNearlyFull"
    VOLUME_FULL = "VolumeFull"
    VOLUME_SILENT = "VolumeSilent"
    NODE_DISK_PRESSURE = "NodeDiskPressure"

    # the daemons
    DAEMONS_STARTING = "DaemonsStarting"
    DAEMON_STUCK = "DaemonStuck"
    WAITED_FOR_ITSELF = "WaitedForItself"
    REPLACEMENT_HELD_BACK = "ReplacementHeldBack"
    UPGRADING = "Upgrading"
    UPGRADE_REFUSED = "UpgradeRefused"
    STATE_NOT_TRIED = "StateNotTried"
    ACCOUNTING_DOWN = "AccountingDown"
    CLUSTER_NAME_TAKEN = "ClusterNameTaken"
    ACCOUNTS_PENDING = "AccountsPending"
    ACCOUNTS_REFUSED = "AccountsRefused"
    TOO_MANY_DELETIONS = "TooManyDeletions"
    USERS_UNKNOWN = "UsersUnknown"
    CHILD_REFUSED = "ChildRefused"
    CLAIM_REFUSED = "ClaimRefused"
    CLAIM_GROWING = "ClaimGrowing"
    WAITING_FOR_NODE_SETS = "WaitingForNodeSets"

    # maintenance windows
    MAINTENANCE_WINDOW = "MaintenanceWindow"
    RESERVATION_PENDING = "ReservationPending"
    RESERVATION_REFUSED = "ReservationRefused"
    RESERVATION_TAKEN = "ReservationTaken"
    RESERVATION_NOT_SUPPORTED = "ReservationNotSupported"
    WINDOW_INVALID = "WindowInvalid"

    # tokens
    NOT_GRANTED = "NotGranted"
    LIFETIME_TOO_LONG = "LifetimeTooLong"
    TOO_MANY_TOKENS = "TooManyTokens"
    SECRET_NOT_OWNED = "SecretNotOwned"  # noqa: S105
    SECRET_NAME_RESERVED = "SecretNameReserved"  # noqa: S105
    TOKEN_EXPIRED = "TokenExpired"  # noqa: S105

    # login sets
    SSHD_CONFIG_REFUSED = "SshdConfigRefused"
    SSHD_CONFIG_UNTRIED = "SshdConfigUntried"
    HOST_KEYS_LOST = "HostKeysLost"
    CLUSTER_UNSUITABLE = "ClusterUnsuitable"
    TEMPLATE_REFUSED = "TemplateRefused"

    # node sets
    CLUSTER_NOT_FOUND = "ClusterNotFound"
    CLUSTER_GONE = "ClusterGone"
    CLUSTER_DELETING = "ClusterDeleting"
    CLUSTER_NOT_READY = "ClusterNotReady"
    NOT_IN_CONFIG = "NotInConfig"
    SCALING_OUT = "ScalingOut"
    SCALING_IN = "ScalingIn"
    UPDATING = "Updating"
    REPAIRING = "Repairing"
    UPDATE_PAUSED = "UpdatePaused"
    UPDATE_WAITS_FOR_CLUSTER = "UpdateWaitsForCluster"
    UPDATE_WAITS_FOR_MAINTENANCE = "UpdateWaitsForMaintenance"
    UPDATE_HELD_BACK = "UpdateHeldBack"
    UPDATE_ON_DELETE = "UpdateOnDelete"
    PODS_NOT_READY = "PodsNotReady"
    POD_REFUSED = "PodRefused"
    NODE_UNKNOWN = "NodeUnknown"
    NOT_REGISTERED = "NotRegistered"
    INVALID_REGISTRATION = "InvalidRegistration"
    NAME_CONFLICT = "NameConflict"
    WAITING_FOR_JOBS = "WaitingForJobs"
    NODES_NAMED = "NodesNamed"
    DRAIN_TIMED_OUT = "DrainTimedOut"
    JOB_END_FORGOTTEN = "JobEndForgotten"
    CORDONED = "Cordoned"
    UNHEALTHY = "Unhealthy"
    REPLACEMENT_FAILED = "ReplacementFailed"
    REPLACEMENT_REFUSED = "ReplacementRefused"
    REPLACEMENT_WAITS = "ReplacementWaits"
    HEALTH_BUDGET_REACHED = "HealthBudgetReached"
    CHECKS_ON_TRIAL = "ChecksOnTrial"
    CHECK_FAILED_ON_TRIAL = "CheckFailedOnTrial"
    CHECK_NOT_RUN = "CheckNotRun"
    TOPOLOGY_LABELS_MISSING = "TopologyLabelsMissing"
    TRAITS_REFUSED = "TraitsRefused"
    SSH_NEEDS_CONTAIN = "SshNeedsContain"
    SSH_KEYS_MISSING = "SshKeysMissing"
    FOREIGN_DRAIN = "ForeignDrain"
    SCALING_MODE_FIXED = "ScalingModeFixed"
    NODES_NOT_WATCHED = "NodesNotWatched"
    NODE_DOWN = "NodeDown"
    NODE_NOT_RESPONDING = "NodeNotResponding"
    LABELS_LOST = "LabelsLost"
    NODES_WANTED = "NodesWanted"
    MAXIMUM_REACHED = "MaximumReached"
    JOBS_IMPOSSIBLE = "JobsImpossible"
    COUNT_INCOMPLETE = "CountIncomplete"
    SCALED_BY_OTHERS = "ScaledByOthers"
    OTHER_AUTOSCALER = "OtherAutoscaler"
    UNSCHEDULABLE = "Unschedulable"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    CONTAINER_NOT_CREATED = "ContainerNotCreated"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"

    # jobs, before Slurm has them and after it has forgotten them; others have the reasons of their states
    SUSPENDED = "Suspended"
    JOBS_NOT_ALLOWED = "JobsNotAllowed"
    DEPENDENCY_NOT_SUBMITTED = "DependencyNotSubmitted"
    DEPENDENCY_NOT_FINISHED = "DependencyNotFinished"
    DEPENDENCY_LOOP = "DependencyLoop"
    SUBMITTING = "Submitting"
    SUBMISSION_REFUSED = "SubmissionRefused"
    SUBMISSION_UNKNOWN = "SubmissionUnknown"
    SUBMITTED = "Submitted"
    SUBMITTED_AGAIN = "SubmittedAgain"
    END_NOT_SEEN = "EndNotSeen"
    ALLOCATION_TOO_LARGE = "AllocationTooLarge"
    COMPONENT_ENDED = "ComponentEnded"
    JOB_LOST = "JobLost"
    COMPLETED = "Completed"
    NON_ZERO_EXIT_CODE = "NonZeroExitCode"
    HOLD_REFUSED = "HoldRefused"
    RELEASE_REFUSED = "ReleaseRefused"
    CANCEL_REFUSED = "CancelRefused"
    CANCELLED = "Cancelled"
    DEPENDENCY_NEVER_SATISFIED = "DependencyNeverSatisfied"
    REQUEST_SHOWN = "RequestShown"
    LOGS_SHOWN = "LogsShown"
    JOB_NOT_STARTED = "JobNotStarted"
    OUTPUT_OUT_OF_REACH = "OutputOutOfReach"
    LOG_POD_REFUSED = "LogPodRefused"
    LOG_POD_ENDED = "LogPodEnded"
    LOG_POD_GONE = "LogPodGone"
    PREPARING = "Preparing"
    PREPARE_FAILED = "PrepareFailed"
    COPIED = "Copied"
    COPYING = "Copying"
    NOTHING_TO_COPY = "NothingToCopy"
    VOLUME_NOT_FOUND = "VolumeNotFound"
    COPY_POD_WAITS = "CopyPodWaits"
    COPY_POD_REFUSED = "CopyPodRefused"
    COPY_FAILED = "CopyFailed"
    FILES_OUT_OF_REACH = "FilesOutOfReach"

    # virtual Nodes
    VIRTUAL_NODES_NOT_ALLOWED = "VirtualNodesNotAllowed"
    HOST_TAKEN = "HostTaken"
    PARTITION_NOT_FOUND = "PartitionNotFound"
    TOO_MANY_PARTITIONS = "TooManyPartitions"
    NODE_NAME_TAKEN = "NodeNameTaken"
    LABEL_REFUSED = "LabelRefused"
    PARTITION_CONFIG_INVALID = "PartitionConfigInvalid"
    KUBELET_API_UNREACHABLE = "KubeletApiUnreachable"

    # Kubernetes Nodes as nodes of Slurm, beside NodeNameTaken and NameTaken
    BRIDGE_NOT_ALLOWED = "BridgeNotAllowed"
    SLURM_TOO_OLD = "SlurmTooOld"
    NODES_PENDING = "NodesPending"
    PREEMPTION_UNSUITABLE = "PreemptionUnsuitable"
    GRES_UNKNOWN = "GresUnknown"
    DEVICES_NOT_ALLOWED = "DevicesNotAllowed"
    SIZE_REFUSED = "SizeRefused"
    NO_ROOM = "NoRoom"
    NODES_SHARED = "NodesShared"

    # objects of the old job kinds, beside those of SlurmJobs
    NAME_TAKEN = "NameTaken"
    PREDECESSOR_ENDING = "PredecessorEnding"
    SLURMJOB_DELETED = "SlurmJobDeleted"
    OTHER_OPERATOR = "OtherOperator"

    @classmethod
    @override
    def _missing_(cls, value: object) -> Reason | None:
        """Keep a reason that a later release has stored: after a downgrade it is shown as it is, and ends no pass."""
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Whether there is a condition of this type, and it is ``True``."""
    found = find(conditions, kind)
    return found is not None and found.status == "True"


def merge(stored: Iterable[Condition], wanted: Iterable[Condition], now: datetime) -> tuple[Condition, ...]:
    """Set the time of each wanted condition: that of the stored one, unless its status has changed.

    Parameters
    ----------
    stored
        What the object's status holds.
    wanted
        The wanted conditions; other types are removed. Their times are not used.
    now
        The time for conditions whose status has changed; must have a time zone.

    Returns
    -------
    tuple of Condition
        Sorted by type, so that equal sets compare equal.
    """
    before = {condition.type: condition for condition in stored}
    merged = []
    for condition in wanted:
        old = before.get(condition.type)
        if old is not None and old.last_transition_time is not None and _says_the_same(old, condition):
            merged.append(old)
            continue
        same = old is not None and old.status == condition.status and old.last_transition_time is not None
        time = old.last_transition_time if old is not None and same else now.astimezone(UTC).replace(microsecond=0)
        merged.append(condition.model_copy(update={"last_transition_time": time}))
    return tuple(sorted(merged, key=lambda condition: condition.type))


def _says_the_same(one: Condition, other: Condition) -> bool:
    """Whether two conditions of one type differ only in their times."""
    return (
        one.status == other.status
        and one.reason == other.reason
        and one.message == other.message
        and one.observed_generation == other.observed_generation
    )
