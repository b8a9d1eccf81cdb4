---@meta
-- SPDX-License-Identifier: Apache-2.0
-- LuaLS definitions of the native.* modules, which are written in C. Never loaded; a test compares it with the C.
--
-- Every function raises an error for misuse, and returns nil, failure for failures of the world. Times are seconds, sizes
-- are bytes, strings are bytes unless they are called UTF-8.

---@class native.failure
---@field code string stable: "not_found", "path_escape", "timeout", "cancelled", ...
---@field message string one line for people

---@class native.bundle the modules inside this program
---@field version string of cynode-sba
---@field libraries string "Lua 5.4.4, lua-cjson 2.1.0, ..."
---@field source "disk"|"embedded"
local bundle = {}

---Names of the bundled modules below a prefix, without it, in byte order.
---@param prefix string "sba.steps."
---@return string[]
function bundle.list(prefix) end

---@class native.confine confines commands (Landlock)
local confine = {}

---@return integer version of the kernel's Landlock; 0: none, or this process may not use it
function confine.abi() end

---@return boolean whether the kernel lets commands have a seccomp filter, which keeps their signals from the runner
function confine.filters() end

---@param path string
---@return string|nil path absolute, without links
---@return native.failure?
function confine.real_path(path) end

---@param path string
---@return boolean whether the user may write it, apart from these rules
function confine.may_write(path) end

---Sets the rules for all commands from now on. Errors: unsupported, too_many_entries, ...
---@param writable string[] paths below which commands may write; those that do not exist are ignored
---@param hidden string[] files that they cannot open: absolute, without links
---@return true|nil, native.failure?
function confine.set_rules(writable, hidden) end

---@class native.identity the user and the environment of the runner
local identity = {}

---@return boolean root whether its effective, real or saved user is root
function identity.is_root() end

---The kernel, as uname(2) names it.
---@return { name: string, release: string, machine: string }
function identity.system() end

---@return integer uid the effective one
function identity.uid() end

---Changes the user for good. Errors: unknown_user, invalid, permission_denied.
---@param user string UID, UID:GID, name, name:GID
---@return true|nil, native.failure?
function identity.become(user) end

---The process's environment, names to values. Removes the secrets from it afterwards.
---@param secrets string[] names
---@return table<string, string>
function identity.environment(secrets) end

---@class native.interrupt the deadline, the cancel flag and the clocks
local interrupt = {}

---@return number seconds on the monotonic clock
function interrupt.now() end

---@return integer milliseconds of the wall clock since 1970-01-01 UTC
function interrupt.wall() end

---@param wall? integer milliseconds as of wall(); default: now
---@return string RFC 3339 in UTC with milliseconds: "2026-01-31T09:05:00.123Z"
function interrupt.timestamp(wall) end

---@param seconds number from now
function interrupt.set_deadline(seconds) end

---@return number? seconds to the deadline, never negative; nil without one
function interrupt.remaining() end

---@return native.failure? reason why work must stop now: code "timeout" or "cancelled"
function interrupt.reason() end

---@return "SIGTERM"|"SIGINT"|nil, number? at when the first signal came, as now()
function interrupt.signal() end

---Waits. Errors: timeout, cancelled.
---@param seconds number
---@return true|nil, native.failure?
function interrupt.sleep(seconds) end

---Begins an interactive session: from now on SIGINT stops the current work, not the program. Code that catches its error is
---stopped at its next instruction.
function interrupt.begin_session() end

---Clears a SIGINT, so that the session goes on. SIGTERM stays.
---@return boolean whether there was one
function interrupt.clear() end

---Ends the effect of deadline and cancel, so that the result can be written.
function interrupt.disarm() end

---While held, deadline and signals interrupt nothing; they count afterwards.
---@param held boolean
---@return boolean before
function interrupt.hold(held) end

---After disarm: sets a new deadline and forgets earlier signals; new ones cancel again. disarm ends this.
---@param seconds number
function interrupt.rearm(seconds) end

---@class native.ending ends a job that cannot end by itself, because the runner hangs (2.5 s past the deadline, 5 s past a signal), crashes or is
---refused memory: the program executes itself
local ending = {}

