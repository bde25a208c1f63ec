"""What Slinky's chart `slurm` does where nothing is set, and this one does not.

Where a value can say it, it is written, so that the result does the same; the report says so, or what is otherwise.
"""

from __future__ import annotations

from typing import Final

from slinky_operator.conversion.documents import Values
from slinky_operator.conversion.draft import Draft
from slinky_operator.conversion.report import Report
from slinky_operator.conversion.tables.slurm import MARIADB_OF_SLINKY

DAEMONS: Final = ("controller", "restapi", "accounting")


def chart_defaults(draft: Draft, report: Report, *, old: bool, has_partitions: bool) -> None:
    """Write what Slinky's chart does of its own, and say what is otherwise here."""
    cluster = draft.cluster
    if old:
        if "clusterName" not in cluster:
            cluster["clusterName"] = "slurm"
            report.differs("cluster.clusterName", "slurm", "NAMESPACE_NAME; slurm is written")
    elif "clusterName" not in cluster:
        report.differs(
            "cluster.clusterName",
            "NAMESPACE_RELEASE",
            "NAMESPACE_NAME: the same if the release keeps its name and namespace",
        )
    _of_accounting(cluster, report, old=old)
    if not {"slurmKeyRef", "jwtKeyRef"} <= set(cluster.get("auth", {})):
        report.differs(
            "cluster.auth", "generated keys in its own Secrets", "generated again; name those Secrets to keep keys"
        )
    named = [cluster.get(daemon, {}).get("image") for daemon in DAEMONS]
    if not all(named) or not all("image" in spec for spec in draft.nodesets.values()):
        report.differs(
            "images",
            "ghcr.io/slinkyproject, in the Slurm version of the chart",
            "slurm.registry and slurm.version of the chart slurm-operator, where no image is named",
        )
    if not draft.nodesets:
        report.differs(
            "nodesets", "up to 1.1: one NodeSet, slinky; from 1.2 on none", "one NodeSet, compute, of 2 pods"
        )
    elif not old and set(draft.nodesets) != {"slinky"}:
        report.differs("nodesets", "up to 1.1: also slinky, of the chart itself", "only those that are named")
    if not draft.partitions and not has_partitions:
        report.differs(
            "cluster.partitions",
            "up to 1.1: the default partition all, over all NodeSets",
            "none: jobs without --partition need a partition with Default=YES",
        )


def _of_accounting(cluster: Values, report: Report, *, old: bool) -> None:
    accounting = cluster.get("accounting")
    if accounting is None:
        if old:
            cluster["accounting"] = {"enabled": True}
            report.differs("cluster.accounting", "on, with MariaDB", "off; on is written")
        return
    if "enabled" not in accounting:
        accounting["enabled"] = old or "external" in accounting
        state = "on" if accounting["enabled"] else "off"
        report.differs("cluster.accounting.enabled", state, f"on if there is any value; {state} is written")
    if old or not accounting["enabled"] or "external" in accounting:
        return
    # Slinky's chart runs no database from 0.4 on.
    missing = [key for key in MARIADB_OF_SLINKY if key not in accounting.get("database", {})]
    accounting["database"] = {**MARIADB_OF_SLINKY, **accounting.get("database", {})}
    if missing:
        report.differs(
            "cluster.accounting.database",
            "the database mariadb in the namespace, with the Secret mariadb-password",
            f"a MariaDB of the operator's; {', '.join(missing)} as in Slinky's chart is written",
        )


def nodeset_defaults(spec: Values, label: str, report: Report, *, old: bool) -> None:
    """Say what Slinky's chart does where a NodeSet says nothing."""
    if "replicas" not in spec and spec.get("scalingMode") != "DaemonSet":
        if old:
            here = "a pod on each matching Node; set the number"
            report.differs(f"{label}.replicas", "0.1: the same; 0.2 and 0.3: none", here)
        else:
            spec["replicas"] = 1
            report.differs(f"{label}.replicas", "1", "a pod on each matching Node; 1 is written")
    limits = {
        **(spec.get("resources", {}).get("requests") or {}),
        **(spec.get("resources", {}).get("limits") or {}),
    }
    if not {"cpu", "memory"} <= set(limits):
        report.differs(
            f"{label}.resources",
            "without cpu and memory, a Slurm node has those of the machine",
            "CPUs=1 and RealMemory=512: set the limits of a whole Node",
        )
    anti = spec.get("template", {}).get("spec", {}).get("affinity", {}).get("podAntiAffinity")
    if not anti and not old:
        report.differs(
            f"{label}.template.spec.affinity",
            "from 1.1 on, no two slurmd pods on one Node",
            "pods may share a Node as far as resources allow; podAntiAffinity keeps them apart",
        )
    if "partition" not in spec:
        report.differs(
            f"{label}.partition",
            "0.4 and 1.0: one of its name, from 1.1 on none",
            "one of its name, unless enabled: false",
        )
