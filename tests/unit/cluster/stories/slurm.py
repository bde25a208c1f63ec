"""A Slurm that answers at once what a story says, behind the connections that the operator makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slinky_operator.pod_programs.agent.files import expected
from slinky_operator.pod_programs.agent.hosts import names_in
from slinky_operator.slurm.conf.render import SLURM_CONF
from slinky_operator.slurm.conf.syntax.parsed import parse
from slinky_operator.slurm.connection.clients import OwnTokens
from slinky_operator.slurm.connection.contact import Contact, ContactState, Endpoint, Trouble
from slinky_operator.slurm.connection.key_proof import Answer, Holder, Verdict
from slinky_operator.slurm.connection.pod_reader import NoAnswer
from slinky_operator.slurm.connection.signed_messages import SharedKey
from slurm_client import TokenProvider, errors
from slurm_client.models import Job, JobState, Partition, PartitionState, Reservation
from slurm_client.models.database.clusters import ClusterRecord
from slurm_client.models.job import JobStateEntry
from slurm_client.operations.base import Listing
from tests.support.account_database import AccountDatabase

Asked = Callable[[str], None]


@dataclass
class Slurm:
    """slurmctld, slurmdbd and the agents, as they answer."""

    asked: Asked
    clock: Callable[[], float]
    spend: Callable[[float], None]
    release: str = "26.05.5"
    trouble: Trouble = Trouble.NONE
    """Why slurmctld cannot be asked."""

    mounted: Mapping[str, str] = field(default_factory=dict)
    """The files in slurmctld's pod."""

    read: Mapping[str, str] = field(default_factory=dict)
    """The files that slurmctld has read."""

    read_at: float = 0.0
    refuses: Callable[[str], str] = lambda text: ""
    """What slurmctld says of a text when it is asked to read it again; empty if it takes it."""

    reads: bool = True
    """Whether a reconfigure has an effect."""

    takes: float = 0.0
    """Seconds that a list of all jobs takes."""

    away_for: int = 0
    """Answers that do not come after a reconfigure."""

    states: dict[str, str] = field(default_factory=dict)
    """States of partitions that an administrator has set."""

    jobs: tuple[Job, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    database: AccountDatabase = field(default_factory=AccountDatabase)
    registered: str = "10.0.0.1"
    """Address of the slurmctld that slurmdbd knows."""

    rooms: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes of volumes by name, all and free, where they are not half full."""

    missing: frozenset[str] = frozenset()
    """Host names without an address."""

    offline: dict[str, int] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    """Paths of agents that do not answer."""

    lacks_keys: frozenset[str] = frozenset()
    """Ids of keys of auth/slurm that no daemon has yet."""

    refused_tokens: int = 0
    """How many trials of another key are refused from now on."""

    # what slurmrestd answers

    @property
    def db(self) -> Slurmdbd:
        return Slurmdbd(self)

    @property
    def slurm_version(self) -> str:
        return self.release

    @property
    def api_version(self) -> str:
        return "v0.0.45" if self.release.startswith("26") else "v0.0.42"

    def answer(self, question: str) -> None:
        """Tell of a question, and fail if there is no answer."""
        self.asked(question)
        if self.away_for:
            self.away_for -= 1
            raise errors.Timeout("no answer within 5.0 s")
        if self.trouble:
            raise errors.ControllerDown("the server answered 504")

    async def partitions(self, update_time: int | None = None, **_: float) -> Listing[Partition] | None:
        self.answer("partitions" if update_time is None else "changed partitions")
        if update_time is not None and update_time > self.read_at:
            return None
        found = parse(self.read.get(SLURM_CONF, ""))
        shown = [
            Partition(
                name=name,
                node_sets=",".join(one for one in line.nodes if one in found.words_for_node_sets),
                state=PartitionState(base=self.states.get(name, line.get("State") or "UP")),
            )
            for name, line in sorted(found.partitions.items())
        ]
        return Listing(tuple(shown), last_update=int(self.clock()))

    async def reservations_(self, **_: float) -> Listing[Reservation]:
        self.answer("reservations")
        return Listing(self.reservations, last_update=int(self.clock()))

    async def reconfigure(self, **_: float) -> None:
        self.answer("reconfigure")
        why = self.refuses(self.mounted.get(SLURM_CONF, ""))
        if why:
            raise errors.ServerError(why)
        if self.reads:
            self.read, self.read_at = dict(self.mounted), self.clock()

    async def job_states(self, **_: float) -> Sequence[JobStateEntry]:
        self.answer("states of jobs")
        return [JobStateEntry(id=str(one.id), state=one.state) for one in self.jobs]

    async def job(self, number: int, **_: float) -> Job:
        self.answer("one job")
        found = [one for one in self.jobs if one.id == number]
        if not found:
            raise errors.NotFound("no such job")
        return found[0]

    async def all_jobs(self, **_: float) -> Sequence[Job]:
        self.answer("jobs")
        self.spend(self.takes)
        return self.jobs

    # what agents answer

    def agent(self, url: str) -> Mapping[str, Any]:
        path = url.rpartition("/")[2]
        self.asked(f"agent {path}")
        if path in self.silent:
            raise NoAnswer("All connection attempts failed")
        names = frozenset(names_in(self.mounted.get(SLURM_CONF, "")))
        volumes = {}
        for name in ("slurmctld", "MariaDB"):
            size, free = self.rooms.get(name, (2**30, 2**29))
            volumes[name] = {"size": size, "free": free, "inodes": 1000, "inodesFree": 900}
        answers: dict[str, Mapping[str, Any]] = {
            "files": {"files": expected(self.mounted)},
            "names": {"names": {"found": sorted(names - self.missing), "missing": sorted(names & self.missing)}},
            "directory": {"offline": dict(self.offline)},
            "volumes": {"volumes": volumes},
        }
        return answers[path]

    async def key(self, holder: Holder, key: SharedKey) -> Answer:
        self.asked(f"{holder.name} for key {key.kid}")
        if key.kid in self.lacks_keys:
            return Answer(Verdict.REFUSED)
        return Answer(Verdict.ACCEPTED)


class Slurmdbd:
    """Its calls; those about accounts are the model's."""

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm

    def __getattr__(self, name: str) -> Any:
        self._slurm.asked(f"slurmdbd {name.replace('_', ' ')}")
        return getattr(self._slurm.database, name)

    async def cluster(self, name: str, **_: float) -> ClusterRecord:
        self._slurm.answer("slurmdbd cluster")
        if self._slurm.database.down is not None:
            raise self._slurm.database.down
        if not self._slurm.registered:
            raise errors.NotFound("no such cluster")
        return ClusterRecord(name=name, controller_host=self._slurm.registered)


class Calls:
    """What the operator calls of a connection."""

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slurm, "reservations_" if name == "reservations" else name)


