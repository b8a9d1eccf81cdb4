# SPDX-License-Identifier: Apache-2.0
# Made by clients/generate.py from the program's schemas. Do not edit.
"""The job and the result as Python sees them."""
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class ApplyUnifiedDiffArguments(TypedDict):
    diff: str
    """A unified diff of one or more files, as diff -u and git diff write it: --- a/FILE, +++ b/FILE, @@ -1,3 +1,4 @@ and lines that begin with ' ', '+' or '-'. /dev/null stands for a created or deleted file; git's rename, copy and mode lines are understood. The form *** Begin Patch ... *** End Patch is taken too."""
    strip: NotRequired[int]
    """Leading directories to strip from names, as patch -p. Default: guessed from the names and existing files."""
    dry_run: NotRequired[bool]
    """Only say what would be done."""


class ApplyUnifiedDiffResultFile(TypedDict):
    path: str
    old_path: NotRequired[str]
    """Where a renamed file was."""
    action: Literal['created', 'modified', 'deleted', 'renamed', 'mode_changed']
    hunks: int
    added: int
    """Lines."""
    removed: int
    """Lines."""
    offset: int
    """Lines that a hunk was off at most."""
    fuzz: int
    """Lines of context left out at an end of a hunk, at most."""
    recounted: NotRequired[int]
    """Hunks whose @@ line had wrong counts."""
    line_ends: NotRequired[Literal['crlf', 'lf']]
    """The file's, which the diff's lines were given."""
    tolerated: NotRequired[list[Literal['no_git_line', 'no_line_numbers', 'blank_lines', 'trailing_blanks', 'line_ends', 'final_newline', 'indentation']]]
    """What of the diff was not as git writes it, where only one place fits."""


class ApplyUnifiedDiffResult(TypedDict):
    files: list[ApplyUnifiedDiffResultFile]
    tolerated: NotRequired[list[Literal['code_fence', 'prose', 'begin_patch', 'bare_context', 'properties']]]
    """What stood around the diff, or that it was of another form."""
    dry_run: NotRequired[bool]
    """True where nothing was written."""


class AskModelArguments(TypedDict):
    prompt: str
    """What the model is asked."""
    system: NotRequired[str]
    """Instructions that follow the job's context."""
    model: NotRequired[str]
    """One of inference.allowed_models; default: the first that is served."""
    json_schema: NotRequired[dict[str, Any]]
    """The answer must be JSON that fits this JSON Schema."""
    save_to: NotRequired[str]
    """File of the workspace that the answer is written to."""


class AskModelResult(TypedDict):
    content: NotRequired[str]
    """The answer; where json_schema was given, it is in json instead."""
    json: NotRequired[Any]
    """The answer as a value."""
    model: str
    prompt_tokens: NotRequired[int]
    completion_tokens: NotRequired[int]


class CallToolArguments(TypedDict):
    tool: str
    """The tool's name, as the gateway lists it."""
    arguments: NotRequired[dict[str, Any]]
    """What the tool takes; task_id and job_id are filled in."""
    timeout_seconds: NotRequired[float]
    """Seconds, more than 0, after which the step fails; default: no limit but the job's."""


class CallToolResult(TypedDict):
    content: str
    """The answer as text; other content is described in a line each."""
    structured: NotRequired[Any]
    """The answer as a value, if the tool gave one that says more than the text, and there is room for it."""
    is_error: bool
    """The tool ran and failed; then the step has failed."""


class ListTreeArguments(TypedDict):
    path: NotRequired[str]
    """Directory to list, relative to the workspace or absolute below it; "" is the workspace itself."""
    max_depth: NotRequired[int]
    """Levels to list: 1 is what the directory itself holds. At most 64 are listed."""
    max_entries: NotRequired[int]
    """Most entries to list; the rest is omitted, and truncated is true."""
    include_hidden: NotRequired[bool]
    """Where false, names that begin with a dot are left out."""


class ListTreeResultChild(TypedDict):
    name: str
    type: Literal['file', 'directory', 'symlink', 'fifo', 'socket', 'device']
    size_bytes: int
    mode: str
    """Permission bits in octal, four digits."""
    target: NotRequired[str]
    """Of a symlink, as it is written; it is not followed."""
    children: NotRequired[list[ListTreeResultChild]]
    """In byte order of name; left out where max_depth stopped, or for a directory that cannot be read."""


