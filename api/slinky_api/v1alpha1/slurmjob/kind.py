"""Kind SlurmJob: a batch job as an object. What is submitted is in `submission`, who may submit in `cluster.jobs`."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, JsonValue

from slinky_api.resource import Column, Resource
from slinky_api.v1alpha1.cluster.jobs import JobUser
from slinky_api.v1alpha1.common import CONDITIONS, GROUP, VERSION, ApiModel, ApiObject, Condition, ObjectMeta
from slinky_api.v1alpha1.fields import AnyMap, DnsLabel, DnsSubdomain, Namespace
from slinky_api.v1alpha1.rules import Text, cel
from slinky_api.v1alpha1.slurmjob.files import (
    MAX_COPIES,
    JobFilesStatus,
    JobLogVolume,
    JobPrepare,
    JobResults,
    JobVolume,
)
from slinky_api.v1alpha1.slurmjob.submission import ONE_LINE, JobText, NumberOrText, SlurmJobSpec

SLURMJOB: Final = Resource(
    group=GROUP,
    version=VERSION,
    kind="SlurmJob",
    plural="slurmjobs",
    singular="slurmjob",
    short_names=("sjob",),
    categories=("slurm", "slinky"),
    columns=(
        Column("STATE", ".status.state", "string", "Where the job is in its life."),
        Column("JOBID", ".status.jobId", "integer", "Number of the job in Slurm."),
        Column("REASON", ".status.reason", "string", "Why it is in this state."),
        Column("NODES", ".status.nodes", "string", "Nodes that it runs on, or ran on."),
        Column("AGE", ".metadata.creationTimestamp", "date"),
        Column("CLUSTER", ".spec.clusterName", "string", "The Cluster.", wide=True),
        Column("USER", ".status.user", "string", "The user whose job it is.", wide=True),
        Column("PARTITION", ".status.partition", "string", "Its partition.", wide=True),
        Column("STATUS", ".status.summary", "string", "What is to be known of it, in one line.", wide=True),
    ),
)

_MUTABLE: Final = frozenset({"suspend", "backoffLimit", "ttlSecondsAfterFinished", "cancelPolicy", "external"})


MAX_REQUEST: Final = 131_072
"""Bytes of a request's body that is shown."""


MAX_TASKS: Final = 4096
"""Characters of a list of tasks."""


MAX_ALLOCATION: Final = 1024
"""Nodes of an external job."""


MAX_COMPONENTS: Final = 32
"""Components of an external job."""


class JobDependency(ApiModel):
    """Another SlurmJob that must have come to something before this one starts."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "(has(self.type) && self.type == 'singleton') != has(self.name)",
                    "names a SlurmJob, unless its type is singleton",
                    field=".name",
                )
            ]
        }
    )

    type: Literal["after", "afterok", "afterany", "afternotok", "singleton"] = "afterok"
    """afterok: it has succeeded; afternotok: it has failed; afterany: it has ended; after: it has started. singleton:
    no earlier job of the same name and user is left."""
    name: DnsSubdomain | None = None
    """The SlurmJob, in the same namespace and Cluster."""


def _frozen(fields: dict[str, Any]) -> list[dict[str, JsonValue]]:
    """A rule for each field that cannot be changed once the object exists."""
    return [
        cel(
            f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})",
            f"{name} is immutable: a submitted job cannot be changed; create another SlurmJob",
            field=f".{name}",
        )
        for name in sorted(fields)
        if name not in _MUTABLE
    ]


_OF_SCRIPTS: Final = {
    "args": "nothing of it runs on its nodes that would get them",
    "array": "Slurm refuses arrays of such jobs; create several SlurmJobs",
    "command": "write one of both",
    "env": "nothing of it runs on its nodes that would get them",
    "error": "it writes no output",
    "logs": "it writes no output",
    "output": "it writes no output",
    "prepare": "nothing of it runs on its nodes that would read the files; copy them where its work runs",
    "requeue": "Slurm runs no such job again; create another SlurmJob",
    "results": "nothing of it runs on its nodes that would write them; copy them where its work runs",
    "script": "write one of both",
    "sharedVolume": "it has no files",
    "workingDirectory": "nothing of it runs on its nodes that would start there",
}
"""Fields that mean nothing to a job without a script, and why."""


OF_COMPONENTS: Final = ("cpusPerTask", "gres", "memory", "nodes", "tasks")
"""Fields that a job with components has in each of them only."""


def _of_external() -> list[dict[str, JsonValue]]:
    """A rule for each field that a job without a script has not, and one that keeps jobs from becoming such."""
    rules = [
        cel(f"!has(self.external) || !has(self.{name})", f"cannot be set beside external: {why}", field=f".{name}")
        for name, why in _OF_SCRIPTS.items()
    ]
    again = "cannot be set beside external: what runs on its nodes is not there for another job; create a SlurmJob"
    limit = "!has(self.external) || !has(self.backoffLimit) || self.backoffLimit == 0"
    stays = "external cannot be added or taken away: a submitted job cannot be changed; create another SlurmJob"
    parts = [
        cel(
            f"!has(self.external) || !has(self.external.components) || !has(self.{name})",
            "cannot be set beside external.components: write it into each component",
            field=f".{name}",
        )
        for name in OF_COMPONENTS
    ]
    return [
        *rules,
        *parts,
        cel(limit, again, field=".backoffLimit"),
        cel("has(self.external) == has(oldSelf.external)", stays, field=".external"),
    ]


def _rules(schema: dict[str, Any]) -> None:
    schema["x-kubernetes-validations"] = [*_frozen(schema.get("properties") or {}), *_of_external()]


class JobEnd(ApiModel):
    """How the work of an external job has ended."""

    exit_code: Annotated[int, Field(ge=0, le=255)]
    """Its exit code: 0 for success. Slurm's accounting keeps it as the derived exit code of the job."""
    comment: Annotated[str, Text(ONE_LINE, at_least=1, at_most=1024)] | None = None
    """What Slurm's accounting keeps as the comment of the job."""


