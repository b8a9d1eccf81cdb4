---@meta
-- SPDX-License-Identifier: Apache-2.0
-- LuaLS definitions of the native.* modules, which are written in C. Never loaded; a test compares it with the C.
--
-- Every function raises an error for misuse, and returns nil, failure for failures of the world. Times are seconds, sizes
-- are bytes, strings are bytes unless they are called UTF-8. The headers in src/core say more, their failure codes too.

---@class native.failure
---@field code string stable: "not_found", "path_escape", "timeout", "cancelled", ...
---@field message string one line for people

---@class native.bundle the modules inside this program
---@field version string of cynode-sba
---@field libraries string "Lua 5.4.4, lua-cjson 2.1.0, ..."
---@field source "disk"|"embedded"
---@field list fun(prefix: string): string[] names of the modules below a prefix ("sba.steps."), without it, in byte order

---@class native.confine confines commands (Landlock)
---@field abi fun(): integer version of the kernel's Landlock; 0: none, or this process may not use it
---@field filters fun(): boolean whether the kernel lets commands have a seccomp filter, which keeps their signals from the runner
---@field real_path fun(path: string): string?, native.failure? absolute, without links
---@field may_write fun(path: string): boolean whether the user may write it, apart from these rules
---Sets the rules for all commands from now on: paths below which they may write, missing ones are ignored; and files that they cannot
---open, absolute and without links. Errors: unsupported, too_many_entries, ...
---@field set_rules fun(writable: string[], hidden: string[]): true?, native.failure?

---@class native.identity the user and the environment of the runner
---@field is_root fun(): boolean whether its effective, real or saved user is root
---@field system fun(): { name: string, release: string, machine: string } the kernel, as uname(2) names it
---@field uid fun(): integer the effective one
---Changes the user for good: UID, UID:GID, name, name:GID. Errors: unknown_user, invalid, permission_denied.
---@field become fun(user: string): true?, native.failure?
---The process's environment, names to values. Removes the secrets, given by name, from it afterwards.
---@field environment fun(secrets: string[]): table<string, string>

---@class native.interrupt the deadline, the cancel flag and the clocks
---@field now fun(): number seconds on the monotonic clock
---@field wall fun(): integer milliseconds since 1970-01-01 UTC
---@field timestamp fun(wall?: integer): string RFC 3339 in UTC with milliseconds: "2026-01-31T09:05:00.123Z"; default: now
---@field set_deadline fun(seconds: number) from now
---@field remaining fun(): number? seconds to the deadline, never negative; nil without one
---@field reason fun(): native.failure? why work must stop now: code "timeout" or "cancelled"
---@field signal fun(): "SIGTERM"|"SIGINT"|nil, number? the first signal, and when it came, as now()
---@field sleep fun(seconds: number): true?, native.failure? Errors: timeout, cancelled
---Begins an interactive session: SIGINT stops the current work, not the program. Code that catches its error is stopped at its next
---instruction.
---@field begin_session fun()
---@field clear fun(): boolean forgets a SIGINT, so that the session goes on, and says whether there was one. SIGTERM stays
---@field disarm fun() ends the effect of deadline and cancel, so that the result can be written
---@field hold fun(held: boolean): boolean while held, deadline and signals interrupt nothing; they count afterwards. Gives what was before
---@field rearm fun(seconds: number) after disarm: a new deadline; earlier signals are forgotten, new ones cancel. disarm ends this

---Ends a job that cannot end by itself, because the runner hangs (2.5 s past the deadline, 5 s past a signal), crashes or is refused
---memory: the program executes itself.
---@class native.ending
---What the image before left: why, its information, and the journal's descriptor or -1; nothing where there was none.
---@field inherited fun(): "timeout"|"SIGTERM"|"SIGINT"|"crash"|"memory"|nil, string, integer
---@field start fun(): true?, native.failure? starts to watch
---@field last fun(status: integer): true?, native.failure? in the new image: after 10 s it ends with this status
---@field keep fun(information: string, journal: integer) sets what the new image inherits
---@field stop fun() stops watching: the program ends by itself
---@field deadline fun(at: number) sets the job's deadline, as interrupt.now
---@field begun fun() the runner is ending the job: it gets 2 s more past the deadline, and 2.5 s more past a signal
---@field written fun(status: integer) the result is written, or cannot be: a hang or crash from now on ends with this status