---What the image before left; nothing where there was none.
---@return "timeout"|"SIGTERM"|"SIGINT"|"crash"|"memory"|nil reason, string information, integer journal descriptor, or -1
function ending.inherited() end

---Starts to watch. Errors: the program cannot be executed, out_of_processes, ...
---@return true|nil, native.failure?
function ending.start() end

---In the new image: after 10 s it ends with this status.
---@param status integer
---@return true|nil, native.failure?
function ending.last(status) end

---Sets what the new image inherits.
---@param information string
---@param journal integer descriptor, or -1
---@return true|nil, native.failure?
function ending.keep(information, journal) end

---Stops watching: the program ends by itself.
function ending.stop() end

---Sets the job's deadline.
---@param at number as interrupt.now
function ending.deadline(at) end

---Says that the runner is ending the job: it gets 2 s more past the deadline, and 2.5 s more past a signal.
function ending.begun() end

---Says that the result is written, or cannot be. If the runner hangs or crashes from now on, it ends with this status and writes nothing.
---@param status integer
function ending.written(status) end

---@class native.process runs commands, and ends the processes that they leave
local process = {}

---@class native.process.options
---@field argv string[] argv[1] is looked up in PATH of env unless it holds a slash (then relative to directory)
---@field env string[] "NAME=value"
---@field directory native.opened the working directory
---@field stdin? string default: /dev/null
---@field timeout? number seconds for this command alone
---@field output_limit integer most bytes of stdout and stderr together, as returned
---@field end_at_limit? boolean past the limit end the command; default false: read on, and keep no more
---@field apart? boolean in a Landlock domain of its own: commands that ran before can neither trace nor signal it
---@field tick? fun(news?: string, missing?: integer) called about every 0.1 s while the command runs. If the streams printed something
--- since the last call, it gets these bytes, and how many before them are left out; that of a command which ends before the first tick is
--- not passed. An error in it ends the command and is raised again
---@field whole_news? boolean pass all output, that of short commands too; default false: at most 64 KiB at once

---@class native.process.outcome
---@field ended "exit"|"timeout"|"deadline"|"cancelled"|"output_limit" why it ended; "timeout" is its own
---@field exit_code? integer
---@field signal? integer if a signal ended it
---@field stdout string UTF-8, repaired, never cut inside a character
---@field stderr string likewise
---@field stdout_truncated boolean
---@field stderr_truncated boolean
---@field output? string UTF-8; both streams in the order in which they came, up to the limit or 1 MiB; nil if only one printed and is whole
---@field output_tail? string the end of longer output
---@field output_missing integer bytes between output and output_tail
---@field duration_ms integer
---@field cpu_time_ms integer of the command and its waited-for children
---@field max_rss_bytes integer as the kernel counts it: at least the runner's own when the command started

---Runs one command to its end and collects its output. At its timeout, the deadline, a cancel or the output limit, its whole tree gets
---SIGTERM and, 2 s later, SIGKILL; output until then is kept. Processes left by a command that exits by itself live until finish(), or
---until a deadline or cancel ends a later command. All children of the runner are reaped here, those of io.popen too.
---Errors: not_found (with advice), permission_denied, not_executable, too_large (arguments and environment), out_of_processes,
---too_many_files, out_of_memory, invalid.
---@param options native.process.options
---@return native.process.outcome|nil, native.failure?
function process.run(options) end

---Finds a program in the directories of PATH. Errors: not_found, not_executable.
---@param name string without a slash
---@param path? string the PATH; default: that of commands without one
---@return string|nil path, native.failure?
function process.find(name, path) end

---Whether there is a child process, alive or not yet reaped: left by commands.
---@return boolean
function process.any() end

---Ends and reaps every descendant: SIGTERM, after the grace period SIGKILL. Touches no other process.
---@param grace number seconds
---@return integer ended count of processes
---@return integer left count of children that could not be ended: those of a privileged process, or that hang in the kernel
---@return integer first the PID of one of them, or 0
function process.finish(grace) end

---CPU time and largest resident size of the runner and its waited-for descendants so far.
---@return { cpu_time_ms: integer, max_rss_bytes: integer }
function process.usage() end

