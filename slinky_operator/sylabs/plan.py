"""The SlurmJob to create for an object of an old kind, and the old status to show. Pure.

A spec that cannot be submitted is refused before a SlurmJob is made, with the names of the old fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.sylabs.common import JobStatus, Word
from slinky_operator.jobs import tenants
from slinky_operator.jobs import translation as submissions
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.writes.parts import owner_reference
from slinky_operator.sylabs.clusters import Chosen
from slinky_operator.sylabs.snapshot import Child, Snapshot, Unasked
from slinky_operator.sylabs.translation import status
from slinky_operator.sylabs.translation.node_selector import possible_partitions
from slinky_operator.sylabs.translation.slurmjob import Translation, translate

REFUSED_S: Final = 60.0
"""Seconds until an object without a Cluster is looked at again: nothing tells of new labels of its namespace."""

UNASKED_S: Final = 10.0
"""Seconds until a Slurm that has not answered is asked again."""

_ENDS: Final = frozenset({"Succeeded", "Failed", "Unknown"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done, and shown.

    Parameters
    ----------
    status
        The old status.
    create
        The SlurmJob to create; None for none.
    where
        Namespace and name of its Cluster, for people.
    without_effect
        Fields that change nothing about the job.
    wake
        Seconds until the next look; None to wait for an event.
    """

    status: JobStatus
    create: Object | None = None
    where: str = ""
    without_effect: tuple[str, ...] = ()
    wake: float | None = None


def needs_cluster(snapshot: Snapshot) -> bool:
    """Whether a SlurmJob is to be created, if there is a Cluster for it."""
    stored = snapshot.job.status
    is_new = stored.job_id is None and stored.reason != Reason.OTHER_OPERATOR and not is_of_another(stored)
    return snapshot.child is None and is_new and not snapshot.job.deleting


def is_of_another(stored: JobStatus) -> bool:
    """Whether another operator has written a status: its job may run, or have run."""
    return stored.status is not None and stored.observed_generation is None


def plan(snapshot: Snapshot) -> Plan:
    """Decide on the next step."""
    if snapshot.child is not None:
        return Plan(_of_child(snapshot, snapshot.child))
    if not needs_cluster(snapshot) or snapshot.cluster is None:
        return Plan(_without_child(snapshot))
    if isinstance(snapshot.cluster, Unasked):
        return Plan(_shown(snapshot, "Pending", Reason.SLURM_UNREACHABLE, snapshot.cluster.message), wake=UNASKED_S)
    if isinstance(snapshot.cluster, tenants.Refused):
        return Plan(_failed(snapshot, Reason.JOBS_NOT_ALLOWED, snapshot.cluster.message), wake=REFUSED_S)
    return _new(snapshot, snapshot.cluster)


def _new(snapshot: Snapshot, cluster: Chosen) -> Plan:
    """Have a SlurmJob created, or refuse the object."""
    job = snapshot.job
    try:
        translation = translate(job.spec, cluster.site, _own_folder(snapshot))
        _check(snapshot, cluster, translation)
    except tenants.NotGranted as error:
        return Plan(_failed(snapshot, Reason.JOBS_NOT_ALLOWED, str(error)))
    except InvalidJob as error:
        # Nothing tells of a new partition.
        wake = REFUSED_S if possible_partitions(job.spec.node_selector, cluster.site.labels) else None
        return Plan(status.refused(error, generation=job.metadata.generation), wake=wake)
    return Plan(
        _shown(snapshot, "Pending", "", "its SlurmJob is created"),
        create=_child(snapshot, cluster, translation),
        where=f"{cluster.namespace}/{cluster.name}",
        without_effect=translation.without_effect,
    )


def _own_folder(snapshot: Snapshot) -> str:
    """A folder that an object of the same name, before or in another namespace, does not have."""
    return f"{snapshot.kind.child(snapshot.job.name)}-{snapshot.job.uid[:8]}"


