"""A trial of slurmdbd.conf: a disposable pod in which a slurmdbd reads it before the running one does.

The pod is slurmdbd's next one, by its template, without everything that could affect the real one: no claim, no key, no
password, no other container. Its slurmdbd has accepted the file once it looks for a database, which it does not find
(`slurm.accounting.trial_conf`). Like a preflight it leaves its result in the termination message of its container.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.daemons.shared_objects import CONFIG_MODE
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.pods import container_of, is_claim
from slinky_operator.cluster.trials.scripts import KEYS, WATCH, started
from slinky_operator.identity import pod as identity
from slinky_operator.slurm import naming
from slinky_operator.slurm.accounting.slurmdbd_conf import RUN_FOLDER, SLURMDBD_CONF
from slinky_operator.slurm.accounting.trial_conf import FOLDER, GIVEN, REACHED

_KEPT: Final = ("name", "image", "imagePullPolicy", "envFrom", "securityContext")
_OWN_VARIABLES: Final = frozenset({"SLURM_SACK_KEY", "SLURM_SACK_JWKS", "CONF_VERSION"})
_OWN_VOLUMES: Final = frozenset({"config", "slurmdbd-conf", "keys", "run", "tmp"}) | identity.VOLUMES
"""Volumes of slurmdbd's pod that the operator generates."""

_GIVEN: Final = "given"
"""Volume of the file that is tried."""

_FOLDERS: Final = {"config": naming.CONF_FOLDER, "run": naming.RUN_FOLDER, "tmp": "/tmp", "trial": FOLDER}  # noqa: S108

_SCRIPT: Final = f"""\
umask 077
mkdir -p {RUN_FOLDER} && cd {FOLDER} || exit 2
{KEYS} || exit 2
install -m 0600 {GIVEN}/{SLURMDBD_CONF} {naming.CONF_FOLDER}/{SLURMDBD_CONF} || exit 2
{started("slurmdbd")}
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
    data = {SLURMDBD_CONF: text}
    return pods.objects(
        cluster, pods.SLURMDBD_CONF, _spec(template), identity={"data": data}, note="true", data=data, volume=_GIVEN
    )


def unmounted(template: Mapping[str, Any]) -> frozenset[str]:
    """Folders of slurmdbd's next pod that are on claims, which its trial does not mount."""
    claims = {one["name"] for one in template.get("volumes") or () if is_claim(one)}
    return frozenset(
        one["mountPath"]
        for one in container_of(template, naming.ACCOUNTING_CONTAINER).get("volumeMounts") or ()
        if one["name"] in claims
    )


def is_judged(template: Mapping[str, Any]) -> bool:
    """Whether slurmdbd can be tried alone: no container of the user's prepares what it needs."""
    return all(one["name"] == identity.SSSD for one in template.get("initContainers") or ())


def _spec(template: Mapping[str, Any]) -> dict[str, Any]:
    own = container_of(template, naming.ACCOUNTING_CONTAINER)
    volumes = [one for one in template.get("volumes") or () if one["name"] not in _OWN_VOLUMES and not is_claim(one)]
    there = {one["name"] for one in volumes}
    mounts = [one for one in own.get("volumeMounts") or () if one["name"] in there]
    variables = [one for one in own.get("env") or () if one["name"] not in _OWN_VARIABLES]
    container = {
        **{key: own[key] for key in _KEPT if key in own},
        **pods.running(_SCRIPT),
        "env": [{"name": "SLURM_SACK_KEY", "value": f"{FOLDER}/{naming.SLURM_KEY}"}, *variables],
        "volumeMounts": [
            *({"name": name, "mountPath": folder} for name, folder in _FOLDERS.items()),
            {"name": _GIVEN, "mountPath": GIVEN, "readOnly": True},
            *mounts,
        ],
    }
    return {
        **pods.of_template(template),
        "containers": [container],
        "volumes": [
            *({"name": name, "emptyDir": {"sizeLimit": "16Mi"}} for name in _FOLDERS),
            {"name": _GIVEN, "configMap": {"name": "", "defaultMode": CONFIG_MODE}},
            *volumes,
        ],
    }