---Reaps children until SIGTERM or SIGINT, without using CPU time (for --idle).
function process.idle() end

---@class native.workspace files of a directory that nothing leads out of
local workspace = {}

---Opens a confined directory. Every path given to its methods is relative to it, or absolute below the path it was opened with; what
---would leave it (.., links, races) is the failure path_escape, its message holding "path escapes workspace".
---@param path string
---@return native.root|nil, native.failure?
function workspace.open(path) end

---@return string name of a temporary file or a file set aside, which a later run recognizes
function workspace.temporary_name() end

---@class native.root
local root = {}

---@return string absolute path of the directory
function root:path() end

---A path as the results name it: relative to the directory, without doubled slashes and "."; "." for the directory itself.
---Links are not looked at. Errors: path_escape, invalid, name_too_long.
---@param path string
---@return string|nil, native.failure?
function root:relative(path) end

---@class native.read_options
---@field offset_bytes? integer from 0; lines are counted from there
---@field max_bytes? integer of content to return; default: all
---@field start_line? integer from 1
---@field end_line? integer inclusive
---@field digest? boolean fill sha256 and lines (of the whole file)

---@class native.read_result
---@field content string
---@field truncated boolean there is more in the asked range than max_bytes
---@field size_bytes integer of the file
---@field mode integer permission bits
---@field sha256? string
---@field lines? integer

---Reads a regular file in one pass. Errors: not_found, path_escape, not_a_file (FIFO, socket, device, directory), permission_denied, timeout, cancelled, io_error.
---@param path string
---@param options? native.read_options
---@return native.read_result|nil, native.failure?
function root:read(path, options) end

---@class native.write_options
---@field mode? integer permission bits; default: those of the file that is replaced, else 0644 less the umask
---@field overwrite? boolean default true; false: already_exists
---@field append? boolean default false; the old content is kept before the new one, the replacement is atomic all the same

---Replaces or creates a regular file atomically; missing directories are made. A link at the end of path is followed, inside.
---@param path string
---@param content string
---@param options? native.write_options
---@return { size_bytes: integer, sha256: string, created: boolean }|nil, native.failure?
function root:write(path, content, options) end

---A link at the end of path is not followed; target is what it says, as it is.
---@param path string
---@return { type: "file"|"directory"|"symlink"|"fifo"|"socket"|"device", size_bytes: integer, mode: integer, inode: integer, target: string? }|nil, native.failure?
function root:stat(path) end

---Begins a walk through the directory or file at path: names in byte order, a directory before what is in it. Links are not followed.
---@param path string
---@param options? { max_depth?: integer, max_names?: integer, include_hidden?: boolean } max_names: of one directory, whichever the file system
---gives first
---@return native.walk|nil, native.failure?
function root:walk(path, options) end

---@class native.walk to be declared <close>
local walk = {}

---@class native.entry
---@field name string bytes; "." for the directory itself
---@field type "file"|"directory"|"symlink"|"fifo"|"socket"|"device"
---@field size_bytes integer
---@field mode integer permission bits
---@field target? string of a symlink, as it is written

---@return native.entry|nil entry the first is where the walk starts; nil: the end
---@return integer|native.failure|nil depth of the entry
---@return boolean? entered the entries below it come next; false for a directory that cannot be read or is too deep
function walk:next() end

---@return string path of the entry, in the root
function walk:path() end

---@return boolean cut whether names were left out because of max_names
function walk:is_cut() end

---Removes the entry if it is a temporary file (`.sba-` and eight digits) that a killed run of this user left.
---@param since integer seconds of the epoch; what was last changed before stays
---@return boolean
function walk:remove_temporary(since) end
function walk:close() end

---Writes a regular file that waits for its place at path, or makes a link that does.
---@param path string
---@param content string
---@param mode? integer as root:write
---@return string|nil waiting its path, in the nearest directory above that exists
---@return native.failure?
function root:stage(path, content, mode) end

---@param path string
---@param target string one that would leave the workspace is path_escape
---@return string|nil waiting, native.failure?
function root:stage_link(path, target) end

