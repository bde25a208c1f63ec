"""Names of everything that belongs to a Cluster: objects, host names, ports, paths, users.

All controllers read names from here, so that a slurmd pod finds its slurmctld although no controller knows another.
Where the user names an object of their own (`auth.slurmKeyRef` and the like), that name wins.

Lengths: the API holds the name of a managed Cluster to 40 characters; with the longest suffix here, that of preflights,
every name stays a DNS label, and so does `<cluster>-controller-0`, which is a host name. The label
`controller-revision-hash`, which Kubernetes makes of a StatefulSet's name, stays within its 63 characters too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.containers import components
from slinky_api.v1alpha1.cluster.kind import Cluster

# Ports

SLURMCTLD_PORT: Final = 6817
SLURMD_PORT: Final = 6818
SLURMDBD_PORT: Final = 6819
SLURMRESTD_PORT: Final = 6820
MARIADB_PORT: Final = 3306
AGENT_PORT: Final = 6880
"""Where the agent beside slurmctld tells what is mounted."""

EXPORTER_PORT: Final = 8080
"""Where the exporter serves metrics."""

JOB_LOGS_PORT: Final = 6881
"""Where the server beside slurmd serves output of jobs."""

KEY_PROOF_PORT: Final = 6882
"""Where the program beside sackd tells which keys sackd has."""

SRUN_PORTS: Final = (60001, 60063)
"""`SrunPortRange`: where srun listens for the steps it started, first and last."""

MAINTENANCE_PREFIX: Final = "slurm-operator-"
"""Of the names of reservations for maintenance windows, which the operator makes and follows its nodes with."""

# Users and groups

SLURM_UID: Final = 64030
"""User and group `slurm` of the Debian packages: slurmctld, slurmdbd, sackd."""

MYSQL_UID: Final = 999
"""User and group `mysql` of the image of MariaDB."""

NOBODY: Final = 65534
"""User and group of slurmrestd, which runs neither as root nor as SlurmUser."""

# Paths inside pods

CONF_FOLDER: Final = "/etc/slurm"
"""Configuration."""

KEY_FOLDER: Final = "/etc/slurm-keys"
"""Keys, in slurmctld's pod: separate from the configuration, which may be shown to readers without access to keys."""

RUN_FOLDER: Final = "/run"
"""Pid files and sockets."""

STATE_FOLDER: Final = "/var/spool/slurmctld"
"""`StateSaveLocation`."""

SLURMCTLD_PID: Final = "/run/slurmctld.pid"
"""`SlurmctldPidFile`."""

SLURMCTLD_LOG: Final = "/proc/1/fd/2"
"""`SlurmctldLogFile`: the container's output, where a daemon, which has given its own away, still finds it."""

SPOOL_FOLDER: Final = "/var/spool/slurmd"
"""`SlurmdSpoolDir`."""

JOB_OUTPUT_FOLDER: Final = "/var/spool/job-output"
"""Where jobs write what the server beside slurmd serves."""

JOB_LOGS_KEY: Final = "key"
"""The key of tokens for that server: its name in our Secret, and as a file."""

SLURM_KEY: Final = "slurm.key"
"""The key of auth/slurm: its name in our Secret, and as a file in `CONF_FOLDER`."""

SLURM_JWKS: Final = "slurm.jwks"
"""The same as a key set, in which keys can be replaced one after the other."""

JWT_KEY: Final = "jwt.key"
"""The HS256 key of auth/jwt: its name in our Secret, and as a file in `CONF_FOLDER`."""

SIGNING_KEY: Final = "signing.pem"
"""The private key of tokens: its name in the user's Secret and in the copy. It is in no pod."""

JWKS_OF_USERS: Final = "jwks.json"
"""The default key of the ConfigMap with public keys of other issuers."""

JWT_KEY_OF_USERS: Final = "jwt_hs256.key"
"""Its name in a Secret of the user's that names no key."""

CONTROLLER_CONTAINER: Final = "slurmctld"
AGENT_CONTAINER: Final = "agent"
SLURMD: Final = "slurmd"
"""What slurmd pods say of themselves in `LABEL_DAEMON`."""

JOB_LOGS_CONTAINER: Final = "job-logs"
KEY_PROOF_CONTAINER: Final = "key-proof"
RESTAPI_CONTAINER: Final = "slurmrestd"
ACCOUNTING_CONTAINER: Final = "slurmdbd"
DATABASE_CONTAINER: Final = "mariadb"

