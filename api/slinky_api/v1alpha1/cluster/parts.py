"""The parts of a Cluster: daemons, users, partitions."""

from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_api.v1alpha1.common import (
    ApiModel,
    Component,
    ConfigMapRef,
    KeyRef,
    Persistence,
    Resources,
    ServiceFragment,
)
from slinky_api.v1alpha1.fields import (
    AnyMap,
    ConfText,
    DnsSubdomain,
    HomesFolder,
    HostName,
    Image,
    NodeExpression,
    NodeLine,
    PartitionLine,
    PartitionName,
    SlurmNodeSetName,
    UserName,
)
from slinky_api.v1alpha1.rules import cel


class Endpoint(ApiModel):
    """A daemon that runs elsewhere."""

    host: HostName
    """Host name or address, reachable from the pods."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port. Default: the daemon's standard port."""


class Controller(Component):
    """The Slurm controller, slurmctld."""

    external: Endpoint | None = None
    """Only with spec.server: the address of slurmctld (default port 6817), for NodeSets without a complete template."""
    persistence: Persistence = Field(default_factory=Persistence)
    """Where slurmctld keeps its state."""
    service: ServiceFragment | None = None
    """The Service in front of slurmctld, which is headless: labels and annotations are added to it. With spec there is
    a second one, <cluster>-controller-outside, of which spec gives the type and other fields, for slurmds and commands
    outside Kubernetes, and a ConfigMap of that name with what their administrator needs."""


class RestApi(Component):
    """The REST daemon, slurmrestd."""

    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    """Number of pods. With 0 the operator cannot reach Slurm, and no slurmd pod is deleted."""
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


_OF_OWN_SLURMDBD: Final = ("image", "resources", "template", "extraConf", "service")
_OF_OWN_SLURMDBD_MESSAGE: Final = "cannot be set with external: it is only for a slurmdbd that the operator runs"


class Accounting(Component):
    """The accounting daemon, slurmdbd. Without database and external it gets its own MariaDB."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "[has(self.external), has(self.database), has(self.mariadb)].filter(given, given).size() <= 1",
                    "only one of external, database and mariadb can be given",
                ),
                *(
                    cel(
                        f"!has(self.external) || !has(self.{name})",
                        f"{name} {_OF_OWN_SLURMDBD_MESSAGE}",
                        field=f".{name}",
                    )
                    for name in _OF_OWN_SLURMDBD
                ),
            ]
        }
    )

    enabled: bool = True
    """Whether accounting is enabled. Without the section accounting, it is not."""
    external: Endpoint | None = None
    """A slurmdbd that runs elsewhere (default port 6819)."""
    database: Database | None = None
    """A database that runs elsewhere."""
    mariadb: MariaDb | None = None
    """The MariaDB that the operator runs."""
    extra_conf: ConfText = ""
    """Lines for slurmdbd.conf."""
    service: ServiceFragment | None = None
    """The Service in front of slurmdbd."""
    tree: AccountTree | None = None
    """Accounts, users, QOS and limits that the operator keeps in slurmdbd. Default: it leaves them alone."""

    @model_validator(mode="after")
    def _one_backend(self) -> Self:
        if sum(given is not None for given in (self.external, self.database, self.mariadb)) > 1:
            raise ValueError("only one of external, database and mariadb can be given")
        for name in _OF_OWN_SLURMDBD:
            if self.external is not None and name in self.given:
                raise ValueError(f"{name} {_OF_OWN_SLURMDBD_MESSAGE}")
        return self


class Sssd(ApiModel):
    """Users from SSSD."""

    conf_ref: KeyRef
    """Secret with the configuration of SSSD (key sssd.conf)."""
    image: Image | None = None
    """Image of the SSSD sidecar. Default: the operator's setting."""
    resources: Resources | None = None
    """Resource requests and limits of the sidecar."""


class Passwd(ApiModel):
    """Users from files."""

    config_map_ref: ConfigMapRef
    """ConfigMap with the keys passwd and group, whose lines are added to those of the image."""


class Homes(ApiModel):
    """Home folders from a volume, the same on all nodes."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel("has(self.claimName) != has(self.volume)", "one of claimName and volume must be given")
            ]
        }
    )

    claim_name: DnsSubdomain | None = None
    """A PersistentVolumeClaim of the same namespace; pods on several Nodes need one with ReadWriteMany."""
    volume: AnyMap | None = None
    """Another volume source, as in a pod, for example nfs with server and path."""
    mount_path: HomesFolder = "/home"
    """Folder in the pods."""
    create: bool | None = None
    """Whether a user's missing home folder is made, at the first login and before the first job on a node. Unless it is
    set, that is so where users come from passwd."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.claim_name is None) == (self.volume is None):
            raise ValueError("one of claimName and volume must be given")
        return self


class Identity(ApiModel):
    """Users and their home folders, for every daemon that needs them."""

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
    homes: Homes | None = None
    """Home folders, in the pods of NodeSets and LoginSets. A change replaces these pods, as an update does."""

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
    """Additional keys of the partition's line, for example Default=YES MaxTime=8:00:00."""


class StaticNode(ApiModel):
    """Nodes whose slurmd runs outside Kubernetes."""

    name: NodeExpression
    """Name of the node, or a hostlist such as metal[01-16]."""
    config: NodeLine = ""
    """Additional keys of the node's line, for example CPUs=64 RealMemory=512000."""
