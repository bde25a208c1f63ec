"""What a Cluster shows of its keys, and which Secrets they are in. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.part import ON_ITS_WAY, Part, Problem
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.parts.keys.key_guard import foreign_key_trouble
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.secrets.checks import Missing
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming


class KeysPart(Part):
    """The keys of auth/slurm and auth/jwt."""

    name = "keys"

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterator[str]:
        keys = (
            naming.slurm_key(cluster),
            naming.mounted_key(cluster),
            naming.jwt_key(cluster),
            naming.signing_key(cluster),
        )
        yield from (one.secret for one in keys if one is not None)
        if not cluster.spec.external:
            yield naming.key_copy(cluster.name)
            if not cluster.status.slurm_key_file:
                # Whether pods mount it is known once the first pass has found out which form the key has.
                yield naming.accepted_key(cluster.name)

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        keys = state.found(Keys)
        for number, one in enumerate((trouble(state), keys.signing.trouble)):
            if one is not None and one.reason not in ON_ITS_WAY:
                # Without the private key of tokens, tokens of auth/jwt go on.
                yield Problem(one.reason, one.message, in_summary=number == 0)
        yield from (Problem(Reason.SECRET_INVALID, words) for words in keys.weak)

    @override
    def blockers(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        key = trouble(state)
        if key is not None and key.reason is not Reason.KEY_PENDING:
            yield key.reason, key.message

    @override
    def ongoing(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        for one in (trouble(state), state.found(Keys).signing.trouble):
            if one is not None and one.reason in ON_ITS_WAY:
                yield one.reason, one.message

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        in_use = state.found(Keys).signing.in_use
        return {"signing_key_id": None if in_use is None else in_use.key_id}


def trouble(state: PassState) -> Missing | None:
    """What is wrong with a key that daemons have, or will have."""
    foreign = foreign_key_trouble(state.snapshot) if state.snapshot.cluster.spec.external else None
    return foreign or state.found(Keys).trouble


KEYS: Final = KeysPart()
