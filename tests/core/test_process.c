// SPDX-License-Identifier: Apache-2.0
// core/process: what a command prints and how it ends, what cannot be started, what is left behind.
#include "core/process/process.h"

#include "check.h"
#include "core/base/interrupt.h"
#include "core/process/process_children.h"
#include "core/text/secret.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct process_left rest;
static int directory_fd;
static const char *const environment[] = {"PATH=/nowhere:/usr/bin:/bin", NULL};

static struct process_options options_for(const char *const *argv)
{
    return (struct process_options){
        .argv = argv,
        .env = environment,
        .directory = directory_fd,
        .timeout = INT64_MAX,
        .idle_timeout = INT64_MAX,
        .grace = 2000,
        .output_limit = 1 << 20,
    };
}

static struct process_outcome run(const struct process_options *options)
{
    struct process_outcome outcome;
    struct error error = {0};
    assert_int_equal(process_run(options, &outcome, &error), 0);
    return outcome;
}

// Options for a script; valid until the next call.
static struct process_options options_for_script(const char *script)
{
    static const char *argv[] = {"sh", "-c", NULL, NULL};
    argv[2] = script;
    return options_for(argv);
}

static struct process_options options_with_input(const char *script, const char *input, size_t size)
{
    struct process_options options = options_for_script(script);
    options.input = input;
    options.input_size = size;
    return options;
}

static void check_text(const struct process_text *text, const char *expected)
{
    check_bytes(&text->text, expected, strlen(expected));
}

static void put_program(const char *name, const char *content)
{
    put(in_directory(name), content);
    assert_int_equal(chmod(in_directory(name), 0755), 0);
}

static void check_refused(const char *command, const char *argument, const char *code, const char *said)
{
    const char *const argv[] = {command, argument, NULL};
    const struct process_options options = options_for(argv);
    struct process_outcome outcome;
    struct error error = {0};
    assert_int_equal(process_run(&options, &outcome, &error), -1);
    assert_string_equal(error.code, code);
    if (!strstr(error.message, said))
        fail_msg("\"%s\" does not say \"%s\"", error.message, said);
    error_clear(&error);
}

static void says_why_a_command_cannot_start(void **state)
{
    put(in_directory("plain"), "#!/bin/sh\n");
    put_program("lost", "#!/no/such/interpreter -x\n");
    put_program("crlf", "#!/bin/sh\r\n");
    put_program("text", "neither\n");
    check_refused("no-such-command", NULL, "not_found", "/nowhere:/usr/bin:/bin");
    check_refused("./missing", NULL, "not_found", "no such file");
    check_refused("./plain", NULL, "not_executable", "chmod +x");
    check_refused("./lost", NULL, "not_found", "/no/such/interpreter");
    check_refused("./crlf", NULL, "not_found", "carriage return");
    check_refused("./text", NULL, "not_executable", "#!/bin/sh");
    check_refused("/usr", NULL, "not_executable", "directory");
    check_refused("", NULL, "invalid", "without a name");
    char large[200001] = {0};
    memset(large, 'x', sizeof large - 1);
    check_refused("true", large, "too_large", "");
}

static void cuts_at_its_limit_between_characters(void **state)
{
    const char *const argv[] = {"printf", "abc\303\251\303\251", NULL};
    struct process_options options = options_for(argv);
    const char *const expected[] = {"", "a", "ab", "abc", "abc", "abc\303\251", "abc\303\251", "abc\303\251\303\251"};
    for (size_t limit = 0; limit < sizeof expected / sizeof *expected; limit++) {
        options.output_limit = limit;
        struct process_outcome outcome = run(&options);
        check_text(&outcome.texts[PROCESS_STDOUT], expected[limit]);
        assert_int_equal(outcome.texts[PROCESS_STDOUT].truncated, limit < 7);
        process_outcome_free(&outcome);
    }
}

// What was told while a script ran. A script that begins with SEEN waits with "seen N" until N of its lines were told.
struct heard {
    struct buffer text;
    uint64_t missing;
    int calls; // with news
    int lines; // so far, but for those past the ninth
};

#define SEEN "rm -f seen-*; seen() { until [ -e seen-$1 ]; do sleep .01; done; }; "

