"""Why a node takes no job, or what it does, in words: its record in Slurm, its pod, its jobs, its reservation. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from kubectl_slurm.facts.objects import NodeSetFacts, PodFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.nodes import service
from kubectl_slurm.screen.blocks import Line, Mood, Part, Row, Screen, Section, table
from kubectl_slurm.screen.words import ago, clip, number
from slinky_operator.slurm.nodes.drain_reasons import PREFIX
from slurm_client.cli.text import length, memory
from slurm_client.models import Job, Node

MOST_JOBS: Final = 10


def screen(
    name: str,
    slurm: SlurmPicture,
    pod: PodFacts | None,
    nodeset: NodeSetFacts | None,
    *,
    hidden: str = "",
    where: str = "",
) -> Screen:
    """What to say of a node of this name, whether Slurm knows it or only Kubernetes has a pod for it.

    Parameters
    ----------
    hidden
        Why the pod could not be read; empty if it was.
    where
        Options that commands in advice need, such as `` --namespace=slurm``.
    """
    node = next((one for one in slurm.nodes if one.name == name), None)
    return (_in_slurm(name, node, slurm, where), *_jobs(name, slurm), _in_kubernetes(pod, nodeset, hidden))


def _in_slurm(name: str, node: Node | None, slurm: SlurmPicture, where: str) -> Section:
    if node is None:
        text = "Slurm has no node of this name: its slurmd has not registered, or its record was deleted."
        return Section(f"Node {clip(name, 60)}", (Line(text, Mood.BAD),), Mood.BAD)
    has = f"{number(node.cpus, 'CPU')}, {memory(node.real_memory_mib)}{f', {clip(node.gres, 60)}' if node.gres else ''}"
    lines: list[Part] = [
        Line(f"It has {has}, in partitions {clip(', '.join(node.partitions), 100) or 'none'}.", Mood.QUIET),
        Line(f"In use: {node.alloc_cpus} CPUs, {memory(node.alloc_memory_mib) or '0 MiB'}.", Mood.QUIET),
        *_why(node, slurm, where),
    ]
    out = service.is_out(node)
    return Section(f"Node {node.name}: {service.state(node)}", tuple(lines), Mood.BAD if out else Mood.GOOD)


def _why(node: Node, slurm: SlurmPicture, where: str) -> list[Part]:
    """Why a node takes no jobs, and what ends that."""
    lines: list[Part] = []
    who, since = service.who(node), ago(node.reason_changed_at, slurm.now)
    if node.reason:
        lines.append(Line(f"Reason: {clip(node.reason)}, set by {who}{f' {since}' if since else ''}.", Mood.WARNING))
    if node.is_drain and node.reason.startswith(PREFIX):
        lines.append(Line("The operator drains it and undrains it itself; a manual undrain would be undone."))
    elif node.is_drain:
        lines.append(
            Line(f"It takes no jobs until somebody undrains it: kubectl slurm undrain {shlex.quote(node.name)}{where}")
        )
    elif node.is_not_responding or node.is_down:
        lines.append(
            Line(
                "Its slurmd does not answer slurmctld: see its pod below, and its log:"
                f" kubectl slurm logs {shlex.quote(f'node/{node.name}')}{where}"
            )
        )
    elif "INVALID_REG" in node.state.flags:
        lines.append(Line("Its slurmd registered with less than the NodeSet's configuration says: compare resources."))
    elif node.state.flags & service.ASLEEP:
        lines.append(Line("It sleeps to save energy: a job that needs it wakes it."))
    elif not node.partitions:
        lines.append(Line("It is in no partition, so no job can name it.", Mood.WARNING))
    elif not service.is_out(node) and node.is_usable:
        lines.append(Line("It takes jobs that fit into what is free.", Mood.GOOD))
    held = [one for one in slurm.reservations if node.name in one.nodes and one.is_active(slurm.now)]
    lines += [
        Line(f"Reservation {clip(one.name, 60)} holds it, ending {ago(one.end_time, slurm.now)}.", Mood.WARNING)
        for one in held[:3]
    ]
    return lines


def _jobs(name: str, slurm: SlurmPicture) -> Sequence[Section]:
    jobs = sorted((one for one in slurm.jobs if one.holds_nodes and name in one.nodes), key=lambda one: one.id)
    if not jobs:
        return (Section("Jobs on it: none"),)
    rows = [_row(one, slurm) for one in jobs]
    head = ("JOB", "USER", "STATE", "STARTED", "TIME LIMIT", "NAME")
    return (Section(f"Jobs on it: {len(jobs)}", (table(head, rows, "jobs", most=MOST_JOBS),)),)


def _row(one: Job, slurm: SlurmPicture) -> Row:
    state = str(one.state)
    return Row((one.alone, one.user, state, ago(one.start_time, slurm.now), length(one.time_limit), clip(one.name, 40)))


def _in_kubernetes(pod: PodFacts | None, nodeset: NodeSetFacts | None, hidden: str) -> Section:
    if hidden:
        return Section("Its pod", (Line(clip(hidden, 600), Mood.WARNING),))
    if pod is None:
        return Section("Its pod: none in this namespace (a node outside Kubernetes, or its pod is gone)")
    state = "being deleted" if pod.deleting else "ready" if pod.ready else "not ready"
    lines: list[Part] = [Line(f"On Kubernetes node {clip(pod.node, 60) or '(not scheduled)'}, phase {pod.phase}.")]
    if pod.trouble:
        lines.append(Line(clip(pod.trouble, 400), Mood.BAD))
    if nodeset is not None:
        lines.append(
            Line(f"NodeSet {nodeset.name}: {nodeset.ready} of {nodeset.desired} ready. {clip(nodeset.summary)}")
        )
    return Section(f"Its pod {pod.name}: {state}", tuple(lines), Mood.GOOD if pod.ready else Mood.WARNING)
