"""The table of the fields of Slinky's kinds of 0.4 to 1.3, and what each becomes."""

from __future__ import annotations

from typing import Any, Final

from slinky_operator.conversion.rules import (
    OFF,
    At,
    Table,
    flag,
    lines,
    lost,
    lost_unless,
    mapping,
    needless,
    reference,
    references,
    text,
    to,
)
from slinky_operator.conversion.tables import slurm as slurm_table
from slinky_operator.conversion.tables.slurm import LOGS, RECONFIGURES, SCRIPT_REFS

METADATA: Final = {
    "labels": ("app.kubernetes.io/", "helm.sh/", "nodeset.slinky.slurm.net/", "slinky.slurm.net/"),
    "annotations": ("meta.helm.sh/", "kubectl.kubernetes.io/", "helm.sh/"),
}
"""Labels and annotations of an object that helm, kubectl and Slinky's operator have written."""

_CLUSTER: Final = needless("the Cluster of this conversion")
_KEYS: Final = needless("slurmdbd has the keys of the Cluster")


def _pod_spec(value: Any, at: At) -> object:
    found = mapping(value, at)
    assert isinstance(found, dict)  # noqa: S101 `mapping` says so
    # A host name ending in a dash names Slurm's nodes; here they are named after the NodeSet, which has taken the name.
    return {key: one for key, one in found.items() if key != "hostname"}


def _pod_metadata(value: Any, at: At) -> object:
    found = mapping(value, at)
    assert isinstance(found, dict)  # noqa: S101 `mapping` says so
    made = {
        name: {key: one for key, one in texts.items() if not key.startswith(METADATA.get(name, ()))}
        for name, texts in found.items()
        if isinstance(texts, dict)
    }
    return {name: texts for name, texts in made.items() if texts}


def _template(scope: str) -> Table:
    own = "without what helm has written"
    return {
        "metadata": to(f"{scope}.template.metadata", _pod_metadata, own),
        "spec": to(f"{scope}.template.spec", _pod_spec),
    }


def _only(names: tuple[str, ...], table: Table) -> Table:
    return {name: table[name] for name in names}


CONTROLLER: Final[Table] = {
    "clusterName": to("cluster.clusterName", text),
    "extraConf": to("cluster.extraConf", lines),
    "slurmKeyRef": to("cluster.auth.slurmKeyRef", reference("slurm.key")),
    "jwtKeyRef": to("cluster.auth.jwtKeyRef", reference("jwt.key")),
    "jwtHs256KeyRef": to("cluster.auth.jwtKeyRef", reference("jwt_hs256.key")),
    "jwksKeyRef": to("cluster.auth.jwksRef", reference("jwks.json")),
    **{name: to(f"cluster.{name}", references) for name in (*SCRIPT_REFS, "configFileRefs")},
    **_only(
        ("slurmctld", "external", "externalConfig", "persistence", "service", "metrics", "ha"), slurm_table.CONTROLLER
    ),
    "template": _template("cluster.controller"),
    "accountingRef": needless("cluster.accounting has it"),
    "reconfigure": RECONFIGURES,
    "inplaceReconfigure": RECONFIGURES,
    "logfile": LOGS,
}

RESTAPI: Final[Table] = {
    "controllerRef": _CLUSTER,
    **_only(("replicas", "service", "slurmrestd"), slurm_table.RESTAPI),
    "template": _template("cluster.restapi"),
}

ACCOUNTING: Final[Table] = {
    **_only(
        ("external", "externalConfig", "extraConf", "service", "slurmdbd", "storageConfig"), slurm_table.ACCOUNTING
    ),
    "template": _template("cluster.accounting"),
    "slurmKeyRef": _KEYS,
    "jwtKeyRef": _KEYS,
    "jwtHs256KeyRef": _KEYS,
    "jwksKeyRef": _KEYS,
    "initconf": needless("slurmdbd.conf is mounted"),
}

LOGINSET: Final[Table] = {
    "controllerRef": _CLUSTER,
    **_only(("replicas", "rootSshAuthorizedKeys", "extraSshdConfig", "sssdConfRef", "service"), slurm_table.LOGIN),
    **_only(("login", "strategy", "initconf"), slurm_table.LOGIN),
    "template": _template("login"),
}


NODESET: Final[Table] = {
    "controllerRef": _CLUSTER,
    **_only(
        (
            *("replicas", "scalingMode", "slurmd", "partition", "extraConf", "minReadySeconds", "revisionHistoryLimit"),
            *("volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy", "updateStrategy", "ordinalPadding"),
            *("pinToNode", "workloadDisruptionProtection", "oversubscribeNode", "pruneSlurmNodeRecords"),
            *("taintKubeNodes", "useResourceLimits"),
        ),
        slurm_table.NODESET,
    ),
    "ssh": {
        "enabled": lost_unless(OFF, why=slurm_table.SSH_TO_NODES, because="off"),
        "extraSshdConfig": lost(slurm_table.SSHD_OF_NODES),
        "sssdConfRef": to("cluster.identity.sssd.confRef", reference("sssd.conf")),
    },
    "logfile": LOGS,
    "template": _template("nodeset"),
}


def _secret_ref(value: Any, at: At) -> object:
    return reference("auth-token")(value, at)


TOKEN: Final[Table] = {
    "jwtKeyRef": _CLUSTER,
    "jwtHs256KeyRef": _CLUSTER,
    "username": to("token.username", text),
    "lifetime": to("token.lifetime", text),
    "refresh": to("token.refresh", flag),
    "secretRef": to("token.secretRef", _secret_ref),
}

KINDS: Final[dict[str, Table]] = {
    "Controller": CONTROLLER,
    "RestApi": RESTAPI,
    "Accounting": ACCOUNTING,
    "LoginSet": LOGINSET,
    "NodeSet": NODESET,
    "Token": TOKEN,
}
"""The fields of `spec`, by kind."""

WRITTEN_BY_KUBERNETES: Final = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"}
    | {"finalizers", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"}
)
"""Metadata that no manifest has."""
