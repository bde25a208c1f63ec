"""One small Cluster for each option of the configuration, and the resulting files.

``python -m tests.unit.slurm.conf.goldens`` regenerates them; the diff then shows what has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, Parsed, Rendered, TextSource, render

FOLDER: Final = Path(__file__).with_name("golden")

PROLOG: Final = "#!/bin/sh\necho prolog\n"


@dataclass(frozen=True)
class Case:
    spec: Mapping[str, Any] = field(default_factory=dict)
    node_sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    before: Case | None = None
    """What runs, where that matters."""

    kept: tuple[str, ...] = ()
    """Partitions of what runs that are in use."""

    def cluster(self) -> Cluster:
        return Cluster.model_validate(
            {"metadata": {"name": "slurm", "namespace": "here", "uid": "u"}, "spec": self.spec}
        )

    def inputs(self, sources: Mapping[str, TextSource] | None = None) -> ConfInputs:
        node_sets = [
            NodeSet.model_validate(
                {"metadata": {"name": name, "namespace": "here"}, "spec": {"clusterName": "slurm", **spec}}
            )
            for name, spec in self.node_sets.items()
        ]
        if sources is None:
            sources = {name: TextSource(name, exists=True, texts=texts) for name, texts in self.texts.items()}
        inputs = ConfInputs.of(self.cluster(), map(NodeSetConf.of, node_sets), sources)
        found = self.running()
        lines = [found.partitions[name] for name in self.kept]
        named = {item for line in lines for item in line.nodes} & found.node_sets.keys()
        return replace(inputs, kept_partitions=tuple(lines), kept_node_sets=tuple(sorted(named)))

    def running(self) -> Parsed:
        return Parsed() if self.before is None else self.before.render().lines

    def render(self, states: Mapping[str, str] | None = None) -> Rendered:
        return render(replace(self.inputs(), states=states or {}), self.running())


CASES: Final[Mapping[str, Case]] = {
    "empty": Case(),
    "cluster-name": Case({"clusterName": "Alpha"}),
    "max-node-count": Case({"maxNodeCount": 12}),
    "metrics": Case({"metrics": {"enabled": True}}),
    "extra-conf": Case(
        {
            "extraConf": "# slower\nReturnToService=1 \\\n  KillWait = 5\n"
            'SlurmctldParameters=idle_on_node_suspend\nPrologFlags="Alloc,Contain"\n'
        }
    ),
    "node-sets": Case(
        node_sets={
            "plain": {},
            "gpu": {"gres": "gpu:a100:4,shard:8", "partition": {"config": "MaxTime=8:00:00 Default=YES"}},
            "hidden": {"partition": {"enabled": False}},
        }
    ),
    "partitions": Case(
        {
            "partitions": [
                {"name": "long", "nodeSets": ["plain", "later"], "config": "MaxTime=7-0"},
                {"name": "metal", "nodes": ["m[1-2]"], "nodeSets": ["ALL"], "config": "Default=YES State=DRAIN"},
            ],
            "nodes": [{"name": "m[1-2]", "config": "CPUs=4 RealMemory=1000"}],
        },
        {"plain": {"partition": {"config": "Default=NO"}}},
    ),
    "config-files": Case(
        {
            "configFiles": {
                "gres.conf": "AutoDetect=off\nInclude more.conf\n",
                "cgroup.conf": "CgroupPlugin=cgroup/v2\n",
                "notes.txt": "include what you like\n",
            },
            "configFileRefs": [{"name": "more"}],
        },
        texts={"more": {"more.conf": "Name=gpu Count=4\n"}},
    ),
    "containers": Case({"containers": {"mounts": ["/home", "/scratch"]}}),
    "topology-conf": Case({"configFiles": {"topology.conf": "SwitchName=s Nodes=plain-[0-3]\n"}}),
    "topology-block": Case({"configFiles": {"topology.conf": "BlockName=b Nodes=plain-[0-3]\nBlockSizes=4\n"}}),
    "topology-yaml": Case({"configFiles": {"topology.yaml": "- topology: t\n  cluster_default: true\n  flat: true\n"}}),
    "topology-of-the-users": Case(
        {"configFiles": {"topology.conf": "SwitchName=s Nodes=x\n"}, "extraConf": "TopologyPlugin=topology/flat"}
    ),
    "lua": Case({"configFiles": {"job_submit.lua": "return 0\n", "cli_filter.lua": "return 0\n"}}),
    "scripts": Case(
        {
            "prologScripts": {"20-b": PROLOG, "10-a": PROLOG},
            "prologScriptRefs": [{"name": "site"}],
            "epilogScripts": {"clean.sh": "#!/usr/bin/env -S python3 -I\n"},
            "prologSlurmctldScripts": {"log": PROLOG},
            "epilogSlurmctldScripts": {"log": PROLOG},
            "extraConf": "Prolog=/usr/lib/slurm/prolog TaskProlog=/opt/task",
        },
        texts={"site": {"15-site": PROLOG}},
    ),
    "kept-partitions": Case(
        {"partitions": [{"name": "new"}]},
        before=Case(
            {"partitions": [{"name": "old", "nodeSets": ["gone"], "config": "Default=YES MaxTime=60"}]}, {"gone": {}}
        ),
        kept=("old", "gone"),
    ),
    "refused-node-set": Case(
        node_sets={"a": {"partition": {"config": "MaxTime=60 nonsense"}}, "b": {"partition": {"config": "nonsense"}}},
        before=Case(node_sets={"a": {"partition": {"config": "MaxTime=30"}}}),
    ),
}


def text_of(rendered: Rendered) -> str:
    """All files in one text."""
    said = [f"# problem: {one}\n" for one in rendered.problems]
    said += [f"# refused: {one.node_set}: {one.problem}\n" for one in rendered.refused]
    parts = [f"### {name}\n{text}" for name, text in sorted(rendered.files.items())]
    return "".join((*said, *parts))


def write(names: Iterable[str] = CASES) -> None:
    """Write what is rendered now."""
    for name in names:
        (FOLDER / f"{name}.txt").write_text(text_of(CASES[name].render()))


if __name__ == "__main__":
    write()
