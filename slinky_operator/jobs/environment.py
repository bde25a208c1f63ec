"""The variables of a job: those that sbatch would have sent, and the user's own.

slurmrestd sends none of its own. What the options of the job say to ``srun`` comes with the options
(`slurm_client.notation.sbatch`), and slurmctld and slurmd add theirs. Measured with 24.11 and 26.05, these are missing
beside what ``env -i sbatch`` sends, and are added here: the folder of submission, in which scripts like to start, and
what tells the launchers of MPI libraries that Slurm starts their processes. Of a login shell, the user's name is known.

``HOME`` is not: only the nodes know it. ``--export=NONE`` or ``--get-user-env`` in the script bring the login
environment of the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.options import Conflict
from slinky_operator.jobs.refusal import InvalidJob
from slurm_client import JobSpec
from slurm_client.encode.jobs import DIRECTORY
from slurm_client.notation.sbatch import Directive

LAUNCHERS: Final[Mapping[str, str]] = {
    "HYDRA_BOOTSTRAP": "slurm",
    "HYDRA_LAUNCHER_EXTRA_ARGS": "--external-launcher",
    "I_MPI_HYDRA_BOOTSTRAP": "slurm",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "--external-launcher",
    "OMPI_MCA_plm_slurm_args": "--external-launcher",
    "PRTE_MCA_plm_slurm_args": "--external-launcher",
}
"""What sbatch sets for MPICH, Intel MPI, Open MPI and PRRTE."""

LARGEST: Final = 262_144
"""Most characters of all variables of a job; slurmctld keeps them with each job."""


def variables_of(spec: SlurmJobSpec) -> dict[str, str]:
    """Return the user's own variables.

    Raises
    ------
    InvalidJob
        For a name that is there twice, and for more than `LARGEST` characters in all.
    """
    found: dict[str, str] = {}
    size = 0
    for index, variable in enumerate(spec.env):
        if variable.name in found:
            raise InvalidJob(f"spec.env[{index}].name", f"{variable.name[:60]} is set twice")
        found[variable.name] = variable.value
        size += len(variable.name) + len(variable.value) + 2
    if size > LARGEST:
        raise InvalidJob("spec.env", f"has {size} characters, and a job may have {LARGEST}; keep large texts in a file")
    return found


def complete(
    spec: JobSpec, own: Mapping[str, str], export: Directive | None, user: str
) -> tuple[dict[str, str], tuple[Conflict, ...]]:
    """Return all variables of a job, and where the user's own win over those of ``--export``.

    Parameters
    ----------
    spec
        The job; its environment is what its options say.
    own
        The user's own variables.
    export
        The ``--export`` that counts, if there is one.
    user
        Name of the user whose job it is.

    Raises
    ------
    InvalidJob
        For a variable that follows from the job's options, as sbatch would set it, with another value.
    """
    asked = dict(spec.environment or {})
    names_all = export is None or (export.value or "").upper() == "ALL"
    login = {"USER": user, "LOGNAME": user} if user and names_all else {}
    sent = {"SLURM_SUBMIT_DIR": spec.working_directory or DIRECTORY, **LAUNCHERS}
    conflicts = []
    exported = frozenset(word.partition("=")[0] for word in (export.value or "").split(",")) if export else frozenset()
    for name, value in own.items():
        if asked.get(name, value) == value:
            continue
        if export is None or name not in exported:
            raise InvalidJob(
                f"spec.env[{name}]", f"follows from the job's options, and is {asked[name][:60]!r} by them"
            )
        conflicts.append(Conflict(f"spec.env[{name}]", export.option, f"{name}={asked[name]}", export.line))
    return {**login, **sent, **asked, **own}, tuple(conflicts)
