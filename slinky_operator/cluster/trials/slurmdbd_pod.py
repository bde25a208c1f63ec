"""A trial of slurmdbd.conf: a disposable pod in which a slurmdbd reads it before the running one does.

The pod is slurmdbd's next one, by its template, without everything that could affect the real one: no claim, no key, no
password, no other container. Its slurmdbd has accepted the file once it looks for a database, which it does not find
(`slurm.accounting.trial_conf`). Like a preflight it leaves its result in the termination message of its container.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.components import metadata
from slinky_operator.cluster.components.shared.shared_objects import CONFIG_MODE
from slinky_operator.cluster.trials.preflight_pod import LASTS, WATCH, of_pod
from slinky_operator.identity import pod as identity
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, PODS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.accounting.slurmdbd_conf import RUN_FOLDER, SLURMDBD_CONF
from slinky_operator.slurm.accounting.trial_conf import FOLDER, GIVEN, REACHED

ANNOTATION: Final = labels.CLUSTER_PREFIX + "slurmdbd-trial"
"""On a trial's objects, which `preflight`s are too, for those that list them."""

_MARK: Final = "s"
"""Distinguishes its name from that of a preflight, which continues with a digit of a hash."""

_KEPT: Final = ("name", "image", "imagePullPolicy", "envFrom", "securityContext")
_OWN_VARIABLES: Final = frozenset({"SLURM_SACK_KEY", "SLURM_SACK_JWKS", "CONF_VERSION"})
_OWN_VOLUMES: Final = frozenset({"config", "slurmdbd-conf", "keys", "run", "tmp"}) | identity.VOLUMES
"""Volumes of slurmdbd's pod that the operator generates."""

_FOLDERS: Final = {"config": naming.CONF_FOLDER, "run": naming.RUN_FOLDER, "tmp": "/tmp", "trial": FOLDER}  # noqa: S108

_NOT_COPIED: Final = frozenset(
    ("containers", "initContainers", "volumes", "hostNetwork", "hostPID", "hostIPC", "hostname", "subdomain")
)

_SCRIPT: Final = f"""\
umask 077
mkdir -p {RUN_FOLDER} && cd {FOLDER} || exit 2
head -c 128 /dev/urandom > slurm.key && head -c 32 /dev/urandom > {naming.JWT_KEY} || exit 2
install -m 0600 {GIVEN}/{SLURMDBD_CONF} {naming.CONF_FOLDER}/{SLURMDBD_CONF} || exit 2
( slurmdbd -D > slurmdbd.log 2>&1; echo $? > slurmdbd.end; mv slurmdbd.end slurmdbd.ended ) &
set -- slurmdbd "{REACHED}" refused
{WATCH}exit 0
"""


def slurmdbd_trial(cluster: Cluster, template: Mapping[str, Any], text: str) -> TrialObjects:
    """Build the trial of a slurmdbd.conf.

    Parameters
    ----------
    template
        Spec of slurmdbd's next pod.
    text
        The trial's own file, see `trial_conf.derive`.
    """
    body: Object = {"metadata": {}, "spec": _spec(template)}
    data = {SLURMDBD_CONF: text}
    named = Child(PODS, {**body, "metadata": {"name": "", "uid": cluster.uid, "data": data}})
    name = naming.preflight(cluster.name, f"{_MARK}{named.digest[:9]}")
    about = metadata(cluster, name, naming.COMPONENT_PREFLIGHT, {ANNOTATION: "true"})
    body["metadata"] = of_pod(cluster, about, "slurmdbd.conf")
    volume = next(one for one in body["spec"]["volumes"] if one["name"] == "given")
    volume["configMap"]["name"] = name
    return TrialObjects(
        Child(PODS, body), Child(CONFIGMAPS, {"metadata": dict(about), "data": data, "immutable": True})
    )


def is_slurmdbd_trial(cluster: Cluster, obj: Object) -> bool:
    """Whether an object with a preflight's name belongs to a trial of slurmdbd.conf."""
    return str(obj["metadata"]["name"]).startswith(naming.preflight(cluster.name, _MARK))


def unmounted(template: Mapping[str, Any]) -> frozenset[str]:
    """Folders of slurmdbd's next pod that are on claims, which its trial does not mount."""
    claims = {one["name"] for one in template.get("volumes") or () if _is_claim(one)}
    return frozenset(one["mountPath"] for one in _own(template).get("volumeMounts") or () if one["name"] in claims)


def is_judged(template: Mapping[str, Any]) -> bool:
    """Whether slurmdbd can be tried alone: no container of the user's prepares what it needs."""
    return all(one["name"] == identity.SSSD for one in template.get("initContainers") or ())


def _spec(template: Mapping[str, Any]) -> dict[str, Any]:
    own = _own(template)
    volumes = [one for one in template.get("volumes") or () if one["name"] not in _OWN_VOLUMES and not _is_claim(one)]
    there = {one["name"] for one in volumes}
    mounts = [one for one in own.get("volumeMounts") or () if one["name"] in there]
    variables = [one for one in own.get("env") or () if one["name"] not in _OWN_VARIABLES]
    container = {
        **{key: own[key] for key in _KEPT if key in own},
        "command": ["/bin/sh", "-c", _SCRIPT],
        "env": [{"name": "SLURM_SACK_KEY", "value": f"{FOLDER}/{naming.SLURM_KEY}"}, *variables],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "volumeMounts": [
            *({"name": name, "mountPath": folder} for name, folder in _FOLDERS.items()),
            {"name": "given", "mountPath": GIVEN, "readOnly": True},
            *mounts,
        ],
    }
    return {
        **{key: value for key, value in template.items() if key not in _NOT_COPIED},
        "restartPolicy": "Never",
        "activeDeadlineSeconds": LASTS,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [
            *({"name": name, "emptyDir": {"sizeLimit": "16Mi"}} for name in _FOLDERS),
            {"name": "given", "configMap": {"name": "", "defaultMode": CONFIG_MODE}},
            *volumes,
        ],
    }


def _own(template: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one for one in template["containers"] if one["name"] == naming.ACCOUNTING_CONTAINER)
    return found


def _is_claim(volume: Mapping[str, Any]) -> bool:
    return bool({"persistentVolumeClaim", "ephemeral"} & volume.keys())
