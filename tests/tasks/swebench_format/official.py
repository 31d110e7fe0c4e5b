"""Run by a test in a process of its own: the official package's own readers and graders on files of ours.

`python official.py DATASET PREDICTIONS TESTBED RUN_ID` prints one JSON object.  TESTBED is a folder of checkouts by
instance id, with the prediction's patch applied; in each, the instance's eval script is run as the harness does in a
container.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def main(dataset: str, predictions: str, testbed: str, run_id: str) -> None:
    from swebench.harness.constants import RUN_EVALUATION_LOG_DIR
    from swebench.harness.grading import get_eval_report
    from swebench.harness.reporting import make_run_report
    from swebench.harness.utils import get_predictions_from_file, load_swebench_dataset, make_test_spec

    instances = load_swebench_dataset(dataset, "test")
    read = get_predictions_from_file(predictions, dataset, "test")
    by_id = {p["instance_id"]: p for p in read}
    graded = {}
    for instance in instances:
        name = instance["instance_id"]
        if not by_id.get(name, {}).get("model_patch"):
            continue
        spec = make_test_spec(instance)
        script = spec.eval_script.replace("/testbed", str(Path(testbed) / name))
        done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        model = by_id[name]["model_name_or_path"].replace("/", "__")
        folder = RUN_EVALUATION_LOG_DIR / run_id / model / name
        folder.mkdir(parents=True)
        (folder / "test_output.txt").write_text(done.stdout)
        graded[name] = get_eval_report(spec, by_id[name], str(folder / "test_output.txt"), True)
        (folder / "report.json").write_text(json.dumps(graded[name]))
    report = make_run_report(by_id, instances, run_id)
    print(json.dumps({"read": read, "instances": len(instances), "graded": graded, "report": str(report)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