EXPORTER_CONTAINER: Final = "exporter"

# Values of `app.kubernetes.io/component`

_OF_DAEMONS: Final = components()

COMPONENT_CONTROLLER: Final = _OF_DAEMONS[CONTROLLER_CONTAINER]
COMPONENT_RESTAPI: Final = _OF_DAEMONS[RESTAPI_CONTAINER]
COMPONENT_CONFIG: Final = "config"
COMPONENT_AUTH: Final = "auth"
COMPONENT_PREFLIGHT: Final = "preflight"
COMPONENT_LOGIN: Final = "login"
COMPONENT_ACCOUNTING: Final = _OF_DAEMONS[ACCOUNTING_CONTAINER]
COMPONENT_DATABASE: Final = _OF_DAEMONS[DATABASE_CONTAINER]
COMPONENT_EXPORTER: Final = _OF_DAEMONS[EXPORTER_CONTAINER]


POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
"""Set by Kubernetes on each pod of a StatefulSet."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where a key is kept, and which file it becomes."""

    secret: str
    """Name of the Secret, in the Cluster's namespace."""

    key: str
    """Key within it."""

    file: str
    """Name of the file it is to be mounted as, in `CONF_FOLDER`."""

    generated: bool
    """Whether the operator makes it; otherwise it is the user's, and may be missing."""

    @property
    def staged(self) -> bool:
        """Whether pods mount what the operator has accepted of it: all keys of auth/slurm but a generated single one.

        Pods of earlier operators mount that one directly, and it never changes.
        """
        return not self.generated or self.file == SLURM_JWKS


def daemon(cluster: str, component: str) -> str:
    """Name of the objects of a daemon, by the value of `app.kubernetes.io/component`."""
    return f"{cluster}-{component}"


def controller(cluster: str) -> str:
    """Name of the StatefulSet of slurmctld and of its headless Service."""
    return daemon(cluster, COMPONENT_CONTROLLER)


def controller_outside(cluster: str) -> str:
    """Name of the Service by which slurmctld is reached from outside Kubernetes."""
    return f"{controller(cluster)}-outside"


def controller_metrics(cluster: str) -> str:
    """Name of the Service by which Prometheus reaches slurmctld, and of its ServiceMonitor."""
    return f"{controller(cluster)}-metrics"


def controller_pod(cluster: str) -> str:
    """Name of slurmctld's pod, which is its host name too."""
    return f"{controller(cluster)}-0"


def controller_host(cluster: str, namespace: str) -> str:
    """Host name under which slurmctld is found from every pod, whatever the cluster's domain is called.

    It ends in `.svc`: the search list that the kubelet writes into each pod's resolv.conf adds the domain.
    """
    return f"{controller_pod(cluster)}.{controller(cluster)}.{namespace}.svc"


def restapi(cluster: str) -> str:
    """Name of the Deployment of slurmrestd and of its Service."""
    return daemon(cluster, COMPONENT_RESTAPI)


def restapi_url(cluster: str, namespace: str) -> str:
    """Base URL of a managed Cluster's slurmrestd."""
    return f"http://{restapi(cluster)}.{namespace}.svc:{SLURMRESTD_PORT}"


def exporter(cluster: str) -> str:
    """Name of the exporter's Deployment and Service, of its Token, and of the ConfigMap with certificates."""
    return daemon(cluster, COMPONENT_EXPORTER)


def exporter_metrics(cluster: str) -> str:
    """Name of the exporter's ServiceMonitor, and of the Service that this selects."""
    return f"{exporter(cluster)}-metrics"


def login_set(cluster: str, name: str) -> str:
    """Name of the LoginSet of an entry of `spec.login`."""
    return f"{cluster}-{name}"


def accounting(cluster: str) -> str:
    """Name of the StatefulSet of slurmdbd, of its Service, and of the Secret with slurmdbd.conf."""
    return daemon(cluster, COMPONENT_ACCOUNTING)


def accounting_host(cluster: str, namespace: str) -> str:
    """Host name under which slurmdbd is found from every pod, whatever the cluster's domain is called."""
    return f"{accounting(cluster)}.{namespace}.svc"


