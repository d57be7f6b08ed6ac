"""The demo (`make demo`): five scenes over a private daemon, then the proof that nothing was lost."""

import os
import sys

from punchlist.cli.style import style_of
from punchlist_demo.cast import Cast
from punchlist_demo.home import Home
from punchlist_demo.scenes import SCENES
from punchlist_demo.stage import Stage


def main(arguments: list[str]) -> int:
    """Play the scenes, with `--fast` without pauses. Return 1 if a scene or the proof did not show its point."""
    style = style_of(os.environ)
    stage = Stage(style, is_live=style.moves and "--fast" not in arguments)
    with Home() as home:
        stage.heading("Two agents and a person work on one list")
        stage.output(f"with a private daemon in {home.path}")
        cast = Cast(home, stage)
        for scene in SCENES:
            scene(cast)
    return int(stage.has_failed)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