---@class native.process.options
---@field argv string[] argv[1] is looked up in PATH of env unless it holds a slash (then relative to directory)
---@field env string[] "NAME=value"
---@field directory native.opened the working directory
---@field stdin? string default: /dev/null
---@field timeout? number seconds for this command alone
---@field output_limit integer most bytes of stdout and stderr together, as returned
---@field end_at_limit? boolean past the limit end the command; default false: read on, and keep no more
---@field apart? boolean in a Landlock domain of its own: commands that ran before can neither trace nor signal it
---Called about every 0.1 s while the command runs, with what it printed since the last call and how many bytes before that are left out.
---What a command printed that ends before the first tick is not passed. An error in it ends the command and is raised again.
---@field tick? fun(news?: string, missing?: integer)
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

---@class native.process runs commands, and ends the processes that they leave
---Runs one command to its end and collects its output. At its timeout, the deadline, a cancel or the output limit, its whole tree gets
---SIGTERM and, 2 s later, SIGKILL; output until then is kept. Processes left by a command that exits by itself live until finish(), or
---until a deadline or cancel ends a later command. All children of the runner are reaped here, those of io.popen too.
---Errors: not_found (with advice), permission_denied, not_executable, too_large (arguments and environment), out_of_processes,
---too_many_files, out_of_memory, invalid.
---@field run fun(options: native.process.options): native.process.outcome?, native.failure?
---Finds a program, named without a slash, in the directories of PATH (default: that of commands without one).
---@field find fun(name: string, path?: string): string?, native.failure? Errors: not_found, not_executable
---@field any fun(): boolean whether there is a child process, alive or not yet reaped: left by commands
---Ends and reaps every descendant: SIGTERM, after the grace period SIGKILL. Touches no other process. Gives how many ended, how many could
---not be ended (those of a privileged process, or that hang in the kernel), and the PID of one of them, or 0.
---@field finish fun(grace: number): integer, integer, integer
---Of the runner and its waited-for descendants so far.
---@field usage fun(): { cpu_time_ms: integer, max_rss_bytes: integer }
---@field idle fun() reaps children until SIGTERM or SIGINT, without using CPU time

---@class native.workspace files of a directory that nothing leads out of
---Opens a confined directory. Every path given to its methods is relative to it, or absolute below the path it was opened with; what
---would leave it (.., links, races) is the failure path_escape, its message holding "path escapes workspace".
---@field open fun(path: string): native.root?, native.failure?
---@field temporary_name fun(): string of a temporary file or a file set aside, which a later run recognizes

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

---@class native.write_options
---@field mode? integer permission bits; default: those of the file that is replaced, else 0644 less the umask
---@field overwrite? boolean default true; false: already_exists
---@field append? boolean default false; the old content is kept before the new one, the replacement is atomic all the same

---@alias native.file_type "file"|"directory"|"symlink"|"fifo"|"socket"|"device"

---@class native.root
---@field path fun(self): string absolute, of the directory
---A path as the results name it: relative to the directory, without doubled slashes and "."; "." for the directory itself.
---Links are not looked at. Errors: path_escape, invalid, name_too_long.
---@field relative fun(self, path: string): string?, native.failure?
---Reads a regular file in one pass. Errors: not_found, path_escape, not_a_file (FIFO, socket, device, directory), permission_denied, ...
---@field read fun(self, path: string, options?: native.read_options): native.read_result?, native.failure?
---Replaces or creates a regular file atomically; missing directories are made. A link at the end of path is followed, inside.
---@field write fun(self, path: string, content: string, options?: native.write_options): { size_bytes: integer, sha256: string, created: boolean }?, native.failure?
---A link at the end of path is not followed; target is what it says, as it is.
---@field stat fun(self, path: string): { type: native.file_type, size_bytes: integer, mode: integer, inode: integer, target: string? }?, native.failure?
---Begins a walk through the directory or file at path: names in byte order, a directory before what is in it. Links are not followed.
---max_names is of one directory, whichever the file system gives first.
---@field walk fun(self, path: string, options?: { max_depth?: integer, max_names?: integer, include_hidden?: boolean }): native.walk?, native.failure?
---Writes a regular file that waits for its place at path. Gives its path, in the nearest directory above that exists. mode: as write.
---@field stage fun(self, path: string, content: string, mode?: integer): string?, native.failure?
---@field stage_link fun(self, path: string, target: string): string?, native.failure? a link; one that leads out is path_escape
---Moves a file or link; missing directories are made. replace: whatever is there; new: never onto something; aside: as a second link
---where the file system knows links, so that something stays at the path.
---@field move fun(self, from: string, to: string, how: "replace"|"new"|"aside"): true?, native.failure?
---@field remove fun(self, path: string, kind: "file"|"directory"): true?, native.failure? a file or link itself, or an empty directory
---@field make_directory fun(self, path: string): true?, native.failure? and those above it, where they are missing
---@field prune fun(self, path: string, kept: integer) removes the directories of path after its first kept bytes, if they are empty
---@field chmod fun(self, path: string, mode: integer): true?, native.failure? of a file or directory
---@field directory fun(self, path: string): native.opened?, native.failure? opens a directory, to run a command in
---Opens a regular file, to be sent (native.http). Where sha256 is given and it has another, sending it fails before its last bytes.
---@field open fun(self, path: string, sha256?: string): native.opened?, native.failure?
---Remembers the files and links of the directory, with their content, kept in a file without a name in options.directory. Left out: .git,
---what .gitignore files ignore, and the path left_out.
---@field snapshot fun(self, options: { directory: string, most_bytes?: integer, left_out?: string }): native.snapshot?, native.failure?

