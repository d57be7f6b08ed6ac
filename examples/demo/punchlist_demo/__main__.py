"""The demo (`make demo`): five scenes with a private daemon, then the proof that nothing was lost."""

import os
import sys
from subprocess import SubprocessError

from punchlist.errors import PunchlistError
from punchlist_apps.common.terminal.style import detect_style
from punchlist_demo.cast import Cast
from punchlist_demo.home import DemoFailed, Home
from punchlist_demo.scenes import SCENES
from punchlist_demo.stage import Stage


def main(arguments: list[str]) -> int:
    """Play the scenes; `--fast` skips the pauses. Stop after the first one that fails, and return 1."""
    style = detect_style(os.environ)
    stage = Stage(style, is_live=style.moves and "--fast" not in arguments)
    with Home() as home:
        stage.heading("Two agents and a person work on one list")
        stage.output(f"with a private daemon in {home.path}")
        try:
            cast = Cast(home, stage)
            for scene in SCENES:
                scene(cast)
                if stage.has_failed:
                    return 1
        except (DemoFailed, PunchlistError, SubprocessError) as error:
            stage.reply(str(error), refused=True)
            stage.check("every step succeeds", False)
            return 1
    stage.heading("Now install it: uv tool install '.[mcp]', then punch setup claude-code")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
