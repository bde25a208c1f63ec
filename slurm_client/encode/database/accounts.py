"""Accounts, users and associations that are made or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.encode.database.limits import add_limits, new_limits, number
from slurm_client.encode.values import listed, without_none
from slurm_client.models.values import INFINITE

if TYPE_CHECKING:
    from slurm_client.models import AccountSpec, AssociationSpec, UserSpec


def account(spec: AccountSpec, description: str, organization: str) -> dict[str, Any]:
    """Write an account; slurmrestd wants its description and organization each time."""
    coordinators = spec.coordinators
    return without_none(
        {
            "name": spec.name,
            "description": description if spec.description is None else spec.description,
            "organization": organization if spec.organization is None else spec.organization,
            "coordinators": None
            if coordinators is None
            else [{"name": each, "direct": True} for each in dict.fromkeys(coordinators)],
        }
    )


def user(spec: UserSpec) -> dict[str, Any]:
    """Write a user."""
    default = without_none({"account": spec.default_account, "wckey": spec.default_wckey})
    level = None if spec.administrator_level is None else [spec.administrator_level]
    return without_none({"name": spec.name, "administrator_level": level, "default": default or None})


def association(spec: AssociationSpec) -> dict[str, Any]:
    """Write what is to change of an association."""
    body = without_none(
        {
            "account": spec.account,
            "cluster": spec.cluster,
            "user": spec.user,
            "partition": spec.partition or None,
            "shares_raw": spec.shares,
            "priority": number(spec.priority),
            "qos": listed(spec.qos),
            "default": None if spec.default_qos is None else {"qos": spec.default_qos},
            "is_default": spec.is_default,
        }
    )
    add_limits(body, spec.limits)
    return body


def new_association(spec: AssociationSpec) -> dict[str, Any]:
    """Write the condition with which a new association is made, with all that it is to be."""
    values = without_none(
        {
            "parent": spec.parent_account,
            "fairshare": spec.shares,
            "priority": None if spec.priority is INFINITE else number(spec.priority),
            "qoslevel": listed(spec.qos),
            "defaultqos": spec.default_qos,
            "comment": spec.comment,
            **new_limits(spec.limits),
        }
    )
    condition: dict[str, Any] = {"accounts": [spec.account], "clusters": [spec.cluster], "association": values}
    # Nothing is made where a list is there and empty.
    if spec.user:
        condition["users"] = [spec.user]
    if spec.partition:
        condition["partitions"] = [spec.partition]
    return condition
