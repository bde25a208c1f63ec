"""Renders a changed Cluster as the operator would, says what must stay for jobs, and builds the trial. Pure.

Nodes outside Kubernetes wait for their addresses where they wait already, and new ones do at first, as the operator
writes them; NodeSets that it holds back after a refusal are given. What the operator alone knows is not here: the
public halves of its own signing keys, and what slurmctld makes of its jobs, for which it starts one with a copy of its
state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.parts.accounting import variants
from slinky_operator.cluster.rollout.config import addresses
from slinky_operator.cluster.rollout.config_sources import text_source
from slinky_operator.cluster.rollout.in_use import removals
from slinky_operator.cluster.rollout.in_use.removals import Kept, ReservationUse, Use
from slinky_operator.cluster.rollout.preflight.slurmd_kinds import kinds
from slinky_operator.cluster.rollout.slurm_questions import used_by
from slinky_operator.cluster.trials.pods import TrialInput, container_of
from slinky_operator.cluster.trials.preflight_pod import SlurmdKind, preflight
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import ConfFiles, ConfInputs, NodeSetConf, TextSource, render
from slinky_operator.slurm.conf.programs import programs
from slinky_operator.slurm.conf.render import SLURM_CONF
from slinky_operator.slurm.conf.sources.gather import names_of_sources
from slurm_client.models import Job
from slurm_client.models.job import JobState

LABELS: Final = {"app.kubernetes.io/managed-by": "kubectl-slurm", "app.kubernetes.io/component": "preflight"}
"""Labels of the trial's objects: the operator takes them for none of its own."""

_TEXTS: Final = (
    "partition", "tres_requested", "tres_allocated", "tres_per_job", "tres_per_node", "tres_per_socket",
    "tres_per_task", "required_nodes", "excluded_nodes", "features", "licenses",
)  # fmt: skip
"""Fields of a job that are texts, and of which its use is made."""

Json = Mapping[str, Any]


def preview(given: Json) -> dict[str, Any]:
    """Find out what a changed Cluster would write.

    Parameters
    ----------
    given
        `cluster`, `nodeSets`, `configMaps` (objects, as they would be), `running` (files that slurmctld has loaded),
        `slurmctld` (spec of its pod), `slurmds` (pods of NodeSets), `slurm` (jobs, reservations, states of partitions
        and the number of nodes; nothing if it was not asked), `held` (NodeSets whose change Slurm has refused and that
        stay as they are, with the reason), and `name` (of the trial's objects).

    Returns
    -------
    dict
        `problems` for which the operator would write nothing, `refused` NodeSets, what `stays` for jobs, whether the
        files `change`, and, if they do and nothing is wrong, `pod` and `configMap` of the trial, with `slurmds`: the
        NodeSets of each slurmd in it, by container.
    """
    try:
        cluster = Cluster.parse(given["cluster"])
        node_sets = [NodeSet.parse(one) for one in given["nodeSets"]]
    except InvalidObjectError as error:
        return {"problems": [str(error)]}
    running = ConfFiles.read(given["running"])
    sources = {one["metadata"]["name"]: text_source(one) for one in given["configMaps"]}
    missing = (name for name in names_of_sources(cluster.spec) if name not in sources)
    sources |= {name: TextSource(name, exists=False) for name in missing}
    parts = [NodeSetConf.of(one) for one in node_sets if not one.deleting]
    inputs = ConfInputs.of(cluster, parts, sources, variants.endpoint(cluster))
    use, nodes = _use(given.get("slurm"))
    held = {str(name): str(why) for name, why in (given.get("held") or {}).items()}
    future = addresses.unasked(inputs.nodes, running.files.get(SLURM_CONF, ""))
    inputs = replace(inputs, states={} if use is None else use.states, held=held, future=future)
    wanted = render(inputs, running.lines)
    kept = Kept() if wanted.problems else removals.keep(running, wanted, use, nodes, live=True)
    rendered = render(kept.over(inputs), running.lines)
    problems = [str(one) for one in (*wanted.problems, *rendered.problems)]
    found: dict[str, Any] = {
        "problems": list(dict.fromkeys(problems)),
        "refused": [{"nodeSet": one.node_set, "why": str(one.problem)} for one in rendered.refused],
        "stays": list(kept.why),
        "change": not problems and dict(rendered.files) != dict(running.files),
    }
    if not found["change"]:
        return found
    spec: Json = given["slurmctld"]
    slurmctld = str(container_of(spec, naming.CONTROLLER_CONTAINER)["image"])
    images = Images({"slurmctld": slurmctld, "slurmd": str(cluster.status.slurmd_image or slurmctld)})
    members = [one for one in node_sets if one.name in rendered.node_sets]
    tried = kinds(members, images, given["slurmds"]) or (SlurmdKind(images.of(naming.SLURMD)),)
    looked_for = programs(rendered.lines, running.lines)
    trial = preflight(TrialInput(cluster, images, rendered.files, spec, spec), tried, looked_for)
    assert trial.config_map is not None  # noqa: S101 - a preflight has one
    objects = _renamed(str(given["name"]), trial.pod.body, trial.config_map.body)
    return {
        **found,
        **objects,
        "slurmds": {f"slurmd-{number}": list(one.node_sets) for number, one in enumerate(trial.kinds)},
    }


def _renamed(name: str, pod: Json, config_map: Json) -> dict[str, Any]:
    """The objects of a trial under a name and labels that are none of the operator's."""
    spec, former, about = pod["spec"], config_map["metadata"]["name"], {"name": name, "labels": LABELS}
    volumes = [
        {**one, "configMap": {**one["configMap"], "name": name}}
        if (one.get("configMap") or {}).get("name") == former
        else one
        for one in spec["volumes"]
    ]
    return {
        "pod": {"metadata": about, "spec": {**spec, "volumes": volumes}},
        "configMap": {"metadata": about, "data": config_map["data"], "immutable": True},
    }


def _use(slurm: Json | None) -> tuple[Use | None, int | None]:
    """What Slurm has said of jobs, and how many nodes it has."""
    if slurm is None:
        return None, None
    jobs = [_job(one) for one in slurm["jobs"]]
    reservations = tuple(
        ReservationUse(one["name"], one["partition"], frozenset(one["nodes"]), one["licenses"])
        for one in slurm["reservations"]
    )
    unfinished = tuple(used_by(job) for job in jobs)
    use = Use(0.0, "", unfinished, reservations, int(slurm["records"]), dict(slurm["states"]))
    return use, int(slurm["nodes"])


def _job(one: Json) -> Job:
    """A job that has not ended, of the fields of which its use is made."""
    base, *flags = one["state"]
    values: dict[str, Any] = {name: str(one[name]) for name in _TEXTS if one.get(name)}
    values |= {name: tuple(map(str, one[name])) for name in ("nodes", "gres_detail") if one.get(name)}
    return Job(id=int(one["id"]), state=JobState(base, frozenset(flags)), **values)
