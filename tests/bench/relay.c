/*
 * relay: the least that a proxy can do. It passes bytes on, and neither reads nor counts them, so
 * it shows what any proxy can reach by copying or by splicing. The bench starts it.
 *
 *     gcc -O2 -Wall -Wextra relay.c -o relay
 *     relay LISTEN_PORT BACKEND_HOST:PORT copy|splice
 *
 * It listens on 127.0.0.1, and the host is an IPv4 address too. For each client the backend is
 * dialled. The end of one direction is passed on when all its bytes are; the other direction goes
 * on. A reset of one side resets the other.
 *
 *     copy      bytes are read into one buffer for all, and written at once. What the other side
 *               does not take is kept, and no more is read until it has gone.
 *     splice    bytes go through a pipe inside the kernel. A direction has one while bytes are in
 *               it, so that idle connections have none.
 *
 * One thread, epoll by levels. A side is watched for nothing that could not be acted on: a level
 * that stays would keep the thread awake.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE (512 << 10)  /* as the gateway reads */
#define PIPE_SIZE (1 << 20)    /* the most that Linux lets everybody have */
#define BACKLOG 4096           /* the load generator opens many at once */
#define EVENTS 64              /* taken from epoll in one call */

typedef struct pipe_pair {
    int out, in;               /* read from `out`, write into `in` */
    struct pipe_pair *next;    /* of those that are free */
} pipe_pair;

/* One socket of a connection, and what waits to be written to it. */
typedef struct side {
    int fd;
    int polled;                /* it is in epoll, for the events `watched` */
    uint32_t watched;
    int ended;                 /* it will send nothing more */
    int shut;                  /* it gets nothing more */
    uint8_t *kept;             /* copy: what it did not take, `kept_at` to `kept_to` */
    size_t kept_at, kept_to;
    pipe_pair *pipe;           /* splice: with `piped` bytes in it */
    size_t piped;
    struct side *peer;
    struct link *link;
} side;

typedef struct link {
    side client, backend;
    int dialling;              /* the backend has not answered yet */
    int closed;
    struct link *next;         /* of those to be freed */
} link_t;

static int poller, splices;
static struct sockaddr_in backend_address;
static uint8_t buffer[READ_SIZE];
static pipe_pair *free_pipes;
static link_t *closed_links;