class JobComponent(ApiModel):
    """A part of an external job that asks for other things than its other parts. What it sets wins over the spec."""

    tasks: Annotated[int, Field(ge=1, le=2**20)] = 1
    """Number of tasks."""
    cpus_per_task: Annotated[int, Field(ge=1, le=2**20)] = 1
    """CPUs of each task."""
    nodes: NumberOrText | None = None
    """How many nodes: 2, 2-4, or one of 1,2,4."""
    memory: NumberOrText | None = None
    """Memory on each node in MiB, or with a unit."""
    gres: JobText | None = None
    """Generic resources of each node: gpu:2,shard:1."""
    features: JobText | None = None
    """Features that its nodes must have. Default: those of the spec."""
    partition: JobText | None = None
    """Its partition, or several with commas between them. Default: that of the spec."""
    parameters: AnyMap = Field(default_factory=dict)
    """The rest, as in the spec, whose own parameters count where these have none of the name."""


class ExternalJob(ApiModel):
    """A job without a script: Slurm gives it nodes, and something else runs there. Needs Slurm 26.05.3 or newer."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "has(self.components) == has(oldSelf.components) && "
                    "(!has(self.components) || self.components == oldSelf.components)",
                    "components is immutable: a submitted job cannot be changed; create another SlurmJob",
                    field=".components",
                ),
                cel(
                    "!has(oldSelf.ended) || (has(self.ended) && self.ended == oldSelf.ended)",
                    "ended cannot be changed: the job ends as was said first",
                    field=".ended",
                ),
            ]
        }
    )

    ended: JobEnd | None = None
    """Set once, when the work has ended: Slurm ends the job, and its state is Succeeded or Failed by the exit code."""
    components: Annotated[tuple[JobComponent, ...], Field(min_length=2, max_length=MAX_COMPONENTS)] | None = None
    """Parts that ask for different things: one heterogeneous job, whose parts Slurm starts together. Default: the job
    is one part, as the spec says."""


class JobLogPod(ApiModel):
    """Where the output of the job is read."""

    pod: bool = True
    """Whether a pod <name>-logs shows it. Without one, the job writes to the same folder of its node, standard error
    into the file of standard output, and status.logs.place says where: for a pod on a virtual Node, whose own output
    it is."""
    volume: JobLogVolume | None = None
    """A claim with the output, for jobs that write it to a volume. Default: none, output is read from the node."""
    task: Annotated[int, Field(ge=0, lt=2**31 - 1)] | None = None
    """Task of an array whose output is shown. Default: its first."""


class SlurmJobObjectSpec(SlurmJobSpec):
    """The desired job."""

    model_config = ConfigDict(json_schema_extra=_rules)

    cluster_name: DnsLabel
    """The Cluster that runs it."""
    cluster_namespace: Namespace | None = None
    """Namespace of the Cluster. Default: the SlurmJob's own."""
    user: JobUser | None = None
    """The user whose job it is, where the Cluster grants the namespace several. Default: the first."""
    depends_on: Annotated[tuple[JobDependency, ...], Field(max_length=64)] = ()
    """Other SlurmJobs that this one waits for."""
    suspend: bool = False
    """Whether the job is kept from starting: it is not submitted, or held where it is in the queue already. A job that
    runs is not touched."""
    backoff_limit: Annotated[int, Field(ge=0, le=100)] = 0
    """How often a failed job is submitted again. One that was cancelled is not."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=31_536_000)] | None = None
    """Seconds after the end of the job at which the object is deleted. Default: never."""
    cancel_policy: Literal["Cancel", "Keep"] = "Cancel"
    """What becomes of the job when the object is deleted: Cancel ends it and waits until it has left its nodes, Keep
    leaves it in Slurm."""
    dry_run: bool = False
    """Whether the job is only looked at: all is checked as before a submission, and status.request has the request that
    would have been sent to slurmrestd. Nothing is submitted, and no file is copied."""
    logs: JobLogPod | None = None
    """Whether the output of the job can be read: a pod <name>-logs shows it, in its containers stdout and stderr. {} is
    enough. Default: none, no pod."""
    external: ExternalJob | None = None
    """Instead of script and command: the job only holds what it asks for, until external.ended is set, its time limit,
    or its cancellation. status.allocation says what it was given. Pods that Slurm places have such jobs."""
    shared_volume: JobVolume | None = None
    """A claim that nodes mount too, on which files of the job are reached by their paths. Default: that of logs."""
    prepare: Annotated[tuple[JobPrepare, ...], Field(max_length=MAX_COPIES)] = ()
    """Files and folders that are copied from volumes of the SlurmJob's namespace before the job is submitted."""
    results: Annotated[tuple[JobResults, ...], Field(max_length=MAX_COPIES)] = ()
    """Files and folders that are copied to volumes of the SlurmJob's namespace after the end of the job."""


