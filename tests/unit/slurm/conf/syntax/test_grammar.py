"""No user text can inject anything into Slurm's configuration: Slurm's parsing of the rendered files, for any text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slinky_operator.slurm.conf import (
    ConfInputs,
    Gathered,
    NodeSetConf,
    PartitionConf,
    Rendered,
    StaticNodeConf,
    parse_lines,
    render,
)
from slinky_operator.slurm.conf.sources.files import FileConf
from slinky_operator.slurm.conf.sources.scripts import KINDS, ScriptConf
from slinky_operator.slurm.conf.spec_lines import node_words, partition_words
from slinky_operator.slurm.conf.syntax.directives import logical_lines
from tests.unit.slurm.conf.goldens import CASES, PROLOG, Case
from tests.unit.slurm.conf.syntax.slurm_grammar import Unreadable, Word, read

TEXTS = st.text(st.sampled_from("aB=\"'# \t\n\r\\,+-\u2028\u0085N/"), max_size=24) | st.sampled_from(
    [
        "MaxTime=1 PartitionName=x",
        "a=1#\n",
        'a="x\ny"',
        "a=b\\",
        "NodeName=DEFAULT",
        "a = 1 Include=x",
        "Include /etc/passwd",
        "a=1 b",
        'Q="x\\"',
        "Q=x\\ R=1",
        "Q=1 \\ \nR=2",
        "# \\\nQ=1",
        "Q=\\",
        "Q= R=1",
        'Q="" R=""',
        'Q="x#y" R=1',
        "State=UP\\",
    ]
)


def inputs(
    *, partition: str | None = None, line: str | None = None, node: str | None = None, extra: str = ""
) -> ConfInputs:
    """Texts as they would come past an API server that checks nothing."""
    return replace(
        Case().inputs(),
        node_sets=tuple(
            NodeSetConf(name, partition_words(text)) for name, text in (("a", partition), ("b", "")) if text is not None
        ),
        partitions=() if line is None else (PartitionConf("p", words=partition_words(line)),),
        nodes=() if node is None else (StaticNodeConf.of("n", node_words(node)),),
        extra=parse_lines(extra),
    )


def said(rendered: Rendered) -> Counter[Word]:
    """All that Slurm reads."""
    return Counter(word for line in read(rendered.files["slurm.conf"]) for word in line)


def words(text: str) -> list[Word]:
    return [word for line in read(text) for word in line]


def line_of(head: str, text: str) -> Counter[Word]:
    """What a line may say: its head, the user's words, and a state for a partition that has none."""
    found = [*words(head), *words(text)]
    if found[0].key == "partitionname" and not any(word.key == "state" for word in found):
        found.append(Word("state", "UP"))
    return Counter(found)


NOTHING = said(render(inputs()))


@settings(max_examples=600, deadline=None)
@given(TEXTS, TEXTS, TEXTS, TEXTS)
@example('State=UP Q="x\\"', 'Q="x\\"', 'Q="x\\"', 'Q="x\\"')
def test_slurm_reads_what_was_accepted_and_no_word_more(partition: str, line: str, node: str, extra: str) -> None:
    rendered = render(inputs(partition=partition, line=line, node=node, extra=extra))
    wrong = {one.field for one in rendered.problems}
    expected = Counter(NOTHING)
    if not rendered.refused:
        expected += Counter(words("NodeSet=a Feature=a")) + line_of("PartitionName=a Nodes=a", partition)
    if "spec.partitions[0].config" not in wrong:
        expected += line_of("PartitionName=p", line)
    if "spec.nodes[0].config" not in wrong:
        expected += line_of("NodeName=n", node)
    if "spec.extraConf" not in wrong:
        expected += Counter(words(extra))
    assert said(rendered) == expected


