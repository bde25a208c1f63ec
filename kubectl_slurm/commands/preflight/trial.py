"""The trial of `preflight`: a Cluster's changed configuration, read by Slurm's daemons in disposable pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_slurm.access import disposable
from kubectl_slurm.access.kinds import CLUSTERS, CONFIG_MAPS, NODESETS, PODS, STATEFULSETS, Kind
from kubectl_slurm.access.tokens import Clock
from kubectl_slurm.commands.shared.session import Session
from kubectl_slurm.errors import KubernetesError, MissingRight, ObjectNotFound
from kubectl_slurm.facts import reading
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules import conf
from kubectl_slurm.rules.changes import trial as rules
from kubectl_slurm.rules.changes.trial import Trial, Verdict
from slinky_api import labels

MOST_LINES: Final = 10_000

Json = Mapping[str, Any]
Pictures = Callable[[str], tuple[SlurmPicture, str]]
"""What Slurm has of a Cluster, by its name, and a warning about it."""


@dataclass(slots=True)
class Changes:
    """What a file changes of the configuration of Clusters.

    Attributes
    ----------
    clusters, nodesets
        Objects as they would be, by name.
    sources
        ConfigMaps of the file, by name.
    concerned
        Names of Clusters whose configuration may change.
    edited
        Those whose own part may, beside those of NodeSets.
    """

    clusters: dict[str, Json] = field(default_factory=dict)
    nodesets: dict[str, Json] = field(default_factory=dict)
    sources: dict[str, Json] = field(default_factory=dict)
    concerned: set[str] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)

    def add(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        """Take an object that the API server would take, and what is there now."""
        if new is None:
            return
        name, spec = str(new["metadata"]["name"]), new.get("spec") or {}
        differs = rules.concerns(None if old is None else old.get("spec") or {}, spec)
        if kind is CLUSTERS:
            self.clusters[name] = new
            self.concerned |= {name} if differs else set()
            self.edited |= {name} if differs else set()
        else:
            self.nodesets[name] = new
            self.concerned |= {reading.nodeset(new).cluster} if differs else set()

    def add_source(self, obj: Json) -> bool:
        """Take an object of another kind; whether it may be a part of a configuration."""
        meta = obj.get("metadata")
        name = str(meta.get("name") or "") if isinstance(meta, Mapping) else ""
        if (obj.get("apiVersion"), obj.get("kind")) != (CONFIG_MAPS.api_version, CONFIG_MAPS.name) or not name:
            return False
        self.sources[name] = obj
        return True


def trials(session: Session, changes: Changes, pictures: Pictures, timeout: int) -> Iterator[Trial]:
    """Let Slurm try the configuration of each Cluster that a file changes."""
    live = {str(one["metadata"]["name"]): one for one in session.kube.objects(CLUSTERS)}
    all_clusters = {**live, **changes.clusters}
    named = {name for name, one in all_clusters.items() if not changes.sources.keys().isdisjoint(rules.sources(one))}
    concerned = sorted((changes.concerned | named) & all_clusters.keys())
    if concerned:
        disposable.sweep(session.kube, rules.LABELS, _clock(session))
    for name in concerned:
        cluster = all_clusters[name]
        if not reading.cluster(cluster).external:
            yield _trial(session, cluster, changes, pictures, timeout)


def _trial(session: Session, cluster: Json, changes: Changes, pictures: Pictures, timeout: int) -> Trial:
    name = str(cluster["metadata"]["name"])
    try:
        slurmctld = session.kube.get(STATEFULSETS, f"{name}-controller")["spec"]["template"]["spec"]
        running = session.kube.get(CONFIG_MAPS, f"{name}{conf.LIVE}").get("data") or {}
    except ObjectNotFound:
        why = "it has no slurmctld yet, and the first configuration is tried by slurmctld itself"
        return Trial(name, Verdict.NOT_TRIED, why)
    if not any(one["name"] == rules.AGENT for one in slurmctld["containers"]):
        why = f"its slurmctld has no container {rules.AGENT!r}, from which the operator's image is known"
        return Trial(name, Verdict.NOT_TRIED, why, unknown=True)
    question = _question(session, cluster, slurmctld, running, changes, pictures)
    data = rules.packed(question)
    if len(data) > rules.LARGEST:
        why = f"what there is of jobs and NodeSets takes {len(data)} bytes, and a ConfigMap may hold {rules.LARGEST}"
        return Trial(name, Verdict.NOT_TRIED, why, unknown=True)
    try:
        return _answered(session, name, slurmctld, data, timeout)
    except MissingRight:
        raise
    except KubernetesError as error:
        return Trial(name, Verdict.NOT_TRIED, str(error), unknown=True)


def _answered(session: Session, cluster: str, slurmctld: Json, data: bytes, timeout: int) -> Trial:
    kube, clock, first = session.kube, _clock(session), disposable.fresh_name()
    objects = rules.question_pod(first, slurmctld), rules.question_map(first, data)
    with disposable.created(kube, *objects) as pod:
        end = disposable.ended(kube, pod, timeout, clock)
        succeeded = (end.get("status") or {}).get("phase") == "Succeeded"
        found = rules.answer(kube.log(pod, rules.CONTAINER, lines=MOST_LINES)) if succeeded else None
    if found is None:
        why = f"the operator's image did not render the configuration: {rules.unanswered(end)}"
        return Trial(cluster, Verdict.NOT_TRIED, why, unknown=True)
    known = rules.before_the_trial(cluster, found)
    if known is not None:
        return known
    with disposable.created(kube, found["pod"], found["configMap"]) as pod:
        return rules.after_the_trial(cluster, found, disposable.ended(kube, pod, timeout, clock))


def _question(
    session: Session, cluster: Json, slurmctld: Json, running: Json, changes: Changes, pictures: Pictures
) -> dict[str, Any]:
    name, kube = str(cluster["metadata"]["name"]), session.kube
    live = {str(one["metadata"]["name"]): one for one in kube.objects(NODESETS)}
    node_sets = [one for one in {**live, **changes.nodesets}.values() if reading.nodeset(one).cluster == name]
    wanted = [each for each in rules.sources(cluster) if each not in changes.sources]
    found = [obj for each in wanted if (obj := _config_map(session, each)) is not None]
    selector = f"{labels.LABEL_CLUSTER_NAME}={name},{labels.LABEL_DAEMON}=slurmd"
    seen, _ = pictures(name)
    # A change of the Cluster's own part, its ConfigMaps included, ends what was held back: all of it is tried again.
    as_before = name not in changes.edited and changes.sources.keys().isdisjoint(rules.sources(cluster))
    return {
        "name": disposable.fresh_name(),
        "cluster": cluster,
        "nodeSets": sorted(node_sets, key=lambda one: str(one["metadata"]["name"])),
        "configMaps": [*found, *(changes.sources[each] for each in rules.sources(cluster) if each in changes.sources)],
        "running": running,
        "slurmctld": slurmctld,
        "slurmds": rules.slurmds(kube.objects(PODS, selector=selector)),
        "slurm": rules.in_slurm(seen),
        "held": rules.held_back(cluster, changes.nodesets) if as_before else {},
    }


def _config_map(session: Session, name: str) -> Json | None:
    try:
        return session.kube.get(CONFIG_MAPS, name)
    except ObjectNotFound:
        return None


def _clock(session: Session) -> Clock:
    return Clock(session.now)
