"""What drains nodes for their health: the part of a NodeSet's spec, and the rules for Nodes that are known."""

from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from slinky_api.v1alpha1.common import ApiModel
from slinky_api.v1alpha1.fields import IntOrPercent
from slinky_api.v1alpha1.nodeset.checks import MAX_BYTES, MAX_CHECKS, Check
from slinky_api.v1alpha1.rules import Keywords, Text, cel, matching

__all__ = ["KNOWN_CONDITIONS", "MAX_RULES", "Health", "NodeConditionRule", "PodConditions", "Replace", "ReplacePolicy"]

MAX_RULES: Final = 64
"""Rules of one NodeSet."""

KNOWN_CONDITIONS: Final = (
    # node-problem-detector: what stays until somebody mends the machine
    *("KernelDeadlock", "ReadonlyFilesystem", "XfsShutdown", "CperHardwareErrorFatal"),
    # NVSentinel: checks of DCGM, of the kernel's log and of the provider
    *("GpuMemWatch", "GpuPcieWatch", "GpuPowerWatch", "GpuThermalWatch", "GpuInforomWatch", "GpuSmWatch"),
    *("GpuNvlinkWatch", "GpuNvswitchFatalWatch", "GpuMcuWatch", "GpuPmuWatch", "GpuDriverWatch"),
    *("SysLogsXIDError", "SysLogsSXIDError", "SysLogsGPUFallenOff", "CSPMaintenance"),
    # soperator
    *("HardwareIssuesSuspected", "SoperatorChecksNodeDegraded"),
)
"""Types of conditions of which `defaults` makes rules, each with status True and the defaults of a rule.

Left out is what comes and goes, or says nothing of the machine: node-problem-detector's `FrequentKubeletRestart`,
`FrequentContainerdRestart`, `FrequentDockerRestart`, `FrequentUnregisterNetDevice`, `NTPProblem`, `KubeletUnhealthy`
and `ContainerRuntimeUnhealthy`; NVSentinel's `GpuCpusetWatch`, `GpuNvswitchNonfatalWatch` and
`GpuDcgmConnectivityFailure`; soperator's `SoperatorChecksNodeMaintenance`; and the conditions of kubelets, which
Kubernetes acts on itself.
"""

_NO_RULE: Final = "give nodeConditions, defaults: true, checks or podConditions; health has no effect without them"

_NOTHING_TO_REPLACE: Final = "give nodeConditions or defaults: true; replace has no effect without them"

