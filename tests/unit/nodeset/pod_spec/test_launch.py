"""How slurmd is started: directly, by a user's command, or through a shell; and what is rejected."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.pod_spec import builder
from slinky_operator.slurm.pod_templates import first_process
from slinky_operator.slurm.slurmd import launch, node_conf

CLUSTER = Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cu"}, "spec": {}})
NODESET = NodeSet.parse(
    {"metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {"clusterName": "c", "replicas": 1}}
)
QUOTED = "'Features=debug,gpu Gres=gpu:2 Weight=7'"
MERGED = "Features=a,debug,gpu CPUs=1 RealMemory=512 Gres=gpu:2 Weight=7"
RESOURCES = {"limits": {"cpu": 1, "memory": "512Mi"}}


def started(**container: Any) -> list[str]:
    """The whole command line of a node's slurmd."""
    found = launch.read(container)
    assert found.problems == ()
    made = builder.arguments_of(NODESET, CLUSTER, found, {"resources": RESOURCES})
    return [*found.command, *made.of(PodSlot("a-0", "a-0", 0))]


def value(words: list[str], option: str) -> str:
    assert words.count(option) == 1, words
    return words[words.index(option) + 1]


# The quotes around --conf


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("'Features=a Gres=gpu:2'", "Features=a Gres=gpu:2"),
        ('"Features=a Gres=gpu:2"', "Features=a Gres=gpu:2"),
        (" 'Features=a' ", "Features=a"),
        ("Features=a Weight=1", "Features=a Weight=1"),
        ('Weight=1 Comment="a b"', 'Weight=1 Comment="a b"'),
        ("'Weight=1 Comment=\"a b\"'", 'Weight=1 Comment="a b"'),
        ("Comment='x'", "Comment='x'"),
        ("''", ""),
        ('"Features=a Comment=\\"b c\\""', 'Features=a Comment="b c"'),
        ("", ""),
    ],
)
def test_one_pair_of_quotes_around_all_is_taken_off(text: str, line: str) -> None:
    assert node_conf.unquoted(text) == line


@pytest.mark.parametrize("text", ["'Features=a", '"Features=a', "'", "'Features=a' Weight=1", "'Features=a\""])
@pytest.mark.parametrize("form", [lambda text: ["--conf", text], lambda text: [f"--conf={text}"]])
def test_quotes_that_do_not_end_at_the_end_are_refused_by_argument(text: str, form: Any) -> None:
    args = ["-Z", *form(text)]

    ((field, reason),) = launch.read({"args": args}).problems

    assert field == f"args[{len(args) - 1}]"
    assert reason.startswith(f"begins with {text[0]} and is not quoted as a whole: write it without quotes")


@given(st.text("aB=,:/._-'\" \t\\$", max_size=40))
def test_what_a_shell_would_take_off_is_taken_off_and_nothing_else(text: str) -> None:
    quoted = "'" + text.replace("'", "") + "'"
    assert node_conf.unquoted(quoted) == text.replace("'", "").strip()
    if not text.strip().startswith(("'", '"')):
        assert node_conf.unquoted(text) == text.strip()


keys = st.sampled_from(["Weight", "Gres", "Features", "MemSpecLimit", "Feature"])
values = st.text("abz019:,._-", min_size=1, max_size=12)


@given(st.lists(st.tuples(keys, values), max_size=5), st.sampled_from(["", "'", '"']))
def test_quotes_change_nothing_in_what_slurmd_gets(wanted: list[tuple[str, str]], quote: str) -> None:
    line = " ".join(f"{key}={word}" for key, word in wanted)

    assert started(args=["-Z", "--conf", f"{quote}{line}{quote}"]) == started(args=["-Z", "--conf", line])


# Who starts slurmd


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["-Z", "--conf", QUOTED]},
        {"args": ["-Z", f"--conf={QUOTED}"]},
        {"command": [], "args": ["-Z", "--conf", QUOTED]},
        {"command": ["slurmd"], "args": ["-Z", "--conf", QUOTED]},
        {"command": ["slurmd", "-Z", "--conf", QUOTED]},
        {"command": ["slurmd", "-D"], "args": ["--conf", QUOTED]},
    ],
)
def test_without_a_wrapper_slurmd_itself_is_started_with_each_argument_as_it_is(container: dict[str, Any]) -> None:
    words = started(**container)

    assert words[0] == "slurmd"
    assert {"-D", "-Z"} <= set(words)
    assert all(words.count(word) == 1 for word in ("-D", "-Z"))
    assert value(words, "--conf") == MERGED
    assert value(words, "-N") == "a-0"
    assert value(words, "--extra") == "ns/a"


