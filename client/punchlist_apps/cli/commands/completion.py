"""`punch completion`: the script of a shell. `completions/generate.py` makes them from what the commands declare."""

from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.installing.shipped import read_shipped
from punchlist_apps.cli.parsing.arguments import Usage, choice

COMMANDS = {
    "completion": Usage(
        (choice("shell", text="bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        ("punch completion bash > ~/.local/share/bash-completion/completions/punch",),
    )
}

_FILES = {"bash": "bash/punch", "zsh": "zsh/_punch", "fish": "fish/punch.fish"}


def run_completion(context: Context) -> int:
    context.print_lines([read_shipped(f"completions/{_FILES[context.args.shell]}").rstrip("\n")])
    return 0