---Moves a file or link; missing directories are made. replace: whatever is there; new: never onto something; aside: as a second link where the
---file system knows links, so that something stays at the path.
---@param from string
---@param to string
---@param how "replace"|"new"|"aside"
---@return true|nil, native.failure?
function root:move(from, to, how) end

---@param path string a link at its end is not followed
---@param kind "file"|"directory" file: or a link; directory: an empty one
---@return true|nil, native.failure?
function root:remove(path, kind) end

---Makes a directory and those above it, where they are missing.
---@param path string
---@return true|nil, native.failure?
function root:make_directory(path) end

---Removes the directories of path after its first kept bytes, if they are empty.
---@param path string
---@param kept integer
function root:prune(path, kept) end

---@param path string of a file or directory
---@param mode integer permission bits
---@return true|nil, native.failure?
function root:chmod(path, mode) end

---Opens a directory, to run a command in.
---@param path string
---@return native.opened|nil, native.failure?
function root:directory(path) end

---Opens a regular file, to be sent (native.http).
---@param path string
---@param sha256? string what it must be: sending it fails otherwise, before its last bytes
---@return native.opened|nil, native.failure?
function root:open(path, sha256) end

---@class native.opened to be declared <close>
local opened = {}

---@return integer bytes when it was opened
function opened:size() end
function opened:close() end

---Remembers the files and links of the directory, with their content. Left out: .git, what .gitignore files ignore, and the path left_out.
---@param options { directory: string, most_bytes?: integer, left_out?: string } directory: where contents are kept, in a file without a name
---@return native.snapshot|nil, native.failure?
function root:snapshot(options) end

---@class native.snapshot what a directory was
local snapshot = {}

---@class native.change
---@field path string relative, bytes
---@field action "created"|"modified"|"deleted"|"mode_changed"|"type_changed"|"unreadable"
---@field blocked? true it was created where something was that is no file or was left out: a patch cannot make room
---@field original? integer by which content gives what it was; nil: it was not kept
---@field before? { type: string, mode: integer, size_bytes: integer } nil: it was not there
---@field after? { type: string, mode: integer, size_bytes: integer } nil: it is not there any more

---What has changed since. Called once.
---@return native.change[]|nil changes in the order of a walk: names in byte order, a directory before what is in it
---@return native.failure?
function snapshot:changes() end

---What a file was, or a link's target.
---@param original integer of a change
---@return string|nil, native.failure?
function snapshot:content(original) end

function snapshot:close() end

---@class native.edit the hunks of a diff, read line by line and applied to bytes
local edit = {}

---@param diff string at most 64 MiB
---@return native.edit.hunks
function edit.hunks(diff) end

---@class native.edit.hunks to be declared <close>, or left to the collector
local hunks = {}

---Reads the lines of a hunk and adds it; what was added from that number on is dropped.
---@param number integer of the hunk, from 1
---@param header integer where its @@ lines begin in the diff; body: there are none
---@param body integer where its lines begin
---@param limit integer where they end at the latest or, if the counts are nil, where they end
---@param old_start? integer of the @@ line; nil: it has no numbers, and is found by its lines
---@param new_start? integer
---@param old_count? integer lines
---@param new_count? integer lines
---@param at_end? boolean it belongs at the end of the file
---@return integer|false|nil after where it ends; false: these are no such lines; nil: too_large
---@return integer|native.failure|nil old_count
---@return integer? new_count
---@return boolean? changes a line is added or removed
function hunks:add(number, header, body, limit, old_start, new_start, old_count, new_count, at_end) end

---@class native.edit.report
---@field hunks integer
---@field added integer lines
---@field removed integer lines
---@field offset integer largest, in lines, absolute
---@field fuzz integer largest, 0 to 2
---@field line_ends? "crlf"|"lf" the file's, where the diff's were others throughout and were made the same
---@field tolerated table<"blank_lines"|"trailing_blanks"|"line_ends"|"final_newline"|"indentation", true>

---@class native.edit.failure: native.failure patch_mismatch, patch_ambiguous, already_applied, too_large
---@field hunk? integer number of the hunk among those to be applied, from 1; without it, it is about none
---@field header integer where its @@ lines begin in the diff
---@field body integer where its lines begin
---@field last integer where they end
---@field line integer of the file: where the hunk belongs, or fits; 0: the message says all
---@field other integer where it fits too