class ArrayCounts(ApiModel):
    """Tasks of an array."""

    pending: int = 0
    """Tasks that wait."""
    running: int = 0
    """Tasks that have nodes."""
    succeeded: int = 0
    """Tasks that have succeeded."""
    failed: int = 0
    """Tasks that have failed or were cancelled."""


class ArrayTasks(ApiModel):
    """Tasks of an array whose end was seen, as 0-3,7: Slurm forgets them one by one."""

    total: int | None = None
    """How many tasks the array has."""
    succeeded: Annotated[str, Field(max_length=MAX_TASKS)] = ""
    """Tasks that have succeeded."""
    failed: Annotated[str, Field(max_length=MAX_TASKS)] = ""
    """Tasks that have failed or were cancelled."""
    cancelled: bool = False
    """Whether a task was cancelled."""


class JobFailure(ApiModel):
    """How a job has failed after which another is submitted."""

    reason: str = ""
    """Why, in one word."""
    message: str = ""
    """The same in a sentence."""
    exit_code: int | None = None
    """Exit code of the script."""
    signal: int | None = None
    """Signal that ended the script."""


class JobSubmission(ApiModel):
    """A submission that was begun: written before Slurm is asked, so that none is ever made twice."""

    attempt: int = 0
    """Which one it is, from 0 on."""
    started_at: datetime | None = None
    """When it was begun."""
    answered_at: datetime | None = None
    """When Slurm had taken it; absent while that is not known."""
    unanswered_at: datetime | None = None
    """When the last submission before it was begun whose answer is not known: its job may come as a second one."""
    name: str = ""
    """Name of the job in Slurm."""
    again: bool = False
    """Whether it asks for the nodes that an external job had before, which slurmctld has lost."""
    failure: JobFailure | None = None
    """How its job has failed, or been lost, where another submission is to follow: Slurm may have forgotten it by
    then."""


class JobLogPlace(ApiModel):
    """Where the output of a job is, and whose it is, as Slurm has said last."""

    job: str = ""
    """Number of the job."""
    node: str = ""
    """The node on which its script runs, or ran."""
    uid: int | None = None
    """Uid of its user."""
    gid: int | None = None
    """Gid of its user."""
    path: Annotated[str, Field(max_length=4095)] = ""
    """File of standard output."""
    starts: int = 0
    """How often it was started again, with earlier submissions."""


class JobLogStatus(ApiModel):
    """What was decided about the output of the job, before its submission, and what was done since."""

    name: str = ""
    """Beginning of the names of its output files; empty where the job writes elsewhere."""
    not_served: str = ""
    """Why the job writes elsewhere."""
    task: int | None = None
    """Task of the array whose output is shown."""
    starts: int = 0
    """How often earlier submissions were started."""
    place: JobLogPlace | None = None
    """Where the output is, with logs.pod false."""
    is_complete: bool = False
    """Whether the pod knows how the job has ended, or place is the last one."""


