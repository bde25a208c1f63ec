"""What login pods need of their Cluster and of Secrets, and what is missing. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.loginset import names
from slinky_operator.loginset.bodies import host_keys, pod
from slinky_operator.loginset.bodies.slurm_access import Slurm
from slinky_operator.loginset.observe import Snapshot
from slinky_operator.slurm import naming


@dataclass(frozen=True, slots=True)
class LoginTrouble:
    """Why a LoginSet is not as its spec asks."""

    reason: Reason
    message: str
    waits: bool = False
    """Whether nobody need do anything: it passes."""


@dataclass(frozen=True, slots=True)
class HostKeys:
    """The SSH host keys."""

    names: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    missing: bool = False
    """Whether they are to be generated."""
    trouble: LoginTrouble | None = None


_NO_SECRET: Final = "create it, or change the field"  # noqa: S105


def slurm(snapshot: Snapshot) -> Slurm | LoginTrouble:
    """Find the key and the address of slurmctld, or say what is missing."""
    if snapshot.cluster is not None:
        return _of_cluster(snapshot, snapshot.cluster)
    name = snapshot.loginset.spec.cluster_name
    if snapshot.invalid_cluster:
        return LoginTrouble(Reason.CLUSTER_UNSUITABLE, f"Cluster {name} is invalid: {snapshot.invalid_cluster}")
    advice = "create it, or delete this LoginSet: clusterName cannot be changed"
    return LoginTrouble(Reason.CLUSTER_NOT_FOUND, f"there is no Cluster {name} in this namespace; {advice}")


def authorized_keys(snapshot: Snapshot) -> LoginTrouble | None:
    """Say if the Secret with the SSH keys of users is missing: pods would wait for it."""
    ref = snapshot.loginset.spec.authorized_keys_ref
    if ref is None:
        return None
    source = snapshot.secrets.get(ref.name)
    if source is not None and source.exists:
        return None
    return LoginTrouble(Reason.SECRET_NOT_FOUND, f"spec.authorizedKeysRef: there is no Secret {ref.name}; {_NO_SECRET}")


def ssh_host_keys(snapshot: Snapshot) -> HostKeys:
    """Find the SSH host keys, or say what is wrong with them; generated ones are never replaced silently."""
    loginset = snapshot.loginset
    name, generated = pod.host_key_secret(loginset), loginset.spec.ssh_host_keys_ref is None
    source, known = snapshot.secrets.get(name), loginset.status.host_keys
    if source is None or not source.exists:
        if not generated:
            why = f"spec.sshHostKeysRef: there is no Secret {name}; {_NO_SECRET}"
            return HostKeys(fingerprints=known, trouble=LoginTrouble(Reason.SECRET_NOT_FOUND, why))
        accepted = loginset.metadata.annotations.get(labels.ANNOTATION_NEW_HOST_KEYS)
        if not known or accepted in known:
            return HostKeys(missing=True)
        why = (
            f"Secret {name} with the SSH host keys ({', '.join(known)}) has been deleted; running pods still have "
            "them. Restore it; or have new ones generated, which every user's ssh will warn of: "
            f"kubectl -n {loginset.namespace} annotate loginset {loginset.name} "
            f"{labels.ANNOTATION_NEW_HOST_KEYS}={known[0]}"
        )
        return HostKeys(fingerprints=known, trouble=LoginTrouble(Reason.HOST_KEYS_LOST, why))
    found = host_keys.names(source.data)
    if not found:
        why = f"Secret {name} has no SSH host key; it needs ssh_host_ed25519_key, ssh_host_rsa_key or another one"
        return HostKeys(fingerprints=known, trouble=LoginTrouble(Reason.SECRET_KEY_NOT_FOUND, why))
    try:
        return HostKeys(found, host_keys.fingerprints(source.data))
    except host_keys.UnusableKeyError as error:
        why = f"Secret {name}: {error}"
        return HostKeys(found, known, trouble=LoginTrouble(Reason.SECRET_INVALID, why))


def taken(snapshot: Snapshot) -> LoginTrouble | None:
    """Say if an object of a name that is needed has another owner."""
    for obj in (snapshot.deployment, snapshot.service, snapshot.config_map, snapshot.budget):
        if obj is not None and not is_ours(obj, snapshot.loginset.name):
            message = (
                f"{obj['kind']} {names.workload(snapshot.loginset.name)} has another owner and is not changed; "
                "create the LoginSet under another name"
            )
            return LoginTrouble(Reason.NAME_CONFLICT, message)
    return None


def is_ours(obj: object, name: str) -> bool:
    """Whether an object is a LoginSet's of this name."""
    found = obj["metadata"].get("labels") or {} if isinstance(obj, dict) else {}
    return bool(
        found.get(labels.LABEL_LOGINSET_NAME) == name and found.get(labels.LABEL_APP_MANAGED_BY) == labels.MANAGED_BY
    )


def _of_cluster(snapshot: Snapshot, cluster: Cluster) -> Slurm | LoginTrouble:
    name = cluster.name
    key, server = naming.mounted_key(cluster), naming.conf_server(cluster)
    if key is None or server is None:
        lacks = " and ".join(
            field for field, found in (("auth.slurmKeyRef", key), ("controller.external", server)) if found is None
        )
        message = f"the Slurm of Cluster {name} runs elsewhere; login pods need {lacks} in its spec"
        return LoginTrouble(Reason.CLUSTER_UNSUITABLE, message)
    if cluster.deleting:
        return LoginTrouble(Reason.CLUSTER_NOT_READY, f"Cluster {name} is being deleted", waits=True)
    source = snapshot.secrets.get(key.secret)
    if source is None or not source.exists or not source.data.get(key.key, b"").strip():
        what = f"key {key.key} of Secret {key.secret}, the key of auth/slurm of Cluster {name}, does not exist"
        if key.generated:
            return LoginTrouble(Reason.CLUSTER_NOT_READY, f"{what} yet; the Cluster's conditions say why", waits=True)
        return LoginTrouble(Reason.SECRET_NOT_FOUND, f"{what}; {_NO_SECRET}")
    config = cluster.status.config
    if not cluster.spec.external and (config is None or not config.applied_hash) and snapshot.deployment is None:
        message = f"waits for the first configuration of Cluster {name}; see the Cluster's conditions"
        return LoginTrouble(Reason.CLUSTER_NOT_READY, message, waits=True)
    return Slurm(key, server)