static void die(const char *what)
{
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void fail(const char *what)
{
    fprintf(stderr, "relay: %s\n", what);
    exit(2);
}

/* -- pipes -------------------------------------------------------------------------------- */

static pipe_pair *make_pipe(void)
{
    static int told;
    int ends[2];
    pipe_pair *made = calloc(1, sizeof *made);
    if (!made || pipe2(ends, O_NONBLOCK | O_CLOEXEC))
        die("pipe2");
    made->out = ends[0];
    made->in = ends[1];
    /* Users without privileges get small ones beyond a limit. It works, and is no limit of others. */
    if (fcntl(made->in, F_SETPIPE_SZ, PIPE_SIZE) < 0 && !told++)
        fprintf(stderr, "relay: pipes are smaller than wanted: %s\n", strerror(errno));
    return made;
}

static pipe_pair *take_pipe(void)
{
    pipe_pair *taken = free_pipes;
    if (!taken)
        return make_pipe();
    free_pipes = taken->next;
    return taken;
}

/* Only empty ones are used again: what is left in one belongs to a closed connection. */
static void give_pipe_back(side *to)
{
    pipe_pair *given = to->pipe;
    to->pipe = NULL;
    if (!to->piped) {
        given->next = free_pipes;
        free_pipes = given;
        return;
    }
    close(given->out);
    close(given->in);
    free(given);
}

/* -- what is watched ---------------------------------------------------------------------- */

static int waits(const side *to) { return to->kept || to->piped; }

/* Return what can be done with a side now: read once all that came before is written, and write
   while something waits. */
static uint32_t possible(const side *one)
{
    if (one->link->dialling)
        return one == &one->link->backend ? EPOLLOUT : 0;
    return (one->ended || waits(one->peer) ? 0 : EPOLLIN) | (waits(one) ? EPOLLOUT : 0);
}

/* Watch a side for that. Errors come unasked, and so does the end of both directions, again and
   again: a side that got its end is out of epoll while nothing can be done with it. */
static void watch(side *one)
{
    struct epoll_event event = {.events = possible(one), .data.ptr = one};
    int operation = one->polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, polled = 1;
    if (one->shut && !event.events) {
        operation = EPOLL_CTL_DEL;
        polled = 0;
    }
    if (one->polled == polled && one->watched == event.events)
        return;
    if (epoll_ctl(poller, operation, one->fd, &event))
        die("epoll_ctl");
    one->polled = polled;
    one->watched = event.events;
}

/* -- the end of a connection -------------------------------------------------------------- */

static void close_side(side *one, int reset)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (reset)
        setsockopt(one->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(one->fd);
    free(one->kept);
    if (one->pipe)
        give_pipe_back(one);
}

/* Close both sides. The memory is freed after this round of events, some of which may be theirs. */
static void close_link(link_t *link, int reset)
{
    if (link->closed)
        return;
    link->closed = 1;
    close_side(&link->client, reset);
    close_side(&link->backend, reset);
    link->next = closed_links;
    closed_links = link;
}

static void free_closed(void)
{
    while (closed_links) {
        link_t *next = closed_links->next;
        free(closed_links);
        closed_links = next;
    }
}

/* A socket that could not do what was asked: it is tried again later, or the connection is over. */
static void look_at_error(side *one)
{
    if (errno != EAGAIN && errno != EINTR)
        close_link(one->link, 1);
}

/* -- passing on --------------------------------------------------------------------------- */

/* Pass the end of a direction on behind its last byte. */
static void pass_end_on(side *from)
{
    side *to = from->peer;
    if (!from->ended || waits(to) || to->shut)
        return;
    to->shut = 1;
    shutdown(to->fd, SHUT_WR);
    if (to->ended && from->shut)
        close_link(from->link, 0);
}

static void keep(side *to, size_t from, size_t size)
{
    to->kept = malloc(size - from);
    if (!to->kept)
        die("malloc");
    memcpy(to->kept, buffer + from, size - from);
    to->kept_at = 0;
    to->kept_to = size - from;
}

static void write_kept(side *to)
{
    ssize_t sent = send(to->fd, to->kept + to->kept_at, to->kept_to - to->kept_at, MSG_NOSIGNAL);
    if (sent < 0) {
        look_at_error(to);
        return;
    }
    to->kept_at += sent;
    if (to->kept_at == to->kept_to) {
        free(to->kept);
        to->kept = NULL;
    }
}

static void write_piped(side *to)
{
    ssize_t sent;
    while (to->piped) {
        sent = splice(to->pipe->out, NULL, to->fd, NULL, to->piped,
                      SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (sent <= 0) {
            look_at_error(to);
            return;
        }
        to->piped -= sent;
    }
    give_pipe_back(to);
}

static void write_waiting(side *to)
{
    if (splices)
        write_piped(to);
    else
        write_kept(to);
}

/* Return how many bytes have come; 0 at the end, -1 with `errno`. */
static ssize_t copy(side *from)
{
    side *to = from->peer;
    ssize_t got = recv(from->fd, buffer, sizeof buffer, 0), sent;
    if (got <= 0)
        return got;
    sent = send(to->fd, buffer, got, MSG_NOSIGNAL);
    if (sent < 0) {
        look_at_error(to);
        sent = 0;
    }
    if (!to->link->closed && sent < got)
        keep(to, sent, got);
    return got;
}

/* The same by way of a pipe. */
static ssize_t move(side *from)
{
    side *to = from->peer;
    ssize_t got;
    to->pipe = take_pipe();
    got = splice(from->fd, NULL, to->pipe->in, NULL, PIPE_SIZE, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (got > 0) {
        to->piped = got;
        write_piped(to);
    } else {
        int error = errno;
        give_pipe_back(to);
        errno = error;
    }
    return got;
}

static void read_side(side *from)
{
    ssize_t got = splices ? move(from) : copy(from);
    if (got < 0)
        look_at_error(from);
    else if (got == 0)
        from->ended = 1;
}

/* -- connections -------------------------------------------------------------------------- */

/* Begin to dial, without waiting for it. */
static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die("socket");
    if (!connect(fd, (struct sockaddr *)&backend_address, sizeof backend_address))
        return fd;
    if (errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

static void open_link(int client)
{
    int one = 1, backend = dial();
    link_t *link = calloc(1, sizeof *link);
    if (!link)
        die("calloc");
    if (backend < 0) {
        close(client);
        free(link);
        return;
    }
    /* Small frames must not wait for the acknowledgement of the ones before. */
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(backend, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    link->dialling = 1;
    link->client.peer = &link->backend;
    link->backend.peer = &link->client;
    link->client.link = link->backend.link = link;
    link->client.fd = client;
    link->backend.fd = backend;
    watch(&link->client);
    watch(&link->backend);
}

static void accept_all(int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        open_link(fd);
    /* Without descriptors nothing can be measured. */
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
        die("accept4");
}

/* Act on the events of one side. */
static void serve(side *one, uint32_t events)
{
    link_t *link = one->link;
    if (link->closed)
        return;
    if (events & EPOLLERR) {
        close_link(link, 1);
        return;
    }
    if (link->dialling && one == &link->backend && events & EPOLLOUT)
        link->dialling = 0;
    if (events & EPOLLOUT && waits(one))
        write_waiting(one);
    if (!link->closed && one->watched & EPOLLIN && events & (EPOLLIN | EPOLLHUP))
        read_side(one);
    if (!link->closed)
        pass_end_on(one);
    if (!link->closed)
        pass_end_on(one->peer);
    if (!link->closed) {
        watch(one);
        watch(one->peer);
    }
}

/* -- start -------------------------------------------------------------------------------- */

static struct sockaddr_in address(const char *host, const char *port)
{
    struct sockaddr_in read = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (!read.sin_port || inet_pton(AF_INET, host, &read.sin_addr) != 1)
        fail("an address is HOST:PORT");
    return read;
}

static int listen_at(const char *port)
{
    struct sockaddr_in at = address("127.0.0.1", port);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, sizeof at))
        die("bind");
    if (listen(fd, BACKLOG))
        die("listen");
    return fd;
}

static void read_arguments(char **argv)
{
    char *colon = strrchr(argv[2], ':');
    if (!colon)
        fail("an address is HOST:PORT");
    *colon = 0;
    backend_address = address(argv[2], colon + 1);
    splices = !strcmp(argv[3], "splice");
    if (!splices && strcmp(argv[3], "copy"))
        fail("the last argument is copy or splice");
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS], accepts = {.events = EPOLLIN, .data.ptr = NULL};
    int listener;
    if (argc != 4)
        fail("LISTEN_PORT BACKEND_HOST:PORT copy|splice");
    read_arguments(argv);
    signal(SIGPIPE, SIG_IGN);  /* splice has no MSG_NOSIGNAL */
    listener = listen_at(argv[1]);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &accepts))
        die("epoll");
    for (;;) {
        int count = epoll_wait(poller, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                serve(events[i].data.ptr, events[i].events);
            else
                accept_all(listener);
        }
        free_closed();
    }
}
