"""What a change of each key of slurm.conf does to jobs, and therefore what the operator does with it. Data.

Every key of slurm.conf(5) of 24.11 and 26.05 is here once. `merge` refuses keys that users may not set, `restart` knows
which need a restart, and `slinky_operator.cluster.rollout.in_use.parameters` keeps those that wait for jobs. The table
in docs/configuration.md is generated from this one (``python -m hack.documents.tables.key_rules``).

"Tried" means: with real daemons of both releases, a batch job with steps on one node and one over two nodes, an
salloc, a suspended job, a pending job and a pending array, the key was set and removed again by a `reconfigure`; all
jobs were checked, ran another step and finished, and the nodes became idle. A key of one release only was tried with
that one. "Manual" means slurm.conf(5) or, where it is silent, Slurm's source: the key was not set while jobs ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final


class Kind(Enum):
    """What the operator does with a key that changes."""

    HARMLESS = "applied"
    WAITS = "waits until no job runs"
    COUNTED = "waits until there are few enough job records"
    RESTART = "applied; slurmctld is restarted if necessary"
    OWN = "refused: the operator's"
    LINE = "refused: has a field"
    FIXED = "refused"


class Source(Enum):
    """How the effect is known."""

    TRIED = "tried"
    MANUAL = "manual"


Concerns = Callable[[str, str], bool]
"""Whether a change from one value to another would harm jobs; an absent key has an empty value."""


@dataclass(frozen=True)
class Rule:
    """A rule for some keys."""

    kind: Kind
    why: str
    source: Source
    text: str
    """Names of the keys, separated by blanks."""

    concerns: Concerns = lambda _before, _after: True

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Names as Slurm writes them."""
        return tuple(self.text.split())

    def name(self, key: str) -> str:
        """A key of this rule as Slurm writes it."""
        return next(one for one in self.keys if one.lower() == key.lower())


def lowered(default: int) -> Concerns:
    """A number that gets smaller; `default` is Slurm's own."""

    def number(text: str) -> int:
        if text.strip().upper() in {"UNLIMITED", "INFINITE"}:
            return 2**32
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else default  # noqa: PLR2004 - of 32 bits

    return lambda before, after: number(after) < number(before)


def gained(item: str) -> Concerns:
    """A list that gets this item."""
    return lambda before, after: item in after.lower().split(",") and item not in before.lower().split(",")


def _memory(before: str, after: str) -> bool:
    # Without the key it is CR_Core_Memory.
    return (not before or "memory" in before.lower()) != (not after or "memory" in after.lower())


def _gang(before: str, after: str) -> bool:
    return any(word in before.lower() and word not in after.lower() for word in ("gang", "suspend"))


def _named(before: str, after: str) -> bool:
    """A plugin other than `none`, the default, is set or removed."""
    return (before.lower().rpartition("/")[2] or "none") != (after.lower().rpartition("/")[2] or "none")


