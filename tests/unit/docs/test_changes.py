"""Files of changes can be joined, and CHANGELOG.md is as that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.release.changes import CHANGELOG, FOLDER, UNRELEASED, NoSection, entries, fragments, released, section

TEXT = f"# Changelog\n\n{UNRELEASED}\n## 0.1.0\n\n### Added\n\n- **Old**: text.\n"


def test_the_changes_since_the_last_release_can_be_joined() -> None:
    text = CHANGELOG.read_text(encoding="utf-8")
    joined = released(text, "9.9.9", fragments(FOLDER))
    assert joined.index("## Unreleased") < joined.index("## 9.9.9") < joined.index("## 0.1.0")
    # Nobody has written a change below the heading.
    assert text.split(UNRELEASED)[1].lstrip().startswith("## ")


def test_changes_are_sorted_by_kind_and_name(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("What this is.")
    (tmp_path / "b.fixed.md").write_text("**B**: mended.\n")
    (tmp_path / "c.added.md").write_text("**C**: new,\nin two lines.\n")
    (tmp_path / "a.added.md").write_text("**A**: new.\n")
    assert released(TEXT, "0.2.0", fragments(tmp_path)) == (
        f"# Changelog\n\n{UNRELEASED}\n## 0.2.0\n\n"
        "### Added\n\n- **A**: new.\n- **C**: new,\n  in two lines.\n\n"
        "### Fixed\n\n- **B**: mended.\n\n"
        "## 0.1.0\n\n### Added\n\n- **Old**: text.\n"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cancel.md", "**A**: b."),
        ("cancel.new.md", "**A**: b."),
        ("cancel.added.txt", "**A**: b."),
        ("cancel.added.md", "a"),
        ("cancel.added.md", "**A**: b.\n\nc"),
        ("cancel.added.md", ""),
    ],
)
def test_a_file_that_cannot_be_joined_is_told(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=name):
        fragments(tmp_path)


def test_a_change_below_the_heading_is_told() -> None:
    with pytest.raises(ValueError, match="Unreleased"):
        released("# Changelog\n\n## Unreleased\n\n- **A**: b.\n", "0.2.0", {})


def test_a_section_gives_the_notes_of_a_release_and_its_changes() -> None:
    joined = released(TEXT, "0.2.0", {"a.added.md": "**A**: new,\nin two lines.", "b.fixed.md": "**B**: mended."})
    notes = section(joined, "0.2.0")
    assert notes == "### Added\n\n- **A**: new,\n  in two lines.\n\n### Fixed\n\n- **B**: mended.\n"
    assert list(entries(notes)) == [("added", "**A**: new, in two lines."), ("fixed", "**B**: mended.")]
    assert section(joined, "0.1.0") == "### Added\n\n- **Old**: text.\n"
    with pytest.raises(NoSection, match=r"has no section 0\.2\b"):
        section(joined, "0.2")
