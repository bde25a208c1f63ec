"""The spec of a Cluster, and which of its fields may be combined."""

import base64
import ipaddress
import re
import ssl
from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Final, Self

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, model_validator

from slinky_api.v1alpha1.cluster.auth import Auth, ServerToken
from slinky_api.v1alpha1.cluster.containers import Containers
from slinky_api.v1alpha1.cluster.jobs import Jobs
from slinky_api.v1alpha1.cluster.maintenance import Maintenance
from slinky_api.v1alpha1.cluster.metrics import Metrics
from slinky_api.v1alpha1.cluster.parts import Accounting, Controller, Identity, Partition, RestApi, StaticNode
from slinky_api.v1alpha1.common import MAP_BY_NAME, ApiModel, ConfigMapRef
from slinky_api.v1alpha1.fields import MAX_ORDINALS, ConfText, FileTexts, SlurmName, UrlOrEmpty
from slinky_api.v1alpha1.login import Login
from slinky_api.v1alpha1.rules import Keywords, cel

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
    "containers",
    "maintenance",
)
_MANAGED_ONLY_PARTS: Final[tuple[tuple[str, str], ...]] = (
    ("auth", "keysWhenDeleted"),
    ("controller", "image"),
    ("controller", "resources"),
    ("controller", "template"),
    ("controller", "persistence"),
    ("controller", "service"),
    ("metrics", "enabled"),
    ("metrics", "serviceMonitor"),
    ("metrics.exporter", "username"),
)
"""The same in sections that both forms of a Cluster have."""
_EXTERNAL_ONLY: Final[tuple[str, ...]] = ("token", "caBundle")
_MANAGED_ONLY_MESSAGE: Final = "cannot be set with server: it is only for a cluster that the operator runs"
_EXTERNAL_ONLY_MESSAGE: Final = "requires server: it is only for a cluster that runs elsewhere"
_TOKEN_MESSAGE: Final = "is required with server, unless auth.jwtKeyRef names a key to sign tokens with"  # noqa: S105
_EXPORTER_TOKEN_MESSAGE: Final = "is required with server: the operator's own token has too many rights for an exporter"  # noqa: S105
_FORM_MESSAGE: Final = "cannot be added or removed later: it decides whether the operator runs Slurm"
_CONF_FILES: Final = ("slurm.conf", "slurmdbd.conf")
_CONF_FILES_MESSAGE: Final = "slurm.conf and slurmdbd.conf are written by the operator; use extraConf"
_REFS = Annotated[tuple[ConfigMapRef, ...], Field(max_length=64)]


_PEM: Final = "-----BEGIN CERTIFICATE-----"


def _pem(bundle: str) -> str:
    """Certificates in PEM form; text between them may contain any characters."""
    text = bundle if _PEM in bundle else base64.b64decode("".join(bundle.split()), validate=True).decode("utf-8")
    return text.encode("ascii", errors="replace").decode("ascii")


@lru_cache(maxsize=16)
def _check_ca_bundle(text: str) -> str:
    """Load the bundle with the TLS library, as the operator does when it connects."""
    try:
        pem = _pem(text)
    except ValueError:
        pem = ""
    if _PEM not in pem:
        raise ValueError("must be certificates in PEM form, plain or base64-encoded")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"has a certificate that cannot be read: {error}") from error
    return text


_ADDRESS: Final = re.compile(r"https?://(?:\[(?P<six>[^]]*)\]|(?P<four>[0-9]+(?:\.[0-9]+){3})(?=[:/]|$))", re.ASCII)


def _check_server(url: str) -> str:
    """Refuse a text that looks like an IP address but is not one."""
    found = _ADDRESS.match(url)
    if found is not None:
        try:
            _ = ipaddress.ip_address(found["six"] or found["four"] or "")
        except ValueError as error:
            raise ValueError(f"must have a valid IP address: {error}") from error
    return url


def _lacks(path: str) -> list[str]:
    """CEL terms of which one is true if a field, or a section that it is in, is not given."""
    names = path.split(".")
    return [f"!has(self.{'.'.join(names[:count])})" for count in range(1, len(names) + 1)]


