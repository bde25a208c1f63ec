"""The documentation site has every page in its navigation, and no link of it leads nowhere; no generator is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hack.documents.site.links import anchors, targets
from hack.documents.site.navigation import Part, parts, problems, site
from hack.documents.site.stage import content, navigation, staged, write

INDEX_TEXT = """\
# All pages

## Users

| for | read |
|---|---|
| jobs | [jobs.md](jobs.md) |

## Developers

### Begin

| for | read |
|---|---|
| all | [a](../CONTRIBUTING.md), [b](development/b.md) |
"""


def repository(root: Path, **pages: str) -> Path:
    """A repository with an index, a README, and pages without their ending."""
    texts = {"README": "# Home\n", "docs/README": INDEX_TEXT, "docs/jobs": "# Jobs\n", "CONTRIBUTING": "# C\n"}
    for name, text in {**texts, "docs/development/b": "# B `code`\n", **pages}.items():
        path = root / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_no_page_is_missing_and_no_link_leads_nowhere() -> None:
    assert not list(problems())


def test_every_reader_has_a_part() -> None:
    assert [part.title for part in site().parts] == ["Users of Slurm", "Administrators", "Developers", "Reference"]


def test_the_parts_of_an_index() -> None:
    begin = Part("Begin", ["CONTRIBUTING.md", "docs/development/b.md"])
    assert list(parts(INDEX_TEXT)) == [Part("Users", ["docs/jobs.md"]), Part("Developers", [], [begin])]


@pytest.mark.parametrize(
    ("pages", "wrong"),
    [
        ({}, []),
        ({"docs/new": "# New"}, ["docs/README.md: docs/new.md is not in it"]),
        ({"docs/README": f"{INDEX_TEXT}| a | [x](jobs.md) |"}, ["docs/README.md: docs/jobs.md is in it 2 times"]),
        ({"docs/README": f"{INDEX_TEXT}| a | [x](no.md) |"}, ["docs/README.md:16: docs/no.md is no file"]),
        (
            {"changes": "# N", "docs/jobs": "# J\n[n](../changes.md)"},
            ["docs/jobs.md:2: changes.md is not in docs/README.md"],
        ),
        ({"docs/jobs": "# J\n[n](a.yaml)"}, ["docs/jobs.md:2: docs/a.yaml is no file"]),
        ({"docs/jobs": "# J\n[n](development/b.md#b-code)"}, []),
        ({"docs/jobs": "# J\n[n](#k)"}, ["docs/jobs.md:2: docs/jobs.md has no heading #k"]),
        (
            {"docs/jobs": "# J\n\n| a |\n|---|\n| b |\n## K"},
            ["docs/jobs.md:6: an empty line is missing before this one"],
        ),
        (
            {"docs/jobs": "# J\n\nText:\n- a\n- b\n\n  c\n- d"},
            ["docs/jobs.md:4: an empty line is missing before this one"],
        ),
        ({"docs/jobs": "# J\n`[n](#k)`\n```\n[n](#k)\n```"}, []),
    ],
)
def test_what_is_wrong_with_a_site_is_told(pages: dict[str, str], wrong: list[str], tmp_path: Path) -> None:
    assert list(problems(repository(tmp_path, **pages))) == wrong


def test_links_lead_to_where_pages_lie_in_the_site_and_have_titles_for_names(tmp_path: Path) -> None:
    text = "# B\n[c](../../CONTRIBUTING.md#x) ![p](../p.png) [i](../README.md) [jobs.md](../jobs.md) `[c](../C.md)` [o](https://a/b.md)"
    home = "[j](docs/jobs.md) [docs/jobs.md](docs/jobs.md) [a](#here)"
    built = site(repository(tmp_path, README=home, **{"docs/development/b": text}))
    assert content("docs/development/b.md", built) == (
        "# B\n[c](../CONTRIBUTING.md#x) ![p](../p.png) [i](../pages.md) [Jobs](../jobs.md) `[c](../C.md)` [o](https://a/b.md)\n"
    )
    assert content("README.md", built) == "[j](jobs.md) [Jobs](jobs.md) [a](#here)\n"


def test_the_site_that_is_laid_out_is_whole(tmp_path: Path) -> None:
    """Each link of the pages as the generator reads them, and each entry of its navigation, is a file there."""
    built = site()
    write(built, tmp_path / "pages", tmp_path / "mkdocs.yml")
    written = {
        path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*") if path.is_file()
    }
    assert {staged(page) for page in built.texts} | {staged(path) for path in built.files} == written
    for page in built.texts:
        text = (tmp_path / "pages" / staged(page)).read_text(encoding="utf-8")
        for _, path, anchor_name in targets(staged(page), text):
            assert path in written
            if anchor_name and path.endswith(".md"):
                assert anchor_name in anchors((tmp_path / "pages" / path).read_text(encoding="utf-8"))
    assert "boost: 0.2" in (tmp_path / "pages" / "api-reference.md").read_text(encoding="utf-8")[:40]
    assert (tmp_path / "pages" / "install.md").read_text(encoding="utf-8").startswith("# ")
    settings = yaml.safe_load((tmp_path / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["nav"] == navigation(built)
    assert (tmp_path / settings["INHERIT"]).resolve().name == "mkdocs.yml"


def test_the_navigation_has_titles_without_marks(tmp_path: Path) -> None:
    built = site(repository(tmp_path))
    assert navigation(built)[1:] == [
        {"Users": [{"Jobs": "jobs.md"}]},
        {"Developers": [{"Begin": [{"C": "CONTRIBUTING.md"}, {"B code": "development/b.md"}]}]},
    ]