---Applies count hunks from number first on to bytes. The nearest place wins, the later one of two as near. A hunk without numbers, or that
---only fits without blanks and indentation, must fit in one place.
---@param first integer
---@param count integer
---@param bytes string
---@return string|nil, native.edit.report|native.edit.failure
function hunks:apply(first, count, bytes) end

---@class native.search regular expressions over files
local search = {}

---@param pattern string PCRE2, UTF-8
---@param options? { ignore_case?: boolean }
---@return native.search.regex|nil, native.failure? code invalid_pattern, message with the place
function search.compile(pattern, options) end

---Whether a glob can be read.
---@param glob string
---@return true|nil, native.failure? code invalid_glob, message with the reason
function search.check_glob(glob) end

---@class native.search.regex
local regex = {}

---@class native.search.options
---@field include? string glob of names or, where it holds a slash, of paths: "*.c", "src/**/*.lua"
---@field max_matches? integer
---@field max_bytes? integer of the matches as JSON

---@class native.search.found
---@field matches { path: string, line: integer, text: string }[] in byte order of path, then by line; text UTF-8, repaired, long lines cut; a JSON array
---@field files_searched integer text files that were read
---@field files_unreadable integer files and directories below path that could not be read
---@field truncated boolean
---@field limit? "max_matches"|"max_bytes" what cut it short

---Searches the lines of the regular files below path. Binary files (a NUL in the first 8 KiB), links and directories named .git are passed over.
---Errors: those of a directory for path itself, invalid_glob, pattern_too_costly (message with file and line), timeout, cancelled; the
---failure's field found holds what was found until then.
---@param where native.root
---@param path string
---@param options? native.search.options
---@return native.search.found|nil, native.failure?
function regex:files(where, path, options) end

---@class native.secret finds secrets in text from outside, in every usual encoding; src/core/text/secret.h says which
---@field SHORTEST integer characters; a shorter secret cannot be told from ordinary words
local secret = {}

---Adds a secret, for good.
---@param bytes string
---@return boolean added false if it is too short
function secret.add(bytes) end

---Whether any secret is known. If none is, there is nothing to redact.
---@return boolean
function secret.is_known() end

---For text that comes in pieces: how many of the first bytes can be redacted now, because no secret that may continue after the text
---reaches into them, without a character that they tear.
---@param text string
---@return integer bytes
---@return boolean cut the rest must be redacted as cut at its start
function secret.settled(text) end

---Replaces each secret by "[redacted]".
---@param text string
---@param cut? "none"|"start"|"end"|"both" where the caller cut the text; a part of a secret at that end is redacted too
---@return string
function secret.redact(text, cut) end

---@class native.text UTF-8, base64, SHA-256, and estimates of tokens
local text = {}

---@class native.buffer bytes that C has written

---Makes bytes UTF-8: ill-formed parts become U+FFFD (one for each maximal subpart, as the Unicode Standard recommends).
---@param bytes string
---@return string utf8, boolean changed
function text.repair(bytes) end

---@param bytes string
---@return boolean
function text.is_utf8(bytes) end

---@param bytes string
---@return integer lines the last one may lack its newline
function text.count_lines(bytes) end

---How far two places of a text are apart.
---@param bytes string UTF-8
---@param from integer offset from 0
---@param to integer offset, not before from
---@return integer newlines between them
---@return integer characters after the last of these newlines, or after from
function text.distance(bytes, from, to) end

---The longest prefix of at most size bytes that does not split a character.
---@param utf8 string
---@param size integer
---@return string
function text.cut(utf8, size) end

---The longest suffix of at most size bytes that does not split a character.
---@param utf8 string
---@param size integer
---@return string
function text.tail(utf8, size) end

---Removes the blanks around a text.
---@param bytes string
---@return string
function text.trim(bytes) end

---Removes the characters of a set from the end of a text.
---@param bytes string
---@param set? string default: blanks
---@return string
function text.trim_end(bytes, set) end