@pytest.mark.parametrize("text", ["MaxTime=1", 'A="b c" D=e', "A = b", "A=b\\c", ""])
def test_what_is_plainly_fine_is_accepted(text: str) -> None:
    rendered = render(inputs(partition=text, line=text, node=text, extra=text))
    assert not rendered.problems
    assert not rendered.refused


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.text("ab.-/ \n\\=#", max_size=6), st.sampled_from([PROLOG, "", "echo", "#!/bin/sh\nProlog=/x"])),
    st.sampled_from([kind.field for kind in KINDS]),
)
def test_each_script_is_one_line_and_one_file(scripts: dict[str, str], field: str) -> None:
    (kind,) = (kind for kind in KINDS if kind.field == field)
    found = tuple(ScriptConf(kind, FileConf(name, text, "spec")) for name, text in scripts.items())
    rendered = render(replace(inputs(), texts=Gathered(scripts=found)))
    if rendered.problems:
        return
    lines = said(rendered) - NOTHING
    assert sorted(word.value.rpartition("/")[2] for word in lines) == sorted(
        rendered.files.keys() - {"slurm.conf", "cgroup.conf"}
    )
    assert {word.key for word in lines} <= {kind.key.lower()}
    assert sum(lines.values()) == len(scripts)


@pytest.mark.parametrize("name", CASES)
def test_every_rendered_file_can_be_read(name: str) -> None:
    lines = read(CASES[name].render().files["slurm.conf"])
    # One key of the whole cluster to a line; what begins with a name is a line of its own.
    assert all(len(line) == 1 or line[0].key in {"nodeset", "partitionname", "nodename"} for line in lines)


@pytest.mark.parametrize("text", ["a b", "Include x", "a=", "=b"])
def test_the_second_reading_refuses_what_slurm_does(text: str) -> None:
    with pytest.raises(Unreadable):
        read(text)


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_given_changes_nothing(random: Random) -> None:
    def shuffled(items: Iterable[Any]) -> list[Any]:
        found = list(items)
        random.shuffle(found)
        return found

    spec = CASES["scripts"].spec
    given_files = {"a.conf": "x", "b.conf": "y", "topology.yaml": "- topology: t\n"}
    mixed = {
        "partitions": shuffled([{"name": "p", "nodeSets": shuffled(["a", "b"])}, {"name": "q"}]),
        "nodes": shuffled([{"name": "n"}, {"name": "m"}]),
        "extraConf": "\n".join(shuffled(["KillWait=1", "MessageTimeout=20", "Epilog=/x"])),
        "configFiles": dict(shuffled(given_files.items())),
        "prologScripts": dict(shuffled(spec["prologScripts"].items())),
        "configFileRefs": shuffled([{"name": "one"}, {"name": "two"}]),
    }
    texts = dict(shuffled({"one": {"c.conf": "z"}, "two": {"d.conf": "z"}}.items()))
    node_sets = dict(shuffled({"a": {"gres": "gpu:1"}, "b": {}}.items()))
    assert Case(mixed, node_sets, texts).render().hash == ORDERED


ORDERED = (
    Case(
        {
            "partitions": [{"name": "p", "nodeSets": ["a", "b"]}, {"name": "q"}],
            "nodes": [{"name": "n"}, {"name": "m"}],
            "extraConf": "KillWait=1\nMessageTimeout=20\nEpilog=/x",
            "configFiles": {"a.conf": "x", "b.conf": "y", "topology.yaml": "- topology: t\n"},
            "prologScripts": CASES["scripts"].spec["prologScripts"],
            "configFileRefs": [{"name": "one"}, {"name": "two"}],
        },
        {"a": {"gres": "gpu:1"}, "b": {}},
        {"one": {"c.conf": "z"}, "two": {"d.conf": "z"}},
    )
    .render()
    .hash
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a=1 \\\nb=2", ["a=1 b=2"]),
        ("a=1 \\ \t\nb=2", ["a=1 b=2"]),
        ("a=1 \\\r\nb=2", ["a=1 b=2"]),
        ("a=1 \\\\\nb=2", ["a=1 \\\\", "b=2"]),
        ("a=1 \\\\\\\nb=2", ["a=1 \\\\b=2"]),
        ("a=1 \\# \\\nb=2", ["a=1 \\# b=2"]),
        ("a=1 \\\\# \\\nb=2", ["a=1 \\\\", "b=2"]),
        ("a=1 # \\\nb=2", ["a=1 ", "b=2"]),
    ],
)
def test_lines_are_joined_and_comments_cut_as_slurm_does(text: str, lines: list[str]) -> None:
    assert [line for _, line in logical_lines(text)] == lines


def test_joining_lines_takes_as_long_as_the_text_is() -> None:
    # With a cost that grew with the square of the length, this would not end within the time limit of a test.
    text = "\\\n" * 1_000_000 + "a=1"
    assert logical_lines(text) == ((1, "a=1"),)
