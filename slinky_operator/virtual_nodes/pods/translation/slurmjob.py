"""A pod as the spec of a SlurmJob: a batch script, a program of the nodes, or an image. Pure.

A pod whose image is `NO_IMAGE` runs what the nodes have: its command or, with the annotation for it, a batch script.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from slinky_api.errors import Problem
from slinky_api.sylabs.wlm import ContainerOptions
from slinky_api.v1alpha1.cluster.jobs import ImageRuntime
from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.images.image_folder import script
from slinky_operator.jobs.images.program import Program
from slinky_operator.jobs.images.runtimes import Runtime, lines_of, needs_folder
from slinky_operator.jobs.quantities import MIB, number_of, whole
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import named
from slinky_operator.virtual_nodes.node_names import GPU, GRES_PREFIX, gres_of
from slinky_operator.virtual_nodes.pods.translation import environment, job_annotations
from slinky_operator.virtual_nodes.pods.translation.environment import ConfigMaps, expanded
from slinky_operator.virtual_nodes.pods.translation.pod_fields import CONTAINER, check
from slinky_operator.virtual_nodes.pods.translation.volumes import Volumes, volumes_of

NO_IMAGE: Final = "no-image"
"""The image of a pod that runs programs of the nodes; wlm-operator's jobs had it."""

_LOCAL: Final = "local.file"
_DEADLINE: Final = "spec.activeDeadlineSeconds"
_PATHS: Final[Mapping[str, str]] = {
    "spec.partition": "spec.nodeName",
    "spec.command": f"{CONTAINER}.command",
    "spec.env": f"{CONTAINER}.env",
    "spec.time": _DEADLINE,
    "spec.cpusPerTask": f"{CONTAINER}.resources",
    "spec.memory": f"{CONTAINER}.resources",
    "spec.gres": f"{CONTAINER}.resources",
    "spec.parameters.temporary_disk_per_node": f"{CONTAINER}.resources",
}


@dataclass(frozen=True, slots=True)
class Translation:
    """What a pod asks for.

    Parameters
    ----------
    fields
        The spec of a SlurmJob as users write it, but for its Cluster.
    user
        The user that the pod names; None for none.
    annotated
        Fields that annotations have set.
    is_script
        Whether an annotation has the script.
    """

    fields: Mapping[str, Any]
    user: str | None = None
    annotated: frozenset[str] = field(default_factory=frozenset)
    is_script: bool = False

    @property
    def spec(self) -> SlurmJobSpec:
        """The spec, parsed.

        Raises
        ------
        InvalidJob
            With the path in the pod.
        """
        try:
            return SlurmJobSpec.model_validate(dict(self.fields))
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(map(str, ("spec", *first["loc"][:1])))
            raise self.refused(Problem(path, first["msg"].removeprefix("Value error, "))) from None

    def refused(self, problem: Problem) -> InvalidJob:
        """A problem that was found in the spec, by its path in the pod."""
        return InvalidJob(self._path(problem.field), problem.reason)

    def _path(self, path: str) -> str:
        name = path.removeprefix("spec.").partition(".")[0].partition("[")[0]
        if name in self.annotated:
            return job_annotations.path(name)
        if name in {"script", "args"}:
            return job_annotations.path("script") if self.is_script else f"{CONTAINER}.image"
        return next((known for key, known in _PATHS.items() if path.startswith(key)), path)


