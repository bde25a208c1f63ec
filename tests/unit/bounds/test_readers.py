"""Each function of the operator that is given an object of Slurm bears every hostile text in it.

The functions are found by the types of their parameters, and each is called: with every text of the objects hostile,
and with each text that the function reads hostile alone. Another function that reads such objects is tried as it is;
what cannot be made from its types is given in `GIVEN`, and `ELSEWHERE` says who tries what cannot be called here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from typing_extensions import override

from hack.localkube.paths import PROJECT
from slinky_api.conditions import Reason as ConditionReason
from slinky_api.v1alpha1.cluster.maintenance import MaintenanceWindow
from slinky_api.v1alpha1.nodeset.spec import Drain, OnTimeout
from slinky_api.v1alpha1.slurmjob.kind import ArrayCounts, ArrayTasks, JobEnd, SlurmJob, SlurmJobStatus
from slinky_operator.autoscaling.rules.rooms import Shape
from slinky_operator.autoscaling.rules.view import ScaledSet
from slinky_operator.cluster.parts.maintenance.windows import WantedReservation
from slinky_operator.jobs.phases import Phase, Reason, Shown
from slinky_operator.jobs.task_sets import Reader
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnds
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slinky_operator.slurmjob.execute.slurm_calls import HistoryQuery
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slurm_client.models import Job, JobDetails, JobRecord, JobState, Node, Partition, Reservation
from tests.support.hostile_texts import Cost, measured, texts
from tests.unit.bounds.test_hostile_answers import LONGEST, text_fields, too_much
from tests.unit.nodeset.builders import a_pod, joined

pytestmark = pytest.mark.thorough

NOW: Final = datetime(2026, 11, 24, tzinfo=UTC)
PLAIN: Final[Mapping[str, Any]] = {
    "Job": Job(id=1, array_job_id=1, state=JobState("RUNNING"), start_time=NOW, nodes=("a-0",), _details=JobDetails()),
    "JobRecord": JobRecord(id=1, array_job_id=1, state=JobState("COMPLETED"), start_time=NOW, end_time=NOW),
    "Node": Node(name="a-0"),
    "Partition": Partition(name="a"),
    "Reservation": Reservation(name="a"),
}

METHODS: Final = "its class needs daemons or a Cluster; what it makes of texts is in functions that are called here"
ASKS: Final = "it asks Slurm, and gives the answers to functions that are called here"
AUTOSCALING: Final = "bounded by the counter's budget: tests/unit/autoscaling/test_hostile_jobs.py"
COUNTER: Final = "it counts within bounds: tests/unit/slurm/jobs/test_job_facts.py"
IN_WHOLE: Final = "it passes the objects on to functions that are called here"
IN_FACTS: Final = "`facts` of its module calls it, and is called here"
BRIDGE: Final = "whole passes over such texts: tests/unit/bridge/nodes/test_hostile_texts.py"
LARGEST: Final = "such texts of nodes: tests/unit/bridge/pods/test_largest.py"
STATES: Final = "it looks at states and flags of jobs, and at no other text"
ELSEWHERE: Final[Mapping[str, str]] = {
    "bridge.nodes.execute._still": BRIDGE,
    "bridge.nodes.execute.is_meant": BRIDGE,
    "bridge.nodes.model.plan._standing": BRIDGE,
    "bridge.nodes.model.plan._other_size": BRIDGE,
    "bridge.nodes.model.plan._drains": BRIDGE,
    "bridge.nodes.model.plan.of_left_over": BRIDGE,
    "bridge.nodes.model.warnings.configuration_of": BRIDGE,
    "bridge.nodes.observation._remember": BRIDGE,
    "bridge.pods.model.translation.largest.too_large": LARGEST,
    "autoscaling.rules.needs.excuse": AUTOSCALING,
    "autoscaling.rules.needs.read": AUTOSCALING,
    "autoscaling.rules.needs.partitions": AUTOSCALING,
    "autoscaling.rules.needs._need": AUTOSCALING,
    "nodeset.execute.delete_pods._count": IN_WHOLE,
    "nodeset.planning.survey._needs_jobs": IN_WHOLE,
    "nodeset.planning.survey._reusable_names": IN_WHOLE,
    "nodeset.execute.end_jobs.note": IN_WHOLE,
    "nodeset.execute.end_jobs._each": ASKS,
    "nodeset.execute.end_jobs._gone": ASKS,
    "nodeset.drain.slurmd_questions.gone": IN_WHOLE,
    "nodeset.execute.queries.slurm_queries.recorded_ends": ASKS,
    "nodeset.execute.queries.slurm_queries.same_runs": ASKS,
    "slurm.nodes.reference_query.references": ASKS,
    "nodeset.model.snapshot.with_jobs": IN_WHOLE,
    "nodeset.model.loads.after": IN_WHOLE,
    "nodeset.observation.neighbours.of": IN_WHOLE,
    "nodeset.observation.observe._own_nodes": IN_WHOLE,
    "nodeset.observation.readings.again": IN_WHOLE,
    "nodeset.observation.readings.with_records": IN_WHOLE,
    "nodeset.ports.cancel_job": METHODS,
    "nodeset.ports.requeue_job": METHODS,
    "nodeset.triggers.node": METHODS,
    "slurm.connection.cluster_client._count": IN_WHOLE,
    "slurm.jobs.job_facts.add": COUNTER,
    "slurm.jobs.job_list.__init__": METHODS,
    "slurm.jobs.job_list._after": ASKS,
    "slurm.jobs.job_list._ask_all": ASKS,
    "slurm.jobs.job_list._timed": METHODS,
    "slurm.jobs.job_list._kept": METHODS,
    "slurmjob.ended_jobs.owner": METHODS,
    "slurmjob.ended_jobs.seen": METHODS,
    "slurmjob.execute.external._given": IN_WHOLE,
    "slurmjob.pods.log_upkeep.follow": METHODS,
    "slurmjob.polling.job_list._own": METHODS,
    "slurmjob.rescheduling.__init__": METHODS,
    "slurmjob.rescheduling.changed": STATES,
    "virtual_nodes.nodes.model.partitions.add": IN_FACTS,
    "virtual_nodes.nodes.model.partitions.complete": IN_FACTS,
    "virtual_nodes.nodes.observation._facts": IN_WHOLE,
}
"""Functions that are not called here, and what holds them."""


@dataclass(frozen=True)
class Host:
    """What a Kubernetes Node sets on its Slurm nodes."""

    features: tuple[str, ...] = ("a",)
    topology: str = "a:b"


GIVEN: Final[Mapping[str, Any]] = {
    "ScaledSet": ScaledSet(name="a", replicas=1, most=9, shape=Shape(1, 1)),
    "Cause": Cause.SCALE_IN,
    "Reason": ConditionReason.NODE_DOWN,
    "Pod": a_pod(),
    "Drain": Drain(),
    "OnTimeout": OnTimeout.CANCEL,
    "RecordedEnds": RecordedEnds(),
    "StepsSeen": StepsSeen(NOW),
    "Traits": Host(),
    "HistoryQuery": HistoryQuery(Mark("u", 0), "a", "a", NOW),
    "Mark": Mark("u", 0),
    "ArrayCounts": ArrayCounts(),
    "ArrayTasks": ArrayTasks(),
    "Shown": Shown(Phase.RUNNING, Reason.RUNNING, ""),
    "Seen": Seen(1, Shown(Phase.RUNNING, Reason.RUNNING, "")),
    "JobEnd": JobEnd(exit_code=1, comment="a"),
    "MaintenanceWindow": MaintenanceWindow.model_validate(
        {"name": "a", "schedule": "0 2 * * *", "duration": "1h", "nodeSets": ["a"]}
    ),
    "WantedReservation": WantedReservation("slurm-operator-a-0", NOW, NOW, frozenset({"a-0"})),
    "Object": {"metadata": {"name": "a", "uid": "u"}, "spec": {}, "status": {"jobId": 1}},
    "SlurmJob": SlurmJob.parse(
        {
            "metadata": {"name": "a", "namespace": "b", "uid": "u"},
            "spec": {
                "clusterName": "c",
                "script": "#!/bin/sh\n",
                "results": [{"volume": {"persistentVolumeClaim": {"claimName": "a"}}}],
            },
        }
    ),
    "SlurmJobStatus": SlurmJobStatus(),
}
"""Values of parameters by their types."""


@dataclass(frozen=True)
class Function:
    """A function that is given objects of Slurm."""

    module: str
    name: str
    parameters: tuple[tuple[str, str], ...]
    """Name and type of each."""
    is_method: bool

    @property
    def id(self) -> str:
        return f"{self.module.removeprefix('slinky_operator.')}.{self.name}"

    @property
    def models(self) -> set[str]:
        return {model for _, kind in self.parameters for model in models_in(kind)}


def models_in(annotation: str) -> set[str]:
    """Models that are named in a type."""
    return {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)} & PLAIN.keys()


def functions_of(module: str, source: str) -> Iterator[Function]:
    tree = ast.parse(source)
    models = imported(tree)
    outer = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            given = [(one.arg, one.annotation) for one in arguments if one.annotation]
            named = [node.id for _, kind in given for node in ast.walk(kind) if isinstance(node, ast.Name)]
            if models.keys() & named:
                kinds = tuple((name, ast.unparse(Renamed(models).visit(kind))) for name, kind in given)
                yield Function(module, node.name, kinds, id(node) not in outer)


def imported(tree: ast.Module) -> dict[str, str]:
    """The models that a module imports, by the names that they have there."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("slurm_client.models")
        for alias in node.names
        if alias.name in PLAIN
    }


