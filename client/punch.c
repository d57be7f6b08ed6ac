/* The command `punch`: hands its work to a worker of the warm process, which has the program loaded.
 *
 * If this is impossible for any reason, it becomes the plain program `punchlist` in its own directory, which does the
 * same, and which starts a warm process if there is none. Both sides check each other before they use what they got:
 * they must have the same user, namespaces and restrictions, so that no command leaves or enters a sandbox.
 *
 *   punch                                       worker (punchlist_apps.cli.warm)
 *   connect                                 ->  accept
 *                                           <-  a descriptor's number; the kernel adds the worker's process id
 *   proof, arguments, environment, descr.   ->  run the command
 *   signals, a byte each                    ->  raise them
 *                                           <-  exit code, or PLAIN for a command that needs its own process
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef PATIENCE_MS
#define PATIENCE_MS 300 /* longest wait for a worker, since a suspended process doesn't answer */
#endif
#define MAX_CONFINEMENT 8192
#define SWITCH "PUNCHLIST_WARM" /* 0: run the plain program. Set for it: where to start a warm process */

enum { HANDED = 4 };                     /* descriptors: standard input, output, error; the working directory */
enum { PLAIN = 256 };                    /* in place of an exit code */
enum { FAULT = 70, CONFIGURATION = 78 }; /* exit codes, as in punchlist_apps.cli.printing.exit_codes */
enum state { ABSENT, UNUSABLE, READY };  /* of the warm process */

extern char **environ;

static char program[PATH_MAX];         /* path of this program; empty if unknown */
static struct sockaddr_un address;     /* socket of the warm process */
static char own[MAX_CONFINEMENT];      /* confinement of this process */
static char proof[64];                 /* name of a file of the worker: a process that Landlock confines can't read it */
static int channel;                    /* connection to the worker */
static volatile sig_atomic_t ended_by; /* last signal passed on that ends a process by default */

/* Give descriptors that the caller has closed to /dev/null, before a socket gets their numbers. */
static void reserve_standard_numbers(void) {
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY}; /* writing to closed output must still fail */
    for (int number = 0; number <= STDERR_FILENO; number++)
        if (fcntl(number, F_GETFD) < 0) open("/dev/null", modes[number]);
}

static void run_plain(char **argv) {
    char *slash = strrchr(program, '/'), path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%.*spunchlist", slash ? (int)(slash + 1 - program) : 0, program);
    argv[0] = path;
    execvp(path, argv);
    fprintf(stderr, "error: %s can't be run: %s\n  install punchlist again\n", path, strerror(errno));
    exit(CONFIGURATION);
}

/* Write what a process may do and see. Return whether it could be read. */
static int describe_confinement(const char *process, char text[MAX_CONFINEMENT]) {
    static const char *links[] = {"ns/mnt", "ns/pid", "ns/user", "ns/net", "root", NULL};
    static const char *names[] = {"Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:",
                                  "Seccomp_filters:", NULL};
    char path[64], line[4096];
    size_t used = 0;
    for (const char **link = links; *link; link++) {
        snprintf(path, sizeof path, "/proc/%s/%s", process, *link);
        ssize_t length = readlink(path, text + used, 256);
        if (length < 0) return 0;
        used += (size_t)length;
    }
    snprintf(path, sizeof path, "/proc/%s/attr/current", process);
    FILE *label = fopen(path, "re"); /* of AppArmor or SELinux */
    if (label && fgets(line, 256, label)) used += (size_t)sprintf(text + used, "%s", line);
    if (label) fclose(label);
    snprintf(path, sizeof path, "/proc/%s/status", process);
    FILE *status = fopen(path, "re");
    if (!status) return 0;
    while (fgets(line, sizeof line, status) && used + strlen(line) < MAX_CONFINEMENT)
        for (const char **name = names; *name; name++)
            if (!strncmp(line, *name, strlen(*name))) used += (size_t)sprintf(text + used, "%s", line);
    text[used] = 0;
    return !fclose(status);
}

/* Write the directory of the daemon's usual socket, by the rules of punchlist_schemas.rendezvous. Return its length. */
static int find_directory(char *path, size_t size) {
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    struct stat status;
    if (runtime && *runtime == '/') return snprintf(path, size, "%s/punchlist", runtime);
    int length = snprintf(path, size, "/run/user/%u", getuid());
    if (!stat(path, &status) && status.st_uid == getuid())
        return length + snprintf(path + length, size - (size_t)length, "/punchlist");
    if (data && *data == '/') return snprintf(path, size, "%s/punchlist/run", data);
    return home && *home ? snprintf(path, size, "%s/.local/share/punchlist/run", home) : 0;
}

