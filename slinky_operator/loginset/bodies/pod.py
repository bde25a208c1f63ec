"""The template of a login pod: sackd as a sidecar, and the container that people log in to. Pure.

sackd alone has Slurm's key. It runs as slurm's user in root's group, which is the group of mounted keys: a volume's
`fsGroup` would change the owner of everything in users' homes. The login container mounts /run/slurm read-only, so that
nobody there can put another socket in sackd's place.

sshd is root without the capability to read everybody's files; what users may do is up to them, and no program makes
them root (`allowPrivilegeEscalation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.loginset import LoginSet
from slinky_operator.identity import homes
from slinky_operator.identity import pod as identity
from slinky_operator.identity.pod import SssdImage
from slinky_operator.loginset import names
from slinky_operator.loginset.bodies.slurm_access import Slurm
from slinky_operator.loginset.bodies.sshd_config import HOST_KEY_FOLDER, PID_FILE, PORT
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import home_folders
from slinky_operator.slurm.naming import KeySource
from slinky_operator.slurm.pod_templates.template_rules import fitted
from slinky_operator.slurm.pod_templates.templates import RefusedFragment

GRACE: Final = timedelta(minutes=10)
LONGEST_GRACE: Final = timedelta(hours=24)

STOP_SECONDS: Final = 30
"""Seconds between the end of the grace time and SIGKILL."""

CAPABILITIES: Final = ("AUDIT_WRITE", "CHOWN", "SETGID", "SETUID", "SYS_CHROOT")
"""What sshd needs (measured): terminals are given to users and their logins recorded, sessions become theirs, and
strangers stay in an empty folder."""

CONFIG: Final = "login-config"
SCRIPTS: Final = "login-scripts"
USERS: Final = "login-users"
HOST_KEYS: Final = "login-host-keys"
KEY: Final = "slurm-key"
RUN: Final = "run"
RUN_SLURM: Final = "run-slurm"
TMP: Final = "tmp"
PAM: Final = "login-pam"

MOUNTED: Final = "/etc/slurm-login"

_OWN: Final = {
    names.SACKD: "Slurm's commands need it",
    names.KEY_PROOF: "without it no key of Slurm can be replaced",
}
"""Sidecars of the operator's, and what they are for."""

_SCHEDULING: Final = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "imagePullSecrets",
    "serviceAccountName",
    "runtimeClassName",
    "priorityClassName",
    "schedulerName",
)


def grace_of(loginset: LoginSet) -> int:
    """Seconds for which sessions may go on in a pod that is being removed."""
    wanted = loginset.spec.session_grace_period
    return int(min(GRACE if wanted is None else wanted, LONGEST_GRACE).total_seconds())


def template(
    loginset: LoginSet,
    cluster: Cluster,
    slurm: Slurm,
    image: Mapping[str, str],
    sssd: SssdImage,
    agent: Mapping[str, str],
) -> dict[str, Any]:
    """Build the template, with the user's own merged over it.

    Parameters
    ----------
    slurm
        What a pod needs to reach Slurm.
    image
        `image`, and `imagePullPolicy` if there is one.
    sssd
        The image of SSSD, for Clusters whose users are in a directory.
    agent
        `image` and `imagePullPolicy` of the program that proves which keys sackd has; empty without one.

    Raises
    ------
    RefusedFragment
        The user's template cannot be used.
    """
    spec = loginset.spec
    generated: dict[str, Any] = {
        "metadata": {
            "labels": pod_labels(loginset, cluster),
            "annotations": {"kubectl.kubernetes.io/default-container": names.LOGIN},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": grace_of(loginset) + STOP_SECONDS,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "affinity": {"podAntiAffinity": _apart(loginset)},
            "containers": [_login(loginset, image), _sackd(slurm.server, image)],
            "volumes": _volumes(loginset, slurm.key),
        },
    }
    generated["spec"] = _with_users(generated["spec"], cluster, sssd)
    if agent:
        generated["spec"]["initContainers"].append(_key_proof(agent))
    if names.has_address(loginset):
        generated["spec"]["hostname"] = names.workload(loginset.name)
    if home_folders.folder_of(cluster.spec):
        generated["spec"] = _making_homes(generated["spec"], image)
    given = spec.template or {}
    for field, advice in (
        ("terminationGracePeriodSeconds", "set sessionGracePeriod instead"),
        ("shareProcessNamespace", "would hide which sessions a pod has"),
    ):
        if (given.get("spec") or {}).get(field) not in {None, False}:
            raise RefusedFragment(f"spec.{field}", advice)
    merged = fitted(generated, given, names.LOGIN)
    sidecars = {container["name"]: container for container in merged["spec"].get("initContainers") or ()}
    for wanted in generated["spec"]["initContainers"]:
        name, found = wanted["name"], sidecars.get(wanted["name"], {})
        if name not in _OWN or all(found.get(field) == wanted[field] for field in ("command", "restartPolicy")):
            continue
        raise RefusedFragment(f"spec.initContainers[{name}]", f"is the operator's: {_OWN[name]}")
    return merged