def names_for_types(source: str) -> list[str]:
    """Names that a module gives to types with objects of Slurm: functions with such a parameter would not be found."""
    tree = ast.parse(source)
    models = imported(tree)
    given = [(node, node.value) for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    return [
        ast.unparse(node)
        for node, value in given
        if isinstance(value, (ast.Name, ast.Subscript, ast.BinOp))
        and models.keys() & {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
    ]


class Renamed(ast.NodeTransformer):
    """A type with the models' own names, where a module imports them under others."""

    def __init__(self, models: Mapping[str, str]) -> None:
        self._models = models

    @override
    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._models.get(node.id, node.id))


def functions() -> Iterator[Function]:
    for path in sorted((PROJECT / "slinky_operator").rglob("*.py")):
        module = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        source = path.read_text("utf-8")
        # What imports no model is not parsed: this runs in each process that collects tests.
        if "slurm_client.models" in source:
            yield from functions_of(module, source)


FUNCTIONS: Final = {one.id: one for one in functions()}


class Unknown(Exception):
    """Nothing is known to give for a parameter."""


SIMPLE: Final = {
    "str": "a-0",
    "int": 1,
    "float": 1.0,
    "bool": True,
    "datetime": NOW,
    "timedelta": timedelta(minutes=1),
    "...": ...,
}


def value(kind: str, objects: Mapping[str, Any]) -> Any:
    """Something of a type."""
    if kind == "Member":
        return joined(a_pod(), objects["Node"], objects["Job"])
    known = {**GIVEN, **SIMPLE, "Reader": Reader(), **objects}
    if kind in known:
        return known[kind]
    tree = ast.parse(kind, mode="eval").body
    if isinstance(tree, ast.BinOp):
        filled = [one for one in map(ast.unparse, (tree.left, tree.right)) if models_in(one)]
        return value(filled[0], objects) if filled else None
    if isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name):
        inner = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        return collection(tree.value.id, [value(ast.unparse(one), objects) for one in inner])
    raise Unknown(kind)