class ListTreeResult(TypedDict):
    """The directory itself ("." is the workspace), all below it as its children."""

    name: str
    type: Literal['file', 'directory', 'symlink', 'fifo', 'socket', 'device']
    size_bytes: int
    mode: str
    """Permission bits in octal, four digits."""
    target: NotRequired[str]
    """Of a symlink, as it is written; it is not followed."""
    children: NotRequired[list[ListTreeResultChild]]
    """In byte order of name; left out where max_depth stopped, or for a directory that cannot be read."""
    truncated: bool
    """There is more than was listed."""


class ReadFileArguments(TypedDict):
    path: str
    """A regular file, relative to the workspace or absolute below it."""
    max_bytes: NotRequired[int]
    """Most bytes to return; the rest is omitted, and truncated is true."""
    start_line: NotRequired[int]
    """First line to return, from 1."""
    end_line: NotRequired[int]
    """Last line to return, inclusive."""
    offset_bytes: NotRequired[int]
    """Bytes to leave out at the start; lines are counted from there."""


class ReadFileResult(TypedDict):
    path: str
    """Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR."""
    content: str
    encoding: Literal['utf-8', 'base64']
    """Of content; base64 where the bytes are not UTF-8."""
    size_bytes: int
    """Of the whole file."""
    truncated: bool
    """The range holds more than content."""
    sha256: NotRequired[str]
    """Of the whole file, in hex; absent where the file was not read to its end."""
    total_lines: NotRequired[int]
    """Of the whole file; absent where content is base64, or the file was not read to its end."""


class ReplaceInFileArguments(TypedDict):
    path: str
    """Relative to the workspace or absolute below it. A link is followed, where it stays inside."""
    old_text: str
    """What the file holds, with enough lines around it that no other place fits. Empty: create the file with new_text."""
    new_text: str
    """Replacement text; may be empty."""
    expected_count: NotRequired[int]
    """Places to replace: no more, no fewer."""


class ReplaceInFileResult(TypedDict):
    path: str
    """Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR."""
    count: int
    """Places that were replaced."""
    created: bool
    """There was no such file before."""
    tolerated: list[Literal['trailing_blanks', 'line_ends', 'final_newline', 'indentation']]
    """How old_text differs from the file. new_text is written as the file is."""
    sha256: str
    """Of the whole file, in hex."""


class RunAgentArgumentsPermissions(TypedDict):
    read: NotRequired[Literal['allow', 'deny']]
    edit: NotRequired[Literal['allow', 'deny']]
    delete: NotRequired[Literal['allow', 'deny']]
    move: NotRequired[Literal['allow', 'deny']]
    search: NotRequired[Literal['allow', 'deny']]
    execute: NotRequired[Literal['allow', 'deny']]
    think: NotRequired[Literal['allow', 'deny']]
    fetch: NotRequired[Literal['allow', 'deny']]
    switch_mode: NotRequired[Literal['allow', 'deny']]
    other: NotRequired[Literal['allow', 'deny']]
    default: NotRequired[Literal['allow', 'deny']]


class RunAgentArguments(TypedDict):
    argv: list[str]
    """Program and arguments in one list."""
    prompt: NotRequired[str]
    """What the agent is to do; default: what the job's context asks for."""
    model: NotRequired[str]
    """One that the agent offers; default: its own choice."""
    mode: NotRequired[str]
    """One that the agent offers, such as build or plan; default: its own."""
    permissions: NotRequired[RunAgentArgumentsPermissions]
    env: NotRequired[dict[str, Any]]
    """Variables to add to the environment or to replace in it. The proxies that the node set cannot be replaced."""
    working_dir: NotRequired[str]
    """Directory to run in; outside the workspace, any that its user can enter."""
    timeout_seconds: NotRequired[float]
    """Seconds, more than 0, after which the command is ended and the step fails."""
    idle_timeout_seconds: NotRequired[float]
    """Seconds, more than 0, without any output, after which the command is ended and the step fails."""
    max_output_bytes: NotRequired[int]
    """Bytes of stdout and stderr together to return at most; the rest is left out, and the command goes on."""
    secrets: NotRequired[list[str]]
    """Names of the operator's secrets that the command gets, as variables of these names; not for a model's commands."""


