"""How slurmd's container is started: by the operator's command, the user's, or a shell in between. Pure.

Kubernetes passes `args` to the image's entrypoint if a template has no `command`. Entrypoints use them differently:
some start slurmd with the arguments as they are, others, such as Slinky's, join them into one text for a shell (`slurmd
--systemd $OPTIONS`). One list of arguments cannot suit both: `-D` is fatal beside `--systemd`, and a value with spaces
needs quotes for a shell, which slurmd itself treats as part of the value. So slurmd is started directly unless the
template has a `command`, and with a `command` the template's own `--conf` shows which kind it is: a quoted value is
written for a shell that removes the quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename
from typing import Any, Final

from slinky_operator.slurm.pod_templates import first_process
from slinky_operator.slurm.slurmd import node_conf

LONGEST_ARGUMENT: Final = 4096
"""Maximum characters of one word of command and args, as of `spec.extraConf`: a longer one is not read."""

LONGEST_COMMAND: Final = 16_384
"""Maximum characters of command and args together."""

SLURMD: Final = "slurmd"
"""The program, found in the image's PATH."""

CONF: Final = "--conf"
CONF_SERVER: Final = "--conf-server"

_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
_INITS: Final = frozenset({"tini", "tini-static", "dumb-init", "catatonit"})
_SCRIPT_FOLLOWS: Final = re.compile(r"-[A-Za-z]*c")
_ALL_ARGUMENTS: Final = ('"$@"', '"${@}"')
_GIVES_THEM_TO_SLURMD: Final = re.compile(r'(?<![\w.-])slurmd\s[^;|&\n]*"\$(?:@|\{@\})"')
_IDENTITY: Final = ("-N", "--instance-id", "--extra")
_IN_SCRIPT: Final = re.compile(r"(?<!\S)(-N|--conf|--instance-id|--extra)(?![\w-])")

_NOT_PASSED_ON: Final = (
    'must pass its arguments on to slurmd: write "$@" in it, for instance exec slurmd "$@". The operator adds -D, -Z,'
    " -N, --instance-id, --extra and --conf; without them the node is not this NodeSet's"
)


_REFUSED_IN_SCRIPT: Final = {
    CONF: '--conf belongs under args: the operator merges it with its own, and passes it in "$@"'
}


def _names_node(option: str, instead: str) -> str:
    """Why the operator's own option is refused, and what to write."""
    return f"{option} is the operator's: it names the node. Leave it out with its value: {instead}"


_IN_ARGUMENTS: Final = "the operator passes it, with the name of the pod's Slurm node"
_IN_ALL: Final = 'the operator passes it in "$@", as in exec slurmd "$@"'


@dataclass(frozen=True, slots=True)
class Launch:
    """The parsed command and arguments of the template."""

    command: tuple[str, ...]
    """As the template has it, up to slurmd's own arguments."""
    arguments: tuple[str, ...] = ()
    """Slurmd's own, as in the template, without `--conf`."""
    conf: tuple[str, ...] = ()
    """Values of `--conf`, without the quotes that were meant for a shell."""
    joined: bool = False
    """Whether the command passes its arguments through a shell, so that they must be quoted."""
    names_conf_server: bool = False
    """Whether slurmd's arguments name slurmctld (`--conf-server`)."""
    problems: tuple[tuple[str, str], ...] = ()
    """Fields of the container that prevent slurmd from starting as this node, with reasons."""

    @property
    def container_command(self) -> tuple[str, ...]:
        """The container's command: a slurmd that would be the first process is started below one that reaps.

        Whatever is started, a shell first takes the right to write to /run from users (`first_process.CLOSE_RUN`).
        """
        bare = len(self.command) == 1 and basename(self.command[0]) == SLURMD
        return first_process.above(self.command[0]) if bare else first_process.before(self.command)

    @property
    def is_whole(self) -> bool:
        """Whether the template has slurmd's complete command line, as in Slinky's charts, and not a few options."""
        return "-Z" in self.arguments


