"""
The words of the ``#SBATCH`` lines of a script, cut as sbatch cuts them (``src/sbatch/opt.c`` of 24.11 and 26.05).

Lines are read up to the first that is neither empty nor a comment. Words are cut at blanks; quotes and backslashes keep
them together, and an unquoted ``#`` begins a comment. Where sbatch drops words without saying so, they are refused.
What the words mean is left to :mod:`slurm_client.notation.sbatch.options`.
"""

from __future__ import annotations

from dataclasses import dataclass

from slurm_client.errors import InvalidDirective

LARGEST = 4 * 1024 * 1024
"""Most bytes of a script, Slurm's default of ``max_script_size``."""

MOST = 4096
"""Most words of one component."""

LONGEST = 65_536
"""Most characters of a word. sbatch has no such bound; reading a value takes time that grows with its length."""

MOST_COMPONENTS = 128
"""Most components of a heterogeneous job, as for sbatch."""

_BLANKS = " \t\v\f\r"
_MAGIC = "#SBATCH"
_OLD_MAGIC = "#SLURM"
_SEPARATORS = frozenset({"hetjob", "packjob"})


@dataclass(frozen=True, slots=True)
class Word:
    """One word, and the number of the line that it begins in, from 1 on."""

    text: str
    line: int


def components(script: str) -> tuple[tuple[Word, ...], ...]:
    """
    Return the words of each component of a script: one, and one more for each ``#SBATCH hetjob``.

    Raises
    ------
    InvalidDirective
        For what is no script, and for lines that sbatch refuses or reads in part.
    """
    _check(script)
    found: list[list[Word]] = [[]]
    for number, line in enumerate(script.split("\n"), start=1):
        rest = _directives_of(line)
        if rest is None:
            if line.strip(_BLANKS) and not line.strip(_BLANKS).startswith("#"):
                break
            continue
        words = _cut(rest, number)
        separators = [word for word in words if word.text.lower() in _SEPARATORS]
        if separators and len(words) > 1:
            raise InvalidDirective(
                f"{separators[0].text!r} must stand alone in its line: sbatch drops the words after it", line=number
            )
        if separators:
            found.append([])
        else:
            found[-1] += words
        if len(found[-1]) > MOST:
            raise InvalidDirective(f"there are more than {MOST} words", line=number)
        if len(found) > MOST_COMPONENTS:
            raise InvalidDirective(f"there are more than {MOST_COMPONENTS} components", line=number)
    return tuple(map(tuple, found))


def _check(script: str) -> None:
    """Refuse what sbatch takes for no script."""
    if len(script) > LARGEST or len(script.encode(errors="surrogateescape")) > LARGEST:
        raise InvalidDirective(f"the script has more than {LARGEST} bytes")
    if not script.strip():
        raise InvalidDirective("the script is empty")
    if not script.startswith("#!"):
        raise InvalidDirective("the first line of a script must be #! and the path of an interpreter, as in #!/bin/sh")
    if "\0" in script:
        raise InvalidDirective("the script has a NUL character, which slurmctld does not take")
    if "\r\n" in script:
        raise InvalidDirective("the lines of the script end in CR LF, as on DOS; Slurm takes LF alone")


def _directives_of(line: str) -> str | None:
    """Return what follows the magic word, which need not be followed by a blank; ``None`` for any other line."""
    if line.startswith(_MAGIC):
        return line[len(_MAGIC) :]
    return line[len(_OLD_MAGIC) :] if line.startswith(_OLD_MAGIC) else None


def _cut(text: str, line: int) -> list[Word]:
    words: list[Word] = []
    index = _skip(text, 0)
    while index < len(text) and text[index] != "#":
        if text[index] == ":":
            raise InvalidDirective("a word begins with ':', which separates components on a command line", line=line)
        if len(words) == MOST:
            raise InvalidDirective(f"there are more than {MOST} words", line=line)
        word, index = _first(text, index, line)
        if len(word) > LONGEST:
            raise InvalidDirective(f"a word has more than {LONGEST} characters", line=line)
        words.append(Word(word, line))
        index = _skip(text, index)
    return words


def _skip(text: str, index: int) -> int:
    while index < len(text) and text[index] in _BLANKS:
        index += 1
    return index


def _first(text: str, index: int, line: int) -> tuple[str, int]:
    """Return the word that begins at an index without its quotes, and the index after it."""
    word: list[str] = []
    quote = ""
    while index < len(text) and (quote or text[index] not in _BLANKS):
        character = text[index]
        if character == "\\":
            index += 1
            if index == len(text) or (text[index] in _BLANKS[1:] and not quote):
                # Only a blank can be kept together like this; another such character ends the word.
                break
            word.append(text[index])
        elif character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
        elif not quote and character == "#":
            break
        else:
            word.append(character)
        index += 1
    if quote:
        raise InvalidDirective(f"there is no {quote} that ends what {quote} begins", line=line)
    if not word:
        raise InvalidDirective(
            "a word is empty quotes or a backslash alone: sbatch drops it and the rest of the line", line=line
        )
    return "".join(word), index
