"""
The ``#SBATCH`` lines of a script as a JobSpec, by sbatch's own rules.

slurmrestd does not read these lines: a script that is sent as it is loses them. ::

    script = Path("job.sh").read_text()
    asked = sbatch.parse(script)
    job = await slurm.submit_job(asked.spec)

Every option of sbatch becomes the field that sbatch would fill, or is refused with its name and the reason; one that
changes nothing about the job is listed in :attr:`Parsed.without_effect`. Where sbatch would ignore something without
saying so, it is refused. A caller who has options beside the lines takes the lines by :func:`directives`, adds its own,
or leaves some out, and has them read together by :func:`combine`.

sbatch names a job after its script file, and passes on the environment and the limits of the shell that runs it; what a
text does not have is not made up: give ``name`` and ``environment``.

What follows from several options together (``-N4 -n2``) is in :mod:`~slurm_client.notation.sbatch.rules`, the list of
all options in :mod:`~slurm_client.notation.sbatch.table`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slurm_client.errors import InvalidDirective
from slurm_client.models.jobspec import JobSpec
from slurm_client.notation.sbatch import lines, options, rules
from slurm_client.notation.sbatch.draft import Draft, Surroundings
from slurm_client.notation.sbatch.options import Directive
from slurm_client.notation.sbatch.table import LETTERS, OPTIONS, SAME, TAKES

if TYPE_CHECKING:
    from datetime import tzinfo

__all__ = ["Directive", "Parsed", "combine", "directives", "parse", "parse_components"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    What a script asks for.

    Parameters
    ----------
    spec
        The job, with its script.
    sources
        For each field that the lines have set, the option that did it.
    directives
        All options in their order, also those that a later one has replaced.
    without_effect
        Options that change nothing about the job, with the reason.
    """

    spec: JobSpec
    sources: Mapping[str, Directive]
    directives: tuple[Directive, ...]
    without_effect: Mapping[Directive, str]


def parse(
    script: str,
    *,
    now: datetime | None = None,
    zone: tzinfo = UTC,
    environment: Mapping[str, str] | None = None,
) -> Parsed:
    """
    Read the ``#SBATCH`` lines of a script.

    Parameters
    ----------
    script
        The whole script.
    now, zone
        The time that ``--begin=now+1hour`` and ``--begin=16:00`` count from, and where; the clock, and UTC. sbatch
        takes the zone of the machine that it runs on.
    environment
        Variables that ``--export=NAME`` may name without a value.

    Raises
    ------
    InvalidDirective
        With the line, the option and the reason; also for a heterogeneous job: see :func:`parse_components`.
    """
    return combine(directives(script), script=script, now=now, zone=zone, environment=environment)


def directives(script: str) -> tuple[Directive, ...]:
    """
    Return the options in the ``#SBATCH`` lines of a script, in their order; their values are not looked at.

    Raises
    ------
    InvalidDirective
        For what is no script, for an option that is unknown or lacks its value, and for a heterogeneous job.
    """
    found = lines.components(script)
    if len(found) > 1:
        raise InvalidDirective(
            f"the script is a heterogeneous job of {len(found)} components, and one job is asked for"
        )
    return tuple(options.directives(found[0], TAKES, LETTERS, SAME))


def combine(
    wanted: Iterable[Directive],
    *,
    script: str | None = None,
    replaced: Iterable[Directive] = (),
    now: datetime | None = None,
    zone: tzinfo = UTC,
    environment: Mapping[str, str] | None = None,
) -> Parsed:
    """
    Make a job of options; of two that say the same, the later wins.

    Parameters
    ----------
    wanted
        The options that count, by their full names.
    script
        The script of the job; its lines are not read here.
    replaced
        Options that do not count. As for sbatch, one that is wrong in itself is refused all the same.
    now, zone, environment
        As for :func:`parse`.

    Raises
    ------
    InvalidDirective
        As for :func:`parse`.
    """
    around = Surroundings(now or datetime.now(UTC), zone, environment or {})
    _read(Draft(around), replaced)
    return _combined(tuple(wanted), around, script)


def parse_components(
    script: str,
    *,
    now: datetime | None = None,
    zone: tzinfo = UTC,
    environment: Mapping[str, str] | None = None,
) -> tuple[Parsed, ...]:
    """
    Read the lines of each component of a script, which ``#SBATCH hetjob`` separates; as :func:`parse`.

    Only the first has the script. As for sbatch, no component inherits anything from another.
    """
    around = Surroundings(now or datetime.now(UTC), zone, environment or {})
    found = []
    for index, words in enumerate(lines.components(script)):
        listed = tuple(options.directives(words, TAKES, LETTERS, SAME))
        found.append(_combined(listed, around, None if index else script))
    return tuple(found)


def _combined(listed: tuple[Directive, ...], around: Surroundings, script: str | None) -> Parsed:
    draft = Draft(around)
    _read(draft, listed)
    rules.apply(draft)
    return Parsed(JobSpec(script=script, **draft.fields), draft.sources, listed, draft.idle)


def _read(draft: Draft, listed: Iterable[Directive]) -> None:
    for directive in listed:
        option = OPTIONS.get(directive.option.removeprefix("--"))
        if option is None:
            raise directive.refused("sbatch has no such option")
        if option.takes == "value" and directive.value is None:
            raise directive.refused("needs a value")
        try:
            option.effect(draft, directive)
        except ValueError as error:
            raise directive.refused(str(error)) from None
        draft.given[directive.option] = directive