RULES: Final = (
    # refused
    Rule(Kind.OWN, "`spec.clusterName`", Source.MANUAL, "ClusterName"),
    Rule(Kind.OWN, "`spec.maxNodeCount`", Source.TRIED, "MaxNodeCount"),
    Rule(
        Kind.OWN,
        "how the daemons find each other",
        Source.MANUAL,
        """BackupAddr BackupController ControlAddr ControlMachine SlurmctldAddr SlurmctldHost SlurmctldPort
        SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmdPort""",
    ),
    Rule(
        Kind.OWN,
        "how they authenticate each other",
        Source.MANUAL,
        "SlurmUser SlurmdUser AuthType AuthInfo AuthAltTypes AuthAltParameters CredType CryptoType",
    ),
    Rule(
        Kind.OWN,
        "paths that the pods rely on",
        Source.MANUAL,
        "StateSaveLocation SlurmdSpoolDir SlurmctldPidFile SlurmdPidFile SlurmctldLogFile SlurmdLogFile",
    ),
    Rule(Kind.LINE, "use spec.nodes, or a NodeSet", Source.TRIED, "NodeName"),
    Rule(Kind.LINE, "a NodeSet has one already", Source.MANUAL, "NodeSet"),
    Rule(Kind.LINE, "use spec.partitions, or a NodeSet's spec.partition", Source.TRIED, "PartitionName"),
    Rule(Kind.LINE, "use the state of the node", Source.MANUAL, "DownNodes"),
    Rule(Kind.LINE, "front-end nodes are not supported", Source.MANUAL, "FrontendName"),
    Rule(Kind.LINE, "power actions are not supported", Source.MANUAL, "PowerAction"),
    Rule(Kind.LINE, "use spec.configFiles", Source.MANUAL, "Include"),
    Rule(
        Kind.FIXED,
        "steps of running jobs keep the old plugin, and slurmctld would never see their jobs end",
        Source.TRIED,
        "HashPlugin",
    ),
    # wait
    Rule(
        Kind.COUNTED,
        "slurmctld drops jobs beyond the limit, running ones too: a lower limit waits until there are fewer records,"
        " including those of finished jobs (MinJobAge) and each task of an array",
        Source.TRIED,
        "MaxJobCount MaxJobId FirstJobId",
    ),
    Rule(
        Kind.WAITS,
        "memory becomes, or stops being, an allocated resource: earlier jobs have none for their next step, which"
        " fails or waits forever; other changes are applied at once",
        Source.TRIED,
        "SelectTypeParameters",
        _memory,
    ),
    Rule(
        Kind.WAITS,
        "a lower limit counts earlier steps of running jobs: their next step is refused; a higher one is applied at"
        " once",
        Source.TRIED,
        "MaxStepCount",
        lowered(40_000),
    ),
    Rule(
        Kind.WAITS,
        "a shorter grace period ends jobs that have passed their time limit; a longer one is applied at once",
        Source.MANUAL,
        "OverTimeLimit",
        lowered(0),
    ),
    Rule(
        Kind.WAITS,
        "`OverMemoryKill` makes slurmd kill running jobs that exceed their memory; other items are applied at once",
        Source.MANUAL,
        "JobAcctGatherParams",
        gained("overmemorykill"),
    ),
    Rule(
        Kind.WAITS,
        "without `GANG` or `SUSPEND`, jobs suspended for others would stay suspended; other changes are applied at"
        " once, and decide from then on which jobs are preempted and how",
        Source.MANUAL,
        "PreemptMode",
        _gang,
    ),
    Rule(
        Kind.WAITS,
        "running jobs started without what the flags require: the next step of a job on several nodes fails, or the"
        " job is cancelled, and one of its nodes is drained for `Prolog error`",
        Source.TRIED,
        "PrologFlags",
    ),
    Rule(
        Kind.WAITS,
        "jobs are tracked and ended by the plugin they were started with: they did not end after `proctrack/pgid` was"
        " removed",
        Source.TRIED,
        "ProctrackType",
    ),
    Rule(
        Kind.WAITS,
        "jobs are confined by the plugin they were started with (`NamespaceType` was tried with `PrologFlags=Contain`"
        " alone, which harms them)",
        Source.MANUAL,
        "JobContainerType NamespaceType",
        _named,
    ),
    Rule(
        Kind.WAITS,
        "the new plugin reads the saved state of jobs and steps: records may be lost",
        Source.MANUAL,
        "SwitchType BurstBufferType",
        _named,
    ),
    Rule(
        Kind.WAITS,
        "running jobs talk to the daemons, and load plugins, as configured when they started",
        Source.MANUAL,
        "TLSType TLSParameters CertmgrType CertmgrParameters CertgenType CertgenParameters PluginDir",
    ),
    Rule(
        Kind.HARMLESS,
        "with `MaxNodeCount`, slurmctld accepts `select/cons_tres` only; the preflight refuses others",
        Source.TRIED,
        "SelectType",
    ),
    # restart
    Rule(
        Kind.RESTART,
        "see below for the items that need it; the others are applied at once",
        Source.TRIED,
        "CommunicationParameters",
    ),
    # applied at once
    Rule(
        Kind.HARMLESS,
        "read when a job is submitted or starts",
        Source.TRIED,
        """AllowSpecResourcesUsage CliFilterParameters CliFilterPlugins CpuFreqDef CpuFreqGovernors DefMemPerCPU
        DefMemPerNode DisableRootJobs EnforcePartLimits GpuFreqDef InteractiveStepOptions JobFileAppend JobRequeue
        JobSubmitPlugins LaunchParameters MaxArraySize MaxBatchRequeue MaxMemPerCPU MaxMemPerNode MaxTasksPerNode
        MpiDefault MpiParams PropagatePrioProcess PropagateResourceLimits RequeueExit RequeueExitHold
        ScronParameters SrunEpilog SrunPortRange SrunProlog TaskEpilog TaskPlugin TaskPluginParam TaskProlog UsePAM
        VSizeFactor X11Parameters""",
    ),
    Rule(
        Kind.HARMLESS,
        "the same",
        Source.MANUAL,
        "DefCPUPerGPU DefMemPerGPU PlugStackConfig PropagateResourceLimitsExcept",
    ),
    Rule(
        Kind.HARMLESS,
        "affects order, placement and priority of pending jobs; running jobs are not affected",
        Source.TRIED,
        """DependencyParameters FairShareDampeningFactor LicenseParameters MCSParameters MCSPlugin
        PreemptExemptTime PreemptParameters PreemptType PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall
        PriorityFlags PriorityMaxAge PriorityParameters PriorityType PriorityUsageResetPeriod PriorityWeightAge
        PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
        SchedulerParameters SchedulerTimeSlice SchedulerType TopologyParam TopologyPlugin""",
    ),
    Rule(
        Kind.HARMLESS,
        "the same",
        Source.MANUAL,
        "PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityWeightTRES",
    ),
    Rule(
        Kind.HARMLESS,
        "programs that daemons run from then on; a running job ends with the new epilog",
        Source.TRIED,
        """Epilog EpilogSlurmctld EpilogTimeout HealthCheckInterval HealthCheckNodeState HealthCheckProgram
        HealthCheckTimeout PrEpParameters PrEpPlugins Prolog PrologEpilogTimeout PrologSlurmctld PrologTimeout
        RebootProgram ResvEpilog ResvOverRun ResvProlog UnkillableStepProgram""",
    ),
    Rule(
        Kind.HARMLESS,
        "times that apply from then on; nodes that answer stay up, as do jobs whose srun or salloc answers",
        Source.TRIED,
        """BatchStartTimeout CompleteWait EioTimeout EpilogMsgTime InactiveLimit KeepAliveTime KillOnBadExit
        KillWait MessageTimeout MinJobAge ReturnToService SlurmctldTimeout SlurmdTimeout TCPTimeout TreeWidth
        UnkillableStepTimeout WaitTime""",
    ),
    Rule(
        Kind.HARMLESS,
        "power saving affects idle nodes only",
        Source.TRIED,
        """ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout SuspendExcStates SuspendProgram SuspendRate
        SuspendTime SuspendTimeout""",
    ),
    Rule(Kind.HARMLESS, "the same", Source.MANUAL, "SuspendExcNodes SuspendExcParts"),
    Rule(
        Kind.HARMLESS,
        "what is recorded about jobs, and where",
        Source.TRIED,
        """AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost
        AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStoreFlags
        AcctGatherEnergyType AcctGatherInterconnectType AcctGatherNodeFreq JobAcctGatherFrequency JobAcctGatherType
        JobCompLoc JobCompType TrackWCKey""",
    ),
    Rule(
        Kind.HARMLESS,
        "the same",
        Source.MANUAL,
        """AccountingStorageEnforce AccountingStorageLoc AccountingStorageTRES AccountingStorageType
        AccountingStorageUser AccountingStoreJobComment AcctGatherFilesystemType AcctGatherInfinibandType
        AcctGatherProfileType JobCompHost JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompUser
        MaxDBDMsgs""",
    ),
    Rule(
        Kind.HARMLESS,
        "what daemons log, show and answer",
        Source.TRIED,
        """DataParserParameters DebugFlags GroupUpdateForce GroupUpdateTime HttpParserType LogTimeFormat MailDomain
        MailProg MetricsAuthUsers MetricsType PrivateData ReconfigFlags SlurmctldDebug SlurmctldSyslogDebug
        SlurmdDebug SlurmdSyslogDebug SlurmSchedLogFile SlurmSchedLogLevel TmpFS UrlParserType""",
    ),
    Rule(
        Kind.HARMLESS,
        "the same",
        Source.MANUAL,
        "MetricsParameters SlurmctldHttpAuthParameters SlurmdHttpAuthParameters",
    ),
    Rule(
        Kind.HARMLESS,
        "options of daemons and commands",
        Source.TRIED,
        """BcastExclude BcastParameters FederationParameters SbcastParameters
        SlurmctldParameters SlurmdParameters""",
    ),
    Rule(Kind.HARMLESS, "the same", Source.MANUAL, "BurstBufferParameters NodeFeaturesPlugins SwitchParameters"),
    Rule(
        Kind.HARMLESS,
        "kinds allocated to jobs stay configured until released (see GresInUse)",
        Source.TRIED,
        "GresTypes",
    ),
    Rule(
        Kind.HARMLESS,
        "licenses that pending jobs or reservations ask for stay (see WaitingForJobs)",
        Source.TRIED,
        "Licenses",
    ),
    Rule(
        Kind.HARMLESS,
        "no longer used by these releases",
        Source.MANUAL,
        """CoreSpecPlugin ExtSensorsFreq ExtSensorsType FastSchedule GetEnvTimeout JobCredentialPrivateKey
        JobCredentialPublicCertificate LaunchType PowerParameters PowerPlugin RoutePlugin SallocDefaultCommand""",
    ),
)
"""All of them."""

_BY_KEY: Final = {key.lower(): rule for rule in RULES for key in rule.keys}


def rule_of(key: str) -> Rule | None:
    """The rule for a key, case-insensitive; `None` for a key of neither release."""
    return _BY_KEY.get(key.lower())


def documented() -> str:
    """The table for the documentation: keys that users may change, and the effect on jobs."""
    rows = ["| keys | a change is | because | known |", "|---|---|---|---|"]
    for rule in RULES:
        if rule.kind in {Kind.OWN, Kind.LINE, Kind.FIXED}:
            continue
        names = ", ".join(f"`{key}`" for key in sorted(rule.keys, key=str.lower))
        rows.append(f"| {names} | {rule.kind.value} | {rule.why} | {rule.source.value} |")
    return "\n".join(rows)


def keys_of(*kinds: Kind) -> frozenset[str]:
    """Keys of these kinds, in lower case."""
    return frozenset(key for key, rule in _BY_KEY.items() if rule.kind in kinds)
