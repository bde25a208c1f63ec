"""What slurmdbd has of accounts, users and QOS, as far as a tree may be about it. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_client.models import Account, Association, AssociationKey, Qos, User


@dataclass(frozen=True, slots=True)
class Present:
    """What slurmdbd has."""

    qos: Mapping[str, Qos] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)
    """With their coordinators."""

    users: Mapping[str, User] = field(default_factory=dict)
    associations: Mapping[AssociationKey, Association] = field(default_factory=dict)
    """Of all clusters, with the limits and QOS of their own."""

    def of_cluster(self, cluster: str) -> dict[AssociationKey, Association]:
        """The associations on a cluster."""
        return {key: one for key, one in self.associations.items() if key.cluster == cluster}
