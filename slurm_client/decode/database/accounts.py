"""Decoders of accounts, users, associations and WCKeys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.database.limits import limits
from slurm_client.decode.names import named
from slurm_client.decode.read import flag, items, limit, mapping, number, text, words
from slurm_client.models.database.accounts import Account, Association, AssociationKey, Coordinator, User, WCKey
from slurm_client.models.database.limits import AssociationLimits

if TYPE_CHECKING:
    from collections.abc import Mapping


def account(raw: Mapping[str, Any]) -> Account:
    """Decode one entry of ``accounts``."""
    get = raw.get
    return Account(
        name=named(get("name")),
        description=text(get("description")),
        organization=text(get("organization")),
        coordinators=_coordinators(get("coordinators")),
        associations=_keys(get("associations")),
        flags=frozenset(words(get("flags"))),
    )


def user(raw: Mapping[str, Any]) -> User:
    """Decode one entry of ``users``."""
    get = raw.get
    default = mapping(get("default"))
    return User(
        name=named(get("name")),
        administrator_level=text(get("administrator_level")),
        default_account=text(default.get("account")),
        default_wckey=text(default.get("wckey")),
        coordinates=_coordinators(get("coordinators")),
        associations=_keys(get("associations")),
        wckeys=tuple(wckey(mapping(each)) for each in items(get("wckeys"))),
        flags=frozenset(words(get("flags"))) - {"NONE"},
    )


def association(raw: Mapping[str, Any]) -> Association:
    """Decode one entry of ``associations``."""
    get = raw.get
    written = get("id")
    return Association(
        account=named(get("account")),
        cluster=text(get("cluster")),
        user=text(get("user")),
        partition=text(get("partition")),
        # v0.0.40 writes all that it is known by there; v0.0.41 and v0.0.42 write 0.
        id=number(mapping(written).get("id") if isinstance(written, dict) else written) or None,
        parent_account=text(get("parent_account")),
        lineage=text(get("lineage")),
        is_default=flag(get("is_default")),
        comment=text(get("comment")),
        qos=words(get("qos")),
        default_qos=text(mapping(get("default")).get("qos")),
        shares=number(get("shares_raw")),
        priority=limit(get("priority")),
        limits=limits(AssociationLimits, raw),
        flags=frozenset(words(get("flags"))),
    )


def wckey(raw: Mapping[str, Any]) -> WCKey:
    """Decode one entry of ``wckeys``; one without a name is Slurm's own, for jobs without a WCKey."""
    get = raw.get
    return WCKey(
        name=text(get("name")),
        cluster=text(get("cluster")),
        user=text(get("user")),
        id=number(get("id")),
        flags=frozenset(words(get("flags"))),
    )


def _coordinators(value: Any) -> tuple[Coordinator, ...]:
    found = [mapping(each) for each in items(value)]
    return tuple(Coordinator(text(each.get("name")), flag(each.get("direct"))) for each in found if each.get("name"))


def _keys(value: Any) -> tuple[AssociationKey, ...]:
    found = [mapping(each) for each in items(value)]
    return tuple(
        AssociationKey(*(text(each.get(key)) for key in ("account", "cluster", "user", "partition")))
        for each in found
        if each.get("account")
    )