static bool hear(void *data, const char *news, size_t size, uint64_t missing)
{
    struct heard *heard = data;
    heard->missing += missing;
    heard->calls += size > 0;
    assert_int_equal(buffer_append(&heard->text, news, size), 0);
    for (size_t i = 0; i < size && heard->lines < 9; i++) {
        char name[32];
        if (news[i] != '\n')
            continue;
        snprintf(name, sizeof name, "seen-%d", ++heard->lines);
        put(in_directory(name), "");
    }
    return true;
}

static struct process_options options_to_hear(const char *script, bool whole, struct heard *heard)
{
    struct process_options options = options_for_script(script);
    options.tick = hear;
    options.whole_news = whole;
    options.data = heard;
    return options;
}

static void keeps_the_order_of_both(void **state)
{
    static const char script[] = SEEN "print() { echo $1$2; seen $3; }; for i in 1 2 3; do "
                                      "print o $i $((2 * i - 1)); print e $i $((2 * i)) >&2; done";
    struct heard heard = {0};
    const struct process_options options = options_to_hear(script, true, &heard);
    struct process_outcome outcome = run(&options);
    check_bytes(&outcome.output, "o1\ne1\no2\ne2\no3\ne3\n", 18);
    assert_int_equal(outcome.missing, 0);
    process_outcome_free(&outcome);
    buffer_free(&heard.text);
}

// Every size around the limit of what is kept: nothing is lost where it fits, and the count is right where it does not.
static void counts_what_is_missing(void **state)
{
    char *bytes = malloc(PROCESS_OUTPUT_SHOWN + 2);
    for (size_t i = 0; i < PROCESS_OUTPUT_SHOWN + 2; i++)
        bytes[i] = i % 23 ? (char)('a' + i % 23) : '\n';
    for (size_t size = PROCESS_OUTPUT_SHOWN - 2; size <= PROCESS_OUTPUT_SHOWN + 2; size++) {
        struct heard heard = {0};
        struct process_options options = options_to_hear(SEEN "echo >&2; seen 1; cat", true, &heard);
        options.input = bytes;
        options.input_size = size - 1;
        struct process_outcome outcome = run(&options);
        const struct buffer *head = &outcome.output, *tail = &outcome.tail;
        size_t at = size - 1 - tail->size;
        assert_int_equal(head->size + tail->size + outcome.missing, size);
        assert_true(size <= PROCESS_OUTPUT_SHOWN ? outcome.missing == 0
                                                 : outcome.missing <= PROCESS_OUTPUT_NOTE + 23 + 2);
        assert_memory_equal(head->data, "\n", 1);
        assert_memory_equal(head->data + 1, bytes, head->size - 1);
        if (tail->size)
            assert_memory_equal(tail->data, bytes + at, tail->size);
        process_outcome_free(&outcome);
        buffer_free(&heard.text);
    }
    free(bytes);
}

static bool holds(const struct buffer *buffer, const char *text)
{
    return memmem(buffer->data, buffer->size, text, strlen(text)) != NULL;
}

// Both cuts are within a character, and the tail holds a secret.
static void splits_no_character_where_it_is_cut(void **state)
{
    static const char secret[] = "s3cr3t-of-23-characters", redacted[] = "[redacted]";
    size_t size = PROCESS_OUTPUT_SHOWN + 1001;
    char *bytes = malloc(size);
    bytes[0] = 'x';
    for (size_t i = 1; i < size; i++)
        bytes[i] = i % 2 ? '\303' : '\251';
    memcpy(bytes + size - 1 - strlen(secret), secret, strlen(secret));
    bytes[size - 1] = '\n';
    assert_int_not_equal(secret_add(secret, strlen(secret)), -1);
    const struct process_options options = options_with_input("cat; printf e >&2", bytes, size);
    struct process_outcome outcome = run(&options);
    size_t shown = outcome.output.size + outcome.tail.size + strlen(secret) - strlen(redacted);
    assert_int_equal(shown + outcome.missing, size + 1);
    assert_true(holds(&outcome.tail, redacted));
    assert_false(holds(&outcome.output, "\357\277\275") || holds(&outcome.tail, "\357\277\275"));
    process_outcome_free(&outcome);
    free(bytes);
}

