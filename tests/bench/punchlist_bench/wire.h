/* Shared by the load generators: clock, connections, request templates, reply boundaries and latency samples. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char *data;
    size_t used, room;
} Buffer;

typedef struct {
    int fd, index, waiting;     /* waiting: outstanding responses */
    uint64_t sent, answered;    /* requests of this connection so far */
    uint64_t *started;          /* start times, a ring as long as the depth */
    Buffer in, out;
} Connection;

static int resp;                /* Redis's protocol instead of lines of JSON */
static uint64_t total_sent;     /* over all connections: {g} */
static uint64_t slots = 1;      /* {slot} is {g} modulo this */

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "failed");
    exit(2);
}

static inline void reserve(Buffer *b, size_t more) {
    if (b->used + more <= b->room) return;
    while (b->room < b->used + more) b->room = b->room ? b->room * 2 : 8192;
    if (!(b->data = realloc(b->data, b->room))) die("memory");
}

static inline void put(Buffer *b, const char *data, size_t size) {
    reserve(b, size);
    memcpy(b->data + b->used, data, size);
    b->used += size;
}

static inline void drop_front(Buffer *b, size_t size) {
    memmove(b->data, b->data + size, b->used - size);
    b->used -= size;
}

static inline int dial(const char *path) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path) { errno = ENAMETOOLONG; die(path); }
    strcpy(at.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int tries = 0; connect(fd, (void *)&at, sizeof at); tries++) {
        if (tries > 2000 || (errno != EAGAIN && errno != ECONNREFUSED && errno != ENOENT)) die(path);
        usleep(2000);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Write one segment of a template: {id} number of the request in its connection, from 1; {conn} number of the
   connection; {g} number of the request over all connections, from 0; {slot} that number modulo the slots;
   {task} 1 to 50 in turn, the next one after every `cycle` requests. */
static inline void render_part(Buffer *b, const char *p, const char *end, const Connection *c, int cycle) {
    while (p < end) {
        const char *brace = memchr(p, '{', (size_t)(end - p));
        if (!brace) brace = end;
        put(b, p, (size_t)(brace - p));
        if ((p = brace) == end) return;
        char number[24];
        uint64_t value;
        size_t name;
        if (!strncmp(p, "{id}", name = 4)) value = c->sent + 1;
        else if (!strncmp(p, "{conn}", name = 6)) value = (uint64_t)c->index;
        else if (!strncmp(p, "{g}", name = 3)) value = total_sent;
        else if (!strncmp(p, "{slot}", name = 6)) value = total_sent % slots;
        else if (!strncmp(p, "{task}", name = 6)) value = c->sent / (uint64_t)cycle % 50 + 1;
        else { put(b, p++, 1); continue; }
        put(b, number, (size_t)snprintf(number, sizeof number, "%llu", (unsigned long long)value));
        p += name;
    }
}

/* Append one request. For Redis the template is its arguments, separated by tabs. */
static inline void render(Connection *c, const char *template, int cycle) {
    const char *end = template + strlen(template);
    if (!resp) {
        render_part(&c->out, template, end, c, cycle);
        put(&c->out, "\n", 1);
    } else {
        static Buffer part;
        char head[32];
        int parts = 1;
        for (const char *p = template; *p; p++) parts += *p == '\t';
        put(&c->out, head, (size_t)snprintf(head, sizeof head, "*%d\r\n", parts));
        for (const char *p = template; p <= end;) {
            const char *stop = memchr(p, '\t', (size_t)(end - p));
            if (!stop) stop = end;
            part.used = 0;
            render_part(&part, p, stop, c, cycle);
            put(&c->out, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", part.used));
            put(&c->out, part.data, part.used);
            put(&c->out, "\r\n", 2);
            p = stop + 1;
        }
    }
    c->sent++;
    total_sent++;
}

/* Return the size of the complete response that begins at p, or 0 if it is incomplete. */
static inline size_t reply_size(const char *p, size_t size) {
    const char *line = memchr(p, '\n', size);
    if (!line) return 0;
    size_t head = (size_t)(line - p) + 1;
    if (!resp || (*p != '$' && *p != '*')) return head;
    long count = atol(p + 1);
    if (count < 0) return head;
    if (*p == '$') return size >= head + (size_t)count + 2 ? head + (size_t)count + 2 : 0;
    for (; count; count--) {
        size_t element = head < size ? reply_size(p + head, size - head) : 0;
        if (!element) return 0;
        head += element;
    }
    return head;
}

static inline int is_error(const char *p, size_t size) {
    if (resp) return *p == '-';
    size_t head = size < 120 ? size : 120;
    return memmem(p, head, "\"error\":{\"code\"", 15) != NULL;
}

static inline int is_reply(const char *p, size_t size) {
    if (resp) return 1;
    size_t head = size < 120 ? size : 120;
    return memmem(p, head, "\"id\":", 5) != NULL && memmem(p, head, "\"method\":", 9) == NULL;
}

/* Send all pending bytes, waiting until the socket is writable; nothing if the peer has left. */
static inline void send_all(Connection *c) {
    for (size_t done = 0; done < c->out.used;) {
        ssize_t n = send(c->fd, c->out.data + done, c->out.used - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) { usleep(50); continue; }
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) break;
        if (n < 0) die("send");
        done += (size_t)n;
    }
    c->out.used = 0;
}

/* Read the available bytes; return 0 if there are none. */
static inline size_t receive(Connection *c) {
    reserve(&c->in, 1 << 16);
    ssize_t n = recv(c->fd, c->in.data + c->in.used, c->in.room - c->in.used, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n < 0) die("recv");
    if (n == 0) { fprintf(stderr, "the server closed a connection\n"); exit(3); }
    c->in.used += (size_t)n;
    return (size_t)n;
}

typedef struct {
    uint32_t *ns;
    size_t used, room;
} Samples;

static inline void sample(Samples *s, uint64_t ns) {
    if (s->used == s->room) {
        s->room = s->room ? s->room * 2 : 1 << 16;
        if (!(s->ns = realloc(s->ns, s->room * sizeof *s->ns))) die("memory");
    }
    s->ns[s->used++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static inline int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The q-quantile in microseconds; sorts. */
static inline double quantile_us(Samples *s, double q) {
    if (!s->used) return 0;
    qsort(s->ns, s->used, sizeof *s->ns, by_value);
    size_t at = (size_t)((double)s->used * q);
    return s->ns[at < s->used ? at : s->used - 1] / 1e3;
}
