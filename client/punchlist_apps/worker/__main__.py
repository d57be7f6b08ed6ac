"""`python -m punchlist_apps.worker`, started by the first relay, by systemd, or by its predecessor."""

import argparse
import faulthandler
import os
import signal
import socket
import sys

from punchlist.connection.starter import open_log
from punchlist.connection.starter import worker as worker_program
from punchlist_apps.worker.installation import read_stamp
from punchlist_apps.worker.place import Place, Taken, take

LOST_RACE = 75
"""Exit code if another worker holds the lock."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="punchlist_apps.worker", description=__doc__)
    parser.add_argument("--socket", required=True, help="path of the socket to listen on")
    parser.add_argument("--data-dir", required=True, help="the data directory, whose log the worker writes")
    parser.add_argument("--idle-exit", type=float, default=0.0, help="seconds without a session after which to end")
    parser.add_argument("--hang-exit", type=float, default=10.0, help="seconds after which a hanging loop is ended")
    parser.add_argument("--ready-fd", type=int, help="descriptor to report readiness on")
    parser.add_argument("--lock-fd", type=int, help="the lock of the predecessor")
    parser.add_argument("--listener-fd", type=int, help="the predecessor's socket from systemd")
    parser.add_argument("--manager", default="", help="address of the predecessor's service manager")
    options = parser.parse_args()
    faulthandler.enable()
    # A request to hand over is void until there is something to hand over, and must not end the process.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    if options.lock_fd is None:
        try:
            place = take(options.socket)
        except Taken:
            return LOST_RACE
        if place.is_of_systemd:
            # systemd can neither make the log's directory nor limit its size.
            log = open_log(worker_program(options.socket, options.data_dir))
            os.dup2(log, 2)
            os.close(log)
    else:
        listener = None if options.listener_fd is None else socket.socket(fileno=options.listener_fd)
        place = Place(options.socket, options.lock_fd, listener, options.manager)
    # An upgrade while the sources are loaded must look newer than they are.
    stamp = read_stamp()
    # Loaded after the lock, because it takes a second of processor time that the loser of a race should not spend.
    from punchlist_apps.worker.worker import Worker, run  # noqa: PLC0415

    worker = Worker(options.socket, options.data_dir, stamp, place, options.idle_exit, options.hang_exit)
    run(worker, options.ready_fd)
    return 0


if __name__ == "__main__":
    sys.exit(main())