def collection(name: str, inner: list[Any]) -> Any:
    """A collection of a type."""
    if name == "tuple":
        return tuple(inner) if inner[-1] is not ... else (inner[0],)
    if name in {"frozenset", "AbstractSet"}:
        return frozenset(inner)
    if name in {"Mapping", "dict"}:
        return {inner[0]: inner[1]}
    if name in {"Iterable", "Sequence", "Collection", "Container"}:
        return (inner[0],)
    raise Unknown(name)


def run(function: Function, objects: Mapping[str, Any]) -> None:
    called = getattr(importlib.import_module(function.module), function.name)
    called = getattr(called, "__wrapped__", called)
    found = called(**{name: value(kind, objects) for name, kind in function.parameters})
    if inspect.isgenerator(found):
        list(found)


def texts_read(function: Function, model: str) -> list[str]:
    """Fields of a model with texts that a function reads, alone or by what it calls."""
    read: set[str] = set()
    plain = PLAIN[model]

    def note(self: Any, name: str) -> Any:
        read.add(name)
        return object.__getattribute__(self, name)

    noting = type("Noting", (type(plain),), {"__getattribute__": note, "__slots__": ()})
    given = {one.name: getattr(plain, one.name) for one in fields(plain)}
    with suppress(ValueError):
        run(function, {**PLAIN, model: noting(**given)})
    return [name for name, _ in text_fields(type(plain)) if name in read]