class RunAgentResultReport(TypedDict):
    """What a command may write into the file that CYNODE_REPORT names; at most 64 KiB."""

    answer: NotRequired[str]
    """What the worker says at its end; the result's final_answer."""
    model: NotRequired[str]
    """The model that it used."""
    prompt_tokens: NotRequired[int]
    completion_tokens: NotRequired[int]
    cost_usd: NotRequired[float]
    """What that cost, in US dollars."""


class RunAgentResult(TypedDict):
    stop_reason: NotRequired[str]
    """The agent's own word for the end of its turn: end_turn; absent where there was none."""
    answer: str
    """Its last message."""
    tool_calls: int
    """How many it told of."""
    exit_code: NotRequired[int]
    """Absent where a signal ended the command."""
    signal: NotRequired[str]
    """Name of the signal that ended the command: SIGSEGV."""
    stderr: str
    """What it printed besides the talk; UTF-8."""
    stderr_truncated: bool
    duration_ms: int
    cpu_time_ms: int
    max_rss_bytes: int
    report: NotRequired[RunAgentResultReport]
    """What a command may write into the file that CYNODE_REPORT names; at most 64 KiB."""


class RunCommandArguments(TypedDict):
    command: NotRequired[str]
    """Program to run: a name to look up in PATH, or a path. No shell is involved."""
    args: NotRequired[list[str]]
    """Its arguments; with command only."""
    argv: NotRequired[list[str]]
    """Program and arguments in one list."""
    shell: NotRequired[str]
    """A script for /bin/sh -c, for pipes, redirections or variables."""
    working_dir: NotRequired[str]
    """Directory to run in; outside the workspace, any that its user can enter."""
    env: NotRequired[dict[str, Any]]
    """Variables to add to the environment or to replace in it. The proxies that the node set cannot be replaced."""
    stdin: NotRequired[str]
    """What the command reads; default: nothing."""
    timeout_seconds: NotRequired[float]
    """Seconds, more than 0, after which the command is ended and the step fails."""
    idle_timeout_seconds: NotRequired[float]
    """Seconds, more than 0, without any output, after which the command is ended and the step fails."""
    max_output_bytes: NotRequired[int]
    """Bytes of stdout and stderr together to return at most; the rest is left out, and the command goes on."""
    secrets: NotRequired[list[str]]
    """Names of the operator's secrets that the command gets, as variables of these names; not for a model's commands."""


class RunCommandResultReport(TypedDict):
    """What a command may write into the file that CYNODE_REPORT names; at most 64 KiB."""

    answer: NotRequired[str]
    """What the worker says at its end; the result's final_answer."""
    model: NotRequired[str]
    """The model that it used."""
    prompt_tokens: NotRequired[int]
    completion_tokens: NotRequired[int]
    cost_usd: NotRequired[float]
    """What that cost, in US dollars."""


class RunCommandResult(TypedDict):
    exit_code: NotRequired[int]
    """Absent where a signal ended the command."""
    signal: NotRequired[str]
    """Name of the signal that ended the command: SIGSEGV."""
    stdout: str
    """UTF-8; other bytes are replaced."""
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    duration_ms: int
    cpu_time_ms: int
    """Of the command and the children it waited for."""
    max_rss_bytes: int
    """Largest size in memory of one of them, as the kernel counts it."""
    report: NotRequired[RunCommandResultReport]
    """What a command may write into the file that CYNODE_REPORT names; at most 64 KiB."""


class SearchFilesArguments(TypedDict):
    pattern: str
    """Regular expression (PCRE2, UTF-8), matched against each line by itself; \\w, \\d, \\s and \\b know ASCII only."""
    path: NotRequired[str]
    """File or directory to search, with all below it but directories named .git. Links and binary files are passed over."""
    include: NotRequired[str]
    """Only files that this glob matches: by name (*.c) or, where it holds a slash, by path (src/**/*.{c,h})."""
    max_matches: NotRequired[int]
    """Matching lines to return at most."""
    ignore_case: NotRequired[bool]


class SearchFilesResultMatch(TypedDict):
    path: str
    line: int
    text: str
    """The line; of a long one what is around the match."""