def database(cluster: str) -> str:
    """Name of the StatefulSet of MariaDB, of its Service, and of the Secret with the statements it starts with."""
    return daemon(cluster, COMPONENT_DATABASE)


def database_host(cluster: str, namespace: str) -> str:
    """Host name under which slurmdbd finds MariaDB."""
    return f"{database(cluster)}.{namespace}.svc"


def database_password(cluster: str) -> str:
    """Name of the Secret with the generated password of slurmdbd's database account."""
    return f"{database(cluster)}-password"


def config(cluster: str) -> str:
    """Name of the ConfigMap with slurm.conf and its family."""
    return f"{cluster}-config"


def good_config(cluster: str) -> str:
    """Name of the ConfigMap with the last configuration that slurmctld has loaded."""
    return f"{cluster}-config-good"


def users(cluster: str) -> str:
    """Name of the ConfigMap with the users of `identity.passwd`, as daemons read them."""
    return f"{cluster}-users"


def preflight(cluster: str, digest: str) -> str:
    """Name of the pod that tries a configuration, and of its ConfigMap."""
    return f"{cluster}-preflight-{digest}"


def children(cluster: str) -> frozenset[str]:
    """Names of all objects that the operator makes for a Cluster, but for those of preflights and keys."""
    others = (controller_outside, controller_metrics, exporter_metrics, config, good_config, users, node_service)
    return frozenset(
        (
            *(daemon(cluster, component) for component in components().values()),
            *(make(cluster) for make in (*others, disruption_budget)),
        )
    )


def is_child(cluster: str, name: str) -> bool:
    """Whether the operator makes an object of this name; a copy that somebody has made of one has another."""
    return name in children(cluster) or is_preflight(cluster, name)


def is_preflight(cluster: str, name: str) -> bool:
    """Whether a name can be that of a preflight."""
    return name.startswith(preflight(cluster, ""))


def slurm_key_secret(cluster: str) -> str:
    """Name of the Secret with the generated key of auth/slurm."""
    return f"{cluster}-auth-slurm"


def jwt_key_secret(cluster: str) -> str:
    """Name of the Secret with the generated key of auth/jwt."""
    return f"{cluster}-auth-jwt"


def key_copy(cluster: str) -> str:
    """Name of the Secret with the keys that the daemons run with, whatever becomes of the others."""
    return f"{cluster}-auth-copy"


def accepted_key(cluster: str) -> str:
    """Name of the Secret from which pods mount the key of auth/slurm if the user has given it."""
    return f"{cluster}-auth-accepted"


def job_logs_key(cluster: str) -> str:
    """Name of the Secret with the key of tokens for output of jobs."""
    return f"{cluster}-job-logs"


HOST_KEYS_SUFFIX: Final = "-ssh-host-keys"
"""End of the name of the Secret with the host keys of a LoginSet."""


def key_secrets(cluster: str) -> tuple[str, ...]:
    """Names of the Secrets with keys that the operator makes for a Cluster."""
    return slurm_key_secret(cluster), jwt_key_secret(cluster), key_copy(cluster), accepted_key(cluster)


def generated_secrets(cluster: str) -> tuple[str, ...]:
    """Names of the Secrets that the operator makes for a Cluster."""
    return (*key_secrets(cluster), *(make(cluster) for make in (database_password, database, accounting)))


def node_service(cluster: str) -> str:
    """Name of the headless Service all slurmd pods of a Cluster share, so that they find each other by name."""
    return f"{cluster}-nodes"


def disruption_budget(cluster: str) -> str:
    """Name of the PodDisruptionBudget over all slurmd pods of a Cluster that may hold jobs."""
    return f"{cluster}-jobs"


def slurm_key(cluster: Cluster) -> KeySource | None:
    """Where the key of auth/slurm is; `None` for a Cluster elsewhere that does not say."""
    ref = cluster.spec.auth.slurm_key_ref
    if ref is not None:
        key = ref.key or SLURM_KEY
        return KeySource(ref.name, key, SLURM_JWKS if key.endswith(".jwks") else SLURM_KEY, generated=False)
    if cluster.spec.external:
        return None
    file = cluster.status.slurm_key_file or SLURM_KEY
    return KeySource(slurm_key_secret(cluster.name), file, file, generated=True)


