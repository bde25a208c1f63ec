"""What the SlurmJob controller exports to the process: the caches it reads, and how it is built from the settings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from slinky_operator.kube.resources import CLUSTERS, JOB_LOG_PODS, NODESETS, PODS, SLURMJOBS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS, OWNERS, PODS_OF_CLUSTERS
from slinky_operator.reconcile.cached.job_nodes import INDEXES_OF_PODS, Nodes
from slinky_operator.reconcile.cached.kept_fields import prune_pod
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings
from slinky_operator.slurmjob.controller import SlurmJobReconciler
from slinky_operator.slurmjob.ended_jobs import EndedJobs
from slinky_operator.slurmjob.execute.resubmission import Resubmissions
from slinky_operator.slurmjob.observation import CLUSTER_OF_JOB, INDEXES_OF_JOBS, UID, Observer
from slinky_operator.slurmjob.pods import bodies
from slinky_operator.slurmjob.pods.bodies import Image
from slinky_operator.slurmjob.pods.copy_upkeep import CopyUpkeep
from slinky_operator.slurmjob.pods.log_upkeep import LogUpkeep
from slinky_operator.slurmjob.polling.queues import Queues
from slinky_operator.slurmjob.triggers import SlurmJobTriggers


def _caches(_: Settings) -> Sequence[CacheSpec]:
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        CacheSpec(SLURMJOBS, INDEXES_OF_JOBS, prune=prune_job, mirrored=True),
        CacheSpec(NODESETS, INDEXES_OF_NODESETS, mirrored=True),
        CacheSpec(PODS, INDEXES_OF_PODS, PODS_OF_CLUSTERS, prune_pod, owners=OWNERS),
        CacheSpec(JOB_LOG_PODS, label_selector=bodies.SELECTOR, prune=bodies.prune_pod, owners=frozenset({SLURMJOBS})),
    ]


def _build(services: Services) -> Built:
    jobs = services.caches.store(SLURMJOBS)

    def is_needed(cluster_uid: str) -> bool:
        slurm = services.slurm.get(cluster_uid)
        return slurm is not None and jobs.lists_others(CLUSTER_OF_JOB, f"{slurm.namespace}/{slurm.name}", None)

    ended = EndedJobs(lambda uid: jobs.find(UID, uid), services.recorder)
    queues = Queues(services.slurm, is_needed, ended)
    nodes = Nodes(services.caches.store(NODESETS), services.caches.store(PODS))
    slurm, clusters = services.slurm, services.clusters
    observer = Observer(services.kube, jobs, clusters, slurm, queues, nodes, lambda: datetime.now(UTC))
    secrets = SecretReader(services.kube)
    image = Image(services.settings.image_agent, services.settings.image_pull_policy)
    logs = LogUpkeep(services.kube, secrets, nodes, image, services.caches.store(JOB_LOG_PODS))
    reconciler = SlurmJobReconciler(
        services.kube,
        services.recorder,
        secrets,
        jobs,
        observer,
        queues,
        logs,
        CopyUpkeep(services.kube, secrets, nodes, image),
        changes=services.changes.jobs,
        resubmissions=Resubmissions(services.settings.slurmjob_resubmissions, random.random),
    )
    triggers = SlurmJobTriggers(jobs, services.slurm, queues, logs.pod_gone)
    return Built(reconciler, triggers.table())


SPEC: Final = ControllerSpec(
    "slurmjob",
    SLURMJOBS,
    caches=_caches,
    build=_build,
    workers=lambda settings: settings.slurmjob_workers,
)
"""One pass over a SlurmJob; off unless the site has installed its kind."""