@dataclass
class Routes:
    """Where calls go."""

    tell: Asked
    urls: tuple[str, ...]

    def use(self, urls: Sequence[str]) -> None:
        self.tell(f"use replicas {', '.join(urls) or 'none'}")
        self.urls = tuple(urls)


@dataclass
class Connection:
    """One Cluster's Slurm as the operator sees it."""

    slurm: Slurm
    tell: Asked
    uid: str
    namespace: str
    name: str
    endpoint: Endpoint
    fingerprint: str
    replicas: Routes
    since: datetime
    waiting: tuple[Any, ...] = ()
    volumes: Mapping[str, Any] = field(default_factory=dict)
    nodes: Mapping[str, Any] = field(default_factory=dict)
    _key: SharedKey | None = None

    @property
    def slurm_key(self) -> SharedKey | None:
        return self._key

    @slurm_key.setter
    def slurm_key(self, key: SharedKey | None) -> None:
        if key != self._key:
            self.tell(f"ask slurmds with key {'none' if key is None else key.kid or 'of slurm.key'}")
        self._key = key

    @property
    def client(self) -> Calls:
        return Calls(self.slurm)

    @property
    def contact(self) -> Contact:
        if self.slurm.trouble:
            return Contact(ContactState.UNREACHABLE, self.since, "the server answered 504", self.slurm.trouble)
        return Contact(ContactState.READY, self.since, "")

    @property
    def answered_at(self) -> datetime:
        return self.since

    def hurry(self) -> None:
        self.tell("poll Slurm now")

    async def fresh_jobs(self) -> Sequence[Job]:
        return await self.slurm.all_jobs()


class Connections:
    """The client map."""

    def __init__(self, slurm: Slurm, tell: Asked, wall: Callable[[], datetime]) -> None:
        self._slurm, self._tell, self._wall = slurm, tell, wall
        self.entries: dict[str, Connection] = {}

    def get(self, uid: str) -> Connection | None:
        return self.entries.get(uid)

    async def put(
        self,
        uid: str,
        namespace: str,
        name: str,
        *,
        endpoint: Endpoint,
        token: TokenProvider,
        fingerprint: str,
        replicas: Sequence[str] = (),
    ) -> Connection:
        known = self.entries.get(uid)
        if known is not None and known.fingerprint == fingerprint:
            return known
        signs = f"{len(token._signers)} keys" if isinstance(token, OwnTokens) else "a token"
        where = f" by {', '.join(replicas)}" if replicas else ""
        trusts = " with a CA" if endpoint.ca_pem else ""
        self._tell(f"connect with {signs} to {endpoint.url}{where}{trusts} {fingerprint}")
        routes = Routes(self._tell, tuple(replicas))
        made = Connection(
            self._slurm, self._tell, uid, namespace, name, endpoint, fingerprint, routes, since=self._wall()
        )
        self.entries[uid] = made
        return made

    async def why_refused(self, uid: str, token: TokenProvider) -> str:
        self._tell("try another key of auth/jwt")
        if self._slurm.refused_tokens:
            self._slurm.refused_tokens -= 1
            return "Protocol authentication error"
        return ""

    async def close(self, uid: str) -> None:
        if self.entries.pop(uid, None) is not None:
            self._tell("disconnect")


def job(number: int, state: str = "RUNNING", partition: str = "all", **values: Any) -> Job:
    return Job(id=number, name="", state=JobState(base=state), partition=partition, **values)
