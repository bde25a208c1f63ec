"""An object of an old kind as the spec of a SlurmJob."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from slinky_api.errors import Problem
from slinky_api.sylabs import slurm, wlm
from slinky_api.sylabs.wlm import WlmJobSpec
from slinky_api.v1alpha1.slurmjob.files import JobPrepare, JobResults
from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.images.image_folder import script
from slinky_operator.jobs.images.runtimes import lines_of, needs_folder
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs.translation import node_selector
from slinky_operator.sylabs.translation.site import Site
from slinky_operator.sylabs.translation.transfers import collected, is_in_folder, prepared
from slurm_client.errors import InvalidDirective
from slurm_client.notation import sbatch

OldSpec: TypeAlias = wlm.SlurmJobSpec | wlm.WlmJobSpec | slurm.SlurmJobSpec
"""The spec of an old kind."""

_SCRIPT: Final = "spec.script"
_PLACED: Final = {
    "spec.partition": node_selector.FIELD,
    "spec.features": node_selector.FIELD,
    "spec.workingDirectory": "spec.prepare.to",
}
_GRANTED: Final = frozenset({*_PLACED, "spec.account", "spec.qos"})
"""Fields that a script can ask for as well."""
_OF_SCRIPT: Final = {**_PLACED, _SCRIPT: "spec.batch"}
_OF_IMAGE: Final = {
    **_PLACED,
    _SCRIPT: "spec.image",
    "spec.nodes": "spec.resources.nodes",
    "spec.tasks": "spec.resources.nodes",
    "spec.cpusPerTask": "spec.resources.cpuPerNode",
    "spec.memory": "spec.resources.memPerNode",
    "spec.time": "spec.resources.wallTime",
}
_INSTEAD: Final = {
    "ssh": "jobs are not submitted by ssh: a job belongs to the Slurm user that the Cluster's administrator has chosen"
    " for the namespace. Leave it out",
    "resources": "no pod submits the job: ask Slurm for what it needs, in #SBATCH lines such as --cpus-per-task, --mem"
    " and --gres",
    "pod_security_context": "no pod submits the job: it runs as the Slurm user of the namespace. Leave it out",
}
"""Fields that are refused in any case, with what to do."""


@dataclass(frozen=True, slots=True)
class Translation:
    """What an object of an old kind asks for.

    Parameters
    ----------
    spec
        The spec of a SlurmJob.
    old_fields
        The old path of each field of it.
    prepare, results
        Files to copy before the job starts, and after it has ended.
    without_effect
        Fields that change nothing about the job, with the reason.
    shared_volume
        The claim with files of the job that nodes mount too.
    logs
        Whether a pod shows the output of the job.
    pods
        Whether a pod on a virtual Node does, in place of that.
    """

    spec: SlurmJobSpec
    old_fields: Mapping[str, str]
    prepare: tuple[JobPrepare, ...] = ()
    results: tuple[JobResults, ...] = ()
    without_effect: tuple[str, ...] = ()
    shared_volume: Mapping[str, str] | None = None
    logs: bool = False
    pods: bool = False

    def in_old_words(self, problem: Problem) -> Problem:
        """Name the old field of a problem that was found in `spec`; what no field asks for, the script does."""
        field = problem.field.removeprefix("spec.")
        if problem.field in _GRANTED and field not in self.spec.given:
            return Problem(self.old_fields[_SCRIPT], problem.reason)
        return Problem(self.old_fields.get(problem.field, problem.field), problem.reason)


def translate(spec: OldSpec, site: Site, own_folder: str = "") -> Translation:
    """Translate the spec of an old kind.

    Parameters
    ----------
    spec
        The spec.
    site
        What the administrator has said.
    own_folder
        Name of a folder that no other job has: there a job starts whose files are copied to where it starts, unless its
        script says where that is.

    Raises
    ------
    InvalidJob
        With the old field, and what to write instead.
    """
    for path in spec.unknown_fields("spec"):
        raise InvalidJob(path[:200], "is not a field of this kind")
    fields: Mapping[str, Any]
    if isinstance(spec, wlm.WlmJobSpec):
        old_fields, fields = _OF_IMAGE, fields_of(spec, site)
    else:
        old_fields, fields = _OF_SCRIPT, {"script": spec.batch}
    if isinstance(spec, slurm.SlurmJobSpec):
        _refuse_pod(spec)
        prepare = None
    else:
        prepare = spec.prepare
    selected = node_selector.selected(spec.node_selector, site.labels, site.partitions, site.cluster)
    if selected.features is not None:
        _refuse_second_constraint(fields["script"])
    folder = (
        f"{site.shared_folder}/{own_folder}" if is_in_folder(prepare) and _starts_anywhere(fields["script"]) else None
    )
    placed = {"partition": selected.partition, "features": selected.features, "working_directory": folder}
    return Translation(
        _spec({**fields, **placed}, old_fields),
        old_fields,
        prepared(prepare),
        collected(spec.results),
        selected.without_effect,
        site.shared_volume,
        site.logs,
        site.pods,
    )


def _spec(fields: Mapping[str, Any], old_fields: Mapping[str, str]) -> SlurmJobSpec:
    try:
        return SlurmJobSpec(**fields)
    except ValidationError as error:
        # What is too long in its new form: quotes double, features of labels add up.
        first = error.errors()[0]
        field = f"spec.{first['loc'][0]}"
        raise InvalidJob(old_fields.get(field, field), first["msg"].removeprefix("Value error, ")) from None


def _refuse_pod(spec: slurm.SlurmJobSpec) -> None:
    """Refuse what was about the pod that submitted a job."""
    for name, reason in _INSTEAD.items():
        if getattr(spec, name):
            raise InvalidJob(f"spec.{slurm.SlurmJobSpec.model_fields[name].alias or name}", reason)


def _refuse_second_constraint(script: str) -> None:
    """Refuse features of labels beside those of the script: the one would take the place of the other."""
    if "--constraint" in _options(script):
        reason = "requests features in addition to --constraint in the script: list all of them there"
        raise InvalidJob(node_selector.FIELD, reason)


def _starts_anywhere(script: str) -> bool:
    """Whether a script leaves open in which folder its job starts."""
    return "--chdir" not in _options(script)


def _options(script: str) -> frozenset[str]:
    try:
        return frozenset(line.option for line in sbatch.directives(script))
    except InvalidDirective as error:
        raise InvalidJob("spec.batch", error.reason, error.line) from None


def fields_of(spec: WlmJobSpec, site: Site) -> dict[str, Any]:
    """Return the fields that stand for image, options and resources.

    Raises
    ------
    InvalidJob
        For an image or an option that cannot run here, and for more nodes than can see the image.
    """
    resources = spec.resources
    has_folder = needs_folder(site.runtime, spec.image, spec.options)
    if has_folder and resources.nodes > 1 and not site.is_folder_shared:
        reason = "only the first node of a job gets the image, since nodes share no folder here: write 1"
        raise InvalidJob("spec.resources.nodes", reason)
    lines = lines_of(site.runtime, spec.image, spec.options, resources.cpu_per_node)
    fields: dict[str, Any] = {"script": script(lines, folder=site.folder if has_folder else None)}
    if resources.nodes:
        fields |= {"nodes": str(resources.nodes), "tasks": resources.nodes}
    if resources.cpu_per_node:
        fields["cpus_per_task"] = resources.cpu_per_node
    if resources.mem_per_node:
        fields["memory"] = f"{resources.mem_per_node}M"
    if resources.wall_time:
        fields["time"] = str(-(-resources.wall_time // 60))
    return fields
