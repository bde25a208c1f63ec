"""
What slurmrestd's operations of slurmdbd do in the fake, and what they answer.

The methods are called as the operations are in the wire tables. What is not found is no error to slurmdbd: an empty
list and a warning, or 304 where something was to be deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.testing.answers.calls import Call, Reply, error
from slurm_client.testing.database import history
from slurm_client.testing.database.accounts import AccountOperations
from slurm_client.testing.database.answers import asked, in_order
from slurm_client.testing.database.records import Record, recorded, written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.testing.database.history import JobsOnRecord
    from slurm_client.testing.world import World


class DatabaseOperations(AccountOperations):
    """
    Operations on the database, each of which takes a call and gives a reply.

    Parameters
    ----------
    world
        The pretended cluster; `jobs` are its jobs on record.
    """

    def __init__(self, world: World, jobs: JobsOnRecord) -> None:
        super().__init__(world)
        self._jobs = jobs

    def answer(self, call: Call, operators: Iterable[str]) -> Reply:
        """Do what is asked."""
        handler = getattr(self, f"_{call.operation}", None)
        if handler is None:
            return Reply(status=500, errors=[error(2036, f"the fake has no {call.operation}")])
        if not call.operation.startswith("db_get_") and not self._may_write(call.user, operators):
            return self._refused(2002, "slurmdbd refused", sentence="Access/permission denied")
        reply: Reply = handler(call)
        return reply

    def _may_write(self, user: str, operators: Iterable[str]) -> bool:
        level = self.database.users.get(user, {}).get("administrator_level", ["None"])
        return user in operators or bool({"Operator", "Administrator"} & set(level))

    # the service itself

    def _db_get_ping(self, call: Call) -> Reply:
        return self._list(call, "pings", "ping", [recorded("ping")])

    def _db_get_diag(self, call: Call) -> Reply:
        return Reply({"statistics": written("statistics", recorded("statistics"), call.version)})

    def _db_get_conf(self, _: Call) -> Reply:
        return Reply({"slurmdbd_conf": recorded("conf")})

    def _db_get_config(self, call: Call) -> Reply:
        parts = (
            self._list(call, "clusters", "cluster", self.database.clusters.values()),
            Reply({"tres": recorded("tres")}),
            self._list(call, "accounts", "account", self._accounts({})),
            self._list(call, "users", "user", self._users({"with_assocs": ""})),
            self._list(call, "qos", "qos", self.database.qos.values()),
            self._list(call, "wckeys", "wckey", self.database.wckeys),
            self._list(call, "associations", "association", self.database.associations),
        )
        return Reply({key: value for part in parts for key, value in part.payload.items()})

    def _db_get_tres(self, _: Call) -> Reply:
        return Reply({"TRES": recorded("tres")})

    def _db_get_instances(self, _: Call) -> Reply:
        return Reply({"instances": []}, warnings=[self._nothing("instances_get", "_dump_instance_cond")])

    _db_get_instance = _db_get_instances

    # clusters and WCKeys

    def _db_get_clusters(self, call: Call) -> Reply:
        return self._list(call, "clusters", "cluster", in_order(self.database.clusters))

    def _db_get_cluster(self, call: Call) -> Reply:
        name = call.parameters["cluster_name"]
        found = [each for each in self.database.clusters.values() if each["name"] == name]
        return self._list(call, "clusters", "cluster", found, "clusters_get", "_dump_clusters")

    def _db_post_clusters(self, call: Call) -> Reply:
        refused = self._unnamed(call, "clusters", ("name",))
        for given in (call.body["clusters"] or ()) if refused is None else ():
            self.database.add_cluster(**given)
        return refused or Reply()

    def _db_delete_cluster(self, call: Call) -> Reply:
        name = call.parameters["cluster_name"]
        if self.database.clusters.pop(name, None) is None:
            return Reply(status=304)
        self.database.remove_associations(lambda each: each["cluster"] == name)
        return Reply({"deleted_clusters": [name]})

    def _db_get_wckeys(self, call: Call) -> Reply:
        found = [
            each
            for each in self.database.wckeys
            if all(
                each[key] in call.query[key].split(",") for key in ("name", "user", "cluster") if call.query.get(key)
            )
        ]
        return self._list(call, "wckeys", "wckey", found, "wckeys_get", "_dump_wckeys")

    def _db_get_wckey(self, call: Call) -> Reply:
        # As measured: what is called an id is the name.
        found = [each for each in self.database.wckeys if each["name"] == call.parameters["id"]]
        return self._list(call, "wckeys", "wckey", found, "wckeys_get", "_dump_wckeys")

    def _db_post_wckeys(self, call: Call) -> Reply:
        refused = self._unnamed(call, "wckeys", ("name", "user", "cluster"))
        for given in (call.body["wckeys"] or ()) if refused is None else ():
            self.database.add_wckey(given["name"], given["user"], given["cluster"])
        return refused or Reply()

    def _db_delete_wckey(self, call: Call) -> Reply:
        gone = [each for each in self.database.wckeys if each["name"] == call.parameters["id"]]
        if not gone:
            return Reply({"deleted_wckeys": []}, warnings=[self._nothing("wckeys_remove", "_delete_wckey")])
        self.database.wckeys = [each for each in self.database.wckeys if each not in gone]
        lines = [f"C = {each['cluster']:<10} W = {each['name']:<20} U = {each['user']:<9}" for each in gone]
        return Reply({"deleted_wckeys": lines})

    # QOS

    def _db_get_qos(self, call: Call) -> Reply:
        # As measured: its filters are not looked at.
        return self._list(call, "qos", "qos", self.database.qos.values(), "qos_get", "_op_handler_qos")

    def _db_get_single_qos(self, call: Call) -> Reply:
        found = [each for each in self.database.qos.values() if each["name"] == call.parameters["qos"]]
        return self._list(call, "qos", "qos", found, "qos_get", "_op_handler_qos")

    def _db_post_qos(self, call: Call) -> Reply:
        refused = self._unnamed(call, "qos", ())
        if refused is not None:
            return refused
        for given in call.body["qos"] or ():
            if not given.get("name"):
                source = "_foreach_update_qos"
                return Reply(status=422, errors=[error(9000, "Cannot create a QOS without a name", source=source)])
            self.database.add_qos(**{key: value for key, value in given.items() if key != "id"})
        return Reply()

    def _db_delete_single_qos(self, call: Call) -> Reply:
        name = call.parameters["qos"]
        in_use = any(not job.is_finished and (job.qos or "normal") == name for job in self._jobs.values())
        if self._world.clears_reasons and in_use:
            sentence = "Job(s) active, cancel job(s) before remove"
            return self._refused(7001, "slurmdb_qos_remove failed", sentence=sentence, source="_op_handler_qos")
        if self.database.qos.pop(name, None) is not None:
            return Reply({"removed_qos": [name]})
        if self._world.clears_reasons:
            return Reply(status=304)
        return Reply({"removed_qos": []}, warnings=[self._nothing("qos_remove", "_op_handler_qos")])

    # history

    def _record(self, call: Call, job: Any) -> Record:
        names = (job.account, job.user)
        own = next((each["id"] for each in self.database.associations if (each["account"], each["user"]) == names), 0)
        made = history.record(job, self._jobs, self.database.cluster, own, self._world.now)
        return written("job", made, call.version)

    def _db_get_jobs(self, call: Call) -> Reply:
        status, errors = history.complaints(call.query, call.version, self._world.now)
        if errors:
            warnings = [self._nothing("jobs_get", "_dump_jobs")] if status == 500 else []
            return Reply({"jobs": []}, status=status, errors=errors, warnings=warnings)
        chosen = self._jobs.chosen(call.query, self._world.now, self.database.cluster)
        jobs = [self._record(call, job) for job in chosen]
        if asked(call.query, "skip_steps"):
            jobs = [job | {"steps": []} for job in jobs]
        return Reply({"jobs": jobs}, warnings=[] if jobs else [self._nothing("jobs_get", "_dump_jobs")])

    def _db_get_job(self, call: Call) -> Reply:
        text = call.parameters["job_id"]
        if not text.partition(".")[0].replace("_", "", 1).isdecimal():
            description = "Rejecting request. Failure parsing query parameters"
            return Reply({"jobs": []}, status=422, errors=[error(9000, description, source="op_handler_job")])
        jobs = [self._record(call, job) for job in self._jobs.of(text)]
        return Reply({"jobs": jobs}, warnings=[] if jobs else [self._nothing("jobs_get", "_dump_jobs")])

    def _db_post_job(self, call: Call) -> Reply:
        return self._changed([call.parameters["job_id"]], call.body or {})

    def _db_post_jobs(self, call: Call) -> Reply:
        body = call.body or {}
        # As measured: an empty list means every job.
        texts = body.get("job_id_list") or [str(number) for number in self._jobs.history]
        return self._changed(texts, body.get("job_rec") or {})

    def _changed(self, texts: Iterable[str], change: Record) -> Reply:
        jobs = {job.id: job for text in texts for job in self._jobs.of(str(text))}.values()
        for job in jobs:
            known = self._jobs.comments.setdefault(job.id, {"comment": {}})
            known["comment"].update(change.get("comment") or {})
            if "extra" in change:
                known["extra"] = change["extra"]
            if "derived_exit_code" in change:
                # As it comes: the high byte is the code, the low one a signal.
                status = int(change["derived_exit_code"]["return_code"]["number"])
                known["derived_exit_code"] = history.exit_status(status)
            if "wckey" in change:
                known["wckey"] = {"wckey": change["wckey"]}
        if not jobs:
            return Reply(status=304)
        when = self._world.now.strftime("%Y-%m-%dT%H:%M:%S")
        return Reply({"results": [f"{job.id} submitted at {when}" for job in jobs]})
