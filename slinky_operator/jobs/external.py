"""Jobs without a script: what of a spec means nothing to them, and their submission.

Slurm gives such a job nodes and starts nothing there, so whatever only serves a script is refused, and not ignored.
Signals are refused for another reason: nobody answers on a node without a slurmd, and slurmctld would take it for one
that has failed. What such a job asks for otherwise is read as for any other job (`translation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from slinky_api.v1alpha1.slurmjob.kind import ExternalJob, JobComponent
from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.refusal import InvalidJob
from slurm_client import JobSpec
from slurm_client.encode.jobs import EXTERNAL

RELEASE: Final = "26.05.3"
"""The first release of Slurm that has such jobs, and nodes for them, without known faults."""

_NOTHING_RUNS: Final = "nothing of a job without a script runs on its nodes"
_NO_SIGNALS: Final = "nobody gets the signal, and Slurm would take the node for one that does not respond"
_NO_AGAIN: Final = "Slurm runs no job without a script again"

FIELDS: Final = (
    "script",
    "command",
    "args",
    "array",
    "env",
    "working_directory",
    "output",
    "error",
    "requeue",
)
"""Fields that a job without a script has not; the kind refuses them too, with others that Slurm never sees."""

PARAMETERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "account_gather_frequency",
            "batch_features",
            "burst_buffer",
            "container",
            "container_id",
            "container_type",
            "core_specification",
            "cpu_frequency",
            "distribution",
            "memory_binding",
            "memory_binding_type",
            "memory_update_delay",
            "memory_update_margin",
            "network",
            "oom_kill_step",
            "open_mode",
            "overcommit",
            "profile",
            "selinux_context",
            "standard_input",
            "thread_specification",
            "tres_bind",
            "tres_freq",
            "wait_all_nodes",
        ),
        _NOTHING_RUNS,
    ),
    **dict.fromkeys(("kill_warning_signal", "kill_warning_delay", "kill_warning_flags"), _NO_SIGNALS),
    "delay_boot": "nodes of a job without a script are not booted for it",
    "kill_on_node_fail": "what a job without a script was given must not change while it runs",
    "reboot": "nodes of a job without a script are not booted for it",
}
"""Parameters that such a job has not, and why."""

OF_ALL: Final = ("begin_time", "deadline", "dependency", "hold")
"""Parameters that a component has not: Slurm starts all of them together."""

ONCE: Final = ("dependency", "hold", "licenses", "mail_type")
"""Parameters that the first component has for all: the others start with it, and Slurm would count them again."""

FLAGS: Final[Mapping[str, str]] = {"EXPEDITED_REQUEUE": _NO_AGAIN, "STEPMGR_ENABLED": _NOTHING_RUNS}
"""Words of parameters.flags that such a job has not, and why."""


def check(spec: SlurmJobSpec) -> None:
    """Refuse what means nothing to a job without a script.

    Raises
    ------
    InvalidJob
        With the field and the reason.
    """
    for name in FIELDS:
        if getattr(spec, name):
            field = SlurmJobSpec.model_fields[name].alias or name
            raise InvalidJob(f"spec.{field}", "cannot be set beside spec.external")
    given: Mapping[str, Any] = spec.parameters
    for key, why in PARAMETERS.items():
        if key in given:
            raise InvalidJob(f"spec.parameters.{key}", f"cannot be set beside spec.external: {why}")
    words = given.get("flags")
    for word in words if isinstance(words, list) else ():
        if word in FLAGS:
            raise InvalidJob("spec.parameters.flags", f"{word} cannot be set beside spec.external: {FLAGS[word]}")


def parts(spec: SlurmJobSpec, external: ExternalJob | None) -> Iterator[SlurmJobSpec]:
    """Give the spec of each component of a job, with what it has of the whole; nothing for a job without components."""
    common = dict(spec.parameters)
    for component in (external.components if external is not None else None) or ():
        own = {name: getattr(component, name) for name in component.model_fields_set}
        own |= {"tasks": component.tasks, "cpus_per_task": component.cpus_per_task}
        yield spec.model_copy(update={**own, "parameters": {**common, **component.parameters}})
        common = {name: value for name, value in common.items() if name not in ONCE}


def check_component(component: JobComponent) -> None:
    """Refuse in one component what counts for all of them.

    Raises
    ------
    InvalidJob
        With the field and the reason.
    """
    for name in OF_ALL:
        if name in component.parameters:
            raise InvalidJob(f"spec.parameters.{name}", "counts for all components: write it into spec.parameters")


def in_component(error: InvalidJob, number: int, component: JobComponent) -> InvalidJob:
    """Return what is wrong with a component with the path of its own field, if that has it."""
    words = error.field.split(".")
    fields = component.model_dump(by_alias=True, exclude_unset=True)
    name = words[1] if len(words) > 1 else ""
    is_own = name in fields and (name != "parameters" or words[-1] in component.parameters)
    if words[0] != "spec" or not is_own:
        return error
    return type(error)(".".join(("spec", "external", f"components[{number}]", *words[1:])), error.reason)


def without_script(job: JobSpec) -> JobSpec:
    """Return a job as one without a script: with the flag, and without variables."""
    return replace(job, script=None, environment=None, flags=[*(job.flags or ()), EXTERNAL])