def _check(snapshot: Snapshot, cluster: Chosen, translation: Translation) -> None:
    """Find what the SlurmJob would be refused for.

    Raises
    ------
    InvalidJob
        With the old field.
    """
    try:
        submission = submissions.translate(
            translation.spec, name=snapshot.kind.child(snapshot.job.name), user=cluster.granted.user, now=snapshot.now
        )
        _ = tenants.restrict(submission.job, cluster.granted)
    except InvalidJob as error:
        told = translation.in_old_words(error.problem)
        raise type(error)(told.field, told.reason) from None


def _of_child(snapshot: Snapshot, child: Child) -> JobStatus:
    name = snapshot.kind.child(snapshot.job.name)
    generation = snapshot.job.metadata.generation
    if child.is_ours:
        made_of = generation if child.generation is None else child.generation
        found = status.status_of(child.status, generation=made_of)
        if made_of != generation:
            changed = "the spec has changed since the job was made, which has no effect: create another object"
            message = f"{found.message}; {changed}" if found.message else changed
            return status.shown(
                found.status or "Unknown", found.reason, message, generation=made_of, job_id=found.job_id
            )
        return found
    if child.of_namesake:
        words = f"SlurmJob {name} of a deleted object of this name is still there: it goes once its job has ended"
        return _shown(snapshot, "Pending", Reason.PREDECESSOR_ENDING, words)
    words = f"SlurmJob {name} has another owner: delete it, or create this object under another name"
    return _failed(snapshot, Reason.NAME_TAKEN, words)


def _without_child(snapshot: Snapshot) -> JobStatus:
    """Keep what is known of a job whose SlurmJob is gone."""
    stored = snapshot.job.status
    if is_of_another(stored) and stored.status not in {"Succeeded", "Failed"}:
        words = (
            "another operator has run this object, and the result of its job is unknown; to run it again, create "
            "another object"
        )
        return _shown(snapshot, "Unknown", Reason.OTHER_OPERATOR, words)
    if stored.job_id is None or stored.status in _ENDS:
        return stored
    words = (
        f"SlurmJob {snapshot.kind.child(snapshot.job.name)} was deleted, and job {stored.job_id} with it; to run the "
        "job again, create another object"
    )
    generation = stored.observed_generation or snapshot.job.metadata.generation
    return status.shown("Failed", Reason.SLURMJOB_DELETED, words, generation=generation, job_id=stored.job_id)


def _shown(snapshot: Snapshot, word: Word, reason: str, message: str) -> JobStatus:
    return status.shown(word, reason, message, generation=snapshot.job.metadata.generation)


def _failed(snapshot: Snapshot, reason: str, message: str) -> JobStatus:
    return _shown(snapshot, "Failed", reason, message)


def _child(snapshot: Snapshot, cluster: Chosen, translation: Translation) -> Object:
    """The SlurmJob, owned by its object: deleted with it."""
    job, resource = snapshot.job, snapshot.kind.resource
    wanted = translation.spec.to_dict()
    return {
        "apiVersion": SLURMJOBS.api_version,
        "kind": SLURMJOBS.kind,
        "metadata": {
            "name": snapshot.kind.child(job.name),
            "namespace": job.namespace,
            "labels": {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY},
            "annotations": {labels.ANNOTATION_SOURCE_GENERATION: str(job.metadata.generation)},
            "ownerReferences": [owner_reference(resource, job, blocks=False)],
        },
        "spec": {
            "clusterName": cluster.name,
            "clusterNamespace": cluster.namespace,
            **{name: value for name, value in wanted.items() if name in translation.spec.given},
            **_files(job.name, translation),
            **_logs(translation),
        },
    }


def _logs(translation: Translation) -> Object:
    """The field about output, read where files are."""
    if translation.pods:
        return {"logs": {"pod": False}}
    if not translation.logs:
        return {}
    shared = translation.shared_volume
    return {"logs": {} if shared is None else {"volume": dict(shared)}}


def _files(name: str, translation: Translation) -> Object:
    """The fields about files; results go into a folder with the name of the object."""
    prepare, results = translation.prepare, translation.results
    shared = translation.shared_volume
    if not prepare and not results:
        return {}
    return {
        **({"sharedVolume": dict(shared)} if shared is not None else {}),
        **({"prepare": [one.to_dict() for one in prepare]} if prepare else {}),
        **({"results": [{**result.to_dict(), "to": name} for result in results]} if results else {}),
    }