static uint64_t hash(uint64_t sum, const char *text) {
    for (; *text; text++) sum = (sum ^ (unsigned char)*text) * 1099511628211u; /* FNV-1a */
    return sum;
}

/* Hash what a worker can't adopt from its caller: limits on resources, and the priority. */
static uint64_t hash_limits(uint64_t sum) {
    char text[64];
    struct rlimit limit = {0};
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        getrlimit(resource, &limit);
        snprintf(text, sizeof text, "%ju %ju ", (uintmax_t)limit.rlim_cur, (uintmax_t)limit.rlim_max);
        sum = hash(sum, text);
    }
    snprintf(text, sizeof text, "%d", getpriority(PRIO_PROCESS, 0));
    return hash(sum, text);
}

static int is_read_at_start(const char *entry) {
    static const char *names[] = {"PYTHON", "LANG=", "LC_ALL=", "LC_CTYPE=", NULL};
    for (const char **name = names; *name; name++)
        if (!strncmp(entry, *name, strlen(*name))) return 1;
    return 0;
}

/* Find the warm process of this program's file, this confinement, these limits, and the settings that Python reads only
 * at its start. Others never meet it. */
static int find_address(void) {
    struct stat status;
    char identity[64];
    if (!describe_confinement("self", own) || stat(program, &status)) return 0;
    snprintf(identity, sizeof identity, "%jd %ju", (intmax_t)status.st_ctim.tv_sec, (uintmax_t)status.st_ino);
    uint64_t sum = hash_limits(hash(hash(hash(14695981039346656037u, program), identity), own)), settings = 0;
    for (char **entry = environ; *entry; entry++)
        if (is_read_at_start(*entry)) settings += hash(sum, *entry); /* in any order */
    char *path = address.sun_path;
    size_t size = sizeof address.sun_path;
    int length = find_directory(path, size);
    if (length <= 0 || (size_t)length >= size) return 0;
    address.sun_family = AF_UNIX;
    return (size_t)snprintf(path + length, size - (size_t)length, "/warm-%016jx.sock", (uintmax_t)(sum + settings)) <
           size - (size_t)length;
}

/* Return whether Python would look for modules in the working directory or below it. */
static int has_relative_module_path(void) {
    const char *path = getenv("PYTHONPATH");
    for (const char *part = path; part && *part; part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL)
        if (*part != '/') return 1;
    return 0;
}

/* Return whether a command may be handed over. */
static int may_hand_over(char **argv) {
    const char *setting = getenv(SWITCH), *preload = getenv("LD_PRELOAD");
    for (; *argv; argv++) /* names an open file of this process */
        if (strstr(*argv, "/dev/fd/") || strstr(*argv, "/proc/self/")) return 0;
    return !(setting && *setting) && !(preload && *preload) && !has_relative_module_path() && find_address();
}

/* Receive the worker's first message, which carries its process id, check the worker, and read its proof. */
static enum state receive_ready(void) {
    struct pollfd waiting = {channel, POLLIN, 0};
    if (poll(&waiting, 1, PATIENCE_MS) != 1) return UNUSABLE;
    unsigned char first; /* descriptor of the proof; 0 from a worker that refuses this process */
    char process[16], path[48], other[MAX_CONFINEMENT];
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(struct ucred))]; } control;
    struct iovec data = {&first, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(channel, &message, 0) != 1) return ABSENT; /* it has just ended */
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    struct ucred sender;
    if (!header || header->cmsg_type != SCM_CREDENTIALS) return UNUSABLE;
    memcpy(&sender, CMSG_DATA(header), sizeof sender);
    snprintf(process, sizeof process, "%d", sender.pid);
    if (!first || !describe_confinement(process, other) || strcmp(own, other)) return UNUSABLE;
    snprintf(path, sizeof path, "/proc/%s/fd/%d", process, first);
    return readlink(path, proof, sizeof proof - 1) > 0 ? READY : UNUSABLE;
}