class SearchFilesResult(TypedDict):
    matches: list[SearchFilesResultMatch]
    """In the order of list_tree (names in byte order, a directory's files where its name stands), then by line."""
    files_searched: int
    truncated: bool
    """There are more matches than were asked for."""


class WriteFileArguments(TypedDict):
    path: str
    """Relative to the workspace or absolute below it. A link is followed, where it stays inside."""
    content: str
    encoding: NotRequired[Literal['utf-8', 'base64']]
    """Of content; base64, which may have line ends, is decoded before it is written."""
    mode: NotRequired[str]
    """Permission bits in octal, such as "0755"; else those of the file replaced, or 0644."""
    overwrite: NotRequired[bool]
    """Where false, a file that is there is an error."""
    append: NotRequired[bool]
    """Keep what the file holds, and add content to its end."""


class WriteFileResult(TypedDict):
    path: str
    """Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR."""
    size_bytes: int
    """Of the whole file."""
    sha256: NotRequired[str]
    """Of the whole file, in hex; absent after an append to a file that is then larger than 1 MiB."""
    created: bool
    """There was no such file before."""


class JobConstraints(TypedDict):
    """What the job may use at most."""

    max_runtime_seconds: int
    """Seconds for the whole job; then everything is ended and the status is timeout."""
    max_output_bytes: int
    """Bytes that one step may return: stdout and stderr together, file content, tree, matches."""
    ext_net_allowed: NotRequired[bool | None]
    """Whether the job may use the network outside the node and the orchestrator."""
    report_changes: NotRequired[bool | None]
    """Whether the result says which files of the workspace changed; changes.patch among the artifacts has the diff."""


class JobInference(TypedDict):
    """Which models the job may use."""

    allowed_models: list[str]
    """Names of models; no other is ever asked."""
    source: NotRequired[Literal['worker', 'api_egress', 'orchestrator'] | None]
    """Where models are reached; orchestrator or unset: wherever an allowed one is served."""
    max_requests: NotRequired[int | None]
    """Most requests to models that are answered, of the whole job, --resume included."""
    max_total_tokens: NotRequired[int | None]
    """Most tokens of prompts and replies, summed over all requests. The last request may pass it."""
    answer_schema: NotRequired[dict[str, Any] | None]
    """JSON Schema of an agent's final answer, which then is a text that holds JSON."""


class JobContextAcceptanceCriteriaItem(TypedDict):
    criterion: str
    """What must hold at the end."""
    check: NotRequired[RunCommandArguments]
    """Arguments of run_command. The runner runs it when the work is done; exit code 0 means that the criterion is met."""


class JobContext(TypedDict):
    """What the work is about. A text that begins with /job/ is the path of a file to read."""

    baseline_context: NotRequired[str | None]
    """Who the agent is: identity, role, responsibilities, what it must not do."""
    project_context: NotRequired[str | dict[str, Any] | list[Any] | None]
    """The project: its identity and scope."""
    task_context: NotRequired[str | dict[str, Any] | list[Any] | None]
    """The task: its identity, state and what belongs to it."""
    requirements: NotRequired[list[str | dict[str, Any] | list[Any]] | str | dict[str, Any] | None]
    """What the work must satisfy: each a text, or a structure that is shown as JSON. One may stand alone."""
    acceptance_criteria: NotRequired[list[str | JobContextAcceptanceCriteriaItem] | str | None]
    """What the outcome is checked by: each a text, or a text with a check. One text may stand alone."""
    preferences: NotRequired[dict[str, Any] | None]
    """How the user wants work to be done."""
    additional_context: NotRequired[str | None]
    """Further text that the user has configured."""
    skill_ids: NotRequired[list[str] | None]
    """Identifiers of skills to fetch from the gateway."""
    skills: NotRequired[str | list[Any] | dict[str, Any] | None]
    """Skills themselves, or paths of their files."""
    agents_md: NotRequired[bool | None]
    """Whether the workspace's AGENTS.md, at most 32 KiB of it, is part of the project context; default: true."""
    persona_title: NotRequired[str | None]
    """The role's name, where persona.title is left out."""
    persona_description: NotRequired[str | None]
    """The role in a few sentences, where persona.description is left out."""


