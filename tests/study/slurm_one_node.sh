#!/bin/sh
# A study on a Slurm of one node, from Debian's packages: an array of jobs, one of them killed in the middle, then sent
# again; its rows are compared with those of a run without Slurm.  As root, in a machine that may be changed:
#   apt-get install -y --no-install-recommends slurm-wlm munge && sh tests/study/slurm_one_node.sh PYTHON
set -eu
python=$1 here=$(cd "$(dirname "$0")/../.." && pwd) work=$(mktemp -d) host=$(hostname -s)
mkdir -p /etc/slurm /run/munge /var/lib/slurm
cat > /etc/slurm/slurm.conf <<END
ClusterName=one
SlurmctldHost=$host
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
StateSaveLocation=/var/lib/slurm
SlurmdSpoolDir=/var/lib/slurm/d
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
NodeName=$host CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
[ -f /etc/munge/munge.key ] || mungekey --create
chown munge /run/munge /etc/munge/munge.key
pgrep munged >/dev/null || su -s /bin/sh munge -c munged
pgrep slurmctld >/dev/null || { slurmctld && slurmd; }
for _ in 1 2 3 4 5 6 7 8 9 10; do sinfo | grep -q idle && break; sleep 1; done
sinfo
cat > "$work/study.py" <<'END'
import os, time
from rlm_loop import LeanAgent, ScriptedModel, Study, Task, ToolLoopAgent

def judge(attempt):
    time.sleep(float(os.environ.get("PAUSE", 0)))
    return attempt.answer in ("1", "3", "4")

def study():
    replies = lambda prompt: prompt.messages[-1].text.split("Say ")[1][0]
    tasks = [Task(f"t{n}", f"Say {n}.", judge) for n in range(1, 9)]
    return Study("array", {"one": ToolLoopAgent(), "two": LeanAgent()}, tasks, model=ScriptedModel([replies] * 30))
END
cd "$work"
run() { PYTHONPATH=$here "$python" -m rlm_loop.cli.main "$@"; }
run study run study.py --out here >/dev/null
export PAUSE=3 PYTHONPATH=$here
run study submit study.py --out array --array 2 --time 5m --cluster slurm
until cat array/results/*.jsonl 2>/dev/null | grep -q '"arm"'; do sleep 1; done
squeue -r
pkill -KILL -n -f 'python.* -m submitit.core._submit'
while squeue -h | grep -q .; do sleep 1; done
run study status array | grep -E ' [1-9][0-9]* left'  # else nothing was killed in the middle
run study submit study.py --out array --array 2 --time 5m --cluster slurm
while squeue -h | grep -q .; do sleep 1; done
run study status array
"$python" - <<'END'
from rlm_loop.study import load_study
kept = ("task", "arm", "resolved", "answer", "steps", "input_tokens", "output_tokens", "by_cause", "stop", "error")
a, b = (sorted([str([row[k] for k in kept]) for row in load_study(f).rows]) for f in ("array", "here"))
print(len(a), "rows, equal to those without Slurm:", a == b)
raise SystemExit(a != b)
END
