"""slurm.conf: what is rendered, what is rejected, and that no text can inject more than its value."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_operator.slurm.conf import (
    ConfInputs,
    Directive,
    Gathered,
    Line,
    NodeSetConf,
    PartitionConf,
    StaticNodeConf,
    gather,
    parse,
    parse_lines,
    parse_words,
    render,
)
from slinky_operator.slurm.conf.keys.merge import check_extra
from slinky_operator.slurm.conf.programs import Programs
from slinky_operator.slurm.conf.programs import programs as programs_looked_for
from slinky_operator.slurm.conf.render import Rendered
from slinky_operator.slurm.conf.spec_lines import node_words, partition_words
from slinky_operator.slurm.conf.syntax.directives import TextProblem
from slinky_operator.slurm.health_checks import programs
from tests.unit.cluster.world import cluster_object

BASE = ConfInputs("here_slurm", "slurm-controller-0", "slurm-controller-0.slurm-controller.here.svc")


def texts(files: dict[str, str]) -> Gathered:
    return gather(ClusterSpec.model_construct(config_files=files), {})


def conf(inputs: ConfInputs, running: str = "") -> str:
    rendered = render(inputs, parse(running))
    assert not rendered.problems
    return rendered.files["slurm.conf"]


def test_the_smallest_configuration() -> None:
    lines = conf(BASE).split("\n")
    for line in (
        "ClusterName=here_slurm",
        "SlurmctldHost=slurm-controller-0(slurm-controller-0.slurm-controller.here.svc)",
        "AuthType=auth/slurm",
        "AuthAltTypes=auth/jwt",
        "SlurmctldParameters=enable_configless",
        "ReturnToService=2",
        "PartitionName=all Nodes=ALL Default=YES State=UP",
    ):
        assert line in lines
    assert render(BASE).files["cgroup.conf"].endswith("CgroupPlugin=disabled\n")


def test_node_sets_have_a_line_and_a_partition() -> None:
    inputs = replace(
        BASE,
        node_sets=(
            NodeSetConf("a", partition_words("MaxTime=60")),
            NodeSetConf("b"),
            NodeSetConf("c", partition_words("State=DOWN")),
        ),
    )
    text = conf(inputs)
    assert "NodeSet=a Feature=a\nPartitionName=a Nodes=a MaxTime=60 State=UP\nNodeSet=b Feature=b\n" in text
    assert "PartitionName=b" not in text
    assert "PartitionName=c Nodes=c State=DOWN\n" in text
    assert render(inputs).partitions == {"a": "a", "c": "c", "all": "ALL"}


def test_the_order_in_the_spec_does_not_matter() -> None:
    one = replace(
        BASE,
        partitions=(PartitionConf("p", ("x",)), PartitionConf("q", ("x", "a"))),
        nodes=(StaticNodeConf.of("n1"), StaticNodeConf.of("n2")),
        extra=parse_lines("MessageTimeout=3\nKillWait=5"),
        texts=texts({"gres.conf": "", "topology.yaml": "x"}),
    )
    other = replace(
        one,
        partitions=(PartitionConf("q", ("a", "x")), PartitionConf("p", ("x",))),
        nodes=(StaticNodeConf.of("n2"), StaticNodeConf.of("n1")),
        extra=parse_lines("KillWait=5 MessageTimeout=3"),
        texts=texts({"topology.yaml": "x", "gres.conf": ""}),
    )
    assert render(one).hash == render(other).hash


def test_every_input_changes_the_hash() -> None:
    inputs = [
        BASE,
        replace(BASE, cluster_name="other"),
        replace(BASE, node_sets=(NodeSetConf("a"),)),
        replace(BASE, node_sets=(NodeSetConf("a", ()),)),
        replace(BASE, node_sets=(NodeSetConf("a", gres="gpu:1"),)),
        replace(BASE, max_node_count=7),
        replace(BASE, metrics=True),
        replace(BASE, extra=parse_lines("KillWait=1")),
        replace(BASE, texts=texts({"gres.conf": "x"})),
        replace(BASE, partitions=(PartitionConf("p"),)),
        replace(BASE, nodes=(StaticNodeConf.of("n"),)),
    ]
    assert len({render(one).hash for one in inputs}) == len(inputs)


def test_extra_conf_wins_by_key_and_adds_to_lists() -> None:
    text = conf(
        replace(BASE, extra=parse_lines('returntoservice=1\nSlurmctldParameters=idle_on_node_suspend\nZ="a b" # why'))
    )
    assert "ReturnToService=1\n" in text
    assert "ReturnToService=2" not in text
    assert "SlurmctldParameters=enable_configless,idle_on_node_suspend\n" in text
    assert 'Z="a b"\n' in text


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Include /etc/passwd", "Key=Value"),
        ("include=/etc/passwd", "configFiles"),
        ("KillWait=1 PartitionName=x", "spec.partitions"),
        ("NodeName=x", "spec.nodes"),
        ("ClusterName=x", "operator"),
        ("SLURMCTLDHOST=x", "operator"),
        ("KillWait=1\nkillwait=2", "twice"),
        ("HashPlugin=hash/sha3", "running jobs"),
        ("KillWait", "Key=Value"),
        ('Prolog="/a', "Key=Value"),
        ("KillWait=1\r\nX=2", "control"),
        ("KillWait=1\\", "backslash"),
        ("KillWait+=1", "not understood"),
    ],
)
def test_extra_conf_keeps_to_what_is_the_users(text: str, word: str) -> None:
    (problem,) = render(replace(BASE, extra=parse_lines(text))).problems
    assert problem.field == "spec.extraConf"
    assert word in problem.reason


def test_a_continued_line_is_one_line() -> None:
    assert parse_lines("Prolog=/a\\\n/b\nKillWait=1") == (Directive("Prolog", "/a/b"), Directive("KillWait", "1"))


def test_a_comment_goes_no_further_than_its_line() -> None:
    assert parse_lines("# why \\\nKillWait=1 \\ \n X=2") == (Directive("KillWait", "1"), Directive("X", "2"))


@pytest.mark.parametrize("text", ['Z="a\\"', "Y=a\\ Z=b", 'Y="a b\\" Z=1'])
def test_no_value_joins_two_lines_when_it_is_written_again(text: str) -> None:
    (problem,) = render(replace(BASE, extra=parse_lines(text))).problems
    assert "backslash" in problem.reason


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ("MaxTime 60", "spec.partition.config"),
        ("Nodes=x", "spec.partition.config"),
        ("MaxTime=1 maxtime=2", "spec.partition.config"),
        ("MaxTime=1\nNodeName=x", "spec.partition.config"),
    ],
)
def test_a_node_set_with_unusable_text_is_left_out(config: str, field: str) -> None:
    rendered = render(replace(BASE, node_sets=(NodeSetConf("bad", partition_words(config)), NodeSetConf("good", ()))))
    assert rendered.node_sets == ("good",)
    assert [(one.node_set, one.problem.field) for one in rendered.refused] == [("bad", field)]
    assert not rendered.problems


def test_names_that_clash_are_refused() -> None:
    inputs = replace(
        BASE,
        node_sets=(NodeSetConf("a", ()), NodeSetConf("a-0", ()), NodeSetConf("p", ())),
        partitions=(PartitionConf("P"),),
    )
    rendered = render(inputs)
    assert rendered.node_sets == ("a",)
    assert [one.problem.field for one in rendered.refused] == ["metadata.name", "spec.partition.enabled"]


def test_of_two_whose_names_clash_the_younger_gives_way() -> None:
    old, new = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    later = replace(BASE, node_sets=(NodeSetConf("a", (), since=new), NodeSetConf("a-1", (), since=old)))
    earlier = replace(BASE, node_sets=(NodeSetConf("a", (), since=old), NodeSetConf("a-1", (), since=new)))
    at_once = replace(BASE, node_sets=(NodeSetConf("a", (), since=old), NodeSetConf("a-1", (), since=old)))

    assert render(later).node_sets == ("a", "a-1")
    assert not render(later).refused
    for inputs in (earlier, at_once):
        (refused,) = render(inputs).refused
        assert (refused.node_set, refused.problem.field) == ("a-1", "metadata.name")
        assert "NodeSet a, which existed before" in refused.problem.reason


def test_a_node_set_that_runs_keeps_its_name_from_an_older_one_that_does_not() -> None:
    old, new = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    younger, older = NodeSetConf("a", (), since=new), NodeSetConf("a-1", (), since=old)
    alone = conf(replace(BASE, node_sets=(younger,)))

    # A node a-1 may be there: slurmctld would end at a NodeSet of that name.
    assert render(replace(BASE, node_sets=(younger, older)), parse(alone)).node_sets == ("a",)
    both = conf(replace(BASE, node_sets=(younger, older)))
    assert render(replace(BASE, node_sets=(younger, older)), parse(both)).node_sets == ("a", "a-1")


def test_a_node_set_called_like_a_feature_of_earlier_nodes_is_left_out() -> None:
    old, new = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    compute = NodeSetConf("compute", (), since=old, features=frozenset({"gpu"}))
    gpu = NodeSetConf("gpu", (), since=new)

    rendered = render(replace(BASE, node_sets=(compute, gpu)))
    (refused,) = rendered.refused
    assert (refused.node_set, refused.problem.field) == ("gpu", "metadata.name")
    assert "the spec of NodeSet compute, which existed before, names the feature gpu" in refused.problem.reason
    assert "NodeSet=gpu" not in rendered.files["slurm.conf"]
    # The one that names the feature gets no pods where the other was there first: `node_features.clash`.
    assert not render(replace(BASE, node_sets=(replace(compute, since=new), replace(gpu, since=old)))).refused


def test_an_older_node_set_that_never_ran_and_is_left_out_blocks_no_name() -> None:
    old, new = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    gpu = NodeSetConf("gpu", (), since=new)
    features = frozenset({"gpu"})
    for name in ("compute", "zebra"):
        refused = NodeSetConf(name, partition_words("MaxTime"), since=old, features=features)
        held = NodeSetConf(name, (), since=old, features=features)
        for other, why in ((refused, {}), (held, {name: "Slurm says no"})):
            rendered = render(replace(BASE, node_sets=(other, gpu), held=why))
            assert rendered.node_sets == ("gpu",)
            assert [one.node_set for one in rendered.refused] == [name]
        # One that takes part does, whichever stands first.
        assert render(replace(BASE, node_sets=(gpu, held))).node_sets == (name,)
        # So does one that is refused and runs: it keeps its lines, and may have nodes.
        running = conf(replace(BASE, node_sets=(held,)))
        assert [one.node_set for one in render(replace(BASE, node_sets=(refused, gpu)), parse(running)).refused] == [
            name,
            "gpu",
        ]


def test_a_node_set_that_runs_stays_whatever_features_others_have() -> None:
    old, new = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    compute, gpu = NodeSetConf("compute", (), since=old), NodeSetConf("gpu", (), since=new)
    running = conf(replace(BASE, node_sets=(compute, gpu)))

    changed = replace(BASE, node_sets=(replace(compute, features=frozenset({"gpu"})), gpu))
    assert render(changed, parse(running)).node_sets == ("compute", "gpu")


def test_there_is_one_default_and_it_does_not_wander() -> None:
    both = replace(
        BASE,
        node_sets=(NodeSetConf("a", partition_words("Default=YES")), NodeSetConf("b", partition_words("Default=YES"))),
    )
    alone = conf(replace(BASE, node_sets=(NodeSetConf("b", partition_words("Default=YES")),)))
    assert render(both).node_sets == ("a",)
    kept = render(both, parse(alone))
    assert kept.node_sets == ("b",)
    assert "PartitionName=all Nodes=ALL Default=NO" in kept.files["slurm.conf"]


def test_a_node_set_whose_text_is_refused_claims_no_default() -> None:
    both = replace(
        BASE,
        node_sets=(
            NodeSetConf("a", partition_words("Nodes=x Default=YES")),
            NodeSetConf("b", partition_words("Default=YES")),
        ),
    )
    rendered = render(both)
    assert rendered.node_sets == ("b",)
    assert [str(one.problem) for one in rendered.refused if one.node_set == "b"] == []


def test_a_partition_may_name_node_sets_that_do_not_exist_yet() -> None:
    rendered = render(replace(BASE, partitions=(PartitionConf("p", ("later", "ALL")),)))
    assert "NodeSet=later Feature=later\n" in rendered.files["slurm.conf"]
    assert rendered.undefined == ("later",)


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        (replace(BASE, partitions=(PartitionConf("p", words=partition_words("x y")),)), "spec.partitions[0].config"),
        (replace(BASE, partitions=(PartitionConf("p"), PartitionConf("P"))), "spec.partitions[0].name"),
        (replace(BASE, partitions=(PartitionConf("all"),)), "spec.partitions[0].name"),
        (replace(BASE, partitions=(PartitionConf("p", nodes=("a b",)),)), "spec.partitions[0].nodes"),
        (replace(BASE, nodes=(StaticNodeConf.of("n", node_words("NodeName=x")),)), "spec.nodes[0].config"),
        (replace(BASE, texts=texts({"gres.conf": "x" * 1_000_000})), "spec.configFiles[gres.conf]"),
    ],
)
def test_problems_of_the_cluster_name_their_field(inputs: ConfInputs, field: str) -> None:
    assert [one.field for one in render(inputs).problems] == [field]


def test_a_partition_that_is_kept_lets_jobs_run_on_and_takes_none() -> None:
    before = parse(
        conf(
            replace(
                BASE,
                node_sets=(NodeSetConf("a", partition_words("Default=YES MaxTime=60")), NodeSetConf("b")),
                partitions=(PartitionConf("p", ("a", "b"), ("n[1,3]",), partition_words("State=DRAIN")),),
                nodes=(StaticNodeConf.of("n[1,3]", node_words("CPUs=2")), StaticNodeConf.of("m")),
            )
        )
    )
    kept = replace(
        BASE,
        node_sets=(NodeSetConf("b"),),
        kept_partitions=tuple(before.partitions[name] for name in ("a", "p")),
        kept_node_sets=("a", "b"),
    )
    rendered = render(kept)
    text = rendered.files["slurm.conf"]
    assert "NodeSet=b Feature=b\nNodeSet=a Feature=a\n" in text
    assert "PartitionName=a Nodes=a Default=NO MaxTime=60 State=INACTIVE\n" in text
    assert "PartitionName=p Nodes=a,b,n[1,3] State=INACTIVE Default=NO\n" in text
    assert "PartitionName=all Nodes=ALL Default=YES" in text
    assert rendered.partitions == {"all": "ALL", "a": "a", "p": "a,b,n[1,3]"}
    assert rendered.node_sets == ("b",)


def test_what_is_wanted_wins_over_what_is_kept() -> None:
    wanted = replace(
        BASE,
        node_sets=(NodeSetConf("a", ()),),
        partitions=(PartitionConf("p"),),
    )
    kept = replace(
        wanted,
        kept_partitions=tuple(Line.of(PartitionName=name, Nodes=nodes) for name, nodes in ("pa", "aa", ("all", "ALL"))),
        kept_node_sets=("a",),
    )
    assert render(kept).files == render(wanted).files


def test_a_rendered_file_is_read_again() -> None:
    text = conf(
        replace(
            BASE,
            node_sets=(
                NodeSetConf("a", partition_words('Default=YES AllowGroups="x y"'), gres="gpu:a100:4,shard:8"),
                NodeSetConf("b"),
            ),
            partitions=(PartitionConf("p", ("later",)),),
            nodes=(StaticNodeConf.of("n[1-2]", node_words("CPUs=2")),),
            extra=parse_lines("Prolog=/one Prolog=/two"),
        )
    )
    found = parse(text)
    assert list(found.partitions) == ["a", "all", "p"]
    assert found.partitions["a"].get("allowgroups") == "x y"
    assert list(found.node_sets) == ["a", "b", "later"]
    assert list(found.nodes) == ["n[1-2]"]
    assert found.value("GresTypes") == "gpu,shard"
    assert found.keys["prolog"] == ("/one", "/two")
    assert all(f"{line}\n" in text for line in (*found.partitions.values(), *found.nodes.values()))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.from_regex(r"[A-Za-z]{1,5}", fullmatch=True), st.text("ab/ ,:", max_size=6)), max_size=5))
def test_words_are_read_as_they_are_written(pairs: list[tuple[str, str]]) -> None:
    words = tuple(Directive(key, value) for key, value in {key.lower(): value for key, value in pairs}.items())
    assert parse_words(" ".join(map(str, words))) == words


def test_homes_are_made_before_other_prologs_run() -> None:
    passwd = {"configMapRef": {"name": "people"}}
    homes = {"claimName": "homes", "mountPath": "/people"}
    scripts = {"a": "#!/bin/sh\n"}

    def rendered(identity: dict[str, Any], **more: Any) -> Rendered:
        spec = {"identity": identity, "prologScripts": scripts, **more}
        return render(ConfInputs.of(Cluster.parse(cluster_object(spec)), ()))

    found = rendered({"passwd": passwd, "homes": homes})
    lines = found.files["slurm.conf"].splitlines()
    assert [line for line in lines if line.startswith("Prolog")] == ["Prolog=homes-prolog", "Prolog=prolog-a"]
    assert 'perl - "/people"' in found.files["homes-prolog"]
    for none in ({"homes": homes}, {"passwd": passwd}, {"passwd": passwd, "homes": {**homes, "create": False}}):
        assert "homes-prolog" not in rendered(none).files
    assert "homes-prolog" in rendered({"homes": {**homes, "create": True}}).files
    taken = rendered({"passwd": passwd, "homes": homes}, configFiles={"homes-prolog": "#!/bin/sh\n"})
    assert [str(one.field) for one in taken.problems] == ["spec.identity.homes.create"]


def test_checks_of_one_nodeset_give_every_slurmd_the_program() -> None:
    def rendered(checks: bool, **more: Any) -> Rendered:
        return render(replace(BASE, node_sets=(NodeSetConf("a"), NodeSetConf("b", checks=checks)), **more))

    found = rendered(checks=True)
    lines = found.files["slurm.conf"].splitlines()
    assert not found.problems
    for line in (
        "Prolog=checks-prolog",
        "Epilog=checks-epilog",
        "HealthCheckProgram=/run/slurm/conf/checks-prolog",
        "HealthCheckInterval=90",
    ):
        assert line in lines
    assert found.files["checks-prolog"] == found.files["checks-epilog"] == programs.program()
    assert programs.program().count(programs.GIVEN_FOLDER) == programs.program().count(programs.STATE_FOLDER) == 1
    assert rendered(checks=False).files == render(replace(BASE, node_sets=(NodeSetConf("a"), NodeSetConf("b")))).files
    theirs = rendered(
        checks=True, extra=parse_lines("HealthCheckProgram=/usr/sbin/nhc\nHealthCheckNodeState=START_ONLY")
    )
    lines = theirs.files["slurm.conf"].splitlines()
    assert [line for line in lines if line.startswith("HealthCheck")] == [
        "HealthCheckProgram=/usr/sbin/nhc",
        "HealthCheckInterval=90",
        "HealthCheckNodeState=START_ONLY",
    ]
    taken = rendered(checks=True, texts=texts({"checks-prolog": "#!/bin/sh\n"}))
    assert [str(one.field) for one in taken.problems] == ["spec.configFiles"]


def test_a_nodeset_whose_text_is_refused_keeps_its_checks() -> None:
    running = parse("NodeSet=a Feature=a\nPartitionName=a Nodes=a\n")
    refused = NodeSetConf("a", partition_words("Nodes=b"), checks=True)

    found = render(replace(BASE, node_sets=(refused,)), running)

    assert [one.node_set for one in found.refused] == ["a"]
    assert "checks-prolog" in found.files


def test_the_program_of_checks_is_not_looked_for_in_images() -> None:
    """slurmctld brings it."""
    found = render(replace(BASE, node_sets=(NodeSetConf("a", checks=True),)))

    assert programs_looked_for(found.lines, parse("")) == Programs()


def test_all_keys_that_are_the_operators_are_named_at_once() -> None:
    words = parse_lines("ClusterName=a\nSlurmUser=root\nMinJobAge=7\nAuthType=auth/munge\n")
    assert isinstance(words, tuple)
    reason = check_extra(words, ()) or ""
    assert all(key in reason for key in ("ClusterName", "SlurmUser", "AuthType"))
    assert "MinJobAge" not in reason
    problem = parse_words("Nodes=a MaxTime=1 PartitionName=b", forbidden=("PartitionName", "Nodes"))
    assert isinstance(problem, TextProblem)
    assert "Nodes=, PartitionName=, which the operator writes" in problem.reason
