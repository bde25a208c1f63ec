"""A values file of Slinky's chart `slurm` or `slurm-operator`: what more than one row of a table decides.

These are defaults for several NodeSets or sets of logins, values of all daemons at once, and daemons that run
elsewhere. What Slinky's chart does where nothing is set is in `defaults`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from slinky_operator.conversion import elsewhere
from slinky_operator.conversion.defaults import DAEMONS, chart_defaults, nodeset_defaults
from slinky_operator.conversion.documents import Values, merged, type_name
from slinky_operator.conversion.draft import CONTAINER, Draft, renamed
from slinky_operator.conversion.elsewhere import ELSEWHERE, NOT_WITH_SERVER
from slinky_operator.conversion.errors import NotOfSlinky, WrongType
from slinky_operator.conversion.report import Fate, Report
from slinky_operator.conversion.rules import At
from slinky_operator.conversion.tables.operator import OPERATOR
from slinky_operator.conversion.tables.slurm import ACCOUNTING, COMPUTE, CONTROLLER, LOGIN, NODESET, PARTITION, SLURM
from slinky_operator.conversion.walk import EMPTY, Walk, complete

CHARTS: Final = ("slurm", "slurm-operator")

OLD: Final = frozenset({"compute", "login", "jwt", "slurm", "authcred", "mariadb", "slurm-exporter", "debug"})
"""Keys that only 0.1 to 0.3 have."""

OURS: Final = frozenset(
    {"cluster", "tokens", "networkPolicy", "slurm.registry", "watchNamespaces", "workers", "otherOperators"}
)
"""Keys that only the charts of this operator have."""

IN_EACH: Final = frozenset({"imagePullSecrets", "imagePullPolicy", "priorityClassName", "priorityClass"})

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?\Z")

SERVICE_TYPE: Final = ("service", "spec", "type")


def chart_of(values: Mapping[str, Any], source: str) -> str:
    """Which of Slinky's charts has these values, by their keys.

    Raises
    ------
    NotOfSlinky
        Neither, or both.
    """
    if found := sorted(OURS & set(values)):
        raise NotOfSlinky(f"{source}: {found[0]}: these are values of this operator's chart already")
    slurm = sorted(set(values) & (set(SLURM) - set(OPERATOR)))
    operator = sorted(set(values) & (set(OPERATOR) - set(SLURM)))
    if slurm and operator:
        raise NotOfSlinky(
            f"{source}: {slurm[0]} is a value of the chart slurm, {operator[0]} of the chart slurm-operator: convert"
            " each file by itself, or say --chart"
        )
    if not slurm and not operator:
        first = ", ".join(list(values)[:3]) or "nothing"
        raise NotOfSlinky(
            f"{source}: neither values of Slinky's charts nor objects of its kinds (it has {first}); say --chart"
            " if it is"
        )
    return "slurm" if slurm else "slurm-operator"


def convert(values: Values, chart: str, source: str) -> tuple[Draft, Report]:
    """Convert a values file.

    Parameters
    ----------
    chart
        `slurm` or `slurm-operator`.
    source
        Name of the file, for messages.
    """
    report = Report(source)
    draft = Draft()
    if chart == "slurm-operator":
        _operator(Walk(draft, report), values)
    else:
        _Slurm(Walk(draft, report), values).convert()
    complete(report, values)
    return draft, report


def _operator(walk: Walk, values: Values) -> None:
    walk.report.form = "values of Slinky's chart slurm-operator"
    walk.through(OPERATOR, values, "")
    replicas = values.get("operator", {}).get("replicas") or values.get("replicas")
    if not replicas:
        walk.report.differs("replicas", "1", "1; with 2 or more the loss of a Node is survived")
    walk.report.differs("resources", "none", "requests cpu 50m and memory 128Mi, limit memory 512Mi")
    if not walk.draft.chart.get("watchNamespaces"):
        walk.report.differs("watchNamespaces", "all namespaces", "all namespaces, with a ClusterRole")
    walk.draft.chart.setdefault("slinkyNamespaces", ["slinky"])
    walk.report.differs(
        "slinkyNamespaces",
        "none",
        "[slinky]: the operator does not start while Slinky's own runs there; name the namespace in which it was",
    )


class _Slurm:
    """Values of the chart `slurm`."""

    def __init__(self, walk: Walk, values: Values) -> None:
        self.walk, self.values = walk, values
        self.draft, self.report = walk.draft, walk.report
        self.old = bool(OLD & set(values))
        controller = values.get("controller")
        self.elsewhere = isinstance(controller, dict) and controller.get("external") is True
        self.report.form = f"values of Slinky's chart slurm, {'0.1 to 0.3' if self.old else '0.4 to 1.3'}"

    def convert(self) -> None:
        special: dict[str, Callable[[Any, str], None]] = {
            "nameOverride": self.name,
            "fullnameOverride": self.name,
            "controller": self.controller,
            "accounting": self.accounting,
            "mariadb": self.mariadb,
            "slurm-exporter": self.exporter,
            "login": self.login,
            "loginsets": self.logins,
            "loginsetDefaults": self.login_defaults,
            "compute": self.compute,
            "nodesets": self.nodesets,
            "nodesetDefaults": self.nodeset_defaults,
            "partitions": self.partitions,
        }
        later = [key for key in self.values if key in IN_EACH]
        for key, value in self.values.items():
            if key in IN_EACH:
                continue
            if key in special and value not in (None, "", {}, []):
                special[key](value, key)
            else:
                self.visit(self.outside(key), key)
        for name, ours in self.draft.lift_partitions():
            self.report.differs("cluster.extraConf", f"a line of the partition {name}", f"cluster.partitions[{ours}]")
        if not self.elsewhere:
            chart_defaults(self.draft, self.report, old=self.old, has_partitions="partitions" in self.values)
        for key in later:
            self.in_each(key)

    def visit(self, walk: Walk, key: str) -> None:
        walk.visit(SLURM, self.values[key], key, At(key, self.values))

    def outside(self, key: str) -> Walk:
        """The walk of a top-level key: without effect, or impossible, where slurmctld runs elsewhere."""
        if not self.elsewhere:
            return self.walk
        if key in {"restapi", "sssd"}:
            return replace(self.walk, refused=NOT_WITH_SERVER)
        if key in {"configFiles", "clusterName"} or "Script" in key:
            return replace(self.walk, off=ELSEWHERE)
        return self.walk

    def name(self, value: Any, key: str) -> None:
        """The name of the Cluster, which those of its Services and pods begin with."""
        if key == "nameOverride" and self.values.get("fullnameOverride"):
            self.walk.note(key, Fate.WITHOUT, value, why="fullnameOverride is the whole name")
        elif not isinstance(value, str) or not _NAME.match(value):
            self.walk.note(key, Fate.LOST, value, why="a Cluster's name has a-z, 0-9 and '-', at most 40 of them")
        else:
            self.draft.name = value
            self.walk.note(key, Fate.CHANGED, value, "clusterName", value, why="the name of the Cluster")

    def controller(self, value: Any, path: str) -> None:
        """slurmctld, here or elsewhere."""
        if not self.elsewhere:
            self.visit(self.walk, path)
            return
        elsewhere.connect(self.walk, value, path)
        for key, below in value.items():
            if key not in elsewhere.KEYS:
                at = At(key, value, self.values)
                replace(self.walk, off=ELSEWHERE).visit(CONTROLLER, below, f"{path}.{key}", at)

    def accounting(self, value: Any, path: str) -> None:
        """slurmdbd, here or elsewhere, and its database."""
        if not isinstance(value, dict):
            raise WrongType(f"{self.report.source}: {path}: a map is needed, not {type_name(value)}")
        external = value.get("external")
        beside = external is True
        if isinstance(external, dict) and external.get("enabled") is True:
            beside = not {"user", "database", "secretName", "password"} & set(external)
        for key, below in value.items():
            off = refused = ""
            if self.elsewhere:
                refused = NOT_WITH_SERVER
            elif beside and key not in {"external", "externalConfig", "enabled"}:
                off = "slurmdbd runs elsewhere"
            elif not beside and key == "externalConfig":
                off = "accounting.external is not true"
            walk = replace(self.walk, off=off, refused=refused)
            walk.visit(ACCOUNTING, below, f"{path}.{key}", At(key, value, self.values))

    def mariadb(self, value: Any, path: str) -> None:
        """The database of 0.1 to 0.3."""
        accounting = self.values.get("accounting") or {}
        external = accounting.get("external") if isinstance(accounting, dict) else None
        off = ""
        if isinstance(external, dict) and external.get("enabled") is True:
            off = "accounting.external is enabled"
        elif isinstance(value, dict) and value.get("enabled") is False:
            off = "mariadb is not enabled"
        refused = NOT_WITH_SERVER if self.elsewhere else ""
        self.visit(replace(self.walk, off=off, refused=refused), path)

    def exporter(self, value: Any, path: str) -> None:
        """slurm-exporter, with the names of its metrics."""
        self.visit(self.walk, path)
        if isinstance(value, dict) and value.get("enabled", True):
            exporter = ["metrics", "exporter"]
            self.draft.put("cluster", "", [*exporter, "enabled"], True)  # noqa: FBT003 a value
            self.draft.put_default("cluster", "", [*exporter, "names"], ["slurm-exporter"])

    def login(self, value: Any, path: str) -> None:
        """The login pods of 0.3."""
        on = isinstance(value, dict) and value.get("enabled") is True
        self.one_login(value, {}, path, "login", "" if on else "login is not enabled")

    def logins(self, value: Any, path: str) -> None:
        """The sets of login pods of 0.4 to 1.3."""
        for name, own in self.named(value, path):
            defaults = self.values.get("loginsetDefaults") or {}
            on = merged(defaults, own).get("enabled") is not False
            self.one_login(own, defaults, f"{path}.{name}", name, "" if on else "it is not enabled")

    def login_defaults(self, value: Any, path: str) -> None:
        self.of_all(LOGIN, value, path, "loginsets.*" if self.elsewhere else "cluster.login[]")

    def one_login(self, own: Any, defaults: Values, path: str, name: str, off: str) -> None:
        """One set of login pods."""
        whole = merged(defaults, own) if isinstance(own, dict) else own
        label = f"loginsets.{name}" if self.elsewhere else f"cluster.login[{name}]"
        self.part(name, label, path, own, off=off).through(LOGIN, whole, path)
        if off:
            return
        self.draft.put_default("login", name, ["replicas"], 1)
        if self.draft.get("login", name, SERVICE_TYPE) is None:
            self.draft.put("login", name, SERVICE_TYPE, "LoadBalancer")
            self.report.differs(f"{label}.service.spec.type", "LoadBalancer", "ClusterIP; LoadBalancer is written")

    def compute(self, value: Any, path: str) -> None:
        """NodeSets and partitions of 0.1 to 0.3, which are lists."""
        if not isinstance(value, dict):
            raise WrongType(f"{self.report.source}: {path}: a map is needed, not {type_name(value)}")
        for key, below in value.items():
            inner = f"{path}.{key}"
            if key == "nodesets":
                for name, own, at in self.listed(below, inner):
                    self.one_nodeset(own, {}, at, name)
            elif key == "partitions":
                for name, own, at in self.listed(below, inner):
                    self.one_partition(own, at, name)
            else:
                self.of_all(COMPUTE, {key: below}, path, "nodesets.*")
        scratch = Draft()
        quiet = Walk(scratch, Report(self.report.source), "*", "nodesets.*")
        for_all = ("image", "imagePullPolicy")
        quiet.through(COMPUTE, {key: value[key] for key in for_all if key in value}, path)
        for name in self.draft.nodesets:
            for field in (["image"], [CONTAINER, "imagePullPolicy"]):
                if (found := scratch.get("nodeset", "*", field)) is not None:
                    self.draft.put_default("nodeset", name, field, found)

    def nodesets(self, value: Any, path: str) -> None:
        """The NodeSets of 0.4 to 1.3."""
        for name, own in self.named(value, path):
            self.one_nodeset(own, self.values.get("nodesetDefaults") or {}, f"{path}.{name}", name)

    def nodeset_defaults(self, value: Any, path: str) -> None:
        self.of_all(NODESET, value, path, "nodesets.*")

    def one_nodeset(self, own: Any, defaults: Values, path: str, name: str) -> None:
        """One NodeSet."""
        whole = merged(defaults, own) if isinstance(own, dict) else own
        ours = renamed(name)
        label = f"nodesets.{ours}"
        self.draft.nodesets.setdefault(ours, {})
        self.part(ours, label, path, own).through(NODESET, whole, path)
        spec = self.draft.nodesets[ours]
        if ours != name:
            self.report.differs(label, name, f"{ours}, since Slurm means something else by {name}")
        nodeset_defaults(spec, label, self.report, old=self.old)

    def partitions(self, value: Any, path: str) -> None:
        """The partitions of 0.4 to 1.3."""
        for name, own in self.named(value, path):
            self.one_partition(own, f"{path}.{name}", name)

    def one_partition(self, own: Any, path: str, name: str) -> None:
        """One partition over NodeSets."""
        ours = renamed(name)
        label = f"cluster.partitions[{ours}]"
        off = ELSEWHERE if self.elsewhere else ""
        if isinstance(own, dict) and own.get("enabled") is False:
            off = "it is not enabled"
        self.part(ours, label, path, own, off=off).through(PARTITION, own, path)
        if off:
            return
        if name == "all":
            self.draft.put_default("partition", ours, ["nodeSets"], ["ALL"])
        partition = self.draft.partitions.setdefault(ours, {})
        if "nodeSets" in partition:
            partition["nodeSets"] = [
                one if str(one).upper() == "ALL" else renamed(str(one)) for one in partition["nodeSets"]
            ]
        if ours != name:
            self.report.differs(
                label,
                f"the partition {name}",
                f"{ours}, since Slurm means something else by {name}: change --partition",
            )

    def in_each(self, key: str) -> None:
        """A value of all daemons, NodeSets and logins, where they have none of their own."""
        scratch = Draft()
        before = len(self.report.entries)
        replace(self.walk, draft=scratch).visit(SLURM, self.values[key], key, At(key, self.values))
        for entry in self.report.entries[before:]:
            field = entry.to.removeprefix("each.")
            if not entry.to.startswith("each."):
                continue
            where = [CONTAINER, field] if field == "imagePullPolicy" else ["template", "spec", field]
            target = f"{'.'.join(where).replace(CONTAINER, 'template.spec.containers[]')} of each daemon and NodeSet"
            position = self.report.entries.index(entry)
            self.report.entries[position] = replace(entry, to=target)
            self.spread(where, scratch.cluster[field])

    def spread(self, where: list[str], value: object) -> None:
        daemons = [] if self.elsewhere else [d for d in DAEMONS if d != "accounting" or self.runs_slurmdbd()]
        for daemon in daemons:
            self.draft.put_default("cluster", "", [daemon, *where], value)
        for scope, names in (("nodeset", self.draft.nodesets), ("login", self.draft.logins)):
            for name in list(names):
                self.draft.put_default(scope, name, where, value)

    def runs_slurmdbd(self) -> bool:
        accounting = self.draft.cluster.get("accounting")
        return accounting is not None and "external" not in accounting

    # ------------------------------------------------------------------------------------------------------------

    def part(self, name: str, label: str, path: str, own: Any, *, off: str = "", refused: str = "") -> Walk:
        """The walk of one NodeSet, set of logins or partition; keys of its defaults are reported once, not here."""
        if isinstance(own, dict) and not own:
            self.walk.note(path, Fate.KEPT, own, why=EMPTY)

        def reported(key: str) -> bool:
            at = own
            for part in key.removeprefix(path).removeprefix(".").split("."):
                if not isinstance(at, dict) or part not in at:
                    return False
                at = at[part]
            return True

        return replace(self.walk, name=name, label=label, reported=reported, off=off, refused=refused)

    def of_all(self, table: Any, value: Any, path: str, label: str) -> None:
        """Report defaults of several parts; they are written with each."""
        scratch = Draft()
        replace(self.walk, draft=scratch, name="*", label=label).through(table, value, path)
        if scratch.cluster:
            for key, found in scratch.cluster.items():
                self.draft.put("cluster", "", [key], found)

    def named(self, value: Any, path: str) -> list[tuple[str, Values]]:
        """The parts of a map, by name."""
        if not isinstance(value, dict):
            raise WrongType(f"{self.report.source}: {path}: a map is needed, not {type_name(value)}")
        for name, own in value.items():
            if own is not None and not isinstance(own, dict):
                raise WrongType(f"{self.report.source}: {path}.{name}: a map is needed, not {type_name(own)}")
        return [(name, own or {}) for name, own in value.items()]

    def listed(self, value: Any, path: str) -> list[tuple[str, Values, str]]:
        """The parts of a list, by the names in them."""
        if not isinstance(value, list):
            if value is None:
                return []
            raise WrongType(f"{self.report.source}: {path}: a list is needed, not {type_name(value)}")
        found: list[tuple[str, Values, str]] = []
        for number, own in enumerate(value):
            at = f"{path}[{number}]"
            if not isinstance(own, dict) or not isinstance(own.get("name"), str) or not own["name"]:
                raise WrongType(f"{self.report.source}: {at}: a map with a name is needed")
            if any(own["name"] == name for name, _, _ in found):
                raise WrongType(f"{self.report.source}: {at}.name: {own['name']} is there twice")
            found.append((own["name"], own, at))
        return found
