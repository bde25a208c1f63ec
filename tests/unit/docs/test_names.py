"""All pages speak of the same namespaces, and of the same way to upgrade a release."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from hack.localkube.paths import PROJECT
from tests.support.documents import blocks

PAGES = sorted(str(page.relative_to(PROJECT)) for page in (PROJECT / "README.md", *(PROJECT / "docs").glob("**/*.md")))

NAMESPACES = {"slurm", "slurm-operator", "physics"}
"""Of Slurm, of the operator, and of people who submit SlurmJobs; docs/install.md says so."""

OF_OTHERS = {
    "docs/add-a-user.md": {"hpc"},
    "docs/from-slinky.md": {"slinky", '"$namespace"'},
    "docs/install.md": {"lab"},
    "docs/quick-start.md": {"lab"},
}
"""Of the README's whole site, which a page goes on with; of Slinky's own releases, and of all NodeSets in a loop; of a
release that helm gives its namespace."""

WITHOUT = re.compile(
    r"(-A|--all-namespaces)\b"
    r"|kubectl (create|delete) namespace|kubectl (un)?cordon|kubectl \w+ (nodes?|crd)\b|crd/|/crds?/"
    r"|config/(crd|default)"
    r"|kubectl (apply --filename|apply -k my-operator|get pods -A|kustomize)"
)
"""Commands that need no namespace, or whose file names it."""


def commands(page: str) -> Iterator[str]:
    """Commands of kubectl and helm, each on one line."""
    for block in blocks(page):
        if block.language == "sh":
            for line in block.text.replace("\\\n", " ").splitlines():
                if re.match(r"\s*(kubectl|helm) ", line):
                    yield line.strip()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_uses_the_namespaces_of_all_pages_or_those_that_it_creates(page: str) -> None:
    known = NAMESPACES | OF_OTHERS.get(page, set())
    for command in commands(page):
        known |= set(re.findall(r"create namespace (\S+)", command))
        named = re.search(r"(?:-n|--namespace)[ =](\S+)", command)
        if named is None:
            assert WITHOUT.search(command), f"{page}: no namespace: {command}"
        else:
            assert named[1] in known or "--create-namespace" in command, f"{page}: {command}"


@pytest.mark.parametrize("page", PAGES)
def test_kubectl_watches_one_kind_at_a_time(page: str) -> None:
    """It refuses to follow several kinds, or a category such as ``slurm``."""
    watched = [command for command in commands(page) if re.search(r" (--watch|-w)\b", command)]
    assert [command for command in watched if re.search(r" get (\S+,\S+|slurm|all)\b", command)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_upgrade_of_a_release_keeps_values_and_takes_new_defaults(page: str) -> None:
    """``--reuse-values`` of an older release lacks the values that are new in a chart."""
    upgrades = [command for command in commands(page) if command.startswith("helm upgrade")]
    assert [command for command in upgrades if "--reset-then-reuse-values" not in command] == []


def test_crds_are_applied_before_each_upgrade_of_the_operator_and_of_the_charts_of_jobs() -> None:
    """Helm never upgrades CRDs, unless they are objects of the release."""
    found = [command for command in commands("docs/install.md") if "helm upgrade" in command or "/crds/" in command]
    told = [command for command in found if "crds.upgrade=true" not in command]
    assert len(told) == len(found) - 1
    upgrades = {command.split()[2]: told.index(command) for command in told if command.startswith("helm upgrade")}
    del upgrades["lab"]  # of the chart `slurm`, which has no CRDs
    assert set(upgrades) == {"slurm-operator", "slurm-jobs", "slurm-sylabs-jobs"}
    for chart, place in upgrades.items():
        assert f"--force-conflicts -f helm/{chart}/crds/" in told[place - 1]
