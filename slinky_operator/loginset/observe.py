"""A frozen snapshot of everything a pass over a LoginSet reads, from caches and Secrets; no request is sent here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.loginset import LoginSet
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.objects import Object
from slinky_operator.loginset import names
from slinky_operator.loginset.bodies import pod
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import Source
from slinky_operator.slurm import naming

LOGINSET_INDEX: Final = "loginset"
"""Index of pods and other objects over `<namespace>/<loginset>`, by their label."""


def by_loginset(obj: Object) -> list[str]:
    """Indexer for `LOGINSET_INDEX`."""
    name = (obj["metadata"].get("labels") or {}).get(labels.LABEL_LOGINSET_NAME)
    return [f"{obj['metadata'].get('namespace', '')}/{name}"] if name else []


INDEXERS: Final[Mapping[str, Indexer]] = {LOGINSET_INDEX: by_loginset}


@dataclass(frozen=True, slots=True)
class Caches:
    """The stores that a pass reads; of objects that LoginSets have, with `INDEXERS`."""

    loginsets: Store
    clusters: ClusterReader
    pods: Store
    deployments: Store
    services: Store
    config_maps: Store
    budgets: Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a pass reads."""

    loginset: LoginSet
    raw: Object
    cluster: Cluster | None
    invalid_cluster: str
    """Why the Cluster cannot be read; empty if it can, or does not exist."""
    deployment: Object | None
    service: Object | None
    config_map: Object | None
    budget: Object | None
    """The objects that have their names, whether the operator's or not."""
    pods: tuple[Object, ...]
    """Login pods that are not being removed."""
    trials: Mapping[str, Object]
    """Pods that try configurations, by name."""
    secrets: Mapping[str, Source]


def wanted_secrets(loginset: LoginSet, cluster: Cluster | None) -> list[str]:
    """Names of the Secrets that login pods mount."""
    found = [pod.host_key_secret(loginset)]
    if loginset.spec.authorized_keys_ref is not None:
        found.append(loginset.spec.authorized_keys_ref.name)
    key = None if cluster is None else naming.mounted_key(cluster)
    return found if key is None else [*found, key.secret]


def observe(
    loginset: LoginSet,
    raw: Object,
    cluster: Cluster | None,
    invalid_cluster: str,
    caches: Caches,
    secrets: Mapping[str, Source],
) -> Snapshot:
    """Build the snapshot of one LoginSet."""
    name, namespace = names.workload(loginset.name), loginset.namespace
    pods = caches.pods.find(LOGINSET_INDEX, f"{namespace}/{loginset.name}")
    return Snapshot(
        loginset=loginset,
        raw=raw,
        cluster=cluster,
        invalid_cluster=invalid_cluster,
        deployment=caches.deployments.get(namespace, name),
        service=caches.services.get(namespace, name),
        config_map=caches.config_maps.get(namespace, name),
        budget=caches.budgets.get(namespace, name),
        pods=tuple(one for one in pods if _is_login(one)),
        trials={one["metadata"]["name"]: one for one in pods if _is_trial(one, loginset)},
        secrets=secrets,
    )


def _is_login(obj: Object) -> bool:
    about = obj["metadata"]
    return about["labels"].get(labels.LABEL_APP_COMPONENT) == names.COMPONENT and not about.get("deletionTimestamp")


def _is_trial(obj: Object, loginset: LoginSet) -> bool:
    """Whether a pod is a trial that the operator has made for this LoginSet, by its name and its owner."""
    about = obj["metadata"]
    owned = any(reference.get("uid") == loginset.uid for reference in about.get("ownerReferences") or ())
    return owned and about["name"].startswith(names.trial(loginset.name, ""))
