"""What applying an object would do to nodes and jobs, from what is there and what would be there. Pure.

Only what the operator does follows from objects: drains, replaced pods, partitions that go. Whether Slurm would take a
changed configuration is found out by `trial`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.screen.blocks import Line, Mood, Section
from kubectl_slurm.screen.words import clip, named, number, span
from slinky_api.containers import components
from slurm_client.models import Job

REPLACING: Final = (
    "template", "image", "resources", "features", "gres", "weight", "extraConf", "confinement", "containers", "jobLogs",
    "ssh",
)  # fmt: skip
"""Fields of a NodeSet from which its pods are made: a change replaces them. Of volumeClaimTemplates the names count."""

TOLD: Final = frozenset({*REPLACING, "volumeClaimTemplates", "replicas", "partition", "drain"})
"""Fields of a NodeSet whose change has a finding of its own."""

HARMLESS: Final = frozenset(
    {
        "selector", "maxConcurrentStartup", "revisionHistoryLimit", "minReadySeconds", "futureNodes", "pinToNode",
        "persistentVolumeClaimRetentionPolicy", "topology",
    }
)  # fmt: skip
"""Fields of a NodeSet whose change leaves running nodes and their jobs alone."""

CONFIGURATION: Final = (
    "extraConf", "configFiles", "configFileRefs", "prologScripts", "prologScriptRefs", "epilogScripts",
    "epilogScriptRefs", "prologSlurmctldScripts", "prologSlurmctldScriptRefs", "epilogSlurmctldScripts",
    "epilogSlurmctldScriptRefs", "partitions", "nodes", "maxNodeCount", "containers",
)  # fmt: skip
"""Fields of a Cluster that become slurm.conf and its family."""

DAEMONS: Final = tuple((field, daemon) for daemon, field in components().items())
"""Fields of a Cluster with a daemon's pod, which have the name of its component. Those of MariaDB and the exporter are
below other fields."""

TOLD_OF_CLUSTERS: Final = frozenset({*CONFIGURATION, *(part for part, _ in DAEMONS), "identity", "auth"})
HARMLESS_OF_CLUSTERS: Final = frozenset({"metrics", "jobs"})
HARMLESS_OF_AUTH: Final = frozenset({"tokens", "tokenLifetime", "keysWhenDeleted"})

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
    unknown
        Whether nobody here knows what would happen.
    """

    text: str
    ends: tuple[str, ...] = ()
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Pods:
    """A NodeSet of a Cluster, by its spec and the names of its nodes in Slurm, one for each pod."""

    name: str
    spec: Spec
    pods: Collection[str]


def nodeset(old: Spec | None, new: Spec, slurm: SlurmPicture, pods: Collection[str]) -> list[Finding]:
    """What a NodeSet's change does.

    Parameters
    ----------
    old
        The spec that is there; None if there is none.
    pods
        Names of its nodes in Slurm, one for each pod.
    """
    if old is None:
        return [Finding(f"It is new, with {_size(new)}.")]
    found = []
    jobs = _on(pods, slurm)
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
    if _claims(old) != _claims(new):
        changed.append("volumeClaimTemplates")
    found += _replaced(named(changed), new, jobs, len(pods), slurm) if changed else ()
    if old.get("partition") != new.get("partition"):
        found.append(
            Finding("Its partition changes. One that goes takes no new jobs and stays until its jobs have ended.")
        )
    draining = {node.name for node in slurm.nodes if node.name in pods and node.is_drain}
    if old.get("drain") != new.get("drain") and draining:
        text = f"drain changes, also for {number(len(draining), 'node')} that is or will be drained now."
        found.append(_drained(text, new, _on(draining, slurm), slurm))
    if isinstance(old.get("replicas"), int) and not isinstance(new.get("replicas"), int):
        found.append(_unknown("replicas"))
    return [*found, *map(_unknown, _others(old, new, TOLD | HARMLESS))]


