/* Measures the time from a write to its delivery to many subscribers, and the speed of a catch-up. One thread.

   push -s SOCKET [-P resp] [-n SUBSCRIBERS] [-k WRITES] [-g GAP-US] [-x STUCK -X SUBSCRIBE] -S SUBSCRIBE -W WRITE
   push -s SOCKET -e EVENTS -S SUBSCRIBE

   First form: STUCK connections send their SUBSCRIBE and never read. SUBSCRIBERS connections subscribe and wait for
   the response. Then each write waits for its response and for one delivery to each subscriber. Prints the medians and
   99th percentiles over WRITES of three times in microseconds: from the write to its response, and from the response
   to the middle and to the last subscriber (0 if the delivery came first). Second form: counts events until EVENTS
   have arrived; prints events per second. */
#include "wire.h"

static const char *path, *subscribe, *stuck_subscribe, *write_request;
static int subscribers = 1, writes = 100, stuck, gap_us = 500;
static uint64_t expected;
static int poll_fd;

static void options(int argc, char **argv) {
    for (int o; (o = getopt(argc, argv, "s:P:n:k:g:x:X:S:W:e:")) != -1;) switch (o) {
        case 's': path = optarg; break;
        case 'P': resp = !strcmp(optarg, "resp"); break;
        case 'n': subscribers = atoi(optarg); break;
        case 'k': writes = atoi(optarg); break;
        case 'g': gap_us = atoi(optarg); break;
        case 'x': stuck = atoi(optarg); break;
        case 'X': stuck_subscribe = optarg; break;
        case 'S': subscribe = optarg; break;
        case 'W': write_request = optarg; break;
        case 'e': expected = strtoull(optarg, NULL, 10); break;
        default: fprintf(stderr, "see the head of push.c\n"); exit(64);
    }
    if (!path || !subscribe || (!expected && !write_request)) {
        fprintf(stderr, "see the head of push.c\n");
        exit(64);
    }
}

static void open_one(Connection *c, int index) {
    c->index = index;
    c->fd = dial(path);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event);
}

/* Consume the complete messages of one connection; return their number. */
static int take_messages(Connection *c) {
    size_t from = 0, size;
    int messages = 0;
    if (!receive(c)) return 0;
    for (; (size = reply_size(c->in.data + from, c->in.used - from)); messages++) {
        if (is_error(c->in.data + from, size)) {
            fprintf(stderr, "%.*s", size > 400 ? 400 : (int)size, c->in.data + from);
            exit(1);
        }
        from += size;
    }
    drop_front(&c->in, from);
    return messages;
}

static void open_stuck(void) {
    for (int i = 0; i < stuck; i++) {
        Connection *c = calloc(1, sizeof *c);
        c->index = i;
        c->fd = dial(path);
        render(c, stuck_subscribe, 1);
        send_all(c);
    }
    if (stuck) usleep(1000000);
}

static void subscribe_all(Connection *all) {
    struct epoll_event events[256];
    for (int i = 1; i <= subscribers; i++) {
        render(&all[i], subscribe, 1);
        send_all(&all[i]);
    }
    for (int answered = 0; answered < subscribers;) {
        int ready = epoll_wait(poll_fd, events, 256, 10000);
        if (ready <= 0) die("the subscribers' answers");
        for (int i = 0; i < ready; i++) answered += take_messages(events[i].data.ptr);
    }
}

/* Make one write; record when its response and the deliveries were read. */
static void one_write(Connection *writer, uint64_t *answer, uint64_t *middle, uint64_t *last) {
    struct epoll_event events[1024];
    int delivered = 0;
    *answer = *middle = *last = 0;
    render(writer, write_request, 1);
    send_all(writer);
    while (!*answer || delivered < subscribers) {
        int ready = epoll_wait(poll_fd, events, 1024, 10000);
        if (ready <= 0) die("a delivery");
        for (int i = 0; i < ready; i++) {
            Connection *c = events[i].data.ptr;
            int messages = take_messages(c);
            uint64_t at = now_ns();
            if (!messages) continue;
            if (c == writer) { *answer = at; continue; }
            delivered += messages;
            if (!*middle && delivered * 2 >= subscribers) *middle = at;
            *last = at;
        }
    }
}

static uint64_t after(uint64_t at, uint64_t since) { return at > since ? at - since : 0; }

static int fan_out(void) {
    Connection *all = calloc((size_t)subscribers + 1, sizeof *all);
    Samples answered = {0}, middle = {0}, last = {0};
    open_stuck();
    for (int i = 0; i <= subscribers; i++) open_one(&all[i], i);
    subscribe_all(all);
    for (int i = -writes / 10 - 1; i < writes; i++) {
        uint64_t answer_at, middle_at, last_at, begin = now_ns();
        one_write(&all[0], &answer_at, &middle_at, &last_at);
        if (i >= 0) {
            sample(&answered, answer_at - begin);
            sample(&middle, after(middle_at, answer_at));
            sample(&last, after(last_at, answer_at));
        }
        usleep((useconds_t)gap_us);
    }
    printf("{\"answer\":%.2f,\"middle\":%.2f,\"last\":%.2f,\"last_p99\":%.2f}\n", quantile_us(&answered, .5),
           quantile_us(&middle, .5), quantile_us(&last, .5), quantile_us(&last, .99));
    return 0;
}

static int catch_up(void) {
    static const char mark[] = "{\"seq\":";
    const size_t length = sizeof mark - 1;
    Connection c = {0};
    struct epoll_event event;
    uint64_t events = 0, bytes = 0, begin;
    open_one(&c, 0);
    begin = now_ns();
    render(&c, subscribe, 1);
    send_all(&c);
    while (events < expected) {
        if (epoll_wait(poll_fd, &event, 1, 10000) <= 0) die("the rest of the log");
        bytes += receive(&c);
        char *p = c.in.data, *end = p + c.in.used;
        for (char *hit; (hit = memmem(p, (size_t)(end - p), mark, length)); p = hit + length) events++;
        /* Keep bytes that may be the beginning of a marker. */
        size_t left = (size_t)(end - p) < length - 1 ? (size_t)(end - p) : length - 1;
        drop_front(&c.in, c.in.used - left);
    }
    double elapsed = (double)(now_ns() - begin) / 1e9;
    printf("{\"rate\":%.1f,\"bytes\":%llu,\"seconds\":%.4f}\n", (double)events / elapsed, (unsigned long long)bytes, elapsed);
    return 0;
}

int main(int argc, char **argv) {
    options(argc, argv);
    poll_fd = epoll_create1(0);
    return expected ? catch_up() : fan_out();
}
