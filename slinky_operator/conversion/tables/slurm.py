"""The table of all values of Slinky's chart `slurm`, 0.1 to 1.3, and what each becomes.

`*` stands for any name. Values of defaults, of daemons that run elsewhere, and of all daemons at once need more than a
row: `values` has it.
"""

from __future__ import annotations

from typing import Any, Final

from slinky_operator.conversion.documents import Values
from slinky_operator.conversion.rules import (
    OFF,
    ON,
    At,
    Mismatch,
    Missed,
    Rule,
    Shape,
    Table,
    Take,
    WithoutEffect,
    authorized_keys,
    count,
    flag,
    image_of,
    items,
    lines,
    lost,
    lost_unless,
    mapping,
    missed_unless,
    named,
    needless,
    node_line,
    partition_line,
    pull_policy,
    reference,
    references,
    resources,
    text,
    to,
    words,
)
from slinky_operator.conversion.tables.daemons import (
    daemon,
    fixed_port,
    login_port,
    node_port,
    persistence,
    pod,
    security_context,
    service,
)
from slinky_operator.conversion.texts import Unconvertible

SCRIPTS: Final = ("prologScripts", "epilogScripts", "prologSlurmctldScripts", "epilogSlurmctldScripts")
SCRIPT_REFS: Final = ("prologScriptRefs", "epilogScriptRefs", "prologSlurmctldScriptRefs", "epilogSlurmctldScriptRefs")
OWN_SSHD_CONFIG: Final = ("Include", "Port", "Protocol", "Subsystem", "UsePAM")
"""Keys that the operator's sshd_config has, or that sshd no longer reads."""

NO_MUNGE: Final = needless("Slurm needs no munge here")
LOGS: Final = needless("the daemon logs to its pod")
RECONFIGURES: Final = needless("the operator applies a changed configuration")
SSSD: Final = "put it into a Secret, and name the Secret in cluster.identity.sssd.confRef ({name, key})"
SSH_TO_NODES: Final = (
    "write ssh: {} and confinement: Constrain into the NodeSet, and PrologFlags=Contain into cluster.extraConf; images "
    "of your own need sshd and pam_slurm_adopt (docs/login.md)"
)
SSHD_OF_NODES: Final = "sshd of nodes has fixed lines (docs/login.md)"
SCHEDULED: Final = "write a window with holdUpdates into cluster.maintenance (docs/maintenance.md)"
PRIORITY: Final = "template.spec.priorityClassName of each daemon and NodeSet"


def _sssd_text(value: Any, _: At) -> object:
    known = str(value)
    if "ldap.example.com" in known or "proxy_pam_target = sssd-shadowutils" in known:
        raise WithoutEffect("the example of Slinky's chart, which knows no users")
    raise Unconvertible(SSSD)


SSSD_CONF: Final = Rule(take=_sssd_text, why=SSSD, secret=True)


def _one_replica(program: str) -> Rule:
    return lost_unless(0, 1, why=f"{program} has one pod here", because=f"{program} has one pod")


def _endpoints(value: Any, _: At) -> object:
    pages = {one.get("path") for one in value if isinstance(one, dict)} if isinstance(value, list) else set()
    if pages == {f"/metrics/{page}" for page in ("jobs", "nodes", "partitions", "scheduler")}:
        raise WithoutEffect("the default, which the operator writes too")
    raise Unconvertible("the operator's ServiceMonitor has all pages; write one of your own for others")


def _not_external(_: Any, __: At) -> object:
    raise WithoutEffect("controller.external is not true")


METRICS: Final[Table] = {
    "enabled": to("cluster.metrics.enabled", flag),
    "serviceMonitor": {
        "enabled": to("cluster.metrics.serviceMonitor.enabled", flag),
        "labels": to("cluster.metrics.serviceMonitor.labels", words),
        "interval": to("cluster.metrics.serviceMonitor.interval", text),
        "scrapeTimeout": to("cluster.metrics.serviceMonitor.scrapeTimeout", text),
        "annotations": lost("the operator's ServiceMonitor has no annotations"),
        "endpoints": Rule(take=_endpoints, why="the operator's ServiceMonitor has all pages"),
    },
}

HA: Final[Table] = {
    "enabled": lost_unless(OFF, why="there is one slurmctld", because="off"),
    "backups": needless("a setting of controller.ha"),
}

