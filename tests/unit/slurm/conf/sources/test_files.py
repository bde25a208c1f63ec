"""The user's own files: what is rejected, in which field, and with which message."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.errors import Problem
from slinky_operator.slurm.conf import TextSource, names_of_sources, render
from slinky_operator.slurm.conf.sources.gather import LARGEST
from tests.unit.slurm.conf.goldens import Case


def problems(spec: dict[str, Any], texts: dict[str, dict[str, str]] | None = None) -> list[tuple[str, str]]:
    return [(one.field, one.reason) for one in Case(spec, texts=texts or {}).render().problems]


def files(**texts: str) -> dict[str, Any]:
    return {"configFiles": {name.replace("_conf", ".conf"): text for name, text in texts.items()}}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Include /etc/passwd", "without a path"),
        ("  INCLUDE\t/etc/slurm-keys/slurm.key", "without a path"),
        ("Incl\\\nude ../x", "without a path"),
        ("Include /etc/slurm/more.conf", "without a path"),
        ("Include nowhere.conf", "not given"),
        ("Name=gpu\x00Count=1", "line 1"),
        ("a\nb\x1b[0m", "line 2"),
    ],
)
def test_a_file_reads_nothing_that_is_not_given(text: str, word: str) -> None:
    ((field, reason),) = problems(files(gres_conf=text))
    assert field == "spec.configFiles[gres.conf]"
    assert word in reason


@pytest.mark.parametrize(
    "text", ["Include other.conf", "# Include /etc/passwd", "Includes /etc/passwd", "Name=x # Include /y", "a\r\nb\tc"]
)
def test_a_file_may_include_its_neighbours(text: str) -> None:
    assert not problems(files(gres_conf=text, other_conf=""))


def test_what_is_included_is_looked_at_too() -> None:
    ((field, _),) = problems(files(gres_conf="Include other", other="Include /etc/passwd"))
    assert field == "spec.configFiles[other]"


def test_other_languages_have_other_words() -> None:
    assert not problems({"configFiles": {"job_submit.lua": "include /etc/passwd", "topology.yaml": "include /x"}})


@pytest.mark.parametrize(
    ("included", "fine"),
    [
        ("/etc/slurm/plugstack.conf.d/*", True),
        ("/usr/lib/slurm/*.conf", True),
        ("/etc/slurm/../slurm-keys/slurm.key", False),
        ("/proc/self/root/etc/slurm-keys/slurm.key", False),
        ("plugstack.d/x", False),
    ],
)
def test_plugins_may_be_those_of_the_image(included: str, *, fine: bool) -> None:
    assert (not problems(files(plugstack_conf=f"include {included}"))) == fine


@pytest.mark.parametrize("name", ["slurm.conf", "slurmdbd.conf", ".hidden", "-rf", "a" * 251])
def test_names_from_config_maps_are_looked_at(name: str) -> None:
    ((field, reason),) = problems({"configFileRefs": [{"name": "x"}, {"name": "mine"}]}, {"x": {}, "mine": {name: ""}})
    assert field == "spec.configFileRefs[1]"
    assert reason.startswith("ConfigMap mine: ")


def test_a_config_map_that_does_not_exist_is_told_apart() -> None:
    case = Case({"configFileRefs": [{"name": "here"}], "epilogScriptRefs": [{"name": "gone"}]}, texts={"here": {}})
    rendered = case.render()
    assert rendered.problems == rendered.missing == (Problem("spec.epilogScriptRefs[0]", "there is no ConfigMap gone"),)
    assert names_of_sources(case.cluster().spec) == ("here", "gone")


def test_what_is_no_text_is_named() -> None:
    case = Case({"configFileRefs": [{"name": "x"}]})
    source = TextSource("x", exists=True, texts={"gres.conf": ""}, not_text=("logo.png",))
    ((field, reason),) = [(one.field, one.reason) for one in render(case.inputs({"x": source})).problems]
    assert (field, reason) == ("spec.configFileRefs[0]", "ConfigMap x: logo.png is not text in UTF-8")


def test_a_file_is_given_once() -> None:
    found = problems(
        {
            "configFiles": {"gres.conf": "", "prolog-a": ""},
            "configFileRefs": [{"name": "x"}],
            "prologScripts": {"a": "#!/bin/sh\n"},
        },
        {"x": {"gres.conf": ""}},
    )
    assert found == [
        ("spec.configFileRefs[0]", "ConfigMap x: gres.conf is given by spec.configFiles[gres.conf] already"),
        ("spec.prologScripts[a]", "prolog-a is given by spec.configFiles[prolog-a] already"),
    ]


def test_too_much_names_the_biggest() -> None:
    ((field, reason),) = problems(
        {"configFiles": {f"f{number}": "x" * 200_000 for number in range(4)}, "configFileRefs": [{"name": "x"}]},
        {"x": {"big": "ü" * 150_000}},
    )
    assert field == "spec.configFileRefs[0]"
    assert "big has 300003 bytes" in reason
    assert str(LARGEST) in reason


def test_a_topology_needs_its_file() -> None:
    ((field, reason),) = problems({"extraConf": "TopologyPlugin=topology/Tree"})
    assert (field, "topology.conf" in reason) == ("spec.extraConf", True)
    assert not problems({"extraConf": "TopologyPlugin=topology/flat"})
    assert not problems({"extraConf": "TopologyPlugin=topology/tree", **files(topology_conf="SwitchName=s")})
