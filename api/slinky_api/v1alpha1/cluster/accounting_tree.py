"""Accounts, users, QOS and their limits, which the operator keeps in slurmdbd.

Every field but a name may be left out, and then stays as it is in slurmdbd. What only the tree as a whole can show (an
account below one that is not there, a circle, a QOS that is not there) is reported by the operator in the condition
`AccountsApplied`: rules over pairs of entries exceed the API server's budget with trees of this size.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from slinky_api.v1alpha1.common import MAP_BY_NAME, SET, ApiModel
from slinky_api.v1alpha1.fields import Duration
from slinky_api.v1alpha1.rules import Rule, Text, matching

__all__ = [
    "Account",
    "AccountTree",
    "AssociationLimits",
    "Qos",
    "QosFlag",
    "QosLimits",
    "User",
    "UserAssociation",
]

PARENT_SHARES: Final = 2_147_483_647
"""The value of fair share that Slurm reads as `parent`."""

_WORDS: Final = ("f", "false", "inf", "infinity", "n", "nan", "no", "null", "off", "on", "t", "true", "y", "yes")

_NO_VALUE: Final = Rule(
    f"must not be one of {', '.join(_WORDS)}: slurmrestd does not take these words for names",
    lambda text: text not in _WORDS,
    f"!(self in [{', '.join(repr(word) for word in _WORDS)}])",
)

_NAME_RULE: Final = matching(
    r"[a-z][a-z0-9_.-]*",
    "must be lower-case letters, digits, '_', '.' and '-', beginning with a letter: Slurm changes other names",
)

AccountName = Annotated[str, Text(_NAME_RULE, _NO_VALUE, at_least=1, at_most=64)]
AccountRef = Annotated[str, Text(_NAME_RULE, at_least=1, at_most=64, by_pattern=True)]
UserRef = Annotated[
    str,
    Text(
        matching(
            r"[a-z_][a-z0-9_.@-]*",
            "must be a user name of lower-case letters, digits, '_', '.', '@' and '-', beginning with a letter or '_'",
        ),
        at_least=1,
        at_most=64,
        by_pattern=True,
    ),
]
PartitionRef = Annotated[
    str,
    Text(matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "must be a partition"), at_least=1, at_most=64, by_pattern=True),
]
Count = Annotated[int, Field(ge=-1, le=2_000_000_000)]
"""A number; -1 takes the limit away."""

Wall = Annotated[
    str,
    Text(
        matching(
            r"none|[1-9][0-9]{0,3}d([0-9]{1,2}h)?([0-9]{1,2}m)?|[1-9][0-9]{0,4}h([0-9]{1,2}m)?|[1-9][0-9]{0,6}m",
            "must be a length of time in days, hours and minutes such as 30m, 12h or 1d12h, or none",
        ),
        at_least=1,
        at_most=32,
        by_pattern=True,
    ),
]
"""A length of time by the minute; none takes the limit away."""

_ONE_RESOURCE: Final = r"[a-z]+(/[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?)?=[0-9]{1,15}[KMGTP]?"

Resources = Annotated[
    str,
    Text(
        matching(
            rf"none|{_ONE_RESOURCE}(,{_ONE_RESOURCE})*",
            "must be a list of resources such as cpu=64,mem=512G,gres/gpu=8, or none",
        ),
        at_least=1,
        at_most=512,
        by_pattern=True,
    ),
]
"""Resources with their counts, memory in MiB where there is no unit; none takes the limits away."""

Line = Annotated[
    str,
    Text(
        matching(r"[^\x00-\x1f\x7f]*", "must be one line, without control characters"),
        at_least=1,
        at_most=255,
        by_pattern=True,
    ),
]
QosList = Annotated[tuple[AccountRef, ...], Field(min_length=1, max_length=64), SET]
QosFlag = Literal[
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "NoDecay",
    "NoReserve",
    "OverPartQOS",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "PartitionTimeLimit",
    "Relative",
    "RequiresReservation",
    "UsageFactorSafe",
]


class AssociationLimits(ApiModel):
    """Limits of an account, or of a user in an account. The names are those of sacctmgr."""

    max_jobs: Count | None = None
    """MaxJobs: running jobs of each user. -1: no limit of its own."""
    max_jobs_accrue: Count | None = None
    """MaxJobsAccrue: waiting jobs of each user that gain priority by age."""
    max_submit_jobs: Count | None = None
    """MaxSubmitJobs: jobs of each user, running and waiting."""
    max_wall: Wall | None = None
    """MaxWall: time of each job, for example 12h or 1d12h. none: no limit of its own."""
    max_tres: Resources | None = None
    """MaxTRES: resources of each job, for example cpu=64,mem=512G,gres/gpu=8. It replaces all counts that are there;
    none: no limits of its own."""
    max_tres_per_node: Resources | None = None
    """MaxTRESPerNode: resources of each job on a node."""
    max_tres_mins: Resources | None = None
    """MaxTRESMins: resources times minutes of each job."""
    max_tres_run_mins: Resources | None = None
    """MaxTRESRunMins: resources times minutes left of all running jobs of each user."""
    grp_jobs: Count | None = None
    """GrpJobs: running jobs of all below together."""
    grp_jobs_accrue: Count | None = None
    """GrpJobsAccrue: waiting jobs of all below together that gain priority by age."""
    grp_submit_jobs: Count | None = None
    """GrpSubmitJobs: jobs of all below together, running and waiting."""
    grp_wall: Wall | None = None
    """GrpWall: wall time used by all below together."""
    grp_tres: Resources | None = None
    """GrpTRES: resources of all running jobs below together."""
    grp_tres_mins: Resources | None = None
    """GrpTRESMins: resources times minutes used by all below together."""
    grp_tres_run_mins: Resources | None = None
    """GrpTRESRunMins: resources times minutes left of all running jobs below together."""
    min_prio_threshold: Count | None = None
    """MinPrioThreshold: priority from which on jobs reserve resources."""


class QosLimits(ApiModel):
    """Limits of a QOS. The names are those of sacctmgr."""

    max_jobs_per_user: Count | None = None
    """MaxJobsPerUser: running jobs. -1: no limit."""
    max_jobs_per_account: Count | None = None
    """MaxJobsPerAccount: running jobs."""
    max_submit_jobs_per_user: Count | None = None
    """MaxSubmitJobsPerUser: jobs, running and waiting."""
    max_submit_jobs_per_account: Count | None = None
    """MaxSubmitJobsPerAccount: jobs, running and waiting."""
    max_jobs_accrue_per_user: Count | None = None
    """MaxJobsAccruePerUser: waiting jobs that gain priority by age."""
    max_jobs_accrue_per_account: Count | None = None
    """MaxJobsAccruePerAccount: waiting jobs that gain priority by age."""
    max_wall: Wall | None = None
    """MaxWall: time of each job. none: no limit."""
    max_tres: Resources | None = None
    """MaxTRESPerJob: resources of each job. It replaces all counts that are there; none: no limits."""
    max_tres_per_node: Resources | None = None
    """MaxTRESPerNode: resources of each job on a node."""
    max_tres_per_user: Resources | None = None
    """MaxTRESPerUser: resources of all running jobs of a user."""
    max_tres_per_account: Resources | None = None
    """MaxTRESPerAccount: resources of all running jobs of an account."""
    max_tres_mins: Resources | None = None
    """MaxTRESMinsPerJob: resources times minutes of each job."""
    max_tres_run_mins_per_user: Resources | None = None
    """MaxTRESRunMinsPerUser: resources times minutes left of a user's running jobs."""
    max_tres_run_mins_per_account: Resources | None = None
    """MaxTRESRunMinsPerAccount: resources times minutes left of an account's running jobs."""
    min_tres: Resources | None = None
    """MinTRESPerJob: resources that a job must ask for at least."""
    grp_jobs: Count | None = None
    """GrpJobs: running jobs of the QOS."""
    grp_jobs_accrue: Count | None = None
    """GrpJobsAccrue: waiting jobs of the QOS that gain priority by age."""
    grp_wall: Wall | None = None
    """GrpWall: wall time used by the QOS."""
    grp_tres: Resources | None = None
    """GrpTRES: resources of all running jobs of the QOS."""
    grp_tres_mins: Resources | None = None
    """GrpTRESMins: resources times minutes used by the QOS."""
    grp_tres_run_mins: Resources | None = None
    """GrpTRESRunMins: resources times minutes left of all running jobs of the QOS."""
    min_prio_threshold: Count | None = None
    """MinPrioThreshold: priority from which on jobs reserve resources."""