CONTROLLER: Final[Table] = {
    **daemon("cluster.controller", "slurmctld"),
    "enabled": lost_unless(ON, why="name a Slurm elsewhere in cluster.server", because="a Cluster has a slurmctld"),
    "replicas": _one_replica("slurmctld"),
    "external": lost_unless(OFF, why="name slurmrestd's address in cluster.server", because="off"),
    "externalConfig": {
        "host": to("cluster.controller.external.host", _not_external),
        "port": to("cluster.controller.external.port", _not_external),
    },
    "extraConf": to("cluster.extraConf", lines),
    "extraConfMap": to("cluster.extraConf", lines),
    "persistence": persistence("cluster.controller"),
    "service": service("cluster.controller", fixed_port(6817, "slurmctld")),
    "servicePort": fixed_port(6817, "slurmctld"),
    "serviceNodePort": to("cluster.controller.service.spec.ports", node_port),
    "metrics": METRICS,
    "reconfigure": RECONFIGURES,
    "inplaceReconfigure": RECONFIGURES,
    "logfile": LOGS,
    "ha": HA,
}

RESTAPI: Final[Table] = {
    **daemon("cluster.restapi", "slurmrestd"),
    "enabled": lost_unless(ON, why="the operator needs slurmrestd", because="the operator needs slurmrestd"),
    "replicas": to("cluster.restapi.replicas", count),
    "service": service("cluster.restapi", fixed_port(6820, "slurmrestd")),
    "servicePort": fixed_port(6820, "slurmrestd"),
    "serviceNodePort": to("cluster.restapi.service.spec.ports", node_port),
    "pdb": {
        "enabled": lost_unless(OFF, why="write a PodDisruptionBudget of your own for slurmrestd", because="off"),
        "minAvailable": needless("a setting of restapi.pdb"),
        "maxUnavailable": needless("a setting of restapi.pdb"),
    },
}


def _database(path: str, take: Take = text) -> Rule:
    """A key of `accounting.external` of 0.1 to 0.3, in effect only if that is enabled."""

    def when_enabled(value: Any, at: At) -> object:
        if at.around.get("enabled") is not True:
            raise WithoutEffect("accounting.external is not enabled")
        return take(value, at)

    return to(path, when_enabled)


def _external(last: str, take: Take) -> Shape:
    """Host and port: those of a database if a user of it is named, as 0.3 has it, else those of a slurmdbd."""
    database = _database(f"cluster.accounting.database.{last}", take)
    slurmdbd = _database(f"cluster.accounting.external.{last}", take)
    return Shape(
        lambda _, at: database if {"user", "database", "secretName", "password"} & set(at.around) else slurmdbd
    )


def _password(_: Any, at: At) -> object:
    if at.around.get("enabled") is not True:
        raise WithoutEffect("accounting.external is not enabled")
    raise Unconvertible("put it into a Secret, and name the Secret in cluster.accounting.database.passwordRef")


EXTERNAL_ACCOUNTING: Final[Table] = {
    "enabled": needless("cluster.accounting.database or cluster.accounting.external says so"),
    "host": _external("host", text),
    "port": _external("port", count),
    "database": _database("cluster.accounting.database.name"),
    "user": _database("cluster.accounting.database.username"),
    "password": Rule(take=_password, why="cluster.accounting.database.passwordRef", secret=True),
    "secretName": _database("cluster.accounting.database.passwordRef", named("password")),
}

MARIADB_OF_SLINKY: Final[Values] = {
    "host": "mariadb",
    "port": 3306,
    "name": "slurm_acct_db",
    "username": "slurm",
    "passwordRef": {"name": "mariadb-password", "key": "password"},
}
"""The database that Slinky's charts expect from 0.4 on, where they run none."""

STORAGE: Final[Table] = {
    "host": to("cluster.accounting.database.host", text),
    "port": to("cluster.accounting.database.port", count),
    "database": to("cluster.accounting.database.name", text),
    "username": to("cluster.accounting.database.username", text),
    "passwordKeyRef": to("cluster.accounting.database.passwordRef", reference("password")),
}

IN_EXTERNAL: Final = needless("cluster.accounting.external is there if slurmdbd runs elsewhere")

ACCOUNTING: Final[Table] = {
    **daemon("cluster.accounting", "slurmdbd"),
    "enabled": to("cluster.accounting.enabled", flag),
    "replicas": _one_replica("slurmdbd"),
    "external": Shape(lambda value, _: EXTERNAL_ACCOUNTING if isinstance(value, dict) else IN_EXTERNAL),
    "externalConfig": {
        "host": to("cluster.accounting.external.host", text),
        "port": to("cluster.accounting.external.port", count),
    },
    "storageConfig": STORAGE,
    "extraConf": to("cluster.accounting.extraConf", lines),
    "extraConfMap": to("cluster.accounting.extraConf", lines),
    "service": service("cluster.accounting", fixed_port(6819, "slurmdbd")),
    "initconf": needless("slurmdbd.conf is mounted"),
}

