"""
Options and their values in the words of a script, found as ``getopt_long`` finds them for sbatch.

``--mem=4G``, ``--mem 4G``, ``-N2``, ``-N 2``, ``-Hs``, ``--part=x`` where only one option begins so. A value may stand
in the next line. What an option does is left to :mod:`slurm_client.notation.sbatch.table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from slurm_client.errors import InvalidDirective

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slurm_client.notation.sbatch.lines import Word

MOST = 4096
"""Most options of one component; many letters are one word. sbatch has no such bound."""

Takes = Literal["none", "value", "maybe"]
"""Whether an option takes a value; ``maybe`` only after an equals sign, or joined to its letter."""


@dataclass(frozen=True, slots=True)
class Directive:
    """
    One option in a script.

    Parameters
    ----------
    option
        Its full name with dashes, e.g. ``--nodes``.
    value
        As it was written, without quotes; ``None`` for an option without one.
    line
        Number of its line, from 1 on; 0 for an option that is in no script.
    """

    option: str
    value: str | None
    line: int

    def refused(self, reason: str) -> InvalidDirective:
        """Return the error for this option."""
        return InvalidDirective(reason, option=self.option, line=self.line)


def directives(
    words: Sequence[Word], takes: Mapping[str, Takes], letters: Mapping[str, str], same: Mapping[str, str]
) -> Iterator[Directive]:
    """
    Give the options of these words in their order.

    Parameters
    ----------
    words
        All words of one component.
    takes
        Names of all options, without dashes.
    letters
        Names by their letters.
    same
        Names that are others for the same: ``tasks-per-node`` of ``ntasks-per-node``.

    Raises
    ------
    InvalidDirective
        For a word that is no option, for an option that is unknown, ambiguous, or lacks its value, and for more than
        :data:`MOST` options.
    """
    index = count = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.text == "--" and index == len(words):
            return
        if word.text == "--" or not word.text.startswith("-") or word.text == "-":
            shown = words[index] if word.text == "--" else word
            raise InvalidDirective(f"{shown.text[:60]!r} is no option; options begin with - or --", line=shown.line)
        found = iter((_long(word, takes, same),)) if word.text.startswith("--") else _short(word, takes, letters)
        for name, value in found:
            count += 1
            if count > MOST:
                raise InvalidDirective(f"there are more than {MOST} options", line=word.line)
            if takes[name] == "value" and value is None:
                if index == len(words):
                    raise InvalidDirective("needs a value", option=f"--{name}", line=word.line)
                value = words[index].text  # noqa: PLW2901 - the value is the next word
                index += 1
            yield Directive(f"--{same.get(name, name)}", value, word.line)


def _long(word: Word, takes: Mapping[str, Takes], same: Mapping[str, str]) -> tuple[str, str | None]:
    written, equals, joined = word.text[2:].partition("=")
    name = _named(written, takes, same, word.line)
    if equals and takes[name] == "none":
        raise InvalidDirective("takes no value", option=f"--{name}", line=word.line)
    return name, joined if equals else None


def _short(word: Word, takes: Mapping[str, Takes], letters: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Give the options of one word of letters; the rest of the word is the value of the first that takes one."""
    for index, letter in enumerate(word.text[1:], start=2):
        if letter not in letters:
            raise InvalidDirective("sbatch has no such option", option=f"-{letter}", line=word.line)
        name = letters[letter]
        if takes[name] == "none":
            yield name, None
            continue
        yield name, word.text[index:] or None
        return


def _named(written: str, takes: Mapping[str, Takes], same: Mapping[str, str], line: int) -> str:
    """Return the one option that is meant by a name or by the beginning of one."""
    if written in takes:
        return written
    fitting = [name for name in takes if name.startswith(written)] if written else []
    if not fitting:
        raise InvalidDirective(
            "sbatch has no such option, but for one of a site's SPANK plugin, which cannot be sent to slurmrestd",
            option=f"--{written[:40]}",
            line=line,
        )
    if len({same.get(name, name) for name in fitting}) > 1:
        raise InvalidDirective(f"may be any of --{', --'.join(fitting)}", option=f"--{written[:40]}", line=line)
    return fitting[0]
