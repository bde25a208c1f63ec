"""Kind Cluster: one Slurm cluster, run by the operator or elsewhere.

``spec.server`` tells the two forms apart. With it, Slurm runs elsewhere and the operator connects; without it, the
operator runs Slurm, and every field is optional: ``spec: {}`` is a working cluster.
"""

import base64
import binascii
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from slinky_api.resource import Column, Resource
from slinky_api.v1alpha1.common import (
    CONDITIONS,
    GROUP,
    VERSION,
    ApiModel,
    ApiObject,
    Component,
    Condition,
    ConfigMapRef,
    KeyRef,
    ObjectMeta,
    Persistence,
    Resources,
    SecretRef,
    ServiceFragment,
)
from slinky_api.v1alpha1.fields import (
    MAX_ORDINALS,
    ConfText,
    Duration,
    FileTexts,
    HostName,
    Image,
    Keywords,
    Namespace,
    NodeExpression,
    NodeLine,
    PartitionLine,
    PartitionName,
    ShortName,
    SlurmName,
    SlurmNodeSetName,
    Url,
    UserName,
    cel,
)

__all__ = [
    "CLUSTER",
    "Accounting",
    "Auth",
    "Cluster",
    "ClusterSpec",
    "ClusterStatus",
    "ConfigStatus",
    "Controller",
    "Database",
    "Endpoint",
    "Identity",
    "JobCounts",
    "Login",
    "MariaDb",
    "Metrics",
    "NodeCounts",
    "Partition",
    "Passwd",
    "RefusedNodeSet",
    "RestApi",
    "ServiceMonitor",
    "Sssd",
    "StaticNode",
    "Token",
    "TokenGrant",
]

TOKEN_KEY: Final = "auth-token"  # noqa: S105
"""Key of the token's Secret where none is named; the only one 0.1 knew."""

MANAGED_NAME_LENGTH: Final = 40
"""Longest name of a Cluster the operator runs: a StatefulSet's revision label, which begins with the name of the
StatefulSet (``<cluster>-controller``, ``<cluster>-accounting``) and goes on for 11 characters, has room for 63."""

CLUSTER: Final = Resource(
    group=GROUP,
    version=VERSION,
    kind="Cluster",
    plural="clusters",
    singular="cluster",
    categories=("slurm", "slinky"),
    columns=(
        Column("READY", ".status.isReady", "boolean", "Whether Slurm answers and runs the wanted configuration."),
        Column("VERSION", ".status.slurmVersion", "string", "Version of Slurm."),
        Column("NODES", ".status.nodes.total", "integer", "Slurm nodes."),
        Column("JOBS", ".status.jobs.running", "integer", "Jobs that run."),
        Column("PENDING", ".status.jobs.pending", "integer", "Jobs that wait.", wide=True),
        Column("SERVER", ".status.server", "string", "URL of slurmrestd.", wide=True),
        Column("API", ".status.apiVersion", "string", "Version of the REST API.", wide=True),
        Column("REASON", ".status.conditions[?(@.type=='Ready')].reason", "string", "Why it is or is not.", wide=True),
        Column("AGE", ".metadata.creationTimestamp", "date"),
    ),
)

_SET: Final = Keywords({"x-kubernetes-list-type": "set"})
_MAP_BY_NAME: Final = Keywords({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})


