"""Script that runs a server's command and ends it, with all that it started, when its host closes or dies.

Its standard error is the host's pipe: nobody reads it any more once the host is gone, killed or not.
"""

import os
import select
import signal
import sys
import threading
import time

GRACE = 0.5  # seconds for a server whose input was closed


def _end_with_the_host() -> None:
    pipe = select.poll()
    pipe.register(2, 0)
    pipe.poll()
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
    os.close(0)
    threading.Thread(target=_end_with_the_host, daemon=True).start()
    status = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    try:
        os.write(2, f"\nexit status {status}\n".encode())
    finally:
        os.killpg(0, signal.SIGKILL)