class Qos(ApiModel):
    """A quality of service. The QOS normal exists without being listed."""

    name: AccountName
    """Name."""
    description: Line | None = None
    """Description. A new QOS without one has none."""
    priority: Annotated[int, Field(ge=0, le=2_000_000_000)] | None = None
    """Priority: added to that of its jobs."""
    preempts: QosList | None = None
    """Preempt: QOS whose jobs give way to those of this one."""
    preempt_mode: Literal["cancel", "requeue", "suspend"] | None = None
    """PreemptMode: what happens to a job of this QOS that gives way."""
    grace_time: Duration | None = None
    """GraceTime: how long a job of this QOS goes on once it must give way."""
    flags: Annotated[tuple[QosFlag, ...], Field(max_length=16), SET] | None = None
    """Flags, all of them: others are taken away."""
    usage_factor: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    """UsageFactor: by what the usage of its jobs is multiplied."""
    usage_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """UsageThreshold: fair share below which no job starts or is accepted."""
    limits: QosLimits = Field(default_factory=QosLimits)
    """Limits."""


class Account(ApiModel):
    """An account, and what it may use."""

    name: AccountName
    """Name."""
    parent: AccountRef = "root"
    """The account above it. slurmrestd cannot move an account that exists."""
    description: Line | None = None
    """Description. Default for a new account: its name."""
    organization: Line | None = None
    """Organization. Default for a new account: its name."""
    coordinators: Annotated[tuple[UserRef, ...], Field(max_length=64), SET] | None = None
    """Users who manage the account, all of them: others cease to."""
    fairshare: Annotated[int, Field(ge=0, le=PARENT_SHARES)] | None = None
    """Shares beside the other accounts of its parent. Slurm's default: 1. 2147483647: those of its parent."""
    qos: QosList | None = None
    """QOS that may be used in the account. Slurm's default: those of its parent."""
    default_qos: AccountRef | None = None
    """QOS of jobs that name none."""
    limits: AssociationLimits = Field(default_factory=AssociationLimits)
    """Limits."""
    users: Annotated[tuple[UserRef, ...], Field(max_length=5000), SET] = ()
    """Users who may use the account and have no settings of their own in it; the others are in users."""