def _secret_ref(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


SecretRefOrName = Annotated[
    KeyRef,
    BeforeValidator(_secret_ref),
    # A text or an object. Kubernetes has a word for "number or text" only, and CEL does not see fields without a type.
    # But each keyword of JSON Schema speaks of one type alone, so those of numbers, arrays and Booleans can be made
    # impossible, and what is left is a text or an object, each with its own rules.
    Keywords(
        {
            "x-kubernetes-preserve-unknown-fields": True,
            "minLength": 1,
            "maxLength": 253,
            "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
            "required": ["name"],
            "properties": {
                "name": {
                    "type": "string",
                    "description": "Name of the Secret.",
                    "minLength": 1,
                    "maxLength": 253,
                    "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
                },
                "key": {
                    "type": "string",
                    "description": "Key within it.",
                    "minLength": 1,
                    "maxLength": 253,
                    "pattern": r"^[-._a-zA-Z0-9]+$",
                },
            },
            "minimum": 1,
            "maximum": 0,
            "minItems": 1,
            "maxItems": 0,
            "not": {"enum": [True, False]},
        },
        replace=True,
    ),
]


class Token(ApiModel):
    """How to authenticate with a Slurm that runs elsewhere."""

    secret_ref: SecretRefOrName
    """The Secret with the token: its name, as in Slinky 0.1, or an object with name and key. The key is
    auth-token where none is named."""

    @property
    def secret_name(self) -> str:
        """Name of the Secret."""
        return self.secret_ref.name

    @property
    def secret_key(self) -> str:
        """Key within the Secret."""
        return self.secret_ref.key or TOKEN_KEY


class TokenGrant(ApiModel):
    """Who may have tokens of this cluster."""

    namespaces: Annotated[
        tuple[Namespace, ...], Field(max_length=256), Keywords({"x-kubernetes-list-type": "set"})
    ] = ()
    """Namespaces in which tokens may be asked for; the Cluster's own where empty."""
    usernames: Annotated[tuple[UserName, ...], Field(max_length=1024), _SET] = ()
    """Slurm users they may be for."""


class Auth(ApiModel):
    """Keys and tokens."""

    slurm_key_ref: KeyRef | None = None
    """Secret with the key of auth/slurm (key slurm.key, or a key set as slurm.jwks); generated where absent."""
    jwt_key_ref: KeyRef | None = None
    """Secret with the HS256 key of auth/jwt (key jwt_hs256.key); generated where absent. With spec.server, the operator
    mints its tokens from it, and spec.token is not needed."""
    jwks_ref: KeyRef | None = None
    """ConfigMap with the public keys (key jwks.json) of whoever else issues tokens."""
    token_lifetime: Duration | None = None
    """Lifetime of minted tokens; 15 minutes where absent."""
    tokens: Annotated[tuple[TokenGrant, ...], Field(max_length=64)] = ()
    """Who may have tokens."""


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
    """The Service in front of slurmctld."""


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
    """How Prometheus finds them."""


def _check_ca_bundle(text: str) -> str:
    if "-----BEGIN CERTIFICATE-----" in text:
        return text
    try:
        decoded = base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error:
        decoded = b""
    if b"-----BEGIN CERTIFICATE-----" not in decoded:
        raise ValueError("must be certificates in PEM form, as they are or in base64")
    return text


_MANAGED_ONLY: Final[tuple[str, ...]] = (
    "restapi",
    "accounting",
    "login",
    "identity",
    "partitions",
    "extraConf",
    "maxNodeCount",
    "configFiles",
    "configFileRefs",
    "prologScripts",
    "prologScriptRefs",
    "epilogScripts",
    "epilogScriptRefs",
    "prologSlurmctldScripts",
    "prologSlurmctldScriptRefs",
    "epilogSlurmctldScripts",
    "epilogSlurmctldScriptRefs",
    "nodes",
    "metrics",
)
_EXTERNAL_ONLY: Final[tuple[str, ...]] = ("token", "caBundle")
_MANAGED_ONLY_MESSAGE: Final = "belongs to a cluster that the operator runs, but server names one that runs elsewhere"
_EXTERNAL_ONLY_MESSAGE: Final = "belongs to a cluster that runs elsewhere, which server must name"
_TOKEN_MESSAGE: Final = "is required with server, unless auth.jwtKeyRef gives a key to mint tokens from"  # noqa: S105
_FORM_MESSAGE: Final = "can be neither added nor removed: it decides who runs Slurm"
_CONF_FILES: Final = ("slurm.conf", "slurmdbd.conf")
_CONF_FILES_MESSAGE: Final = "slurm.conf and slurmdbd.conf are written by the operator; use extraConf"


def _spec_rules() -> list[JsonValue]:
    rules: list[JsonValue] = [
        cel(
            "has(self.server) == has(oldSelf.server)",
            f"server {_FORM_MESSAGE}",
            field=".server",
        ),
        cel(
            "has(self.clusterName) == has(oldSelf.clusterName)"
            " && (!has(self.clusterName) || self.clusterName == oldSelf.clusterName)",
            "clusterName is immutable: slurmctld refuses the state of a cluster of another name",
            field=".clusterName",
        ),
        cel(
            "!has(self.server) || has(self.token) || (has(self.auth) && has(self.auth.jwtKeyRef))",
            f"token {_TOKEN_MESSAGE}",
            field=".token",
        ),
        cel(
            "has(self.server) || !has(self.controller) || !has(self.controller.external)",
            f"controller.external {_EXTERNAL_ONLY_MESSAGE}",
            field=".controller.external",
        ),
    ]
    rules += [
        cel(f"has(self.server) || !has(self.{name})", f"{name} {_EXTERNAL_ONLY_MESSAGE}", field=f".{name}")
        for name in _EXTERNAL_ONLY
    ]
    rules += [
        cel(f"!has(self.server) || !has(self.{name})", f"{name} {_MANAGED_ONLY_MESSAGE}", field=f".{name}")
        for name in _MANAGED_ONLY
    ]
    return rules


def _check_config_files(files: dict[str, str]) -> dict[str, str]:
    if any(name in files for name in _CONF_FILES):
        raise ValueError(_CONF_FILES_MESSAGE)
    return files


_REFS = Annotated[tuple[ConfigMapRef, ...], Field(max_length=64)]


class ClusterSpec(ApiModel):
    """What the cluster is to be."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _spec_rules()})

    server: Url | None = None
    """URL of a slurmrestd that runs elsewhere, for instance http://slurm-restapi.slurm:6820. With it, the operator
    connects; without it, the operator runs Slurm."""
    token: Token | None = None
    """How to authenticate with it."""
    ca_bundle: Annotated[str, Field(min_length=1, max_length=262_144), AfterValidator(_check_ca_bundle)] | None = None
    """Certificates that slurmrestd's own is checked against, in PEM form or base64 of it; the system's where absent."""

    cluster_name: SlurmName | None = None
    """ClusterName in slurm.conf; namespace and name joined by an underscore where absent, or the name alone where
    that is longer than 40 characters. Immutable."""
    auth: Auth = Field(default_factory=Auth)
    """Keys and tokens."""
    controller: Controller = Field(default_factory=Controller)
    """The Slurm controller, slurmctld."""
    restapi: RestApi = Field(default_factory=RestApi)
    """The REST daemon, slurmrestd."""
    accounting: Accounting | None = None
    """The accounting daemon, slurmdbd; none where absent."""
    login: Annotated[tuple[Login, ...], Field(max_length=16), _MAP_BY_NAME] = ()
    """Sets of login pods."""
    identity: Identity | None = None
    """Where users come from; from the images where absent."""

    partitions: Annotated[tuple[Partition, ...], Field(max_length=256), _MAP_BY_NAME] = ()
    """Partitions, beside those that NodeSets have of their own."""
    nodes: Annotated[tuple[StaticNode, ...], Field(max_length=256), _MAP_BY_NAME] = ()
    """Nodes whose slurmd runs outside Kubernetes."""
    extra_conf: ConfText = ""
    """Lines for slurm.conf, merged by key over the operator's."""
    max_node_count: Annotated[int, Field(ge=1, le=MAX_ORDINALS)] | None = None
    """MaxNodeCount: how many nodes there can be; 10000 where absent. A lower one waits until there are no more nodes
    than that: Slurm would forget those beyond it, and end their jobs."""

    config_files: Annotated[
        FileTexts,
        AfterValidator(_check_config_files),
        Keywords(
            {
                "x-kubernetes-validations": [
                    cel("!('slurm.conf' in self) && !('slurmdbd.conf' in self)", _CONF_FILES_MESSAGE)
                ]
            }
        ),
    ] = Field(default_factory=dict)
    """Other configuration files by name, for instance gres.conf or topology.yaml."""
    config_file_refs: _REFS = ()
    """ConfigMaps with other configuration files."""
    prolog_scripts: FileTexts = Field(default_factory=dict)
    """Scripts that slurmd runs before a job, by name."""
    prolog_script_refs: _REFS = ()
    """ConfigMaps with such scripts."""
    epilog_scripts: FileTexts = Field(default_factory=dict)
    """Scripts that slurmd runs after a job, by name."""
    epilog_script_refs: _REFS = ()
    """ConfigMaps with such scripts."""
    prolog_slurmctld_scripts: FileTexts = Field(default_factory=dict)
    """Scripts that slurmctld runs before a job, by name."""
    prolog_slurmctld_script_refs: _REFS = ()
    """ConfigMaps with such scripts."""
    epilog_slurmctld_scripts: FileTexts = Field(default_factory=dict)
    """Scripts that slurmctld runs after a job, by name."""
    epilog_slurmctld_script_refs: _REFS = ()
    """ConfigMaps with such scripts."""
    metrics: Metrics = Field(default_factory=Metrics)
    """Metrics of slurmctld itself."""

    @property
    def external(self) -> bool:
        """Whether Slurm runs elsewhere."""
        return self.server is not None

    @property
    def ca_pem(self) -> str | None:
        """The CA bundle in PEM form."""
        if self.ca_bundle is None or "-----BEGIN CERTIFICATE-----" in self.ca_bundle:
            return self.ca_bundle
        return base64.b64decode("".join(self.ca_bundle.split())).decode("ascii", errors="replace")

    @property
    def token_lifetime(self) -> timedelta:
        """How long a minted token lives."""
        return self.auth.token_lifetime or timedelta(minutes=15)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        fields = type(self).model_fields
        given = {fields[name].alias for name in self.model_fields_set if getattr(self, name) is not None}
        other, message = (
            (_EXTERNAL_ONLY, _EXTERNAL_ONLY_MESSAGE) if self.server is None else (_MANAGED_ONLY, _MANAGED_ONLY_MESSAGE)
        )
        for name in other:
            if name in given:
                raise ValueError(f"{name} {message}")
        if self.server is None and self.controller.external is not None:
            raise ValueError(f"controller.external {_EXTERNAL_ONLY_MESSAGE}")
        if self.server is not None and self.token is None and self.auth.jwt_key_ref is None:
            raise ValueError(f"token {_TOKEN_MESSAGE}")
        return self


class NodeCounts(ApiModel):
    """Slurm nodes by state. A node that is drained counts under its base state and under drain."""

    total: int = 0
    """All nodes."""
    idle: int = 0
    """Nodes without a job."""
    allocated: int = 0
    """Nodes with jobs on all of them."""
    mixed: int = 0
    """Nodes with jobs on a part of them."""
    down: int = 0
    """Nodes that cannot be used."""
    drain: int = 0
    """Nodes that take no new job."""
    other: int = 0
    """Nodes in any other state."""


class JobCounts(ApiModel):
    """Slurm jobs by state."""

    total: int = 0
    """All jobs that Slurm still knows of."""
    running: int = 0
    """Jobs that run."""
    pending: int = 0
    """Jobs that wait."""
    suspended: int = 0
    """Jobs that are suspended."""
    completing: int = 0
    """Jobs that are ending."""
    other: int = 0
    """Jobs in any other state."""


class RefusedNodeSet(ApiModel):
    """A NodeSet whose part of the configuration is not used."""

    name: str
    """Name of the NodeSet."""
    message: str = ""
    """Field and reason."""


class ConfigStatus(ApiModel):
    """How far the configuration is."""

    hash: str = ""
    """Hash of the configuration that the spec describes, over all its inputs."""
    applied_hash: str = ""
    """Hash of the one that the daemons run."""
    node_sets: Annotated[tuple[str, ...], _SET] = ()
    """NodeSets that the running configuration knows. A NodeSet gets pods only when it is listed here."""
    refused: Annotated[tuple[RefusedNodeSet, ...], _MAP_BY_NAME] = ()
    """NodeSets whose part is left out, or left as it was, and why."""


class ClusterStatus(ApiModel):
    """What the cluster is."""

    is_ready: bool = False
    """Whether Slurm answers and runs the wanted configuration."""
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    """What holds, what does not, and why."""
    server: str | None = None
    """URL of the slurmrestd that is used."""
    slurm_version: str | None = None
    """Version of Slurm."""
    api_version: str | None = None
    """Version of the REST API that was agreed on, for instance v0.0.42."""
    nodes: NodeCounts | None = None
    """Slurm nodes by state."""
    jobs: JobCounts | None = None
    """Slurm jobs by state."""
    config: ConfigStatus | None = None
    """How far the configuration is."""
    observed_generation: int | None = None
    """The generation of the spec that this status is about."""
    last_contact: datetime | None = None
    """When Slurm last answered; written when it stops answering, not with every answer."""


class Cluster(ApiObject):
    """A Slurm cluster, run by the operator or, with spec.server, elsewhere."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "has(self.spec.server) ||"
                    f" (self.metadata.name.size() <= {MANAGED_NAME_LENGTH}"
                    " && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
                    "metadata.name must be a DNS label that begins with a letter and has at most"
                    f" {MANAGED_NAME_LENGTH} characters: Services and StatefulSets are named after it",
                    field=".metadata.name",
                ),
                cel(
                    "self.metadata.name.size() <= 63",
                    "metadata.name must have at most 63 characters: it is used as a label",
                    field=".metadata.name",
                ),
            ]
        }
    )

    kind: Literal["Cluster"] = "Cluster"
    metadata: ObjectMeta
    spec: ClusterSpec = Field(default_factory=ClusterSpec)
    """What the cluster is to be."""
    status: ClusterStatus = Field(default_factory=ClusterStatus)
    """What the cluster is."""

    @property
    def slurm_name(self) -> str:
        """ClusterName in slurm.conf."""
        if self.spec.cluster_name is not None:
            return self.spec.cluster_name
        joined = f"{self.namespace}_{self.name}"
        return joined if len(joined) <= MANAGED_NAME_LENGTH else self.name