class JobRequest(ApiModel):
    """The request that would have submitted a job, without its token."""

    method: str = ""
    """Method of HTTP."""
    path: str = ""
    """Path on slurmrestd, with the version of its data parser."""
    body: Annotated[str, Field(max_length=MAX_REQUEST)] | None = None
    """The JSON that would have been sent, byte for byte, if it has 128 KiB at most; if not, without its script. Absent
    if it has more even so."""
    size: int = 0
    """Bytes of the whole body."""
    sha256: str = ""
    """SHA-256 of the whole body."""
    script_size: int | None = None
    """Bytes of the script, where it was left out."""
    script_sha256: str | None = None
    """SHA-256 of the script, where it was left out."""


class JobAllocation(ApiModel):
    """What an external job, or a component of it, was given on one node."""

    component: Annotated[int, Field(ge=0, lt=MAX_COMPONENTS)] | None = None
    """Which component has it, from 0 on; absent if the job has none."""
    node: Annotated[str, Field(max_length=255)]
    """Name of the node in Slurm."""
    cpus: int
    """CPUs."""
    memory: int = 0
    """Memory in MiB."""
    gres: Annotated[tuple[Annotated[str, Field(max_length=255)], ...], Field(max_length=32)] = ()
    """Generic resources, with their indices where Slurm knows them: gpu:a100:2(IDX:0-1)."""


class SlurmJobStatus(ApiModel):
    """The observed state of the job."""

    state: str = ""
    """Where it is in its life: Waiting (not submitted), Pending, Running, Suspended, Ending, Succeeded, Failed, Unknown
    or, with spec.dryRun, DryRun."""
    reason: str = ""
    """Why, in one word."""
    summary: str = ""
    """What is to be known of it, in one line."""
    job_id: int | None = None
    """Number of the job in Slurm."""
    user: str | None = None
    """The user whose job it is."""
    account: str | None = None
    """Account that pays."""
    partition: str | None = None
    """Its partition."""
    nodes: str | None = None
    """Nodes that it runs on, or ran on, in Slurm's notation; of a long list the first, and how many more there are."""
    slurm_reason: str | None = None
    """Why it waits, or ended as it did, in Slurm's word."""
    submit_time: datetime | None = None
    """When it was submitted."""
    expected_start_time: datetime | None = None
    """When Slurm expects it to start; absent where it does not say."""
    start_time: datetime | None = None
    """When it started."""
    end_time: datetime | None = None
    """When it ended."""
    deadline: datetime | None = None
    """Of an external job that runs: when Slurm will end it, at its time limit or, once it is preempted, after the grace
    time; absent where it has no limit."""
    exit_code: int | None = None
    """Exit code of the script; of an array the highest; of an external job that of external.ended."""
    signal: int | None = None
    """Signal that ended the script."""
    restarts: int | None = None
    """How often Slurm has run it again."""
    array: ArrayCounts | None = None
    """Tasks by state, of an array."""
    tasks: ArrayTasks | None = None
    """Which tasks of an array have ended."""
    output: str | None = None
    """File of standard output, on its first node."""
    submission: JobSubmission | None = None
    """The submission that counts."""
    failed_attempts: Annotated[tuple[int, ...], Field(max_length=101)] | None = None
    """Numbers of jobs that failed before this one."""
    logs: JobLogStatus | None = None
    """Of the pod with the output."""
    files: JobFilesStatus | None = None
    """Of the files that are copied."""
    request: JobRequest | None = None
    """With spec.dryRun, the request that would have been sent."""
    allocation: Annotated[tuple[JobAllocation, ...], Field(max_length=MAX_ALLOCATION)] | None = None
    """Of an external job that runs, or has run: what it was given on each node, by component, in Slurm's order of
    nodes. It does not change while the job runs."""
    recorded: bool | None = None
    """Of an external job whose end was said: whether Slurm's accounting has the exit code and the comment; false once
    the operator has given up. Absent until then, and where the Cluster has no accounting."""
    held: bool | None = None
    """Whether the operator holds the job, because of spec.suspend; noted before Slurm is asked to."""
    observed_generation: int | None = None
    """The generation of the spec that this status describes."""
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    """Conditions of the SlurmJob."""


class SlurmJob(ApiObject):
    """A batch job of Slurm as an object."""

    kind: Literal["SlurmJob"] = "SlurmJob"
    metadata: ObjectMeta
    spec: SlurmJobObjectSpec
    """The desired job."""
    status: SlurmJobStatus = Field(default_factory=SlurmJobStatus)
    """The observed state of the job."""

    @property
    def cluster_key(self) -> tuple[str, str]:
        """Namespace and name of its Cluster."""
        return self.spec.cluster_namespace or self.namespace, self.spec.cluster_name
