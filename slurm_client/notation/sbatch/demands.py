"""
What a job wants of GPUs and other TRES, put together from all options about them, as sbatch does it.

``--gpus=2`` are TRES of the job, ``--gpus-per-task=1`` are TRES of a task and bind each task to its GPU.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurm_client.notation.sbatch import values

if TYPE_CHECKING:
    from slurm_client.notation.sbatch.draft import Draft
    from slurm_client.notation.sbatch.options import Directive


def apply(draft: Draft) -> None:
    """Write the fields of TRES; InvalidDirective for options that contradict each other."""
    _per_gpu(draft)
    _per_task(draft)
    _resources(draft)


def _per_gpu(draft: Draft) -> None:
    """Counts for each GPU are written as those for a TRES."""
    if "--cpus-per-gpu" in draft.given:
        source = draft.given["--cpus-per-gpu"]
        draft.set("cpus_per_tres", f"gres/gpu:{draft.raw['--cpus-per-gpu']}", source)
    if "--mem-per-gpu" in draft.given:
        draft.set("memory_per_tres", f"gres/gpu:{draft.raw['--mem-per-gpu']}", draft.given["--mem-per-gpu"])
    tres, gpu = draft.raw.get("--ntasks-per-tres"), draft.raw.get("--ntasks-per-gpu")
    if tres is not None and gpu is not None and tres != gpu:
        raise draft.given["--ntasks-per-gpu"].refused(f"is {gpu}, and --ntasks-per-tres is {tres}")
    for option in ("--ntasks-per-gpu", "--ntasks-per-tres"):
        if option in draft.given:
            draft.set("tasks_per_gpu", draft.raw[option], draft.given[option])


_MOST = 256
"""Most kinds of resources in one option; GPUs of each task are put in order, and bound, one by one."""


def _listed(draft: Draft, option: str) -> list[str]:
    """Return what an option lists."""
    words: list[str] = draft.raw[option].split(",") if option in draft.raw else []
    if len(words) > _MOST:
        raise draft.given[option].refused(f"lists more than {_MOST} resources")
    return words


_NOT_PER_TASK = ("mem", "energy", "node", "billing", "fs", "vmem", "pages", "bb")


def _per_task(draft: Draft) -> None:
    """TRES of a task: those listed, GPUs and CPUs of options of their own; and how they are bound."""
    listed = _listed_of_a_task(draft)
    source = (
        draft.given.get("--cpus-per-task") or draft.given.get("--gpus-per-task") or draft.given.get("--tres-per-task")
    )
    if not listed or source is None:
        return
    cpu = next((word for word in listed if re.match("cpu[=:]", word)), None)
    if cpu is not None:
        if "--cpus-per-gpu" in draft.given:
            raise source.refused("excludes --cpus-per-gpu")
        source_of_cpus = draft.given.get("--cpus-per-task") or draft.given["--tres-per-task"]
        draft.set("cpus_per_task", _count(source_of_cpus, cpu[4:]), source_of_cpus)
    draft.set("tres_per_task", ",".join(listed), source)
    _bind(draft, listed, source)


def _listed_of_a_task(draft: Draft) -> list[str]:
    """Return the TRES of a task in sbatch's order."""
    listed = [_tres(word) for word in _listed(draft, "--tres-per-task") if word]
    source = draft.given.get("--tres-per-task")
    for word in listed:
        assert source is not None  # noqa: S101 - for the type checker
        wrong = next((kind for kind in _NOT_PER_TASK if word.lower().startswith(kind)), None)
        if wrong is not None:
            raise source.refused(f"{wrong} is no resource of a task")
    if "--gpus-per-task" in draft.given:
        source = draft.given["--gpus-per-task"]
        if any(word.startswith("gres/gpu") for word in listed):
            raise source.refused("contradicts the gres/gpu of --tres-per-task")
        for word in _listed(draft, "--gpus-per-task"):
            listed.insert(0, _gpus_of_a_task(source, word))
    if "--cpus-per-task" in draft.given:
        source = draft.given["--cpus-per-task"]
        if any(word.startswith("cpu") for word in listed):
            raise source.refused("contradicts the cpu of --tres-per-task")
        listed.insert(0, f"cpu={draft.fields['cpus_per_task']}")
    return listed