class UserAssociation(ApiModel):
    """What a user may use in an account."""

    account: AccountRef
    """The account."""
    partition: PartitionRef | None = None
    """Partition for which this holds. Default: all for which there is nothing else."""
    fairshare: Annotated[int, Field(ge=0, le=PARENT_SHARES)] | None = None
    """Shares beside the other users of the account. Slurm's default: 1. 2147483647: those of the account."""
    qos: QosList | None = None
    """QOS that may be used. Slurm's default: those of the account."""
    default_qos: AccountRef | None = None
    """QOS of jobs that name none."""
    limits: AssociationLimits = Field(default_factory=AssociationLimits)
    """Limits."""


class User(ApiModel):
    """A user with settings of its own."""

    name: UserRef
    """Name, as the daemons know it."""
    default_account: AccountRef | None = None
    """Account of jobs that name none; one of the user's accounts. Slurm's default: the first one."""
    admin_level: Literal["None", "Operator", "Administrator"] | None = None
    """What the user may do with accounting: nothing, all but what concerns administrators, everything."""
    associations: Annotated[tuple[UserAssociation, ...], Field(max_length=64)] = ()
    """Accounts that the user may use, with settings for each."""


class AccountTree(ApiModel):
    """Accounts, users and QOS in slurmdbd. Fields that are left out stay as they are there."""

    prune: bool = False
    """Whether accounts, users and QOS that are not in the tree are deleted. root and the QOS normal never are, nor
    what jobs use."""
    prune_at_most: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """How many accounts, users, QOS and associations, of each kind, prune may delete together. If it would delete more,
    it deletes nothing, and the condition AccountsApplied has the number. Default: a quarter of what is there, and at
    least 10."""
    qos: Annotated[tuple[Qos, ...], Field(max_length=200), MAP_BY_NAME] = ()
    """QOS. Those that accounts, users and other QOS name must be listed; normal need not."""
    accounts: Annotated[tuple[Account, ...], Field(max_length=2000), MAP_BY_NAME] = ()
    """Accounts, in any order."""
    users: Annotated[tuple[User, ...], Field(max_length=5000), MAP_BY_NAME] = ()
    """Users with settings of their own."""
