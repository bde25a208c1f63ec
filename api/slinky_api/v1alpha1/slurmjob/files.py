"""Files of a SlurmJob: what is copied from volumes before its job starts, and to volumes after it has ended."""

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from slinky_api.v1alpha1.common import ApiModel
from slinky_api.v1alpha1.fields import DnsSubdomain
from slinky_api.v1alpha1.rules import Rule, Text, cel, matching

__all__ = [
    "NOT_COVERED",
    "TAKEN",
    "JobCopies",
    "JobCopy",
    "JobFilesStatus",
    "JobLogVolume",
    "JobPrepare",
    "JobResults",
    "JobVolume",
]

MAX_COPIES: Final = 8
"""Items of a list."""

TAKEN: Final = (
    *("/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt/slurm-operator", "/proc", "/run/job"),
    *("/sbin", "/sys", "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/libx32", "/usr/sbin"),
    *("/usr/share", "/var/run"),
)
"""Folders of a log pod with its own program, system and files: nothing is mounted there, at whatever depth."""

NOT_COVERED: Final = ("/opt", "/run", "/usr", "/usr/local", "/var")
"""Folders that lead to these: nothing is mounted over them, but other folders in them are free."""

_PLAIN: Final = matching(r"[^\x00-\x1f\x7f]+", "must be one line, without control characters")
_NOT_UP: Final = Rule(
    "must not contain '..': the path must stay inside its folder",
    lambda text: "/../" not in f"/{text}/",
    "!('/' + self + '/').contains('/../')",
)
_BELOW: Final = matching(r"[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*", "must be relative, on one line")
_FOLDER: Final = matching(r"(/[A-Za-z0-9._-]+)+", "must be an absolute path of letters, digits, '.', '_' and '-'")
_FREE: Final = Rule(
    "must not cover the log pod's own program and system: not in "
    f"{', '.join(TAKEN)}, and not {', '.join(NOT_COVERED)} itself. Mount the volume on the nodes in "
    "another folder, for example /data, or leave out logs.volume and use sharedVolume with results",
    lambda text: (
        text not in NOT_COVERED
        and not any(text == one or text.startswith(f"{one}/") for one in TAKEN)
        and not {".", ".."} & set(text.split("/"))
    ),
    f"!(self in {list(NOT_COVERED)}) && !{list(TAKEN)}.exists(x, self == x || "
    "self.startsWith(x + '/')) && !self.split('/').exists(x, x == '.' || x == '..')",
)
_SIZE: Final = matching("[1-9][0-9]{0,3}(Ki|Mi|Gi)|[1-9][0-9]{0,2}Ti", "must be a size such as 500Mi, 20Gi or 1Ti")

NodePath = Annotated[str, Text(_PLAIN, _NOT_UP, at_least=1, at_most=1024, by_pattern=True)]
"""A path on the nodes, absolute or below the folder of the job."""

VolumePath = Annotated[str, Text(_BELOW, _NOT_UP, at_least=1, at_most=1024, by_pattern=True)]
"""A path in a volume."""

CopySize = Annotated[str, Text(_SIZE, at_least=3, at_most=6, by_pattern=True)]
"""A number of bytes, with its unit."""


class JobVolume(ApiModel):
    """A claim with files of jobs that nodes mount too."""

    claim_name: DnsSubdomain
    """A PersistentVolumeClaim in the SlurmJob's namespace."""
    mount_path: Annotated[str, Text(_FOLDER, at_least=2, at_most=256)]
    """Where nodes mount it: files of jobs below this folder are read from the claim, by the same path."""


class JobLogVolume(JobVolume):
    """A claim with the output of jobs, which the pod with the output mounts by the path of the nodes."""

    mount_path: Annotated[str, Text(_FOLDER, _FREE, at_least=2, at_most=256)]
    """Where nodes mount it: output below this folder is read from the claim, by the same path. Folders in which the
    log pod has its own program and system are taken."""