---@class native.entry
---@field name string bytes; "." for the directory itself
---@field type native.file_type
---@field size_bytes integer
---@field mode integer permission bits
---@field target? string of a symlink, as it is written

---@class native.walk to be declared <close>
---The next entry, the first is where the walk starts, in the table `into` where given; its depth; and whether the entries below it come
---next: false for a directory that cannot be read or is too deep. nil alone: the end.
---@field next fun(self, into?: native.entry): native.entry?, integer|native.failure|nil, boolean?
---@field path fun(self): string of the entry, in the root
---@field is_cut fun(self): boolean whether names were left out because of max_names
---Removes the entry if it is a temporary file (`.sba-` and eight digits) that a killed run of this user left; not what was last changed
---before since, in seconds of the epoch.
---@field remove_temporary fun(self, since: integer): boolean
---@field close fun(self)

---@class native.opened to be declared <close>
---@field size fun(self): integer bytes when it was opened
---@field close fun(self)

---@class native.change
---@field path string relative, bytes
---@field action "created"|"modified"|"deleted"|"mode_changed"|"type_changed"|"unreadable"
---@field blocked? true it was created where something was that is no file or was left out: a patch cannot make room
---@field original? integer by which content gives what it was; nil: it was not kept
---@field before? { type: string, mode: integer, size_bytes: integer } nil: it was not there
---@field after? { type: string, mode: integer, size_bytes: integer } nil: it is not there any more

---@class native.snapshot what a directory was
---@field changes fun(self): native.change[]?, native.failure? what has changed since, in the order of a walk; called once
---@field content fun(self, original: integer): string?, native.failure? what a file was, or a link's target
---@field close fun(self)

---@class native.edit the hunks of a diff, read line by line and applied to bytes
---@field hunks fun(diff: string): native.edit.hunks at most 64 MiB

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

---@class native.edit.hunks to be declared <close>, or left to the collector
---Reads hunks from `number` on; those that had been read there are dropped. Without body: the hunks that begin at `at`, one right below the
---other, as far as each changes something and has as many lines as its @@ line says. With it: one, of all lines from body to limit.
---by_content: its @@ line has no numbers, and it is found by its lines. at_end: it belongs at the end of the file. Gives where the last one
---ends, their count, where the last one begins, whether one has old lines, or new ones, and whether the first says that the file is new or
---empty; nothing: there is none; nil: too_large.
---@field read fun(self, number: integer, at: integer, body?: integer, limit?: integer, by_content?: boolean, at_end?: boolean): integer?, integer|native.failure|nil, integer?, boolean?, boolean?, boolean?
---Applies count hunks from number first on to bytes. The nearest place wins, the later one of two as near. A hunk without numbers, or that
---only fits without blanks and indentation, must fit in one place.
---@field apply fun(self, first: integer, count: integer, bytes: string): string?, native.edit.report|native.edit.failure

---@class native.search regular expressions over files
---PCRE2, UTF-8. include: a glob of names or, where it holds a slash, of paths: "*.c", "src/**/*.lua". Errors: invalid_pattern, its message
---with the place; invalid_glob.
---@field compile fun(pattern: string, options?: { ignore_case?: boolean, include?: string }): native.search.regex?, native.failure?

---@class native.search.found
---@field json string {"path":"a","line":1,"text":"..."},... in byte order of path, then by line; text UTF-8, repaired, without secrets, long lines cut
---@field shown string the same as grep shows it: lines as a:1:...
---@field count integer of them
---@field files_searched integer text files that were read
---@field files_unreadable integer files and directories below path that could not be read
---@field limit? "max_matches"|"max_bytes" what cut it short

