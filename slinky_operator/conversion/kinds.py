"""Rendered objects of Slinky's kinds, as `helm get manifest` and `kubectl get --output=yaml` print them.

A Controller with its RestApi, Accounting, LoginSets, NodeSets and Tokens becomes one Cluster. A Cluster and NodeSets of
0.1 to 0.3 are kept as they are. Objects of other kinds are named, so that none is overlooked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from slinky_operator.conversion import elsewhere
from slinky_operator.conversion.documents import Values, type_name
from slinky_operator.conversion.draft import Draft
from slinky_operator.conversion.errors import NotOfSlinky, WrongType
from slinky_operator.conversion.report import Fate, Report
from slinky_operator.conversion.tables.kinds import KINDS, METADATA, WRITTEN_BY_KUBERNETES
from slinky_operator.conversion.tables.slurm import MARIADB_OF_SLINKY
from slinky_operator.conversion.walk import Walk, complete

GROUP: Final = "slinky.slurm.net"
FIRST: Final = ("Cluster", "Controller", "Accounting", "RestApi", "NodeSet", "LoginSet", "Token")
"""The order in which objects are converted: what others belong to comes first."""


@dataclass(frozen=True, slots=True)
class _Object:
    """One object of the input."""

    source: str
    whole: Values

    @property
    def kind(self) -> str:
        return str(self.whole.get("kind"))

    @property
    def spec(self) -> Values:
        return self._map("spec", self.whole)

    @property
    def metadata(self) -> Values:
        return self._map("metadata", self.whole)

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "")

    @property
    def path(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def ours(self) -> bool:
        """Whether it is of a kind that is converted."""
        group = str(self.whole.get("apiVersion", "")).partition("/")[0]
        return group == GROUP and self.kind in FIRST

    @property
    def old(self) -> bool:
        """Whether it is of 0.1 to 0.3."""
        return self.kind == "Cluster" or (self.kind == "NodeSet" and "clusterName" in self.spec)

    def ref(self, field_name: str) -> str:
        """The name in a reference."""
        return str(self._map(field_name, self.spec).get("name") or "")

    def _map(self, key: str, at: Mapping[str, Any]) -> Values:
        value = at.get(key) or {}
        if not isinstance(value, dict):
            raise WrongType(f"{self.source}: {self.kind}: {key}: a map is needed, not {type_name(value)}")
        return value


def is_object(document: Mapping[str, Any]) -> bool:
    """Whether a document is an object of Kubernetes."""
    return isinstance(document.get("kind"), str) and isinstance(document.get("apiVersion"), str)


def convert(inputs: Sequence[tuple[str, Values]]) -> tuple[list[Draft], Report]:
    """Convert objects.

    Parameters
    ----------
    inputs
        Each with the name of its file.

    Returns
    -------
    tuple
        One draft a Cluster, and the report.

    Raises
    ------
    NotOfSlinky
        None is of a kind of Slinky.
    """
    source = ", ".join(dict.fromkeys(name for name, _ in inputs))
    objects = [one for name, document in inputs for one in _expanded(name, document)]
    known = sorted((one for one in objects if one.ours), key=lambda one: FIRST.index(one.kind))
    if not known:
        kinds = ", ".join(sorted({one.kind for one in objects})) or "an empty list"
        raise NotOfSlinky(f"{source}: no object is of a kind of Slinky (there is {kinds})")
    for one in known:
        if not one.name:
            raise WrongType(f"{one.source}: {one.kind}: metadata.name is needed")
    report = Report(source, f"objects of Slinky: {', '.join(dict.fromkeys(one.kind for one in known))}")
    conversion = _Conversion(report)
    for one in known:
        conversion.take(one)
        complete(report, one.whole, one.path)
    for one in objects:
        if not one.ours:
            why = "not of a kind of Slinky: it stays as it is, and is needed if a reference names it"
            Walk(Draft(), report).note(one.path, Fate.WITHOUT, "", why=why)
    return conversion.finished(), report


def _expanded(source: str, document: Values) -> Iterator[_Object]:
    """The objects of a document: itself, or those of a list."""
    if document.get("kind") == "List" or (document.get("kind", "").endswith("List") and "items" in document):
        for number, item in enumerate(document.get("items") or ()):
            if not isinstance(item, dict) or not is_object(item):
                raise WrongType(f"{source}: items[{number}]: an object with apiVersion and kind is needed")
            yield from _expanded(source, item)
    else:
        yield _Object(source, document)


@dataclass(slots=True)
class _Conversion:
    """Objects on their way into Clusters."""

    report: Report
    drafts: dict[tuple[str, str], Draft] = field(default_factory=dict)
    accounting_of: dict[tuple[str, str], Draft] = field(default_factory=dict)
    """The Cluster that an Accounting belongs to."""

    def take(self, one: _Object) -> None:
        """Convert one object."""
        self._around(one)
        draft = self._draft(one)
        if draft is None:
            why = (
                "no Controller of the input names it" if one.kind == "Accounting" else "name its Cluster in clusterRef"
            )
            self._walk(Draft()).note(f"{one.path}.spec", Fate.LOST, one.spec, why=why)
            return
        if one.old:
            self._keep(one, draft)
            return
        if draft.elsewhere and one.kind in {"RestApi", "Accounting"}:
            self._walk(Draft()).note(f"{one.path}.spec", Fate.LOST, one.spec, why=elsewhere.NOT_WITH_SERVER)
            return
        name, label = self._part(one, draft)
        external = one.spec.get("external") is True
        if one.kind == "Controller" and external:
            elsewhere.connect(self._walk(draft), one.spec, f"{one.path}.spec")
        told = elsewhere.KEYS if one.kind == "Controller" and external else ()
        for key in (key for key in one.spec if key not in told):
            off = self._off(key, one.kind, external=external)
            part = self._walk(draft, name, label, off)
            part.through(KINDS[one.kind], {key: one.spec[key]}, f"{one.path}.spec")
        self._defaults(one, draft, name)

    def _part(self, one: _Object, draft: Draft) -> tuple[str, str]:
        """Which part of a Cluster an object becomes, and how the report calls it."""
        if one.kind == "NodeSet":
            name = self._nodeset_name(one)
            draft.nodesets.setdefault(name, {})
            return name, f"nodesets.{name}"
        if one.kind == "LoginSet":
            name = one.name.removeprefix(f"{draft.name}-")
            draft.logins.setdefault(name, {})
            return name, f"loginsets.{name}" if draft.elsewhere else f"cluster.login[{name}]"
        if one.kind == "Token":
            draft.tokens.setdefault(one.name, {})
            return one.name, f"tokens.{one.name}"
        if one.kind == "Accounting":
            draft.put("cluster", "", ["accounting", "enabled"], True)  # noqa: FBT003 a value
        return "", ""

    def finished(self) -> list[Draft]:
        """The Clusters."""
        for draft in self.drafts.values():
            for name, ours in draft.lift_partitions():
                about = f"Controller/{draft.name}.spec.extraConf"
                self.report.differs(about, f"a line of the partition {name}", f"cluster.partitions[{ours}]")
        return list(self.drafts.values())

    def _off(self, key: str, kind: str, *, external: bool) -> str:
        if kind not in {"Controller", "Accounting"}:
            return ""
        if key == "externalConfig" and not external:
            return "external is not true"
        kept = {"external", "externalConfig", "slurmKeyRef", "jwtKeyRef", "jwtHs256KeyRef"}
        if external and key not in kept:
            return elsewhere.ELSEWHERE if kind == "Controller" else "slurmdbd runs elsewhere"
        return ""

    def _walk(self, draft: Draft, name: str = "", label: str = "", off: str = "") -> Walk:
        return Walk(draft, self.report, name, label, off=off)

    def _draft(self, one: _Object) -> Draft | None:
        """The Cluster that an object belongs to."""
        if one.kind in {"Cluster", "Controller"}:
            draft = self._named(one.namespace, one.name)
            if accounting := one.ref("accountingRef"):
                self.accounting_of[one.namespace, accounting] = draft
            return draft
        if one.old:
            return self._named(one.namespace, str(one.spec["clusterName"]))
        if one.kind == "Accounting":
            return self.accounting_of.get((one.namespace, one.name))
        if one.kind == "Token":
            near = [draft for (namespace, _), draft in self.drafts.items() if namespace == one.namespace]
            return near[0] if len(near) == 1 else None
        return self._named(one.namespace, one.ref("controllerRef") or "slurm")

    def _named(self, namespace: str, name: str) -> Draft:
        return self.drafts.setdefault((namespace, name), Draft(name, namespace))

    def _nodeset_name(self, one: _Object) -> str:
        """The name by which Slurm's nodes are called: the host name of the template, or the object's name."""
        template = one.spec.get("template")
        spec = template.get("spec") if isinstance(template, dict) else None
        host = spec.get("hostname") if isinstance(spec, dict) else None
        if not isinstance(host, str) or not host.endswith("-") or not host.rstrip("-"):
            return one.name
        name = host.rstrip("-")
        self.report.differs(one.path, f"its Slurm nodes are called {host}0", f"a NodeSet {name}, which names them so")
        return name

    def _keep(self, one: _Object, draft: Draft) -> None:
        """Objects of 0.1 to 0.3 have the fields that they have here."""
        spec = {key: value for key, value in one.spec.items() if key != "clusterName"}
        walk = self._walk(draft)
        if one.kind == "Cluster":
            draft.cluster.update(spec)
        else:
            draft.nodesets[one.name] = spec
        for key, value in one.spec.items():
            walk.note(f"{one.path}.spec.{key}", Fate.KEPT, value)
        if one.kind == "NodeSet" and "replicas" not in spec:
            here = "as there, if the template tells 0.1 from 0.2 and 0.3 (docs/from-slinky.md)"
            self.report.differs(
                f"{one.path}.spec.replicas", "0.1: a pod on each matching Node; 0.2 and 0.3: none", here
            )

    def _defaults(self, one: _Object, draft: Draft, name: str) -> None:
        """What is otherwise here where an object says nothing."""
        differs = self.report.differs
        if one.kind == "NodeSet":
            spec = draft.nodesets[name]
            if "replicas" not in spec and spec.get("scalingMode") != "DaemonSet":
                spec["replicas"] = 1
                differs(f"{one.path}.spec.replicas", "1", "a pod on each matching Node; 1 is written")
            found = spec.get("resources", {})
            if not {"cpu", "memory"} <= {*(found.get("limits") or {}), *(found.get("requests") or {})}:
                slinky = "without cpu and memory, a Slurm node has those of the machine"
                differs(f"{one.path}.spec.slurmd.resources", slinky, "CPUs=1 and RealMemory=512: set the limits")
        elif one.kind == "Token":
            grant = (
                f"{{namespaces: [{one.namespace or 'NAMESPACE'}], usernames: [{one.spec.get('username', 'nobody')}]}}"
            )
            differs(
                one.path, "who has the key may sign for anybody", f"the Cluster grants users: auth.tokens: [{grant}]"
            )
        elif one.kind == "Accounting" and one.spec.get("external") is not True:
            database = draft.cluster["accounting"].get("database", {})
            draft.cluster["accounting"]["database"] = {**MARIADB_OF_SLINKY, **database}

    def _around(self, one: _Object) -> None:
        """What is beside the spec."""
        walk = self._walk(Draft())
        for key, value in one.whole.items():
            if key in {"apiVersion", "kind"}:
                walk.note(f"{one.path}.{key}", Fate.KEPT, value, why="that of this operator's kind")
            elif key == "metadata":
                for name, found in one.metadata.items():
                    self._metadata(walk, f"{one.path}.metadata", name, found)
            elif key == "status":
                walk.note(f"{one.path}.status", Fate.WITHOUT, "", why="written by Slinky's operator")

    def _metadata(self, walk: Walk, path: str, name: str, value: Any) -> None:
        if name in {"name", "namespace"}:
            walk.note(f"{path}.{name}", Fate.KEPT, value)
        elif name in WRITTEN_BY_KUBERNETES:
            walk.note(f"{path}.{name}", Fate.WITHOUT, "", why="written by Kubernetes")
        elif name in METADATA and isinstance(value, dict):
            for key, found in value.items():
                own = not key.startswith(METADATA[name])
                why = "put it on the converted object" if own else "written by helm, kubectl or Slinky's operator"
                fate = Fate.LOST if own else Fate.WITHOUT
                walk.note(f"{path}.{name}.{key}", fate, found if own else "", why=why)
