"""MariaDB for slurmdbd: a StatefulSet with one pod and its data on a claim, and a Service in front of it.

The image lays out an empty data folder, brings that of an older version up to date, and executes the statements of the
Secret at each start: they set the password of slurmdbd's account. Nobody else has one; administrators enter the pod.
The claim outlives the Cluster, and the next one of its name finds its history there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_api.v1alpha1.common import Persistence
from slinky_operator.cluster.daemons import default_images, image_of, locked_down, metadata, pod_security, volumes
from slinky_operator.cluster.daemons.agent_container import agent_container
from slinky_operator.cluster.daemons.availability import priority_after_slurmctld
from slinky_operator.cluster.daemons.claim_templates import claim_of, is_generated
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import stored, variants
from slinky_operator.kube.resources import SERVICES, STATEFULSETS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.template_rules import fitted

ANNOTATION_MOUNTS: Final = labels.CLUSTER_PREFIX + "mounts"
"""On a pod template: digest of what the pod reads of Secrets when it starts."""

DATA: Final = "data"
_DATA_FOLDER: Final = "/var/lib/mysql"
_STATEMENTS: Final = "statements"
_RUN: Final = "run"
_TMP: Final = "tmp"

_QUERY: Final = {"exec": {"command": ["mariadb", "--execute=SELECT 1"]}, "timeoutSeconds": 30}
"""By the socket: MariaDB logs a connection that ends without a user."""

_READS_UP_TO: Final = 1_000_000
"""Attempts, two seconds apart, until a MariaDB that does not answer is killed: practically never. It recovers after a
crash, or an older version's data are brought up to date, as long as that takes."""


class Mariadb(Component):
    """MariaDB among the daemons of a Cluster."""

    daemon = naming.DATABASE_CONTAINER
    component = naming.COMPONENT_DATABASE
    resource = STATEFULSETS
    template_field = "spec.accounting.mariadb.template"
    has_releases = False
    keeps_state = True
    state_volume = DATA

    @override
    def is_wanted(self, cluster: Cluster) -> bool:
        return variants.runs_database(cluster)

    @override
    def spec(self, cluster: Cluster) -> ComponentSpec:
        return variants.mariadb(cluster)

    @override
    def persistence(self, cluster: Cluster) -> Persistence:
        return variants.mariadb(cluster).persistence

    @override
    def with_persistence(self, cluster: Cluster, persistence: Persistence) -> Cluster:
        assert cluster.spec.accounting is not None  # noqa: S101 - else it is not wanted
        own = variants.mariadb(cluster).model_copy(update={"persistence": persistence})
        accounting = cluster.spec.accounting.model_copy(update={"mariadb": own})
        return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"accounting": accounting})})

    @override
    def is_prepared(self, snapshot: Snapshot) -> bool:
        return stored.holds(snapshot, naming.database(snapshot.cluster.name), stored.contents(snapshot))

    @override
    def takes_patches(self, cluster: Cluster) -> bool:
        # Data in an `emptyDir` end with the pod.
        return variants.mariadb(cluster).persistence.enabled

    @override
    def services(self, materials: Materials) -> Iterable[Child]:
        cluster = materials.snapshot.cluster
        port = {"name": "mariadb", "port": naming.MARIADB_PORT, "protocol": "TCP"}
        spec = {"selector": naming.selector_labels(cluster, self.component), "ports": [port]}
        about = metadata(cluster, naming.database(cluster.name), self.component)
        yield Child(SERVICES, {"metadata": about, "spec": spec})

    @override
    def workload(self, materials: Materials) -> Child:
        cluster = materials.snapshot.cluster
        own, name = variants.mariadb(cluster), naming.database(cluster.name)
        notes = default_images.note(own, self.daemon)
        generated = {
            "metadata": {
                "labels": naming.pod_labels(cluster, self.component),
                "annotations": {
                    ANNOTATION_MOUNTS: stored.digest(materials.snapshot, name),
                    "kubectl.kubernetes.io/default-container": self.daemon,
                    volumes.ANNOTATION: volumes.DATABASE,
                },
            },
            "spec": {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                # It writes what it has in memory before it ends.
                "terminationGracePeriodSeconds": 120,
                **priority_after_slurmctld(materials, name),
                "securityContext": pod_security(naming.MYSQL_UID, volumes=True),
                "containers": [self._container(materials), self._agent(materials)],
                "volumes": self._volumes(cluster),
            },
        }
        spec: dict[str, Any] = {
            "replicas": 1,
            "serviceName": name,
            # One pod needs no order, and a pod that never becomes ready must not block its own correction.
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": naming.selector_labels(cluster, self.component)},
            "template": fitted(generated, own.template or {}, self.daemon),
        }
        if is_generated(own.persistence):
            spec |= claim_of(DATA, own.persistence)
        return Child(STATEFULSETS, {"metadata": metadata(cluster, name, self.component, notes), "spec": spec})

    def _container(self, materials: Materials) -> dict[str, Any]:
        own, images = self.spec(materials.snapshot.cluster), materials.images
        container: dict[str, Any] = {
            "name": self.daemon,
            **image_of(own.image, images.of(naming.DATABASE_CONTAINER), images.pull_policy),
            "ports": [{"name": "mariadb", "containerPort": naming.MARIADB_PORT, "protocol": "TCP"}],
            "startupProbe": {**_QUERY, "periodSeconds": 2, "failureThreshold": _READS_UP_TO},
            "readinessProbe": {**_QUERY, "periodSeconds": 10, "failureThreshold": 6},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": locked_down(),
            "volumeMounts": [
                {"name": DATA, "mountPath": _DATA_FOLDER},
                {"name": _STATEMENTS, "mountPath": "/etc/mysql/init", "readOnly": True},
                {"name": _RUN, "mountPath": "/run/mysqld"},
                {"name": _TMP, "mountPath": "/tmp"},  # noqa: S108 - the container's own
            ],
        }
        if own.resources is not None:
            container["resources"] = own.resources.to_dict()
        return container

    @staticmethod
    def _agent(materials: Materials) -> dict[str, Any]:
        """It reports how much room the data have: nobody notices a full volume before it is too late."""
        words = [volumes.option(volumes.DATABASE, _DATA_FOLDER)]
        mounts = [{"name": DATA, "mountPath": _DATA_FOLDER, "readOnly": True}]
        return agent_container(materials.images, naming.CONF_FOLDER, words, mounts)

    @staticmethod
    def _volumes(cluster: Cluster) -> list[dict[str, Any]]:
        persistence = variants.mariadb(cluster).persistence
        statements = [{"key": stored.INIT_SQL, "path": stored.INIT_SQL}]
        volumes: list[dict[str, Any]] = [
            {
                "name": _STATEMENTS,
                "secret": {"secretName": naming.database(cluster.name), "defaultMode": 0o400, "items": statements},
            },
            {"name": _RUN, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            {"name": _TMP, "emptyDir": {}},
        ]
        if not persistence.enabled:
            volumes.append({"name": DATA, "emptyDir": {}})
        elif persistence.existing_claim is not None:
            volumes.append({"name": DATA, "persistentVolumeClaim": {"claimName": persistence.existing_claim}})
        return volumes


MARIADB: Final = Mariadb()