def hostile(model: str, names: Collection[str], text: str) -> Any:
    """An object some of whose texts are hostile."""
    plain = PLAIN[model]
    changed = {name: (text,) * 9 if several else text for name, several in text_fields(type(plain)) if name in names}
    return replace(plain, **changed)


def for_one_text(cost: Cost, obj: Any) -> Cost:
    """The part of a cost that four texts of the longest kind have: readers may take time for each text, not more."""
    length = sum(len(repr(getattr(obj, part.name))) for part in fields(obj))
    share = max(1.0, length / (4 * LONGEST))
    return Cost(int(cost.lines / share), int(cost.peak / share), cost.seconds / share)


CALLED: Final = [one for one in FUNCTIONS.values() if one.id not in ELSEWHERE]
TEXTS: Final = texts(LONGEST)


def test_the_functions_are_found() -> None:
    assert ELSEWHERE.keys() - FUNCTIONS.keys() == set()
    assert [one.id for one in CALLED if one.is_method] == [], "say who tries the method"
    assert {
        "nodeset.slurm_nodes.drains.to_drain",
        "nodeset.disruption.victims.seconds_lost",
        "cluster.rollout.slurm_questions.used_by",
    } <= {one.id for one in CALLED}


def test_objects_of_slurm_have_their_own_names_in_types() -> None:
    sources = {path: path.read_text("utf-8") for path in (PROJECT / "slinky_operator").rglob("*.py")}
    found = {path: names_for_types(text) for path, text in sources.items() if "slurm_client.models" in text}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    ["Jobs: TypeAlias = Sequence[Job]", "Jobs = dict[str, Job]", "Found: TypeAlias = Job | None", "Record = Job"],
)
def test_a_name_for_a_type_is_found(line: str) -> None:
    assert names_for_types(f"from slurm_client.models import Job\n{line}\nNONE: Final[Job] = Job(id=0)\n") == [line]


@pytest.mark.parametrize("function", CALLED, ids=lambda function: function.id)
def test_no_text_of_an_object_costs_a_function_much(function: Function) -> None:
    costs: dict[str, Cost] = {}
    for model in function.models:
        every = [name for name, _ in text_fields(type(PLAIN[model]))]
        for names in (every, *([name] for name in texts_read(function, model))):
            for kind, text in TEXTS.items():
                objects = {**PLAIN, model: hostile(model, names, text)}
                with measured() as cost, suppress(ValueError):
                    run(function, objects)
                name = f"{model} {'all' if names is every else names[0]} {kind}"
                costs[name] = cost()
                # Where it does not matter, the length is not measured: that takes longer than most functions.
                if too_much({name: costs[name]}):
                    costs[name] = for_one_text(costs[name], objects[model])
    assert too_much(costs) == {}


def test_a_function_that_is_not_yet_known_is_found() -> None:
    source = (
        "from slurm_client.models import Job, Node as SlurmNode\n"
        "from elsewhere import Node\n"
        "def one(jobs: Mapping[str, tuple[Job, ...]]) -> None: ...\n"
        "def two(node: Node) -> None: ...\n"
        "def four(node: SlurmNode) -> None: ...\n"
        "class A:\n    async def three(self, job: Job | None) -> None: ...\n"
    )
    assert [(one.name, one.is_method) for one in functions_of("m", source)] == [
        ("one", False),
        ("four", False),
        ("three", True),
    ]
    with pytest.raises(Unknown):
        value("tuple[Secret, Job]", PLAIN)
