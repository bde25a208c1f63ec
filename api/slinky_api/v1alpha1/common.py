"""Common parts of Cluster and NodeSet: the base model, metadata, conditions, references, component fragments.

Models are frozen and ignore unknown fields, so that objects written for a newer version can be read.
Attributes are snake_case with the camelCase names of the API as aliases.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AliasGenerator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from slinky_api.errors import InvalidObjectError, Problem
from slinky_api.v1alpha1.fields import (
    Annotations,
    AnyMap,
    DnsSubdomain,
    Image,
    Labels,
    LabelValue,
    PodTemplate,
    Quantity,
)
from slinky_api.v1alpha1.rules import Keywords

__all__ = [
    "CONDITIONS",
    "GROUP",
    "VERSION",
    "ApiModel",
    "ApiObject",
    "Component",
    "Condition",
    "ConfigMapRef",
    "KeyRef",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ObjectMeta",
    "OwnerReference",
    "Persistence",
    "Resources",
    "SecretRef",
    "ServiceFragment",
    "api_version",
]

GROUP = "slinky.slurm.net"
VERSION = "v1alpha1"


def api_version() -> str:
    """``apiVersion`` of all kinds of this package."""
    return f"{GROUP}/{VERSION}"


class ApiModel(BaseModel):
    """Base of all API models."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=AliasGenerator(alias=to_camel),
        validate_by_name=True,
        validate_by_alias=True,
        ser_json_timedelta="iso8601",
    )

    @property
    def given(self) -> frozenset[str]:
        """Names, as in the API, of the fields that have been set to something."""
        fields = type(self).model_fields
        set_to = (name for name in self.model_fields_set if getattr(self, name) is not None)
        return frozenset(fields[name].alias or name for name in set_to)

    def to_dict(self) -> dict[str, Any]:
        """The model in the form of the API: camelCase, JSON types, no null values."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def as_stored(self) -> dict[str, Any]:
        """The same without defaults of fields that the object does not have: what a patch must write is not there."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


class OwnerReference(ApiModel):
    """An entry of ``metadata.ownerReferences``."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(ApiModel):
    """The part of ``metadata`` that controllers read."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(ApiModel):
    """A condition, as Kubernetes defines it."""

    type: Annotated[str, Field(max_length=316)]
    """Type of the condition, in CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, Field(max_length=1024)] = ""
    """Reason, as one word in CamelCase."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """Explanation for people."""
    last_transition_time: datetime | None = None
    """When the status last changed."""
    observed_generation: int | None = Field(default=None, ge=0)
    """The generation of the object that this condition describes."""


class ConfigMapRef(ApiModel):
    """A ConfigMap of the same namespace."""

    name: DnsSubdomain
    """Name of the ConfigMap."""


class SecretRef(ApiModel):
    """A Secret of the same namespace."""

    name: DnsSubdomain
    """Name of the Secret."""


class KeyRef(ApiModel):
    """One key of a Secret or ConfigMap of the same namespace."""

    name: DnsSubdomain
    """Name of the object."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")] | None = None
    """Key within the object. Default: the standard key for the purpose."""


class LabelSelectorRequirement(ApiModel):
    """One requirement of a label selector."""

    key: Annotated[str, Field(max_length=317)]
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How it relates to the values."""
    values: Annotated[tuple[LabelValue, ...], Field(max_length=256)] = ()
    """The values, for In and NotIn."""


class LabelSelector(ApiModel):
    """A label selector, as Kubernetes defines it."""

    match_labels: Labels = Field(default_factory=dict)
    """Labels and the values they must have."""
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], Field(max_length=256)] = ()
    """Additional requirements; all must be met."""


class Resources(ApiModel):
    """Resource requests and limits of a container."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})

    requests: AnyMap = Field(default_factory=dict)
    """Reserved amounts, by resource name."""
    limits: AnyMap = Field(default_factory=dict)
    """Maximum amounts, by resource name."""


class ServiceFragment(ApiModel):
    """Additions to a Service that the operator writes."""

    labels: Labels = Field(default_factory=dict)
    """Labels to add."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations to add."""
    spec: AnyMap = Field(default_factory=dict)
    """Fields of the Service's spec, merged over the generated one, for example type. The operator sets selector and
    ports; of ports, nodePort and appProtocol are taken."""


class Persistence(ApiModel):
    """Storage for the state of a daemon."""

    enabled: bool = True
    """Whether the state is kept on a claim. Without it, a restart loses jobs and nodes."""
    existing_claim: DnsSubdomain | None = None
    """A PersistentVolumeClaim to use instead of a generated one."""
    storage_class_name: Annotated[str, Field(max_length=253)] | None = None
    """Storage class of the generated claim. Default: the cluster's default class."""
    access_modes: Annotated[
        tuple[Literal["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"], ...], Field(max_length=8)
    ] = ("ReadWriteOnce",)
    """Access modes of the generated claim."""
    size: Quantity = "4Gi"
    """Size of the generated claim. A larger one is given to a claim that exists too, if its storage class allows that;
    a claim never shrinks. All other settings of a generated claim are for one that does not exist yet."""
    when_deleted: Literal["Retain", "Delete"] = "Retain"
    """What becomes of the generated claim when the Cluster is deleted. A retained one is used by the next Cluster of
    this name. Default: Retain."""
    labels: Labels = Field(default_factory=dict)
    """Labels of the generated claim."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the generated claim."""


class Component(ApiModel):
    """Settings that every daemon has."""

    image: Image | None = None
    """Container image. Default: the operator's setting for this daemon."""
    resources: Resources | None = None
    """Resource requests and limits of the daemon's container."""
    template: PodTemplate | None = None
    """A pod template fragment, merged over the generated one by strategic-merge rules. Its values take precedence;
    fields that would break the daemon's identity are refused by name."""


class ApiObject(ApiModel):
    """Base of the kinds: an object with metadata."""

    api_version: str = api_version()
    kind: str = ""
    metadata: ObjectMeta

    @classmethod
    def parse(cls, obj: Mapping[str, Any]) -> Self:
        """Parse an object from the API server.

        Parameters
        ----------
        obj
            The object; not changed, and shared where it is a fragment.

        Returns
        -------
        ApiObject
            The model.

        Raises
        ------
        InvalidObjectError
            If it is not a valid object of this kind.
        """
        expected, expected_version = cls.__name__, cls.model_fields["api_version"].default
        kind, version = obj.get("kind", expected), obj.get("apiVersion", expected_version)
        if kind != expected or version != expected_version:
            metadata = obj.get("metadata") or {}
            reason = f"is {version} {kind}, not {expected_version} {expected}"
            raise InvalidObjectError(
                expected, metadata.get("namespace", ""), metadata.get("name", ""), (Problem("kind", reason),)
            )
        try:
            return cls.model_validate(obj)
        except ValidationError as error:
            raise InvalidObjectError.from_validation(expected, obj, error) from error

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """Uid of the object: the key of everything remembered about it."""
        return self.metadata.uid

    @property
    def deleting(self) -> bool:
        """Whether its deletion has been requested."""
        return self.metadata.deletion_timestamp is not None


CONDITIONS = Keywords({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
"""Schema of a list of conditions: one per type."""

SET = Keywords({"x-kubernetes-list-type": "set"})
"""Schema of a list without duplicates."""

MAP_BY_NAME = Keywords({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
"""Schema of a list of named items: one per name."""