_TYPE: Final = matching(
    r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?",
    "must be letters, digits, '.', '_', '-' and '/', beginning and ending with a letter or digit",
)
_ONE_LINE: Final = matching(r"[^\x00-\x1f\x7f]*", "must be one line, without control characters")
_MAP_BY_NAME: Final = Keywords({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
_MAP_BY_TYPE: Final = Keywords({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})

_Seconds = Annotated[int, Field(ge=0, le=86_400), Keywords({"format": "int32"})]


class PodConditions(StrEnum):
    """Which states of nodes are conditions of their pods."""

    PROBLEMS = "Problems"
    ALL = "All"


class ReplacePolicy(StrEnum):
    """What is done about a node that a rule has drained, once it is proven to hold no job."""

    NOTHING = "Nothing"
    RECREATE_POD = "RecreatePod"
    REBOOT = "Reboot"
    DELETE_MACHINE = "DeleteMachine"

    @property
    def is_for_machine(self) -> bool:
        """Whether it concerns all that runs on the Node."""
        return self in {ReplacePolicy.REBOOT, ReplacePolicy.DELETE_MACHINE}


class Replace(ApiModel):
    """What is done about a node that a rule has drained, once it is proven to hold no job; and how often."""

    policy: ReplacePolicy = ReplacePolicy.NOTHING
    """Nothing: the node stays drained until its Node is well. RecreatePod: its pod is deleted, and created again where
    Kubernetes places it, which may be the same Node. Reboot, DeleteMachine: its Node is cordoned, and once nothing but
    pods of DaemonSets is left on it, its reboot is asked for, or its Machine of Cluster API is deleted; only where the
    operator's settings allow it. Default: Nothing."""
    max_concurrent: Annotated[int, Field(ge=1, le=1000), Keywords({"format": "int32"})] = 1
    """How many nodes of the NodeSet are replaced at a time. Default: 1."""
    backoff_seconds: _Seconds = 600
    """Seconds between two tries on the same Node; doubled after each. Default: 600."""
    max_tries: Annotated[int, Field(ge=1, le=100), Keywords({"format": "int32"})] = 3
    """Tries on one Node after which its nodes stay drained, and the condition Degraded says so. Default: 3."""
    within_seconds: Annotated[int, Field(ge=60, le=2_592_000), Keywords({"format": "int32"})] = 86_400
    """Seconds without a try after which a Node has all its tries again. Default: 86400, a day."""


class NodeConditionRule(ApiModel):
    """A condition of Kubernetes Nodes for which Slurm nodes are drained."""

    type: Annotated[str, Text(_TYPE, at_least=1, at_most=316, by_pattern=True)]
    """Type of the condition, for example KernelDeadlock."""
    status: Literal["True", "False", "Unknown"] = "True"
    """Status with which the Node is bad. Default: True."""
    for_seconds: _Seconds = 30
    """How many seconds the condition must have had this status, by its lastTransitionTime. Default: 30."""
    reason: Annotated[str, Text(_ONE_LINE, at_most=200, by_pattern=True)] = ""
    """What the reason in Slurm says, after slurm-operator: health (<namespace>/<nodeset>). Default: type and message of
    the condition."""


class Health(ApiModel):
    """Which nodes are bad: they are drained in Slurm while they are, and resumed afterwards. Jobs run on."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "has(self.defaults) && self.defaults || has(self.nodeConditions) && size(self.nodeConditions) > 0"
                    " || has(self.checks) && size(self.checks) > 0 || has(self.podConditions)",
                    _NO_RULE,
                    field=".nodeConditions",
                ),
                cel(
                    "!has(self.replace) || !has(self.replace.policy) || self.replace.policy == 'Nothing'"
                    " || has(self.defaults) && self.defaults"
                    " || has(self.nodeConditions) && size(self.nodeConditions) > 0",
                    _NOTHING_TO_REPLACE,
                    field=".replace",
                ),
            ]
        }
    )

    node_conditions: Annotated[tuple[NodeConditionRule, ...], Field(max_length=MAX_RULES), _MAP_BY_TYPE] = ()
    """Conditions of Nodes for which nodes are drained, one for each type."""
    defaults: bool = False
    """Whether there are also rules for conditions of node-problem-detector, NVSentinel and soperator that mean a broken
    machine, each with the defaults of nodeConditions; docs/node-health.md has the list. A rule in nodeConditions of the
    same type takes the place of such a rule. Default: false."""
    checks: Annotated[tuple[Check, ...], Field(max_length=MAX_CHECKS), _MAP_BY_NAME] = ()
    """Checks that run on the nodes. A new or changed one runs on one node first, and on the others once all checks have
    passed there. The first check gives new pods a volume, so that they are replaced as with another template."""
    max_unhealthy: IntOrPercent = "10%"
    """How many nodes these rules and checks may keep drained at a time: a number, or a percentage of the desired nodes,
    rounded down, but at least 1. 0 or 0%: none; the condition HealthBudgetReached says which nodes would be.
    Default: 10%."""
    clear_seconds: _Seconds = 60
    """How many seconds no condition of the Node may have matched, and no check failed, before nodes are resumed.
    Default: 60."""

    pod_conditions: PodConditions | None = None
    """Which states of a node are conditions SlurmNodeState* of its pod, for programs such as NVSentinel. Problems:
    Drain, Down, Fail and others, and whether it is busy while it is drained or cordoned. All: Allocated, Mixed,
    Completing and Idle of every node, too, which is a write for each change. Default: none."""

    replace: Replace | None = None
    """What is done about nodes that these rules have drained, once they are proven to hold no job. Default: nothing."""

    @model_validator(mode="after")
    def _has_a_rule(self) -> Self:
        if not self.defaults and not self.node_conditions and not self.checks and self.pod_conditions is None:
            raise ValueError(_NO_RULE)
        if (size := sum(check.size for check in self.checks)) > MAX_BYTES:
            raise ValueError(f"checks: scripts and parameters are {size:,} bytes together, and may be {MAX_BYTES:,}")
        if self.replaces and not self.rules():
            raise ValueError(_NOTHING_TO_REPLACE)
        return self

    @property
    def replaces(self) -> Replace | None:
        """What is done about drained nodes; None if nothing is."""
        if self.replace is None or self.replace.policy is ReplacePolicy.NOTHING:
            return None
        return self.replace

    def rules(self) -> dict[str, NodeConditionRule]:
        """All rules, by the type of the condition."""
        known = {kind: NodeConditionRule(type=kind) for kind in KNOWN_CONDITIONS} if self.defaults else {}
        return known | {rule.type: rule for rule in self.node_conditions}

    def budget(self, desired: int) -> int:
        """How many nodes may be drained at a time.

        Parameters
        ----------
        desired
            The desired nodes.
        """
        given = self.max_unhealthy
        if isinstance(given, int):
            return given
        share = int(given.removesuffix("%"))
        return max(1, desired * share // 100) if share else 0