---Finds a part in linear time; string.find is quadratic at worst.
---@param bytes string
---@param part string
---@param from integer from 1
---@return integer? at
function text.find(bytes, part, from) end

---@param bytes string
---@return string lower-case hex
function text.sha256(bytes) end

---@param bytes string
---@return string
function text.base64_encode(bytes) end

---Strict RFC 4648, padding required.
---@param base64 string
---@return string|nil, native.failure? code invalid
function text.base64_decode(base64) end

---Estimates how many tokens a text costs a model, rather too many than too few.
---@param utf8 string
---@return integer words of prose and source code, integer dense of digits, hexadecimal and base64, integer other of what is not ASCII
function text.tokens(utf8) end

---Where a JSON text holds more values than most.
---@param bytes string
---@param most integer at least 1
---@return integer? offset from 0; nil: it does not
function text.json_past(bytes, most) end

---@class native.line_editor reads lines from a terminal
local line_editor = {}

---Opens the one editor there is. Errors: not_a_terminal (stdin or stdout is not a terminal that can move its cursor).
---@param complete fun(line: string, cursor: integer): string?, string? gets a line, and the number of bytes before the cursor; returns text to
---insert there, or lines to show below
---@return true|nil, native.failure?
function line_editor.open(complete) end

---Reads a line. nil alone is the end of the input (Ctrl-D). Errors: cancelled (Ctrl-C; see interrupt.clear), timeout.
---@param prompt string
---@return string|nil, native.failure?
function line_editor.read(prompt) end

---Appends an entry to the history, which keeps the last 1000.
---@param entry string
function line_editor.remember(entry) end

---@class native.file files of the runner itself, outside the workspace, and its standard streams
local file = {}

---Reads at most limit bytes. Errors: too_large, not_found, is_a_directory, not_a_file, cancelled, timeout, ...
---@param path string "-" is stdin, unless the file must be regular
---@param limit integer
---@param options? { regular?: boolean } regular: a regular file or nothing, so that no writer is waited for
---@return string? bytes
---@return number|native.failure began when the first of them came, or the end, as interrupt.now
function file.read(path, limit, options) end

---@class native.file.replace_options
---@field durable? boolean default true: fsync of file and directory
---@field mode? integer default 0644

---@class native.file.parts a text to be written part by part: strings, and for each span of `from` two integers, offset and size
---@field [integer] string|integer
---@field from? native.file.log

---Replaces a file: temporary file beside it, rename. Where the file is a mount point, or the directory takes no new file, it is written in
---place, which is not atomic. A link is itself replaced. Errors: not_a_file (directory, FIFO, socket, device), no_space, permission_denied,
---changed (`from` is shorter than it was), ...
---@param path string
---@param parts native.file.parts
---@param options? native.file.replace_options
---@return "renamed"|"in_place"|nil, integer|native.failure size
function file.replace(path, parts, options) end

---Keeps room on the disk for the next replace of a file, which frees it: its temporary file, made ahead. Errors: no_space, ...
---@param path string
---@param size integer bytes from 1; at most 1 MiB are kept
---@return true|nil, native.failure?
function file.keep_room(path, size) end

---Opens a file to append lines. Errors: not_a_file (link, directory, FIFO, device), ...
---@param path string
---@param create? boolean default true
---@return native.file.log|nil, native.failure?
function file.append(path, create) end

---A log that is no file and that nobody else sees.
---@return native.file.log|nil, native.failure?
function file.memory() end

---@param descriptor integer of a log, from the image before
---@return native.file.log
function file.adopt(descriptor) end

---@class native.file.log to be declared <close> or closed
local log = {}

---Appends one line. A failure may leave it torn.
---@param parts native.file.parts the line, without the newline
---@return integer|nil offset of its first byte
---@return integer|native.failure size of the file
function log:append(parts) end

---@param offset integer
---@param size integer
---@return string|nil bytes, native.failure? failure changed: it is shorter
function log:read(offset, size) end

---@return integer
function log:descriptor() end

---Locks the file until the log is closed. Errors: locked (by another runner), ...; a file system may have no locks.
---@return true|nil, native.failure?
function log:lock() end

