---@meta
-- SPDX-License-Identifier: Apache-2.0
-- LuaLS definitions of the native.* modules, which are written in C. Never loaded; a test compares
-- it with the C.
--
-- Functions raise an error for misuse, and return nil, failure for failures of the world. Times are
-- seconds, sizes bytes, offsets from 0; strings are bytes unless called UTF-8; modes are permission
-- bits. The headers in src/core say more.

---@class native.failure
---@field code string stable: "not_found", "timeout", ...
---@field message string one line for people

---@class native.bundle the modules in this program
---@field version string
---@field libraries string "Lua 5.4.4, lua-cjson 2.1.0, ..."
---@field source "disk"|"embedded"
---Those below a prefix ("sba.steps."), without it, in byte order.
---@field list fun(prefix: string): string[]

---@class native.confine confines commands (Landlock)
---@field abi fun(): integer version of Landlock; 0: none
---@field filters fun(): boolean whether commands can have the seccomp filter
---@field real_path fun(path: string): string?, native.failure? absolute, without links
---@field may_write fun(path: string): boolean whether the user may, apart from these rules
---For all commands, before the first: below which paths they may write, and which files (absolute,
---without links) they cannot open. Errors: too_late, ...
---@field set_rules fun(writable: string[], hidden: string[]): true?, native.failure?

---@class native.identity the user and the environment of the runner
---@field is_root fun(): boolean effective, real or saved
---@field system fun(): { name: string, release: string, machine: string } uname(2)
---@field uid fun(): integer effective
---UID[:GID] or name[:GID], for good. Errors: unknown_user, ...
---@field become fun(user: string): true?, native.failure?
---@field environment fun(secrets: string[]): table<string, string> and removes these names from it

