"""``#SBATCH`` lines: what becomes of each option. Real sbatch is asked in ``tests/integration/slurm_client``."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client.encode import jobs as encode
from slurm_client.errors import InvalidDirective
from slurm_client.models import INFINITE, JobSpec
from slurm_client.notation import hostlist, sbatch
from slurm_client.notation.sbatch.lines import LARGEST, LONGEST, MOST, MOST_COMPONENTS
from slurm_client.notation.sbatch.table import LETTERS, OPTIONS, SAME

NOW = datetime(2030, 3, 14, 15, 9, 26, tzinfo=UTC)


def script(*lines: str) -> str:
    return "\n".join(["#!/bin/sh", *(f"#SBATCH {line}" for line in lines), "hostname", ""])


def parsed(*lines: str, **options: Any) -> sbatch.Parsed:
    return sbatch.parse(script(*lines), now=NOW, **options)


def fields(*lines: str, **options: Any) -> dict[str, Any]:
    """What the lines have set, without what only Slurm's bookkeeping needs."""
    spec = parsed(*lines, **options).spec
    left_out = {"script", "flags", "environment", "minimum_cpus", "minimum_cpus_per_node"}
    found = {each.name: getattr(spec, each.name) for each in dataclasses.fields(spec)}
    return {name: value for name, value in found.items() if value is not None and name not in left_out}


