// SPDX-License-Identifier: Apache-2.0
// Waits of exchanges, see http.h. Curl works only in these waits.
#include "core/http/http_internal.h"

#include "core/base/interrupt.h"

#include <limits.h>

enum { TICK_INTERVAL = 100 };

// What curl does not tell apart: headers that the connection's end cut short count as all of them, and a header line
// over 100 KiB as a lack of memory.
static void settle_headers(struct http_exchange *finished)
{
    if (finished->headers_done)
        return;
    if (finished->outcome == CURLE_OK)
        finished->outcome = CURLE_RECV_ERROR;
    else if (finished->outcome == CURLE_OUT_OF_MEMORY && finished->sent)
        finished->stop = HTTP_STOP_HEADERS;
}

// Marks the exchanges of the client that curl has finished.
static void collect(struct http_client *client)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));) {
        struct http_exchange *finished = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &finished);
        finished->outcome = message->data.result;
        finished->done = true;
        settle_headers(finished);
    }
}

struct timeout {
    int64_t from, milliseconds; // start, on the monotonic clock, and length
    const char *code, *what;
};

// The timeout of the phase that the exchange is in.
static struct timeout timeout_of_phase(const struct http_exchange *exchange)
{
    if (exchange->headers_done)
        return (struct timeout){exchange->last, exchange->request.idle_timeout, "slow_answer", "sent nothing more"};
    if (exchange->sent == 0) {
        curl_off_t looked_up = 0; // microseconds
        curl_easy_getinfo(exchange->easy, CURLINFO_NAMELOOKUP_TIME_T, &looked_up);
        return (struct timeout){exchange->started, exchange->request.connect_timeout, "slow_connect",
                                looked_up > 0 ? "was not reached" : "was not resolved"};
    }
    // Progress in sending our body counts as well.
    return (struct timeout){exchange->last > exchange->sent ? exchange->last : exchange->sent,
                            exchange->request.first_timeout, "slow_first_byte", "sent no answer"};
}

// The timeout that ends first.
static struct timeout timeout_of(const struct http_exchange *exchange)
{
    struct timeout phase = timeout_of_phase(exchange);
    int64_t end = exchange->started + exchange->request.whole_timeout;
    if (exchange->request.whole_timeout == 0 || phase.from + phase.milliseconds <= end)
        return phase;
    return (struct timeout){exchange->started, exchange->request.whole_timeout, phase.code, phase.what};
}

// Calls the client's tick when it is due. Returns how long to wait at most, or -1: it ended the wait.
static int64_t tick(struct http_client *client, int64_t left, struct error *error)
{
    int64_t now = clock_now();
    if (!client->tick)
        return left;
    if (now >= client->next_tick) {
        if (!client->tick(client->data))
            return error_set(error, "interrupted", 0, "the wait for an answer was ended");
        now = clock_now();
        client->next_tick = now + TICK_INTERVAL;
    }
    return clock_sooner(client->next_tick - now, left);
}

int http_drive(struct http_exchange *exchange, struct error *error)
{
    CURLM *multi = exchange->client->multi;
    size_t bytes = exchange->body_bytes;
    bool headers = exchange->headers_done;
    int running;
    if (curl_multi_perform(multi, &running) != CURLM_OK)
        return error_set(error, "connection_failed", 0, "the request to %s failed inside curl", exchange->origin);
    collect(exchange->client);
    if (exchange->done || exchange->body_bytes > bytes || exchange->headers_done != headers)
        return 0;

    enum interrupt_reason reason = exchange->request.ignore_interrupt ? INTERRUPT_NONE : interrupt_reason();
    if (reason != INTERRUPT_NONE)
        return error_set(error, interrupt_code(reason), 0, "%s while waiting for %s", interrupt_message(reason),
                         exchange->origin);
    struct timeout timeout = timeout_of(exchange);
    int64_t left = timeout.from + timeout.milliseconds - clock_now();
    if (left <= 0)
        return error_set(error, timeout.code, 0, "%s %s within %.1f s",
                         exchange->proxy && !exchange->sent ? exchange->proxy : exchange->origin, timeout.what,
                         (double)timeout.milliseconds / 1000);
    if ((left = tick(exchange->client, left, error)) < 0)
        return -1;
    struct curl_waitfd cancel = {.fd = interrupt_fd(), .events = CURL_WAIT_POLLIN};
    if (exchange->request.ignore_interrupt)
        curl_multi_poll(multi, NULL, 0, (int)clock_sooner(left, INT_MAX), NULL);
    else
        curl_multi_poll(multi, &cancel, cancel.fd >= 0, interrupt_poll_timeout(left), NULL);
    return 0;
}