class ClaimSource(ApiModel):
    """A claim of the SlurmJob's namespace."""

    claim_name: DnsSubdomain
    """Name of the PersistentVolumeClaim."""


class ConfigMapSource(ApiModel):
    """A ConfigMap of the SlurmJob's namespace."""

    name: DnsSubdomain
    """Its name."""


class SecretSource(ApiModel):
    """A Secret of the SlurmJob's namespace."""

    secret_name: DnsSubdomain
    """Its name."""


class PrepareVolume(ApiModel):
    """A volume that is read."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "[has(self.persistentVolumeClaim), has(self.configMap), has(self.secret)].filter(x, x).size() == 1",
                    "name exactly one of persistentVolumeClaim, configMap and secret",
                )
            ]
        }
    )

    persistent_volume_claim: ClaimSource | None = None
    """A claim of the SlurmJob's namespace."""
    config_map: ConfigMapSource | None = None
    """Or a ConfigMap, whose keys are files."""
    secret: SecretSource | None = None
    """Or a Secret, whose keys are files."""


class JobPrepare(ApiModel):
    """A file or folder that is copied from a volume to the nodes before the job is submitted."""

    volume: PrepareVolume
    """Where it is copied from."""
    source: Annotated[VolumePath | None, Field(alias="from")] = None
    """The file or folder of the volume. Default: all that is in it."""
    path: NodePath
    """Where it is copied to on the nodes: absolute, or below workingDirectory. It must be on the shared volume, or
    below /var/spool/job-output where that is a volume that nodes share."""
    max_size: CopySize = "1Gi"
    """Maximum size of all its files together; nothing is copied of what has more."""
    max_files: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """The same for the number of files and folders."""


class ResultsVolume(ApiModel):
    """A volume that is written to."""

    persistent_volume_claim: ClaimSource
    """A claim of the SlurmJob's namespace."""


class JobResults(ApiModel):
    """A file or folder of the job that is copied to a volume after its end."""

    volume: ResultsVolume
    """Where it is copied to."""
    path: NodePath | None = None
    """The file or folder on the nodes: absolute, or below the folder in which the job starts. %j is the job id. It must
    be below /var/spool/job-output, or on the shared volume. Default: the file of standard output."""
    to: VolumePath | None = None
    """Folder of the volume into which it is copied, under its own name. Default: the name of the SlurmJob."""
    when: Literal["Always", "OnSuccess", "Never"] = "Always"
    """After which ends of the job: any, success only, or none."""
    max_size: CopySize = "1Gi"
    """Maximum size of all its files together; nothing is copied of what has more."""
    max_files: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """The same for the number of files and folders."""


class JobCopy(ApiModel):
    """What became of one copy."""

    name: str
    """The item: results[0]."""
    is_copied: bool = False
    """Whether all of it was copied."""
    files: int | None = None
    """Files that were copied."""
    size: int | None = None
    """Their bytes."""
    message: str = ""
    """Why it was not copied, or what was left out."""


class JobCopies(ApiModel):
    """What was done about a list of copies."""

    attempts: int = 0
    """Pods that have ended without an answer about all of it."""
    retry_time: datetime | None = None
    """When the next one is made."""
    copies: Annotated[tuple[JobCopy, ...], Field(max_length=MAX_COPIES)] = ()
    """Items that are done, well or not."""
    is_complete: bool = False
    """Whether nothing more is done."""


class JobFilesStatus(ApiModel):
    """What is known of the job's files, and what was done about them."""

    uid: int | None = None
    """Uid of the job."""
    gid: int | None = None
    """Gid of the job."""
    node: str = ""
    """Node on which its script runs, or ran."""
    folder: str = ""
    """Folder in which it starts."""
    output: str = ""
    """File of its standard output."""
    prepare: JobCopies | None = None
    """What was done before its submission."""
    results: JobCopies | None = None
    """What was done about the results."""
