"""The recorder of a Cluster, the model of a daemon: a Deployment of one pod, without any key."""

from __future__ import annotations

from typing import Any, Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_operator.cluster.daemons import default_images, image_of, locked_down, metadata, pod_security
from slinky_operator.cluster.daemons.availability import priority
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.kube import resources
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.template_rules import fitted

PORT: Final = 6890


class RecorderDaemon(Component):
    """Its objects: a daemon that a Cluster has while it wants several slurmrestds."""

    daemon = "recorder"
    component = "recorder"
    resource = resources.DEPLOYMENTS
    template_field = "spec.recorder.template"
    has_releases = False

    @override
    def spec(self, cluster: Cluster) -> ComponentSpec:
        # A field of the spec cannot be added here: `cluster.spec.recorder or ComponentSpec()`, and `is not None` below.
        return ComponentSpec()

    @override
    def is_wanted(self, cluster: Cluster) -> bool:
        return cluster.spec.restapi.replicas > 1

    @override
    def workload(self, materials: Materials) -> Child:
        cluster, images = materials.snapshot.cluster, materials.images
        own, name = self.spec(cluster), naming.daemon(cluster.name, self.component)
        container: dict[str, Any] = {
            "name": self.daemon,
            **image_of(own.image, images.of(self.daemon), images.pull_policy),
            "ports": [{"name": "records", "containerPort": PORT, "protocol": "TCP"}],
            "readinessProbe": {"tcpSocket": {"port": PORT}},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": locked_down(),
        }
        if own.resources is not None:
            container["resources"] = own.resources.to_dict()
        generated = {
            "metadata": {"labels": naming.pod_labels(cluster, self.component)},
            "spec": {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                **priority(images),
                "securityContext": pod_security(naming.NOBODY),
                "containers": [container],
            },
        }
        body = {
            "metadata": metadata(cluster, name, self.component, default_images.note(own, self.daemon)),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": naming.selector_labels(cluster, self.component)},
                "template": fitted(generated, own.template or {}, self.daemon),
            },
        }
        return Child(self.resource, body)


RECORDER: Final = RecorderDaemon()
