"""`punch shell`: what a shell's start file evaluates for completion, a prompt and aliases.

The text is short, because each new shell evaluates it. It loads the completion script at the first TAB. The prompt
returns the exit code of the last command, which the rest of a prompt may show.
"""

from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Usage, choice

COMMANDS = {
    "shell": Usage(
        (choice("shell", text="bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        ("punch shell bash", "punch shell fish | source"),
    )
}

_LINES = {
    "bash": 'in ~/.bashrc: eval "$(punch shell bash)"',
    "zsh": 'in ~/.zshrc, after compinit: eval "$(punch shell zsh)"',
    "fish": "in ~/.config/fish/config.fish: punch shell fish | source",
}
"""Shell → where its start file evaluates this command's output, shown in the output's first line."""

_ALIASES = {"pa": "punch add", "pl": "punch list", "pn": "punch next --take", "pd": "punch done"}

_POSIX = """punch_prompt() {
  local code=$? line
  line=$(command punch list --line 2>/dev/null)
  if [ -n "$line" ]; then printf '%s ' "$line"; fi
  return $code
}
"""
_POSIX_ALIAS = "type {name} >/dev/null 2>&1 || alias {name}='{command}'\n"

_SCRIPTS = {
    # Code 124 makes bash complete again, with the function that has been loaded.
    "bash": _POSIX
    + """_punch_load() {
  complete -r punch punchlist
  eval "$(command punch completion bash 2>/dev/null)"
  return 124
}
complete -F _punch_load punch punchlist
""",
    "zsh": _POSIX
    + """_punch_load() {
  eval "$(command punch completion zsh 2>/dev/null)"
  if (( $+functions[_shtab_punch] )); then _shtab_punch "$@"; else compdef -d punch punchlist; fi
}
if (( $+functions[compdef] )); then compdef _punch_load punch punchlist; fi
""",
    "fish": """function punch_prompt
  set -l code $status
  command -q punch; and set -l line (command punch list --line 2>/dev/null)
  if test -n "$line"; printf '%s ' $line; end
  return $code
end
function __punch_load
  set -l words (commandline -cp)
  complete -e -c punch
  complete -e -c punchlist
  command punch completion fish 2>/dev/null | source
  complete -C "$words"
end
complete -c punch -f -a '(__punch_load)'
complete -c punchlist -f -a '(__punch_load)'
""",
}
_ALIAS = {"bash": _POSIX_ALIAS, "zsh": _POSIX_ALIAS, "fish": "type -q {name}; or alias {name} '{command}'\n"}


def run_shell(context: Context) -> int:
    shell = context.args.shell
    aliases = (_ALIAS[shell].format(name=name, command=command) for name, command in _ALIASES.items())
    context.print_lines([f"# {_LINES[shell]}", _SCRIPTS[shell] + "".join(aliases).rstrip("\n")])
    return 0
