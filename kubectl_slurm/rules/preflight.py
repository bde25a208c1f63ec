"""What applying an object would do to nodes and jobs, from what is there and what would be there. Pure.

Only what the operator does follows from objects: drains, replaced pods, partitions that go. Whether slurmctld would
start with a changed configuration it finds out itself, in a disposable pod, before any daemon reads it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.screen.blocks import Line, Mood, Section
from kubectl_slurm.screen.words import clip, named, number, span
from slurm_client.models import Job

REPLACING: Final = (
    "template", "image", "resources", "features", "gres", "weight", "extraConf", "confinement", "containers", "jobLogs",
)  # fmt: skip
"""Fields of a NodeSet from which its pods are made: a change replaces them."""

CONFIGURATION: Final = (
    "extraConf", "configFiles", "configFileRefs", "prologScripts", "prologScriptRefs", "epilogScripts",
    "epilogScriptRefs", "prologSlurmctldScripts", "prologSlurmctldScriptRefs", "epilogSlurmctldScripts",
    "epilogSlurmctldScriptRefs", "partitions", "nodes", "maxNodeCount",
)  # fmt: skip
"""Fields of a Cluster that become slurm.conf and its family."""

ENDING: Final = {"Cancel": "cancelled", "Force": "ended with their pods", "Requeue": "requeued"}
"""What becomes of jobs after drain.timeout, by drain.onTimeout."""

_DURATION: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")

Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that would happen.

    Attributes
    ----------
    ends
        Jobs that it would end or requeue.
    """

    text: str
    ends: tuple[str, ...] = ()


def nodeset(old: Spec | None, new: Spec, slurm: SlurmPicture, pods: Collection[str]) -> list[Finding]:
    """What a NodeSet's change does.

    Parameters
    ----------
    old
        The spec that is there; None if there is none.
    pods
        Names of its pods, which are those of its nodes.
    """
    if old is None:
        return [Finding(f"It is new, with {number(int(new.get('replicas') or 0), 'node')}.")]
    found = []
    jobs = [job for job in slurm.jobs if job.holds_nodes and set(job.nodes) & set(pods)]
    before, after = _replicas(old, len(pods)), _replicas(new, len(pods))
    if after < before:
        idle = sum(node.is_idle and node.is_usable for node in slurm.nodes if node.name in pods)
        fate = f"{before - after} will be drained and removed, idle ones first ({idle} idle now)."
        text = f"Of {number(before, 'node')}, {fate}"
        busy = before - after > idle
        found.append(_drained(text, new, jobs if busy else [], slurm))
    elif after > before:
        found.append(Finding(f"Nodes that are added: {after - before}."))
    changed = [name for name in REPLACING if old.get(name) != new.get(name)]
    if changed and (new.get("updateStrategy") or {}).get("type") == "OnDelete":
        found.append(Finding(f"{named(changed)} changes: each pod keeps what it has until somebody deletes it."))
    elif changed:
        most = ((new.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("maxUnavailable", 1)
        text = f"{named(changed)} changes: all {number(len(pods), 'pod')} are drained and replaced, {most} at a time."
        found.append(_drained(text, new, jobs, slurm))
    if old.get("partition") != new.get("partition"):
        found.append(
            Finding("Its partition changes. One that goes takes no new jobs and stays until its jobs have ended.")
        )
    return found


def cluster(old: Spec | None, new: Spec, slurm: SlurmPicture) -> list[Finding]:
    """What a Cluster's change does."""
    if old is None:
        return [Finding("It is new: slurmctld and slurmrestd are started.")]
    found = []
    kept = {one.get("name") for one in new.get("partitions") or ()}
    for name in (one.get("name") for one in old.get("partitions") or ()):
        if name not in kept:
            jobs = [job for job in slurm.jobs if not job.is_finished and name in job.partition.split(",")]
            found.append(
                Finding(
                    f"Partition {clip(str(name), 60)} goes: it takes no new jobs, and stays until its"
                    f" last job has ended ({len(jobs)} now)."
                )
            )
    changed = [name for name in CONFIGURATION if old.get(name) != new.get(name)]
    if changed:
        found.append(
            Finding(
                f"{named(changed)} changes the configuration. A slurmctld in a disposable pod starts with it before any"
                " daemon reads it; one that is refused changes nothing, and ConfigApplied says why."
            )
        )
    for part, daemon in (("controller", "slurmctld"), ("restapi", "slurmrestd"), ("accounting", "slurmdbd")):
        if old.get(part) != new.get(part):
            found.append(Finding(f"{part} changes: the pod of {daemon} may be replaced. Jobs go on meanwhile."))
    return found


def ended(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Jobs that would end, each once."""
    return tuple(dict.fromkeys(job for one in findings for job in one.ends))


def section(what: str, refusal: str, findings: Sequence[Finding]) -> Section:
    """What to say of one object.

    Parameters
    ----------
    refusal
        Why Kubernetes would not take it; empty if it would.
    """
    if refusal:
        return Section(f"{what}: refused", (Line(clip(refusal, 1000), Mood.BAD),), Mood.BAD)
    if not findings:
        return Section(f"{what}: accepted, and changes no node and no job", mood=Mood.GOOD)
    lines = tuple(Line(one.text, Mood.BAD if one.ends else Mood.PLAIN) for one in findings)
    return Section(f"{what}: accepted", lines, Mood.BAD if ended(findings) else Mood.WARNING)


def duration(text: object) -> timedelta | None:
    """A length of time as Kubernetes writes it, such as ``1h30m``; None if it is none."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) and text else None
    if match is None:
        return None
    return timedelta(hours=int(match[1] or 0), minutes=int(match[2] or 0), seconds=float(match[3] or 0))


def _replicas(spec: Spec, otherwise: int) -> int:
    value = spec.get("replicas")
    return value if isinstance(value, int) else otherwise


def _drained(text: str, spec: Spec, jobs: Sequence[Job], slurm: SlurmPicture) -> Finding:
    """What a drain does to jobs, by the NodeSet's drain.timeout."""
    if not jobs:
        return Finding(text)
    drain = spec.get("drain") or {}
    limit, fate = duration(drain.get("timeout")), ENDING.get(str(drain.get("onTimeout")))
    if limit is None or fate is None:
        return Finding(f"{text} {number(len(jobs), 'job')} on its nodes go on to their end first.")
    late = [job for job in jobs if job.end_time is None or job.end_time - slurm.now > limit]
    if not late:
        return Finding(f"{text} Its {number(len(jobs), 'job')} end within drain.timeout by their time limits.")
    names = tuple(job.alone for job in sorted(late, key=lambda one: one.id))
    tail = f"may be {fate} after drain.timeout ({span(limit)}): {named(names)}."
    return Finding(f"{text} {number(len(late), 'job')} {tail}", names)
