"""Calls about associations, which let accounts and users use a cluster and limit them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slurm_client import errors, wire
from slurm_client.connection.answers import ListOf
from slurm_client.decode.database import accounts as decode
from slurm_client.encode.database import accounts as encode
from slurm_client.encode.database.limits import unlike, with_resources
from slurm_client.models.values import INFINITE
from slurm_client.operations.base import Listing
from slurm_client.operations.database.accounts import refuse_unlike
from slurm_client.operations.database.base import DatabaseOperations

if TYPE_CHECKING:
    from slurm_client.models import Association, AssociationKey, AssociationSpec
    from slurm_client.operations.arguments import Name

__all__ = ["AssociationOperations"]

_ASSOCIATIONS = ListOf("associations", decode.association)

_OWN_LIMITS = ("without_parent_limits", "Exclude limits from parents")
"""Names of the parameter that leaves inherited limits out."""

_WITHOUT_IDS = frozenset({"v0.0.41", "v0.0.42"})
"""Parsers that write 0 for the number of an association, although they have the key."""


def _with_ids() -> tuple[str, ...]:
    """Return the parsers that write the number of an association."""
    return tuple(parser for parser in wire.PARSERS if parser not in _WITHOUT_IDS)


class AssociationOperations(DatabaseOperations):
    """List, get, create, update and delete associations."""

    async def associations(
        self,
        *,
        account: Name | None = None,
        user: Name | None = None,
        cluster: Name | None = None,
        partition: Name | None = None,
        inherited: bool = True,
        timeout: float | None = None,
    ) -> Listing[Association]:
        """
        Return associations: all of them, or those of an account, a user, a cluster, a partition.

        Without ``inherited`` they have only the limits and QOS of their own, not those from above (24.11 and 26.05).
        """
        query: dict[str, Any] = {"account": account, "user": user, "cluster": cluster, "partition": partition}
        if not inherited:
            query |= await self._own_limits(timeout)
        return await self._records("db_get_associations", _ASSOCIATIONS, query=query, timeout=timeout)

    async def association(self, key: AssociationKey, *, timeout: float | None = None) -> Association:
        """Return one association; NotFound if there is none. A key without a user is of the account's own."""
        _check(key)
        fitting = [each for each in await self._like(key, timeout) if each.key == key]
        if not fitting:
            raise errors.NotFound(f"no association of {_named(key)}")
        return fitting[0]

    async def create_association(self, spec: AssociationSpec, *, timeout: float | None = None) -> None:
        """
        Create an association; Conflict if there is one.

        The first association of a user creates the user too, and is the default. An account must exist, and have an
        association of its own on the cluster before its users can.

        Raises
        ------
        NotFound
            If there is no such account, or it has no association on that cluster, or there is no such cluster.
        InvalidRequest
            If Slurm refused it, or made it but not as asked; the error says what is not as asked.
        """
        key = spec.key
        _check(key)
        _check_qos(spec)
        if spec.user and spec.parent_account is not None:
            raise errors.InvalidArgument(
                "spec.parent_account is for an account's own association; nothing was sent", field="spec.parent_account"
            )
        if any(each.key == key for each in await self._like(key, timeout)):
            raise errors.Conflict(f"there is an association of {_named(key)} already; nothing was sent")
        body = {"association_condition": encode.new_association(spec)}
        if spec.user:
            await self._session.call("db_post_users_association", body={**body, "user": {}}, timeout=timeout)
        else:
            accounts = await self._records(
                "db_get_account",
                ListOf("accounts", decode.account),
                path={"account_name": spec.account},
                timeout=timeout,
            )
            if not accounts:
                raise errors.NotFound(f"no account {spec.account}: create it first; nothing was sent")
            described = {"description": accounts[0].description, "organization": accounts[0].organization}
            await self._session.call(
                "db_post_accounts_association", body={**body, "account": described}, timeout=timeout
            )
        try:
            await self.association(key, timeout=timeout)
        except errors.NotFound:
            raise errors.NotFound(
                f"Slurm made no association of {_named(key)} and gave no reason: is there a cluster {spec.cluster}, "
                f"with an association of account {spec.account}?"
            ) from None
        if spec.is_default:
            await self._change(spec, timeout)
        await self._compare(spec, timeout)

    async def update_association(self, spec: AssociationSpec, *, timeout: float | None = None) -> None:
        """
        Change an association; NotFound if there is none.

        Raises
        ------
        InvalidRequest
            If Slurm refused it, or did not change all as asked; the error says what is not as asked.
        """
        _check(spec.key)
        _check_qos(spec)
        found = await self.association(spec.key, timeout=timeout)
        for name in ("parent_account", "comment"):
            if getattr(spec, name) not in (None, getattr(found, name)):
                raise errors.InvalidArgument(
                    f"spec.{name} is fixed once an association exists; nothing was sent", field=f"spec.{name}"
                )
        await self._change(spec, timeout)
        await self._compare(spec, timeout)

    async def delete_association(self, key: AssociationKey, *, timeout: float | None = None) -> None:
        """
        Delete one association; NotFound if there is none.

        Raises
        ------
        Conflict
            If it is an account's own and there are others below it, which Slurm would delete too.
        NotSupported
            If it can be named only by what others match too, with parsers that write no numbers of associations.
        """
        _check(key)
        found = await self.association(key, timeout=timeout)
        if not key.user:
            there = await self.associations(cluster=key.cluster, timeout=timeout)
            below = [each for each in there if each.key != key and key.account in {each.account, each.parent_account}]
            if below:
                raise errors.Conflict(
                    f"there are {len(below)} associations below that of {_named(key)}, such as that of "
                    f"{_named(below[0].key)}: delete them first; nothing was sent"
                )
        query = {name: getattr(key, name) or None for name in ("account", "cluster", "user", "partition")}
        if found.id:
            query["id"] = str(found.id)
        elif len(await self._like(key, timeout)) != 1:
            raise errors.NotSupported(
                f"the association of {_named(key)} has no number in this data parser, and others match too",
                available_in=_with_ids(),
            )
        answer = await self._session.call("db_delete_association", query=query, timeout=timeout)
        if answer.not_modified or not answer.fields.get("removed_associations"):
            raise errors.NotFound(f"no association of {_named(key)}", status=answer.status, warnings=answer.warnings)

    async def _like(
        self, key: AssociationKey, timeout: float | None, query: dict[str, str] | None = None
    ) -> Listing[Association]:
        """Return what matches a key where an empty part matches anything, as slurmrestd has it."""
        parts = {name: getattr(key, name) or None for name in ("account", "cluster", "user", "partition")}
        return await self._records(
            "db_get_associations", _ASSOCIATIONS, query={**parts, **(query or {})}, timeout=timeout
        )

    async def _own_limits(self, timeout: float | None) -> dict[str, str]:
        """Return the query that leaves out what is inherited; this parser's name of it."""
        known = wire.endpoint(await self._session.negotiate(timeout), "db_get_associations").query
        return {next(name for name in _OWN_LIMITS if name in known): "true"}

    async def _change(self, spec: AssociationSpec, timeout: float | None) -> None:
        # Inherited limits would become its own.
        there = await self._like(spec.key, timeout, await self._own_limits(timeout))
        own = next((each for each in there if each.key == spec.key), None)
        if own is None:
            raise errors.NotFound(f"no association of {_named(spec.key)}")
        spec = replace(spec, limits=with_resources(spec.limits, own.limits))
        body = {"associations": [encode.association(spec)]}
        await self._session.call("db_post_associations", body=body, timeout=timeout)

    async def _compare(self, spec: AssociationSpec, timeout: float | None) -> None:
        # Without what comes from above: a limit that is taken away would seem to be there still.
        there = await self._like(spec.key, timeout, await self._own_limits(timeout))
        found = next((each for each in there if each.key == spec.key), None)
        if found is None:
            raise errors.NotFound(f"no association of {_named(spec.key)}")
        wrong = [
            name
            for name in ("shares", "default_qos", "comment", "is_default", "parent_account")
            if getattr(spec, name) not in (None, getattr(found, name))
        ]
        if spec.qos is not None and set(spec.qos) != set(found.qos):
            wrong.append("qos")
        if spec.priority is not None and spec.priority != (INFINITE if found.priority is None else found.priority):
            wrong.append("priority")
        if spec.limits is not None:
            wrong += [f"limits.{name}" for name in unlike(spec.limits, found.limits)]
        refuse_unlike(f"association of {_named(spec.key)}", wrong, "resources must be among those that slurmdbd counts")


def _check(key: AssociationKey) -> None:
    """Refuse a key that could match more than one association."""
    for name in ("account", "cluster"):
        if not getattr(key, name):
            raise errors.InvalidArgument(f"{name} of an association is empty; nothing was sent", field=name)
    if key.partition and not key.user:
        raise errors.InvalidArgument("partition of an association without a user; nothing was sent", field="partition")


def _check_qos(spec: AssociationSpec) -> None:
    # It answers 304 and does nothing.
    if spec.qos is not None and not spec.qos:
        raise errors.InvalidArgument(
            "spec.qos is empty, but slurmrestd cannot take all QOS away; nothing was sent", field="spec.qos"
        )


def _named(key: AssociationKey) -> str:
    words = [f"account {key.account}", f"cluster {key.cluster}"]
    words += [f"user {key.user}"] if key.user else []
    words += [f"partition {key.partition}"] if key.partition else []
    return ", ".join(words)
