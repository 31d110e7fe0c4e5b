"""An episode that travels: packed here, performed in another process or on another machine, and unpacked here again.

A job carries all that it needs: the agent, the task with its scorer, and the text of study files, which a worker has
not imported.  What comes back is the row and, where the worker does not share the study's folder, the trace.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.models.base import ModelError
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.run.episode import run_episode
from rlm_loop.study.run.limits import Pace, pacing
from rlm_loop.study.run.scheduler import Clock, no_room
from rlm_loop.study.store.rows import Row
from rlm_loop.traces.file import LineFile
from rlm_loop.traces.runs import supersede
from rlm_loop.traces.versions import __version__

#: Modules of these names are study files, imported by path: no worker could import them by name.
STUDY_FILE = "_experiment_"
_SOURCE = "__rlm_loop_source__"


class JobRefused(StudyError):
    """The worker cannot perform a job at all; the message is one line that says what to do."""


@dataclass(frozen=True)
class Job:
    """One episode to be run.  `folder` is the study's where the worker shares it, else `None`; `rate` is how many model
    calls may begin in a minute in the worker's process."""

    study: str
    episode: Episode
    agent: StudyAgent
    folder: Path | None
    rate: float | None = None


@dataclass(frozen=True)
class Done:
    """What came of a job: the row, the fault where the study acts on it, and (zlib) a trace that is elsewhere."""

    row: Row
    fault: BaseException | None = None
    trace: bytes | None = None


def pack(job: Job) -> bytes:
    """A job as bytes.  Raises `StudyError` where something in it cannot leave this process."""
    stream = BytesIO()
    try:
        _pickler()(stream).dump(job)
        inner = stream.getvalue()
        files = {
            n: _source(m) for n, m in list(sys.modules.items()) if n.startswith(STUDY_FILE) and n.encode() in inner
        }
        return pickle.dumps((__version__, files, inner))
    except StudyError:
        raise
    except Exception as error:  # whatever an object's own __reduce__ raises
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise StudyError(
            f"arm {job.episode.arm} on {job.episode.suite}/{job.episode.task.id} cannot travel to another process "
            f"({reason}); give models by name, or run it in threads"
        ) from error


@functools.cache
def _pickler() -> type[pickle.Pickler]:
    try:
        import cloudpickle
    except ImportError as error:
        raise StudyError(f"worker processes need cloudpickle: {install_line('studies')}") from error
    locks = {type(make()): make for make in (threading.Lock, threading.RLock)}

    class Pickler(cloudpickle.Pickler):
        """Functions and classes of notebooks and scripts travel as they are.  Models and tools hold locks, and each
        process has its own: a new one is made there."""

        def reducer_override(self, obj: Any) -> Any:
            make = locks.get(type(obj))
            return super().reducer_override(obj) if make is None else (make, ())

    return Pickler


def perform(payload: bytes) -> Done:
    """Run a packed job: what a worker is sent.  Raises `JobRefused` where it cannot be unpacked."""
    version, files, inner = pickle.loads(payload)
    if version != __version__:
        raise JobRefused(f"a worker has rlm-loop {__version__} and the study {version}; install the same on both")
    try:
        for name, (path, source) in files.items():
            _imported(name, path, source)
        job: Job = pickle.loads(inner)
    except Exception as error:
        raise JobRefused(
            f"a worker cannot unpack an episode ({type(error).__name__}: {error}); install on the workers what the "
            "study imports"
        ) from error
    if job.folder is not None:
        row, fault = run_episode(job.study, job.episode, _agent(job), job.folder, Clock())
        return Done(row, portable(fault))
    with tempfile.TemporaryDirectory(prefix="rlm-loop-episode-") as folder:
        row, fault = run_episode(job.study, job.episode, _agent(job), Path(folder), Clock())
        trace = Path(folder) / job.episode.trace
        return Done(row, portable(fault), zlib.compress(trace.read_bytes(), 1) if trace.is_file() else None)


def _agent(job: Job) -> Callable[[Episode], StudyAgent]:
    def find(_: Episode) -> StudyAgent:
        return job.agent

    return find if job.rate is None else pacing(find, _pace(job.rate))


@functools.cache
def _pace(rate: float) -> Pace:
    """One for all episodes of this process."""
    return Pace(rate)


def portable(fault: BaseException | None) -> BaseException | None:
    """What of a fault a study acts on, without what hangs on it (the whole run), so that it can leave a worker.

    That is a model's, or a full disk; `None` for all others: their row says all there is.
    """
    if isinstance(fault, ModelError):
        told = type(fault)(fault.message, fault.model, fault.retryable)
        told.retry_after, told.waited = fault.retry_after, fault.waited
        return told
    full = no_room(fault)
    return None if full is None else OSError(full.errno, full.strerror, full.filename)


def keep_trace(folder: Path, episode: Episode, done: Done) -> None:
    """Append a trace that came back to the study's folder, as an attempt on this machine would have written it."""
    if done.trace is None:
        return
    path = folder / episode.trace
    try:
        supersede(path)
        file = LineFile(path)
        try:
            file.append(zlib.decompress(done.trace).decode("utf-8", "replace"))
        finally:
            file.close()
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror}; make room and resume") from error


_lock = threading.Lock()


def _source(module: ModuleType) -> tuple[str, str]:
    """A study file's path and text, read once: later episodes get the same, however the file is edited meanwhile."""
    path = str(module.__file__)
    if _SOURCE not in vars(module):
        setattr(module, _SOURCE, Path(path).read_text(encoding="utf-8"))
    return path, getattr(module, _SOURCE)


def _imported(name: str, path: str, source: str) -> None:
    """A study file in this process, made from its text: the same name holds the same code as at home."""
    with _lock:
        there: Any = sys.modules.get(name)
        if there is not None and getattr(there, _SOURCE, source) == source:
            return
        module = ModuleType(name)
        module.__file__ = path
        setattr(module, _SOURCE, source)
        sys.modules[name] = module
        try:
            exec(compile(source, path, "exec"), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise


def take_over(environ: Mapping[str, str], folder: str) -> None:
    """Make this worker process like the one that runs the study: its environment and its working folder."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
