"""Calls about clusters, nodes in clouds, and the resources that slurmdbd counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode.database import clusters as decode
from slurm_client.operations.base import Listing, named
from slurm_client.operations.database.base import DatabaseOperations
from slurm_client.operations.database.filters import listed, since_1970

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slurm_client.models import CloudInstance, ClusterRecord, TrackedResource
    from slurm_client.operations.arguments import Listed, Name, Text

__all__ = ["ClusterOperations"]

_CLUSTERS = ListOf("clusters", decode.cluster)


class ClusterOperations(DatabaseOperations):
    """List, get, create and delete clusters; list instances and resources."""

    async def clusters(self, *, timeout: float | None = None) -> Listing[ClusterRecord]:
        """Return all clusters that slurmdbd knows."""
        return await self._records("db_get_clusters", _CLUSTERS, timeout=timeout)

    async def cluster(self, name: Name, *, timeout: float | None = None) -> ClusterRecord:
        """Return one cluster; NotFound if slurmdbd knows none of that name."""
        found: ClusterRecord = await self._one(
            "db_get_cluster",
            _CLUSTERS,
            f"cluster {name}",
            pick=named(name),
            path={"cluster_name": name},
            timeout=timeout,
        )
        return found

    async def create_cluster(self, name: Name, *, timeout: float | None = None) -> None:
        """
        Create a cluster, as ``sacctmgr add cluster`` does; Conflict if there is one of that name.

        Whether there is one is asked for first, so two callers at the same time may both succeed.
        """
        try:
            await self.cluster(name, timeout=timeout)
        except errors.NotFound:
            await self._session.call("db_post_clusters", body={"clusters": [{"name": name}]}, timeout=timeout)
        else:
            raise errors.Conflict(f"there is a cluster {name} already; nothing was sent")

    async def delete_cluster(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete a cluster with its associations; NotFound if there is none of that name."""
        answer = await self._session.call("db_delete_cluster", path={"cluster_name": name}, timeout=timeout)
        # Slurm says "nothing changed" where there is no such cluster.
        if answer.not_modified or not answer.fields.get("deleted_clusters"):
            raise errors.NotFound(f"no cluster {name}", status=answer.status, warnings=answer.warnings)

    async def instances(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        clusters: Sequence[Name] = (),
        nodes: Text | None = None,
        instance_ids: Sequence[Listed] = (),
        instance_types: Sequence[Listed] = (),
        timeout: float | None = None,
    ) -> Listing[CloudInstance]:
        """
        Return machines in clouds that were nodes.

        Parameters
        ----------
        since, until
            Those that were nodes between these times; today's when absent, as slurmdbd has it.
        clusters, instance_ids, instance_types
            Only those; of all when empty.
        nodes
            Only these nodes, as a host list.
        """
        query = {
            "time_start": since_1970(since),
            "time_end": since_1970(until),
            "cluster": listed(clusters),
            "node_list": nodes,
            "instance_id": listed(instance_ids),
            "instance_type": listed(instance_types),
        }
        return await self._records(
            "db_get_instances", ListOf("instances", decode.instance), query=query, timeout=timeout
        )

    async def tres(self, *, timeout: float | None = None) -> Listing[TrackedResource]:
        """Return all kinds of resources that slurmdbd counts."""
        return await self._records("db_get_tres", ListOf("TRES", decode.tracked_resource), timeout=timeout)