// Runs the script with a spool, and checks that each stream is as without one. Returns how many are in a spool.
static int check_spooled(struct process_options options, const char *spool)
{
    struct process_outcome whole = run(&options);
    options.spool = spool;
    struct process_outcome outcome = run(&options);
    int count = 0;
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        struct process_text *text = &outcome.texts[i];
        if (text->spool.fd >= 0) {
            assert_int_equal(spool_read(&text->spool, 0, (size_t)text->spool.size, &text->text), 0);
            count++;
        }
        check_bytes(&text->text, whole.texts[i].text.data, whole.texts[i].text.size);
        assert_int_equal(text->truncated, whole.texts[i].truncated);
    }
    process_outcome_free(&outcome);
    process_outcome_free(&whole);
    return count;
}

// Secrets, as they are and as wrapped base64, characters that are cut and what is no UTF-8, wherever pieces may end.
static struct buffer text_with_borders(size_t size)
{
    static const char wrapped[] = "czNjcjN0LW9mLTIz\nLWNoYXJhY3RlcnM=";
    static const char *const parts[] = {
        "s3cr3t-of-23-characters", wrapped, "czN\n", "\342\202\254", "\377", "\n\n", "s3cr3t-of", "\360\237"};
    struct buffer text = {0};
    for (unsigned random = 1; text.size < size;) {
        random = random * 1103515245 + 12345;
        const char *part = parts[(random >> 16) % 8];
        bool is_near = text.size % (1 << 20) < 2000 || text.size % (1 << 20) > (1 << 20) - 2000;
        assert_int_equal(buffer_append(&text, is_near ? part : "0123456789 plain", is_near ? strlen(part) : 16), 0);
    }
    text.size = size;
    return text;
}

static void keeps_long_texts_in_files(void **state)
{
    const struct rlimit full = {(1 << 20) + 5000, RLIM_INFINITY}, free = {RLIM_INFINITY, RLIM_INFINITY};
    struct buffer text = text_with_borders((2 << 20) + 2000);
    assert_int_equal(secret_add("s3cr3t-of-23-characters", 23), 1);
    struct process_options options = options_with_input("cat", text.data, text.size);
    for (size_t limit = 2 << 20; limit < (2 << 20) + 40; limit += 7) {
        options.output_limit = limit;
        assert_int_equal(check_spooled(options, directory), 1);
    }
    options = options_with_input("tee /dev/stderr", text.data, text.size);
    options.output_limit = SIZE_MAX;
    assert_int_equal(check_spooled(options, directory), 2);
    assert_int_equal(check_spooled(options, ""), 2);
    assert_int_equal(check_spooled(options, "/nowhere"), 0);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &full);
    assert_int_equal(check_spooled(options, directory), 0);
    setrlimit(RLIMIT_FSIZE, &free);
    buffer_free(&text);
}

static struct heard heard_from(const char *script, bool whole)
{
    struct heard heard = {0};
    struct process_options options = options_to_hear(script, whole, &heard);
    options.output_limit = 1000;
    struct process_outcome outcome = run(&options);
    process_outcome_free(&outcome);
    return heard;
}

static void check_heard(struct heard heard, const char *expected)
{
    check_bytes(&heard.text, expected, strlen(expected));
    buffer_free(&heard.text);
}

static void tells_what_is_printed_while_it_runs(void **state)
{
    check_heard(heard_from(SEEN "echo a; seen 1; echo b >&2; seen 2; echo c", false), "a\nb\nc\n");
    check_heard(heard_from(SEEN "echo a; echo b; seen 2; exit 3", false), "a\nb\n");
    check_heard(heard_from("echo short", true), "short\n");
}