def trial_spec(merged: Mapping[str, Any], config_annotation: str) -> dict[str, Any]:
    """The spec of a pod in which sshd checks a configuration, wherever login pods run.

    Parameters
    ----------
    merged
        The template of login pods.
    config_annotation
        The pod's annotation that has the text: no text of the user's is in a command.
    """
    spec = merged["spec"]
    login = next(one for one in spec["containers"] if one["name"] == names.LOGIN)
    host_keys = next(one for one in spec["volumes"] if one["name"] == HOST_KEYS)
    text = {"path": "sshd_config", "fieldRef": {"fieldPath": f"metadata.annotations['{config_annotation}']"}}
    script = f"chmod 0755 /run && mkdir -p /run/sshd && exec /usr/sbin/sshd -t -f {MOUNTED}/config/sshd_config"
    return {
        **{field: spec[field] for field in _SCHEDULING if spec.get(field)},
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 600,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                **{field: login[field] for field in ("image", "imagePullPolicy", "resources") if login.get(field)},
                "name": names.TRIAL,
                "command": ["sh", "-c", script],
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": _root(()),
                "volumeMounts": [
                    {"name": CONFIG, "mountPath": f"{MOUNTED}/config", "readOnly": True},
                    {"name": HOST_KEYS, "mountPath": HOST_KEY_FOLDER, "readOnly": True},
                    {"name": RUN, "mountPath": naming.RUN_FOLDER},
                ],
            }
        ],
        "volumes": [
            {"name": CONFIG, "downwardAPI": {"items": [text]}},
            host_keys,
            {"name": RUN, "emptyDir": {"medium": "Memory"}},
        ],
    }


def pod_labels(loginset: LoginSet, cluster: Cluster) -> dict[str, str]:
    """Labels of login pods."""
    return {**naming.pod_labels(cluster, names.COMPONENT), **names.labels_of(loginset)}


def host_key_secret(loginset: LoginSet) -> str:
    """Name of the Secret with the SSH host keys."""
    ref = loginset.spec.ssh_host_keys_ref
    return names.host_keys(loginset.name) if ref is None else ref.name


def _with_users(spec: Mapping[str, Any], cluster: Cluster, sssd: SssdImage) -> dict[str, Any]:
    """The same with the Cluster's users, whom sackd names to Slurm, and their homes; sackd becomes a sidecar."""
    merged = identity.attached(spec, cluster, (names.LOGIN, names.SACKD), sssd)
    merged = homes.attached(merged, cluster, (names.LOGIN,))
    sackd = [one for one in merged["containers"] if one["name"] == names.SACKD]
    others = [one for one in merged["containers"] if one["name"] != names.SACKD]
    return {**merged, "initContainers": [*(merged.get("initContainers") or ()), *sackd], "containers": others}


