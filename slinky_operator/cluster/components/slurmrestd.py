"""slurmrestd: a Deployment without any key, and a Service in front of it.

It authenticates nobody itself: each call carries a token, and slurmctld decides. Without accounting the plugins to load
must be named, or Slurm 24.11 refuses to start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_operator.cluster.accounting import in_conf, variants
from slinky_operator.cluster.components import Images, default_images, image_of, locked_down, metadata, pod_security
from slinky_operator.cluster.components.component import Component, Materials
from slinky_operator.cluster.components.service_fragment import exposed, with_fragment
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.identity import pod as identity
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import DEPLOYMENTS, SERVICES
from slinky_operator.reconcile.children import Child
from slinky_operator.reconcile.pod_trouble import NO_POD, DaemonTrouble
from slinky_operator.reconcile.text import cut
from slinky_operator.slurm import naming
from slinky_operator.slurm.exit_messages import LONGEST
from slinky_operator.slurm.template_rules import fitted

CONFIG: Final = "config"
RUN: Final = "run"

# Its own health checks need a token in 26.05 and do not exist in 24.11.
_PORT: Final = {"tcpSocket": {"port": naming.SLURMRESTD_PORT}}


def service(cluster: Cluster, live: Object | None = None, pods: Object | None = None) -> Object:
    """Build the Service, with the user's fields except selector and ports.

    Parameters
    ----------
    live, pods
        The live Service and Deployment. Pods of an older operator lack a label by which the Service now selects; it is
        added to the selector once all pods have it.
    """
    fragment = cluster.spec.restapi.service
    selector, before = naming.restapi_selector(cluster), naming.selector_labels(cluster, naming.COMPONENT_RESTAPI)
    if live is not None and pods is not None and live["spec"].get("selector") == before and not _all_have_label(pods):
        selector = before
    about = metadata(cluster, naming.restapi(cluster.name), naming.COMPONENT_RESTAPI)
    spec = exposed(fragment, selector, "slurmrestd", naming.SLURMRESTD_PORT)
    return with_fragment({"metadata": about, "spec": spec}, fragment)


def _all_have_label(live: Object) -> bool:
    """Whether every pod of a Deployment is available, and created from a template with the label."""
    status, about = live.get("status") or {}, live["spec"]["template"].get("metadata") or {}
    if labels.LABEL_DAEMON not in (about.get("labels") or {}):
        return False
    if (status.get("observedGeneration") or 0) < (live["metadata"].get("generation") or 0):
        return False
    wanted = live["spec"].get("replicas", 1)
    return all((status.get(one) or 0) == wanted for one in ("replicas", "updatedReplicas", "readyReplicas"))


def deployment(
    cluster: Cluster, images: Images, annotations: Mapping[str, str] | None = None, *, accounting: bool = False
) -> Object:
    """The Deployment.

    Parameters
    ----------
    accounting
        Whether the slurm.conf that it mounts names slurmdbd: without, it does not start with the calls about it.
    annotations
        Of the Deployment itself: a change does not replace its pods.
    """
    restapi = cluster.spec.restapi
    container: dict[str, Any] = {
        "name": naming.RESTAPI_CONTAINER,
        **image_of(restapi.image, images.slurmrestd, images.pull_policy),
        "command": [
            "slurmrestd",
            "-a",
            "rest_auth/jwt",
            "-s",
            "openapi/slurmctld,openapi/slurmdbd" if accounting else "openapi/slurmctld",
            f"0.0.0.0:{naming.SLURMRESTD_PORT}",
        ],
        "env": [
            {"name": "SLURM_JWT", "value": "daemon"},
            {"name": "SLURM_CONF", "value": f"{naming.CONF_FOLDER}/slurm.conf"},
            # The runtime's seccomp profile forbids unshare; the container is isolated already.
            {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_sysv,disable_unshare_files"},
        ],
        "ports": [{"name": "slurmrestd", "containerPort": naming.SLURMRESTD_PORT, "protocol": "TCP"}],
        "startupProbe": {**_PORT, "periodSeconds": 1, "failureThreshold": 300},
        "readinessProbe": {**_PORT, "periodSeconds": 10},
        "livenessProbe": {**_PORT, "periodSeconds": 20, "failureThreshold": 6},
        "securityContext": locked_down(),
        "volumeMounts": [
            {"name": CONFIG, "mountPath": naming.CONF_FOLDER, "readOnly": True},
            {"name": RUN, "mountPath": naming.RUN_FOLDER},
        ],
    }
    if restapi.resources is not None:
        container["resources"] = restapi.resources.to_dict()
    generated: dict[str, Any] = {
        "metadata": {
            "labels": {
                **naming.pod_labels(cluster, naming.COMPONENT_RESTAPI),
                labels.LABEL_DAEMON: naming.RESTAPI_CONTAINER,
            }
        },
        "spec": identity.attached(
            {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": pod_security(naming.NOBODY),
                # As PID 1 it ignores SIGTERM; its calls are short, and may be repeated.
                "terminationGracePeriodSeconds": 3,
                "containers": [container],
                "volumes": [
                    {"name": CONFIG, "configMap": {"name": naming.config(cluster.name), "defaultMode": 0o444}},
                    {"name": RUN, "emptyDir": {}},
                ],
            },
            cluster,
            (naming.RESTAPI_CONTAINER,),
            images.sssd_image,
        ),
    }
    return {
        "metadata": metadata(cluster, naming.restapi(cluster.name), naming.COMPONENT_RESTAPI, dict(annotations or {})),
        "spec": {
            "replicas": restapi.replicas,
            "selector": {"matchLabels": naming.selector_labels(cluster, naming.COMPONENT_RESTAPI)},
            "template": fitted(generated, restapi.template or {}, naming.RESTAPI_CONTAINER),
        },
    }


class Slurmrestd(Component):
    """slurmrestd among the daemons of a Cluster."""

    daemon = naming.RESTAPI_CONTAINER
    component = naming.COMPONENT_RESTAPI
    resource = DEPLOYMENTS
    template_field = "spec.restapi.template"
    condition = ClusterCondition.API_REACHABLE

    @override
    def spec(self, cluster: Cluster) -> ComponentSpec:
        return cluster.spec.restapi

    @override
    def services(self, materials: Materials) -> Iterable[Child]:
        cluster, children = materials.snapshot.cluster, materials.snapshot.children
        live, pods = children.get((SERVICES.kind, naming.restapi(cluster.name))), children.get(self.key(cluster))
        yield Child(SERVICES, service(cluster, live, pods))

    @override
    def workload(self, materials: Materials) -> Child:
        cluster = materials.snapshot.cluster
        notes = default_images.note(self.spec(cluster), self.daemon)
        accounting = in_conf.has_accounting(materials.slurm_conf) and variants.wanted(cluster) is not None
        return Child(DEPLOYMENTS, deployment(cluster, materials.images, notes, accounting=accounting))

    @override
    def troubles(self, snapshot: Snapshot, wall: datetime) -> Iterable[DaemonTrouble]:
        yield from super().troubles(snapshot, wall)
        owner = snapshot.children.get(self.key(snapshot.cluster)) or {}
        for one in (owner.get("status") or {}).get("conditions") or ():
            if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
                why = cut(one.get("message") or one.get("reason") or "no word", LONGEST)
                message = f"slurmrestd's pod cannot be created: {why}"
                yield DaemonTrouble(self.daemon, one.get("reason") or NO_POD, message)


SLURMRESTD: Final = Slurmrestd()
