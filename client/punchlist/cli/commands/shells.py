"""`punch completion`: static scripts made from the table of commands, without a start of Python at each TAB."""

from collections.abc import Callable, Iterable

from punchlist.cli.context import Context
from punchlist.cli.table import COMMANDS, COMMON, Argument, Command
from punchlist_schemas.methods import METHODS

_PROGRAMS = ("punch", "punchlist")


def run_completion(context: Context) -> int:
    """Print the completion script of a shell."""
    context.lines([script(context.args.shell).rstrip("\n")])
    return 0


def script(shell: str) -> str:
    """The completion script of `bash`, `zsh` or `fish`."""
    return _WRITERS[shell]()


def _options(command: Command | None = None) -> list[Argument]:
    own = command.arguments if command else ()
    return [argument for argument in (*own, *COMMON) if not argument.positional]


def _words(argument: Argument) -> list[str]:
    """What a value of this argument can be, as far as it is known beforehand."""
    if argument.complete == "method":
        return list(METHODS)
    return [str(choice) for choice in argument.options.get("choices", ())]


def _names() -> list[str]:
    return [name for command in COMMANDS for name in (command.name, *command.aliases)]


def _bash() -> str:
    lines = [
        "# bash completion for punch; made by: punch completion bash",
        "_punch() {",
        '    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" i',
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        '        case "${COMP_WORDS[i]}" in',
        f"            {'|'.join(_value_flags(COMMON))}) ((i++)) ;;",
        "            -*) ;;",
        '            *) command="${COMP_WORDS[i]}"; break ;;',
        "        esac",
        "    done",
        "    COMPREPLY=()",
        '    case "$command:$prev" in',
    ]
    for command in COMMANDS:
        for argument in command.arguments:
            if argument.positional or not argument.takes_value:
                continue
            patterns = "|".join(
                f"{name}:{flag}" for name in (command.name, *command.aliases) for flag in argument.flags
            )
            lines.append(f"        {patterns}) {_bash_reply(argument)}; return ;;")
    for argument in COMMON:
        if argument.takes_value:
            patterns = "|".join(f"*:{flag}" for flag in argument.flags)
            lines.append(f"        {patterns}) {_bash_reply(argument)}; return ;;")
    lines += ["    esac", '    case "$command" in']
    lines.append(f'        "") {_bash_words([*_names(), *_flags(_options()), "--help", "--version"])} ;;')
    for command in COMMANDS:
        names = "|".join((command.name, *command.aliases))
        lines.append(f"        {names})")
        lines.append(f"            if [[ $cur == -* ]]; then {_bash_words([*_flags(_options(command)), '--help'])}")
        offers = [one for one in command.arguments if one.positional and (_words(one) or one.complete == "file")]
        if offers:
            lines.append(f"            else {_bash_reply(offers[0])}")
        lines.append("            fi ;;")
    lines += ["    esac", "}", f"complete -F _punch {' '.join(_PROGRAMS)}"]
    return "\n".join(lines) + "\n"


def _bash_reply(argument: Argument) -> str:
    if argument.complete == "file":
        return 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur")'
    words = _words(argument)
    return _bash_words(words) if words else ":"


def _bash_words(words: Iterable[str]) -> str:
    return f"""mapfile -t COMPREPLY < <(compgen -W "{" ".join(words)}" -- "$cur")"""


def _flags(arguments: Iterable[Argument]) -> list[str]:
    return [flag for argument in arguments for flag in argument.flags]


def _value_flags(arguments: Iterable[Argument]) -> list[str]:
    return _flags(argument for argument in arguments if argument.takes_value and not argument.positional)


def _zsh() -> str:
    lines = [
        "#compdef punch punchlist",
        "# zsh completion for punch; made by: punch completion zsh",
        "_punch() {",
        "  local context state line",
        "  typeset -A opt_args",
        "  local -a commands",
        "  commands=(",
        *(f"    {_quote(f'{name}:{c.summary}')}" for c in COMMANDS for name in (c.name, *c.aliases)),
        "  )",
        "  _arguments -C \\",
        *(f"    {spec} \\" for argument in COMMON for spec in _zsh_options(argument)),
        "    '--version[print the version]' '--help[show help]' \\",
        "    '1:command:->command' '*::argument:->argument'",
        "  case $state in",
        "    command) _describe command commands ;;",
        "    argument)",
        "      case $words[1] in",
    ]
    for command in COMMANDS:
        specs = [spec for argument in _options(command) for spec in _zsh_options(argument)]
        specs += [_zsh_positional(one) for one in command.arguments if one.positional]
        lines.append(f"        {'|'.join((command.name, *command.aliases))})")
        lines.append("          _arguments " + " ".join(["'--help[show help]'", *specs]) + " ;;")
    lines += ["      esac ;;", "  esac", "}", 'if [ "$funcstack[1]" = _punch ]; then _punch "$@"; else']
    lines += [f"  compdef _punch {' '.join(_PROGRAMS)}", "fi"]
    return "\n".join(lines) + "\n"


def _zsh_options(argument: Argument) -> list[str]:
    text = argument.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    value = f":{argument.flags[-1].lstrip('-')}:{_zsh_action(argument)}" if argument.takes_value else ""
    return [_quote(f"{'*' if _repeats(argument) else ''}{flag}[{text}]{value}") for flag in argument.flags]


def _zsh_positional(argument: Argument) -> str:
    place = "*" if argument.options.get("nargs") in ("+", "*") else ""
    return _quote(f"{place}:{argument.flags[0]}:{_zsh_action(argument)}")


def _zsh_action(argument: Argument) -> str:
    if argument.complete == "file":
        return "_files"
    words = _words(argument)
    return f"({' '.join(words)})" if words else " "


def _fish() -> str:
    lines = ["# fish completion for punch; made by: punch completion fish"]
    for program in _PROGRAMS:
        lines.append(f"complete -c {program} -f")
        for argument in COMMON:
            lines.append(f"complete -c {program} {_fish_option(argument)}")
        for command in COMMANDS:
            for name in (command.name, *command.aliases):
                lines.append(
                    f"complete -c {program} -n __fish_use_subcommand -a {name} -d {_fish_quote(command.summary)}"
                )
            seen = _fish_quote(f"__fish_seen_subcommand_from {' '.join((command.name, *command.aliases))}")
            for argument in command.arguments:
                if not argument.positional:
                    lines.append(f"complete -c {program} -n {seen} {_fish_option(argument)}")
                elif argument.complete == "file":
                    lines.append(f"complete -c {program} -n {seen} -F")
                elif _words(argument):
                    lines.append(f"complete -c {program} -n {seen} -a {_fish_quote(' '.join(_words(argument)))}")
    return "\n".join(lines) + "\n"


def _fish_option(argument: Argument) -> str:
    parts = [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in argument.flags]
    if argument.complete == "file":
        parts.append("-r -F")
    elif argument.takes_value:
        words = _words(argument)
        parts.append("-x" + (f" -a {_fish_quote(' '.join(words))}" if words else ""))
    return " ".join([*parts, f"-d {_fish_quote(argument.help)}"])


def _repeats(argument: Argument) -> bool:
    return argument.options.get("action") == "append"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_WRITERS: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
