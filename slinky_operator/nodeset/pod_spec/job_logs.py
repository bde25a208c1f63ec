"""The server beside slurmd for output of jobs (`pod_programs.joblogs`), in pods of NodeSets with `jobLogs`. Pure.

It starts before slurmd, so that the folder has its mode before a job can write to it, and ends after it. It is root
with two capabilities, by which it becomes the user of a job; nothing else of slurmd's pod is in it. Like slurmrestd it
speaks plain HTTP: there is no certificate that a pod of a job could check, and each request carries a token for one
file.
"""

from __future__ import annotations

from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import JobLogs
from slinky_operator.slurm import naming

OUTPUT_VOLUME: Final = "job-output"
KEY_VOLUME: Final = "job-logs-key"
VOLUMES: Final = frozenset({OUTPUT_VOLUME, KEY_VOLUME})

_KEY_FOLDER: Final = "/etc/job-logs"
_SMALL: Final = {"cpu": "100m", "memory": "128Mi"}
_CAPABILITIES: Final = ("SETUID", "SETGID")
_OUTPUT: Final = {"name": OUTPUT_VOLUME, "mountPath": naming.JOB_OUTPUT_FOLDER}


def attached(
    spec: dict[str, Any], nodeset: NodeSet, cluster: Cluster, container: str, image: str, pull_policy: str
) -> dict[str, Any]:
    """Add the server to a pod's spec, and the folder to slurmd's container; the same spec without `jobLogs`.

    Parameters
    ----------
    spec
        Generated; it is not changed.
    container
        Name of slurmd's.
    image, pull_policy
        The operator's own.
    """
    wanted = nodeset.spec.job_logs
    if wanted is None:
        return spec
    secret = {
        "secretName": naming.job_logs_key(cluster.name),
        "defaultMode": 0o400,
        "items": [{"key": naming.JOB_LOGS_KEY, "path": naming.JOB_LOGS_KEY}],
    }
    return {
        **spec,
        "initContainers": [*(spec.get("initContainers") or ()), _server(wanted, image, pull_policy)],
        "containers": [
            {**one, "volumeMounts": [*one["volumeMounts"], dict(_OUTPUT)]} if one["name"] == container else one
            for one in spec["containers"]
        ],
        "volumes": [
            *spec["volumes"],
            {"name": OUTPUT_VOLUME, "emptyDir": {}},
            {"name": KEY_VOLUME, "secret": secret},
        ],
    }


def _server(wanted: JobLogs, image: str, pull_policy: str) -> dict[str, Any]:
    arguments = ["--key", f"{_KEY_FOLDER}/{naming.JOB_LOGS_KEY}", "--port", str(naming.JOB_LOGS_PORT)]
    arguments += ["--own-folder", naming.JOB_OUTPUT_FOLDER, "--keep", f"{wanted.keep_for.total_seconds():g}"]
    return {
        "name": naming.JOB_LOGS_CONTAINER,
        "image": image,
        **({"imagePullPolicy": pull_policy} if pull_policy else {}),
        "command": ["python", "-m", "slinky_operator.joblogs", "serve", *arguments],
        # An init container that is restarted is a sidecar: it runs before the daemon, and ends after it.
        "restartPolicy": "Always",
        "ports": [{"name": "job-logs", "containerPort": naming.JOB_LOGS_PORT, "protocol": "TCP"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": (
            {"requests": dict(_SMALL), "limits": dict(_SMALL)}
            if wanted.resources is None
            else wanted.resources.to_dict()
        ),
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": list(_CAPABILITIES)},
        },
        "volumeMounts": [
            dict(_OUTPUT),
            {"name": KEY_VOLUME, "mountPath": _KEY_FOLDER, "readOnly": True},
        ],
    }
