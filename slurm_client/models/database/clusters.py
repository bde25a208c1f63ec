"""What slurmdbd knows of clusters, of nodes in clouds, and of the resources that it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_client.models.entry import Entry
from slurm_client.notation.tres import Tres

if TYPE_CHECKING:
    from datetime import datetime


_NOTHING = Tres()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord(Entry):
    """
    A cluster as slurmdbd knows it.

    Parameters
    ----------
    name
        ClusterName.
    controller_host, controller_port
        Where its slurmctld listens; empty and 0 while none has registered.
    rpc_version
        Version of Slurm's protocol that it speaks; 0 while none has registered.
    node_list
        Its nodes in Slurm's notation; empty where all of them are dynamic.
    flags
        Words such as ``REGISTERING``, ``MULTIPLE_SLURMD`` and ``FRONT_END``.
    root_association_id
        Association that all others of the cluster are below.
    tres
        What it has in all.
    select_plugin
        SelectType (v0.0.42 and older).
    """

    name: str
    controller_host: str = ""
    controller_port: int = 0
    rpc_version: int = 0
    node_list: str = ""
    flags: frozenset[str] = frozenset()
    root_association_id: int | None = None
    tres: Tres = _NOTHING
    select_plugin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudInstance(Entry):
    """
    A machine in a cloud that was a node for some time: the ``InstanceId`` and ``InstanceType`` of a node.

    Parameters
    ----------
    node_name, cluster
        The node that it was.
    instance_id, instance_type
        As the cloud calls it.
    extra
        ``Extra`` of the node.
    start_time, end_time
        When it was that node; ``end_time`` is ``None`` while it is.
    """

    node_name: str
    cluster: str = ""
    instance_id: str = ""
    instance_type: str = ""
    extra: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedResource(Entry):
    """
    A kind of resource that slurmdbd counts (AccountingStorageTRES).

    Parameters
    ----------
    id
        Its number in the database.
    type, name
        ``cpu``, ``mem``; ``gres`` and ``gpu:h100``; ``license`` and its name.
    """

    id: int
    type: str
    name: str = ""

    @property
    def key(self) -> str:
        """The resource as Slurm writes it in lists, e.g. ``gres/gpu:h100``."""
        return f"{self.type}/{self.name}" if self.name else self.type
