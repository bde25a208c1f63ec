"""The table of all values of Slinky's chart `slurm-operator`, 0.1 to 1.3, and what each becomes."""

from __future__ import annotations

from typing import Any, Final

from slinky_operator.conversion.rules import (
    ON,
    At,
    Mismatch,
    Rule,
    Table,
    WithoutEffect,
    count,
    flag,
    items,
    lost,
    lost_unless,
    mapping,
    needless,
    text,
    to,
    words,
)
from slinky_operator.conversion.texts import Unconvertible

NO_WEBHOOK: Final = needless("this operator has no webhook")
LEVELS: Final = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "error": "ERROR"}


def _level(value: Any, _: At) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return "DEBUG" if value > 0 else "INFO"
    name = LEVELS.get(str(value).lower().removesuffix("ing"))
    if name is None:
        raise Unconvertible("log.level is DEBUG, INFO, WARNING or ERROR")
    return name


def _namespaces(value: Any, _: At) -> object:
    if not isinstance(value, list | str):
        raise Mismatch("a text or a list")
    return [one.strip() for one in value.split(",") if one.strip()] if isinstance(value, str) else value


def _repository(value: Any, at: At) -> object:
    if str(text(value, at)).startswith("ghcr.io/slinkyproject/"):
        raise WithoutEffect("the image of Slinky's operator; that of this one is image.repository")
    raise Unconvertible("this is the image of Slinky's operator: name that of this one in image.repository")


def _pull_policy(value: Any, at: At) -> object:
    return text(value, at)


IMAGE: Final[Table] = {
    "repository": Rule(take=_repository, why="image.repository"),
    "tag": needless("a release of Slinky's operator; that of this one is image.tag"),
    "digest": needless("a release of Slinky's operator; that of this one is image.tag"),
    "PullPolicy": to("chart.image.pullPolicy", _pull_policy),
    "pullPolicy": to("chart.image.pullPolicy", _pull_policy),
}

_PDB: Final = "podDisruptionBudget.enabled keeps one replica"

OPERATOR: Final[Table] = {
    "nameOverride": to("chart.nameOverride", text),
    "fullnameOverride": to("chart.fullnameOverride", text),
    "namespaceOverride": lost("helm --namespace is the namespace of the release"),
    "imagePullSecrets": to("chart.imagePullSecrets", items),
    "imagePullPolicy": to("chart.image.pullPolicy", _pull_policy),
    "priorityClassName": to("chart.priorityClassName", text),
    "replicas": to("chart.replicas", count),
    "image": IMAGE,
    "timeoutSeconds": NO_WEBHOOK,
    "certManager": NO_WEBHOOK,
    "webhook": NO_WEBHOOK,
    "crds": {"enabled": needless("helm installs the CRDs, and upgrades them with crds.upgrade")},
    "extraObjects": to("chart.extraObjects", items),
    "propagatedNodeConditions": needless(
        "the reason of a cordon has all bad conditions of its Node; health of NodeSets drains nodes by conditions"
    ),
    "operator": {
        "enabled": lost_unless(ON, why="a release without the operator has nothing", because="it is there"),
        "replicas": to("chart.replicas", count),
        "image": IMAGE,
        "imagePullPolicy": to("chart.image.pullPolicy", _pull_policy),
        "serviceAccount": {
            "create": to("chart.serviceAccount.create", flag),
            "name": to("chart.serviceAccount.name", text),
            "annotations": to("chart.serviceAccount.annotations", words),
        },
        "nodeSelector": to("chart.nodeSelector", mapping),
        "affinity": to("chart.affinity", mapping),
        "tolerations": to("chart.tolerations", items),
        "topologySpreadConstraints": to("chart.topologySpreadConstraints", items),
        "priorityClassName": to("chart.priorityClassName", text),
        "resources": to("chart.resources", mapping),
        "podSecurityContext": needless("it is fixed, and drops all rights"),
        "securityContext": needless("it is fixed, and drops all rights"),
        "pdb": {
            "enabled": to("chart.podDisruptionBudget.enabled", flag),
            "minAvailable": lost_unless(1, why=_PDB, because=_PDB),
            "maxUnavailable": lost(_PDB),
        },
        **{
            f"{kind}Workers": to("chart.workers.clusters", count)
            for kind in ("cluster", "controller", "restapi", "accounting")
        },
        "nodesetWorkers": to("chart.workers.nodesets", count),
        "loginsetWorkers": to("chart.workers.loginsets", count),
        "tokenWorkers": to("chart.workers.tokens", count),
        "slurmclientWorkers": needless("connections to slurmrestd need no workers"),
        "logLevel": to("chart.log.level", _level),
        "healthPort": to("chart.healthPort", count),
        "metricsPort": needless("metrics and health have one port, healthPort"),
        "metricsSecure": needless("networkPolicy.from says who may read metrics"),
        "profile": needless("there is no profiler"),
        "profileAddr": needless("there is no profiler"),
        "leaderElection": needless("replicas always elect a leader; leaderElection has its times"),
        "namespaces": to("chart.watchNamespaces", _namespaces),
    },
}
