"""Sends a signal at each bytecode instruction of a screen's code, in a forked child that draws on a terminal.

For each step, prints a line of JSON with the signal, the exit code of the child, and the output to the terminal.
"""

import itertools
import json
import os
import pty
import signal
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any

from punchlist_apps.cli.printing import screen
from punchlist_apps.common.terminal.style import Style

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _child(step: int, number: int) -> None:
    """Draw once, with the signal at this step; exit with 77 if there are fewer steps."""
    steps = itertools.count()

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename != screen.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(steps) == step:
            signal.raise_signal(number)
        return trace

    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 77
    # Python 3.12 reports opcodes only if a frame requests them before tracing starts.
    sys._getframe().f_trace_opcodes = True  # pyright: ignore[reportPrivateUsage]
    try:
        sys.settrace(trace)
        with screen.Screen(Style(), lambda _room: ["one", "two"]) as shown:
            shown.draw()
        sys.settrace(None)
        code = 77 if next(steps) <= step else 0
    except SystemExit as exit:
        code = int(str(exit))
    except KeyboardInterrupt:
        code = 130
    finally:
        sys.settrace(None)
        os._exit(code)


def _read(master: int) -> Generator[bytes]:
    while True:
        try:
            yield os.read(master, 65_536)
        except OSError:
            return  # the child has ended


def main() -> None:
    """Send each signal at every step."""
    for number in SIGNALS:
        for step in itertools.count():
            # Not pty.fork(): the kernel discards a terminal's unread output when its session leader ends.
            master, terminal = pty.openpty()
            if (pid := os.fork()) == 0:
                os.dup2(terminal, 1)
                os.close(terminal)
                _child(step, number)
            os.close(terminal)
            output = b"".join(_read(master)).decode()
            os.close(master)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if code == 77:
                break
            print(json.dumps([number, code, output]))


if __name__ == "__main__":
    main()
