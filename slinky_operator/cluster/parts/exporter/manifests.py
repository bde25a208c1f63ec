"""The exporter of a Cluster: a Deployment with one pod, a Service, and a Token of its own. Pure.

It asks slurmrestd by its Service, so that pods of slurmrestd may come and go, as a user who may read: the token of the
operator, which rules Slurm, is in no pod that serves pages. Of a Slurm elsewhere, the user gives such a token.

Unlike daemons, its objects belong to the Cluster in the eyes of the garbage collector: it may go before any job ends,
and a Cluster whose Slurm runs elsewhere has no finalizer. What the exporter serves is left to `slurm_exporter`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.v1alpha1.cluster.auth import TOKEN_KEY
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_operator.cluster.daemons import Images, image_of, locked_down, metadata, owned, pod_security
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.daemons.service_fragment import exposed, with_fragment
from slinky_operator.cluster.parts.accounting import variants
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, DEPLOYMENTS, SERVICES, TOKENS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.template_rules import fitted

PORT: Final = "metrics"
"""Name of its port."""

INTERVAL: Final = timedelta(seconds=10)
"""Between two polls, if the spec does not say."""

SLOW: Final = timedelta(seconds=60)
"""Between two polls of fair share, at least."""

STALE: Final = timedelta(seconds=120)
"""After which data that Slurm has not confirmed is left out, at least."""

TOKEN_FOLDER: Final = "/run/slurm-exporter/token"  # noqa: S105
TOKEN_FILE: Final = "token"  # noqa: S105
CA_FOLDER: Final = "/run/slurm-exporter/ca"
CA_FILE: Final = "ca.pem"

LABEL: Final = "slurm_cluster"
"""Label of each metric with the name of the Cluster."""

ANNOTATION_CA: Final = labels.CLUSTER_PREFIX + "ca"
"""On the pod: digest of the certificates, which are read once."""


def is_wanted(cluster: Cluster) -> bool:
    """Whether there is to be an exporter."""
    return cluster.spec.metrics.exporter.enabled


def token(cluster: Cluster) -> Child | None:
    """The Token whose Secret the pod mounts; `None` for a Slurm elsewhere, whose keys are there."""
    if cluster.spec.external:
        return None
    about = _owned(cluster, naming.exporter(cluster.name))
    user = cluster.spec.metrics.exporter.slurm_user
    return Child(TOKENS, {"metadata": about, "spec": {"clusterRef": {"name": cluster.name}, "username": user}})


def token_secret(cluster: Cluster) -> tuple[str, str]:
    """Name of the Secret with the token, and key in it."""
    ref = cluster.spec.metrics.exporter.token_ref
    if ref is not None:
        return ref.name, ref.key or TOKEN_KEY
    return naming.exporter(cluster.name), TOKEN_KEY


def objects(cluster: Cluster) -> Iterable[Child]:
    """Everything but the Deployment."""
    own = token(cluster)
    if own is not None:
        yield own
    name, fragment = naming.exporter(cluster.name), cluster.spec.metrics.exporter.service
    ca_pem = _ca_pem(cluster)
    if ca_pem is not None:
        yield Child(CONFIGMAPS, {"metadata": _owned(cluster, name), "data": {CA_FILE: ca_pem}})
    selector = naming.selector_labels(cluster, naming.COMPONENT_EXPORTER)
    spec = exposed(fragment, selector, PORT, naming.EXPORTER_PORT)
    yield Child(SERVICES, with_fragment({"metadata": _owned(cluster, name), "spec": spec}, fragment))


def deployment(cluster: Cluster, images: Images) -> Object:
    """The Deployment.

    Raises
    ------
    RefusedFragment
        The user's template cannot be used.
    """
    own, ca_pem = cluster.spec.metrics.exporter, _ca_pem(cluster)
    container: dict[str, Any] = {
        "name": naming.EXPORTER_CONTAINER,
        **image_of(own.image, images.of(naming.AGENT_CONTAINER), images.pull_policy),
        "command": ["slurm-exporter"],
        "args": _arguments(cluster),
        "ports": [{"name": PORT, "containerPort": naming.EXPORTER_PORT, "protocol": "TCP"}],
        # Ready once Slurm has answered; a Slurm that falls silent later shows in the metrics.
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": PORT}, "periodSeconds": 2, "timeoutSeconds": 5},
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": PORT},
            "initialDelaySeconds": 30,
            "periodSeconds": 20,
            "timeoutSeconds": 10,
            "failureThreshold": 6,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": locked_down(),
        "volumeMounts": [{"name": "token", "mountPath": TOKEN_FOLDER, "readOnly": True}],
    }
    if own.resources is not None:
        container["resources"] = own.resources.to_dict()
    secret, key = token_secret(cluster)
    items = [{"key": key, "path": TOKEN_FILE}]
    volumes: list[dict[str, Any]] = [
        {"name": "token", "secret": {"secretName": secret, "defaultMode": 0o444, "items": items}}
    ]
    about: dict[str, Any] = {"labels": naming.pod_labels(cluster, naming.COMPONENT_EXPORTER)}
    if ca_pem is not None:
        container["volumeMounts"].append({"name": "ca", "mountPath": CA_FOLDER, "readOnly": True})
        volumes.append({"name": "ca", "configMap": {"name": naming.exporter(cluster.name), "defaultMode": 0o444}})
        about["annotations"] = {ANNOTATION_CA: hashlib.sha256(ca_pem.encode()).hexdigest()[:16]}
    generated: dict[str, Any] = {
        "metadata": about,
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": pod_security(naming.NOBODY),
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": volumes,
        },
    }
    return {
        "metadata": _owned(cluster, naming.exporter(cluster.name)),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": naming.selector_labels(cluster, naming.COMPONENT_EXPORTER)},
            "template": fitted(generated, own.template or {}, naming.EXPORTER_CONTAINER),
        },
    }


def _arguments(cluster: Cluster) -> list[str]:
    own = cluster.spec.metrics.exporter
    interval = own.interval or INTERVAL
    # Of a Slurm elsewhere, nobody knows whether it has accounting.
    without = [] if cluster.spec.external or variants.wanted(cluster) is not None else ["--no-accounting"]
    return [
        f"--server={naming.server(cluster)}",
        f"--token-file={TOKEN_FOLDER}/{TOKEN_FILE}",
        *([f"--ca-bundle={CA_FOLDER}/{CA_FILE}"] if _ca_pem(cluster) is not None else []),
        f"--port={naming.EXPORTER_PORT}",
        f"--interval={interval.total_seconds():g}",
        f"--slow-interval={max(SLOW, interval).total_seconds():g}",
        f"--stale-after={max(STALE, 3 * interval).total_seconds():g}",
        f"--nodes={own.nodes}",
        f"--users={own.users}",
        f"--accounts={own.accounts}",
        f"--call-users={own.call_users}",
        *(f"--names={name}" for name in sorted(set(own.names))),
        f"--label={LABEL}={cluster.name}",
        *without,
    ]


def _ca_pem(cluster: Cluster) -> str | None:
    """Certificates that verify the server's; None if it has none."""
    return cluster.spec.ca_pem if naming.server(cluster).startswith("https:") else None


def _owned(cluster: Cluster, name: str) -> Object:
    return owned(cluster, metadata(cluster, name, naming.COMPONENT_EXPORTER))


class Exporter(Component):
    """The exporter, as far as it is like a daemon. It is not in `daemons.DAEMONS`: Slurm does not need it."""

    daemon = naming.EXPORTER_CONTAINER
    component = naming.COMPONENT_EXPORTER
    resource = DEPLOYMENTS
    template_field = "spec.metrics.exporter.template"

    @override
    def is_wanted(self, cluster: Cluster) -> bool:
        return is_wanted(cluster)

    @override
    def spec(self, cluster: Cluster) -> ComponentSpec:
        return cluster.spec.metrics.exporter

    @override
    def services(self, materials: Materials) -> Iterable[Child]:
        return objects(materials.snapshot.cluster)

    @override
    def workload(self, materials: Materials) -> Child:
        return Child(DEPLOYMENTS, deployment(materials.snapshot.cluster, materials.images))


EXPORTER: Final = Exporter()
