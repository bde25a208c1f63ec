"""What slurmrestd's operations on accounts, users and associations do in the fake, and what they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client.testing.answers.calls import Call, Reply, error
from slurm_client.testing.database.answers import DatabaseAnswers, asked, in_order
from slurm_client.testing.database.records import Record, short

if TYPE_CHECKING:
    from collections.abc import Mapping


class AccountOperations(DatabaseAnswers):
    """Operations on accounts, users and associations."""

    # accounts

    def _accounts(self, query: Mapping[str, str]) -> list[Record]:
        found = []
        for account in in_order(self.database.accounts):
            if query.get("description", account["description"]) != account["description"]:
                continue
            who = self.database.coordinators_of(account["name"]) if asked(query, "with_coords") else {}
            own = [
                each for each in self.database.associations if each["account"] == account["name"] and not each["user"]
            ]
            associations = own if asked(query, "with_assocs") else []
            found.append(
                account
                | {"coordinators": [{"name": user, "direct": direct} for user, direct in who.items()]}
                | {"associations": [short(each) for each in associations]}
            )
        return found

    def _db_get_accounts(self, call: Call) -> Reply:
        return self._list(call, "accounts", "account", self._accounts(call.query), "accounts_get", "_dump_accounts")

    def _db_get_account(self, call: Call) -> Reply:
        found = [each for each in self._accounts(call.query) if each["name"] == call.parameters["account_name"]]
        return self._list(call, "accounts", "account", found, "accounts_get", "_dump_accounts")

    def _db_post_accounts(self, call: Call) -> Reply:
        refused = self._unnamed(call, "accounts", ("description", "name", "organization"))
        for given in (call.body["accounts"] or ()) if refused is None else ():
            self.database.add_account(
                given["name"], description=given["description"], organization=given["organization"]
            )
            if "coordinators" in given:
                self.database.set_coordinators(given["name"], [each["name"] for each in given["coordinators"]])
        return refused or Reply()

    def _db_post_accounts_association(self, call: Call) -> Reply:
        body = call.body or {}
        wanted, about = body.get("association_condition") or {}, body.get("account") or {}
        limits = wanted.get("association") or {}
        clusters = wanted.get("clusters") or list(self.database.clusters)
        parent = limits.get("parent") or "root"
        lines, names = [], []
        for cluster in clusters:
            if not self.database.has_account_on(parent, cluster):
                text = f"No parent account '{parent}' on cluster '{cluster}'"
                source = "_add_accounts_association"
                said = error(2046, "slurmdb_accounts_add_cond() failed", "Invalid parent account specified", source)
                return Reply({"added_accounts": text}, status=self._refused_status, errors=[said])
            for name in wanted.get("accounts") or ():
                if name not in self.database.accounts:
                    self.database.add_account(
                        name,
                        description=about.get("description") or name,
                        organization=about.get("organization") or name,
                    )
                    names.append(f"  {name}\n")
                if not self.database.has_account_on(name, cluster):
                    self.database.add_association(name, cluster=cluster, parent=parent, **_limits(limits))
                    lines.append(f"  C = {cluster:<10} A = {name:<20}\n")
        if not lines:
            return Reply(status=304)
        return Reply({"added_accounts": f" Adding Account(s)\n{''.join(names)} Associations =\n{''.join(lines)}"})

    def _db_delete_account(self, call: Call) -> Reply:
        name = call.parameters["account_name"]
        return Reply({"removed_accounts": [name]}) if self.database.remove_account(name) else Reply(status=304)

    # users

    def _users(self, query: Mapping[str, str]) -> list[Record]:
        found = []
        for user in in_order(self.database.users):
            if query.get("admin_level", user["administrator_level"][0]) != user["administrator_level"][0]:
                continue
            if query.get("default_account", user["default"]["account"]) != user["default"]["account"]:
                continue
            name = user["name"]
            own = [each for each in self.database.associations if each["user"] == name]
            accounts = {account: self.database.coordinators_of(account) for account in self.database.accounts}
            what: Record = {"associations": [], "coordinators": [], "wckeys": []}
            if asked(query, "with_assocs"):
                what["associations"] = [short(each) for each in own]
            if asked(query, "with_coords"):
                what["coordinators"] = [
                    {"name": account, "direct": who[name]} for account, who in accounts.items() if name in who
                ]
            if asked(query, "with_wckeys"):
                what["wckeys"] = [each for each in self.database.wckeys if each["user"] == name]
            # The default account is one of the associations, and is not looked up without them.
            if not asked(query, "with_assocs"):
                what["default"] = user["default"] | {"account": ""}
            found.append(user | what)
        return found

    def _db_get_users(self, call: Call) -> Reply:
        return self._list(call, "users", "user", self._users(call.query), "users_get", "_dump_users")

    def _db_get_user(self, call: Call) -> Reply:
        found = [each for each in self._users(call.query) if each["name"] == call.parameters["name"]]
        return self._list(call, "users", "user", found, "users_get", "_dump_users")

    def _db_post_users(self, call: Call) -> Reply:
        refused = self._unnamed(call, "users", ())
        if refused is not None:
            return refused
        warnings = []
        for given in call.body["users"] or ():
            name = given.get("name")
            if not name:
                number = 9210 if self._world.clears_reasons else 1064
                return Reply(
                    status=500, errors=[error(number, "ambiguous user modify request", source="_foreach_update_user")]
                )
            kept = {key: value for key, value in given.items() if key not in {"coordinators", "associations", "wckeys"}}
            self.database.add_user(**kept)
            if given.get("coordinators"):
                description = (
                    f"User {name} coordinators list ignored. "
                    "They must be set via the coordinators or accounts end point."
                )
                warnings.append({"description": description, "source": "_foreach_update_user"})
        return Reply(warnings=warnings)

    def _db_post_users_association(self, call: Call) -> Reply:
        body = call.body or {}
        wanted, about = body.get("association_condition") or {}, body.get("user") or {}
        lines = []
        for cluster in wanted.get("clusters") or list(self.database.clusters):
            for account in wanted.get("accounts") or ():
                for user in (wanted.get("users") or ()) if self.database.has_account_on(account, cluster) else ():
                    if user not in self.database.users:
                        self.database.add_user(user, administrator_level=about.get("adminlevel") or ["None"])
                    for partition in wanted.get("partitions") or [""]:
                        limits = _limits(wanted.get("association") or {})
                        self.database.add_association(
                            account, user=user, partition=partition, cluster=cluster, **limits
                        )
                        where = f" P = {partition}" if partition else ""
                        lines.append(f"  C = {cluster:<10} A = {account:<20} U = {user:<9}{where}\n")
        if not lines:
            return Reply(status=304)
        return Reply({"added_users": f" Adding User(s)\n Associations =\n{''.join(lines)}"})

    def _db_delete_user(self, call: Call) -> Reply:
        name = call.parameters["name"]
        return Reply({"removed_users": [name]}) if self.database.remove_user(name) else Reply(status=304)

    # associations

    def _db_get_associations(self, call: Call) -> Reply:
        found = self.database.chosen_associations(call.query)
        return self._list(call, "associations", "association", found, "associations_get", "_dump_assoc_cond")

    def _db_get_association(self, call: Call) -> Reply:
        if len(self.database.chosen_associations(call.query)) > 1:
            description = "Ambiguous request: More than 1 association would have been dumped."
            return Reply(status=500, errors=[error(9211, description, source="_dump_assoc_cond")])
        return self._db_get_associations(call)

    def _db_post_associations(self, call: Call) -> Reply:
        refused = self._unnamed(call, "associations", ("user",))
        if refused is not None:
            return refused
        for place, given in enumerate(call.body["associations"] or ()):
            for qos in given.get("qos") or ():
                if qos not in self.database.qos:
                    sentence = "Invalid qos specification"
                    path = f"#/associations[{place}]/qos/"
                    return self._refused(2066, f"Unable to resolve QOS: {qos}", sentence=sentence, source=path)
        for given in call.body["associations"] or ():
            # As measured: without an association of the account nothing is done, and nothing is said.
            if self.database.has_account_on(given.get("account", ""), given.get("cluster", self.database.cluster)):
                self.database.add_association(**given)
        return Reply()

    def _db_delete_associations(self, call: Call) -> Reply:
        chosen = self.database.chosen_associations(call.query)
        in_use = {(job.account or "root", job.user) for job in self._world.jobs.values() if not job.is_finished}
        if any((each["account"], each["user"]) in in_use for each in chosen):
            return self._not_removed(7001, "Job(s) active, cancel job(s) before remove")
        # The last association of a user may go although it is the default, another one not.
        users = [each["user"] for each in self.database.associations]
        if not self._world.clears_reasons and any(
            each["is_default"] and users.count(each["user"]) > 1 and each["user"] for each in chosen
        ):
            return self._not_removed(7009, "You can not remove the default account of a user")
        gone = self.database.remove_associations(lambda each: each in chosen)
        if not gone:
            return Reply(status=304)
        return Reply({"removed_associations": [_removed(each) for each in gone]})

    def _not_removed(self, number: int, sentence: str) -> Reply:
        texts = ("slurmdb_associations_remove failed", "remove associations failed")
        return Reply(
            status=self._refused_status, errors=[error(number, text, sentence, "_delete_assoc") for text in texts]
        )

    def _db_delete_association(self, call: Call) -> Reply:
        if len(self.database.chosen_associations(call.query)) > 1:
            description = "ambiguous request: More than 1 association would have been deleted."
            return Reply(status=500, errors=[error(9210, description, source="_op_handler_association")])
        return self._db_delete_associations(call)


def _limits(given: Record) -> Record:
    """Read limits as the operations that add many at once have them: flat, under names of their own."""
    found: Record = {}
    if "fairshare" in given:
        found["shares_raw"] = given["fairshare"]
    if "defaultqos" in given:
        found["default"] = {"qos": given["defaultqos"]}
    if "maxjobs" in given:
        found["max"] = {"jobs": {"active": given["maxjobs"]}}
    return found


def _removed(association: Record) -> str:
    text = f"C = {association['cluster']:<10} A = {association['account']:<10}"
    if association["user"]:
        text += f" U = {association['user']:<9}"
    elif association["parent_account"]:
        text = f"C = {association['cluster']:<10} A = {association['account']} of {association['parent_account']}"
    return text + (f" P = {association['partition']}" if association["partition"] else "")