def read(container: Mapping[str, Any]) -> Launch:
    """Return how a template's slurmd container is started.

    Parameters
    ----------
    container
        The template's own container, before it is merged; without `command` and `args` slurmd is started directly.
    """
    command = [str(word) for word in container.get("command") or ()]
    arguments = [(f"args[{place}]", str(word)) for place, word in enumerate(container.get("args") or ())]
    words = [(f"command[{place}]", word) for place, word in enumerate(command)] + arguments
    unread = [
        (field, f"has {len(word)} characters, and may have {LONGEST_ARGUMENT}")
        for field, word in words
        if len(word) > LONGEST_ARGUMENT
    ]
    total = sum(len(word) for _, word in words)
    if not unread and total > LONGEST_COMMAND:
        unread.append(("args", f"has, with command, {total} characters, and may have {LONGEST_COMMAND}"))
    if unread:
        return Launch((SLURMD,), problems=tuple(unread))
    script = _script(words)
    if not command:
        return _launch((SLURMD,), arguments, quoted_is_joined=False, problems=_programs(arguments))
    if script is not None:
        return _scripted(words, script)
    started = next((place for place, word in enumerate(command) if basename(word) == SLURMD), None)
    if started is not None:
        return _launch(tuple(command[: started + 1]), words[started + 1 :], quoted_is_joined=False)
    problems = [
        (field, "belongs under args: what the command is given there, the operator can complete")
        for field, word in words[: len(command)]
        if word.split("=", 1)[0] == CONF
    ]
    problems += [
        (field, _names_node(word.split("=", 1)[0], _IN_ARGUMENTS))
        for field, word in words[: len(command)]
        if word.split("=", 1)[0] in _IDENTITY
    ]
    return _launch(tuple(command), arguments, quoted_is_joined=True, problems=problems, before=command)


def _programs(arguments: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Refuse a program as the first of slurmd's own arguments: it was meant for the image's entrypoint."""
    if not arguments or arguments[0][1].startswith("-"):
        return []
    field, word = arguments[0]
    why = (
        f"{word[:60]} would be an argument of slurmd, which is started without the image's entrypoint: write the "
        "program and its words under command, and only what is slurmd's under args"
    )
    return [(field, why)]


def _script(words: Sequence[tuple[str, str]]) -> int | None:
    """Position of a shell's script (`sh -c SCRIPT`) among the words of command and args; None if there is none."""
    shell = False
    option = ""
    # The words of args are a shell's too, where only an init stands before it: command: [tini, --].
    below_init = bool(words) and words[0][0].startswith("command")
    for place, (field, word) in enumerate(words):
        if shell and _SCRIPT_FOLLOWS.fullmatch(word):
            return place + 1 if place + 1 < len(words) else None
        if basename(word) in _SHELLS and (field.startswith("command") or below_init):
            shell = True
        elif not word.startswith(("-", "+")) and not option.endswith("o"):
            # Neither an option nor the value of one, as in `bash -eo pipefail -c`.
            shell = False
        option = word if word.startswith("-") else ""
        below_init = below_init and (basename(word) in _INITS or word.startswith("-"))
    return None


def _scripted(words: Sequence[tuple[str, str]], place: int) -> Launch:
    field, script = words[place]
    rest = list(words[place + 1 :])
    # A shell uses the first word after its script as $0, and leaves it out of "$@".
    name = SLURMD if not rest or (rest[0][1].startswith("-") and rest[0][1] != "--") else rest.pop(0)[1]
    problems = []
    if not any(word in script for word in _ALL_ARGUMENTS):
        problems.append((field, _NOT_PASSED_ON))
    problems += [
        (field, _REFUSED_IN_SCRIPT.get(option) or _names_node(option, _IN_ALL))
        for option in dict.fromkeys(_IN_SCRIPT.findall(script))
    ]
    command = (*(word for _, word in words[:place]), script, name)
    direct = _GIVES_THEM_TO_SLURMD.search(script) is not None
    return _launch(command, rest, quoted_is_joined=not direct, problems=problems, before=[script])


def _launch(
    command: tuple[str, ...],
    words: Sequence[tuple[str, str]],
    *,
    quoted_is_joined: bool,
    problems: Sequence[tuple[str, str]] = (),
    before: Iterable[str] = (),
) -> Launch:
    rest: list[str] = []
    lines: list[str] = []
    refused = list(problems)
    quoted = False
    pending = iter(words)
    for field, word in pending:
        if word == CONF:
            at, value = next(pending, (field, ""))
        elif word.startswith(f"{CONF}="):
            at, value = field, word.removeprefix(f"{CONF}=")
        else:
            rest.append(word)
            if word.split("=", 1)[0] in _IDENTITY or (word.startswith("-N") and not word.startswith("--")):
                option = word.split("=", 1)[0] if word.startswith("--") else "-N"
                refused.append((field, _names_node(option, _IN_ARGUMENTS)))
            continue
        try:
            line = node_conf.unquoted(value)
        except node_conf.UnbalancedQuotes as error:
            refused.append((at, str(error)))
            continue
        quoted = quoted or line != value.strip()
        lines.append(line)
    told = [*before, *rest]
    return Launch(
        command,
        tuple(rest),
        tuple(lines),
        joined=quoted and quoted_is_joined,
        names_conf_server=any(CONF_SERVER in text for text in told),
        problems=tuple(refused),
    )