---@class native.search.regex
---Searches the lines of the regular files below path. Binary files (a NUL in the first 8 KiB), links and directories named .git are passed
---over. max_bytes: of json. Errors: those of a directory for path itself, pattern_too_costly (message with file and line), timeout, cancelled;
---the failure's field found holds what was found until then.
---@field files fun(self, where: native.root, path: string, options?: { max_matches?: integer, max_bytes?: integer }): native.search.found?, native.failure?

---@class native.secret finds secrets in text from outside, in every usual encoding; src/core/text/secret.h says which
---@field SHORTEST integer characters; a shorter secret cannot be told from ordinary words
---@field add fun(bytes: string): boolean adds a secret, for good; false if it is too short
---@field is_known fun(): boolean whether any secret is known. If none is, there is nothing to redact
---For text that comes in pieces: how many of the first bytes can be redacted now, because no secret that may continue after the text
---reaches into them, without a character that they tear; and whether the rest must be redacted as cut at its start.
---@field settled fun(text: string): integer, boolean
---Replaces each secret by "[redacted]". cut: where the caller cut the text; a part of a secret at that end is redacted too.
---@field redact fun(text: string, cut?: "none"|"start"|"end"|"both"): string

---@class native.buffer bytes that C has written

---@class native.text UTF-8, base64, SHA-256, and estimates of tokens
---Makes bytes UTF-8: ill-formed parts become U+FFFD, as the Unicode Standard recommends. Says whether there were any.
---@field repair fun(bytes: string): string, boolean
---@field is_utf8 fun(bytes: string): boolean
---@field count_lines fun(bytes: string): integer the last one may lack its newline
---The newlines between two offsets of a UTF-8 text, from 0; and the characters after the last of these newlines, or after from.
---@field distance fun(bytes: string, from: integer, to: integer): integer, integer
---@field cut fun(utf8: string, size: integer): string the longest prefix of at most size bytes that does not split a character
---@field tail fun(utf8: string, size: integer): string the longest such suffix
---@field trim fun(bytes: string): string without the blanks around it
---@field trim_end fun(bytes: string, set?: string): string without the characters of a set (default: blanks) at its end
---@field find fun(bytes: string, part: string, from: integer): integer? in linear time; string.find is quadratic at worst
---@field sha256 fun(bytes: string): string lower-case hex
---@field base64_encode fun(bytes: string): string
---@field base64_decode fun(base64: string): string?, native.failure? strict RFC 4648, padding required. invalid
---@field tokens fun(utf8: string): integer how many tokens it costs a model: an estimate, rather too many than too few

---@class native.line_editor reads lines from a terminal
---Reads a line. complete gets it, and the number of bytes before the cursor; it returns text to insert there, or lines to show below. nil
---alone is the end of the input (Ctrl-D). Errors: cancelled (Ctrl-C; see interrupt.clear), timeout, not_a_terminal (stdin or stdout is not
---a terminal that can move its cursor).
---@field read fun(prompt: string, complete: fun(line: string, cursor: integer): string?, string?): string?, native.failure?
---@field remember fun(entry: string) appends an entry to the history, which keeps the last 1000

---@class native.file.replace_options
---@field durable? boolean default true: fsync of file and directory
---@field mode? integer default 0644

---@class native.file.parts a text to be written part by part: strings, and for each span of `from` two integers, offset and size
---@field [integer] string|integer
---@field from? native.file.log

---@class native.file.text the bytes, or a range of a file: it ends earlier where the file does
---@field bytes? string
---@field file? native.opened
---@field offset? integer
---@field size? integer
---@field cut? "none"|"start"|"end"|"both" as secret.redact takes it

