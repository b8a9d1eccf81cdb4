// SPDX-License-Identifier: Apache-2.0
// Made by clients/generate.py from the program's schemas. Do not edit.

// Package cynodesba has the job and the result of cynode-sba as Go sees them.
package cynodesba

import "encoding/json"

// ApplyUnifiedDiffArguments: see the documentation of ApplyUnifiedDiffArguments.
type ApplyUnifiedDiffArguments struct {
	// A unified diff of one or more files, as diff -u and git diff write it: --- a/FILE, +++ b/FILE, @@ -1,3 +1,4 @@ and lines that begin with ' ', '+' or '-'. /dev/null stands for a created or deleted file; git's rename, copy and mode lines are understood. The form *** Begin Patch ... *** End Patch is taken too.
	Diff string `json:"diff"`
	// Leading directories to strip from names, as patch -p. Default: guessed from the names and existing files.
	Strip *int64 `json:"strip,omitempty"`
	// Only say what would be done.
	DryRun *bool `json:"dry_run,omitempty"`
}

// ApplyUnifiedDiffResultFile: see the documentation of ApplyUnifiedDiffResultFile.
type ApplyUnifiedDiffResultFile struct {
	Path string `json:"path"`
	// Where a renamed file was.
	OldPath *string `json:"old_path,omitempty"`
	Action  string  `json:"action"`
	Hunks   int64   `json:"hunks"`
	// Lines.
	Added int64 `json:"added"`
	// Lines.
	Removed int64 `json:"removed"`
	// Lines that a hunk was off at most.
	Offset int64 `json:"offset"`
	// Lines of context left out at an end of a hunk, at most.
	Fuzz int64 `json:"fuzz"`
	// Hunks whose @@ line had wrong counts.
	Recounted *int64 `json:"recounted,omitempty"`
	// The file's, which the diff's lines were given.
	LineEnds *string `json:"line_ends,omitempty"`
	// What of the diff was not as git writes it, where only one place fits.
	Tolerated []string `json:"tolerated,omitempty"`
}

// ApplyUnifiedDiffResult: see the documentation of ApplyUnifiedDiffResult.
type ApplyUnifiedDiffResult struct {
	Files []ApplyUnifiedDiffResultFile `json:"files"`
	// What stood around the diff, or that it was of another form.
	Tolerated []string `json:"tolerated,omitempty"`
	// True where nothing was written.
	DryRun *bool `json:"dry_run,omitempty"`
}

// AskModelArguments: see the documentation of AskModelArguments.
type AskModelArguments struct {
	// What the model is asked.
	Prompt string `json:"prompt"`
	// Instructions that follow the job's context.
	System *string `json:"system,omitempty"`
	// One of inference.allowed_models; default: the first that is served.
	Model *string `json:"model,omitempty"`
	// The answer must be JSON that fits this JSON Schema.
	JsonSchema map[string]json.RawMessage `json:"json_schema,omitempty"`
	// File of the workspace that the answer is written to.
	SaveTo *string `json:"save_to,omitempty"`
}

// AskModelResult: see the documentation of AskModelResult.
type AskModelResult struct {
	// The answer; where json_schema was given, it is in json instead.
	Content *string `json:"content,omitempty"`
	// The answer as a value.
	Json             json.RawMessage `json:"json,omitempty"`
	Model            string          `json:"model"`
	PromptTokens     *int64          `json:"prompt_tokens,omitempty"`
	CompletionTokens *int64          `json:"completion_tokens,omitempty"`
}

// CallToolArguments: see the documentation of CallToolArguments.
type CallToolArguments struct {
	// The tool's name, as the gateway lists it.
	Tool string `json:"tool"`
	// What the tool takes; task_id and job_id are filled in.
	Arguments map[string]json.RawMessage `json:"arguments,omitempty"`
	// Seconds, more than 0, after which the step fails; default: no limit but the job's.
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty"`
}