def refusal(*lines: str, **options: Any) -> InvalidDirective:
    with pytest.raises(InvalidDirective) as caught:
        parsed(*lines, **options)
    return caught.value


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("-N2", {"nodes": "2"}),
        ("-N 2", {"nodes": "2"}),
        ("--nodes=1-3", {"nodes": "1-3"}),
        ("--nodes 2k", {"nodes": "2048"}),
        ("-N4 -n2", {"nodes": "2", "tasks": 2}),
        ("-N1-8 -n4", {"nodes": "1-4", "tasks": 4}),
        ("-N1,2,4", {"nodes": "1,2,4"}),
        ("-n4 --ntasks-per-node=2", {"tasks": 4, "tasks_per_node": 2, "minimum_nodes": 2}),
        ("--tasks-per-node=2", {"tasks_per_node": 2}),
        ("-N2 -B 1:2", {"nodes": "2", "tasks": 4, "sockets_per_node": 1, "cores_per_socket": 2}),
        ("-B *:2", {"tasks": 2, "cores_per_socket": 2}),
        ("-c2", {"cpus_per_task": 2, "tres_per_task": "cpu=2"}),
        ("--mem=4G", {"memory_per_node_mib": 4096}),
        ("--mem 100K", {"memory_per_node_mib": 1}),
        ("--mem=0", {"memory_per_node_mib": 0}),
        ("--mem-per-cpu=1gb", {"memory_per_cpu_mib": 1024}),
        ("--mem-per-gpu=2T", {"memory_per_tres": "gres/gpu:2097152"}),
        ("--tmp=5G", {"temporary_disk_mib": 5120}),
        ("-t 30", {"time_limit": timedelta(minutes=30)}),
        ("-t 1:30", {"time_limit": timedelta(minutes=2)}),
        ("-t 1:30:00", {"time_limit": timedelta(minutes=90)}),
        ("-t 2-12", {"time_limit": timedelta(days=2, hours=12)}),
        ("-t 2-12:30", {"time_limit": timedelta(days=2, hours=12, minutes=30)}),
        ("-t 1-00:00:30", {"time_limit": timedelta(days=1, minutes=1)}),
        ("--time=0", {"time_limit": INFINITE}),
        ("--time=unlimited", {"time_limit": INFINITE}),
        ("--time-min=10", {"time_minimum": timedelta(minutes=10)}),
        ("--job-name='a b'", {"name": "a b"}),
        (r"--job-name=a\ b", {"name": "a b"}),
        ('--comment="it\'s"', {"comment": "it's"}),
        (r'--comment="say \"x\""', {"comment": 'say "x"'}),
        ("--comment=a#b --mem=4", {"comment": "a"}),
        ("--comment='a#b' # c", {"comment": "a#b"}),
        ("--mem=4G # -N2", {"memory_per_node_mib": 4096}),
        ("--exclusive", {"shared": "none"}),
        ("--exclusive=user", {"shared": "user"}),
        ("-s", {"shared": "oversubscribe"}),
        ("-Hs", {"hold": True, "shared": "oversubscribe"}),
        ("-k", {"kill_on_node_fail": False}),
        ("-koff", {}),
        ("--requeue --no-requeue", {"requeue": False}),
        ("-w w-[0-1],w-0", {"required_nodes": ("w-0", "w-1"), "minimum_nodes": 2}),
        ("-x w-[0-1]", {"excluded_nodes": ("w-0", "w-1")}),
        ("--switches=2@10", {"switches": 2, "switch_wait": timedelta(minutes=10)}),
        ("--signal=USR1", {"warning_signal": "USR1", "warning_time": timedelta(minutes=1)}),
        (
            "--signal=B:sigterm@90",
            {"warning_signal": "TERM", "warning_time": timedelta(seconds=90), "warning_flags": ("BATCH_JOB",)},
        ),
        ("--nice", {"nice": 100}),
        ("--nice=-5", {"nice": -5}),
        ("--priority=TOP", {"priority": 4294967293}),
        ("--open-mode=append", {"open_mode": "APPEND"}),
        ("--mail-type=END,TIME_LIMIT_80 --mail-user=me", {"mail_type": ("END", "TIME=80%"), "mail_user": "me"}),
        ("--mail-type=NONE", {}),
        ("--begin=2031-01-20T12:34:00", {"begin_time": datetime(2031, 1, 20, 12, 34, tzinfo=UTC)}),
        ("--begin=now+2hours", {"begin_time": NOW + timedelta(hours=2)}),
        ("--deadline=uts1959999999", {"deadline": datetime.fromtimestamp(1959999999, UTC)}),
        ("--gres=gpu:1,gres/shard:2", {"tres_per_node": "gres/gpu:1,gres/shard:2"}),
        ("--gres=none", {}),
        ("--gpus=h100:2", {"tres_per_job": "gres/gpu:h100:2"}),
        ("--gpus-per-node=1 --gres=shard:1", {"tres_per_node": "gres/gpu:1,gres/shard:1"}),
        ("--gpus-per-task=1", {"tres_per_task": "gres/gpu=1", "tres_bind": "gres/gpu:per_task:1"}),
        (
            "--gpus=h100:2,a100:1 --ntasks-per-gpu=2",
            {"tres_per_job": "gres/gpu:h100:2,gres/gpu:a100:1", "tasks_per_gpu": 2, "tasks": 6},
        ),
        (
            "--gpus=4 --gpus-per-task=2",
            {
                "tres_per_job": "gres/gpu:4",
                "tres_per_task": "gres/gpu=2",
                "tres_bind": "gres/gpu:per_task:2",
                "tasks": 2,
            },
        ),
        ("--ntasks-per-gpu=1 -N2", {"tasks_per_gpu": 1, "nodes": "2"}),
        ("--gpu-bind=closest", {"tres_bind": "gres/gpu:closest"}),
        ("--gpus=2 --cpus-per-gpu=3", {"tres_per_job": "gres/gpu:2", "cpus_per_tres": "gres/gpu:3"}),
        (
            "--tres-per-task=cpu=2,gres/gpu:1",
            {"tres_per_task": "cpu=2,gres/gpu:1", "cpus_per_task": 2, "tres_bind": "gres/gpu:per_task:1"},
        ),
        ("--hint=memory_bound", {"cores_per_socket": 1, "threads_per_core": 1}),
        ("--hint=memory_bound,compute_bound", {"threads_per_core": 1}),
        ("--hint=nomultithread,multithread", {"tasks_per_core": 65_535}),
        ("-o none", {"standard_output": "/dev/null"}),
        ("-D /var", {"working_directory": "/var"}),
        ("--part=x", {"partition": "x"}),
        ("--licenses=a:1 --resources=b:2", {"licenses": "a:1,b:2"}),
        ("--oom-kill-step", {"oom_kill_step": 1}),
        ("--mem-bind=verbose,map_mem:0,1", {"memory_binding_type": ("VERBOSE", "MAP"), "memory_binding": "0,1"}),
        ("-H --priority=5", {"hold": True}),
        (
            "-m arbitrary -w b,a",
            {"distribution": "arbitrary", "required_nodes": ("b", "a"), "tasks": 2, "minimum_nodes": 2},
        ),
        ("--", {}),
    ],
)
def test_an_option_becomes_its_field(line: str, wanted: dict[str, Any]) -> None:
    assert fields(line) == wanted