_SERVER: Final = "(has(self.server) && self.server != '')"
"""CEL: whether Slurm runs elsewhere. Clients in Go write a text that is not given as an empty one."""


def _spec_rules() -> list[JsonValue]:
    rules: list[JsonValue] = [
        cel(
            f"{_SERVER} == {_SERVER.replace('self', 'oldSelf')}",
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
            f"!{_SERVER} || has(self.token) || (has(self.auth) && has(self.auth.jwtKeyRef))",
            f"token {_TOKEN_MESSAGE}",
            field=".token",
        ),
        cel(
            f"{_SERVER} || !has(self.metrics) || !has(self.metrics.exporter) || !has(self.metrics.exporter.tokenRef)",
            f"metrics.exporter.tokenRef {_EXTERNAL_ONLY_MESSAGE}",
            field=".metrics.exporter.tokenRef",
        ),
        cel(
            f"!{_SERVER} || !has(self.metrics) || !has(self.metrics.exporter)"
            " || !has(self.metrics.exporter.enabled) || !self.metrics.exporter.enabled"
            " || has(self.metrics.exporter.tokenRef)",
            f"metrics.exporter.tokenRef {_EXPORTER_TOKEN_MESSAGE}",
            field=".metrics.exporter",
        ),
        cel(
            f"{_SERVER} || !has(self.controller) || !has(self.controller.external)",
            f"controller.external {_EXTERNAL_ONLY_MESSAGE}",
            field=".controller.external",
        ),
    ]
    rules += [
        # An empty token cannot be told from another one here: beside an empty server the operator looks at it.
        cel(
            f"{'has(self.server)' if name == 'token' else _SERVER} || !has(self.{name})",
            f"{name} {_EXTERNAL_ONLY_MESSAGE}",
            field=f".{name}",
        )
        for name in _EXTERNAL_ONLY
    ]
    rules += [
        cel(f"!{_SERVER} || !has(self.{name})", f"{name} {_MANAGED_ONLY_MESSAGE}", field=f".{name}")
        for name in _MANAGED_ONLY
    ]
    rules += [
        cel(
            " || ".join((f"!{_SERVER}", *_lacks(f"{part}.{name}"))),
            f"{part}.{name} {_MANAGED_ONLY_MESSAGE}",
            field=f".{part}.{name}",
        )
        for part, name in _MANAGED_ONLY_PARTS
    ]
    return rules


def _check_config_files(files: dict[str, str]) -> dict[str, str]:
    if any(name in files for name in _CONF_FILES):
        raise ValueError(_CONF_FILES_MESSAGE)
    return files