---@class native.file files of the runner itself, outside the workspace, and its standard streams
---Reads at most limit bytes; "-" is stdin. Also gives when the first of them came, or the end, as interrupt.now. regular: a regular file
---or nothing, so that no writer is waited for. Errors: too_large, not_found, is_a_directory, not_a_file, cancelled, timeout, ...
---@field read fun(path: string, limit: integer, options?: { regular?: boolean }): string?, number|native.failure
---Replaces a file: temporary file beside it, rename. Where the file is a mount point, or the directory takes no new file, it is written in
---place, which is not atomic. A link is itself replaced. Gives how, and the size. Errors: not_a_file (directory, FIFO, socket, device),
---no_space, permission_denied, changed (`from` is shorter than it was), ...
---@field replace fun(path: string, parts: native.file.parts, options?: native.file.replace_options): "renamed"|"in_place"|nil, integer|native.failure
---Keeps room on the disk, 1 byte to 1 MiB, for the next replace of a file, which frees it: its temporary file, made ahead.
---@field keep_room fun(path: string, size: integer): true?, native.failure? Errors: no_space, ...
---Opens a file to append lines, and creates it by default. Errors: not_a_file (link, directory, FIFO, device), ...
---@field append fun(path: string, create?: boolean): native.file.log?, native.failure?
---Appends a text to the line of a log that goes on, a piece at a time: redacted, as UTF-8, as it stands between the quotes of a string in
---JSON. Gives the bytes of the redacted text; without a log, also whether they are UTF-8.
---@field append_text fun(text: native.file.text, log?: native.file.log): integer?, boolean|native.failure
---@field memory fun(): native.file.log?, native.failure? a log that is no file and that nobody else sees
---@field adopt fun(descriptor: integer): native.file.log of a log, from the image before
---Writes to an open descriptor (1 or 2), waiting for a slow reader: at most timeout seconds without progress and, from the first wait on,
---at most whole seconds (default: no limit). Gives whether all was written, how many bytes were, and how many there are.
---@field write fun(fd: integer, parts: native.file.parts, timeout: number, whole?: number): boolean, integer, integer
---@field make_directory fun(path: string): true?, native.failure? and those above it
---Creates a directory (0700). One that exists must be no link, belong to this user, and be closed to others: permission_denied.
---@field make_private_directory fun(path: string): true?, native.failure?
---@field make_temporary_directory fun(above: string): string?, native.failure? of a new name (0700)
---@field is_locked fun(path: string): boolean by another process, as a runner locks its journal. False where that cannot be told
---@field remove_directory fun(path: string): true?, native.failure? and all that is in it. Links are removed, not followed
---Makes a path, which need not exist yet, a file of the runner: steps neither list nor read nor change it.
---@field own fun(path: string): true?, native.failure?
---@field terminal_columns fun(fd: integer): integer? nil where fd is no terminal

---@class native.file.log to be declared <close> or closed
---Appends one line, given without the newline. A failure may leave it torn. Gives the offset of its first byte, and the file's size.
---goes_on: no newline yet.
---@field append fun(self, parts: native.file.parts, goes_on?: boolean): integer?, integer|native.failure
---@field read fun(self, offset: integer, size: integer): string?, native.failure? changed: it is shorter
---@field descriptor fun(self): integer
---Locks the file until the log is closed. Errors: locked (by another runner), ...; a file system may have no locks.
---@field lock fun(self): true?, native.failure?
---@field cut fun(self, size: integer): true?, native.failure? to so many bytes
---@field guard fun(self): true?, native.failure? from now on is_unchanged finds out whether others have written to it
---@field is_unchanged fun(self): boolean
---@field close fun(self)

---@class native.http.settings
---@field http_proxy? string of http:// requests, but never to loopback or a socket
---@field https_proxy? string
---@field no_proxy? string
---@field ca_file? string default: where the image keeps its bundle
---@field ca_directory? string

---@class native.http an HTTP/1.1 client
---A client keeps connections open between requests to the same origin.
---@field client fun(settings: native.http.settings): native.http.client?, native.failure?

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

---@class native.http.client may be closed or left to the collector
---Calls tick about every 0.1 s while an exchange waits. An error in it ends the wait and is raised again. It may itself wait for other
---exchanges of the client; it is called again meanwhile. nil stops that. Gives the tick that it replaces.
---@field tick fun(self, tick?: fun()): fun()?
---Starts a request without waiting. src/core/http/http.h lists the failure codes.
---@field open fun(self, request: native.http.request): native.http.exchange?, native.failure?

---@class native.http.exchange must be closed; that ends an unfinished one. After a timeout it may be waited for again.
---@field status fun(self): integer?, native.failure? waits for the headers of the answer. Redirects are not followed
---@field header fun(self, name: string): string?
---@field read fun(self): string?, native.failure? waits for more of the body. nil alone is its proper end
---Waits for a line of the body, which ends with CR, LF or CRLF; says whether it had its end. nil alone is the body's proper end.
---@field line fun(self): string?, boolean|native.failure?
---@field proxy fun(self): string? what may have written the answer itself: "the proxy http://host:port"
---@field close fun(self)