---@class native.interrupt the deadline, the cancel flag and the clocks
---@field now fun(): number monotonic
---@field elapsed_ms fun(since: number): integer milliseconds since a time of now()
---@field wall fun(): integer milliseconds since 1970-01-01 UTC
---@field timestamp fun(wall?: integer): string RFC 3339: "2026-01-31T09:05:00.123Z"; default: now
---@field set_deadline fun(seconds: number) from now
---@field remaining fun(): number? until the deadline, never negative
---@field reason fun(): native.failure? why work must stop now: timeout or cancelled
---Number of the first (or SIGTERM's), and when the first came, as now().
---@field signal fun(): integer?, number?
---Before ending.start: the end of our parent, which has that PID, cancels. Errors: unsupported;
---gone, and the job is cancelled.
---@field watch_parent fun(pid?: integer): true?, native.failure?
---@field sleep fun(seconds: number): true?, native.failure? Errors: timeout, cancelled
---SIGINT now stops the current work, not the program; code that catches its error, at its next
---instruction.
---@field begin_session fun()
---@field clear fun(): boolean forgets a SIGINT; whether there was one
---@field disarm fun() deadline and cancel have no effect from now on
---While held, deadline and signals wait. Gives what was before.
---@field hold fun(held: boolean): boolean
---@field rearm fun(seconds: number) after disarm: a new deadline, and new signals cancel

---What the image before left.
---@class native.ending.inherited
---@field reason "timeout"|"signal"|"crash"|"memory"
---@field information? string of keep; nil: it is lost
---@field journal? integer its descriptor
---@field signal? integer the number of the one that had cancelled the job

---Ends a job whose runner hangs (2.5 s past the deadline, 5 s past a signal), crashes or is refused
---memory: the program executes itself.
---@class native.ending
---@field inherited fun(): native.ending.inherited? in the new image
---@field start fun(): true?, native.failure? starts to watch
---In the new image: ends it after 10 s with this status.
---@field last fun(status: integer): true?, native.failure?
---What the new image inherits.
---@field keep fun(information: string, journal: integer): true?, native.failure?
---@field stop fun()
---@field deadline fun(at: number) as interrupt.now
---@field begun fun() the end has begun: it has 2 s more past the deadline, 2.5 s past a signal
---@field written fun(status: integer) a hang or crash now ends with this status

---@class native.process.options
---argv[1] is looked up in PATH of env, or with a slash is relative to directory.
---@field argv string[]
---@field env string[] "NAME=value"
---@field directory native.opened
---@field stdin? string default: /dev/null
---What the command finds at its descriptor 3: a script that is too long for an argument.
---@field script? string
---@field timeout? number
---@field idle_timeout? number without output
---From SIGTERM to SIGKILL at its timeout or the output limit; default, and at most: 2.
---@field grace? number
---@field output_limit integer of stdout and stderr together
---@field end_at_limit? boolean past the limit end the command; default: read on, and keep no more
---Where long texts are kept: a directory, in a nameless file; "": in memory that is not ours.
---@field spool? string
---@field apart? boolean in a Landlock domain of its own, out of reach of earlier commands
---Called every 0.1 s with what was printed since, and how many bytes before that are left out. An
---error in it ends the command.
---@field tick? fun(news?: string, missing?: integer)
---Called once the command runs, with its PID, which is its session too, and when it started, in
---clock ticks since boot.
---@field began? fun(pid: integer, started: integer)
---In place of stdin: the command is talked with. Its stdout is no output, but passed here as it
---comes; what this gives is written to its stdin, which "over" ends; "end" ends the command. Also
---called with "" once the command runs, and every 0.1 s. An error in it ends the command.
---@field hear? fun(bytes: string): string?, "over"|"end"|nil
---Pass all output; default: at most 64 KiB at once, nothing before the first tick.
---@field whole_news? boolean

---@class native.process.outcome
---timeout: its own; heard: hear said "end".
---@field ended "exit"|"timeout"|"idle"|"deadline"|"cancelled"|"output_limit"|"heard"
---@field exit_code? integer
---@field signal? integer if a signal ended it
---@field stdout string|native.process.text UTF-8, repaired
---@field stderr string|native.process.text likewise
---@field stdout_truncated boolean
---@field stderr_truncated boolean
---UTF-8; both as they came, up to the limit or 1 MiB; nil if only one printed and is whole.
---@field output? string
---@field output_tail? string the end of longer output
---@field output_missing integer bytes between output and output_tail
---@field duration_ms integer
---@field cpu_time_ms integer with the children it waited for
---@field max_rss_bytes integer at least the runner's own

---@class native.process.text
---@field file native.file.log
---@field size integer

---Names one process, also after its PID has been given to another; what is unknown is 0 or "".
---@class native.process.runner
---@field word string random; CYNODE_RUN in the environment of its commands
---@field pid integer
---@field started integer clock ticks since boot
---@field boot_id string
---@field pid_namespace integer

---@class native.process.session
---@field pid integer of its first process
---@field started integer

---@class native.process runs commands, and ends what they leave
---At its timeout, the deadline, a cancel or the output limit its tree gets SIGTERM and, 2 s later,
---SIGKILL. What it leaves running lives until finish(), or until a deadline or cancel ends a later
---command. Errors: not_found, permission_denied, not_executable, too_large (arguments and
---environment), ...
---@field run fun(options: native.process.options): native.process.outcome?, native.failure?
---@field find fun(name: string, path?: string): string?, native.failure? a program in PATH
---@field any fun(): boolean whether there is a child, alive or not yet reaped
---Ends every descendant: SIGTERM, after the grace period SIGKILL. Those that do not end
---(privileged, or in a hung system call) are given up 2 s after the last end, or at the time
---until_when. Gives how many ended, how many did not, and the PID of one of these, or 0.
---@field finish fun(grace: number, until_when?: number): integer, integer, integer
---@field usage fun(): { cpu_time_ms: integer, max_rss_bytes: integer } with what it waited for
---@field runner fun(): native.process.runner this process, with a new word
---@field life fun(runner: table): "alive"|"gone"|nil nil: it cannot be told
---@field sessions fun(): table<integer, true> those of all processes
---Kills processes that outlived their runner, but not those from which we descend: by their words
---(nil: those of all runners of our PID namespace that are gone), and by sessions that commands
---began. Gives how many it ended, how many live after that time, and the PID of one.
---@field end_leftovers fun(words: string[]?, sessions: native.process.session[], seconds: number): integer, integer, integer
---Reaps children until SIGTERM or SIGINT, without using CPU time; other signals do nothing.
---@field idle fun()

---@class native.workspace files of a directory that nothing leads out of
---@field open fun(path: string): native.root?, native.failure?
---@field temporary_name fun(): string a later run recognizes those of this one by the first

---@class native.read_options
---@field offset_bytes? integer
---@field max_bytes? integer
---@field max_content? integer
---@field start_line? integer
---@field end_line? integer
---@field nofollow? boolean
---@field digest? boolean
---@field max_digest? integer

---@class native.range
---@field content string
---@field from integer
---@field length integer
---@field truncated boolean
---@field size_bytes integer of the file
---@field mode integer
---@field sha256? string
---@field lines? integer

---@class native.write_options
---@field mode? integer default: that of the replaced file, else 0644 less the umask
---@field overwrite? boolean false: already_exists
---@field append? boolean in place, without a sha256

---@class native.written
---@field size_bytes integer of the whole file
---@field sha256? string
---@field created boolean

---@class native.walk_options
---@field max_depth? integer
---@field max_names? integer of one directory, whichever the file system gives first
---@field include_hidden? boolean

---@class native.snapshot_options
---@field directory string where the nameless file is
---@field most_bytes? integer
---@field left_out? string

---Paths are relative to it, or absolute below the path it was opened with; one that leads out (..,
---links, races) is a path_escape, with "path escapes workspace" in its message.
---@class native.root
---@field path fun(self): string absolute
---Without doubled slashes and "."; "." for the root. Looks at no links. Errors: invalid,
---name_too_long.
---@field relative fun(self, path: string): string?, native.failure?
---Reads a regular file in one pass: the lines start_line to end_line (from 1, counted from
---offset_bytes), at most max_bytes (truncated: there is more); content has the first max_content
---bytes of that range, which is at `from` in the file and has `length` bytes. digest: sha256 and
---lines of the whole file too, if it has at most max_digest bytes. nofollow: a link is no file.
---Errors: not_found, not_a_file, ...
---@field read fun(self, path: string, options?: native.read_options): native.range?, native.failure?
---Writes a regular file atomically; missing directories are made. A link at the end of path is
---followed, inside.
---@field write fun(self, path: string, content: string, options?: native.write_options): native.written?, native.failure?
---@field stat fun(self, path: string): native.entry?, native.failure? of a link itself
---What is at and below path: in byte order, a directory before what is in it. Follows no links.
---@field walk fun(self, path: string, options?: native.walk_options): native.walk?, native.failure?
---Writes a file that waits for its place at path, in the nearest directory above that exists. Gives
---its path.
---@field stage fun(self, path: string, content: native.edit.bytes, mode?: integer): string?, native.failure?
---One that leads out is path_escape.
---@field stage_link fun(self, path: string, target: string): string?, native.failure?
---Moves a file or link; missing directories are made. aside: what is there gets this path beside
---`to` first, as a link where there are links, so something stays; "": it is replaced; nil: nothing
---may be there.
---@field move fun(self, from: string, to: string, aside?: string): true?, native.failure?
---A file or link itself, or an empty directory.
---@field remove fun(self, path: string, kind: "file"|"directory"): true?, native.failure?
---@field make_directory fun(self, path: string): true?, native.failure? and those above it
---Removes empty directories of path after its first kept bytes.
---@field prune fun(self, path: string, kept: integer)
---@field chmod fun(self, path: string, mode: integer): true?, native.failure?
---@field directory fun(self, path: string): native.opened?, native.failure? to run a command in
---A regular file to be sent, which fails before its last bytes if it has another sha256.
---@field open fun(self, path: string, sha256?: string): native.opened?, native.failure?
---Keeps files and links; not .git, what .gitignore files ignore, and left_out.
---@field snapshot fun(self, options: native.snapshot_options): native.snapshot?, native.failure?

---@class native.entry
---@field name? string "." where the walk starts; not of stat
---@field type "file"|"directory"|"symlink"|"fifo"|"socket"|"device"
---@field size_bytes integer
---@field mode integer
---@field inode? integer of stat alone
---Of stat alone: when content or inode last changed, in nanoseconds since 1970.
---@field changed_ns? integer
---@field target? string of a symlink, as written

---@class native.walk to be closed
---The next entry (first that at path), in `into` where given; its depth; and whether what is below
---it comes next: not where it cannot be read or is too deep. nil alone: the end.
---@field next fun(self, into?: native.entry): native.entry?, integer|native.failure|nil, boolean?
---@field path fun(self): string of the entry, in the root
---@field is_cut fun(self): boolean by max_names
---Removes a temporary file of a killed run of this user, whose first temporary name is given.
---@field remove_temporary fun(self, first: string): boolean
---@field close fun(self)

---@class native.opened to be closed
---@field size fun(self): integer when it was opened
---Its first bytes, as they are now; most: default 4 KiB, at most 1 MiB.
---@field read fun(self, most?: integer): string
---@field close fun(self)

---@class native.change
---@field path string relative
---@field action "created"|"modified"|"deleted"|"mode_changed"|"type_changed"|"unreadable"
---@field blocked? true in its place was something for which a patch cannot make room
---@field original? integer for content; nil: not kept
---@field before? native.entry without a name
---@field after? native.entry likewise

---@class native.snapshot
---Since, in the order of a walk; called once.
---@field changes fun(self): native.change[]?, native.failure?
---Of a file, or a link's target.
---@field content fun(self, original: integer): string?, native.failure?
---@field close fun(self)

---@class native.edit the hunks of a diff
---@field hunks fun(diff: string): native.edit.hunks at most 64 MiB

---@class native.edit.report
---@field hunks integer
---@field added integer lines
---@field removed integer lines
---@field offset integer largest, in lines, absolute
---@field fuzz integer largest
---@field line_ends? "crlf"|"lf" the file's, where all of the diff's were others
---@field tolerated table<native.edit.tolerance, true>

---@alias native.edit.tolerance
---| "blank_lines" | "trailing_blanks" | "line_ends" | "final_newline" | "indentation"

---Codes: patch_mismatch, patch_ambiguous, already_applied, too_large.
---@class native.edit.failure: native.failure
---@field hunk? integer of those to be applied, from 1
---@field header integer where its @@ lines begin in the diff
---@field body integer where its lines begin
---@field last integer where they end
---@field line integer of the file, where the hunk belongs or fits; 0: the message says all
---@field other integer where it fits too

---@class native.edit.content bytes, for native.root:stage alone

---@alias native.edit.bytes string|native.edit.content
---@alias native.edit.outcome native.edit.report|native.edit.failure

---@class native.edit.hunks
---Reads hunks as those from `number` on. Without body: the ones that begin at `at`, each right
---below the other, as far as they change something and have as many lines as their @@ line says.
---With it: one, of all lines from body to limit. by_content: its @@ line has no numbers. at_end: it
---belongs at the end of the file. Gives where the last one ends, their count, where the last one
---begins, whether one has old lines, or new ones, and whether the first says that the file is new
---or empty; nothing: none; nil: too_large.
---@field read fun(self, number: integer, at: integer, body?: integer, limit?: integer, by_content?: boolean, at_end?: boolean): integer?, integer|native.failure|nil, integer?, boolean?, boolean?, boolean?
---The nearest place wins, the later one of two; without numbers, or its blanks and indentation, a
---hunk must fit in one place. keep: what a file of more than 1 MiB becomes is given as content,
---which is no copy of it.
---@field apply fun(self, first: integer, count: integer, bytes: string, keep?: boolean): native.edit.bytes?, native.edit.outcome

---@class native.search.options
---@field ignore_case? boolean
---@field include? string a glob of names or, with a slash, of paths: "*.c", "src/**/*.lua"

---@class native.search.limits
---@field max_matches? integer
---@field max_bytes? integer of json

---@class native.search
---PCRE2, UTF-8. Errors: invalid_pattern, invalid_glob.
---@field compile fun(pattern: string, options?: native.search.options): native.search.regex?, native.failure?

---@class native.search.found
---{"path":"a","line":1,"text":"..."},... by path, then line; repaired, without secrets, long lines
---cut.
---@field json string
---@field shown string the same as grep shows it: a:1:...
---@field count integer
---@field files_searched integer text files
---@field files_unreadable integer files and directories
---@field limit? "max_matches"|"max_bytes" what cut it short

---@class native.search.regex
---Regular files below path, but for binary ones (a NUL in the first 8 KiB), links and .git. Errors:
---pattern_too_costly, timeout, cancelled (with the field found: what was found until then), those
---of path itself.
---@field files fun(self, where: native.root, path: string, limits?: native.search.limits): native.search.found?, native.failure?

---@class native.secret finds secrets in text, in the encodings that src/core/text/secret.h names
---@field SHORTEST integer characters; a shorter one cannot be told from ordinary words
---@field add fun(bytes: string): boolean for good; false if it is too short
---@field is_known fun(): boolean whether there is any
---For text in pieces: how many of the first bytes can be redacted now, because no secret or
---character that may go on after the text reaches into them; and whether the rest must be redacted
---as cut at its start.
---@field settled fun(text: string): integer, boolean
---To "[redacted]". cut: where the caller cut the text; a part of a secret at that end is replaced
---too.
---@field redact fun(text: string, cut?: "none"|"start"|"end"|"both"): string

---@class native.text UTF-8, base64, SHA-256, and estimates of tokens
---@field repair fun(bytes: string): string, boolean with U+FFFD for what is not UTF-8; whether any
---@field is_utf8 fun(bytes: string): boolean
---@field count_lines fun(bytes: string): integer the last one may lack its newline
---The newlines between two offsets of a UTF-8 text, and the characters after the last of them, or
---after from.
---@field distance fun(bytes: string, from: integer, to: integer): integer, integer
---The longest prefix of at most size bytes that splits no character.
---@field cut fun(utf8: string, size: integer): string
---@field tail fun(utf8: string, size: integer): string the longest such suffix
---@field trim fun(bytes: string): string without the blanks around it
---Without the characters of set (default: blanks) at its end.
---@field trim_end fun(bytes: string, set?: string): string
---In linear time, unlike string.find.
---@field find fun(bytes: string, part: string, from: integer): integer?
---@field sha256 fun(bytes: string): string lower-case hex
---@field base64_encode fun(bytes: string): string
---Strict RFC 4648, with padding. Errors: invalid.
---@field base64_decode fun(base64: string): string?, native.failure?
---@field tokens fun(utf8: string): integer an estimate, rather too many than too few

---@class native.line_editor reads lines from a terminal
---complete gets the line and the bytes before the cursor, and returns text to insert there, or
---lines to show below. nil alone: the end. Errors: cancelled (Ctrl-C; see interrupt.clear),
---timeout, not_a_terminal.
---@field read fun(prompt: string, complete: fun(line: string, cursor: integer): string?, string?): string?, native.failure?
---@field remember fun(entry: string) in the history, which keeps the last 1000

---@class native.file.parts of a text to be written: strings, and offset and size of spans of `from`
---@field [integer] string|integer
---@field from? native.file.log

---@class native.file.text bytes, or a range of a file, as far as it goes
---@field bytes? string
---@field file? native.opened|native.file.log
---@field offset? integer
---@field size? integer
---@field cut? "none"|"start"|"end"|"both" as secret.redact takes it
---@field encoding? "utf-8"|"base64" in which it is written
---@field most? integer bytes of the redacted text that are written

---@class native.file.identity
---@field device integer
---@field inode integer
---@field mode integer permission bits

---@class native.file.replacing
---@field durable? boolean with fsync; default true
---It waits for the disk until then (as interrupt.now) and then replaces; sync() does the rest.
---@field until_when? number
---@field mode? integer default 0644

---@alias native.file.way "renamed"|"in_place"

---@class native.file the runner's own files, and its standard streams
---"-" is stdin; more than limit is too_large. Also gives when its first byte or its end came, as
---interrupt.now. regular: not_a_file else.
---@field read fun(path: string, limit: integer, options?: { regular?: boolean }): string?, number|native.failure
---Replaces a file or a link itself, atomically, or in place where it is a mount point or the
---directory takes no new file. Gives how, and the size. Errors: not_a_file, no_space, changed
---(`from` is shorter), ...
---@field replace fun(path: string, parts: native.file.parts, options?: native.file.replacing): native.file.way?, integer|native.failure
---Names the directory of the runner's own files, which replace() opens again where a command closed
---it. known: what it gave in an earlier image of the program.
---@field keep_directory fun(path: string, known?: native.file.identity): native.file.identity?
---Makes durable what the last replace() put there before the disk had it, however long that takes.
---@field sync fun(path: string): true?, native.failure?
---Makes the next temporary file of replace, of 1 byte to 1 MiB, so that there is room on the disk.
---@field keep_room fun(path: string, size: integer): true?, native.failure?
---create: default true. A link is not_a_file.
---@field append fun(path: string, create?: boolean): native.file.log?, native.failure?
---Appends to the line of a log that goes on, a piece at a time: redacted, as UTF-8 or base64,
---escaped as in a JSON string.
---@field append_text fun(text: native.file.text, log: native.file.log): true?, native.failure?
---The bytes of the redacted text, whether they are UTF-8 but for half a character at the end, and
---the bytes of that.
---@field measure_text fun(text: native.file.text): integer?, boolean|native.failure, integer?
---@field memory fun(): native.file.log?, native.failure? not in a file
---@field open fun(path: string): native.file.log?, native.failure? a regular file, to be read
---@field adopt fun(descriptor: integer): native.file.log of the image before
---Writes to descriptor 1 or 2. Waits for a slow reader at most timeout without progress, and whole
---(default: any time) in all. Gives whether all was written, how many bytes were, and how many
---there are.
---@field write fun(fd: integer, parts: native.file.parts, timeout: number, whole?: number): boolean, integer, integer
---@field make_directory fun(path: string): true?, native.failure? and those above it
---0700; what exists must be ours, no link, and closed to others.
---@field make_private_directory fun(path: string): true?, native.failure?
---@field make_temporary_directory fun(above: string): string?, native.failure? 0700
---@field is_locked fun(path: string): boolean by another process; false where that cannot be told
---And all that is in it. seconds: it tries at most so long.
---@field remove_directory fun(path: string, seconds?: number): true?, native.failure?
---There or not yet: steps neither list, read nor change it.
---@field own fun(path: string): true?, native.failure?
---@field terminal_columns fun(fd: integer): integer? nil where fd is no terminal

---@class native.file.place of a JSON value
---@field offset integer in the file
---@field size integer
---@field left table<string, integer[]> offset and size of members that were left out, by name as it is written

---@class native.file.log to be closed
---A line, given without its newline (goes_on: none yet). A failure may leave it torn. Gives its
---offset, and the file's size.
---@field append fun(self, parts: native.file.parts, goes_on?: boolean): integer?, integer|native.failure
---changed: it is shorter.
---@field read fun(self, offset: integer, size: integer): string?, native.failure?
---The line at an offset: its first bytes, its size, and whether a newline ends it (which counts).
---Nothing at the end of the file.
---@field line fun(self, at: integer, most: integer): string?, integer|native.failure|nil, boolean?
---@field size fun(self): integer bytes of the file now
---The JSON value that begins at an offset, or after blanks there: its text, with null for the
---members that are longer than most or named always; and where it stands. Errors: end, incomplete
---(the file ends within it), invalid_json, too_deep, ...
---@field skim fun(self, at: integer, most: integer, always?: string): string?, native.file.place|native.failure
---@field descriptor fun(self): integer
---@field lock fun(self): true?, native.failure? until closed. Errors: locked, or there are no locks
---@field cut fun(self, size: integer): true?, native.failure?
---For is_unchanged: whether nobody else has written since.
---@field guard fun(self): true?, native.failure?
---@field is_unchanged fun(self): boolean
---@field close fun(self)

---@class native.http.settings
---@field http_proxy? string
---@field https_proxy? string
---@field no_proxy? string
---@field ca_file? string default: the image's bundle
---@field ca_directory? string

---@class native.http an HTTP/1.1 client
---Keeps connections open. Loopback and sockets go through no proxy.
---@field client fun(settings: native.http.settings): native.http.client?, native.failure?

---@class native.http.request
---@field method string
---@field url string http://, https:// or http+unix://%2Fpath%2Fto.sock/request/path
---@field headers? string[] "Name: value"
---@field body? string|native.file.parts|(string|native.opened)[] opened files are sent as base64
---@field raw_files? boolean they are sent as they are
---@field connect_timeout? number default 10
---@field first_timeout? number until the first byte of the answer, default 60
---@field idle_timeout? number between two pieces of the answer, default 60
---@field whole_timeout? number of the whole exchange; default: none
---@field body_limit? integer default 16 MiB
---@field once? boolean not sent again if a reused connection ends before the answer
---@field ignore_interrupt? boolean only its own timeouts apply, not deadline and cancel

---@class native.http.client
---Called every 0.1 s while an exchange waits, even while the tick itself waits for another. An
---error ends the wait. Gives the tick before.
---@field tick fun(self, tick?: fun()): fun()?
---Starts a request without waiting. src/core/http/http.h has the failure codes.
---@field open fun(self, request: native.http.request): native.http.exchange?, native.failure?

---@class native.http.exchange must be closed. After a timeout it may be waited for again.
---Waits for the answer's headers. Redirects are not followed.
---@field status fun(self): integer?, native.failure?
---@field header fun(self, name: string): string?
---Waits for more of the body. nil alone: its proper end.
---@field read fun(self): string?, native.failure?
---Waits for a line of the body, which ends with CR, LF or CRLF; whether it had its end. nil alone:
---as read.
---@field line fun(self): string?, boolean|native.failure?
---@field idle fun(self, seconds: number) the idle_timeout from now on
---@field proxy fun(self): string? which may have written the answer: "the proxy http://host:port"
---@field close fun(self)
