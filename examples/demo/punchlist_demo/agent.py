"""An agent that runs in a separate process. Calls tools as `punch agent mcp` does, one per line of standard input.

A line is `[TOOL, ARGUMENTS]` as JSON. The output is the tool's reply, with the log positions of the changes that the
daemon acknowledged for it.
"""

import sys
from argparse import ArgumentParser
from typing import TypeVar

import msgspec

from punchlist.calls.call import Call
from punchlist.clients.sync import Client
from punchlist.tools import Toolbox, ToolCaller
from punchlist_schemas.params import Mutation, TaskRenew
from punchlist_schemas.results import ClaimResult

R = TypeVar("R")


class RecordingClient(Client):
    """A client that records the position of each acknowledged change."""

    acknowledged: tuple[int, ...] = ()

    def run(self, call: Call[R]) -> R:
        """Make the call, and record its position unless it appended no event: a renewal, or a claim without a task."""
        pick = call.pick

        def record(result: object) -> R:
            if not isinstance(result, ClaimResult) or result.task is not None:
                self.acknowledged += (int(getattr(result, "seq", 0)),)
            return pick(result)

        if isinstance(call.request.params, Mutation) and not isinstance(call.request.params, TaskRenew):
            call.pick = record
        return super().run(call)


def main() -> None:
    """Make the calls read from standard input until end of file."""
    parser = ArgumentParser()
    for name in ("actor", "conversation", "--socket", "--data-dir"):
        parser.add_argument(name)
    args = parser.parse_args()
    with RecordingClient(socket=args.socket, data_dir=args.data_dir, name=args.actor, autostart=True) as client:
        toolbox = Toolbox(client, ToolCaller(args.conversation, args.actor))
        for line in sys.stdin:
            tool, arguments = msgspec.json.decode(line)
            client.acknowledged = ()
            reply = toolbox.call("native", tool, arguments)
            answer = {"text": reply.text, "refused": reply.refused, "acknowledged": client.acknowledged}
            print(msgspec.json.encode(answer | {"data": reply.data}).decode(), flush=True)


if __name__ == "__main__":
    main()