def test_a_program_before_slurmd_stays_there() -> None:
    words = started(command=["tini", "-g", "--", "/opt/slurm/sbin/slurmd", "-vv"], args=["--conf-server", "s:6817"])

    assert words[:5] == ["tini", "-g", "--", "/opt/slurm/sbin/slurmd", "-vv"]
    assert value(words, "--conf-server") == "s:6817"


@pytest.mark.parametrize("command", [["entrypoint.sh"], ["tini", "--", "/usr/local/bin/entrypoint.sh"]])
def test_a_command_whose_arguments_were_quoted_for_a_shell_gets_them_so(command: list[str]) -> None:
    words = started(command=command, args=["-Z", "--conf", QUOTED])

    assert "-D" not in words
    assert words[: len(command)] == command
    assert value(words, "--conf") == f"'{MERGED}'"
    # What a shell makes of the joined words is what slurmd is to get.
    joined = shlex.split(" ".join(words[len(command) :]))
    direct = [word for word in started(args=["-Z", "--conf", QUOTED])[1:] if word != "-D"]
    assert joined == direct


@pytest.mark.parametrize(
    ("script", "joined"),
    [
        ('exec slurmd "$@"', False),
        ('mkdir -p /run/x; exec nice /usr/sbin/slurmd -v "${@}"', False),
        ('exec entrypoint.sh "$@"', True),
        ('exec slurmd-entrypoint.sh "$@"', True),
        ('slurmd -V; exec entrypoint.sh "$@"', True),
    ],
)
def test_a_script_that_starts_slurmd_itself_needs_no_quotes(script: str, joined: bool) -> None:
    found = launch.read({"command": ["bash", "-c", script], "args": ["--conf", QUOTED]})

    assert found.problems == ()
    assert found.joined is joined


@pytest.mark.parametrize("command", [["entrypoint.sh"], ["tini", "--", "/start"]])
def test_a_command_whose_arguments_were_not_quoted_gets_them_as_they_are(command: list[str]) -> None:
    words = started(command=command, args=["-Z", "--conf", "Features=debug,gpu Gres=gpu:2 Weight=7"])

    assert words[: len(command)] == command
    assert "-D" in words
    assert value(words, "--conf") == MERGED


SHELLS: list[dict[str, Any]] = [
    {"command": ["sh", "-c", 'exec slurmd "$@"']},
    {"command": ["sh", "-c", 'exec slurmd "$@"', "start"]},
    {"command": ["sh", "-c", 'exec slurmd "$@"', "--"]},
    {"command": ["sh", "-c"], "args": ['exec slurmd "$@"']},
    {"command": ["bash", "-eo", "pipefail", "-c", 'exec slurmd "$@"']},
    {"command": ["tini", "--"], "args": ["sh", "-c", 'exec slurmd "$@"']},
    {"command": ["tini", "--", "sh"], "args": ["-c", 'exec slurmd "$@"', "start"]},
    {"command": ["sh", "-ec", 'exec slurmd -vv --conf-server s:6817 "${@}"']},
]


@pytest.mark.parametrize("container", SHELLS)
def test_a_shell_that_passes_its_arguments_on_passes_all_of_them(container: dict[str, Any], tmp_path: Path) -> None:
    program = tmp_path / "slurmd"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    init = tmp_path / "tini"
    init.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    init.chmod(0o755)
    args = [*container.get("args", []), "-Z", "--conf", "Features=debug,gpu Gres=gpu:2 Weight=7"]
    words = started(**{**container, "args": args})

    path = f"{tmp_path}:{os.environ['PATH']}"
    found = subprocess.run(words, capture_output=True, text=True, check=True, env={"PATH": path}).stdout.splitlines()

    assert value(found, "--conf") == MERGED
    assert value(found, "-N") == "a-0"
    assert value(found, "--extra") == "ns/a"
    assert {"-D", "-Z"} <= set(found)
    assert sum("--conf-server" in word for word in found) == 1


