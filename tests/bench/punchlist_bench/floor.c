/* A minimal durable server: one thread, epoll, append, and one fdatasync for all lines that arrived together.

   floor SOCKET FILE

   Appends every line that arrives to FILE. When all available lines have been read, it flushes them together and
   answers each with its id and about as many bytes as a task. No validation, no state, no events. */
#include "wire.h"

static const char TASK[] =
    "\"result\":{\"task\":{\"id\":\"1234\",\"title\":\"write the parser for the frame header\",\"status\":\"in_progress\","
    "\"created_at\":1763600000000,\"updated_at\":1763600000123,\"status_changed_at\":1763600000123,\"version\":1234},"
    "\"unblocked\":[],\"remaining\":49,\"version\":1234,\"seq\":123456}}\n";

static void accept_all(int listener, int poll) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        Connection *c = calloc(1, sizeof *c);
        c->fd = fd;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
    }
}

/* Read one connection's lines into the log and append their responses to its output; return 0 at its end. */
static int take_lines(Connection *c, Buffer *log) {
    reserve(&c->in, 1 << 16);
    ssize_t n = recv(c->fd, c->in.data + c->in.used, c->in.room - c->in.used, 0);
    if (n <= 0) return n < 0 && errno == EAGAIN;
    c->in.used += (size_t)n;
    size_t from = 0;
    for (char *end; (end = memchr(c->in.data + from, '\n', c->in.used - from));) {
        char *line = c->in.data + from, head[64];
        size_t size = (size_t)(end - line) + 1;
        char *id = memmem(line, size, "\"id\":", 5);
        put(log, line, size);
        put(&c->out, head, (size_t)snprintf(head, sizeof head, "{\"jsonrpc\":\"2.0\",\"id\":%ld,", id ? atol(id + 5) : 0));
        put(&c->out, TASK, sizeof TASK - 1);
        from += size;
    }
    drop_front(&c->in, from);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) { fprintf(stderr, "floor SOCKET FILE\n"); return 64; }
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path, argv[1], sizeof at.sun_path - 1);
    int file = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0600);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), poll = epoll_create1(0);
    if (file < 0 || bind(listener, (void *)&at, sizeof at) || listen(listener, 4096)) die(argv[1]);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[512];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    Buffer log = {0};
    for (;;) {
        int ready = epoll_wait(poll, events, 512, -1);
        for (int i = 0; i < ready; i++) {
            Connection *c = events[i].data.ptr;
            if (!c) accept_all(listener, poll);
            else if (!take_lines(c, &log)) { close(c->fd); events[i].data.ptr = NULL; }
        }
        if (log.used && (write(file, log.data, log.used) < 0 || fdatasync(file))) die(argv[2]);
        log.used = 0;
        for (int i = 0; i < ready; i++) {
            Connection *c = events[i].data.ptr;
            if (c && c->out.used) send_all(c);
        }
    }
}