def _tres(word: str) -> str:
    return re.sub("^(gres|license):", r"\1/", word.strip())


def _gpus_of_a_task(source: Directive, word: str) -> str:
    kind, _, number = word.replace("=", ":").rpartition(":")
    return f"gres/gpu{f':{kind}' if kind else ''}={_count(source, number)}"


def _count(source: Directive, text: str) -> int:
    try:
        return values.integer(text)
    except ValueError as error:
        raise source.refused(str(error)) from None


def _bind(draft: Draft, listed: list[str], source: Directive) -> None:
    """Bind each task to its generic resources, where the script does not say how."""
    bound = draft.fields.get("tres_bind", "")
    words = [bound] if bound else []
    gpus = 0
    for word in listed:
        match = re.fullmatch(r"gres/([^:=]+)(?::([^:=]*[^0-9:=][^:=]*))?(?:[:=]([0-9]+))?", word)
        if match is None or match[1] in bound:
            continue
        if match[1] == "gpu":
            gpus += int(match[3] or 1)
        else:
            words.append(f"gres/{match[1]}:per_task:{match[3] or 1}")
    if gpus:
        words.append(f"gres/gpu:per_task:{gpus}")
    if len(words) > bool(bound):
        draft.set("tres_bind", "+".join(words), source)


_GPUS = re.compile(r"gres/gpu(?::([^:=]*[^0-9:=][^:=]*))?(?:[:=]([0-9]{1,9}))?")


def tasks_of_gpus(draft: Draft) -> int | None:
    """Return the number of tasks that share the GPUs of the job, where each task has a number of the same kind."""
    of_task, of_job = (_gpus(draft.fields.get(name, "")) for name in ("tres_per_task", "tres_per_job"))
    if len(of_task) != 1 or of_task.keys() != of_job.keys():
        return None
    ((kind, each),) = of_task.items()
    tasks, rest = divmod(of_job[kind], max(each, 1))
    if rest:
        raise draft.given["--gpus"].refused(f"is no multiple of the {each} GPUs of each task")
    return tasks


def _gpus(listed: str) -> dict[str, int]:
    """Return the GPUs in a list by their kind; of two of the same kind, the last."""
    matches = [_GPUS.fullmatch(word) for word in listed.split(",")]
    return {match[1] or "": int(match[2] or 1) for match in matches if match}


def _resources(draft: Draft) -> None:
    """GRES of a node, GPUs of the job, of its nodes and sockets, licenses."""
    gres = draft.raw.get("--gres", "")
    if gres.lower() in {"help", "list"}:
        raise draft.given["--gres"].refused("prints a list and submits nothing")
    if gres.lower() == "none":
        gres = ""
        draft.idle[draft.given["--gres"]] = "a job has no generic resources that it does not ask for"
    words = [word if word.startswith("gres/") else f"gres/{word}" for word in gres.split(",")] if gres else []
    if "--gpus-per-node" in draft.given and any("gres/gpu" in word for word in words):
        raise draft.given["--gpus-per-node"].refused("excludes --gres=gpu")
    for option, name, others in (
        ("--gpus-per-node", "tres_per_node", words),
        ("--gpus-per-socket", "tres_per_socket", []),
        ("--gpus", "tres_per_job", []),
    ):
        gpus = [f"gres/gpu:{word}" for word in _listed(draft, option) if word]
        if option in draft.given and not gpus:
            raise draft.given[option].refused("names no GPUs")
        if option == "--gpus" and gpus:
            draft.raw["GPUs"] = sum(_count(draft.given[option], word.rpartition(":")[2]) for word in gpus)
        if gpus or others:
            source = draft.given.get(option) or draft.given["--gres"]
            draft.set(name, ",".join([*gpus, *others]), source)
    if draft.raw.get("--resources"):
        licenses = [draft.fields["licenses"]] if "licenses" in draft.fields else []
        draft.set("licenses", ",".join([*licenses, draft.raw["--resources"]]), draft.given["--resources"])
