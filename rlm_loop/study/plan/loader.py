"""Getting a study from a file of experiments."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from rlm_loop.study.errors import StudyError
from rlm_loop.study.study import Study


def load_study_file(path: str | Path, **options: Any) -> Study:
    """Import an experiment by path and return what its `study(**options)` makes.

    `path` is a Python file, or a folder with a `study.py`.  Raises `StudyError` where there is no such file, it
    defines no `study` function, or the study cannot be made, and `TypeError` for an option that the function has not.
    """
    file = Path(path)
    file = file / "study.py" if file.is_dir() else file
    if not file.is_file() or file.suffix != ".py":
        results = (Path(path) / "study.json").is_file()
        which = "these are the results of one:" if results else f"`rlm-loop study init {path}` makes one, or"
        raise StudyError(
            f"there is no experiment {path}; {which} give a Python file that defines study(), or its folder"
        )
    name = f"_experiment_{file.resolve().parent.name}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles in the file look themselves up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise StudyError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    make = getattr(module, "study", None)
    if not callable(make):
        raise StudyError(f"{path} defines no function study(); it has to return a Study")
    made = make(**options)
    if not isinstance(made, Study):
        raise StudyError(f"{path}: study() returned {type(made).__name__}, not a Study")
    return made
