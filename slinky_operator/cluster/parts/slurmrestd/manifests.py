"""slurmrestd: a Deployment without any key, and a Service in front of it.

It authenticates nobody itself: each call carries a token, and slurmctld decides. Without accounting the plugins to load
must be named, or Slurm 24.11 refuses to start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_operator.cluster.daemons import Images, default_images, image_of, locked_down, metadata, pod_security
from slinky_operator.cluster.daemons.availability import apart, one_at_a_time, priority
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.daemons.service_fragment import exposed, with_fragment
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import in_conf, variants
from slinky_operator.identity import pod as identity
from slinky_operator.kube.objects import Object, is_ready
from slinky_operator.kube.resources import DEPLOYMENTS, SERVICES
from slinky_operator.reconcile.pod_trouble import NO_POD, DaemonTrouble
from slinky_operator.reconcile.text import cut, moment, stamp
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.replicas import ALIVE_HEADERS, ALIVE_PATH
from slinky_operator.slurm.pod_templates.template_rules import fitted
from slinky_operator.slurm.pods.exit_messages import LONGEST

CONFIG: Final = "config"
RUN: Final = "run"

_PORT: Final = {"tcpSocket": {"port": naming.SLURMRESTD_PORT}}

_HEADERS: Final = "".join(f"{name}: {value}\\r\\n" for name, value in ALIVE_HEADERS.items())

ANSWERS: Final = (
    f"exec 3<>/dev/tcp/127.0.0.1/{naming.SLURMRESTD_PORT} && "
    f"printf 'GET {ALIVE_PATH} HTTP/1.0\\r\\n{_HEADERS}\\r\\n' >&3 && "
    "read -r -t 8 answer <&3 && [[ $answer == HTTP/* ]]"
)
"""Whether it answers at all, which it does without slurmctld. Not by `httpGet`: 26.05 says 204, and 24.11 says 404."""

THREADS: Final = 32
"""Calls that may wait for slurmctld at a time. By default 26.05 has four threads on two CPUs; once all of them wait, it
answers nobody."""

NOT_ANSWERING: Final = "NotAnswering"

SLOW: Final = timedelta(seconds=60)
"""How long a slurmrestd may be unready until that is reported."""


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
        **image_of(restapi.image, images.of(naming.RESTAPI_CONTAINER), images.pull_policy),
        "command": [
            "slurmrestd",
            "-a",
            "rest_auth/jwt",
            "-t",
            str(THREADS),
            "-s",
            "openapi/slurmctld,openapi/slurmdbd" if accounting else "openapi/slurmctld",
            f"0.0.0.0:{naming.SLURMRESTD_PORT}",
        ],
        "env": [
            {"name": "SLURM_JWT", "value": "daemon"},
            {"name": "SLURM_CONF", "value": f"{naming.CONF_FOLDER}/slurm.conf"},
            # The runtime's seccomp profile forbids unshare; the container is isolated already.
            {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_sysv,disable_unshare_files"},
            # Each of its threads has a heap, in which glibc keeps what large answers needed: gigabytes after some lists
            # of thousands of jobs. With one heap for all it keeps what a few answers need (docs/performance.md).
            {"name": "MALLOC_ARENA_MAX", "value": "1"},
        ],
        "ports": [{"name": "slurmrestd", "containerPort": naming.SLURMRESTD_PORT, "protocol": "TCP"}],
        "startupProbe": {**_PORT, "periodSeconds": 1, "failureThreshold": 300},
        "readinessProbe": {"exec": {"command": ["bash", "-c", ANSWERS]}, "periodSeconds": 10, "timeoutSeconds": 10},
        # Not by an answer: with a slurmctld that is silent and many callers, none of its threads is free to give one.
        "livenessProbe": {**_PORT, "periodSeconds": 20, "failureThreshold": 6},
        "terminationMessagePolicy": "FallbackToLogsOnError",
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
                **priority(images),
                "affinity": apart(naming.selector_labels(cluster, naming.COMPONENT_RESTAPI)),
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
            # Pods that answer stay until those of another template do.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
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
        yield from one_at_a_time(cluster, self.component, cluster.spec.restapi.replicas)

    @override
    def workload(self, materials: Materials) -> Child:
        cluster = materials.snapshot.cluster
        notes = default_images.note(self.spec(cluster), self.daemon)
        accounting = in_conf.has_accounting(materials.conf) and variants.wanted(cluster) is not None
        return Child(DEPLOYMENTS, deployment(cluster, materials.images, notes, accounting=accounting))

    @override
    def troubles(self, snapshot: Snapshot, wall: datetime) -> Iterable[DaemonTrouble]:
        yield from super().troubles(snapshot, wall)
        yield from self._silent(snapshot, wall)
        owner = snapshot.children.get(self.key(snapshot.cluster)) or {}
        for one in (owner.get("status") or {}).get("conditions") or ():
            if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
                why = cut(one.get("message") or one.get("reason") or "no word", LONGEST)
                message = f"slurmrestd's pod cannot be created: {why}"
                yield DaemonTrouble(self.daemon, one.get("reason") or NO_POD, message)

    def _silent(self, snapshot: Snapshot, wall: datetime) -> Iterable[DaemonTrouble]:
        """Pods that run and do not answer, beside others that do."""
        pods = self.pods(snapshot)
        if not any(is_ready(pod) for pod in pods):
            return
        for pod in pods:
            since = _unready_since(pod)
            if since is not None and wall - since > SLOW:
                name, namespace = pod["metadata"]["name"], snapshot.cluster.namespace
                message = (
                    f"slurmrestd's pod {name} has not answered since {stamp(since)}; calls go to the others. If it "
                    f"does not recover, kubectl -n {namespace} delete pod {name} replaces it"
                )
                yield DaemonTrouble(self.daemon, NOT_ANSWERING, message)


def _unready_since(pod: Object) -> datetime | None:
    """Since when a slurmrestd that runs has not been ready; None if it is, or has not started."""
    status = pod.get("status") or {}
    runs = any(
        one.get("name") == naming.RESTAPI_CONTAINER and one.get("started") and "running" in (one.get("state") or {})
        for one in status.get("containerStatuses") or ()
    )
    for one in status.get("conditions") or ():
        if runs and one.get("type") == "Ready" and one.get("status") == "False":
            return moment(one.get("lastTransitionTime"))
    return None


SLURMRESTD: Final = Slurmrestd()