---@param size integer bytes that stay
---@return true|nil, native.failure?
function log:cut(size) end

---From now on is_unchanged finds out whether others have written to it.
---@return true|nil, native.failure?
function log:guard() end

---@return boolean
function log:is_unchanged() end
function log:close() end

---Writes to an open descriptor (1 or 2), waiting for a slow reader at most so long.
---@param fd integer
---@param parts native.file.parts
---@param timeout number seconds without progress
---@param whole? number seconds in all, from the first wait on; default: no limit
---@return boolean all whether all was written
---@return integer written bytes
---@return integer size of all
function file.write(fd, parts, timeout, whole) end

---Creates a directory and those above it.
---@param path string
---@return true|nil, native.failure?
function file.make_directory(path) end

---Creates a directory (0700). One that exists must be no link, belong to this user, and be closed to others: permission_denied.
---@param path string
---@return true|nil, native.failure?
function file.make_private_directory(path) end

---Creates a directory of a new name (0700) in the one given.
---@param above string
---@return string|nil path, native.failure?
function file.make_temporary_directory(above) end

---Whether another process has locked the file, as a runner its journal. False where that cannot be told.
---@param path string
---@return boolean
function file.is_locked(path) end

---Removes a directory and all that is in it. Links are removed, not followed.
---@param path string
---@return true|nil, native.failure?
function file.remove_directory(path) end

---Makes a path, which need not exist yet, a file of the runner: steps neither list nor read nor change it.
---@param path string
---@return true|nil, native.failure? failure its directory cannot be opened
function file.own(path) end

---@param fd integer
---@return integer? columns nil where fd is no terminal
function file.terminal_columns(fd) end

---@class native.http an HTTP/1.1 client
local http = {}

---@class native.http.settings
---@field http_proxy? string of http:// requests, but never to loopback or a socket
---@field https_proxy? string
---@field no_proxy? string
---@field ca_file? string default: where the image keeps its bundle
---@field ca_directory? string

---A client keeps connections open between requests to the same origin.
---@param settings native.http.settings
---@return native.http.client|nil, native.failure?
function http.client(settings) end

---@class native.http.client may be closed or left to the collector
local client = {}

---@class native.http.request
---@field method string
---@field url string http://, https:// or http+unix://%2Fpath%2Fto.sock/request/path
---@field headers? string[] "Name: value"
---@field body? string|native.file.parts|(string|native.opened)[] parts are sent in order; opened files are encoded as base64 meanwhile
---@field connect_timeout? number seconds, default 10
---@field first_timeout? number seconds from the request to the first byte of the answer, default 60
---@field idle_timeout? number seconds between two pieces of the answer, default 60
---@field whole_timeout? number seconds for the whole exchange; default: only the others count
---@field body_limit? integer bytes, default 16 MiB
---@field once? boolean do not send it again if a reused connection ends before the answer; default false
---@field ignore_interrupt? boolean ignore the deadline and a cancel, so that only its own timeouts apply; default false

---Calls tick about every 0.1 s while an exchange waits. An error in it ends the wait and is raised again. It may itself wait for other
---exchanges of the client; it is called again meanwhile.
---@param tick? fun() nil: stop that
---@return fun()? before the tick that it replaces
function client:tick(tick) end

---Starts a request without waiting. src/core/http/http.h lists the failure codes.
---@param request native.http.request
---@return native.http.exchange|nil, native.failure?
function client:open(request) end

---@class native.http.exchange must be closed; that ends an unfinished one. After a timeout it may be waited for again.
local exchange = {}

---Waits for the headers of the answer. Redirects are not followed.
---@return integer|nil, native.failure?
function exchange:status() end

---@param name string
---@return string?
function exchange:header(name) end

---Waits for more of the body. nil alone is its proper end.
---@return string|nil, native.failure?
function exchange:read() end

---Waits for a line of the body, which ends with CR, LF or CRLF. nil alone is the body's proper end.
---@return string|nil, boolean|native.failure? ended false where the last line had no end
function exchange:line() end

---@return string? proxy that may have written the answer itself: "the proxy http://host:port"
function exchange:proxy() end

function exchange:close() end