def mounted_key(cluster: Cluster) -> KeySource | None:
    """Where pods mount the key of auth/slurm from.

    Not from a Secret that may hold a key that daemons must not have: the operator writes the one that it has accepted
    into a Secret of its own, as the file that daemons have, until they get another. For a Slurm elsewhere it accepts
    nothing, and mounts what the user gives.
    """
    key = slurm_key(cluster)
    if key is None or not key.staged or cluster.spec.external:
        return key
    file = cluster.status.slurm_key_file or key.file
    return KeySource(accepted_key(cluster.name), file, file, generated=True)


def jwt_key(cluster: Cluster) -> KeySource | None:
    """Where the HS256 key of auth/jwt is; `None` for a Cluster elsewhere that gives a token instead."""
    ref = cluster.spec.auth.jwt_key_ref
    if ref is not None:
        return KeySource(ref.name, ref.key or JWT_KEY_OF_USERS, JWT_KEY, generated=False)
    if cluster.spec.external:
        return None
    return KeySource(jwt_key_secret(cluster.name), JWT_KEY, JWT_KEY, generated=True)


def signing_key(cluster: Cluster) -> KeySource | None:
    """Where the private key of tokens is; `None` if they are signed with the key of auth/jwt."""
    ref = cluster.spec.auth.signing_key_ref
    if ref is None or cluster.spec.external:
        return None
    return KeySource(ref.name, ref.key or SIGNING_KEY, SIGNING_KEY, generated=False)


def conf_server(cluster: Cluster) -> str | None:
    """`host:port` that `slurmd --conf-server` asks for its configuration.

    `None` for a Cluster elsewhere that does not say where its slurmctld is (`controller.external`).
    """
    if not cluster.spec.external:
        return f"{controller_host(cluster.name, cluster.namespace)}:{SLURMCTLD_PORT}"
    endpoint = cluster.spec.controller.external
    if endpoint is None:
        return None
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port or SLURMCTLD_PORT}"


def server(cluster: Cluster) -> str:
    """Base URL of a Cluster's slurmrestd, without a slash at its end."""
    if cluster.spec.server is not None:
        return cluster.spec.server.rstrip("/")
    return restapi_url(cluster.name, cluster.namespace)


def slurmd_labels(cluster: str) -> dict[str, str]:
    """What all slurmd pods of a Cluster have in common, and no other pod has.

    Not the Cluster's uid: pods outlive a Cluster that is deleted and created again under its name.
    """
    return {labels.LABEL_CLUSTER_NAME: cluster, labels.LABEL_DAEMON: SLURMD}


def common_labels(cluster: Cluster, component: str) -> dict[str, str]:
    """Labels of every object that belongs to a Cluster, its daemons' pods apart; the uid decides on ownership."""
    return {
        **pod_labels(cluster, component),
        labels.LABEL_CLUSTER_UID: cluster.uid,
    }


def controller_selector(cluster: Cluster) -> dict[str, str]:
    """What the Service of slurmctld selects by: the one pod of that name, whatever labels others are given."""
    return {**selector_labels(cluster, COMPONENT_CONTROLLER), POD_NAME_LABEL: controller_pod(cluster.name)}


def restapi_selector(cluster: Cluster) -> dict[str, str]:
    """What the Service of slurmrestd selects by."""
    return {**selector_labels(cluster, COMPONENT_RESTAPI), labels.LABEL_DAEMON: RESTAPI_CONTAINER}


def pod_labels(cluster: Cluster, component: str) -> dict[str, str]:
    """Labels of the pods of daemons: without the uid, which tells slurmd pods from them."""
    return {
        **selector_labels(cluster, component),
        labels.LABEL_APP_PART_OF: "slurm",
        labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY,
    }


def selector_labels(cluster: Cluster, component: str) -> dict[str, str]:
    """What the pods of a daemon are selected by; selectors cannot be changed later.

    `app.kubernetes.io/instance` is left out everywhere: Argo CD takes objects that carry the name of one of its
    applications there for its own, and deletes those that are not in its repository.
    """
    return selector_labels_of(cluster.name, component)


def selector_labels_of(cluster: str, component: str) -> dict[str, str]:
    """The same, by the name of the Cluster."""
    return {
        labels.LABEL_APP_NAME: "slurm",
        labels.LABEL_APP_COMPONENT: component,
        labels.LABEL_CLUSTER_NAME: cluster,
    }