// CallToolResult: see the documentation of CallToolResult.
type CallToolResult struct {
	// The answer as text; other content is described in a line each.
	Content string `json:"content"`
	// The answer as a value, if the tool gave one that says more than the text, and there is room for it.
	Structured json.RawMessage `json:"structured,omitempty"`
	// The tool ran and failed; then the step has failed.
	IsError bool `json:"is_error"`
}

// ListTreeArguments: see the documentation of ListTreeArguments.
type ListTreeArguments struct {
	// Directory to list, relative to the workspace or absolute below it; "" is the workspace itself.
	Path *string `json:"path,omitempty"`
	// Levels to list: 1 is what the directory itself holds. At most 64 are listed.
	MaxDepth *int64 `json:"max_depth,omitempty"`
	// Most entries to list; the rest is omitted, and truncated is true.
	MaxEntries *int64 `json:"max_entries,omitempty"`
	// Where false, names that begin with a dot are left out.
	IncludeHidden *bool `json:"include_hidden,omitempty"`
}

// ListTreeResultChild: see the documentation of ListTreeResultChild.
type ListTreeResultChild struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	SizeBytes int64  `json:"size_bytes"`
	// Permission bits in octal, four digits.
	Mode string `json:"mode"`
	// Of a symlink, as it is written; it is not followed.
	Target *string `json:"target,omitempty"`
	// In byte order of name; left out where max_depth stopped, or for a directory that cannot be read.
	Children []ListTreeResultChild `json:"children,omitempty"`
}

// ListTreeResult: The directory itself ("." is the workspace), all below it as its children.
type ListTreeResult struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	SizeBytes int64  `json:"size_bytes"`
	// Permission bits in octal, four digits.
	Mode string `json:"mode"`
	// Of a symlink, as it is written; it is not followed.
	Target *string `json:"target,omitempty"`
	// In byte order of name; left out where max_depth stopped, or for a directory that cannot be read.
	Children []ListTreeResultChild `json:"children,omitempty"`
	// There is more than was listed.
	Truncated bool `json:"truncated"`
}

// ReadFileArguments: see the documentation of ReadFileArguments.
type ReadFileArguments struct {
	// A regular file, relative to the workspace or absolute below it.
	Path string `json:"path"`
	// Most bytes to return; the rest is omitted, and truncated is true.
	MaxBytes *int64 `json:"max_bytes,omitempty"`
	// First line to return, from 1.
	StartLine *int64 `json:"start_line,omitempty"`
	// Last line to return, inclusive.
	EndLine *int64 `json:"end_line,omitempty"`
	// Bytes to leave out at the start; lines are counted from there.
	OffsetBytes *int64 `json:"offset_bytes,omitempty"`
}

// ReadFileResult: see the documentation of ReadFileResult.
type ReadFileResult struct {
	// Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR.
	Path    string `json:"path"`
	Content string `json:"content"`
	// Of content; base64 where the bytes are not UTF-8.
	Encoding string `json:"encoding"`
	// Of the whole file.
	SizeBytes int64 `json:"size_bytes"`
	// The range holds more than content.
	Truncated bool `json:"truncated"`
	// Of the whole file, in hex; absent where the file was not read to its end.
	SHA256 *string `json:"sha256,omitempty"`
	// Of the whole file; absent where content is base64, or the file was not read to its end.
	TotalLines *int64 `json:"total_lines,omitempty"`
}

// ReplaceInFileArguments: see the documentation of ReplaceInFileArguments.
type ReplaceInFileArguments struct {
	// Relative to the workspace or absolute below it. A link is followed, where it stays inside.
	Path string `json:"path"`
	// What the file holds, with enough lines around it that no other place fits. Empty: create the file with new_text.
	OldText string `json:"old_text"`
	// Replacement text; may be empty.
	NewText string `json:"new_text"`
	// Places to replace: no more, no fewer.
	ExpectedCount *int64 `json:"expected_count,omitempty"`
}