def test_later_lines_win_and_say_where_they_are() -> None:
    found = parsed("--mem=1G -J old", "--mem=2G", "--job-name new")
    assert (found.spec.memory_per_node_mib, found.spec.name) == (2048, "new")
    assert {name: (source.option, source.line) for name, source in found.sources.items()} == {
        "memory_per_node_mib": ("--mem", 3),
        "name": ("--job-name", 4),
    }
    assert len(found.directives) == 4


def test_lines_end_at_the_first_command() -> None:
    text = "#!/bin/sh\n# a comment\n\n#SBATCH -N1\n  # another\n##SBATCH -n3\n #SBATCH -n4\ntrue\n#SBATCH -N2\n"
    assert sbatch.parse(text).spec.nodes == "1"
    assert sbatch.parse(text).spec.tasks is None
    assert sbatch.parse(text).spec.script == text


def test_a_value_may_stand_in_the_next_line() -> None:
    assert fields("--mem", "5") == {"memory_per_node_mib": 5}


def test_the_magic_word_needs_no_blank() -> None:
    assert sbatch.parse("#!/bin/sh\n#SBATCH--mem=5\n#SLURM -J x\n").spec.memory_per_node_mib == 5
    assert sbatch.parse("#!/bin/sh\n#SBATCH--mem=5\n#SLURM -J x\n").spec.name == "x"


