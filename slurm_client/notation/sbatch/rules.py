"""
What options mean together, as sbatch decides it after the last.

Its functions are ``_opt_verify``, ``validate_options_salloc_sbatch_srun`` and ``slurm_opt_create_job_desc`` of 24.11
and 26.05. Here is what excludes what, the numbers that follow from others, and the environment; TRES are in
:mod:`slurm_client.notation.sbatch.demands`.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from slurm_client.notation import hostlist
from slurm_client.notation.sbatch import demands

if TYPE_CHECKING:
    from slurm_client.notation.sbatch.draft import Draft

EXCLUSIVE = (
    ("--mem", "--mem-per-cpu", "--mem-per-gpu"),
    ("--exclusive", "--oversubscribe"),
    ("--core-spec", "--thread-spec"),
    ("--cpus-per-task", "--cpus-per-gpu"),
    ("--gpus-per-task", "--ntasks-per-gpu"),
    ("--gpus-per-socket", "--ntasks-per-gpu"),
    ("--ntasks-per-node", "--ntasks-per-gpu"),
    ("--tres-per-task", "--ntasks-per-gpu"),
    ("--gpus-per-task", "--ntasks-per-tres"),
    ("--gpus-per-socket", "--ntasks-per-tres"),
    ("--ntasks-per-node", "--ntasks-per-tres"),
    ("--tres-per-task", "--ntasks-per-tres"),
    *(
        ("--hint", other)
        for other in (
            "--ntasks-per-core",
            "--cores-per-socket",
            "--sockets-per-node",
            "--threads-per-core",
            "--extra-node-info",
        )
    ),
)
"""Options of which one at most may be given."""


def apply(draft: Draft) -> None:
    """Complete the fields of a draft after its last option; InvalidDirective for options that contradict each other."""
    _exclude(draft)
    _names(draft)
    demands.apply(draft)
    _numbers(draft)
    _environment(draft)


def _exclude(draft: Draft) -> None:
    for options in EXCLUSIVE:
        given = [option for option in options if option in draft.given]
        if len(given) > 1:
            line = draft.given[given[0]].line
            raise draft.given[given[1]].refused(f"excludes {given[0]}" + (f" (line {line})" if line else ""))
    begin, deadline = draft.fields.get("begin_time"), draft.fields.get("deadline")
    if begin is not None and deadline is not None and deadline < begin:
        raise draft.given["--deadline"].refused("is before --begin")


def _names(draft: Draft) -> None:
    """Write out lists of nodes: once, since each may stand for tens of thousands."""
    for option, name in (("--nodelist", "required_nodes"), ("--exclude", "excluded_nodes")):
        if option in draft.raw:
            draft.set(name, tuple(dict.fromkeys(hostlist.expand(draft.raw[option]))), draft.given[option])


_LAYOUT = ("sockets_per_node", "cores_per_socket", "threads_per_core")


def _numbers(draft: Draft) -> None:
    """Numbers of nodes, tasks and CPUs that follow from others."""
    fields = draft.fields
    least, most, listed = draft.raw.get("--nodes", (1, 0, ""))
    source = draft.given.get("--nodes")
    if source is None and "--nodelist" in draft.given and not any("{" in each for each in fields["required_nodes"]):
        source, least, most = draft.given["--nodelist"], len(fields["required_nodes"]), 0
    one_size = most in {0, least}
    implied = _implied_tasks(draft, least) if one_size else 1
    tasks = fields.get("tasks")
    if "--nodes" in draft.given and tasks is not None:
        most = min(most, tasks)
        least = min(least, tasks)
    _nodes(draft, least, most, listed)
    estimated = tasks or implied
    if fields.get("tasks_per_node") is not None and "tasks" not in fields and one_size:
        estimated = least * fields["tasks_per_node"]
    if tasks is None and (counted := _counted_tasks(draft)) is not None:
        estimated = counted
    _tasks_of_gpus(draft, one_size=one_size)
    _cpus(draft, estimated, least)
    per_core, threads = fields.get("tasks_per_core"), fields.get("threads_per_core")
    if per_core is not None and threads is not None and threads < per_core:
        raise draft.sources["tasks_per_core"].refused(f"is more tasks than threads of each core ({threads})")
    segment, size = fields.get("segment_size"), (most if listed else least) if source else 0
    if segment and size > segment and size % segment:
        raise draft.given["--segment"].refused(f"does not divide the {size} nodes of the job")
    if fields.get("hold") and "priority" in fields:
        draft.idle[draft.sources["priority"]] = "a job that is held has no priority"
        draft.unset("priority")


def _implied_tasks(draft: Draft, nodes: int) -> int:
    """Return the number of tasks where none is said: one for each node, or for each part of the layout of a node."""
    source = draft.given.get("--nodes") or draft.given.get("--nodelist") or draft.given.get("--extra-node-info")
    if source is None or "tasks" in draft.fields or "tasks_per_node" in draft.fields:
        return 1
    parts = [draft.fields[name] for name in _LAYOUT if name in draft.fields and "--hint" not in draft.given]
    implied = math.prod([max(nodes, 1), *parts])
    if parts:
        draft.set("tasks", implied, draft.given.get("--extra-node-info") or source)
    return implied


def _counted_tasks(draft: Draft) -> int | None:
    """Return the number of tasks where GPUs or the nodes of an arbitrary distribution are counted."""
    found, source = None, draft.sources.get("tasks_per_gpu")
    if source is not None and "--gpus" in draft.given:
        found = draft.raw["GPUs"] * draft.fields["tasks_per_gpu"]
    elif _is_arbitrary(draft.fields.get("distribution", "")) and "required_nodes" in draft.fields:
        found, source = len(draft.fields["required_nodes"]), draft.sources["required_nodes"]
    if found is not None and source is not None and "tasks" not in draft.fields:
        draft.set("tasks", found, source)
    return found


def _is_arbitrary(distribution: str) -> bool:
    return distribution.lower().partition(",")[0] in {"arbitrary", "hostfile"}


def _tasks_of_gpus(draft: Draft, *, one_size: bool) -> None:
    """Tasks and GPUs, of which one number follows from the other."""
    fields = draft.fields
    if (tasks := demands.tasks_of_gpus(draft)) is not None:
        if fields.get("tasks", tasks) != tasks:
            raise draft.given["--gpus"].refused(
                f"is for {tasks} tasks by the GPUs of each, and not for {fields['tasks']}"
            )
        draft.set("tasks", tasks, draft.sources["tres_per_task"])
    by_nodes = "--nodes" in draft.given and one_size
    source = draft.sources.get("tasks_per_gpu")
    if source is not None:
        gpus = {"--gpus", "--gpus-per-node"} & set(draft.given) or "gres/gpu" in fields.get("tres_per_node", "")
        if not (gpus or by_nodes or "tasks" in fields or "--extra-node-info" in draft.given):
            raise source.refused("needs a number of GPUs, of tasks or of nodes")
        draft.flag("EXACT_TASK_COUNT_REQUESTED", source)
    elif "gres/" in fields.get("tres_per_task", "") and by_nodes and "cpus_per_task" not in fields:
        draft.flag("EXACT_TASK_COUNT_REQUESTED", draft.sources["tres_per_task"])


def _nodes(draft: Draft, least: int, most: int, listed: str) -> None:
    """Say how many nodes, exactly where that is known."""
    tasks, per_node = draft.fields.get("tasks"), draft.fields.get("tasks_per_node")
    source = draft.given.get("--nodes") or draft.given.get("--nodelist")
    if source and most:
        draft.set("nodes", listed or (str(least) if least == most else f"{least}-{most}"), source)
    elif source and "{" not in "".join(draft.fields.get("required_nodes", ())):
        draft.set("minimum_nodes", least, source)
    elif tasks is not None and per_node is not None:
        draft.set("minimum_nodes", -(-tasks // per_node), draft.given["--ntasks-per-node"])


def _cpus(draft: Draft, tasks: int, nodes: int) -> None:
    fields = draft.fields
    per_task = fields.get("cpus_per_task")
    asked = [draft.given[option] for option in _ASK_FOR_CPUS if option in draft.given]
    if asked:
        wanted = max(nodes, 1) if fields.get("overcommit") else tasks * (per_task or 1)
        draft.set("minimum_cpus", wanted, asked[0])
    if per_task is not None and per_task > fields.get("minimum_cpus_per_node", 0):
        draft.set("minimum_cpus_per_node", per_task, draft.sources["cpus_per_task"])
    # Slurm tells apart what was asked for and what follows from something else.
    if "tasks" in fields:
        draft.flag("EXACT_TASK_COUNT_REQUESTED", draft.sources["tasks"])
    if per_task is not None:
        draft.flag("EXACT_CPU_COUNT_REQUESTED", draft.sources["cpus_per_task"])


_ASK_FOR_CPUS = (
    "--cpus-per-task", "--tres-per-task", "--overcommit", "--ntasks", "--ntasks-per-node", "--nodes", "--nodelist",
    "--extra-node-info", "--ntasks-per-gpu", "--ntasks-per-tres",
)  # fmt: skip


_VARIABLES = {
    "cpus_per_task": ("SLURM_CPUS_PER_TASK",),
    "tasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "tasks_per_core": ("SLURM_NTASKS_PER_CORE",),
    "tasks_per_node": ("SLURM_NTASKS_PER_NODE",),
    "tasks_per_socket": ("SLURM_NTASKS_PER_SOCKET",),
    "threads_per_core": ("SLURM_THREADS_PER_CORE",),
    "dependency": ("SLURM_JOB_DEPENDENCY",),
    "container": ("SLURM_CONTAINER",),
    "container_id": ("SLURM_CONTAINER_ID",),
    "container_type": ("SLURM_CONTAINER_TYPE",),
}
"""What sbatch tells ``srun`` in the script by variables, beside what slurmctld and slurmd do."""


def _environment(draft: Draft) -> None:
    for name, variables in _VARIABLES.items():
        if name in draft.fields:
            for variable in variables:
                draft.variable(variable, draft.fields[name], draft.sources[name])
    for option, variable in (
        ("--ntasks-per-gpu", "SLURM_NTASKS_PER_GPU"),
        ("--ntasks-per-tres", "SLURM_NTASKS_PER_TRES"),
    ):
        if option in draft.given:
            draft.variable(variable, draft.raw[option], draft.given[option])
            break
    sources = [source for _, source in draft.variables.values()]
    if draft.exported is not None:
        sources.insert(0, draft.exported[0])
    if sources:
        exported = {} if draft.exported is None else draft.exported[1]
        set_for_srun = {name: value for name, (value, _) in draft.variables.items()}
        draft.set("environment", dict(itertools.chain(exported.items(), set_for_srun.items())), sources[0])