// ReplaceInFileResult: see the documentation of ReplaceInFileResult.
type ReplaceInFileResult struct {
	// Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR.
	Path string `json:"path"`
	// Places that were replaced.
	Count int64 `json:"count"`
	// There was no such file before.
	Created bool `json:"created"`
	// How old_text differs from the file. new_text is written as the file is.
	Tolerated []string `json:"tolerated"`
	// Of the whole file, in hex.
	SHA256 string `json:"sha256"`
}

// RunAgentArgumentsPermissions: see the documentation of RunAgentArgumentsPermissions.
type RunAgentArgumentsPermissions struct {
	Read       *string `json:"read,omitempty"`
	Edit       *string `json:"edit,omitempty"`
	Delete     *string `json:"delete,omitempty"`
	Move       *string `json:"move,omitempty"`
	Search     *string `json:"search,omitempty"`
	Execute    *string `json:"execute,omitempty"`
	Think      *string `json:"think,omitempty"`
	Fetch      *string `json:"fetch,omitempty"`
	SwitchMode *string `json:"switch_mode,omitempty"`
	Other      *string `json:"other,omitempty"`
	Default    *string `json:"default,omitempty"`
}

// RunAgentArguments: see the documentation of RunAgentArguments.
type RunAgentArguments struct {
	// Program and arguments in one list.
	Argv []string `json:"argv"`
	// What the agent is to do; default: what the job's context asks for.
	Prompt *string `json:"prompt,omitempty"`
	// One that the agent offers; default: its own choice.
	Model *string `json:"model,omitempty"`
	// One that the agent offers, such as build or plan; default: its own.
	Mode        *string                       `json:"mode,omitempty"`
	Permissions *RunAgentArgumentsPermissions `json:"permissions,omitempty"`
	// Variables to add to the environment or to replace in it. The proxies that the node set cannot be replaced.
	Env map[string]json.RawMessage `json:"env,omitempty"`
	// Directory to run in; outside the workspace, any that its user can enter.
	WorkingDir *string `json:"working_dir,omitempty"`
	// Seconds, more than 0, after which the command is ended and the step fails.
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty"`
	// Seconds, more than 0, without any output, after which the command is ended and the step fails.
	IdleTimeoutSeconds *float64 `json:"idle_timeout_seconds,omitempty"`
	// Bytes of stdout and stderr together to return at most; the rest is left out, and the command goes on.
	MaxOutputBytes *int64 `json:"max_output_bytes,omitempty"`
	// Names of the operator's secrets that the command gets, as variables of these names; not for a model's commands.
	Secrets []string `json:"secrets,omitempty"`
}

// RunAgentResultReport: What a command may write into the file that CYNODE_REPORT names; at most 64 KiB.
type RunAgentResultReport struct {
	// What the worker says at its end; the result's final_answer.
	Answer *string `json:"answer,omitempty"`
	// The model that it used.
	Model            *string `json:"model,omitempty"`
	PromptTokens     *int64  `json:"prompt_tokens,omitempty"`
	CompletionTokens *int64  `json:"completion_tokens,omitempty"`
	// What that cost, in US dollars.
	CostUsd *float64 `json:"cost_usd,omitempty"`
}

// RunAgentResult: see the documentation of RunAgentResult.
type RunAgentResult struct {
	// The agent's own word for the end of its turn: end_turn; absent where there was none.
	StopReason *string `json:"stop_reason,omitempty"`
	// Its last message.
	Answer string `json:"answer"`
	// How many it told of.
	ToolCalls int64 `json:"tool_calls"`
	// Absent where a signal ended the command.
	ExitCode *int64 `json:"exit_code,omitempty"`
	// Name of the signal that ended the command: SIGSEGV.
	Signal *string `json:"signal,omitempty"`
	// What it printed besides the talk; UTF-8.
	Stderr          string `json:"stderr"`
	StderrTruncated bool   `json:"stderr_truncated"`
	DurationMS      int64  `json:"duration_ms"`
	CPUTimeMS       int64  `json:"cpu_time_ms"`
	MaxRSSBytes     int64  `json:"max_rss_bytes"`
	// What a command may write into the file that CYNODE_REPORT names; at most 64 KiB.
	Report *RunAgentResultReport `json:"report,omitempty"`
}

