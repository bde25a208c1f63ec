"""Somebody who reads pages of the documentation and does what they say, for tests that follow them.

What becomes of each block is in `tests.support.documents`; the Kubernetes and the operator are those of the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hack.localkube.errors import LocalKubeError
from hack.localkube.kubectl import wait_for
from tests.support.documents import Action, Block, agrees, blocks
from tests.support.shell import Shell
from tests.support.slurm_in_kubernetes import PATIENCE


@dataclass
class Reader:
    """Somebody with a shell in a copy of the repository, who reads pages and does what they say."""

    folder: Path
    shell: Shell
    namespaces: Mapping[str, str] = field(default_factory=dict)
    """Namespaces of pages for which the reader uses others, that are there already."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Images of pages for which the reader, who cannot pull any, uses others."""
    done: set[str] = field(default_factory=set)
    """Places of the blocks that were followed."""
    installed: set[str] = field(default_factory=set)
    """Blocks that have installed something: another page that begins in the same way does not install it again."""

    def follow(self, page: str, *headings: str) -> None:
        """Do what a page says, or what it says under some headings; they have to be there."""
        found = blocks(page)
        assert set(headings) <= {block.heading for block in found}
        for block, following in zip(found, [*found[1:], None], strict=True):
            if not headings or block.heading in headings:
                shown = following if following is not None and following.action is Action.SHOWS else None
                self._do(block, shown)

    def _do(self, block: Block, shown: Block | None) -> None:
        if block.action is Action.FILE:
            file = self.folder / block.words
            file.parent.mkdir(parents=True, exist_ok=True)
            text = block.text
            for theirs, ours in self.images.items():
                text = text.replace(f"image: {theirs}\n", f"image: {ours}\n")
            file.write_text(text)
        elif block.action is Action.REPEAT and shown is not None:
            self._repeat(block, shown)
        elif block.action is Action.TERMINAL:
            self.shell.type(self._own(block.text), block.words, block.place, PATIENCE)
        elif block.action is Action.RUN and block.text in self.installed:
            pass
        elif block.action is Action.RUN and block.language == "sh":
            if block.text.startswith("helm install "):
                self.installed.add(block.text)
            printed = self.shell.run(self._own(block.text), block.place, PATIENCE)
            assert shown is None or agrees(shown, printed), disagreement(shown, printed)
        else:
            return
        self.done.add(block.place)

    def _own(self, commands: str) -> str:
        """The commands in the reader's own namespaces."""
        for theirs, ours in self.namespaces.items():
            commands = commands.replace(f"-n {theirs} ", f"-n {ours} ")
            commands = commands.replace(f"kubectl create namespace {theirs}\n", f"echo namespace/{theirs} created\n")
        return commands

    def _repeat(self, block: Block, shown: Block) -> None:
        printed = ""

        def is_shown() -> bool:
            nonlocal printed
            printed = self.shell.run(f"(\n{self._own(block.text)}\n) || true", block.place, PATIENCE)
            return agrees(shown, printed)

        try:
            wait_for(block.place, is_shown, PATIENCE)
        except LocalKubeError as error:
            raise AssertionError(disagreement(shown, printed)) from error


def disagreement(shown: Block, printed: str) -> str:
    """What a page shows, and what was printed."""
    return f"{shown.place}: shows\n{shown.text}\nbut printed was\n{printed}"