_MARIADB: Final = "the MariaDB here is the operator's (cluster.accounting.mariadb), which has no such value"

MARIADB: Final[Table] = {
    "enabled": lost_unless(
        ON,
        OFF,
        why="true or false",
        because="without cluster.accounting.database the operator runs MariaDB",
    ),
    "auth": needless("the operator makes user, password and database"),
    "primary": {
        **pod("cluster.accounting.mariadb"),
        "resources": to("cluster.accounting.mariadb.resources", resources),
        "persistence": persistence("cluster.accounting.mariadb"),
        "configuration": lost("MariaDB has the configuration of its image; use a database of your own for another"),
        "*": lost(_MARIADB),
    },
    "nodeSelector": to("cluster.accounting.mariadb.template.spec.nodeSelector", mapping),
    "affinity": to("cluster.accounting.mariadb.template.spec.affinity", mapping),
    "resources": to("cluster.accounting.mariadb.resources", resources),
    "secondary": needless("there is one MariaDB"),
    "tls": {"*": lost_unless(OFF, why=_MARIADB, because="off")},
    "tde": {"*": lost_unless(OFF, why=_MARIADB, because="off")},
    "initdbScripts": lost(_MARIADB),
    "metrics": {
        "enabled": lost_unless(OFF, why=_MARIADB, because="off"),
        "serviceMonitor": {"*": lost_unless(OFF, why=_MARIADB, because="off")},
        "*": lost(_MARIADB),
    },
    "*": lost(_MARIADB),
}

_EXPORTER: Final = "cluster.metrics.exporter has no such value"

EXPORTER: Final[Table] = {
    "enabled": to("cluster.metrics.exporter.enabled", flag),
    "exporter": {
        "enabled": needless("slurm-exporter.enabled says so"),
        "secretName": needless("the exporter has a token of its own"),
        "affinity": to("cluster.metrics.exporter.template.spec.affinity", mapping),
        "nodeSelector": to("cluster.metrics.exporter.template.spec.nodeSelector", mapping),
        "tolerations": to("cluster.metrics.exporter.template.spec.tolerations", items),
        "priorityClassName": to("cluster.metrics.exporter.template.spec.priorityClassName", text),
        "resources": to("cluster.metrics.exporter.resources", resources),
        "replicas": _one_replica("the exporter"),
        "*": lost(_EXPORTER),
    },
    "*": lost(_EXPORTER),
}


NODE_PARTITION: Final[Table] = {
    "enabled": to("nodeset.partition.enabled", flag),
    "config": to("nodeset.partition.config", partition_line),
    "configMap": to("nodeset.partition.config", partition_line),
}


def _strategy(value: Any, at: At) -> object:
    if value == "ScheduledUpdate":
        raise Unconvertible(SCHEDULED)
    return text(value, at)


def _replicas(value: Any, at: At) -> object:
    if at.around.get("scalingMode") == "DaemonSet":
        raise WithoutEffect("with DaemonSet there is a pod on each matching Node")
    return count(value, at)


def _features(value: Any, _: At) -> object:
    if not isinstance(value, list | str):
        raise Mismatch("a list")
    return value.split(",") if isinstance(value, str) else value