// RunCommandArguments: see the documentation of RunCommandArguments.
type RunCommandArguments struct {
	// Program to run: a name to look up in PATH, or a path. No shell is involved.
	Command *string `json:"command,omitempty"`
	// Its arguments; with command only.
	Args []string `json:"args,omitempty"`
	// Program and arguments in one list.
	Argv []string `json:"argv,omitempty"`
	// A script for /bin/sh -c, for pipes, redirections or variables.
	Shell *string `json:"shell,omitempty"`
	// Directory to run in; outside the workspace, any that its user can enter.
	WorkingDir *string `json:"working_dir,omitempty"`
	// Variables to add to the environment or to replace in it. The proxies that the node set cannot be replaced.
	Env map[string]json.RawMessage `json:"env,omitempty"`
	// What the command reads; default: nothing.
	Stdin *string `json:"stdin,omitempty"`
	// Seconds, more than 0, after which the command is ended and the step fails.
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty"`
	// Seconds, more than 0, without any output, after which the command is ended and the step fails.
	IdleTimeoutSeconds *float64 `json:"idle_timeout_seconds,omitempty"`
	// Bytes of stdout and stderr together to return at most; the rest is left out, and the command goes on.
	MaxOutputBytes *int64 `json:"max_output_bytes,omitempty"`
	// Names of the operator's secrets that the command gets, as variables of these names; not for a model's commands.
	Secrets []string `json:"secrets,omitempty"`
}

// RunCommandResultReport: What a command may write into the file that CYNODE_REPORT names; at most 64 KiB.
type RunCommandResultReport struct {
	// What the worker says at its end; the result's final_answer.
	Answer *string `json:"answer,omitempty"`
	// The model that it used.
	Model            *string `json:"model,omitempty"`
	PromptTokens     *int64  `json:"prompt_tokens,omitempty"`
	CompletionTokens *int64  `json:"completion_tokens,omitempty"`
	// What that cost, in US dollars.
	CostUsd *float64 `json:"cost_usd,omitempty"`
}

// RunCommandResult: see the documentation of RunCommandResult.
type RunCommandResult struct {
	// Absent where a signal ended the command.
	ExitCode *int64 `json:"exit_code,omitempty"`
	// Name of the signal that ended the command: SIGSEGV.
	Signal *string `json:"signal,omitempty"`
	// UTF-8; other bytes are replaced.
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	StdoutTruncated bool   `json:"stdout_truncated"`
	StderrTruncated bool   `json:"stderr_truncated"`
	DurationMS      int64  `json:"duration_ms"`
	// Of the command and the children it waited for.
	CPUTimeMS int64 `json:"cpu_time_ms"`
	// Largest size in memory of one of them, as the kernel counts it.
	MaxRSSBytes int64 `json:"max_rss_bytes"`
	// What a command may write into the file that CYNODE_REPORT names; at most 64 KiB.
	Report *RunCommandResultReport `json:"report,omitempty"`
}

// SearchFilesArguments: see the documentation of SearchFilesArguments.
type SearchFilesArguments struct {
	// Regular expression (PCRE2, UTF-8), matched against each line by itself; \w, \d, \s and \b know ASCII only.
	Pattern string `json:"pattern"`
	// File or directory to search, with all below it but directories named .git. Links and binary files are passed over.
	Path *string `json:"path,omitempty"`
	// Only files that this glob matches: by name (*.c) or, where it holds a slash, by path (src/**/*.{c,h}).
	Include *string `json:"include,omitempty"`
	// Matching lines to return at most.
	MaxMatches *int64 `json:"max_matches,omitempty"`
	IgnoreCase *bool  `json:"ignore_case,omitempty"`
}

