"""Script that runs a server's command, and ends its group when the host closes it or dies."""

import os
import select
import signal
import sys
import threading
import time

GRACE = 0.5  # seconds for a server whose input was closed


def _end_with_the_host() -> None:
    host = select.poll()
    host.register(0, 0)  # the end of the writer is told in any case, and nothing is read
    host.poll()
    time.sleep(GRACE)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    server = os.fork()
    if not server:
        try:
            os.execvp(sys.argv[1], sys.argv[1:])
        except OSError as error:
            print(f"{sys.argv[1]}: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(127)
    threading.Thread(target=_end_with_the_host, daemon=True).start()
    status = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    try:
        os.write(2, f"\nexit status {status}\n".encode())
    finally:
        os.killpg(0, signal.SIGKILL)  # itself too: its output ends when all is said
