"""
What the fake's slurmdbd knows, and the rules by which it changes.

Records are kept as :mod:`slurm_client.testing.database.records` describes. The jobs are not here, see
:mod:`slurm_client.testing.database.history`; statuses and texts of answers are left to
:mod:`slurm_client.testing.database.operations`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from slurm_client.testing.database.records import Record, merge, recorded, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

NO_LIMIT = {"set": False, "infinite": True, "number": 0}
"""A limit that is not there."""

_NAMES = ("account", "cluster", "partition", "user")


class Database:
    """
    Accounts, users, associations, QOS, WCKeys and clusters.

    A new one has what a new slurmdbd has after one slurmctld registered: the account and user root, and QOS normal.

    Parameters
    ----------
    cluster
        Name of the fake's own cluster.

    Attributes
    ----------
    accounts, users, qos, clusters
        Records by name.
    associations, wckeys
        Records in the order in which they were made.
    coordinators
        Pairs of an account and a user who coordinates it.
    """

    def __init__(self, cluster: str = "fake") -> None:
        self.cluster = cluster
        self.accounts: dict[str, Record] = {}
        self.users: dict[str, Record] = {}
        self.qos: dict[str, Record] = {}
        self.clusters: dict[str, Record] = {}
        self.associations: list[Record] = []
        self.wckeys: list[Record] = []
        self.coordinators: set[tuple[str, str]] = set()
        self._ids = {kind: itertools.count(1) for kind in ("association", "qos", "wckey")}
        self.add_cluster(cluster, flags=["REGISTERING", "MULTIPLE_SLURMD"])
        self.add_qos("normal", description="Normal QOS default")
        self.add_user("root", administrator_level=["Administrator"])
        self.add_association("root", user="root")
        for name in ("", "*"):
            self.add_wckey(name, "root")

    # what tests arrange, and what requests come down to

    def add_account(self, name: str, *, description: str = "", organization: str = "", **values: Any) -> Record:
        """Add an account, or change one; it has no association by this."""
        record = self.accounts.setdefault(name, merge(recorded("account"), {"description": "", "organization": ""}))
        return merge(record, {"name": name, "description": description, "organization": organization, **values})

    def add_user(self, name: str, **values: Any) -> Record:
        """Add a user, or change one; keys as slurmdbd writes them."""
        empty = {"administrator_level": ["None"], "default": {"account": "", "wckey": "", "qos": 0}}
        return merge(self.users.setdefault(name, merge(recorded("user"), empty)), {**values, "name": name})

    def add_qos(self, name: str, **values: Any) -> Record:
        """Add a QOS, or change one; keys as slurmdbd writes them."""
        if name not in self.qos:
            fresh = {"id": next(self._ids["qos"]), "description": "", "priority": 0}
            self.qos[name] = merge(recorded("qos"), fresh)
        return merge(self.qos[name], {**values, "name": name})

    def add_cluster(self, name: str, **values: Any) -> Record:
        """Add a cluster with the association of its root account."""
        if name not in self.clusters:
            empty = {"controller": {"host": "", "port": 0}, "flags": [], "rpc_version": 0, "tres": []}
            own: dict[str, Any] = {} if name == self.cluster else empty
            self.clusters[name] = merge(recorded("cluster"), own)
            self.add_account("root", description="default root account", organization="root")
            root = self.add_association("root", cluster=name)
            self.clusters[name]["associations"] = {"root": short(root)}
        return merge(self.clusters[name], {**values, "name": name})

    def add_wckey(self, name: str, user: str, cluster: str = "") -> Record:
        """Add a WCKey of a user."""
        given = {"name": name, "user": user, "cluster": cluster or self.cluster}
        for known in self.wckeys:
            if all(known[key] == value for key, value in given.items()):
                return known
        self.wckeys.append(merge(recorded("wckey"), {**given, "id": next(self._ids["wckey"])}))
        return self.wckeys[-1]

    def add_association(
        self, account: str, *, user: str = "", partition: str = "", cluster: str = "", parent: str = "", **values: Any
    ) -> Record:
        """Add the association of an account, or of a user in it, or change it; accounts are added where need be."""
        names = {"account": account, "user": user, "partition": partition, "cluster": cluster or self.cluster}
        found = next((each for each in self.associations if all(each[key] == names[key] for key in _NAMES)), None)
        if found is None:
            if account not in self.accounts:
                self.add_account(account, description=account, organization=account)
            above = "" if user or account == "root" else parent or "root"
            first = bool(user) and not any(each["user"] == user for each in self.associations)
            fresh = {
                **names,
                "id": next(self._ids["association"]),
                "parent_account": above,
                "is_default": first,
                "shares_raw": 1,
                "lineage": self._lineage(account, user, partition, above),
            }
            found = merge(recorded("association"), fresh)
            self.associations.append(found)
            if first and user in self.users:
                self.users[user]["default"]["account"] = account
        return merge(found, {key: value for key, value in values.items() if key not in {*_NAMES, "id", "lineage"}})

    def _lineage(self, account: str, user: str, partition: str, parent: str) -> str:
        above = next(
            (
                each["lineage"]
                for each in self.associations
                if each["account"] == (parent or account) != "root" and not each["user"]
            ),
            "/",
        )
        own = above if user and account != "root" else f"{above}{account}/" if account != "root" else above
        return own + (f"0-{user}/" if user else "") + (f"{partition}/" if partition else "")

    # what requests ask for

    def has_account_on(self, account: str, cluster: str) -> bool:
        """Whether an account has an association on a cluster, so that users may be added to it there."""
        return any(each["account"] == account and each["cluster"] == cluster for each in self.associations)

    def chosen_associations(self, query: Mapping[str, str]) -> list[Record]:
        """Return the associations that a query means; each key may have several words."""
        keys = {"account": "account", "cluster": "cluster", "partition": "partition", "user": "user",
                "parent_account": "parent_account", "id": "id"}  # fmt: skip
        wanted = {field: set(query[key].split(",")) for key, field in keys.items() if query.get(key)}
        found = [each for each in self.associations if all(str(each[key]) in wanted[key] for key in wanted)]
        return sorted(found, key=lambda each: each["lineage"])

    def set_coordinators(self, account: str, users: Iterable[str]) -> None:
        """Let exactly these users coordinate an account."""
        self.coordinators = {pair for pair in self.coordinators if pair[0] != account}
        self.coordinators |= {(account, user) for user in users}

    def coordinators_of(self, account: str) -> dict[str, bool]:
        """Return who coordinates an account; true where that is said of this account, false of one above it."""
        found: dict[str, bool] = {}
        direct, seen = True, set()
        while account and account not in seen:
            seen.add(account)
            for name, user in sorted(self.coordinators):
                if name == account:
                    found.setdefault(user, direct)
            account = next(
                (
                    each["parent_account"]
                    for each in self.associations
                    if each["account"] == account and not each["user"]
                ),
                "",
            )
            direct = False
        return found

    def remove_associations(self, chosen: Callable[[Record], bool]) -> list[Record]:
        """Take associations away; those of an account take those of its users with them."""
        gone = [each for each in self.associations if chosen(each)]
        accounts = {(each["account"], each["cluster"]) for each in gone if not each["user"]}
        self.associations = [
            each
            for each in self.associations
            if each not in gone and (each["account"], each["cluster"]) not in accounts
        ]
        for name, user in self.users.items():
            own = [each["account"] for each in self.associations if each["user"] == name]
            if user["default"]["account"] not in own:
                user["default"]["account"] = own[0] if own else ""
        return gone

    def remove_account(self, name: str) -> bool:
        """Take an account away with its associations; of root, as measured, only the record."""
        if name not in self.accounts:
            return False
        self.remove_associations(lambda each: each["account"] == name != "root")
        self.set_coordinators(name, ())
        del self.accounts[name]
        return True

    def remove_user(self, name: str) -> bool:
        """Take a user away with all associations and WCKeys."""
        if name not in self.users:
            return False
        self.remove_associations(lambda each: each["user"] == name)
        self.coordinators = {pair for pair in self.coordinators if pair[1] != name}
        self.wckeys = [each for each in self.wckeys if each["user"] != name]
        del self.users[name]
        return True