@pytest.mark.parametrize(
    ("container", "field", "words"),
    [
        (
            {"command": ["tini", "--", "bash", "-c", "exec entrypoint --conf-server s:6817"]},
            "command[4]",
            'write "$@" in it, for instance exec slurmd "$@"',
        ),
        ({"command": ["sh", "-c"], "args": ["exec slurmd -D"]}, "args[0]", 'exec slurmd "$@"'),
        ({"command": ["sh", "-c", "exec slurmd $@"]}, "command[2]", 'exec slurmd "$@"'),
        ({"command": ["sh", "-c", "exec slurmd $*"]}, "command[2]", 'exec slurmd "$@"'),
        ({"command": ["sh", "-c", 'exec slurmd -N $HOST "$@"']}, "command[2]", "-N is the operator's"),
        (
            {"command": ["bash", "-c"], "args": ['exec slurmd -D -Z -N $NODE_NAME "$@"']},
            "args[0]",
            'Leave it out with its value: the operator passes it in "$@", as in exec slurmd "$@"',
        ),
        ({"command": ["tini", "--"], "args": ["sh", "-c", "exec slurmd -Z"]}, "args[2]", 'write "$@" in it'),
        ({"command": ["/usr/bin/tini", "-g"], "args": ["--", "bash", "-c", "slurmd"]}, "args[3]", 'write "$@" in it'),
        (
            {"args": ["tini", "--", "bash", "-c", 'exec slurmd "$@"']},
            "args[0]",
            "write the program and its words under",
        ),
        ({"args": ["slurmd", "-Z"]}, "args[0]", "slurmd would be an argument of slurmd"),
        ({"command": ["sh", "-c", 'exec slurmd --conf "A=1" "$@"']}, "command[2]", "--conf belongs under args"),
        (
            {"command": ["slurmd", "-N", "$(NODE_NAME)"]},
            "command[1]",
            "Leave it out with its value: the operator passes",
        ),
        (
            {"command": ["slurmd"], "args": ["-Z", "-N$(NODE_NAME)"]},
            "args[1]",
            "-N is the operator's: it names the node",
        ),
        ({"command": ["entrypoint.sh", "-N", "x"]}, "command[1]", "Leave it out with its value: the operator passes"),
        ({"command": ["entrypoint.sh", "--conf=A=1"]}, "command[1]", "belongs under args"),
        ({"command": ["entrypoint.sh"], "args": ["--extra=x"]}, "args[0]", "--extra is the operator's"),
    ],
)
def test_what_would_start_another_node_is_refused_and_says_how_to_write_it(
    container: dict[str, Any], field: str, words: str
) -> None:
    ((found, reason),) = launch.read(container).problems

    assert found == field
    assert words in reason


@pytest.mark.parametrize(
    ("container", "field", "words"),
    [
        ({"args": ["-Z", "slurmd " * 100_000]}, "args[1]", "may have 4096"),
        ({"command": ["sh", "-c", 'slurmd "' * 100_000]}, "command[2]", "may have 4096"),
        ({"args": ["--conf", "'" + "a" * 5000]}, "args[1]", "may have 4096"),
        ({"command": ["sh"], "args": ["--conf", '"\\'] * 5000}, "args", "may have 16384"),
    ],
)
def test_what_is_too_long_is_not_read(container: dict[str, Any], field: str, words: str) -> None:
    ((found, reason),) = launch.read(container).problems

    assert found == field
    assert words in reason


def test_a_script_as_it_is_published_is_refused_with_all_that_is_wrong_in_it() -> None:
    script = 'exec /usr/local/bin/entrypoint.sh -Z -N $NODE_NAME --conf-server c:6817 --conf "Features=a"'

    problems = launch.read({"command": ["tini", "-g", "--", "bash", "-c", script]}).problems

    assert {field for field, _ in problems} == {"command[5]"}
    assert [reason.split()[0] for _, reason in problems] == ["must", "-N", "--conf"]


@pytest.mark.parametrize("program", ["slurmd", "/opt/slurm/sbin/slurmd"])
def test_slurmd_alone_is_started_below_a_process_that_reaps(program: str) -> None:
    assert launch.read({"command": [program]}).container_command == first_process.above(program)


@pytest.mark.parametrize(
    "command", [["tini", "--", "slurmd"], ["entrypoint.sh"], ["bash", "-c", 'exec slurmd "$@"', "slurmd"]]
)
def test_a_command_with_something_above_slurmd_stays_as_it_is_after_run_is_closed(command: list[str]) -> None:
    started = launch.read({"command": command}).container_command
    assert started == first_process.before(command)
    assert started[-len(command) :] == tuple(command)