def _making_homes(spec: Mapping[str, Any], image: Mapping[str, str]) -> dict[str, Any]:
    """The same with a line in the image's files of PAM that makes a user's home when a session begins."""
    first = {
        "name": names.PAM,
        **image,
        "command": ["sh", f"{MOUNTED}/scripts/pam.sh"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": _root(()),
        "volumeMounts": [
            {"name": SCRIPTS, "mountPath": f"{MOUNTED}/scripts", "readOnly": True},
            {"name": PAM, "mountPath": "/pam"},
        ],
    }
    mount = {"name": PAM, "mountPath": "/etc/pam.d", "readOnly": True}
    return {
        **spec,
        "initContainers": [*spec["initContainers"], first],
        "containers": [
            {**one, "volumeMounts": [*one["volumeMounts"], mount]} if one["name"] == names.LOGIN else one
            for one in spec["containers"]
        ],
        "volumes": [
            *spec["volumes"],
            {"name": PAM, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        ],
    }


def _sackd(server: str, image: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": names.SACKD,
        **image,
        "restartPolicy": "Always",
        "command": ["sh", f"{MOUNTED}/scripts/sackd.sh", server],
        "env": [{"name": "RUNTIME_DIRECTORY", "value": f"{naming.RUN_FOLDER}/slurm"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "ports": [{"name": "sackd", "containerPort": naming.SLURMD_PORT, "protocol": "TCP"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": naming.SLURM_UID,
            "runAsGroup": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": SCRIPTS, "mountPath": f"{MOUNTED}/scripts", "readOnly": True},
            {"name": KEY, "mountPath": naming.CONF_FOLDER, "readOnly": True},
            {"name": RUN_SLURM, "mountPath": f"{naming.RUN_FOLDER}/slurm"},
        ],
    }


def _key_proof(agent: Mapping[str, str]) -> dict[str, Any]:
    """The program that asks sackd, for the operator, which keys it has; it ends after the sessions, as sackd does."""
    socket = f"{naming.RUN_FOLDER}/slurm/sack.socket"
    return {
        "name": names.KEY_PROOF,
        **agent,
        "restartPolicy": "Always",
        "command": ["python", "-m", "slinky_operator.agent.sack", socket, str(naming.KEY_PROOF_PORT)],
        "ports": [{"name": "key-proof", "containerPort": naming.KEY_PROOF_PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "5m", "memory": "24Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": naming.NOBODY,
            "runAsGroup": naming.NOBODY,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": RUN_SLURM, "mountPath": f"{naming.RUN_FOLDER}/slurm", "readOnly": True}],
    }


def _login(loginset: LoginSet, image: Mapping[str, str]) -> dict[str, Any]:
    ready = f'test -S {naming.RUN_FOLDER}/slurm/sack.socket && kill -0 "$(cat {PID_FILE})"'
    drain = ["sh", f"{MOUNTED}/scripts/drain.sh", str(grace_of(loginset))]
    container: dict[str, Any] = {
        "name": names.LOGIN,
        **image,
        "command": ["sh", f"{MOUNTED}/scripts/serve.sh"],
        "ports": [{"name": "ssh", "containerPort": PORT, "protocol": "TCP"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "readinessProbe": {"exec": {"command": ["sh", "-c", ready]}, "periodSeconds": 5, "timeoutSeconds": 10},
        "lifecycle": {"preStop": {"exec": {"command": drain}}},
        "securityContext": _root(CAPABILITIES),
        "volumeMounts": [
            {"name": CONFIG, "mountPath": f"{MOUNTED}/config", "readOnly": True},
            {"name": SCRIPTS, "mountPath": f"{MOUNTED}/scripts", "readOnly": True},
            {"name": USERS, "mountPath": f"{MOUNTED}/users", "readOnly": True},
            {"name": HOST_KEYS, "mountPath": HOST_KEY_FOLDER, "readOnly": True},
            {"name": RUN, "mountPath": naming.RUN_FOLDER},
            {"name": RUN_SLURM, "mountPath": f"{naming.RUN_FOLDER}/slurm", "readOnly": True},
            {"name": TMP, "mountPath": "/tmp"},  # noqa: S108 - of the pod
        ],
    }
    if loginset.spec.resources is not None:
        container["resources"] = loginset.spec.resources.to_dict()
    return container


def _root(capabilities: tuple[str, ...]) -> dict[str, Any]:
    """Security context of a container of root's, within the baseline Pod Security level."""
    dropped: dict[str, Any] = {"drop": ["ALL"]}
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {**dropped, "add": list(capabilities)} if capabilities else dropped,
    }


def _volumes(loginset: LoginSet, key: KeySource) -> list[dict[str, Any]]:
    config = names.workload(loginset.name)
    key_file = [{"key": key.key, "path": key.file}]
    return [
        {"name": CONFIG, "configMap": {"name": config, "items": _files("sshd_config", "root_authorized_keys")}},
        {"name": SCRIPTS, "configMap": {"name": config, "items": _files(*names.SCRIPTS, names.MAKE_HOME)}},
        {"name": HOST_KEYS, "secret": {"secretName": host_key_secret(loginset), "defaultMode": 0o400}},
        {"name": KEY, "secret": {"secretName": key.secret, "defaultMode": 0o440, "items": key_file}},
        {"name": RUN, "emptyDir": {"medium": "Memory"}},
        {"name": RUN_SLURM, "emptyDir": {"medium": "Memory"}},
        {"name": TMP, "emptyDir": {}},
        _users(loginset),
    ]


def _users(loginset: LoginSet) -> dict[str, Any]:
    ref = loginset.spec.authorized_keys_ref
    if ref is None:
        return {"name": USERS, "emptyDir": {}}
    return {"name": USERS, "secret": {"secretName": ref.name, "defaultMode": 0o400}}


def _files(*files: str) -> list[dict[str, str]]:
    return [{"key": name, "path": name} for name in files]


def _apart(loginset: LoginSet) -> dict[str, Any]:
    """Prefer another Node for each pod of a set."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {labels.LABEL_LOGINSET_NAME: loginset.name}},
    }
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}
