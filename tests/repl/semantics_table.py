"""What sessions promise, sentence by sentence, and the tests that fail where a sentence does not hold.

The numbers are those of the semantics page (lines 11 to 21), then parts 2 to 6 and the closing list of the isolation
issue.  `Mutant` is a change that breaks the sentence: `python tests/repl/mutants.py` makes each in a copy of the
package and sees the tests fail.  `test_semantics_table.py` sees to it that every test and every text exists.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """`old` stands once in the package's code; with `new` instead, the sentence does not hold."""

    old: str
    new: str


@dataclass(frozen=True)
class Promise:
    """`tests` are "file::function" or "file::function[word]", `word` naming a case; files are below `tests`."""

    line: str
    says: str
    tests: tuple[str, ...]
    mutant: Mutant | None = None


def promise(line: str, says: str, *tests: str, breaks: tuple[str, str] | None = None) -> Promise:
    return Promise(line, says, tests, None if breaks is None else Mutant(*breaks))


PROMISES = (
    # -- cells
    promise(
        "11",
        "one real module namespace: classes, closures, global, del, recursion, dataclasses, async def",
        "repl/test_namespace.py::test_cells_work_as_in_a_notebook",
        "repl/test_sessions_alike.py::test_cells",
        breaks=(
            "            return eval(code, self.names)\n",
            "            here = dict(self.names); value = eval(code, here); self.names.update(here); return value\n",
        ),
    ),
    promise(
        "11",
        "names bound before an exception survive it",
        "repl/test_namespace.py::test_cells_work_as_in_a_notebook[a name bound before an exception]",
        breaks=(
            "            return eval(code, self.names)\n",
            "            here = dict(self.names); value = eval(code, here); self.names.update(here); return value\n",
        ),
    ),
    promise(
        "12",
        "the value of a last expression is shown as its repr when nothing was printed",
        "repl/test_namespace.py::test_cells_work_as_in_a_notebook[no echo after a print]",
        "repl/test_namespace.py::test_cells_work_as_in_a_notebook[names stay]",
        breaks=('if "echo" in report and not text.characters:', 'if "echo" in report:'),
    ),
    promise(
        "12",
        "print output is kept also when the cell raises",
        "repl/test_output.py::test_output_is_complete_and_in_order[before an error]",
        breaks=('text = _below(text, _piece(fault.get("text")))', 'text = _piece(fault.get("text"))'),
    ),
    promise(
        "13",
        "errors show the user's frames only",
        "repl/test_errors.py::test_only_the_users_frames_with_their_lines",
        breaks=("for f in frames if is_user(f.filename)]", "for f in frames]"),
    ),
    promise(
        "13",
        "syntax errors show the offending line and a caret",
        "repl/test_errors.py::test_syntax_errors_show_line_and_caret",
        breaks=(
            "lines += traceback.format_exception_only(type(error), error)",
            'lines += [f"{type(error).__name__}: {error}\\n"]',
        ),
    ),
    promise(
        "14",
        "stdout and stderr are captured at descriptor level, child processes too",
        "repl/test_output.py::test_output_is_complete_and_in_order[order]",
        "repl/test_output.py::test_output_is_complete_and_in_order[os.system]",
        breaks=("        os.dup2(writer, 2)\n", ""),
    ),
    promise(
        "14",
        "output that looks like protocol frames passes through, and cannot corrupt the protocol",
        "repl/test_output.py::test_output_is_complete_and_in_order[frames pass through]",
        "repl/test_protocol.py::test_a_cell_cannot_speak_as_the_supervisor",
        "repl/test_protocol.py::test_forged_frames_do_no_harm",
        breaks=("            if kind in OF_SUPERVISOR:\n", "            if False:\n"),
    ),
    promise(
        "14",
        "binary garbage is replaced",
        "repl/test_output.py::test_output_is_complete_and_in_order[bytes that are no text]",
        breaks=('return shown(data.decode("utf-8", "replace"))', 'return shown(data.decode("utf-8", "ignore"))'),
    ),
    promise(
        "14",
        "ANSI sequences are removed",
        "repl/test_output.py::test_output_is_complete_and_in_order[colours]",
        breaks=('    text = _ANSI.sub("", text)\n', ""),
    ),
    promise(
        "15",
        "what the model sees is clipped head and tail, with the number of characters left out",
        "repl/test_output.py::test_floods_are_clipped_with_an_exact_count",
        "repl/test_output.py::test_clip_keeps_head_and_tail_and_counts_the_rest",
        breaks=("            del self.tail[:extra]\n", "            del self.tail[:extra]; self.dropped += 1\n"),
    ),
    promise(
        "15",
        "a hard cap for any observation",
        "agents/test_observation_cap.py::test_no_observation_is_longer_than_the_cap",
        breaks=("self._cap = cap = min(observation_cap, HARD_CAP)", "self._cap = cap = observation_cap"),
    ),
    promise(
        "15",
        "a smaller one per dialect",
        "agents/test_observation_cap.py::test_a_dialect_may_have_a_smaller_cap",
        breaks=("observation_cap=dialect.observation_cap,", "observation_cap=65_536,"),
    ),
    promise(
        "15",
        "the full text is in the trace up to a cap of its own",
        "agents/test_observation_cap.py::test_the_full_text_is_in_the_trace_and_not_in_the_prompt",
        "repl/test_sessions_alike.py::test_output_is_clipped_in_the_middle",
        breaks=("max(cap, RECORD_CAP))[0] if truncated", "cap)[0] if truncated"),
    ),
    promise(
        "16",
        "sys.exit, KeyboardInterrupt, input and breakpoint are ordinary cell errors",
        "repl/test_errors.py::test_ordinary_errors_leave_the_repl_alive",
        breaks=("        sys.breakpointhook = no_debugger\n", ""),
    ),
    promise(
        "16",
        "a dead worker is an observation that says so, and the REPL restarts",
        "repl/test_timeouts.py::test_a_dead_process_is_a_result",
        "repl/test_limits.py::test_memory_beyond_the_limit_is_an_error_of_the_cell",
        breaks=('number, code = frame.get("signal"), frame.get("code")', "number, code = None, 0"),
    ),
    promise(
        "17",
        "at the time limit: interrupt first; if the cell stops in the grace time, variables live and the model is told",
        "repl/test_timeouts.py::test_what_can_be_interrupted_keeps_its_variables",
        breaks=('        return f"{why}; all variables are kept"\n', "        return why\n"),
    ),
    promise(
        "17",
        "otherwise the group is killed and the REPL restarted",
        "repl/test_timeouts.py::test_what_cannot_be_interrupted_is_killed_and_says_what_is_lost",
        "repl/test_lifetime.py::test_no_child_outlives_its_repl",
        breaks=('                        worker.control("kill")\n', "                        pass\n"),
    ),
    promise(
        "17",
        "rebuilt from the journal is what can be rebuilt, and exactly the lost names are said",
        "repl/test_journal.py::test_variables_come_back_and_nothing_is_paid_twice",
        "repl/test_journal.py::test_a_cell_that_was_stopped_is_never_run_again",
        "repl/test_timeouts.py::test_off_the_main_thread_it_is_the_same[in C]",
        breaks=('return self.error in (None, "runtime")', "return True"),
    ),
    promise(
        "17",
        "in time, also off the main thread, for C-level blocking, `except BaseException` loops and sleeping",
        "repl/test_timeouts.py::test_off_the_main_thread_it_is_the_same",
        "repl/test_timeouts.py::test_what_can_be_interrupted_keeps_its_variables[swallowed always]",
        breaks=(
            "                if spent >= grace and not killed:",
            "                if spent >= grace + 3 and not killed:",
        ),
    ),
    promise(
        "17",
        "time spent in host tools is not the cell's time",
        "repl/test_tools_in_cells.py::test_time_in_tools_is_not_the_cells",
        "repl/test_sessions_alike.py::test_time_in_a_tool_is_not_the_cells",
        breaks=(
            "                own = now - began - (calls.waited() if calls.made else 0.0)\n",
            "                own = now - began\n",
        ),
    ),
    promise(
        "18",
        "no child outlives its REPL",
        "repl/test_lifetime.py::test_close_ends_every_process_and_removes_the_folder",
        "repl/test_lifetime.py::test_no_child_outlives_its_repl",
        "repl/conftest.py::nothing_is_left",
        breaks=("            left = _children()\n", "            left = []\n"),
    ),
    promise(
        "18",
        "no REPL outlives its host, also killed with SIGKILL in mid-cell",
        "repl/test_lifetime.py::test_no_repl_outlives_a_host_that_is_killed",
        "repl/test_hardened.py::test_nothing_outlives_a_host_that_is_killed",
        "repl/test_sandbox.py::test_nothing_outlives_a_host_that_is_killed",
        "repl/test_container.py::test_no_container_outlives_a_host_that_is_killed",
        "repl/test_kernel.py::test_a_kernel_does_not_outlive_a_host_that_is_killed",
        breaks=(
            "            if os.getppid() != self.parent:\n                self.outlive()  # somebody",
            "            if False:\n                self.outlive()  # somebody",
        ),
    ),
    promise(
        "18",
        "a parent-death signal on Linux, a watchdog thread elsewhere",
        "repl/test_lifetime.py::test_no_repl_outlives_a_supervisor_that_is_killed",
        "repl/test_lifetime.py::test_a_session_without_the_calls_of_linux_works_the_same",
        breaks=("            self.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG\n", ""),
    ),
    promise(
        "19",
        "reserved names are restored after a cell overwrote them, user data is not",
        "repl/test_namespace.py::test_reserved_names_come_back",
        "repl/test_sessions_alike.py::test_set_get_and_reserved_names",
        breaks=(
            '                self.names[name] = value\n        self.names["__builtins__"]',
            '                pass\n        self.names["__builtins__"]',
        ),
    ),
    promise(
        "19",
        "clashing tool names are refused up front, all of them listed",
        "repl/test_tools_in_cells.py::test_clashing_names_are_refused_all_at_once",
    ),
    promise(
        "20",
        "a context of any size crosses once, byte-exact",
        "repl/test_transfer.py::test_100_megabytes_cross_once_and_exactly",
        "repl/test_transfer.py::test_set_copies_exactly",
        breaks=(
            'return str(m, "utf-8", "surrogatepass")',
            'return str(m, "utf-8", "surrogatepass").replace("\\r\\n", "\\n")',
        ),
    ),
    promise(
        "20",
        "through a file, not through the pipe",
        "repl/test_transfer.py::test_what_is_large_goes_through_a_file_not_the_pipe",
    ),
    promise(
        "20",
        "never copied into a prompt or a trace, which holds its hash and size",
        "agents/test_agents.py::test_the_context_is_told_in_a_line_and_never_written_down",
    ),
    promise(
        "21",
        "Ctrl-C: the cell stops and the kernel lives",
        "agents/test_interrupted.py::test_the_stop_button_of_a_notebook",
        "repl/test_lifetime.py::test_ctrl_c_stops_the_cell_and_keeps_the_session",
        "repl/test_notebook_session.py::test_ctrl_c_stops_the_cell_and_keeps_the_session",
        "repl/test_kernel.py::test_ctrl_c_stops_the_cell_and_keeps_the_session",
    ),
    promise(
        "21",
        "`Interrupted` carries the partial result and trace",
        "agents/test_interrupted.py::test_what_was_done_until_then_is_in_the_outcome_and_in_the_trace",
        "agents/test_interrupted.py::test_in_a_tool_it_is_the_same",
        breaks=(
            "                observations, unfinished = stopped.observations, stopped\n",
            "                raise\n",
        ),
    ),
    promise(
        "21",
        "a second Ctrl-C kills the worker",
        "agents/test_interrupted.py::test_a_second_one_kills_the_worker_and_the_run_is_still_accounted_for",
        "repl/test_lifetime.py::test_a_second_ctrl_c_kills_at_once",
    ),
    # -- launchers
    promise(
        "part 1",
        "the worker is one module of standard library code",
        "repl/test_protocol.py::test_the_worker_is_one_module_of_the_standard_library",
    ),
    promise(
        "part 2",
        "hardened, with landlock and seccomp",
        "repl/test_hardened.py::test_no_privilege_is_left",
        "repl/test_hardened.py::test_no_write_outside_the_working_folder",
        "repl/test_seccomp.py::test_exactly_what_is_named_is_refused",
    ),
    promise(
        "part 2",
        "container: mounts, network off, memory and process limits, never root; with and without root's rights",
        "repl/test_container.py::test_no_network",
        "repl/test_container.py::test_limits_hold",
        "repl/test_container.py::test_cells_do_not_run_as_root",
        "repl/test_container.py::test_it_works_without_root",
    ),
    promise(
        "part 2",
        "resource limits everywhere, set by a small frozen value; no new privileges",
        "repl/test_limits.py::test_memory_beyond_the_limit_is_an_error_of_the_cell",
        "repl/test_limits.py::test_files_and_their_size_are_limited",
        "repl/test_limits.py::test_a_repl_that_used_up_its_processor_time_is_replaced",
        "repl/test_limits.py::test_processes_are_counted_besides_what_the_user_runs_already",
        "repl/test_limits.py::test_no_cell_raises_a_limit",
        "repl/test_limits.py::test_no_new_privileges_in_any_kind",
    ),
    promise(
        "part 2",
        "doctor says what works, what is missing and what each kind protects from",
        "cli/test_doctor.py::test_the_tables_name_every_kind_and_what_is_missing",
        "cli/test_doctor.py::test_every_kind_has_an_answer_to_every_hazard",
    ),
    promise(
        "part 2",
        "the strongest that works is taken, else plain with a warning; the outcome says which",
        "repl/test_hardened.py::test_auto_takes_the_strongest_that_works_and_warns_where_none_does",
        "agents/test_outcome_isolation.py::test_the_outcome_and_the_trace_say_so",
    ),
    promise(
        "part 2", "cells never run as root inside a sandbox", "repl/test_sandbox.py::test_cells_do_not_run_as_root"
    ),
    # -- other sessions
    promise(
        "part 3",
        "kernel sessions: the same protocol and guarantees, rich outputs, any kernelspec",
        "repl/test_sessions_alike.py::test_cells",
        "repl/test_kernel.py::test_rich_outputs_are_kept",
        "repl/test_kernel.py::test_rich_outputs_that_come_late_are_waited_for",
        "repl/test_kernel.py::test_figures_and_tables",
        "repl/test_kernel.py::test_any_kernelspec_for_python",
        breaks=("_LATE = 2.0", "_LATE = 0.0"),
    ),
    promise(
        "part 3",
        "the current notebook's namespace, opt-in, with a list of what changed",
        "repl/test_notebook_session.py::test_the_cells_work_on_the_users_own_objects",
        "repl/test_notebook_session.py::test_what_was_changed_is_listed",
        "repl/test_notebook_session.py::test_in_a_real_notebook",
    ),
    promise(
        "part 4",
        "RestrictedPython: ordinary analysis code runs, known gaps are listed",
        "repl/test_sessions_alike.py::test_cells",
        "repl/test_restricted.py::test_ways_out_that_are_closed",
        "repl/test_restricted.py::test_known_gaps",
    ),
    promise(
        "part 5",
        "each cell with its code, output, names and host calls",
        "repl/test_journal.py::test_a_cell_is_on_record_with_its_calls_and_names",
    ),
    promise(
        "part 5",
        "no sub-call is paid twice; nondeterminism is noticed and reported",
        "repl/test_journal.py::test_variables_come_back_and_nothing_is_paid_twice",
        "repl/test_journal.py::test_what_differs_is_noticed_and_said",
        "repl/test_journal.py::test_any_session_killed_anywhere_goes_on_as_if_it_had_not_been",
    ),
    promise(
        "part 7",
        "at least 120 robustness cases",
        "robustness/test_robustness.py::test_names_are_unique_and_gaps_are_cases",
    ),
    # -- what it must show
    promise("shows", "sandbox: no network", "repl/test_sandbox.py::test_no_network"),
    promise(
        "shows",
        "sandbox: no write outside the workspace",
        "repl/test_sandbox.py::test_no_write_outside_the_working_folder",
    ),
    promise(
        "shows",
        "sandbox: no host environment variable outside the allow-list",
        "repl/test_sandbox.py::test_no_environment_variable_outside_the_allow_list",
    ),
    promise("shows", "sandbox: no host process visible", "repl/test_sandbox.py::test_no_host_process_is_visible"),
    promise(
        "shows", "sandbox: no signal to a host process", "repl/test_sandbox.py::test_no_signal_reaches_a_host_process"
    ),
    promise(
        "shows",
        "the attempts of the sandbox's tests succeed where there is none",
        "repl/test_hardened.py::test_the_attempts_succeed_without_isolation",
    ),
    promise(
        "shows",
        "no process of ours is left after the whole suite",
        "repl/conftest.py::nothing_is_left",
        "robustness/conftest.py::nothing_is_left",
    ),
    promise("shows", "all robustness cases, in time", "robustness/test_robustness.py::test_case"),
)