class JobPersona(TypedDict):
    """Whom the agent acts as."""

    title: NotRequired[str | None]
    """The role's name."""
    description: NotRequired[str | None]
    """The role in a few sentences."""


class JobStep(TypedDict):
    """One step; arguments are those of its type."""

    id: NotRequired[str]
    type: Literal['apply_unified_diff', 'ask_model', 'call_tool', 'list_tree', 'read_file', 'replace_in_file', 'run_agent', 'run_command', 'search_files', 'write_file']
    arguments: NotRequired[dict[str, Any]]
    on_failure: NotRequired[Literal['stop', 'continue'] | None]
    """Of a direct job: stop (default), or continue: the job goes on, and the step's failure is not the job's."""
    always: NotRequired[bool | None]
    """Of a direct job: the step runs also after one that failed, and before the checks. Default: false."""


class Job(TypedDict):
    protocol_version: str
    """MAJOR.MINOR of this protocol; the major version is 1."""
    job_id: str
    """The job's identifier; a UUID by convention."""
    task_id: str
    """The task's identifier; a UUID by convention."""
    constraints: JobConstraints
    """What the job may use at most."""
    execution_mode: NotRequired[Literal['direct_steps', 'agent_inference'] | None]
    """Whether the steps are run as they are or a model works on the job; default: from steps and inference."""
    inference: NotRequired[JobInference | None]
    """Which models the job may use."""
    context: NotRequired[JobContext | None]
    """What the work is about. A text that begins with /job/ is the path of a file to read."""
    persona: NotRequired[JobPersona | None]
    """Whom the agent acts as."""
    persona_id: NotRequired[str | None]
    """The persona's identifier."""
    steps: NotRequired[list[JobStep] | None]
    """What is done, in this order; a failing step ends the job, unless its on_failure says otherwise."""


class ResultStep(TypedDict):
    index: int
    """Place in the job's steps, from 0."""
    id: str
    type: str
    check: NotRequired[int]
    """The step is the runner's own check of this acceptance criterion, counted from 1; else absent."""
    status: Literal['success', 'failure', 'timeout', 'skipped']
    started_at: str
    """RFC 3339 in UTC with milliseconds."""
    duration_ms: int
    exit_code: NotRequired[int]
    """Of a command that ended by itself."""
    output: NotRequired[str]
    """Plain text of the step, whole up to its limit; past 1 MiB head and tail."""
    output_truncated: NotRequired[bool]
    """True where output is not all of the text; else absent."""
    error: NotRequired[str]
    """One line for people."""
    error_code: NotRequired[str]
    """What went wrong, finer than the job's failure_code."""
    tolerated: NotRequired[bool]
    """True where the step failed and its on_failure is continue, so that the job went on; else absent."""
    result: NotRequired[Any]
    """The structured answer, as `--schema steps` says for the type."""


class ResultRunningStep(TypedDict):
    """The step that ran when this was written; only in the result of a job that is not over."""

    index: int
    id: str
    type: str
    check: NotRequired[int]
    """The step is the runner's own check of this acceptance criterion, counted from 1; else absent."""
    started_at: str
    """RFC 3339 in UTC with milliseconds."""
    output: NotRequired[str]
    """The last of what it had printed by then, at most 4 KiB."""
    output_truncated: NotRequired[bool]
    """True where there was more before it; else absent."""


class ResultArtifact(TypedDict):
    path: str
    """Relative to the artifacts directory."""
    size_bytes: int
    sha256: NotRequired[str]
    """Left out for a file over 256 MiB, one that cannot be read, or one that the job's time was too short to read."""
    ref: NotRequired[str]


class ResultTodoItem(TypedDict):
    id: str
    title: str
    source: Literal['requirement', 'acceptance_criterion', 'step', 'agent']
    parent: str | None
    status: Literal['pending', 'in_progress', 'done', 'dropped']
    note: str | None


class ResultTodo(TypedDict):
    total: int
    done: int
    items: list[ResultTodoItem]


class ResultResourceUsage(TypedDict):
    """Of the runner and every process of the job that was waited for."""

    cpu_time_ms: int
    max_rss_bytes: int


