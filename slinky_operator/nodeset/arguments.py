"""What slurmd is started with: the user's arguments, and those that make the node's identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.nodeset import conf, identity
from slinky_operator.nodeset.places import Place
from slinky_operator.slurm import naming


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the slurmds of a NodeSet are started with, but for the name of each node."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    def of(self, place: Place) -> list[str]:
        """Those of one slurmd."""
        return [*self.before, place.node, *self.after]


def build(nodeset: NodeSet, cluster: Cluster, own: Mapping[str, Any], container: Mapping[str, Any]) -> Arguments:
    """Arguments of slurmd: the user's, without their `--conf`, and ours with that merged in."""
    users, lines = _split_conf([str(word) for word in own.get("args") or ()])
    server = naming.conf_server(cluster)
    before = [*users, *(flag for flag in ("-D", "-Z") if flag not in users), "-N"]
    after = ["--instance-id", "$(POD_UID)", "--extra", identity.tag(nodeset.namespace, nodeset.name)]
    if server is not None and not names_conf_server(users):
        after += ["--conf-server", server]
    after += ["--conf", conf.node_line(nodeset, container.get("resources") or {}, lines)]
    return Arguments(tuple(before), tuple(after))


def _split_conf(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without `--conf`, and the values it had."""
    rest: list[str] = []
    lines: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--conf":
            lines.append(next(words, ""))
        elif word.startswith("--conf="):
            lines.append(word.removeprefix("--conf="))
        else:
            rest.append(word)
    return rest, lines


def names_conf_server(arguments: Iterable[str]) -> bool:
    """Whether arguments say where slurmctld is."""
    return any(word == "--conf-server" or word.startswith("--conf-server=") for word in arguments)
