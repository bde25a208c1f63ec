"""Kind LoginSet: a set of login pods of one Slurm cluster, sackd beside an SSH server."""

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from slinky_api.resource import Column, Resource, Scale
from slinky_api.v1alpha1.common import CONDITIONS, GROUP, VERSION, ApiModel, ApiObject, Condition, ObjectMeta
from slinky_api.v1alpha1.fields import DnsSubdomain
from slinky_api.v1alpha1.login import LoginPods
from slinky_api.v1alpha1.rules import Keywords, cel

__all__ = ["LOGINSET", "LoginSet", "LoginSetSpec", "LoginSetStatus"]

NAME_LENGTH: Final = 57
"""Longest name of a LoginSet: its Service is named ``<loginset>-login``, and such a name has at most 63 characters."""

_NAME_MESSAGE: Final = (
    "metadata.name must be a DNS label without dots that begins with a letter and has at most"
    f" {NAME_LENGTH} characters: a Service is named after it"
)

LOGINSET: Final = Resource(
    group=GROUP,
    version=VERSION,
    kind="LoginSet",
    plural="loginsets",
    singular="loginset",
    short_names=("lgs",),
    categories=("slurm", "slinky"),
    columns=(
        Column("CLUSTER", ".spec.clusterName", "string", "The Cluster."),
        Column("READY", ".status.readyReplicas", "integer", "Pods that accept logins."),
        Column("REPLICAS", ".status.replicas", "integer", "Existing pods, without those that are being removed."),
        Column("ADDRESS", ".status.address", "string", "Where to log in."),
        Column("STATUS", ".status.summary", "string", "The problem, or else the current activity."),
        Column(
            "REASON",
            ".status.conditions[?(@.type=='Ready')].reason",
            "string",
            "Reason of the condition Ready.",
            wide=True,
        ),
        Column("AGE", ".metadata.creationTimestamp", "date"),
    ),
    scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
)


class LoginSetSpec(LoginPods):
    """The desired state of the LoginSet."""

    cluster_name: Annotated[
        DnsSubdomain,
        Keywords({"x-kubernetes-validations": [cel("self == oldSelf", "clusterName is immutable")]}),
    ]
    """Name of the Cluster object, in the same namespace. Immutable."""
    replicas: Annotated[int, Field(ge=0, le=1000), Keywords({"format": "int32", "x-stored-default": 1})] = 1
    """Number of pods. Default: 1."""


class LoginSetStatus(ApiModel):
    """The observed state of the LoginSet."""

    summary: str = ""
    """The problem, or else the current activity, in one line."""
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    """Conditions of the LoginSet."""
    observed_generation: int | None = None
    """The generation of the spec that this status describes."""
    replicas: int = 0
    """Existing pods, without those that are being removed."""
    ready_replicas: int = 0
    """Pods that accept logins."""
    updated_replicas: int = 0
    """Pods that are as the spec asks."""
    selector: str | None = None
    """Selector of exactly this LoginSet's pods, for autoscalers."""
    address: str | None = None
    """Where to log in: host and port of the Service, as its type makes it reachable."""
    host_keys: tuple[str, ...] = ()
    """Fingerprints of the SSH host keys, as ssh shows them."""


class LoginSet(ApiObject):
    """A set of login pods of one Slurm cluster."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    f"self.metadata.name.size() <= {NAME_LENGTH}"
                    " && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                    _NAME_MESSAGE,
                    field=".metadata.name",
                ),
            ]
        }
    )

    kind: Literal["LoginSet"] = "LoginSet"
    metadata: ObjectMeta
    spec: LoginSetSpec
    """The desired state of the LoginSet."""
    status: LoginSetStatus = Field(default_factory=LoginSetStatus)
    """The observed state of the LoginSet."""

    @model_validator(mode="after")
    def _name_fits(self) -> Self:
        if len(self.name) > NAME_LENGTH or "." in self.name:
            raise ValueError(_NAME_MESSAGE)
        return self
