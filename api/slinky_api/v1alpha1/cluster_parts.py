"""The parts of a Cluster: its daemons, its users, its partitions."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from slinky_api.v1alpha1.common import (
    ApiModel,
    Component,
    ConfigMapRef,
    KeyRef,
    Persistence,
    Resources,
    SecretRef,
    ServiceFragment,
)
from slinky_api.v1alpha1.fields import (
    ConfText,
    Duration,
    HostName,
    Image,
    NodeExpression,
    NodeLine,
    PartitionLine,
    PartitionName,
    ShortName,
    SlurmNodeSetName,
    UserName,
)
from slinky_api.v1alpha1.rules import cel


class Endpoint(ApiModel):
    """A daemon that runs elsewhere."""

    host: HostName
    """Host name or address, reachable from the pods."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port; the daemon's usual one where absent."""


class Controller(Component):
    """The Slurm controller, slurmctld."""

    external: Endpoint | None = None
    """With spec.server only: where slurmctld listens (port 6817 where absent), for NodeSets
    without a whole template."""
    persistence: Persistence = Field(default_factory=Persistence)
    """Where slurmctld keeps its state."""
    service: ServiceFragment | None = None
    """Labels and annotations of the Service in front of slurmctld. It is headless: spec has no effect, and Degraded
    says so."""


class RestApi(Component):
    """The REST daemon, slurmrestd."""

    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    """Number of pods. With 0 the operator is blind, and no slurmd pod is deleted."""
    service: ServiceFragment | None = None
    """The Service in front of slurmrestd."""


class Database(ApiModel):
    """The MariaDB or MySQL server that slurmdbd uses."""

    host: HostName
    """Host name or address."""
    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    """Port."""
    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_]+$")] = "slurm_acct_db"
    """Name of the database."""
    username: UserName = "slurm"
    """User."""
    password_ref: KeyRef | None = None
    """Secret with the password (key password)."""


class MariaDb(Component):
    """A MariaDB that the operator runs for slurmdbd."""

    persistence: Persistence = Field(default_factory=Persistence)
    """Where the database keeps its data."""


class Accounting(Component):
    """The accounting daemon, slurmdbd. Without database and external it gets a MariaDB of its own."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "[has(self.external), has(self.database), has(self.mariadb)].filter(given, given).size() <= 1",
                    "only one of external, database and mariadb can be given",
                )
            ]
        }
    )

    enabled: bool = True
    """Whether there is accounting, given this section. Without the section there is none."""
    external: Endpoint | None = None
    """A slurmdbd that runs elsewhere (port 6819 where absent)."""
    database: Database | None = None
    """A database that runs elsewhere."""
    mariadb: MariaDb | None = None
    """How the operator's own MariaDB is to be."""
    extra_conf: ConfText = ""
    """Lines for slurmdbd.conf."""
    service: ServiceFragment | None = None
    """The Service in front of slurmdbd."""

    @model_validator(mode="after")
    def _one_backend(self) -> Self:
        if sum(given is not None for given in (self.external, self.database, self.mariadb)) > 1:
            raise ValueError("only one of external, database and mariadb can be given")
        return self


class Login(Component):
    """Login pods: sackd beside an SSH server."""

    name: ShortName
    """Name of this set of login pods."""
    replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Number of pods."""
    service: ServiceFragment | None = None
    """The Service in front of the SSH servers."""
    root_ssh_authorized_keys: Annotated[str, Field(max_length=65536)] = ""
    """Lines for root's authorized_keys."""
    extra_sshd_config: Annotated[str, Field(max_length=65536)] = ""
    """Lines for sshd_config."""
    ssh_host_keys_ref: SecretRef | None = None
    """Secret with the SSH host keys; generated where absent."""


class Sssd(ApiModel):
    """Users from SSSD."""

    conf_ref: KeyRef
    """Secret with the configuration of SSSD (key sssd.conf)."""
    image: Image | None = None
    """Image of the SSSD sidecar; the operator's setting where absent."""
    resources: Resources | None = None
    """Resource requests and limits of the sidecar."""


class Passwd(ApiModel):
    """Users from files."""

    config_map_ref: ConfigMapRef
    """ConfigMap with the keys passwd and group, whose lines are added to those of the image."""


class Identity(ApiModel):
    """Where users come from, for every daemon that needs to know them."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel("!(has(self.sssd) && has(self.passwd))", "only one of sssd and passwd can be given")
            ]
        }
    )

    sssd: Sssd | None = None
    """Users from SSSD."""
    passwd: Passwd | None = None
    """Users from files."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.sssd is not None and self.passwd is not None:
            raise ValueError("only one of sssd and passwd can be given")
        return self


class Partition(ApiModel):
    """A partition over NodeSets and static nodes."""

    name: PartitionName
    """Name of the partition."""
    node_sets: Annotated[tuple[SlurmNodeSetName, ...], Field(max_length=256)] = ()
    """Names of NodeSets, or ALL."""
    nodes: Annotated[tuple[NodeExpression, ...], Field(max_length=256)] = ()
    """Names or hostlists of static nodes (spec.nodes)."""
    config: PartitionLine = ""
    """Further keys of the partition's line, for instance Default=YES MaxTime=8:00:00."""


class StaticNode(ApiModel):
    """Nodes whose slurmd runs outside Kubernetes."""

    name: NodeExpression
    """Name of the node, or a hostlist such as metal[01-16]."""
    config: NodeLine = ""
    """Further keys of the node's line, for instance CPUs=64 RealMemory=512000."""


class ServiceMonitor(ApiModel):
    """A ServiceMonitor for the Prometheus operator."""

    enabled: bool = False
    """Whether there is one."""
    interval: Duration | None = None
    """How often to ask."""
    scrape_timeout: Duration | None = None
    """How long an answer may take."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that make Prometheus find it."""


class Metrics(ApiModel):
    """Metrics of slurmctld itself (Slurm 25.11 and later)."""

    enabled: bool = False
    """Whether slurmctld serves them."""
    service_monitor: ServiceMonitor = Field(default_factory=ServiceMonitor)
    """How Prometheus finds them. Not supported yet: without effect, and Degraded says so."""
