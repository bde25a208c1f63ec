"""Who may submit as whom, and to what: `Cluster.spec.jobs.tenants`. Pure.

A job that names no account, partition or QOS gets the first that its tenant is granted, where it is granted any: left
to Slurm, it would get the user's default, which the administrator has not named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from slinky_api.v1alpha1.cluster.jobs import JobTenant
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.reconcile.text import named
from slurm_client import JobSpec


@dataclass(frozen=True, slots=True)
class Grant:
    """What a namespace may ask for; empty lists leave it to Slurm."""

    user: str
    accounts: Sequence[str] = ()
    partitions: Sequence[str] = ()
    qos: Sequence[str] = ()
    uid: int | None = None
    gid: int | None = None
    """Of the user on the nodes; None if the administrator has not said."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a namespace may not submit."""

    message: str


class NotGranted(InvalidJob):
    """The job names an account, a partition or a QOS that its tenant may not use."""


def needs_labels(cluster: Cluster) -> bool:
    """Whether the labels of a namespace decide what it may do."""
    return any(tenant.namespace_labels for tenant in cluster.spec.jobs.tenants)


def grant(cluster: Cluster, namespace: str, labels: Mapping[str, str] | None, user: str | None) -> Grant | Refused:
    """Find what a namespace may do.

    Parameters
    ----------
    cluster
        The Cluster with the tenants.
    namespace
        Namespace of the SlurmJob.
    labels
        Its labels; None if they are not known.
    user
        The user that the SlurmJob names; None for the first.
    """
    tenants = [one for one in cluster.spec.jobs.tenants if _fits(one, namespace, labels)]
    for tenant in tenants:
        if user in {None, tenant.user}:
            return Grant(tenant.user, tenant.accounts, tenant.partitions, tenant.qos, tenant.uid, tenant.gid)
    where = f"Cluster {cluster.namespace}/{cluster.name}"
    if tenants:
        users = named(list(dict.fromkeys(one.user for one in tenants)))
        return Refused(
            f"spec.user: {where} does not grant user {user} to namespace {namespace}, only {users}; its "
            "administrator decides that in spec.jobs.tenants"
        )
    unread = ""
    if labels is None and needs_labels(cluster):
        unread = f"; the labels of namespace {namespace} could not be read: the operator may lack the right"
    return Refused(
        f"{where} grants namespace {namespace} no user; its administrator decides that in spec.jobs.tenants{unread}"
    )


def _fits(tenant: JobTenant, namespace: str, labels: Mapping[str, str] | None) -> bool:
    if namespace in tenant.namespaces:
        return True
    wanted = tenant.namespace_labels
    return bool(wanted) and labels is not None and all(labels.get(key) == value for key, value in wanted.items())


def restrict(job: JobSpec, granted: Grant) -> JobSpec:
    """Keep a job within what is granted, and complete it with what is.

    Raises
    ------
    NotGranted
        It names an account, a partition or a QOS that is not granted.
    """
    return replace(
        job,
        account=_one("account", job.account, granted.accounts),
        partition=_one("partition", job.partition, granted.partitions),
        qos=_one("qos", job.qos, granted.qos),
    )


def _one(field: str, wanted: str | None, allowed: Sequence[str]) -> str | None:
    if not allowed:
        return wanted
    if wanted is None:
        return allowed[0]
    refused = next((one for one in _words(wanted) if one not in allowed), None)
    if refused is not None:
        raise NotGranted(
            f"spec.{field}",
            f"{refused!r} is not granted to this namespace, only {named(list(allowed))}; the administrator of the "
            "Cluster decides that in spec.jobs.tenants",
        )
    return wanted


def _words(text: str) -> Iterable[str]:
    return (one.strip() for one in text.split(","))
