"""The files of a preflight: a configuration changed so that disposable daemons can read it without real effects.

The disposable slurmctld runs under the host name of the real one, with an empty state, fresh keys and no network beyond
its own pod, so most of a slurm.conf can stay as it is. Changed are paths that daemons write to, everything by which
slurmctld would start programs or call other services by itself, and nodes outside Kubernetes, which it would ping.

Accounting is left out: with an empty state slurmctld waits forever for its slurmdbd, and one that found the real one
would write to the real database. So are the names of QOS and accounts in lines of partitions, which only slurmdbd
knows: 26.05 ends on one that it does not find; and resources that slurmdbd counts, such as `gres/gpu`: without it, both
releases end on them. What a preflight cannot check is refused by the real slurmctld, which goes on with its files.

A slurmctld that finds jobs, in a copy of the live state, starts programs for them too: there, those are taken out.

Devices are the other thing a preflight cannot know: a slurmd without a GPU waits forever for `File=/dev/nvidia0`.
Names, types and counts in gres.conf are checked, files and `AutoDetect` are not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem, logical_lines, parse_lines
from slinky_operator.slurm.conf.syntax.parsed import parse

SLURM_CONF: Final = "slurm.conf"
GRES_CONF: Final = "gres.conf"

FOLDER: Final = "/preflight"
"""Shared by the daemons of a preflight: keys, state, logs, verdicts."""

SPOOL: Final = f"{FOLDER}/spool-%n"

_TAKEN_OUT: Final = frozenset(
    key.lower()
    for key in (
        "HealthCheckProgram",
        "RebootProgram",
        "ResumeFailProgram",
        "ResumeProgram",
        "SlurmctldPrimaryOffProg",
        "SlurmctldPrimaryOnProg",
        "SuspendProgram",
        "MailProg",
        "JobCompHost",
        "JobCompLoc",
        "JobCompPass",
        "JobCompType",
        "JobCompUser",
        "FederationParameters",
        "SlurmctldSyslogDebug",
        "SlurmdSyslogDebug",
    )
)
"""Keys by which slurmctld acts on the world without being asked."""

_FOR_JOBS: Final = frozenset(("burstbuffertype", "epilogslurmctld", "prologslurmctld"))
"""Keys by which slurmctld starts programs for jobs that it finds."""

_OF_ACCOUNTING: Final = frozenset(("accountingstoragetype", "accountingstoragetres", "priorityweighttres"))
_OF_ACCOUNTING_IN_PARTITIONS: Final = frozenset(
    ("allowaccounts", "allowqos", "denyaccounts", "denyqos", "qos", "tresbillingweights")
)
"""Keys that mean something only with slurmdbd: names that it knows, and resources that it counts."""

_REPLACED: Final[Mapping[str, str]] = {
    "statesavelocation": f"{FOLDER}/state",
    "slurmdspooldir": SPOOL,
    # Their words go to where the preflight looks for them.
    "slurmctldlogfile": "",
    "slurmdlogfile": "",
    "slurmctldpidfile": f"{FOLDER}/slurmctld.pid",
    "slurmdpidfile": f"{FOLDER}/slurmd-%n.pid",
}

_GRES_DEVICES: Final = re.compile(r"(?i)(?:^|(?<=\s))(?:File|MultipleFiles|AutoDetect|Links)\s*=\s*\S+")

_GRES_KIND: Final = frozenset({"name", "nodename", "type"})
"""Keys by which gres.conf tells one kind of resource from another."""

_GRES_REST: Final = frozenset({"cores", "count", "cpus", "flags"})
"""The other keys of gres.conf, but for those of devices."""


def derive(files: Mapping[str, str], slurmd_user: str, *, finds_jobs: bool = False) -> dict[str, str]:
    """Make the files of a preflight.

    Parameters
    ----------
    files
        A rendered configuration, slurm.conf among them.
    slurmd_user
        `SlurmdUser` of the disposable slurmds: `slurm` where they need not be root.
    finds_jobs
        Whether slurmctld starts with jobs, so that programs for jobs have to be taken out.
    """
    taken_out = _TAKEN_OUT | _FOR_JOBS if finds_jobs else _TAKEN_OUT
    derived = {name: text for name, text in files.items() if name != SLURM_CONF}
    text = files[SLURM_CONF]
    accounting = parse(text).value("AccountingStorageType").lower().rpartition("/")[2] == "slurmdbd"
    lines = [_derived_line(line, taken_out, accounting=accounting) for _, line in logical_lines(text)]
    derived[SLURM_CONF] = "\n".join((*filter(None, lines), f"SlurmdUser={slurmd_user}", ""))
    if GRES_CONF in derived:
        derived[GRES_CONF] = "\n".join(_without_devices(line for _, line in logical_lines(derived[GRES_CONF])))
    return derived


def _derived_line(line: str, taken_out: Collection[str], *, accounting: bool) -> str:
    words = parse_lines(line)
    # Any other line is read by the disposable slurmctld as by the real one.
    if isinstance(words, TextProblem):
        return line
    return " ".join(map(str, _derived(words, taken_out, accounting=accounting)))


def _derived(words: tuple[Directive, ...], taken_out: Collection[str], *, accounting: bool) -> list[Directive]:
    found = []
    in_partition = bool(words) and words[0].folded == "partitionname"
    needs_slurmdbd = (_OF_ACCOUNTING_IN_PARTITIONS if in_partition else _OF_ACCOUNTING) if accounting else frozenset()
    for word in words:
        value = _with_own_key(word.value) if word.folded == "authaltparameters" else _REPLACED.get(word.folded)
        if word.folded in taken_out or value == "" or word.folded in needs_slurmdbd:
            continue
        found.append(word if value is None else Directive(word.key, value))
    if found and found[0].folded == "nodename":
        # slurmctld neither resolves nor pings a node of the future.
        return [*(word for word in found if word.folded != "state"), Directive("State", "FUTURE")]
    return found


def _with_own_key(value: str) -> str:
    """`AuthAltParameters` with the preflight's own secret; public keys are read as they would be."""
    items = (one for one in value.split(",") if not one.startswith("jwt_key="))
    return ",".join((f"jwt_key={FOLDER}/{naming.JWT_KEY}", *items))


def _without_devices(lines: Iterable[str]) -> Iterator[str]:
    """Lines of gres.conf without devices.

    Of lines that tell devices of one kind apart the first stays: without the devices Slurm takes the others for
    duplicates, and ends. One with a word that is none of gres.conf's stays too, to be judged.
    """
    seen: set[frozenset[str]] = set()
    for line in lines:
        rest = _GRES_DEVICES.sub("", line).strip()
        if "=" not in rest:
            continue
        words = {word.partition("=")[0].lower(): word.lower() for word in rest.split()}
        kind = frozenset(words[key] for key in _GRES_KIND if key in words)
        told_apart = rest != line.strip()
        if told_apart and kind in seen and words.keys() <= _GRES_KIND | _GRES_REST:
            continue
        if told_apart:
            seen.add(kind)
        yield rest