def oversubscribed(value: Any, at: At) -> object:
    """Whether pods of slurmd may share a Node, which they may here unless an affinity says otherwise."""
    if flag(value, at):
        raise WithoutEffect("pods of a NodeSet may share a Node")
    term = {
        "labelSelector": {"matchLabels": {"cluster.slinky.slurm.net/daemon": "slurmd"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


NODESET: Final[Table] = {
    **daemon("nodeset", "slurmd"),
    "name": needless("nodesets has them by name"),
    "enabled": to("nodeset.enabled", flag),
    "replicas": to("nodeset.replicas", _replicas),
    "minReadySeconds": to("nodeset.minReadySeconds", count),
    "revisionHistoryLimit": to("nodeset.revisionHistoryLimit", count),
    "scalingMode": to("nodeset.scalingMode", text),
    "pinToNode": to("nodeset.pinToNode", flag),
    "ordinalPadding": to("nodeset.ordinalPadding", count),
    "workloadDisruptionProtection": to("nodeset.workloadDisruptionProtection", flag),
    "volumeClaimTemplates": to("nodeset.volumeClaimTemplates", items),
    "persistentVolumeClaimRetentionPolicy": {
        "whenDeleted": to("nodeset.persistentVolumeClaimRetentionPolicy.whenDeleted", text),
        "whenScaled": to("nodeset.persistentVolumeClaimRetentionPolicy.whenScaled", text),
    },
    "updateStrategy": {
        "type": to("nodeset.updateStrategy.type", _strategy),
        "rollingUpdate": {
            "maxUnavailable": to("nodeset.updateStrategy.rollingUpdate.maxUnavailable"),
            "partition": to("nodeset.updateStrategy.rollingUpdate.partition", count),
            "paused": to("nodeset.updateStrategy.rollingUpdate.paused", flag),
        },
        "scheduledUpdate": lost(SCHEDULED),
    },
    "extraConf": to("nodeset.", node_line),
    "extraConfMap": to("nodeset.", node_line),
    "nodeConfig": to("nodeset.", node_line),
    "nodeGres": to("nodeset.gres", text),
    "nodeFeatures": to("nodeset.features", _features),
    "nodeWeight": to("nodeset.weight", count),
    "partition": NODE_PARTITION,
    "extraVolumes": to("nodeset.template.spec.volumes", items),
    "extraVolumeMounts": to("nodeset.container.volumeMounts", items),
    "logfile": LOGS,
    "ssh": {
        "enabled": lost_unless(OFF, why=SSH_TO_NODES, because="off"),
        "extraSshdConfig": lost(SSHD_OF_NODES),
    },
    "oversubscribeNode": to("nodeset.template.spec.affinity", oversubscribed),
    "pruneSlurmNodeRecords": needless("the operator removes the records of deleted pods"),
    "taintKubeNodes": lost_unless(OFF, why="taint the Nodes yourself", because="off"),
    "useResourceLimits": lost_unless(
        ON,
        why="slurmd reports the requests or limits in resources of the NodeSet; name those of a whole Node",
        because="slurmd reports the requests or limits in resources",
    ),
    "authcred": NO_MUNGE,
}

PARTITION: Final[Table] = {
    "name": needless("the name of the entry"),
    "enabled": lost_unless(ON, OFF, why="true or false", because="each entry of cluster.partitions is in effect"),
    "nodesets": to("partition.nodeSets", items),
    "config": to("partition.config", partition_line),
    "configMap": to("partition.config", partition_line),
}


def _sshd_line(value: Any, at: At) -> object:
    if at.key in OWN_SSHD_CONFIG:
        raise WithoutEffect("the operator's sshd_config has it")
    return f"{at.key} {text(value, at)}"


def _sshd_config(value: Any, _: At) -> Table | Rule:
    return {"*": to("login.extraSshdConfig", _sshd_line)} if isinstance(value, dict) else SSHD_LINES


SSHD_LINES: Final = to("login.extraSshdConfig", text)

LOGIN: Final[Table] = {
    **daemon("login", "login"),
    "enabled": lost_unless(ON, OFF, why="true or false", because="each entry of cluster.login is in effect"),
    "replicas": to("login.replicas", count),
    "securityContext": to("login.container.securityContext", security_context),
    "rootSshAuthorizedKeys": to("login.rootSshAuthorizedKeys", authorized_keys),
    "extraSshdConfig": SSHD_LINES,
    "sshdConfig": Shape(_sshd_config),
    "sssdConf": SSSD_CONF,
    "sssdConfRef": to("cluster.identity.sssd.confRef", reference("sssd.conf")),
    "extraVolumes": to("login.template.spec.volumes", items),
    "volumes": to("login.template.spec.volumes", items),
    "extraVolumeMounts": to("login.container.volumeMounts", items),
    "service": service("login", to("login.service.spec.ports", login_port)),
    "servicePort": to("login.service.spec.ports", login_port),
    "serviceNodePort": to("login.service.spec.ports", node_port),
    "strategy": needless("the operator replaces login pods one by one, and lets sessions end"),
    "initconf": needless("sssd.conf is mounted"),
}


def _key_made(field: str) -> Rule:
    return lost_unless(ON, why=f"name the Secret in cluster.auth.{field}", because="a key is generated")


def _secret(field: str, key: str) -> Table:
    return {
        "create": _key_made(field),
        "annotations": lost("the operator's Secret has no annotations; name one of your own"),
        "secretRef": to(f"cluster.auth.{field}", reference(key)),
    }


def _priority(value: Any, at: At) -> object:
    if at.around.get("enabled") is not True:
        raise WithoutEffect("priorityClass is not enabled")
    return text(value, at)


def _dcgm(value: Any, _: At) -> object:
    if value is False:
        raise WithoutEffect("off")
    raise Missed("write prolog and epilog scripts that tell dcgm-exporter about jobs (docs/gpu-metrics.md)")


COMPUTE: Final[Table] = {
    "image": to("nodeset.image", image_of("slurmd")),
    "imagePullPolicy": to("nodeset.container.imagePullPolicy", pull_policy),
    "nodesets": {"*": NODESET},
    "partitions": {"*": PARTITION},
}

SLURM: Final[Table] = {
    "nameOverride": to("name.", text),
    "fullnameOverride": to("name.", text),
    "namespaceOverride": lost("helm --namespace is the namespace of the release"),
    "asciiArt": needless("there is none"),
    "imagePullSecrets": to("each.imagePullSecrets", items),
    "imagePullPolicy": to("each.imagePullPolicy", pull_policy),
    "priorityClassName": to("each.priorityClassName", text),
    "priorityClass": {
        "enabled": needless("the name says so"),
        "create": lost_unless(OFF, why="create the PriorityClass yourself", because="off"),
        "name": to("each.priorityClassName", _priority),
        "description": needless("of the PriorityClass, which you create"),
        "value": needless("of the PriorityClass, which you create"),
        "preemptionPolicy": needless("of the PriorityClass, which you create"),
    },
    "debug": {
        "enabled": to("release.debug.enable", flag),
        "enable": to("release.debug.enable", flag),
        "*": to("release.debug.*", flag),
    },
    "slurmKey": _secret("slurmKeyRef", "slurm.key"),
    "slurmKeyRef": to("cluster.auth.slurmKeyRef", reference("slurm.key")),
    "jwtKey": _secret("jwtKeyRef", "jwt.key"),
    "jwtHs256KeyRef": to("cluster.auth.jwtKeyRef", reference("jwt_hs256.key")),
    "jwksKeys": {
        "enabled": needless("cluster.auth.jwksRef says so"),
        "configMapRef": to("cluster.auth.jwksRef", reference("jwks.json")),
    },
    "jwt": {
        "hs256": {
            "secretName": to("cluster.auth.jwtKeyRef", named("jwt_hs256.key")),
            "existingSecret": to("cluster.auth.jwtKeyRef", named("jwt_hs256.key")),
        }
    },
    "clusterName": to("cluster.clusterName", text),
    "configFiles": to("cluster.configFiles", words),
    **{name: to(f"cluster.{name}", words) for name in SCRIPTS},
    **{name: to(f"cluster.{name}", references) for name in SCRIPT_REFS},
    "slurm": {
        "auth": {
            "secretName": to("cluster.auth.slurmKeyRef", named("slurm.key")),
            "existingSecret": to("cluster.auth.slurmKeyRef", named("slurm.key")),
        },
        "extraSlurmConf": to("cluster.extraConf", lines),
        "extraSlurmdbdConf": to("cluster.accounting.extraConf", lines),
        "slurmdbdConfig": to("cluster.accounting.extraConf", lines),
        "configFiles": to("cluster.configFiles", words),
        "prologScripts": to("cluster.prologScripts", words),
        "epilogScripts": to("cluster.epilogScripts", words),
    },
    "authcred": NO_MUNGE,
    "controller": CONTROLLER,
    "restapi": RESTAPI,
    "accounting": ACCOUNTING,
    "mariadb": MARIADB,
    "slurm-exporter": EXPORTER,
    "persistence": {"enabled": to("cluster.controller.persistence.enabled", flag)},
    "sssd": {"conf": SSSD_CONF, "secretRef": to("cluster.identity.sssd.confRef", reference("sssd.conf"))},
    "login": LOGIN,
    "loginsetDefaults": LOGIN,
    "loginsets": {"*": LOGIN},
    "compute": COMPUTE,
    "nodesetDefaults": NODESET,
    "nodesets": {"*": NODESET},
    "partitions": {"*": PARTITION},
    "vendor": {
        "nvidia": {
            "dcgm": {
                "enabled": Rule(
                    take=_dcgm,
                    why="write prolog and epilog scripts (docs/gpu-metrics.md)",
                    because="off",
                    needless=True,
                ),
                "jobMappingDir": needless("a setting of vendor.nvidia.dcgm"),
                "scriptPriority": needless("a setting of vendor.nvidia.dcgm"),
            },
            "*": missed_unless(OFF, why="write what it does into the NodeSet"),
        },
        "*": {"*": missed_unless(OFF, why="write devices, volumes and annotations of networks into the NodeSet")},
    },
    "extraObjects": to("release.extraObjects", items),
}
"""All of them. What begins with `each.` or `name.`, and what is of several NodeSets, is spread by `values`."""