// SearchFilesResultMatch: see the documentation of SearchFilesResultMatch.
type SearchFilesResultMatch struct {
	Path string `json:"path"`
	Line int64  `json:"line"`
	// The line; of a long one what is around the match.
	Text string `json:"text"`
}

// SearchFilesResult: see the documentation of SearchFilesResult.
type SearchFilesResult struct {
	// In the order of list_tree (names in byte order, a directory's files where its name stands), then by line.
	Matches       []SearchFilesResultMatch `json:"matches"`
	FilesSearched int64                    `json:"files_searched"`
	// There are more matches than were asked for.
	Truncated bool `json:"truncated"`
}

// WriteFileArguments: see the documentation of WriteFileArguments.
type WriteFileArguments struct {
	// Relative to the workspace or absolute below it. A link is followed, where it stays inside.
	Path    string `json:"path"`
	Content string `json:"content"`
	// Of content; base64, which may have line ends, is decoded before it is written.
	Encoding *string `json:"encoding,omitempty"`
	// Permission bits in octal, such as "0755"; else those of the file replaced, or 0644.
	Mode *string `json:"mode,omitempty"`
	// Where false, a file that is there is an error.
	Overwrite *bool `json:"overwrite,omitempty"`
	// Keep what the file holds, and add content to its end.
	Append *bool `json:"append,omitempty"`
}

// WriteFileResult: see the documentation of WriteFileResult.
type WriteFileResult struct {
	// Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR.
	Path string `json:"path"`
	// Of the whole file.
	SizeBytes int64 `json:"size_bytes"`
	// Of the whole file, in hex; absent after an append to a file that is then larger than 1 MiB.
	SHA256 *string `json:"sha256,omitempty"`
	// There was no such file before.
	Created bool `json:"created"`
}

// JobConstraints: What the job may use at most.
type JobConstraints struct {
	// Seconds for the whole job; then everything is ended and the status is timeout.
	MaxRuntimeSeconds int64 `json:"max_runtime_seconds"`
	// Bytes that one step may return: stdout and stderr together, file content, tree, matches.
	MaxOutputBytes int64 `json:"max_output_bytes"`
	// Whether the job may use the network outside the node and the orchestrator.
	ExtNetAllowed *bool `json:"ext_net_allowed,omitempty"`
	// Whether the result says which files of the workspace changed; changes.patch among the artifacts has the diff.
	ReportChanges *bool `json:"report_changes,omitempty"`
}

// JobInference: Which models the job may use.
type JobInference struct {
	// Names of models; no other is ever asked.
	AllowedModels []string `json:"allowed_models"`
	// Where models are reached; orchestrator or unset: wherever an allowed one is served.
	Source *string `json:"source,omitempty"`
	// Most requests to models that are answered, of the whole job, --resume included.
	MaxRequests *int64 `json:"max_requests,omitempty"`
	// Most tokens of prompts and replies, summed over all requests. The last request may pass it.
	MaxTotalTokens *int64 `json:"max_total_tokens,omitempty"`
	// JSON Schema of an agent's final answer, which then is a text that holds JSON.
	AnswerSchema map[string]json.RawMessage `json:"answer_schema,omitempty"`
}

// JobContextAcceptanceCriteriaItem: see the documentation of JobContextAcceptanceCriteriaItem.
type JobContextAcceptanceCriteriaItem struct {
	// What must hold at the end.
	Criterion string `json:"criterion"`
	// Arguments of run_command. The runner runs it when the work is done; exit code 0 means that the criterion is met.
	Check *RunCommandArguments `json:"check,omitempty"`
}

