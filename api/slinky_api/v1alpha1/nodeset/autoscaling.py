"""Autoscaling of a NodeSet by the pending jobs of its Cluster: the part of its spec, and what its status says of it."""

from datetime import timedelta
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from slinky_api.v1alpha1.common import ApiModel
from slinky_api.v1alpha1.fields import MAX_ORDINALS, Duration
from slinky_api.v1alpha1.rules import Keywords, cel

__all__ = ["Autoscaling", "AutoscalingStatus"]

_ORDER: Final = "minReplicas must not be greater than maxReplicas"

_Count = Annotated[int, Field(ge=0, le=MAX_ORDINALS), Keywords({"format": "int32"})]


class Autoscaling(ApiModel):
    """How the operator sets replicas by the jobs that wait."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
                    _ORDER,
                    field=".minReplicas",
                )
            ]
        }
    )

    min_replicas: _Count = 0
    """Replicas that stay when nobody needs them. Default: 0."""
    max_replicas: _Count
    """Most replicas, for example 16."""
    idle_time: Duration = timedelta(minutes=5)
    """How long nodes must have been surplus, without jobs, before they are drained and deleted. Default: 5m."""
    scale_down_delay: Duration = timedelta(minutes=5)
    """How long replicas stay as they are, or higher, after autoscaling has raised them, and exactly as they are after
    somebody else has set them. Default: 5m."""
    headroom: _Count = 0
    """Nodes that are kept beyond those that jobs need, for the next jobs; never more than maxReplicas in all.
    Default: 0."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(_ORDER)
        return self


class AutoscalingStatus(ApiModel):
    """What autoscaling last decided for a NodeSet; the condition Autoscaling says the same."""

    active: bool = False
    """Whether it may set replicas now."""
    wanted: int | None = None
    """Replicas that jobs need, with headroom and within the limits; absent while that is not known."""
    reason: str = ""
    """Reason of the condition."""
    message: str = ""
    """Message of the condition: the jobs that are counted, and those that are not and why."""
