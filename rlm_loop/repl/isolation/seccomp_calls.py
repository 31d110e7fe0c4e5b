"""The numbers of system calls that a filter of cells names, on x86_64 and on aarch64 (0: not there)."""

from __future__ import annotations

# What no analysis needs, and kernel exploits and escapes begin with: other processes' memory, mounts, namespaces,
# keys, BPF, io_uring, modules, clocks, devices.
REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "move_pages": (279, 239),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "unshare": (272, 97),
    "setns": (308, 268),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "iopl": (172, 0),
    "ioperm": (173, 0),
    "modify_ldt": (154, 0),
}

# What a session that shares the machine's processes and objects with the user would reach besides: System V memory,
# semaphores and queues, message queues, what happens to files (landlock knows no inotify), processes by handle.
SHARED = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "inotify_init": (253, 0),
    "inotify_init1": (294, 26),
    "migrate_pages": (256, 238),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}

# What the owner of a file may do to it although landlock lets nobody open it.  Owners and attributes are refused;
# modes and times stay as they are without an error, as on a file system that has none (vfat's mount option `quiet`):
# copying and unpacking files sets them last, and would fail.
OWNED = {
    "chown": (92, 0),
    "fchown": (93, 55),
    "lchown": (94, 0),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
WITHOUT_EFFECT = {
    "chmod": (90, 0),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utime": (132, 0),
    "utimes": (235, 0),
    "futimesat": (261, 0),
    "utimensat": (280, 88),
}

# What may be done to oneself only: by how many leading arguments that is told, and what they are then.
OF_OTHERS = {
    "prlimit64": ((302, 261), (0,)),
    "sched_setaffinity": ((203, 122), (0,)),
    "sched_setparam": ((142, 118), (0,)),
    "sched_setscheduler": ((144, 119), (0,)),
    "sched_setattr": ((314, 274), (0,)),
    "setpriority": ((141, 140), (0, 0)),  # PRIO_PROCESS
    "ioprio_set": ((251, 30), (1, 0)),  # IOPRIO_WHO_PROCESS
}

#: Calls of which some arguments are refused.
LOOKED_INTO = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "kill": (62, 129),
    **{name: numbers for name, (numbers, _) in OF_OTHERS.items()},
}
NUMBERS = {**REFUSED, **SHARED, **OWNED, **WITHOUT_EFFECT, **LOOKED_INTO}
"""Every system call that a filter mentions; a test compares the numbers with the kernel's headers."""
