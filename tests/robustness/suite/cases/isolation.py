"""Cells that look for, change or reach something outside: they succeed in a session that does not isolate.

The world of a case holds a secret: in the environment of the host, in its memory, and in a file in the home folder.
`outside` in a cell says where, never what.
"""

from __future__ import annotations

from suite.case import ANY, SECRET, CellCase, Step, cells


def looks(name, does, code, must="the cell does not see it") -> CellCase:
    """A cell that must not find the secret, whatever else becomes of it."""
    return cells(name, "isolation: reading", does, must, Step(code, ANY, hides=(SECRET,)), keeps="told", fresh=True)


def reaches(name, does, code, after) -> CellCase:
    """A cell of which nothing may be seen from outside."""
    must, rest = "the cell does not reach it", {"keeps": "told", "after": after, "fresh": True}
    return cells(name, "isolation: reaching out", does, must, Step(code, ANY), **rest)


def finds(name, does, code, must) -> CellCase:
    """A cell that prints `found` if it may do something that it must not."""
    return cells(name, "isolation: privileges", does, must, Step(code, ANY, hides=("found",)), keeps="told", fresh=True)


def tries(name, does, attempt) -> CellCase:
    """A cell that asks the kernel for something of another process's, or of the machine's."""
    code = f"import ctypes, os, resource, socket\nlibc = ctypes.CDLL(None, use_errno=True)\ntry:\n    got = {attempt}\n"
    code += "    print('fou' 'nd' if got is None or got != -1 else 'no')\nexcept OSError as e: print(e)"
    return finds(name, does, code, "the kernel refuses it")


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
    looks('host-environment', 'prints its environment', "import os\nprint(dict(os.environ))\nprint(os.environb.get(outside['variable'].encode()))"),
    looks('environment-of-a-child', 'asks a child for its environment',
        "import subprocess\nprint(subprocess.run(['env'], capture_output=True, text=True).stdout)"),
    looks('environment-of-ancestors', 'reads the environment of every process above it', _ANCESTORS),
    looks('memory-of-the-host', 'reads the memory of its host where the secret lies', _MEMORY),
    looks('command-lines', 'reads the command line of every process',
        "import glob\nfor p in glob.glob('/proc/[0-9]*/cmdline'):\n    try: print(open(p, 'rb').read()[:400])\n    except OSError: pass"),
    looks('home-folder', 'reads a file in the home folder of the user', "print(open(outside['home_file']).read())"),
    looks('link-out-of-the-folder', 'makes a link to a file outside its folder, and reads it',
        "import os\nos.symlink(outside['home_file'], 'link')\nprint(open('link').read())"),
    looks('dots-out-of-the-folder', 'reads a file outside by a path with dots', "import os\nprint(open(os.path.relpath(outside['home_file'])).read())"),
    looks('file-of-another-folder', 'reads a file in another temporary folder', "print(open(outside['other_file']).read())"),
    looks('child-reads-home', 'has a child read the file in the home folder',
        "import subprocess\nprint(subprocess.run(['cat', outside['home_file']], capture_output=True, text=True).stdout)"),
    reaches('write-to-home', 'changes a file in the home folder', "open(outside['home_file'], 'w').write('changed')", 'home_file_unchanged'),
    reaches('write-outside', 'changes a file in another temporary folder', "open(outside['other_file'], 'a').write('changed')", 'other_file_unchanged'),
    reaches('write-through-a-link', 'changes a file outside through a link',
        "import os\nos.symlink(outside['other_file'], 'link')\nopen('link', 'a').write('changed')", 'other_file_unchanged'),
    reaches('hard-link', 'links a file from outside into its folder, and changes it',
        "import os\nos.link(outside['other_file'], 'hard')\nopen('hard', 'a').write('changed')", 'other_file_unchanged'),
    reaches('new-file-outside', 'makes a file beside one outside', "open(outside['other_file'] + '.new', 'w').write('new')", 'no_new_file'),
    reaches('remove-outside', 'removes a file outside', "import os\nos.remove(outside['other_file'])", 'other_file_unchanged'),
    reaches('tcp', 'connects to a port of this machine', _TCP, 'no_connection'),
    reaches('udp', 'sends a datagram to this machine',
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', ('127.0.0.1', outside['udp']))", 'no_datagram'),
    reaches('unix-socket', 'connects to a socket in a folder',
        "import socket\ns = socket.socket(socket.AF_UNIX); s.connect(outside['unix']); s.sendall(b'x')", 'no_unix_connection'),
    reaches('tcp-of-a-child', 'has a child connect to a port of this machine',
        'import subprocess, sys\ncode = "outside = %r\\n" % (outside,) + \'\'\'' + _TCP + "'''\nsubprocess.run([sys.executable, '-c', code])",
        'no_connection'),
    reaches('signal-a-process', 'ends another process of the user', "import os\nos.kill(outside['victim'], 9)", 'victim_alive'),
    tries('limits-of-another-process', 'asks for the limits of another process', "resource.prlimit(outside['victim'], resource.RLIMIT_NOFILE)"),
    tries('priority-of-another-process', 'lowers the priority of another process', "os.setpriority(os.PRIO_PROCESS, outside['victim'], 19)"),
    tries('processors-of-another-process', 'takes processors from another process', "os.sched_setaffinity(outside['victim'], [0])"),
    tries('attributes-of-a-file', 'sets an attribute of a file in the home folder', "os.setxattr(outside['home_file'], 'user.rlm', b'1')"),
    tries('owner-of-a-file', 'gives a file in the home folder to its own owner', "os.chown(outside['home_file'], os.getuid(), -1)"),
    tries('virtual-machines-host', 'opens a socket to the host of the virtual machine (AF_VSOCK)', 'socket.socket(40, socket.SOCK_STREAM) and 1'),
    finds('sees-processes', 'looks for another process of the user',
        'import os\ntry:\n    print(\'fou\' \'nd\' if outside[\'token\'] in open(f"/proc/{outside[\'victim\']}/cmdline").read() else \'no\')\nexcept OSError as e: print(type(e).__name__)',
        'processes of the host cannot be seen'),
    finds('system-is-writable', "asks whether it may write to the system's or the interpreter's folders",
        "import os, sys\nprint('fou' 'nd' if any(os.access(p, os.W_OK) for p in ('/usr', '/etc', sys.prefix, sys.base_prefix)) else 'no')",
        'no such folder can be written'),
    finds('runs-as-root', 'asks whether it is root', "import os\nprint('fou' 'nd' if os.geteuid() == 0 else 'no')", 'cells do not run as root'),
    finds('kernel-settings', 'asks whether it may change settings of the kernel',
        "import os\nprint('fou' 'nd' if os.access('/proc/sys/kernel/core_pattern', os.W_OK) else 'no')", 'settings of the kernel cannot be written'),
    finds('gains-privileges', 'asks whether its children may gain privileges',
        "import ctypes\nprint('fou' 'nd' if ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 0 else 'no')",
        'set-user-id programs give no privileges (no_new_privs)'),
)