// JobContext: What the work is about. A text that begins with /job/ is the path of a file to read.
type JobContext struct {
	// Who the agent is: identity, role, responsibilities, what it must not do.
	BaselineContext *string `json:"baseline_context,omitempty"`
	// The project: its identity and scope.
	ProjectContext json.RawMessage `json:"project_context,omitempty"`
	// The task: its identity, state and what belongs to it.
	TaskContext json.RawMessage `json:"task_context,omitempty"`
	// What the work must satisfy: each a text, or a structure that is shown as JSON. One may stand alone.
	Requirements json.RawMessage `json:"requirements,omitempty"`
	// What the outcome is checked by: each a text, or a text with a check. One text may stand alone.
	AcceptanceCriteria json.RawMessage `json:"acceptance_criteria,omitempty"`
	// How the user wants work to be done.
	Preferences map[string]json.RawMessage `json:"preferences,omitempty"`
	// Further text that the user has configured.
	AdditionalContext *string `json:"additional_context,omitempty"`
	// Identifiers of skills to fetch from the gateway.
	SkillIDs []string `json:"skill_ids"`
	// Skills themselves, or paths of their files.
	Skills json.RawMessage `json:"skills,omitempty"`
	// Whether the workspace's AGENTS.md, at most 32 KiB of it, is part of the project context; default: true.
	AgentsMd *bool `json:"agents_md,omitempty"`
	// The role's name, where persona.title is left out.
	PersonaTitle *string `json:"persona_title,omitempty"`
	// The role in a few sentences, where persona.description is left out.
	PersonaDescription *string `json:"persona_description,omitempty"`
}

// JobPersona: Whom the agent acts as.
type JobPersona struct {
	// The role's name.
	Title *string `json:"title,omitempty"`
	// The role in a few sentences.
	Description *string `json:"description,omitempty"`
}

// JobStep: One step; arguments are those of its type.
type JobStep struct {
	ID        *string                    `json:"id,omitempty"`
	Type      string                     `json:"type"`
	Arguments map[string]json.RawMessage `json:"arguments,omitempty"`
	// Of a direct job: stop (default), or continue: the job goes on, and the step's failure is not the job's.
	OnFailure *string `json:"on_failure,omitempty"`
	// Of a direct job: the step runs also after one that failed, and before the checks. Default: false.
	Always *bool `json:"always,omitempty"`
}

// Job: see the documentation of Job.
type Job struct {
	// For editors: where the schema of jobs is. The runner does not read it.
	Schema *string `json:"$schema,omitempty"`
	// MAJOR.MINOR of this protocol; the major version is 1.
	ProtocolVersion string `json:"protocol_version"`
	// The job's identifier; a UUID by convention.
	JobID string `json:"job_id"`
	// The task's identifier; a UUID by convention.
	TaskID string `json:"task_id"`
	// What the job may use at most.
	Constraints JobConstraints `json:"constraints"`
	// Whether the steps are run as they are or a model works on the job; default: from steps and inference.
	ExecutionMode *string `json:"execution_mode,omitempty"`
	// Which models the job may use.
	Inference *JobInference `json:"inference,omitempty"`
	// What the work is about. A text that begins with /job/ is the path of a file to read.
	Context *JobContext `json:"context,omitempty"`
	// Whom the agent acts as.
	Persona *JobPersona `json:"persona,omitempty"`
	// The persona's identifier.
	PersonaID *string `json:"persona_id,omitempty"`
	// What is done, in this order; a failing step ends the job, unless its on_failure says otherwise.
	Steps []JobStep `json:"steps"`
}

