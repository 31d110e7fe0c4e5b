"""How much memory this process may still take."""

from __future__ import annotations

import os


def room() -> int | None:
    """Bytes of memory that this process may still take, as far as that is known: its own limit, the machine's, the
    control group's."""
    rooms = [_limit_left(), _machine_left(), _group_left()]
    known = [r for r in rooms if r is not None]
    return min(known) if known else None


def _limit_left() -> int | None:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        with open("/proc/self/statm") as f:
            used = int(f.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
        return limit - used
    except (ImportError, OSError, ValueError, IndexError):
        return None


def _machine_left() -> int | None:
    try:
        with open("/proc/meminfo") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None


def _group_left() -> int | None:
    try:
        with open("/sys/fs/cgroup/memory.max") as most, open("/sys/fs/cgroup/memory.current") as now:
            limit = most.read().strip()
            return None if limit == "max" else int(limit) - int(now.read())
    except (OSError, ValueError):
        return None