@pytest.mark.parametrize(
    ("line", "option", "words"),
    [
        ("--bogus", "--bogus", "no such option"),
        ("-Z", "-Z", "no such option"),
        ("word", "", "no option"),
        ("-- word", "", "no option"),
        ("-N", "--nodes", "needs a value"),
        ("--mem", "--mem", "needs a value"),
        ("--hold=yes", "--hold", "takes no value"),
        ("--mem-p=3", "--mem-p", "may be any of"),
        ("--nodes=0", "--nodes", "without nodes"),
        ("--nodes=3-1", "--nodes", "less than"),
        ("--nodes=x", "--nodes", "not a number of nodes"),
        ("-n0", "--ntasks", "not between"),
        ("-n two", "--ntasks", "no whole number"),
        ("--mem=1X", "--mem", "no size"),
        ("--mem=-1", "--mem", "no size"),
        ("--time=1:2:3:4", "--time", "no length of time"),
        ("--time=99999999", "--time", "longer"),
        ("--mem=1 --mem-per-cpu=1", "--mem-per-cpu", "excludes --mem"),
        ("--exclusive -s", "--oversubscribe", "excludes --exclusive"),
        ("--hint=nomultithread --threads-per-core=1", "--threads-per-core", "excludes --hint"),
        ("--gpus-per-node=1 --gres=gpu:1", "--gpus-per-node", "excludes --gres"),
        ("-c2 --tres-per-task=cpu=2", "--cpus-per-task", "contradicts"),
        ("--tres-per-task=mem=2", "--tres-per-task", "no resource of a task"),
        ("--ntasks-per-gpu=1", "--ntasks-per-gpu", "needs a number of GPUs, of tasks or of nodes"),
        ("--gpus=3 --gpus-per-task=2", "--gpus", "no multiple of the 2 GPUs of each task"),
        ("--gpus=2 --gpus-per-task=1 -n1", "--gpus", "is for 2 tasks"),
        ("--hint=multithread,nomultithread", "--hint", "threads of each core"),
        ("--acctg-freq=task=x", "--acctg-freq", "no frequency"),
        ("--distribution=plane=0", "--distribution", "no distribution"),
        ("--begin=2031-1-2", "--begin", "month"),
        ("--uid=root", "--uid", "token"),
        ("--gid=0", "--gid", "token"),
        ("-M other", "--clusters", "one cluster"),
        ("--bbf=/x", "--bbf", "file"),
        ("-F /x", "--nodefile", "file"),
        ("-w ./hosts", "--nodelist", "file"),
        ("--export-file=/x", "--export-file", "file"),
        ("--export=HOME", "--export", "HOME=value"),
        ("--propagate", "--propagate", "limits"),
        ("--chdir=work", "--chdir", "full path"),
        ("--resv-ports", "--resv-ports", "no word"),
        ("--test-only", "--test-only", "submits nothing"),
        ("--wrap=x", "--wrap", "script"),
        ("--help", "--help", "about the command"),
        ("--gres=help", "--gres", "prints"),
        ("--mail-type=END,OOPS", "--mail-type", "OOPS"),
        ("--signal=NOSUCH", "--signal", "no signal"),
        ("--begin=whenever", "--begin", "no point in time"),
        ("--begin=now+1hour --deadline=now+1minute", "--deadline", "before"),
        ("--segment=2 -N3", "--segment", "divide"),
        ("--comment 'a", "", "no ' that ends"),
        ("--comment ''", "", "empty"),
        ("-N1 \\", "", "backslash"),
        (": -N1", "", "':'"),
        ("hetjob -N1", "", "alone"),
        ("--resources", "--resources", "needs a value"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(line: str, option: str, words: str) -> None:
    refused = refusal("-J x", line)
    assert (refused.option, refused.line) == (option, 3)
    assert words in str(refused)
    assert "line 3" in str(refused)


@pytest.mark.parametrize(
    "text",
    ["", " \n ", "echo", " #!/bin/sh\n", "#!/bin/sh\r\n#SBATCH -N1\r\n", "#!/bin/sh\0", "#!/bin/sh" + "\n" * LARGEST],
)
def test_what_is_no_script_is_refused(text: str) -> None:
    with pytest.raises(InvalidDirective):
        sbatch.parse(text)


def test_a_line_has_a_bound() -> None:
    assert "words" in str(refusal("-H " * (MOST + 1)))
    assert "options" in str(refusal("-" + "H" * (MOST + 1)))
    assert "words" in str(refusal(*["-H -H"] * (MOST // 2 + 1)))


def test_what_changes_nothing_about_the_job_is_listed() -> None:
    found = parsed("-W --parsable --export=ALL --propagate=NONE -Q -v --ignore-pbs")
    assert {directive.option for directive in found.without_effect} == {
        "--wait", "--parsable", "--export", "--propagate", "--quiet", "--verbose", "--ignore-pbs",
    }  # fmt: skip
    assert all(found.without_effect.values())
    assert found.spec == JobSpec(script=found.spec.script)


def test_exported_variables_are_those_of_the_script_and_of_the_caller() -> None:
    assert parsed("--export=A=1,B=x=y").spec.environment == {
        "A": "1", "B": "x=y", "SLURM_GET_USER_ENV": "1", "SLURM_EXPORT_ENV": "A=1,B=x=y",
    }  # fmt: skip
    environment = parsed("--export=A", environment={"A": "2", "B": "3"}).spec.environment
    assert environment is not None
    assert environment["A"] == "2"
    assert "B" not in environment
    every = parsed("--export=ALL,C=1", environment={"A": "2"}).spec.environment
    assert every is not None
    assert {"A": "2", "C": "1"}.items() <= every.items()
    assert parsed("--export=NIL").spec.environment == {}
    assert parsed("--get-user-env").spec.environment == {"SLURM_GET_USER_ENV": "1"}
    assert parsed("-n2 --export=NIL").spec.environment == {"SLURM_NTASKS": "2", "SLURM_NPROCS": "2"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("16:00", datetime(2030, 3, 14, 16, tzinfo=UTC)),
        ("15:09", datetime(2030, 3, 15, 15, 9, tzinfo=UTC)),
        ("3:30pm", datetime(2030, 3, 14, 15, 30, tzinfo=UTC)),
        ("12:00am", datetime(2030, 3, 15, tzinfo=UTC)),
        ("noon", datetime(2030, 3, 15, 12, tzinfo=UTC)),
        ("tomorrow", datetime(2030, 3, 15, tzinfo=UTC)),
        ("teatime tomorrow", datetime(2030, 3, 15, 16, tzinfo=UTC)),
        ("today 16:30", datetime(2030, 3, 14, 16, 30, tzinfo=UTC)),
        ("2031-01-20", datetime(2031, 1, 20, tzinfo=UTC)),
        ("2031-01-2T03:04", datetime(2031, 1, 2, 3, 4, tzinfo=UTC)),
        ("2031-01-02-03:04", datetime(2031, 1, 2, 3, 4, tzinfo=UTC)),
        ("010231", datetime(2031, 1, 2, tzinfo=UTC)),
        ("1/2/31", datetime(2031, 1, 2, tzinfo=UTC)),
        ("12/31", datetime(2030, 12, 31, tzinfo=UTC)),
        ("1/2", datetime(2031, 1, 2, tzinfo=UTC)),
        ("now", NOW),
        ("now+60", NOW + timedelta(minutes=1)),
        ("now + 2 days", NOW + timedelta(days=2)),
        ("now-1week", NOW - timedelta(weeks=1)),
    ],
)
def test_points_in_time(text: str, wanted: datetime) -> None:
    assert parsed(f"--begin='{text}'").spec.begin_time == wanted


def test_points_in_time_are_of_the_callers_zone() -> None:
    zone = timezone(timedelta(hours=2))
    assert parsed("--begin=16:00", zone=zone).spec.begin_time == datetime(2030, 3, 15, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "25:00", "16:60", "13/1", "2/30/31", "2031-13-01", "now+", "now+x", "uts1", "1pm"]
)
def test_what_is_no_point_in_time(text: str) -> None:
    assert refusal(f"--begin='{text}x'" if not text else f"--begin='{text}'").option == "--begin"


def test_components_are_apart() -> None:
    text = script("-N1 -J a", "hetjob", "-N2", "packjob", "--mem=5")
    first, second, third = sbatch.parse_components(text)
    assert (first.spec.nodes, first.spec.name, first.spec.script) == ("1", "a", text)
    assert (second.spec.nodes, second.spec.name, second.spec.script) == ("2", None, None)
    assert third.spec.memory_per_node_mib == 5
    with pytest.raises(InvalidDirective, match="3 components"):
        sbatch.parse(text)


def outcome(*given_lines: str) -> tuple[sbatch.Parsed, ...] | InvalidDirective:
    try:
        return sbatch.parse_components(script(*given_lines), now=NOW)
    except InvalidDirective as refused:
        return refused


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_has_a_field_or_a_reason(name: str) -> None:
    option, value = OPTIONS[name], VALUES.get(name, "1")
    found = outcome(f"--{name}" + (f"={value}" if option.takes == "value" else ""))
    canonical = f"--{SAME.get(name, name)}"
    if isinstance(found, InvalidDirective):
        assert found.option == canonical
        assert len(found.reason) > 10
        return
    (component,) = found
    without_effect = {directive.option for directive in component.without_effect}
    assert canonical in without_effect or canonical in {source.option for source in component.sources.values()}
    assert set(component.sources) <= {each.name for each in dataclasses.fields(JobSpec)}


VALUES = {
    "begin": "now",
    "chdir": "/tmp",
    "deadline": "now+1hour",
    "export": "A=1",
    "gres-flags": "enforce-binding",
    "hint": "nomultithread",
    "kill-on-invalid-dep": "yes",
    "mail-type": "END",
    "mem-bind": "local",
    "mem-update": "10@5",
    "open-mode": "a",
    "profile": "task",
    "tres-per-task": "gres/gpu:1",
    "distribution": "block",
}


def test_letters_are_those_of_options() -> None:
    assert len(LETTERS) == len(set(LETTERS.values()))
    assert {"N": "nodes", "n": "ntasks", "c": "cpus-per-task", "t": "time"}.items() <= LETTERS.items()


lines = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.builds(
            "--{}{}{}".format,
            st.sampled_from(sorted(OPTIONS)),
            st.sampled_from(["=", " ", ""]),
            st.one_of(
                st.text(alphabet="0123456789:-,@kKmMgG=/abnow+. '\"\\#", max_size=12),
                st.sampled_from(["1", "2-4", "4G", "gpu:2", "w-[0-3]", "none", "now+1hour", "END", "1-2:3:4"]),
            ),
        ),
        st.builds(
            "-{}{}".format,
            st.sampled_from(sorted(LETTERS)),
            st.sampled_from(["", "1", " 2", "4G", "w-[0-1]", " x"]),
        ),
    ),
    max_size=5,
)


@given(lines)
def test_any_lines_are_a_job_that_can_be_written_or_a_refusal(given_lines: list[str]) -> None:
    found = outcome(*given_lines)
    if isinstance(found, InvalidDirective):
        assert found.reason
        assert 0 <= found.line <= script(*given_lines).count("\n") + 1
        return
    for component in found:
        body = encode.submission(component.spec)
        assert body["job"]["environment"]
        kept = {directive.option for directive in component.directives}
        assert {source.option for source in component.sources.values()} <= kept


@given(st.lists(st.from_regex(r"[a-z0-9 '\"#\\:=]{1,12}", fullmatch=True), min_size=1, max_size=6))
def test_words_survive_quoting(words: list[str]) -> None:
    quoted = ["'" + word.replace("\\", "\\\\").replace("'", r"\'") + "'" for word in words]
    found = parsed(*(f"--comment={word}" for word in quoted))
    assert [directive.value for directive in found.directives] == words


@pytest.mark.parametrize(
    ("line", "option", "words"),
    [
        ("--comment=" + "a" * LONGEST, "", f"more than {LONGEST} characters"),
        (f"--begin='{'1/1 ' * 100}'", "--begin", "256 characters"),
        (f"--deadline='now+{' ' * 300}x'", "--deadline", "256 characters"),
        ("--gpus-per-task=" + "1," * 256 + "1", "--gpus-per-task", "more than 256 resources"),
        ("--tres-per-task=" + "gres/a:1," * 256 + "gres/a:1", "--tres-per-task", "more than 256 resources"),
        ("--gpus=" + "a:1," * 256 + "a:1", "--gpus", "more than 256 resources"),
    ],
)
def test_what_takes_long_to_read_has_a_bound(line: str, option: str, words: str) -> None:
    refused = refusal("-J x", line)
    assert (refused.option, refused.line) == (option, 3)
    assert words in refused.reason


def test_components_have_a_bound() -> None:
    assert len(sbatch.parse_components(script(*["hetjob"] * (MOST_COMPONENTS - 1)))) == MOST_COMPONENTS
    with pytest.raises(InvalidDirective, match="more than 128 components"):
        sbatch.parse_components(script(*["hetjob"] * MOST_COMPONENTS))


def test_names_of_nodes_are_written_out_once_however_often_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    written_out: list[str] = []
    expand = hostlist.expand

    def noted(text: str) -> tuple[str, ...]:
        written_out.append(text)
        return expand(text)

    monkeypatch.setattr(hostlist, "expand", noted)
    found = parsed(*["-w n[0-65535]"] * 1000, "-w w-1", "-x w-2").spec
    assert (found.required_nodes, found.excluded_nodes) == (("w-1",), ("w-2",))
    assert written_out == ["w-1", "w-2"]


def test_options_of_lines_and_others_are_combined() -> None:
    text = script("--mem-per-cpu=1G -N2", "-J line")
    memory, *others = sbatch.directives(text)
    assert (memory.option, memory.value, memory.line) == ("--mem-per-cpu", "1G", 2)
    own = sbatch.Directive("--mem", "4G", 0)
    found = sbatch.combine([*others, own], script=text, replaced=[memory])
    assert (found.spec.memory_per_node_mib, found.spec.memory_per_cpu_mib) == (4096, None)
    assert (found.spec.nodes, found.spec.name, found.spec.script) == ("2", "line", text)
    assert found.sources["memory_per_node_mib"] is own
    assert own in found.directives
    with pytest.raises(InvalidDirective, match=r"^line 2: --mem-per-cpu: excludes --mem$"):
        sbatch.combine([own, memory])


@pytest.mark.parametrize(
    ("directive", "words"),
    [
        (sbatch.Directive("--mem", "1X", 7), "line 7: --mem: '1X' is no size"),
        (sbatch.Directive("--mem", None, 0), "--mem: needs a value"),
        (sbatch.Directive("--bogus", "1", 0), "--bogus: sbatch has no such option"),
    ],
)
def test_options_that_do_not_count_must_be_right_too(directive: sbatch.Directive, words: str) -> None:
    for wanted, replaced in (([directive], []), ([], [directive])):
        with pytest.raises(InvalidDirective) as refused:
            sbatch.combine(wanted, replaced=replaced)
        assert str(refused.value).startswith(words)


def test_directives_are_those_of_one_job() -> None:
    with pytest.raises(InvalidDirective, match="2 components"):
        sbatch.directives(script("-N1", "hetjob", "-N2"))
