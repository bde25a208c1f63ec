"""
A model of what slurmdbd does with accounts, users, associations and QOS, behind the calls of the client library.

It refuses what slurmdbd refuses, so that an order of changes that does not work is noticed; and it counts writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import errors
from slurm_client.models import (
    INFINITE,
    Account,
    AccountSpec,
    Association,
    AssociationKey,
    AssociationLimits,
    AssociationSpec,
    Coordinator,
    Job,
    Partition,
    Qos,
    QosLimits,
    QosSpec,
    User,
    UserSpec,
)
from slurm_client.notation.tres import Tres

CLUSTER = "here_slurm"


def nothing(kind: type[Any]) -> Any:
    """Limits as slurmdbd shows them where none are set."""
    return kind(**{one.name: Tres() if one.metadata["kind"] == "tres" else INFINITE for one in fields(kind)})


def named_fields(spec: object, *names: str) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in names if getattr(spec, name) is not None}


def limited(there: Any, wanted: Any) -> Any:
    """Limits after a change."""
    if wanted is None:
        return there
    return replace(there, **named_fields(wanted, *(one.name for one in fields(wanted))))


@dataclass
class AccountDatabase:
    """slurmdbd with one cluster, and `others`."""

    cluster: str = CLUSTER
    others: tuple[str, ...] = ()
    all_qos: dict[str, Qos] = field(default_factory=dict)
    all_accounts: dict[str, Account] = field(default_factory=dict)
    all_users: dict[str, User] = field(default_factory=dict)
    all_associations: dict[AssociationKey, Association] = field(default_factory=dict)
    jobs_left: tuple[Job, ...] = ()
    partitions_left: tuple[Partition, ...] = ()
    writes: list[str] = field(default_factory=list)
    refuses: dict[str, errors.SlurmError] = field(default_factory=dict)
    """What is answered to a write instead, by the name of what it is about."""

    after_reading: Callable[[], None] = lambda: None
    """What others do right after the list of associations was read."""

    down: errors.SlurmError | None = None
    """What is answered to everything instead."""

    def __post_init__(self) -> None:
        self.all_qos["normal"] = Qos(name="normal", priority=0, limits=nothing(QosLimits))
        self.all_accounts["root"] = Account(name="root", description="default root account", organization="root")
        self.all_users["root"] = User(name="root", administrator_level="Administrator")
        for cluster in (self.cluster, *self.others):
            for user in ("", "root"):
                self._associate(AssociationKey("root", cluster, user), qos=("normal",), is_default=bool(user))

    def client(self) -> ClusterClient:
        """The connection through which the operator reaches it."""
        return cast("ClusterClient", _Connection(self))

    # reading

    async def qos_list(self, **limits: float) -> tuple[Qos, ...]:
        return self._answer(self.all_qos.values(), limits)

    async def accounts(self, *, coordinators: bool, **limits: float) -> tuple[Account, ...]:
        assert coordinators
        return self._answer(self.all_accounts.values(), limits)

    async def users(self, **limits: float) -> tuple[User, ...]:
        return self._answer(self.all_users.values(), limits)

    async def associations(
        self,
        *,
        account: str | None = None,
        user: str | None = None,
        cluster: str | None = None,
        inherited: bool,
        **limits: float,
    ) -> tuple[Association, ...]:
        assert not inherited
        found = [
            one
            for one in self.all_associations.values()
            if cluster in {None, one.cluster} and account in {None, one.account} and user in {None, one.user}
        ]
        answer = self._answer(found, limits)
        if (account, user) == (None, None):
            self.after_reading()
        return answer

    async def clusters(self, **limits: float) -> tuple[str, ...]:
        return self._answer((self.cluster, *self.others), limits)

    async def jobs(self, **limits: float) -> tuple[Job, ...]:
        return self._answer(self.jobs_left, limits)

    async def partitions(self, **limits: float) -> tuple[Partition, ...]:
        return self._answer(self.partitions_left, limits)

    # writing

    async def create_qos(self, spec: QosSpec, **limits: float) -> None:
        self._write("create", "QOS", spec.name, limits)
        if spec.name in self.all_qos:
            raise errors.Conflict(f"there is a QOS {spec.name}")
        self.all_qos[spec.name] = Qos(name=spec.name, priority=0, limits=nothing(QosLimits))
        self._change_qos(spec)

    async def update_qos(self, spec: QosSpec, **limits: float) -> None:
        self._write("update", "QOS", spec.name, limits)
        self._change_qos(spec)

    async def delete_qos(self, name: str, **limits: float) -> None:
        self._write("delete", "QOS", name, limits)
        assert name != "normal"
        if any(name in {*one.qos, one.default_qos} for one in self.all_associations.values()):
            raise errors.InvalidRequest(f"QOS {name} is in use")
        del self.all_qos[name]

    async def create_account(self, spec: AccountSpec, **limits: float) -> None:
        self._write("create", "account", spec.name, limits)
        if spec.name in self.all_accounts:
            raise errors.Conflict(f"there is an account {spec.name}")
        self.all_accounts[spec.name] = Account(name=spec.name, description=spec.name, organization=spec.name)
        self._change_account(spec)

    async def update_account(self, spec: AccountSpec, **limits: float) -> None:
        self._write("update", "account", spec.name, limits)
        self._change_account(spec)

    async def delete_account(self, name: str, **limits: float) -> None:
        self._write("delete", "account", name, limits)
        assert name != "root"
        if any(one.parent_account == name for one in self.all_associations.values()):
            raise errors.InvalidRequest(f"there are accounts below {name}")
        going = {key for key in self.all_associations if key.account == name}
        for key in going:
            self._check_default(key)
        del self.all_accounts[name]
        self._drop(going)

    async def create_user(self, spec: UserSpec, **limits: float) -> None:
        self._write("create", "user", spec.name, limits)
        if spec.name in self.all_users:
            raise errors.Conflict(f"there is a user {spec.name}")
        self.all_users[spec.name] = User(name=spec.name, administrator_level=spec.administrator_level or "None")

    async def update_user(self, spec: UserSpec, **limits: float) -> None:
        self._write("update", "user", spec.name, limits)
        there = self.all_users[spec.name]
        self.all_users[spec.name] = replace(there, **named_fields(spec, "administrator_level"))

    async def delete_user(self, name: str, **limits: float) -> None:
        self._write("delete", "user", name, limits)
        assert name != "root"
        del self.all_users[name]
        self._drop({key for key in self.all_associations if key.user == name})

    async def create_association(self, spec: AssociationSpec, **limits: float) -> None:
        self._write("create", "association", spec.user or spec.account, limits)
        key = spec.key
        if key in self.all_associations:
            raise errors.Conflict("there is one")
        if spec.account not in self.all_accounts:
            raise errors.NotFound(f"no account {spec.account}")
        above = AssociationKey(spec.account if spec.user else spec.parent_account or "root", spec.cluster)
        if above not in self.all_associations:
            raise errors.NotFound(f"no association of {above.account}")
        if spec.user:
            _ = self.all_users.setdefault(spec.user, User(name=spec.user, administrator_level="None"))
        first = not any(one.user == spec.user and one.cluster == spec.cluster for one in self.all_associations)
        parent = "" if spec.user else above.account
        self._associate(key, parent_account=parent, is_default=bool(spec.user) and first)
        self._change_association(spec)

    async def update_association(self, spec: AssociationSpec, **limits: float) -> None:
        self._write("update", "association", spec.user or spec.account, limits)
        assert spec.parent_account is None
        self._change_association(spec)

    async def delete_association(self, key: AssociationKey, **limits: float) -> None:
        self._write("delete", "association", key.user or key.account, limits)
        below = [one for one in self.all_associations if (one.account, one.cluster) == (key.account, key.cluster)]
        if not key.user and below != [key]:
            raise errors.Conflict("there are users below it")
        self._check_default(key)
        assert (key.account, key.user) not in {(job.account, job.user) for job in self.jobs_left}, "deleted under a job"
        self._drop({key})

    # what the writes have in common

    def _answer(self, found: Any, limits: Mapping[str, float]) -> tuple[Any, ...]:
        assert limits["timeout"] > 0, "a call without a limit of time"
        if self.down is not None:
            raise self.down
        return tuple(found)

    def _write(self, verb: str, kind: str, name: str, limits: Mapping[str, float]) -> None:
        _ = self._answer((), limits)
        self.writes.append(f"{verb} {kind} {name}")
        if name in self.refuses:
            raise self.refuses[name]
        used = any(name in {job.user, job.account, job.qos} for job in self.jobs_left)
        assert not (used and verb == "delete" and kind != "association"), "deleted under a job"

    def _associate(self, key: AssociationKey, **values: Any) -> None:
        self.all_associations[key] = Association(
            account=key.account,
            cluster=key.cluster,
            user=key.user,
            partition=key.partition,
            shares=1,
            limits=nothing(AssociationLimits),
            **values,
        )

    def _known_qos(self, *names: str) -> None:
        for name in names:
            if name not in self.all_qos:
                raise errors.InvalidRequest(f"no QOS {name}")

    def _change_qos(self, spec: QosSpec) -> None:
        self._known_qos(*(spec.preempts or ()))
        there = self.all_qos[spec.name]
        values = named_fields(spec, "description", "priority", "grace_time", "usage_factor", "usage_threshold")
        values |= {name: tuple(value) for name, value in named_fields(spec, "preempts", "preempt_modes").items()}
        if spec.flags is not None:
            values["flags"] = frozenset(spec.flags)
        self.all_qos[spec.name] = replace(there, **values, limits=limited(there.limits, spec.limits))

    def _change_account(self, spec: AccountSpec) -> None:
        values = named_fields(spec, "description", "organization")
        if spec.coordinators is not None:
            if not set(spec.coordinators) <= self.all_users.keys():
                raise errors.InvalidRequest("a coordinator must be a user")
            values["coordinators"] = tuple(map(Coordinator, spec.coordinators))
        self.all_accounts[spec.name] = replace(self.all_accounts[spec.name], **values)

    def _change_association(self, spec: AssociationSpec) -> None:
        self._known_qos(*(spec.qos or ()), *((spec.default_qos,) if spec.default_qos else ()))
        if spec.is_default:
            for key, one in self.all_associations.items():
                if key.user == spec.user and key.cluster == spec.cluster:
                    self.all_associations[key] = replace(one, is_default=False)
        there = self.all_associations[spec.key]
        values = named_fields(spec, "shares", "default_qos", "is_default")
        if spec.qos is not None:
            values["qos"] = tuple(spec.qos)
        self.all_associations[spec.key] = replace(there, **values, limits=limited(there.limits, spec.limits))

    def _check_default(self, key: AssociationKey) -> None:
        others = [one for one in self.all_associations if (one.user, one.cluster) == (key.user, key.cluster)]
        if self.all_associations[key].is_default and len(others) > 1:
            raise errors.InvalidRequest(f"{key.account} is the default account of {key.user}")

    def _drop(self, keys: set[AssociationKey]) -> None:
        self.all_associations = {key: one for key, one in self.all_associations.items() if key not in keys}


@dataclass
class _Connection:
    """What the operator sees of a connection."""

    database: AccountDatabase
    namespace: str = "ns"
    uid: str = "uid"

    @property
    def client(self) -> _Connection:
        return self

    @property
    def db(self) -> AccountDatabase:
        return self.database

    async def jobs(self, **limits: float) -> tuple[Job, ...]:
        return await self.database.jobs(**limits)

    all_jobs = jobs

    async def partitions(self, **limits: float) -> tuple[Partition, ...]:
        return await self.database.partitions(**limits)
