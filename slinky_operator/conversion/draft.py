"""What has been converted so far: a Cluster, its NodeSets and Tokens, in the shape of values of the chart `slurm`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from slinky_operator.conversion.documents import Values

CONTAINER: Final = "container"
"""In a path: the container of the daemon in a pod template."""

CONTAINERS: Final = {
    "controller": "slurmctld",
    "restapi": "slurmrestd",
    "accounting": "slurmdbd",
    "mariadb": "mariadb",
    "exporter": "exporter",
    "login": "login",
    "nodeset": "slurmd",
}
"""Names of the daemons' containers, by what has the template."""

API_VERSION: Final = "slinky.slurm.net/v1alpha1"


_PARTITION: Final = re.compile(r"(?i)PartitionName=(?P<name>[A-Za-z0-9_.-]+)\s+(?P<rest>.*)")
_NODES: Final = re.compile(r"(?i)(?:^|\s)Nodes=(?P<nodes>\S+)")


def renamed(name: str) -> str:
    """The name of a NodeSet or partition here: `all` and `default` mean something else to Slurm."""
    return f"{name.lower()}-nodes" if name.lower() in {"all", "default"} else name


@dataclass(slots=True)
class Draft:
    """A Cluster with what belongs to it."""

    name: str = ""
    namespace: str = ""
    cluster: Values = field(default_factory=dict)
    nodesets: dict[str, Values] = field(default_factory=dict)
    logins: dict[str, Values] = field(default_factory=dict)
    partitions: dict[str, Values] = field(default_factory=dict)
    tokens: dict[str, Values] = field(default_factory=dict)
    release: Values = field(default_factory=dict)
    """Values of the chart `slurm` that are in no Cluster."""
    chart: Values = field(default_factory=dict)
    """Values of the chart `slurm-operator`."""

    @property
    def elsewhere(self) -> bool:
        """Whether Slurm runs elsewhere: login pods are then no part of the Cluster."""
        return "server" in self.cluster

    def put(self, scope: str, name: str, path: Sequence[str], value: object) -> None:
        """Write a value: maps are merged, lines of text added, containers and volumes merged by their names.

        Parameters
        ----------
        scope
            `cluster`, `nodeset`, `login`, `partition`, `release`, `chart`: what the path begins in.
        name
            Which NodeSet, set of logins or partition; empty for the others.
        """
        at = self._root(scope, name)
        owner = scope
        for part in path[:-1]:
            if part == CONTAINER:
                at = _container(at, CONTAINERS[owner])
            else:
                owner = part if part in CONTAINERS else owner
                at = at.setdefault(part, {})
        last = path[-1] if path else ""
        at[last] = joined(at[last], value) if last in at else value

    def get(self, scope: str, name: str, path: Sequence[str]) -> object:
        """What has been written at a path; `None` for nothing."""
        at: Any = self._root(scope, name)
        owner = scope
        for part in path:
            owner = part if part in CONTAINERS else owner
            if part == CONTAINER and isinstance(at, dict):
                containers = at.get("template", {}).get("spec", {}).get("containers", [])
                at = next((container for container in containers if container.get("name") == CONTAINERS[owner]), None)
            else:
                at = at.get(part) if isinstance(at, dict) else None
        return at

    def put_default(self, scope: str, name: str, path: Sequence[str], value: object) -> None:
        """Write a value where there is none."""
        if self.get(scope, name, path) is None:
            self.put(scope, name, path, value)

    def lift_partitions(self) -> list[tuple[str, str]]:
        """Make partitions of the lines about them in slurm.conf, which the operator writes itself.

        Returns
        -------
        list
            Their names there and here. Lines with nodes that are no NodeSets stay.
        """
        text = self.cluster.get("extraConf")
        found: list[tuple[str, str]] = []
        rest: list[str] = []
        for line in text.splitlines() if isinstance(text, str) else ():
            match = _PARTITION.fullmatch(line.strip())
            nodes = _NODES.search(match["rest"]) if match else None
            names = nodes["nodes"].split(",") if nodes else []
            known = all(name.upper() == "ALL" or name in self.nodesets for name in names)
            if not match or not nodes or not known or "#" in line:
                rest.append(line)
                continue
            ours = renamed(match["name"])
            self.partitions[ours] = {"nodeSets": ["ALL" if name.upper() == "ALL" else name for name in names]}
            if config := " ".join(_NODES.sub(" ", match["rest"]).split()):
                self.partitions[ours]["config"] = config
            found.append((match["name"], ours))
        if found:
            self.cluster["extraConf"] = "\n".join(rest)
            if not rest:
                del self.cluster["extraConf"]
        return found

    def spec(self) -> Values:
        """The spec of the Cluster."""
        made = dict(self.cluster)
        if self.logins and not self.elsewhere:
            made["login"] = [{"name": name, **login} for name, login in self.logins.items()]
        if self.partitions:
            made["partitions"] = [{"name": name, **partition} for name, partition in self.partitions.items()]
        return made

    def values(self) -> Values:
        """Values of the chart `slurm`, or of `slurm-operator`."""
        if self.chart:
            return self.chart
        made: Values = {"clusterName": self.name} if self.name else {}
        made["cluster"] = self.spec()
        parts = {"nodesets": self.nodesets, "loginsets": self.logins if self.elsewhere else {}, "tokens": self.tokens}
        return {**made, **{key: part for key, part in parts.items() if part}, **self.release}

    def objects(self, name: str) -> list[Values]:
        """The same as objects.

        Parameters
        ----------
        name
            The name of the Cluster if the input has none.
        """
        cluster = self.name or name
        where = {"namespace": self.namespace} if self.namespace else {}
        made = [_object("Cluster", {"name": cluster, **where}, self.spec())]
        for nodeset, spec in self.nodesets.items():
            if spec.get("enabled") is not False:
                fields = {key: value for key, value in spec.items() if key != "enabled"}
                made.append(_object("NodeSet", {"name": nodeset, **where}, {"clusterName": cluster, **fields}))
        for login, spec in self.logins.items() if self.elsewhere else ():
            made.append(_object("LoginSet", {"name": login, **where}, {"clusterName": cluster, **spec}))
        for token, spec in self.tokens.items():
            made.append(_object("Token", {"name": token, **where}, {"clusterRef": {"name": cluster}, **spec}))
        return [*made, *(one for one in self.release.get("extraObjects", ()) if isinstance(one, dict))]

    def _root(self, scope: str, name: str) -> Values:
        named = {"nodeset": self.nodesets, "login": self.logins, "partition": self.partitions, "token": self.tokens}
        if scope in named:
            return named[scope].setdefault(name, {})
        return {"chart": self.chart, "release": self.release}.get(scope, self.cluster)


def joined(old: object, new: object) -> object:
    """What two keys that become one have together."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: joined(old[key], value) if key in old else value for key, value in new.items()}}
    if isinstance(old, list) and isinstance(new, list):
        return _joined_lists(old, new)
    if isinstance(old, str) and isinstance(new, str) and old and new and old != new:
        return f"{old}\n{new}"
    return new


def _joined_lists(old: list[Any], new: list[Any]) -> list[Any]:
    """Entries with names are merged by them, as Kubernetes merges containers and volumes."""
    made = list(old)
    for one in new:
        name = one.get("name") if isinstance(one, dict) else None
        same = next((i for i, has in enumerate(made) if name and isinstance(has, dict) and has.get("name") == name), -1)
        if same >= 0:
            made[same] = joined(made[same], one)
        elif one not in made:
            made.append(one)
    return made


def _container(at: Values, name: str) -> Values:
    spec = at.setdefault("template", {}).setdefault("spec", {})
    containers: list[Values] = spec.setdefault("containers", [])
    for container in containers:
        if container.get("name") == name:
            return container
    containers.append({"name": name})
    return containers[-1]


def _object(kind: str, metadata: Values, spec: Values) -> Values:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
