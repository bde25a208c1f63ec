"""Every block of commands in the user documentation is run by a test, or says why not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.documents import RUNNING, Action, Block, agrees, blocks, problems
from tests.support.shell import CommandsFailed, Shell

PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("quick-start", "concepts", "install", "first-job", "kubernetes-nodes", "configuration", "tokens")
    ),
    *(f"docs/{name}.md" for name in ("add-a-user", "bridge", "from-slinky", "identity", "login", "node-labels")),
    *(f"slurm_client/{name}.md" for name in ("README", "docs/guide", "docs/cookbook")),
]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_becomes_of_it(page: str) -> None:
    assert not problems(blocks(page))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_can_be_read(page: str, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.language == "sh":
            script = tmp_path / "block.sh"
            script.write_text(block.text)
            checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
            assert not checked.stderr, block.place
        if block.language == "yaml":
            assert all(isinstance(one, dict) for one in yaml.safe_load_all(block.text)), block.place


PAGE = """\
# Title

<!-- run -->

```sh
echo 1
```

It prints

<!-- shows, varying: 7 12s -->
```text
job 7
age  12s
```

## Next

<!-- file: a/b.yaml -->
```yaml
a: 1
```

<!-- not run: there is no registry -->
```sh
docker push
```

Words between a comment and a block end what it says.
<!-- run -->
Such as these.

```sh
echo 2
```
"""


def test_blocks_are_read_with_their_place() -> None:
    found = blocks("page.md", PAGE)
    assert [(one.line, one.heading, one.language, one.action) for one in found] == [
        (5, "Title", "sh", Action.RUN),
        (12, "Title", "text", Action.SHOWS),
        (20, "Next", "yaml", Action.FILE),
        (25, "Next", "sh", Action.NOT_RUN),
        (33, "Next", "sh", Action.NONE),
    ]
    assert found[0].text == "echo 1\n"
    assert [one.words for one in found] == ["", "7 12s", "a/b.yaml", "there is no registry", ""]
    assert problems(found) == ["page.md:33: it says neither `run` nor `not run: reason`"]


@pytest.mark.parametrize(
    ("marks", "wrong"),
    [
        (["ran"], ["page.md:2: `ran` is not understood"]),
        (["not run: "], ["page.md:2: `not run: ` is not understood"]),
        (["run", "shows"], []),
        (["run in a terminal, typing: exit"], []),
        (["run until it shows", "shows"], []),
        (["shows"], ["page.md:2: shows what no block before it prints"]),
        (["run until it shows"], ["page.md:2: no block shows what it waits for"]),
        (["run until it shows", "run"], ["page.md:2: no block shows what it waits for"]),
    ],
)
def test_wrong_marks_are_told(marks: list[str], wrong: list[str]) -> None:
    page = "".join(f"<!-- {mark} -->\n```sh\ntrue\n```\n" for mark in marks)
    assert problems(blocks("page.md", page)) == wrong


@pytest.mark.parametrize(
    ("printed", "right"),
    [
        ("NAME  AGE\nx   3m\nlast 1\n", True),
        ("NAME AGE\n\nx 3m\nbetween\nmore of it\nlast 1", True),
        ("NAME AGE\ny 3m\nlast 1\n", False),
        ("NAME AGE\nx 3m 4m\nlast 1\n", False),
        ("x 3m\nlast 1\n", False),
        ("NAME AGE\nx 3m\nlast 1\nand more\n", False),
        ("NAME AGE\nx 3m\nlast 12\n", False),
    ],
)
def test_what_is_printed_is_compared_word_by_word(printed: str, right: bool) -> None:
    shown = Block("page.md", 1, "", "text", "NAME  AGE\nx     12s\n…\nlast  1\n", Action.SHOWS, "12s")
    assert agrees(shown, printed) is right


def shell(folder: Path) -> Shell:
    return Shell(folder, folder, {"PATH": "/usr/bin:/bin"})


def test_a_shell_remembers(tmp_path: Path) -> None:
    with shell(tmp_path) as bash:
        bash.run("word=one\nmkdir here; cd here\ntail -f /dev/null &\n", "page.md:1", 30)
        assert bash.run("echo $word; pwd; jobs -r", "page.md:2", 30).split()[:2] == ["one", str(tmp_path / "here")]


def test_commands_that_fail_are_told_with_what_they_printed(tmp_path: Path) -> None:
    with shell(tmp_path) as bash, pytest.raises(CommandsFailed, match=r"page\.md:7: failed:(?s:.*)No such file"):
        bash.run("cat nothing | sort\necho not here", "page.md:7", 30)


def test_commands_that_do_not_end_are_told(tmp_path: Path) -> None:
    with shell(tmp_path) as bash, pytest.raises(CommandsFailed, match="not ended after 0 s"):
        bash.run("tail -f /dev/null", "page.md:7", 0.1)


def test_a_shell_in_a_terminal_is_typed_into(tmp_path: Path) -> None:
    with shell(tmp_path) as bash:
        opened = "test -t 0 && PS1='here$ ' bash --norc --noprofile"
        assert "\nend\r\n" in bash.type(opened, "printf 'e%sd\\n' n; exit", "page.md:1", 30)
        with pytest.raises(CommandsFailed, match=r"page\.md:2: failed"):
            bash.type(opened, "exit 3", "page.md:2", 30)


def test_commands_of_readers_are_among_them() -> None:
    """What is not run is the exception."""
    found = [block for page in PAGES for block in blocks(page) if block.language == "sh"]
    assert sum(block.action in RUNNING for block in found) > 2 * sum(block.action is Action.NOT_RUN for block in found)
