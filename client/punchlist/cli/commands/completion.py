"""`punch completion`: the script of a shell. `completions/generate.py` makes them from what the commands declare."""

from punchlist.cli.arguments import Usage, choice
from punchlist.cli.context import Context
from punchlist.cli.shipped import shipped

COMMANDS = {
    "completion": Usage(
        (choice("shell", text="bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        ("punch completion bash > ~/.local/share/bash-completion/completions/punch",),
    )
}

_FILES = {"bash": "bash/punch", "zsh": "zsh/_punch", "fish": "fish/punch.fish"}


def run_completion(context: Context) -> int:
    """Print the completion script of a shell."""
    context.lines([shipped(f"completions/{_FILES[context.args.shell]}").rstrip("\n")])
    return 0