// ResultStep: see the documentation of ResultStep.
type ResultStep struct {
	// Place in the job's steps, from 0.
	Index int64  `json:"index"`
	ID    string `json:"id"`
	Type  string `json:"type"`
	// The step is the runner's own check of this acceptance criterion, counted from 1; else absent.
	Check  *int64 `json:"check,omitempty"`
	Status string `json:"status"`
	// RFC 3339 in UTC with milliseconds.
	StartedAt  string `json:"started_at"`
	DurationMS int64  `json:"duration_ms"`
	// Of a command that ended by itself.
	ExitCode *int64 `json:"exit_code,omitempty"`
	// Plain text of the step, whole up to its limit; past 1 MiB head and tail.
	Output *string `json:"output,omitempty"`
	// True where output is not all of the text; else absent.
	OutputTruncated *bool `json:"output_truncated,omitempty"`
	// One line for people.
	Error *string `json:"error,omitempty"`
	// What went wrong, finer than the job's failure_code.
	ErrorCode *string `json:"error_code,omitempty"`
	// True where the step failed and its on_failure is continue, so that the job went on; else absent.
	Tolerated *bool `json:"tolerated,omitempty"`
	// The structured answer, as `--schema steps` says for the type.
	Result json.RawMessage `json:"result,omitempty"`
}

// ResultRunningStep: The step that ran when this was written; only in the result of a job that is not over.
type ResultRunningStep struct {
	Index int64  `json:"index"`
	ID    string `json:"id"`
	Type  string `json:"type"`
	// The step is the runner's own check of this acceptance criterion, counted from 1; else absent.
	Check *int64 `json:"check,omitempty"`
	// RFC 3339 in UTC with milliseconds.
	StartedAt string `json:"started_at"`
	// The last of what it had printed by then, at most 4 KiB.
	Output *string `json:"output,omitempty"`
	// True where there was more before it; else absent.
	OutputTruncated *bool `json:"output_truncated,omitempty"`
}

// ResultArtifact: see the documentation of ResultArtifact.
type ResultArtifact struct {
	// Relative to the artifacts directory.
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
	// Left out for a file over 256 MiB, one that cannot be read, or one that the job's time was too short to read.
	SHA256 *string `json:"sha256,omitempty"`
	Ref    *string `json:"ref,omitempty"`
}

// ResultTodoItem: see the documentation of ResultTodoItem.
type ResultTodoItem struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Source string  `json:"source"`
	Parent *string `json:"parent"`
	Status string  `json:"status"`
	Note   *string `json:"note"`
}

// ResultTodo: see the documentation of ResultTodo.
type ResultTodo struct {
	Total int64            `json:"total"`
	Done  int64            `json:"done"`
	Items []ResultTodoItem `json:"items"`
}

// ResultResourceUsage: Of the runner and every process of the job that was waited for.
type ResultResourceUsage struct {
	CPUTimeMS   int64 `json:"cpu_time_ms"`
	MaxRSSBytes int64 `json:"max_rss_bytes"`
}

// ResultInference: What models were asked.
type ResultInference struct {
	Model            *string `json:"model,omitempty"`
	Requests         *int64  `json:"requests,omitempty"`
	PromptTokens     *int64  `json:"prompt_tokens,omitempty"`
	CompletionTokens *int64  `json:"completion_tokens,omitempty"`
	// Of all requests together.
	DurationMS *int64 `json:"duration_ms,omitempty"`
	// worker: what a worker's report says, which nobody checked; it may lack members. Else absent.
	Source *string `json:"source,omitempty"`
	// Of a worker's report alone.
	CostUsd *float64 `json:"cost_usd,omitempty"`
}

// ResultAcceptanceItem: see the documentation of ResultAcceptanceItem.
type ResultAcceptanceItem struct {
	Criterion string `json:"criterion"`
	// null: not checked.
	Met *bool `json:"met"`
	// Names the step that shows it, or says why nothing was checked; may be empty then.
	Evidence string `json:"evidence"`
	// check: the runner ran the criterion's check; model: the model says so, and named a step; null: not checked.
	VerifiedBy *string `json:"verified_by"`
}

// ResultRunner: What ran the job.
type ResultRunner struct {
	Version string `json:"version"`
	// Of the job file; left out where it could not be read.
	JobSHA256 *string `json:"job_sha256,omitempty"`
	// As uname calls the machine: x86_64.
	Arch string `json:"arch"`
	// Its release.
	Kernel string `json:"kernel"`
}

