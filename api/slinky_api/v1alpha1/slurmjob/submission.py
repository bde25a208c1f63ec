"""What a job that is an object asks of Slurm: the part of a SlurmJob's spec that becomes a submission.

The rest of the spec, and the kind itself, are in `kind`; files that are copied, in `files`. Fields carry the names,
and the notation, of sbatch's options: ``memory: 4G`` are 4096 MiB on each node.
"""

from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from slinky_api.v1alpha1.common import MAP_BY_NAME, ApiModel
from slinky_api.v1alpha1.fields import AnyMap
from slinky_api.v1alpha1.rules import Keywords, Text, matching

__all__ = ["JobText", "JobVariable", "LongText", "NumberOrText", "SlurmJobSpec"]

MAX_SCRIPT: Final = 1_048_576
"""Most characters of a script; the API server takes no object of more than some 1.5 MB."""

ONE_LINE: Final = matching(r"[^\x00-\x1f\x7f]+", "must be one line, without control characters")
_NO_NUL: Final = matching(r"[^\x00]*", "must not contain a NUL character")

JobText = Annotated[str, Text(ONE_LINE, at_least=1, at_most=4096)]
"""Text that is one value of a job."""

LongText = Annotated[str, Text(_NO_NUL, at_most=32_768, by_pattern=True)]
"""Text that a program gets as it is: an argument, the value of a variable."""


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number or a text")  # noqa: TRY004 - pydantic collects ValueErrors
    return str(value) if isinstance(value, int) else value


NumberOrText = Annotated[
    str,
    BeforeValidator(_as_text),
    Text(ONE_LINE, at_least=1, at_most=256),
    Keywords({"x-kubernetes-int-or-string": True, "maxLength": 256}, replace=True),
]
"""A value that may be written as a number: ``2`` nodes, or ``2-4``."""


class JobVariable(ApiModel):
    """A variable of a job's environment."""

    name: Annotated[
        str,
        Text(
            matching("[A-Za-z_][A-Za-z0-9_]*", "must be letters, digits and '_', beginning with a letter or '_'"),
            at_least=1,
            at_most=256,
        ),
    ]
    """Name of the variable."""
    value: LongText = ""
    """Its value, as it is: nothing in it is expanded."""


class SlurmJobSpec(ApiModel):
    """What is asked of Slurm; each field wins over the ``#SBATCH`` lines of the script."""

    script: Annotated[str, Field(min_length=1, max_length=MAX_SCRIPT)] | None = None
    """The batch script, with its #! line. Its #SBATCH lines count as they do for sbatch."""
    command: Annotated[tuple[LongText, ...], Field(max_length=256)] = ()
    """A program and its arguments, in place of a script; no shell reads them."""
    args: Annotated[tuple[LongText, ...], Field(max_length=1024)] = ()
    """Arguments of the script or, after its own, of the command."""
    partition: JobText | None = None
    """Partition, or several with commas between them."""
    account: JobText | None = None
    """Account that pays."""
    qos: JobText | None = None
    """Quality of service."""
    nodes: NumberOrText | None = None
    """How many nodes: 2, 2-4, or one of 1,2,4."""
    tasks: Annotated[int, Field(ge=1, lt=2**31 - 1)] | None = None
    """Number of tasks."""
    cpus_per_task: Annotated[int, Field(ge=1, lt=2**31 - 1)] | None = None
    """CPUs of each task."""
    memory: NumberOrText | None = None
    """Memory on each node in MiB, or with a unit: 512M, 4G, 1T. 4Gi is the same as 4G, as everywhere in Slurm."""
    gres: JobText | None = None
    """Generic resources of each node: gpu:2,shard:1."""
    time: NumberOrText | None = None
    """Limit of wall time: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or UNLIMITED."""
    features: JobText | None = None
    """Features that nodes must have: a100&ib, [rack1|rack2]."""
    array: JobText | None = None
    """Indices of an array, and how many may run at a time: 0-9%2."""
    env: Annotated[tuple[JobVariable, ...], Field(max_length=256), MAP_BY_NAME] = ()
    """Variables of the job. They win over those of --export in the script."""
    working_directory: JobText | None = None
    """Folder in which the job starts, and in which its output is."""
    output: JobText | None = None
    """File for standard output; %j is the job id. See sbatch."""
    error: JobText | None = None
    """File for standard error. Default: that of standard output."""
    requeue: bool | None = None
    """Whether Slurm may run the job again when a node fails. Default: what Slurm's configuration says."""
    parameters: AnyMap = Field(default_factory=dict)
    """The rest of what sbatch can ask for, by the names and with the values of slurmrestd, for example nice: 10."""