def translate(pod: Object, partition: str, site: ImageRuntime, config_maps: ConfigMaps) -> Translation:
    """Translate a pod.

    Parameters
    ----------
    pod
        The pod.
    partition
        The partition that its Node stands for.
    site
        How images run.
    config_maps
        The ConfigMaps that `environment.names_of_config_maps` names.

    Raises
    ------
    InvalidJob
        With the path of the field, and what to do.
    """
    check(pod)
    container = pod["spec"]["containers"][0]
    asked = job_annotations.asked(pod)
    user = asked.pop(job_annotations.USER, None)
    own_script = asked.pop(job_annotations.SCRIPT, None)
    variables = environment.variables_of(pod, config_maps)
    fields: dict[str, Any] = {"partition": partition}
    _add(fields, fields_of(container), f"{CONTAINER}.resources", asked)
    deadline = pod["spec"].get("activeDeadlineSeconds")
    if deadline:
        _add(fields, {"time": f"{deadline // 60}:{deadline % 60:02d}"}, _DEADLINE, asked)
    fields |= {key: value for key, value in asked.items() if key != "parameters"}
    if variables:
        fields["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    parameters = {**fields.get("parameters", {}), **asked.get("parameters", {})}
    if own_script is None:
        parameters.setdefault("name", str(pod["metadata"]["name"]))
    if parameters:
        fields["parameters"] = parameters
    shared = site.shared_volume
    volumes = volumes_of(pod, config_maps, None if shared is None else (shared.claim_name, shared.mount_path))
    fields |= _program(container, variables, own_script, volumes, site, fields)
    return Translation(fields, user, frozenset(asked), own_script is not None)


def _add(fields: dict[str, Any], more: Mapping[str, Any], path: str, asked: Mapping[str, Any]) -> None:
    """Add what the pod itself says; annotations must not say it, too."""
    twice = next((name for name in more if name in asked and name != "parameters"), None)
    if twice is not None:
        raise InvalidJob(job_annotations.path(twice), f"{path} says this, too: remove one of them")
    fields |= more


def _program(
    container: Object,
    variables: Mapping[str, str],
    own_script: str | None,
    volumes: Volumes,
    site: ImageRuntime,
    fields: Mapping[str, Any],
) -> dict[str, Any]:
    """The fields that say what runs."""
    image = str(container.get("image") or "")
    command = tuple(expanded(str(one), variables) for one in container.get("command") or ())
    arguments = tuple(expanded(str(one), variables) for one in container.get("args") or ())
    if image == NO_IMAGE:
        return _of_nodes(container, own_script, command, arguments, volumes)
    if own_script is not None:
        reason = f"a batch script runs on the nodes, in no image: write image: {NO_IMAGE}"
        raise InvalidJob(job_annotations.path(job_annotations.SCRIPT), reason)
    folder = str(container.get("workingDir") or "")
    if folder and Runtime(site.runtime) is Runtime.SLURM:
        reason = "images run by srun --container here, which starts them where the job starts: use cd in the command"
        raise InvalidJob(f"{CONTAINER}.workingDir", reason)
    if not image:
        raise InvalidJob(f"{CONTAINER}.image", f"is required; {NO_IMAGE} runs what the nodes have")
    return {"script": _image_script(image, Program(command, arguments, folder, volumes.binds), volumes, site, fields)}


def _of_nodes(
    container: Object, own_script: str | None, command: tuple[str, ...], arguments: tuple[str, ...], volumes: Volumes
) -> dict[str, Any]:
    if volumes.binds:
        reason = f"image {NO_IMAGE} runs on the nodes themselves, where nothing is mounted: use paths of the nodes"
        raise InvalidJob(f"{CONTAINER}.volumeMounts", reason)
    folder = {"workingDirectory": container["workingDir"]} if container.get("workingDir") else {}
    if own_script is not None:
        if command:
            raise InvalidJob(f"{CONTAINER}.command", f"remove it, or {job_annotations.path(job_annotations.SCRIPT)}")
        return {**folder, "script": own_script, **({"args": list(arguments)} if arguments else {})}
    if not command:
        reason = f"is required with image {NO_IMAGE}, or a script in {job_annotations.path(job_annotations.SCRIPT)}"
        raise InvalidJob(f"{CONTAINER}.command", reason)
    return {**folder, "command": list(command), **({"args": list(arguments)} if arguments else {})}


def _image_script(image: str, program: Program, volumes: Volumes, site: ImageRuntime, fields: Mapping[str, Any]) -> str:
    runtime, options = Runtime(site.runtime), ContainerOptions(allow_unsigned=True)
    full = image if "://" in image or image.startswith(_LOCAL) else f"docker://{image}"
    has_folder = needs_folder(runtime, full, options) or volumes.needs_folder
    nodes = str(fields.get("nodes", "1"))
    if has_folder and nodes != "1" and not site.shared_folder:
        reason = "only the first node of a job gets the image, since nodes share no folder here: write 1"
        raise InvalidJob(job_annotations.path("nodes"), reason)
    try:
        lines = list(lines_of(runtime, full, options, fields.get("cpusPerTask", 0), program))
    except InvalidJob as error:
        raise InvalidJob(f"{CONTAINER}.image", error.reason) from None
    return script((*volumes.lines, *lines), folder=site.folder if has_folder else None)


def fields_of(container: Object) -> dict[str, Any]:
    """Return the fields of a SlurmJob that stand for the resources of a container.

    Raises
    ------
    InvalidJob
        For a resource that Slurm does not have.
    """
    resources = container.get("resources") or {}
    if resources.get("claims"):
        raise InvalidJob(f"{CONTAINER}.resources.claims", "Slurm allocates no devices of resource claims")
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    fields: dict[str, Any] = {}
    gres = []
    for name, text in asked.items():
        path = path_of(resources, name)
        number = number_of(text, path)
        if not number:
            continue
        if name == "cpu":
            fields["cpusPerTask"] = whole(number, path)
        elif name == "memory":
            fields["memory"] = f"{whole(number / MIB, path)}M"
        elif name == "ephemeral-storage":
            fields["parameters"] = {"temporary_disk_per_node": whole(number / MIB, path)}
        elif (device := gres_of(name)) is not None:
            gres.append(f"{device}:{whole(number, path)}")
        else:
            known = named(["cpu", "memory", "ephemeral-storage", GPU, f"{GRES_PREFIX}<name>"])
            raise InvalidJob(path, f"Slurm knows no such resource: request {known}")
    if gres:
        fields["gres"] = ",".join(sorted(gres))
    return fields


def path_of(resources: Mapping[str, Any], name: str) -> str:
    """Path of what a container says of a resource."""
    kind = "requests" if name in (resources.get("requests") or {}) else "limits"
    return f"{CONTAINER}.resources.{kind}[{name[:100]}]"
