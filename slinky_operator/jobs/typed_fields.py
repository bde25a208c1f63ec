"""The fields of a spec that are options of sbatch by another name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.options import Wish

_OPTIONS: Final = {
    "partition": "--partition",
    "account": "--account",
    "qos": "--qos",
    "nodes": "--nodes",
    "tasks": "--ntasks",
    "cpus_per_task": "--cpus-per-task",
    "gres": "--gres",
    "time": "--time",
    "features": "--constraint",
    "array": "--array",
    "working_directory": "--chdir",
    "output": "--output",
    "error": "--error",
}
_BINARY_UNIT: Final = re.compile(r"([0-9]{1,15}[KMGT])i(?:B)?")


def wishes(spec: SlurmJobSpec) -> Iterator[Wish]:
    """Give what the fields of a spec ask for, those of `command`, `environment` and `parameters` apart."""
    for name, option in _OPTIONS.items():
        value = getattr(spec, name)
        if value is not None:
            yield Wish(path(name), ((option, str(value)),))
    if spec.memory is not None:
        # Units of Slurm are binary: 4G and 4Gi are the same.
        binary = _BINARY_UNIT.fullmatch(spec.memory)
        yield Wish(path("memory"), (("--mem", binary[1] if binary else spec.memory),))
    if spec.requeue is not None:
        both = frozenset({"--requeue", "--no-requeue"})
        yield Wish(path("requeue"), (("--requeue" if spec.requeue else "--no-requeue", None),), both)


def path(name: str) -> str:
    """Path of a field as users write it."""
    return f"spec.{SlurmJobSpec.model_fields[name].alias or name}"
