"""The text of the ConfigMap: that of resource-daemon is read, and what is wrong is named with its line."""

from __future__ import annotations

import pytest
import yaml

from hack.packaging.render import ROOT
from slinky_operator.node_labels.config_format import LONGEST_TEXT, ConfigError, parse
from slinky_operator.node_labels.model import WantedLabels
from tests.support.documents import blocks

AS_DOCUMENTED = """
worker-1:
  slurm_local: http://localhost:8080
  labels:
    nvidia-gpu: a100
    cuda: 12
    infiniband: true
  resources:
    gpu: 4
worker-2.example.com:
  slurm_ssh: login.example.com:22
worker-3:
"""


def test_the_format_of_resource_daemon_is_read() -> None:
    assert parse(AS_DOCUMENTED) == {
        "worker-1": WantedLabels(
            {
                "workload-manager": "slurm",
                "integration-type": "local",
                "nvidia-gpu": "a100",
                "cuda": "12",
                "infiniband": "true",
            },
            {"gpu": 4},
        ),
        "worker-2.example.com": WantedLabels({"workload-manager": "slurm", "integration-type": "ssh"}),
        "worker-3": WantedLabels({"workload-manager": "slurm"}),
    }


def test_the_example_of_the_page_is_read() -> None:
    page = "docs/node-labels.md"
    (example,) = [one for one in blocks(page, (ROOT / page).read_text()) if one.language == "yaml"]
    found = parse(yaml.safe_load(example.text)["data"]["config"])
    common = {"workload-manager": "slurm"}
    labels = {**common, "integration-type": "local", "nvidia-gpu": "a100", "infiniband": "yes"}
    assert found == {"worker-1": WantedLabels(labels, {"gpu": 4}), "worker-2": WantedLabels(common)}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null\n"])
def test_an_empty_text_names_no_node(text: str) -> None:
    assert parse(text) == {}


def test_slurm_local_wins_and_a_label_of_ones_own_wins_over_both() -> None:
    both = parse("a: {slurm_ssh: 'h:22', slurm_local: 'http://h'}")["a"]
    assert both.labels["integration-type"] == "local"
    own = parse("a: {slurm_local: 'http://h', labels: {integration-type: other, workload-manager: none}}")["a"]
    assert own.labels == {"integration-type": "other", "workload-manager": "none"}


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ("- a\n", "line 1", "no mapping"),
        ("a: [", "", "no YAML"),
        ("a: {}\nb: &x {}\na: *x\n", "a (line 3)", "twice"),
        ("a:\n  label: {}\n", "a.label (line 2)", "known are labels, resources, slurm_local, slurm_ssh"),
        ("A_b: {}\n", "A_b (line 1)", "not a name of a Kubernetes Node"),
        ("a:\n  labels:\n    x y: z\n", "a.labels.x y (line 3)", "not a name"),
        ("a:\n  labels:\n    slurm.sylabs.io/x: z\n", "a.labels.slurm.sylabs.io/x (line 3)", "not a name"),
        ("a:\n  labels:\n    x: two words\n", "a.labels.x (line 3)", "not a label value"),
        ("a:\n  labels:\n    x: {}\n", "a.labels.x (line 3)", "not a text"),
        (f"a:\n  labels:\n    x: {'v' * 64}\n", "a.labels.x (line 3)", "not a label value"),
        (f"a:\n  labels:\n    {'n' * 64}: x\n", "a.labels.n", "not a name"),
        ("a:\n  labels: {x: 1, x: 2}\n", "a.labels.x (line 2)", "twice"),
        ("a:\n  labels: [x]\n", "a.labels (line 2)", "no mapping"),
        ("a:\n  labels: {[x]: 1}\n", "a.labels (line 2)", "a key that is not a text"),
        ("a:\n  resources: {gpu: -1}\n", "a.resources.gpu (line 2)", "whole number"),
        ("a:\n  resources: {gpu: 1.5}\n", "a.resources.gpu (line 2)", "whole number"),
        ("a:\n  resources: {gpu: '4'}\n", "a.resources.gpu (line 2)", "without quotes"),
        ("a:\n  resources: {gpu: 010}\n", "a.resources.gpu (line 2)", "whole number"),
        ("a:\n  resources: {gpu: 1000000000000}\n", "a.resources.gpu (line 2)", "whole number"),
        ("a:\n  slurm_local: [x]\n", "a.slurm_local (line 2)", "not a text"),
        ("a: &a {labels: {x: y}}\nb:\n  <<: *a\n", "b.<< (line 1)", "not a field"),
        ("a:\n  labels: {" + ", ".join(f"l{n}: x" for n in range(65)) + "}\n", "a.labels (line 2)", "more than 64"),
        ("a:\n  resources: {" + ", ".join(f"l{n}: 1" for n in range(33)) + "}\n", "a.resources", "more than 32"),
        ("[" * 50_000, "", "nested too deeply"),
        ("#" * (LONGEST_TEXT + 1), "", "characters"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, field: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert field in caught.value.field
    assert reason in caught.value.reason
    assert len(str(caught.value)) < 800


def test_a_text_that_merges_itself_takes_no_time() -> None:
    lines = ["a0: &a0 {labels: {x: y}}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 60)]
    with pytest.raises(ConfigError, match="not a field"):
        parse("\n".join(lines))
