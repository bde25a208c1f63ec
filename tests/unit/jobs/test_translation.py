"""A spec becomes one submission: fields win over lines, conflicts are named, sbatch's rules hold for both."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.environment import LAUNCHERS
from slinky_operator.jobs.refusal import LONGEST, InvalidJob
from slinky_operator.jobs.task_sets import Array
from slinky_operator.jobs.translation import Submission, translate
from slurm_client import wire
from slurm_client.encode import jobs as encode
from slurm_client.encode.values import fitted
from slurm_client.models import INFINITE
from slurm_client.notation.sbatch.table import OPTIONS

NOW = datetime(2030, 3, 14, 15, 9, 26, tzinfo=UTC)


def script(*lines: str) -> str:
    return "\n".join(["#!/bin/sh", *(f"#SBATCH {line}" for line in lines), "hostname", ""])


def translated(*lines: str, **fields: Any) -> Submission:
    return translate(SlurmJobSpec(script=script(*lines), **fields), name="sample", now=NOW)


def refusal(*lines: str, **fields: Any) -> str:
    with pytest.raises(InvalidJob) as refused:
        translated(*lines, **fields)
    return str(refused.value)


FIELDS: list[tuple[str, object, dict[str, Any]]] = [
    ("partition", "night,day", {"partition": "night,day"}),
    ("account", "physics", {"account": "physics"}),
    ("qos", "high", {"qos": "high"}),
    ("nodes", 2, {"nodes": "2"}),
    ("nodes", "2-4", {"nodes": "2-4"}),
    ("nodes", "1,2,4", {"nodes": "1,2,4"}),
    ("tasks", 4, {"tasks": 4}),
    ("cpusPerTask", 2, {"cpus_per_task": 2, "tres_per_task": "cpu=2"}),
    ("memory", 4096, {"memory_per_node_mib": 4096}),
    ("memory", "4G", {"memory_per_node_mib": 4096}),
    ("memory", "4Gi", {"memory_per_node_mib": 4096}),
    ("memory", "512Mi", {"memory_per_node_mib": 512}),
    ("memory", "0", {"memory_per_node_mib": 0}),
    ("gres", "gpu:2,shard:1", {"tres_per_node": "gres/gpu:2,gres/shard:1"}),
    ("time", 30, {"time_limit": timedelta(minutes=30)}),
    ("time", "1:30:00", {"time_limit": timedelta(minutes=90)}),
    ("time", "2-12", {"time_limit": timedelta(hours=60)}),
    ("time", "UNLIMITED", {"time_limit": INFINITE}),
    ("features", "a100&[rack1|rack2]", {"constraints": "a100&[rack1|rack2]"}),
    ("array", "0-9%2", {"array": "0-9%2"}),
    ("workingDirectory", "/home/me", {"working_directory": "/home/me"}),
    ("output", "out-%j", {"standard_output": "out-%j"}),
    ("error", "/dev/null", {"standard_error": "/dev/null"}),
    ("requeue", True, {"requeue": True}),
    ("requeue", False, {"requeue": False}),
]


@pytest.mark.parametrize(("field", "value", "wanted"), FIELDS)
def test_a_field_becomes_what_its_option_becomes(field: str, value: object, wanted: dict[str, Any]) -> None:
    job = translated(**{field: value}).job
    assert {name: getattr(job, name) for name in wanted} == wanted
    plain = dataclasses.asdict(translated().job)
    left_out = {"flags", "environment", "minimum_cpus", "minimum_cpus_per_node"}
    differing = {name for name, found in dataclasses.asdict(job).items() if found != plain[name]}
    assert differing - left_out == set(wanted)


def test_every_field_of_the_spec_has_an_example_above_or_a_test_of_its_own() -> None:
    shown = {field for field, _, _ in FIELDS}
    own = {"script", "command", "args", "env", "parameters"}
    assert shown | own == {field.alias for field in SlurmJobSpec.model_fields.values()}


@pytest.mark.parametrize(
    ("line", "fields", "conflict"),
    [
        ("--mem=1G", {"memory": "4G"}, "spec.memory wins over --mem=1G in line 2 of the script"),
        ("--mem-per-cpu=1G", {"memory": "4G"}, "spec.memory wins over --mem-per-cpu=1G in line 2 of the script"),
        ("-N3", {"nodes": 2}, "spec.nodes wins over --nodes=3 in line 2 of the script"),
        ("--no-requeue", {"requeue": True}, "spec.requeue wins over --no-requeue in line 2 of the script"),
        ("-p day", {"partition": "night"}, "spec.partition wins over --partition=day in line 2 of the script"),
        ("--nice=5", {"parameters": {"nice": 7}}, "spec.parameters.nice wins over --nice=5 in line 2 of the script"),
        (
            "-s",
            {"parameters": {"shared": ["user"]}},
            "spec.parameters.shared wins over --oversubscribe in line 2 of the script",
        ),
        (
            "--contiguous",
            {"parameters": {"contiguous": False}},
            "spec.parameters.contiguous wins over --contiguous in line 2 of the script",
        ),
    ],
)
def test_a_field_wins_over_a_line_and_says_so(line: str, fields: dict[str, Any], conflict: str) -> None:
    found = translated(line, **fields)
    assert [str(each) for each in found.conflicts] == [conflict]
    assert found.job == dataclasses.replace(translated(**fields).job, script=found.job.script)


def test_what_says_the_same_is_no_conflict() -> None:
    assert translated("--mem=4G -N2 --requeue", memory="4Gi", nodes=2, requeue=True).conflicts == ()
    assert len(translated("--mem=4G", "--mem=5G", memory="4G").conflicts) == 1
    assert translated("--mem=5G", "--mem=4G", memory="4G").conflicts == ()


def test_a_line_that_loses_must_be_right_all_the_same() -> None:
    assert refusal("--mem=1X", memory="4G").startswith("spec.script: line 2: --mem: '1X' is no size")


def test_fields_follow_the_rules_for_options_together_with_the_lines() -> None:
    job = translated("-n2", nodes=4).job
    assert (job.nodes, job.tasks) == ("2", 2)
    assert (job.environment or {})["SLURM_NTASKS"] == "2"


@pytest.mark.parametrize(
    ("lines", "fields", "said"),
    [
        ([], {"memory": "much"}, "spec.memory: 'much' is no size such as 4096 (MiB) or 4G"),
        ([], {"memory": "1.5Gi"}, "spec.memory: '1.5Gi' is no size such as 4096 (MiB) or 4G"),
        ([], {"nodes": "4-2"}, "spec.nodes: at most 2 nodes are less than at least 4"),
        ([], {"nodes": 0}, "spec.nodes: a job without nodes cannot be asked for here"),
        ([], {"time": "soon"}, "spec.time: 'soon' is no length of time such as 30 (minutes), 1:30:00 or 2-12"),
        ([], {"workingDirectory": "work"}, "spec.workingDirectory: 'work' would begin where sbatch runs"),
        (
            [],
            {"memory": "4G", "parameters": {"memory_per_cpu": 5}},
            "spec.parameters.memory_per_cpu: excludes spec.memory",
        ),
        (["--gpus-per-node=1"], {"gres": "gpu:1"}, "spec.script: line 2: --gpus-per-node: excludes spec.gres=gpu"),
        (["--bogus"], {}, "spec.script: line 2: --bogus: sbatch has no such option"),
        (["-J x", "hetjob", "-N2"], {}, "spec.script: the script is a heterogeneous job of 2 components"),
        (["--uid=root"], {}, "spec.script: line 2: --uid: a job belongs to the user that the Cluster's administrator"),
        (["-M other"], {}, "spec.script: line 2: --clusters: a job is for the Cluster of its object"),
        (["--extra=x"], {}, "spec.script: line 2: --extra: the operator marks there which object a job belongs to"),
        (["--propagate"], {}, "spec.script: line 2: --propagate: limits of the shell that submits"),
    ],
)
def test_what_is_wrong_is_said_of_its_field_or_line(lines: list[str], fields: dict[str, Any], said: str) -> None:
    assert refusal(*lines, **fields).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n", "spec.script: the script is empty"),
        ("echo hello\n", "spec.script: the first line of a script must be #!"),
        ("#!/bin/sh\r\n#SBATCH -N1\r\n", "spec.script: the lines of the script end in CR LF"),
        ("#!/bin/sh\0", "spec.script: the script has a NUL character"),
    ],
)
def test_what_is_no_script_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        translate(SlurmJobSpec(script=text), name="sample")
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("text", ["#!/usr/bin/env python3\n#SBATCH -N2\nimport os\n", "#!/bin/bash\n\n#SBATCH -N2\n"])
def test_lines_count_whatever_interpreter_runs_the_script(text: str) -> None:
    job = translate(SlurmJobSpec(script=text), name="sample").job
    assert (job.nodes, job.script) == ("2", text)


def test_a_command_is_a_script_in_which_no_shell_reads_anything() -> None:
    spec = SlurmJobSpec(command=("/bin/echo", "-n"), args=("a b", "$HOME", "it's", "\n#SBATCH --uid=0\n"), tasks=2)
    job = translate(spec, name="sample").job
    assert job.script == ("#!/bin/sh\nexec /bin/echo -n 'a b' '$HOME' 'it'\"'\"'s' '\n#SBATCH --uid=0\n'\n")
    assert (job.arguments, job.tasks) == (None, 2)


def test_a_script_gets_its_arguments() -> None:
    assert translated(args=("a b", "$c")).job.arguments == ("sample", "a b", "$c")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "spec.script: is required, unless spec.command is set"),
        ({"args": ("x",)}, "spec.args: requires spec.command or spec.script"),
        ({"script": "#!/bin/sh\n", "command": ("true",)}, "spec.command: cannot be set together with spec.script"),
        ({"command": ("",)}, "spec.command[0]: must be the name or the path of a program"),
        ({"command": ("-c", "true")}, "spec.command[0]: must be the name or the path of a program"),
        ({"command": ("true",), "args": ("x" * 32_768,) * 200}, "spec.script: the script has more than 4194304 bytes"),
    ],
)
def test_what_cannot_be_run_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        translate(SlurmJobSpec(**fields), name="sample")
    assert str(refused.value) == said


def test_the_name_is_that_of_the_object_unless_the_script_has_one() -> None:
    assert translated().job.name == "sample"
    assert translated("-J mine").job.name == "mine"
    assert translated(parameters={"name": "other"}).job.name == "other"


def test_a_mark_tells_whose_job_it_is() -> None:
    spec = SlurmJobSpec(command=("true",))
    assert translate(spec, name="x", mark="slinky.slurm.net/uid=1").job.extra == "slinky.slurm.net/uid=1"
    assert translate(spec, name="x").job.extra is None


def variables(*lines: str, user: str = "", **fields: Any) -> dict[str, str]:
    job = translate(SlurmJobSpec(script=script(*lines), **fields), name="sample", user=user).job
    return {name: value for name, value in (job.environment or {}).items() if LAUNCHERS.get(name) != value}


def test_the_environment_is_that_of_sbatch_and_the_users_own() -> None:
    env = [{"name": "GREETING", "value": "a\nb $c"}, {"name": "EMPTY"}]
    assert variables("-n2", user="alice", env=env, workingDirectory="/home/alice") == {
        "USER": "alice",
        "LOGNAME": "alice",
        "SLURM_SUBMIT_DIR": "/home/alice",
        "SLURM_NTASKS": "2",
        "SLURM_NPROCS": "2",
        "GREETING": "a\nb $c",
        "EMPTY": "",
    }
    assert variables() == {"SLURM_SUBMIT_DIR": "/tmp"}
    assert translated().job.environment == {"SLURM_SUBMIT_DIR": "/tmp", **LAUNCHERS}


def test_export_takes_variables_of_the_spec_and_loses_against_them() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert variables("--export=A", user="alice", env=env) == {
        "A": "1", "B": "2", "SLURM_EXPORT_ENV": "A", "SLURM_GET_USER_ENV": "1", "SLURM_SUBMIT_DIR": "/tmp",
    }  # fmt: skip
    found = translated("--export=A=other,C=3", env=env)
    assert (found.job.environment or {}).items() >= {"A": "1", "B": "2", "C": "3"}.items()
    assert [str(each) for each in found.conflicts] == ["spec.env[A] wins over --export=A=other in line 2 of the script"]
    assert variables("--export=NIL", user="alice") == {"SLURM_SUBMIT_DIR": "/tmp"}
    assert variables("--export=ALL", user="alice")["USER"] == "alice"


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ([{"name": "A"}, {"name": "A"}], "spec.env[1].name: A is set twice"),
        (
            [{"name": "SLURM_NTASKS", "value": "9"}],
            "spec.env[SLURM_NTASKS]: follows from the job's options, and is '2'",
        ),
        ([{"name": f"A{index}", "value": "x" * 30_000} for index in range(9)], "spec.env: has 2"),
    ],
)
def test_variables_that_cannot_be_are_refused(env: list[dict[str, str]], said: str) -> None:
    assert refusal("-n2", env=env).startswith(said)


def test_what_changes_nothing_is_listed() -> None:
    assert translated("--parsable", "-H --priority=5", parameters={"mail_user": "me"}).without_effect == (
        "--parsable in line 2 of the script: is about the command sbatch, which does not run here",
        "--priority in line 3 of the script: a job that is held has no priority",
    )


def test_a_message_has_a_bound() -> None:
    assert len(refusal("--bogus" + "x" * 60_000)) < LONGEST + 100
    assert len(refusal("-J x", parameters={"x" * 10_000: 1})) < LONGEST + 100


@pytest.mark.parametrize("parser", wire.PARSERS)
def test_all_data_parsers_have_what_typed_fields_ask_for(parser: str) -> None:
    job = translated(
        partition="p", account="a", qos="q", nodes="1-2", tasks=4, cpusPerTask=2, memory="4Gi", gres="gpu:1", time=5,
        features="f", array="0-1", env=[{"name": "A"}], workingDirectory="/tmp", output="o", error="e", requeue=False,
        args=("x",),
    ).job  # fmt: skip
    body = encode.submission(job)
    assert fitted(parser, "JobDescMsg", body["job"]) == body["job"]


words = st.one_of(st.text(max_size=12), st.sampled_from(["1", "2-4", "4Gi", "gpu:2", "none", "1:30", "a&b", "--mem=1"]))
specs = st.fixed_dictionaries(
    {},
    optional={
        "script": st.one_of(
            st.text(max_size=60),
            st.lists(
                st.one_of(words, st.sampled_from(sorted(f"--{name}=1" for name in OPTIONS))), max_size=4
            ).map(lambda lines: script(*lines)),
        ),
        "command": st.lists(st.text(max_size=8), max_size=3),
        "args": st.lists(st.text(max_size=8), max_size=3),
        "env": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("ABC"), "value": st.text(max_size=5)}), max_size=2
        ),
        "tasks": st.integers(-1, 5),
        "cpusPerTask": st.integers(-1, 5),
        "requeue": st.booleans(),
        "parameters": st.dictionaries(
            st.one_of(st.text(max_size=5), st.sampled_from(sorted(wire.fields("v0.0.45", "JobDescMsg")))),
            st.recursive(
                st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), words),
                lambda inner: st.one_of(
                    st.lists(inner, max_size=3),
                    st.dictionaries(st.sampled_from(["set", "infinite", "number", "x"]), inner, max_size=3),
                ),
                max_leaves=4,
            ),
            max_size=3,
        ),
        **dict.fromkeys(
            (
                "partition", "account", "qos", "nodes", "memory", "gres", "time", "features", "array",
                "workingDirectory", "output", "error",
            ),
            words,
        ),
    },
)  # fmt: skip


@given(specs)
def test_any_spec_is_a_job_that_can_be_written_or_refused_with_its_field(fields: dict[str, Any]) -> None:
    try:
        spec = SlurmJobSpec(**fields)
    except ValueError:
        return
    found = outcome(spec)
    if isinstance(found, InvalidJob):
        assert found.field.startswith("spec.")
        assert found.reason
        return
    body = encode.submission(found.job)
    assert body["script"]
    assert all("\n" not in text for text in _texts(body["job"]))


def outcome(spec: SlurmJobSpec) -> Submission | InvalidJob:
    try:
        return translate(spec, name="sample", user="alice", now=NOW)
    except InvalidJob as refused:
        return refused


def _texts(body: Any) -> list[str]:
    """All texts that are neither variables nor arguments, which may have lines."""
    return [value for key, value in body.items() if isinstance(value, str) and key not in {"environment", "argv"}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0-999999999:2,0-999999999:2", "indices ascend to 4000000"),
        ("4000001", "indices ascend to 4000000"),
        ("0-4000000,0-4000000", "more than 4000001 tasks"),
        ("3-1", "is no range of tasks"),
        ("x", "is no range of tasks"),
    ],
)
def test_an_array_that_no_slurm_takes_is_refused_where_it_is_written(text: str, words: str) -> None:
    assert re.search(f"spec.array: .*{words}", refusal(array=text))
    assert re.search(f"spec.script: line 3: --array: .*{words}", refusal("--array=1", f"--array={text}"))


def test_the_tasks_of_an_array_are_counted_once_with_the_translation() -> None:
    found = translated(array="0-4000000:2,1-3%7").array
    assert found is not None
    assert (found.count, found.tasks.first, 2 in found.tasks, 5 in found.tasks) == (2_000_003, 0, True, False)
    assert (translated().array, translated("--array=1,,2,").array) == (None, Array.read("1,2"))