class ClusterSpec(ApiModel):
    """The desired state of the cluster."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _spec_rules()})

    server: Annotated[UrlOrEmpty, AfterValidator(_check_server)] | None = None
    """URL of a slurmrestd that runs elsewhere, for example http://slurm-restapi.slurm:6820. With it, the operator
    connects to that Slurm; without it, or if it is empty, the operator runs Slurm."""
    token: ServerToken | None = None
    """How to authenticate with the server."""
    ca_bundle: Annotated[str, Field(min_length=1, max_length=262_144), AfterValidator(_check_ca_bundle)] | None = None
    """CA certificates that verify slurmrestd's certificate, in PEM form, plain or base64-encoded. Without effect if
    spec.server is not an https URL. Default: the system's."""

    cluster_name: SlurmName | None = None
    """ClusterName in slurm.conf. Default: namespace and name joined by an underscore, or the name alone if that is
    longer than 40 characters. Immutable. Without effect with spec.server."""
    auth: Auth = Field(default_factory=Auth)
    """Keys and tokens."""
    controller: Controller = Field(default_factory=Controller)
    """The Slurm controller, slurmctld."""
    restapi: RestApi = Field(default_factory=RestApi)
    """The REST daemon, slurmrestd."""
    accounting: Accounting | None = None
    """The accounting daemon, slurmdbd. Default: none."""
    login: Annotated[tuple[Login, ...], Field(max_length=16), MAP_BY_NAME] = ()
    """Sets of login pods. Each becomes a LoginSet named <cluster>-<name>."""
    identity: Identity | None = None
    """The source of users, and their home folders. Default: the users of the images."""

    partitions: Annotated[tuple[Partition, ...], Field(max_length=256), MAP_BY_NAME] = ()
    """Partitions, in addition to those of NodeSets."""
    nodes: Annotated[tuple[StaticNode, ...], Field(max_length=256), MAP_BY_NAME] = ()
    """Nodes whose slurmd runs outside Kubernetes."""
    extra_conf: ConfText = ""
    """Lines for slurm.conf, merged by key; they take precedence over the operator's."""
    max_node_count: Annotated[int, Field(ge=1, le=MAX_ORDINALS)] | None = None
    """MaxNodeCount: the maximum number of nodes. Default: 10000. A lower value waits until there are no more nodes
    than that: Slurm would drop those above it and end their jobs."""

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
    """Other configuration files by name, for example gres.conf or topology.yaml."""
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
    containers: Containers | None = None
    """Containers in Slurm, by srun --container, on nodes whose image has crun and jq. {} is enough. Default: Slurm
    ignores --container, and runs the command on the node itself."""
    metrics: Metrics = Field(default_factory=Metrics)
    """Metrics for Prometheus."""
    jobs: Jobs = Field(default_factory=Jobs)
    """Jobs as objects: who may submit SlurmJobs to this cluster."""
    maintenance: Maintenance = Field(default_factory=Maintenance)
    """When nodes are kept free of jobs for work on them."""

    @property
    def external(self) -> bool:
        """Whether Slurm runs elsewhere."""
        return self.server is not None

    @property
    def ca_pem(self) -> str | None:
        """The CA bundle in PEM form."""
        return None if self.ca_bundle is None else _pem(self.ca_bundle)

    @property
    def token_lifetime(self) -> timedelta:
        """Lifetime of a token that the operator signs."""
        return self.auth.token_lifetime or timedelta(minutes=15)

    @model_validator(mode="before")
    @classmethod
    def _without_empty_texts(cls, value: object) -> object:
        """Leave out what clients in Go write though it is not given: an empty server, and a token without a name."""
        if not isinstance(value, dict):
            return value
        token = value.get("token")
        is_empty = {
            "server": value.get("server") == "",
            "token": isinstance(token, dict) and token.get("secretRef") == "",
        }
        return {name: one for name, one in value.items() if not is_empty.get(name)} if any(is_empty.values()) else value

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = self.given
        other, message = (
            (_EXTERNAL_ONLY, _EXTERNAL_ONLY_MESSAGE) if self.server is None else (_MANAGED_ONLY, _MANAGED_ONLY_MESSAGE)
        )
        for name in other:
            if name in given:
                raise ValueError(f"{name} {message}")
        parts: dict[str, ApiModel] = {
            "auth": self.auth,
            "controller": self.controller,
            "metrics": self.metrics,
            "metrics.exporter": self.metrics.exporter,
        }
        for part, name in _MANAGED_ONLY_PARTS:
            if self.server is not None and name in parts[part].given:
                raise ValueError(f"{part}.{name} {_MANAGED_ONLY_MESSAGE}")
        if self.server is None and self.controller.external is not None:
            raise ValueError(f"controller.external {_EXTERNAL_ONLY_MESSAGE}")
        if self.server is None and self.metrics.exporter.token_ref is not None:
            raise ValueError(f"metrics.exporter.tokenRef {_EXTERNAL_ONLY_MESSAGE}")
        if self.server is not None and self.metrics.exporter.enabled and self.metrics.exporter.token_ref is None:
            raise ValueError(f"metrics.exporter.tokenRef {_EXPORTER_TOKEN_MESSAGE}")
        if self.server is not None and self.token is None and self.auth.jwt_key_ref is None:
            raise ValueError(f"token {_TOKEN_MESSAGE}")
        return self