class ResultInference(TypedDict):
    """What models were asked."""

    model: NotRequired[str]
    requests: NotRequired[int]
    prompt_tokens: NotRequired[int]
    completion_tokens: NotRequired[int]
    duration_ms: NotRequired[int]
    """Of all requests together."""
    source: NotRequired[Literal['worker']]
    """worker: what a worker's report says, which nobody checked; it may lack members. Else absent."""
    cost_usd: NotRequired[float]
    """Of a worker's report alone."""


class ResultAcceptanceItem(TypedDict):
    criterion: str
    met: bool | None
    """null: not checked."""
    evidence: str
    """Names the step that shows it, or says why nothing was checked; may be empty then."""
    verified_by: Literal['check', 'model'] | None
    """check: the runner ran the criterion's check; model: the model says so, and named a step; null: not checked."""


class ResultRunner(TypedDict):
    """What ran the job."""

    version: str
    job_sha256: NotRequired[str]
    """Of the job file; left out where it could not be read."""
    arch: str
    """As uname calls the machine: x86_64."""
    kernel: str
    """Its release."""


class ResultConfinement(TypedDict):
    """What the kernel kept commands from."""

    writes: Literal['landlock', 'none']
    """What kept commands from writing elsewhere."""
    abi: NotRequired[int]
    """Version of the kernel's Landlock."""
    writable: NotRequired[list[str]]
    """Directories below which commands could write."""
    partial: NotRequired[list[str]]
    """What could not be kept apart, why, and what would help."""


class ResultWorkspaceChangesCounts(TypedDict):
    created: NotRequired[int]
    modified: NotRequired[int]
    deleted: NotRequired[int]
    mode_changed: NotRequired[int]
    type_changed: NotRequired[int]
    unreadable: NotRequired[int]


class ResultWorkspaceChangesFile(TypedDict):
    path: str
    action: Literal['created', 'modified', 'deleted', 'mode_changed', 'type_changed', 'unreadable']
    size_bytes_before: NotRequired[int]
    size_bytes: NotRequired[int]
    left_out: NotRequired[Literal['binary', 'too_large', 'original_not_kept', 'patch_too_large', 'unreadable', 'blocked', 'no_time']]
    """Why the patch does not have this change."""


class ResultWorkspaceChanges(TypedDict):
    """What the job did to the files of the workspace; where it was asked for."""

    counts: ResultWorkspaceChangesCounts
    files: list[ResultWorkspaceChangesFile]
    """At most 10,000."""
    truncated: bool
    """There are more files than are listed, or some could not be read."""
    patch: NotRequired[str]
    """The artifact with the diff; left out where there is none."""
    patch_error: NotRequired[str]
    """Why the diff could not be written."""
    since_resume: NotRequired[bool]
    """The job was resumed: these are the changes since then."""


class Result(TypedDict):
    protocol_version: str
    job_id: str
    task_id: str
    status: Literal['success', 'failure', 'timeout']
    started_at: str
    """RFC 3339 in UTC with milliseconds."""
    finished_at: str
    """RFC 3339 in UTC with milliseconds."""
    duration_ms: int
    steps: list[ResultStep]
    running_step: NotRequired[ResultRunningStep]
    """The step that ran when this was written; only in the result of a job that is not over."""
    artifacts: list[ResultArtifact]
    todo: ResultTodo
    resource_usage: ResultResourceUsage
    """Of the runner and every process of the job that was waited for."""
    final_answer: NotRequired[str]
    """What the model said at the end, or the last worker that wrote a report."""
    inference_used: bool
    inference: NotRequired[ResultInference]
    """What models were asked."""
    acceptance: NotRequired[list[ResultAcceptanceItem]]
    runner: NotRequired[ResultRunner]
    """What ran the job."""
    retryable: NotRequired[bool]
    """Of a failure: whether the same job may succeed later, because what failed lies outside of it."""
    confinement: ResultConfinement
    """What the kernel kept commands from."""
    workspace_changes: NotRequired[ResultWorkspaceChanges]
    """What the job did to the files of the workspace; where it was asked for."""
    failure_code: Literal['schema_validation', 'ext_net_required', 'step_failed', 'timeout', 'constraint_violation', 'cancelled', 'interrupted', 'runs_as_root', 'environment_invalid', 'inference_unavailable', 'acceptance_unmet', 'agent_gave_up', 'agent_stuck', 'internal_error'] | None
    failure_message: str | None
