"""A pod from slurmctld's next template is created first, and the API server accepts it."""

from __future__ import annotations

from typing import Any

from slinky_operator.kube.resources import STATEFULSETS
from tests.integration.cluster.conftest import Bench

SIDE = {"name": "side", "image": "busybox:1", "command": ["sleep", "infinity"], "ports": [{"containerPort": 80}]}
OWN = {
    "name": "slurmctld",
    "env": [{"name": "MORE", "value": "yes"}],
    "volumeMounts": [{"name": "more", "mountPath": "/more"}, {"name": "scratch", "mountPath": "/scratch"}],
}
CLAIM: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
TEMPLATE = {
    "metadata": {"labels": {"team": "hpc"}},
    "spec": {
        "affinity": {"podAntiAffinity": {}},
        "containers": [OWN, SIDE],
        "initContainers": [{"name": "first", "image": "busybox:1", "volumeMounts": OWN["volumeMounts"]}],
        "volumes": [
            {"name": "more", "persistentVolumeClaim": {"claimName": "more"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
            {"name": "plain", "emptyDir": {}},
        ],
    },
}


async def test_a_template_with_everything_in_it_is_tried_and_then_applied(bench: Bench) -> None:
    await bench.create({"controller": {"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}})
    async with bench.operator() as running:
        await bench.serving()
        made = sum(verb == "create" and resource == "pods" for verb, resource, _ in running.requests)
        resources = {"requests": {"cpu": "1500m", "memory": "2Mi"}, "limits": {"memory": "16Mi", "cpu": "2"}}
        await bench.edit({"controller": {"template": TEMPLATE, "resources": resources}})
        while True:
            found = await bench.kube.get(STATEFULSETS, "slurm-controller", bench.namespace)
            spec = found["spec"]["template"]["spec"]
            if any(one["name"] == "side" for one in spec["containers"]):
                break
        outcomes = [one for one in running.requests if one[:2] == ("create", "pods")][made:]
        assert len(outcomes) == 1
        await bench.no_preflights()
