/* A closed loop of requests over Unix sockets, from one thread, so that the server is the bottleneck.

   load -s SOCKET [-P resp] [-c CONNECTIONS] [-d DEPTH] [-t SECONDS] [-w WARM-UP] [-n COUNT] [-m SLOTS] REQUEST...

   Each connection keeps DEPTH requests in flight, taking the REQUEST templates (see wire.h) in turn. Ends after
   SECONDS of measurement, or after COUNT requests without a warm-up. Prints one JSON object; latencies are in
   microseconds. Responses on one connection must come in request order. Exit 1: a request was rejected. */
#include "wire.h"

static const char *path;
static char **templates;
static int template_count, connections = 1, depth = 1;
static double seconds = 1, warm_up = 0.2;
static uint64_t count, done, errors;
static int measuring;
static Samples samples;

static void options(int argc, char **argv) {
    for (int o; (o = getopt(argc, argv, "s:P:c:d:t:w:n:m:")) != -1;) switch (o) {
        case 's': path = optarg; break;
        case 'P': resp = !strcmp(optarg, "resp"); break;
        case 'c': connections = atoi(optarg); break;
        case 'd': depth = atoi(optarg); break;
        case 't': seconds = atof(optarg); break;
        case 'w': warm_up = atof(optarg); break;
        case 'n': count = strtoull(optarg, NULL, 10); break;
        case 'm': slots = strtoull(optarg, NULL, 10); break;
        default: fprintf(stderr, "see the head of load.c\n"); exit(64);
    }
    templates = argv + optind;
    template_count = argc - optind;
    if (!path || !template_count || connections < 1 || depth < 1 || !slots) {
        fprintf(stderr, "see the head of load.c\n");
        exit(64);
    }
}

static void issue(Connection *c) {
    if (count && total_sent >= count) return;
    c->started[c->sent % (uint64_t)depth] = now_ns();
    render(c, templates[c->sent % (uint64_t)template_count], template_count);
    c->waiting++;
}

static void take_replies(Connection *c, uint64_t at) {
    size_t from = 0, size;
    while ((size = reply_size(c->in.data + from, c->in.used - from))) {
        const char *reply = c->in.data + from;
        from += size;
        if (!is_reply(reply, size)) continue;
        if (is_error(reply, size) && !errors++) fprintf(stderr, "%.*s", size > 400 ? 400 : (int)size, reply);
        if (measuring) sample(&samples, at - c->started[c->answered % (uint64_t)depth]);
        c->answered++;
        c->waiting--;
        done++;
    }
    drop_front(&c->in, from);
}

static void serve(Connection *c) {
    if (!receive(c)) return;
    take_replies(c, now_ns());
    while (c->waiting < depth && !(count && total_sent >= count)) issue(c);
    if (c->out.used) send_all(c);
}

static Connection *open_all(int poll) {
    Connection *all = calloc((size_t)connections, sizeof *all);
    for (int i = 0; i < connections; i++) {
        all[i].index = i;
        all[i].fd = dial(path);
        all[i].started = calloc((size_t)depth, sizeof *all[i].started);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event);
    }
    return all;
}

int main(int argc, char **argv) {
    options(argc, argv);
    int poll = epoll_create1(0);
    Connection *all = open_all(poll);
    uint64_t begin = now_ns(), from = begin + (count ? 0 : (uint64_t)(warm_up * 1e9));
    uint64_t until = count ? UINT64_MAX : from + (uint64_t)(seconds * 1e9), at;
    measuring = count != 0;
    for (int i = 0; i < connections; i++) {
        for (int k = 0; k < depth; k++) issue(&all[i]);
        send_all(&all[i]);
    }
    struct epoll_event events[256];
    while ((at = now_ns()) < until && (!count || done < count)) {
        if (!measuring && at >= from) { measuring = 1; from = at; done = 0; }
        int ready = epoll_wait(poll, events, 256, 50);
        for (int i = 0; i < ready; i++) serve(events[i].data.ptr);
    }
    double elapsed = (double)(now_ns() - from) / 1e9;
    size_t measured = samples.used;
    printf("{\"rate\":%.1f,\"p50\":%.2f,\"p99\":%.2f,\"max\":%.1f,\"count\":%zu,\"errors\":%llu,\"seconds\":%.3f}\n",
           (double)measured / elapsed, quantile_us(&samples, .5), quantile_us(&samples, .99), quantile_us(&samples, 1),
           measured, (unsigned long long)errors, elapsed);
    return errors != 0;
}
