"""What the site is made of: the specs of its Cluster and NodeSets at rest, and what stands beside them. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.campaign.lanes.jobs import NODES, TEAM, WITNESS
from tests.campaign.lanes.keys import TOKEN
from tests.campaign.lanes.pods import BRIDGED_NODE, CHOSEN, HOST, PARTITION
from tests.campaign.lanes.upkeep import KEY_SET, KEYS
from tests.support.slurm_in_kubernetes import NEWEST, SlurmInKubernetes
from tests.unit.cluster.parts.keys.key_model import key_set

USERS: Final = "users"
PASSWD: Final = "alice:x:2001:2001::/tmp:/bin/sh\n"
GROUP: Final = "alice:x:2001:\n"


def namespace(name: str) -> dict[str, Any]:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@dataclass(frozen=True, slots=True)
class Specs:
    """The specs.

    Attributes
    ----------
    slurm
        The Cluster, with its version of Slurm.
    folder
        What jobs see as `WITNESS`, on Nodes.
    bridged_node
        The Node on which Slurm places pods.
    """

    slurm: SlurmInKubernetes
    folder: str
    bridged_node: str = BRIDGED_NODE

    def images(self) -> dict[str, Any]:
        """The images of the daemons, in a spec of a Cluster."""
        image = self.slurm.image
        return {
            "controller": {"image": image("slurmctld")},
            "restapi": {"image": image("slurmrestd")},
            "accounting": {"image": image("slurmdbd")},
        }

    def bridged(self) -> set[str]:
        """Nodes of Slurm on which it places pods: only the newest one can."""
        return {self.bridged_node} if self.slurm.slurm == NEWEST else set()

    def cluster(self) -> dict[str, Any]:
        """The spec of the Cluster."""
        partitions: list[dict[str, Any]] = [{"name": "both", "nodeSets": [*NODES], "config": "Default=YES"}]
        jobs: dict[str, Any] = {
            "tenants": [
                {
                    "namespaces": [TEAM],
                    "user": "alice",
                    "uid": 2001,
                    "gid": 2001,
                    "partitions": ["both", *NODES, PARTITION],
                }
            ],
            "virtualNodes": {"host": HOST, "partitions": ["both"]},
        }
        if self.bridged():
            partitions.append({"name": PARTITION, "nodeSets": ["bridge"]})
            jobs["bridge"] = {"nodeLabels": dict(CHOSEN)}
        images = self.images()
        return {
            **images,
            "accounting": {**images["accounting"], "mariadb": {"persistence": {"size": "1Gi"}}},
            "auth": {"slurmKeyRef": {"name": KEYS, "key": KEY_SET}},
            "identity": {"passwd": {"configMapRef": {"name": USERS}}},
            "jobs": jobs,
            "partitions": partitions,
            # Slurm alone can tell that a node is lost: soon enough for a round, late enough for a busy machine.
            "extraConf": "MinJobAge=3600\nLicenses=seat:3\nSlurmdTimeout=60",
        }

    def nodeset(self, name: str) -> dict[str, Any]:
        """The spec of a NodeSet."""
        volume = {"name": "witness", "hostPath": {"path": self.folder, "type": "Directory"}}
        mount = {"name": "slurmd", "volumeMounts": [{"name": "witness", "mountPath": WITNESS}]}
        return {
            "clusterName": self.slurm.name,
            "replicas": NODES[name],
            # One of both has job log servers: each takes a moment of every start of a pod.
            **({"features": ["fast"]} if name == "a" else {"gres": "craft:2", "jobLogs": {}}),
            "image": self.slurm.image("slurmd"),
            "resources": {
                "requests": {"cpu": "10m", "memory": "64Mi"},
                "limits": {"cpu": "2", "memory": "512Mi"},
            },
            "template": {"spec": {"volumes": [volume], "containers": [mount]}},
        }

    def helpers(self) -> Iterator[dict[str, Any]]:
        """Users, the key set as it begins, and a Token."""
        about = {"namespace": self.slurm.namespace}
        users = {"passwd": PASSWD, "group": GROUP}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**about, "name": USERS}, "data": users}
        keys = {KEY_SET: base64.b64encode(key_set("FIRST", "second")).decode()}
        yield {"apiVersion": "v1", "kind": "Secret", "metadata": {**about, "name": KEYS}, "data": keys}
        yield self.slurm.object("Token", TOKEN, {"clusterRef": {"name": self.slurm.name}, "lifetime": "15m"})
