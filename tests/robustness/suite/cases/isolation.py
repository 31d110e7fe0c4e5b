"""Cells that look for, change or reach something outside: they succeed in a session that does not isolate.

The world of a case holds a secret: in the environment of the host, in its memory, and in a file in the home folder.
`outside` in a cell says where, never what.
"""

from __future__ import annotations

from suite.case import ANY, SECRET, CellCase, Step, cells


def looks(name, code) -> CellCase:
    """A cell that must not find the secret, whatever else becomes of it."""
    return cells(name, "isolation: reading", Step(code, ANY, hides=(SECRET,)), keeps="told", fresh=True)


def reaches(name, code, after) -> CellCase:
    """A cell of which nothing may be seen from outside."""
    return cells(name, "isolation: reaching out", Step(code, ANY), keeps="told", after=after, fresh=True)


def finds(name, code) -> CellCase:
    """A cell that prints `found` if it may do something that it must not."""
    return cells(name, "isolation: privileges", Step(code, ANY, hides=("found",)), keeps="told", fresh=True)


def tries(name, attempt) -> CellCase:
    """A cell that asks the kernel for something of another process's, or of the machine's, and is refused."""
    code = f"import ctypes, os, resource, socket\nlibc = ctypes.CDLL(None, use_errno=True)\ntry:\n    got = {attempt}\n"
    return finds(
        name, code + "    print('fou' 'nd' if got is None or got != -1 else 'no')\nexcept OSError as e: print(e)"
    )


_MEMORY = """
for pid in (outside['host'], 'self'):
    try:
        with open(f'/proc/{pid}/mem', 'rb') as f:
            f.seek(outside['address']); print(f.read(64))
    except Exception as e: print(type(e).__name__)
"""
_ANCESTORS = """
import os
pid = os.getpid()
while pid > 0:
    try:
        data = open(f'/proc/{pid}/environ', 'rb').read()
        print([v for v in data.split(b'\\0') if v.startswith(outside['variable'].encode())])
        pid = int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])
    except OSError as e:
        print(e); break
"""
_TCP = "import socket\ntry:\n    c = socket.create_connection(('127.0.0.1', outside['tcp']), 2); c.sendall(b'hello'); c.close()\nexcept OSError as e: print(e)"

# fmt: off
CASES = (
    # isolation
    looks('host-environment', "import os\nprint(dict(os.environ))\nprint(os.environb.get(outside['variable'].encode()))"),
    looks('environment-of-a-child', "import subprocess\nprint(subprocess.run(['env'], capture_output=True, text=True).stdout)"),
    looks('environment-of-ancestors', _ANCESTORS),
    looks('memory-of-the-host', _MEMORY),
    looks('command-lines',
        "import glob\nfor p in glob.glob('/proc/[0-9]*/cmdline'):\n    try: print(open(p, 'rb').read()[:400])\n    except OSError: pass"),
    looks('home-folder', "print(open(outside['home_file']).read())"),
    looks('link-out-of-the-folder', "import os\nos.symlink(outside['home_file'], 'link')\nprint(open('link').read())"),
    looks('dots-out-of-the-folder', "import os\nprint(open(os.path.relpath(outside['home_file'])).read())"),
    looks('file-of-another-folder', "print(open(outside['other_file']).read())"),
    looks('child-reads-home', "import subprocess\nprint(subprocess.run(['cat', outside['home_file']], capture_output=True, text=True).stdout)"),
    reaches('write-to-home', "open(outside['home_file'], 'w').write('changed')", 'home_file_unchanged'),
    reaches('write-outside', "open(outside['other_file'], 'a').write('changed')", 'other_file_unchanged'),
    reaches('write-through-a-link', "import os\nos.symlink(outside['other_file'], 'link')\nopen('link', 'a').write('changed')",
        'other_file_unchanged'),
    reaches('hard-link', "import os\nos.link(outside['other_file'], 'hard')\nopen('hard', 'a').write('changed')", 'other_file_unchanged'),
    reaches('new-file-outside', "open(outside['other_file'] + '.new', 'w').write('new')", 'no_new_file'),
    reaches('remove-outside', "import os\nos.remove(outside['other_file'])", 'other_file_unchanged'),
    reaches('tcp', _TCP, 'no_connection'),
    reaches('udp', "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', ('127.0.0.1', outside['udp']))", 'no_datagram'),
    reaches('unix-socket', "import socket\ns = socket.socket(socket.AF_UNIX); s.connect(outside['unix']); s.sendall(b'x')", 'no_unix_connection'),
    reaches('tcp-of-a-child',
        'import subprocess, sys\ncode = "outside = %r\\n" % (outside,) + \'\'\'' + _TCP + "'''\nsubprocess.run([sys.executable, '-c', code])",
        'no_connection'),
    reaches('signal-a-process', "import os\nos.kill(outside['victim'], 9)", 'victim_alive'),
    tries('limits-of-another-process', "resource.prlimit(outside['victim'], resource.RLIMIT_NOFILE)"),
    tries('priority-of-another-process', "os.setpriority(os.PRIO_PROCESS, outside['victim'], 19)"),
    tries('processors-of-another-process', "os.sched_setaffinity(outside['victim'], [0])"),
    tries('attributes-of-a-file', "os.setxattr(outside['home_file'], 'user.rlm', b'1')"),
    tries('owner-of-a-file', "os.chown(outside['home_file'], os.getuid(), -1)"),
    tries('virtual-machines-host', 'socket.socket(40, socket.SOCK_STREAM) and 1'),
    finds('sees-processes',
        'import os\ntry:\n    print(\'fou\' \'nd\' if outside[\'token\'] in open(f"/proc/{outside[\'victim\']}/cmdline").read() else \'no\')\nexcept OSError as e: print(type(e).__name__)'),
    finds('system-is-writable',
        "import os, sys\nprint('fou' 'nd' if any(os.access(p, os.W_OK) for p in ('/usr', '/etc', sys.prefix, sys.base_prefix)) else 'no')"),
    finds('runs-as-root', "import os\nprint('fou' 'nd' if os.geteuid() == 0 else 'no')"),
    finds('kernel-settings', "import os\nprint('fou' 'nd' if os.access('/proc/sys/kernel/core_pattern', os.W_OK) else 'no')"),
    finds('gains-privileges', "import ctypes\nprint('fou' 'nd' if ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 0 else 'no')"),
)