/* Connect to a worker. If there is no warm process, let the plain program start one. */
static int connect_to_worker(void) {
    struct timeval patience = {PATIENCE_MS / 1000, PATIENCE_MS % 1000 * 1000}; /* for a full queue of connections */
    int on = 1;
    channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(channel, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    setsockopt(channel, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    enum state state = UNUSABLE;
    if (!connect(channel, (struct sockaddr *)&address, sizeof address)) state = receive_ready();
    else if (errno == ENOENT || errno == ECONNREFUSED) state = ABSENT;
    if (state == ABSENT) setenv(SWITCH, address.sun_path, 1);
    return state == READY;
}

static const int PASSED[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, 0};

/* Send the number of a signal. Killing the worker could hit its next command. */
static void send_signal(int number) {
    unsigned char byte = (unsigned char)number;
    send(channel, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void pass_on(int number) {
    if (number != SIGWINCH && ended_by) { /* the worker didn't end with the former one: it may be suspended */
        signal(number, SIG_DFL);
        raise(number);
    }
    if (number != SIGWINCH) ended_by = number;
    send_signal(number);
}

/* Suspend the command and this process, until the shell continues this process. */
static void suspend(int number) {
    struct sigaction usual = {.sa_handler = SIG_DFL}, handler;
    sigset_t stopping;
    send_signal(number);
    sigaction(number, &usual, &handler);
    sigemptyset(&stopping);
    sigaddset(&stopping, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &stopping, NULL);
    sigaction(number, &handler, NULL);
    send_signal(SIGCONT);
}

static void handle_signals(void) {
    for (const int *number = PASSED; *number; number++) {
        struct sigaction handler = {.sa_handler = *number == SIGTSTP ? suspend : pass_on, .sa_flags = SA_RESTART};
        struct sigaction former;
        sigaction(*number, NULL, &former);
        if (former.sa_handler != SIG_IGN) sigaction(*number, &handler, NULL); /* as nohup and shells set it */
    }
}

/* Send the command: a head of three numbers, then proof, arguments and environment, each ended by a zero. */
static int send_command(int count, char **argv) {
    mode_t mask = umask(0);
    umask(mask);
    uint32_t head[] = {0, (uint32_t)count, mask};
    size_t size = sizeof head + strlen(proof) + 1;
    for (char **text = argv; *text; text++) size += strlen(*text) + 1;
    for (char **text = environ; *text; text++) size += strlen(*text) + 1;
    char *data = malloc(size), *end = data + sizeof head;
    if (!data) return 0;
    end = stpcpy(end, proof) + 1;
    for (char **text = argv; *text; text++) end = stpcpy(end, *text) + 1;
    for (char **text = environ; *text; text++) end = stpcpy(end, *text) + 1;
    head[0] = (uint32_t)size;
    memcpy(data, head, sizeof head);
    int handed[HANDED] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof handed)]; } control = {.header = {
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof handed)}};
    memcpy(CMSG_DATA(&control.header), handed, sizeof handed);
    struct iovec part = {data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    while (part.iov_len) {
        ssize_t sent = sendmsg(channel, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return 0;
        if (sent < 0) continue;
        part.iov_base = (char *)part.iov_base + sent;
        part.iov_len -= (size_t)sent;
        message.msg_control = NULL; /* the descriptors went with the first part */
        message.msg_controllen = 0;
    }
    return 1;
}

int main(int count, char **argv) {
    reserve_standard_numbers();
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0 || !may_hand_over(argv)) run_plain(argv);
    if (!connect_to_worker()) run_plain(argv);
    sigset_t passed, former;
    sigemptyset(&passed);
    for (const int *number = PASSED; *number; number++) sigaddset(&passed, *number);
    sigprocmask(SIG_BLOCK, &passed, &former); /* their numbers must follow the command */
    int is_sent = send_command(count, argv);
    if (is_sent) handle_signals();
    sigprocmask(SIG_SETMASK, &former, NULL);
    if (!is_sent) run_plain(argv); /* no worker runs an incomplete command */
    uint32_t code;
    if (recv(channel, &code, sizeof code, MSG_WAITALL) == sizeof code) {
        if (code == PLAIN && !ended_by) run_plain(argv);
        if (code != PLAIN) return (int)code;
    }
    if (ended_by) { /* as it ended the worker */
        signal(ended_by, SIG_DFL);
        raise(ended_by);
    }
    fprintf(stderr, "error: the process that ran the command ended without an exit code\n  see: punch doctor\n");
    return FAULT;
}