// The first tick, before which nothing is printed, lets the script print, and lasts until that has ended.
static bool tick_until_the_end(void *data, const char *news, size_t size, uint64_t missing)
{
    int *calls = data;
    siginfo_t ended;
    assert_int_equal(size, 0);
    put(in_directory("ticks"), "");
    assert_int_equal(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
    ++*calls;
    return true;
}

static void tells_nothing_of_a_command_that_ended_before_there_was_news(void **state)
{
    int calls = 0;
    struct process_options options = options_for_script("until [ -e ticks ]; do sleep .01; done; echo short");
    options.tick = tick_until_the_end;
    options.data = &calls;
    struct process_outcome outcome = run(&options);
    check_text(&outcome.texts[PROCESS_STDOUT], "short\n");
    assert_int_equal(calls, 1);
    process_outcome_free(&outcome);
}

static void tells_all_or_the_end(void **state)
{
    static const char script[] = SEEN "head -c 20000000 /dev/zero; echo the end; seen 1";
    struct heard heard = heard_from(script, true);
    assert_int_equal(heard.text.size + heard.missing, 20000008);
    assert_int_equal(heard.missing, 0);
    buffer_free(&heard.text);
    heard = heard_from(script, false);
    assert_int_equal(heard.text.size + heard.missing, 20000008);
    assert_true(heard.text.size <= (size_t)heard.calls * 2 * PROCESS_OUTPUT_NEWS);
    assert_memory_equal(heard.text.data + heard.text.size - 8, "the end\n", 8);
    buffer_free(&heard.text);
}

static void spares_what_earlier_commands_left(void **state)
{
    struct process_options options = options_for_script("setsid sleep 600 >/dev/null 2>&1 & echo $!");
    struct process_outcome outcome = run(&options);
    pid_t left = (pid_t)strtol(outcome.texts[PROCESS_STDOUT].text.data, NULL, 10);
    process_outcome_free(&outcome);
    options = options_for_script("exec sleep 600");
    options.timeout = 100;
    outcome = run(&options);
    assert_int_equal(outcome.ending, PROCESS_TIMEOUT);
    process_outcome_free(&outcome);
    siginfo_t ended = {0}; // a zombie would still take a signal
    poll(NULL, 0, 100);
    assert_int_equal(waitid(P_PID, (id_t)left, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    assert_int_equal(ended.si_pid, 0);
    assert_int_equal(process_finish(1000, INT64_MAX, &rest), 1);
    assert_int_equal(rest.count, 0);
    assert_int_equal(kill(left, 0), -1);
    assert_int_equal(process_finish(1000, INT64_MAX, &rest), 0);
}

// A command that says PTRACE_TRACEME shows us its stops. It lives on, and is ended like others.
static void takes_no_stop_for_an_end(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "a) Z 1");
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    siginfo_t stopped = {0};
    assert_int_equal(waitid(P_PID, (id_t)child, &stopped, WSTOPPED | WNOWAIT), 0);
    assert_false(process_children_dead(child));
    struct process_child waited = {.pid = child};
    process_children_expect(&waited);
    assert_int_equal(process_children_reap(), 0);
    process_children_forget(&waited);
    assert_false(waited.ended);
    assert_false(process_children_dead(child));
    assert_int_equal(process_finish(0, INT64_MAX, &rest), 1);
    assert_int_equal(kill(child, 0), -1);
}

static int set_up(void **state)
{
    interrupt_install();
    signal(SIGPIPE, SIG_IGN);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ||
        make_directory(state) < 0)
        return -1;
    directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return directory_fd < 0;
}

static int tear_down(void **state)
{
    process_finish(0, INT64_MAX, &rest);
    close(directory_fd);
    return remove_directory(state);
}

// Until both pipes end, however much time there is.
static void reads_what_comes_late(void **state)
{
    struct process_output output = {.limit = 100, .streams = {{.fd = -1}, {.fd = -1}}};
    static struct process_text texts[PROCESS_STREAMS];
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    output.streams[PROCESS_STDOUT].fd = ends[0];
    pid_t writer = fork();
    if (writer == 0) {
        for (int i = 0; i < 3; i++) {
            usleep(20000);
            if (write(ends[1], "late ", 5) < 0)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    process_output_drain(&output, 600000);
    assert_int_equal(process_output_take(&output, texts), 0);
    assert_int_equal(texts[PROCESS_STDOUT].text.size, 15);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    buffer_free(&texts[PROCESS_STDOUT].text);
    process_output_free(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why_a_command_cannot_start),
        cmocka_unit_test(cuts_at_its_limit_between_characters),
        cmocka_unit_test(keeps_the_order_of_both),
        cmocka_unit_test(counts_what_is_missing),
        cmocka_unit_test(splits_no_character_where_it_is_cut),
        cmocka_unit_test(keeps_long_texts_in_files),
        cmocka_unit_test(tells_what_is_printed_while_it_runs),
        cmocka_unit_test(tells_nothing_of_a_command_that_ended_before_there_was_news),
        cmocka_unit_test(tells_all_or_the_end),
        cmocka_unit_test(takes_no_stop_for_an_end),
        cmocka_unit_test(spares_what_earlier_commands_left),
        cmocka_unit_test(reads_what_comes_late),
    };
    return cmocka_run_group_tests_name("process", tests, set_up, tear_down);
}