// ResultConfinement: What the kernel kept commands from.
type ResultConfinement struct {
	// What kept commands from writing elsewhere.
	Writes string `json:"writes"`
	// Version of the kernel's Landlock.
	ABI *int64 `json:"abi,omitempty"`
	// Directories below which commands could write.
	Writable []string `json:"writable,omitempty"`
	// What could not be kept apart, why, and what would help.
	Partial []string `json:"partial,omitempty"`
}

// ResultWorkspaceChangesCounts: see the documentation of ResultWorkspaceChangesCounts.
type ResultWorkspaceChangesCounts struct {
	Created     *int64 `json:"created,omitempty"`
	Modified    *int64 `json:"modified,omitempty"`
	Deleted     *int64 `json:"deleted,omitempty"`
	ModeChanged *int64 `json:"mode_changed,omitempty"`
	TypeChanged *int64 `json:"type_changed,omitempty"`
	Unreadable  *int64 `json:"unreadable,omitempty"`
}

// ResultWorkspaceChangesFile: see the documentation of ResultWorkspaceChangesFile.
type ResultWorkspaceChangesFile struct {
	Path            string `json:"path"`
	Action          string `json:"action"`
	SizeBytesBefore *int64 `json:"size_bytes_before,omitempty"`
	SizeBytes       *int64 `json:"size_bytes,omitempty"`
	// Why the patch does not have this change.
	LeftOut *string `json:"left_out,omitempty"`
}

// ResultWorkspaceChanges: What the job did to the files of the workspace; where it was asked for.
type ResultWorkspaceChanges struct {
	Counts ResultWorkspaceChangesCounts `json:"counts"`
	// At most 10,000.
	Files []ResultWorkspaceChangesFile `json:"files"`
	// There are more files than are listed, or some could not be read.
	Truncated bool `json:"truncated"`
	// The artifact with the diff; left out where there is none.
	Patch *string `json:"patch,omitempty"`
	// Why the diff could not be written.
	PatchError *string `json:"patch_error,omitempty"`
	// The job was resumed: these are the changes since then.
	SinceResume *bool `json:"since_resume,omitempty"`
}

// Result: see the documentation of Result.
type Result struct {
	ProtocolVersion string `json:"protocol_version"`
	JobID           string `json:"job_id"`
	TaskID          string `json:"task_id"`
	Status          string `json:"status"`
	// RFC 3339 in UTC with milliseconds.
	StartedAt string `json:"started_at"`
	// RFC 3339 in UTC with milliseconds.
	FinishedAt string       `json:"finished_at"`
	DurationMS int64        `json:"duration_ms"`
	Steps      []ResultStep `json:"steps"`
	// The step that ran when this was written; only in the result of a job that is not over.
	RunningStep *ResultRunningStep `json:"running_step,omitempty"`
	Artifacts   []ResultArtifact   `json:"artifacts"`
	Todo        ResultTodo         `json:"todo"`
	// Of the runner and every process of the job that was waited for.
	ResourceUsage ResultResourceUsage `json:"resource_usage"`
	// What the model said at the end, or the last worker that wrote a report.
	FinalAnswer   *string `json:"final_answer,omitempty"`
	InferenceUsed bool    `json:"inference_used"`
	// What models were asked.
	Inference  *ResultInference       `json:"inference,omitempty"`
	Acceptance []ResultAcceptanceItem `json:"acceptance,omitempty"`
	// What ran the job.
	Runner *ResultRunner `json:"runner,omitempty"`
	// Of a failure: whether the same job may succeed later, because what failed lies outside of it.
	Retryable *bool `json:"retryable,omitempty"`
	// What the kernel kept commands from.
	Confinement ResultConfinement `json:"confinement"`
	// What the job did to the files of the workspace; where it was asked for.
	WorkspaceChanges *ResultWorkspaceChanges `json:"workspace_changes,omitempty"`
	FailureCode      *string                 `json:"failure_code"`
	FailureMessage   *string                 `json:"failure_message"`
}