def cluster(old: Spec | None, new: Spec, slurm: SlurmPicture, nodesets: Sequence[Pods] = ()) -> list[Finding]:
    """What a Cluster's change does.

    Parameters
    ----------
    nodesets
        All of the Cluster: their pods resolve users by its identity.
    """
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
                f"{named(changed)} changes the configuration. The operator tries it in a disposable pod before any"
                " daemon reads it; one that is refused changes nothing, and ConfigApplied says why."
            )
        )
    for part, daemon in DAEMONS:
        if old.get(part) != new.get(part):
            found.append(Finding(f"{part} changes: the pod of {daemon} may be replaced. Jobs go on meanwhile."))
    if old.get("identity") != new.get("identity"):
        for one in nodesets:
            what = f"identity, from which NodeSet {clip(one.name, 60)} makes its pods too,"
            found += _replaced(what, one.spec, _on(one.pods, slurm), len(one.pods), slurm)
    if _others(old.get("auth") or {}, new.get("auth") or {}, HARMLESS_OF_AUTH):
        found.append(_unknown("auth"))
    return [*found, *map(_unknown, _others(old, new, TOLD_OF_CLUSTERS | HARMLESS_OF_CLUSTERS))]


def hidden(counted: int | None, slurm: SlurmPicture) -> str:
    """What to say if Slurm shows fewer running jobs than the operator has counted last; empty if it does not.

    Parameters
    ----------
    counted
        By the Cluster's status; None if it has none.
    """
    seen = sum(job.is_running for job in slurm.jobs)
    if counted is None or counted <= seen:
        return ""
    return (
        f"The operator has counted {number(counted, 'running job')}, and Slurm shows {seen}: PrivateData may hide"
        " jobs of others from this user, or some have just ended. Jobs that are not seen are not in what follows."
    )


def blind(slurm: SlurmPicture) -> bool:
    """Whether Slurm shows no job at all."""
    return not slurm.jobs


def unsure(findings: Iterable[Finding]) -> bool:
    """Whether nobody here knows what would happen."""
    return any(one.unknown for one in findings)


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
    lines = tuple(Line(one.text, _mood(one)) for one in findings)
    return Section(f"{what}: accepted", lines, Mood.BAD if ended(findings) else Mood.WARNING)


def duration(text: object) -> timedelta | None:
    """A length of time as Kubernetes writes it, such as ``1h30m``; None if it is none."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) and text else None
    if match is None:
        return None
    return timedelta(hours=int(match[1] or 0), minutes=int(match[2] or 0), seconds=float(match[3] or 0))


def _mood(one: Finding) -> Mood:
    return Mood.BAD if one.ends else Mood.WARNING if one.unknown else Mood.PLAIN


def _unknown(field: str) -> Finding:
    return Finding(f"{clip(field, 60)} changes: preflight does not know what follows.", unknown=True)


def _others(old: Spec, new: Spec, known: Collection[str]) -> list[str]:
    """Fields that differ, but for those that are known."""
    return [name for name in sorted({*old, *new} - {*known}) if old.get(name) != new.get(name)]


def _on(nodes: Collection[str], slurm: SlurmPicture) -> list[Job]:
    """Jobs that hold some of these nodes."""
    return [job for job in slurm.jobs if job.holds_nodes and not set(nodes).isdisjoint(job.nodes)]


def _claims(spec: Spec) -> list[str]:
    return sorted(str((one.get("metadata") or {}).get("name")) for one in spec.get("volumeClaimTemplates") or ())


def _size(spec: Spec) -> str:
    """How many nodes a new NodeSet has."""
    least = (spec.get("autoscaling") or {}).get("minReplicas")
    if spec.get("autoscaling"):
        return f"{number(int(least or 0), 'node')} at first, by autoscaling"
    if spec.get("scalingMode") == "DaemonSet" or not (spec.get("scalingMode") or isinstance(spec.get("replicas"), int)):
        most = f", and {spec['replicas']} at the most" if isinstance(spec.get("replicas"), int) else ""
        return f"a node on each Kubernetes Node that it matches{most}"
    return number(int(spec.get("replicas", 1)), "node")


def _replaced(what: str, spec: Spec, jobs: Sequence[Job], pods: int, slurm: SlurmPicture) -> Iterator[Finding]:
    """What becomes of a NodeSet's pods when what they are made from changes."""
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        yield Finding(f"{what} changes: each pod keeps what it has until somebody deletes it.")
    elif pods:
        most = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
        text = f"{what} changes: all {number(pods, 'pod')} are drained and replaced, {most} at a time."
        yield _drained(text, spec, jobs, slurm)


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
