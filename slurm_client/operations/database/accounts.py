"""Calls about accounts, users and WCKeys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client import errors, wire
from slurm_client.connection.answers import ListOf
from slurm_client.decode.database import accounts as decode
from slurm_client.encode.database import accounts as encode
from slurm_client.operations.base import Listing, named
from slurm_client.operations.database.base import DatabaseOperations

if TYPE_CHECKING:
    from slurm_client.models import Account, AccountSpec, User, UserSpec, WCKey
    from slurm_client.operations.arguments import Name

__all__ = ["AccountOperations"]

_ACCOUNTS = ListOf("accounts", decode.account)
_USERS = ListOf("users", decode.user)
_WCKEYS = ListOf("wckeys", decode.wckey)

_PARTS = {
    "associations": ("with_assocs", "WithAssociations"),
    "coordinators": ("with_coords", "WithCoordinators"),
    "wckeys": ("with_wckeys",),
}
"""Names of the parameters that ask for more of each entry: a parser takes one of them and ignores the others."""


class AccountOperations(DatabaseOperations):
    """List, get, create, update and delete accounts and users; list, create and delete WCKeys."""

    async def accounts(
        self, *, associations: bool = False, coordinators: bool = False, timeout: float | None = None
    ) -> Listing[Account]:
        """Return all accounts, on request with their associations and coordinators."""
        query = await self._parts(
            "db_get_accounts", {"associations": associations, "coordinators": coordinators}, timeout
        )
        return await self._records("db_get_accounts", _ACCOUNTS, query=query, timeout=timeout)

    async def account(self, name: Name, *, timeout: float | None = None) -> Account:
        """Return one account with its associations and coordinators; NotFound if there is none of that name."""
        found: Account = await self._one(
            "db_get_account",
            _ACCOUNTS,
            f"account {name}",
            pick=named(name),
            path={"account_name": name},
            query=await self._parts("db_get_account", {"associations": True, "coordinators": True}, timeout),
            timeout=timeout,
        )
        return found

    async def create_account(self, spec: AccountSpec, *, timeout: float | None = None) -> None:
        """
        Create an account; Conflict if there is one of that name.

        It can be used on a cluster when it has an association there, see :meth:`create_association`. Whether there is
        one is asked for first, so two callers at the same time may both succeed.
        """
        try:
            await self.account(spec.name, timeout=timeout)
        except errors.NotFound:
            await self._write_account(spec, spec.name, spec.name, timeout)
        else:
            raise errors.Conflict(f"there is an account {spec.name} already; nothing was sent")

    async def update_account(self, spec: AccountSpec, *, timeout: float | None = None) -> None:
        """Change an account; NotFound if there is none of that name."""
        found = await self.account(spec.name, timeout=timeout)
        await self._write_account(spec, found.description, found.organization, timeout)

    async def delete_account(self, name: Name, *, timeout: float | None = None) -> None:
        """
        Delete an account with its associations; NotFound if there is none of that name.

        Its users stay. Slurm refuses it for an account that is the default of a user. It does not refuse ``root``,
        below which all others are, and no account can be added after that; so this call does.
        """
        if name == "root":
            raise errors.InvalidArgument(
                "delete_account: root is the account above all others; nothing was sent", field="name"
            )
        answer = await self._session.call("db_delete_account", path={"account_name": name}, timeout=timeout)
        if answer.not_modified or not answer.fields.get("removed_accounts"):
            raise errors.NotFound(f"no account {name}", status=answer.status, warnings=answer.warnings)

    async def _write_account(
        self, spec: AccountSpec, description: str, organization: str, timeout: float | None
    ) -> None:
        body = encode.account(spec, description, organization)
        await self._session.call("db_post_accounts", body={"accounts": [body]}, timeout=timeout)
        found = await self.account(spec.name, timeout=timeout)
        unlike = [key for key in ("description", "organization") if getattr(found, key) != body[key]]
        direct = {each.name for each in found.coordinators if each.direct}
        if spec.coordinators is not None and direct != set(spec.coordinators):
            unlike.append("coordinators")
        refuse_unlike(f"account {spec.name}", unlike, "a coordinator must be a user")

    async def users(
        self,
        *,
        associations: bool = False,
        coordinators: bool = False,
        wckeys: bool = False,
        timeout: float | None = None,
    ) -> Listing[User]:
        """Return all users, on request with their associations, the accounts they manage, and their WCKeys."""
        wanted = {"associations": associations, "coordinators": coordinators, "wckeys": wckeys}
        query = await self._parts("db_get_users", wanted, timeout)
        return await self._records("db_get_users", _USERS, query=query, timeout=timeout)

    async def user(self, name: Name, *, timeout: float | None = None) -> User:
        """Return one user with all that is known of it; NotFound if slurmdbd knows none of that name."""
        found: User = await self._one(
            "db_get_user",
            _USERS,
            f"user {name}",
            pick=named(name),
            path={"name": name},
            query=await self._parts("db_get_user", dict.fromkeys(_PARTS, True), timeout),
            timeout=timeout,
        )
        return found

    async def create_user(self, spec: UserSpec, *, timeout: float | None = None) -> None:
        """
        Create a user; Conflict if there is one of that name.

        Slurm takes jobs of users with an association, see :meth:`create_association`, which also creates a user. Only
        then a user has a default account. Whether there is such a user is asked for first, as for accounts.
        """
        try:
            await self.user(spec.name, timeout=timeout)
        except errors.NotFound:
            await self._write_user(spec, timeout)
        else:
            raise errors.Conflict(f"there is a user {spec.name} already; nothing was sent")

    async def update_user(self, spec: UserSpec, *, timeout: float | None = None) -> None:
        """Change a user; NotFound if slurmdbd knows none of that name."""
        await self.user(spec.name, timeout=timeout)
        await self._write_user(spec, timeout)

    async def delete_user(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete a user with all associations; NotFound if slurmdbd knows none of that name."""
        answer = await self._session.call("db_delete_user", path={"name": name}, timeout=timeout)
        if answer.not_modified or not answer.fields.get("removed_users"):
            raise errors.NotFound(f"no user {name}", status=answer.status, warnings=answer.warnings)

    async def _write_user(self, spec: UserSpec, timeout: float | None) -> None:
        await self._session.call("db_post_users", body={"users": [encode.user(spec)]}, timeout=timeout)
        found = await self.user(spec.name, timeout=timeout)
        wanted = ("administrator_level", "default_account", "default_wckey")
        unlike = [key for key in wanted if getattr(spec, key) not in (None, getattr(found, key))]
        refuse_unlike(f"user {spec.name}", unlike, "a default account must be one of the user's associations")

    async def wckeys(self, *, timeout: float | None = None) -> Listing[WCKey]:
        """Return the WCKeys of all users."""
        return await self._records("db_get_wckeys", _WCKEYS, timeout=timeout)

    async def create_wckey(self, name: Name, *, cluster: Name, user: Name, timeout: float | None = None) -> None:
        """Create a WCKey of a user on a cluster; Conflict if there is one."""
        wanted = (name, cluster, user)
        if wanted in await self._wckeys(timeout):
            raise errors.Conflict(f"there is a WCKey {name} of {user} on {cluster} already; nothing was sent")
        body = {"wckeys": [{"name": name, "cluster": cluster, "user": user}]}
        await self._session.call("db_post_wckeys", body=body, timeout=timeout)
        if wanted not in await self._wckeys(timeout):
            raise errors.InvalidRequest(f"Slurm did not make WCKey {name} and gave no reason: is {cluster} a cluster?")

    async def delete_wckey(self, name: Name, *, cluster: Name, user: Name, timeout: float | None = None) -> None:
        """
        Delete a WCKey of a user on a cluster; NotFound if there is none.

        Slurm refuses it for one that running jobs have. One that is deleted stays with the jobs that had it.

        Raises
        ------
        Conflict
            If others have a WCKey of that name: slurmrestd deletes by name alone, those of all users on all clusters.
            :meth:`delete_wckeys` does that.
        """
        keys = await self._wckeys(timeout)
        if (name, cluster, user) not in keys:
            raise errors.NotFound(f"no WCKey {name} of {user} on {cluster}")
        others = sorted(key for key in keys if key[0] == name and key != (name, cluster, user))
        if others:
            raise errors.Conflict(
                f"slurmrestd deletes WCKeys by name alone, and {len(others)} others are called {name}, such as that of "
                f"{others[0][2]} on {others[0][1]}: delete_wckeys deletes them all; nothing was sent"
            )
        await self._delete_wckeys(name, timeout)

    async def delete_wckeys(self, name: Name, *, timeout: float | None = None) -> int:
        """
        Delete all WCKeys of a name, of all users on all clusters, and return how many; NotFound if there is none.

        Slurm refuses it for one that running jobs have.
        """
        found = sum(key[0] == name for key in await self._wckeys(timeout))
        if not found:
            raise errors.NotFound(f"no WCKey {name}")
        await self._delete_wckeys(name, timeout)
        return found

    async def _delete_wckeys(self, name: str, timeout: float | None) -> None:
        # The specification calls it an id; it is compared with names (24.11 and 26.05).
        answer = await self._session.call("db_delete_wckey", path={"id": name}, timeout=timeout)
        left = sum(key[0] == name for key in await self._wckeys(timeout))
        if answer.not_modified or left:
            raise errors.InvalidRequest(
                f"Slurm deleted no WCKey {name} and gave no reason"
                if answer.not_modified
                else f"Slurm left {left} of the WCKeys {name} and gave no reason",
                status=answer.status,
                warnings=answer.warnings,
            )

    async def _wckeys(self, timeout: float | None) -> set[tuple[str, str, str]]:
        return {(each.name.removeprefix("*"), each.cluster, each.user) for each in await self.wckeys(timeout=timeout)}

    async def _parts(self, operation: str, wanted: dict[str, bool], timeout: float | None) -> dict[str, str]:
        """Return the query that asks for parts of entries; this parser's names of them."""
        known = wire.endpoint(await self._session.negotiate(timeout), operation).query
        return {next(name for name in _PARTS[part] if name in known): "true" for part, asked in wanted.items() if asked}


def refuse_unlike(what: str, unlike: list[str], advice: str) -> None:
    """
    Raise InvalidRequest if something is not as it was wanted.

    slurmrestd answers with 200 to much that it does not do.
    """
    if unlike:
        raise errors.InvalidRequest(
            f"{what}: Slurm did not set {', '.join(unlike)} as asked and gave no reason; {advice}"
        )
