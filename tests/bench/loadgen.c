/*
 * loadgen: a cheap, bounded load generator for proxies of the Pulsar, Kafka and TubeMQ protocols.
 * Loopback only.
 *
 *     gcc -O2 -pthread loadgen.c -o loadgen              without TLS
 *     gcc -O2 -pthread -DTLS loadgen.c -o loadgen -lssl -lcrypto
 *     loadgen MODE --listen 127.0.0.1:7000 --target 127.0.0.1:7001 [options]
 *
 * One process, two threads. The *server* is the broker that the proxy dials (--listen). The
 * *client* dials the proxy (--target), or the server itself where there is no proxy between.
 * Both use epoll and drop what they receive in the kernel (MSG_TRUNC), so the two together take
 * less than one core at the speed of any proxy measured with it.
 *
 * MODE
 *     stream      one direction, as fast as possible
 *     pingpong    --window frames under way per connection, a receipt for each; round trips are
 *                 timed where the window is 1
 *     idle        opens --conns connections, one round trip on each, then holds them; prints the
 *                 memory and the CPU that the processes --pids used for it
 *     shake       TLS handshakes, --at-once under way, each closed once its ticket has come
 *
 * OPTIONS
 *     --hello NAME       each connection is opened as a Pulsar client does: CONNECT with NAME as
 *                        proxy_to_broker_url ("-": without), then --producers PRODUCERs (with
 *                        --cmd message SUBSCRIBEs), each answered by the server here. All frames
 *                        belong to one of those producers or consumers, in turn
 *     --cmd send|message|produce|fetch|tube-send|tube-get
 *                        the kind of the frames. Kafka's: requests of Produce (in a stream nobody
 *                        answers them), or answers to Fetch, each of which --frame is the size of.
 *                        With --hello the client asks for ApiVersions first. TubeMQ's, not for
 *                        stream: requests of sendMessageP2B, or replies to getMessagesC2B with
 *                        --batch messages each; --frame is the size of a message. With --hello the
 *                        client sends one small request first. The server is the master too
 *     --current 0|1      Kafka: Produce 12 and Fetch 17, as clients of today send, instead of 9 and 12;
 *                        the client asks for Metadata too, since Fetch 17 has a topic's id alone
 *     --dir up|down      for stream: from the client to the server, or back
 *     --frame N          bytes of a frame
 *     --mix A,B,C        instead: random sizes of these, each with 0 to 15 bytes more
 *     --batch N          messages in a frame
 *     --conns N          connections
 *     --producers N      per connection
 *     --topics N --partitions N
 *                        Kafka: in each frame, of which all partitions have as many bytes
 *     --window N         for pingpong
 *     --rate N           for stream, on one connection: frames per second (as fast as possible)
 *     --secs S --warm S  seconds to measure, and seconds before them
 *     --hold S           for idle: seconds that all connections stay open
 *     --at-once N        for idle: connections that are opened together
 *     --tls 0|1          the client speaks TLS 1.3, by P-256 and AES-128-GCM
 *     --resume 0|1       for shake: all but the first resume its session
 *     --groups LIST      with --tls: the groups that are offered (P-256), the first with a key
 *     --ccpu N --scpu N  the cores of the client and of the server
 *     --renumbers 0|1    the proxy numbers the requests of a connection one after another, from what
 *                        the server gets in the opening on, so its answers are numbered alike
 *     --pids A,B         processes whose CPU time and memory are printed
 *
 * It prints one JSON object, and ends by itself.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#else
typedef void SSL;
#endif

#define MAX_PIDS 64
#define MAX_SIZES 64
#define MAX_FRAME (4 << 20)
#define MAX_COMMAND 8192
#define MAX_ROUND_TRIPS 4000000
#define EVENTS 256
#define BLOCK (1 << 20)            /* bytes of frames, sent repeatedly */
#define CHUNK (256 << 10)          /* the most bytes per send */

typedef struct {
    int fd, id;
    size_t off;                    /* sender: offset in the block */
    uint64_t budget;               /* client: bytes that it may still send */
    uint64_t owed;                 /* server: bytes of receipts to send */
    uint64_t given;                /* server: bytes of receipts sent */
    uint32_t first_id;             /* server, Kafka: of the first request behind the opening */
    uint64_t part;                 /* bytes of an incomplete frame */
    uint64_t received;             /* receiver of a stream: bytes so far */
    uint64_t sent_at;              /* client, window 1: nanoseconds */
    int wants_out;
    SSL *ssl;                      /* client: NULL without TLS */
    uint8_t *opening;              /* server: an incomplete command */
    size_t opening_len;
    int opening_left;              /* server: commands to answer; -1: not begun */
} conn_t;

static struct {
    const char *mode, *dir, *cmd, *mix, *hello, *groups;
    struct sockaddr_in listen, target;
    int conns, window, batch, producers, topics, partitions, at_once, tls, resume, renumbers,
        current, ccpu, scpu, pids[MAX_PIDS], npids;
    long frame;
    double secs, warm, hold, rate;
} opt = {
    .dir = "up", .cmd = "send", .groups = "P-256",
    .conns = 1, .window = 1, .batch = 1, .producers = 1, .topics = 1, .partitions = 1, .at_once = 1,
    .ccpu = -1, .scpu = -1, .frame = 1024, .secs = 2, .warm = 0.3, .hold = 2,
};

static uint8_t *block, *receipts;
static size_t block_len, receipts_len, receipt_len;
static long block_frames;
static size_t *frame_ends;         /* offsets in the block */
static atomic_ullong server_bytes, client_bytes, stream_frames, opened;
static atomic_int stopping, server_ready;
static clockid_t server_clock;
static int listener;

/* -- helpers ------------------------------------------------------------------------------ */

static void fail(const char *what)
{
    fprintf(stderr, "loadgen: %s\n", what);
    exit(2);
}

static void die(const char *call)
{
    fprintf(stderr, "loadgen: %s: %s\n", call, strerror(errno));
    exit(2);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) ? 0 : t.tv_sec + t.tv_nsec * 1e-9;
}

static double now(void) { return seconds(CLOCK_MONOTONIC); }

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* CPU seconds of the watched processes. */
static double watched_cpu(void)
{
    double sum = 0;
    for (int i = 0; i < opt.npids; i++)
        sum += seconds((~(clockid_t)opt.pids[i] << 3) | 2);  /* as clock_getcpuclockid does */
    return sum;
}

/* Kilobytes of the watched processes. Rss, since Pss changes with every other process of the same
   binary. */
static long watched_kb(void)
{
    long sum = 0;
    for (int i = 0; i < opt.npids; i++) {
        char path[64], line[256];
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", opt.pids[i]);
        FILE *file = fopen(path, "r");
        if (!file)
            die(path);
        while (fgets(line, sizeof line, file))
            if (!strncmp(line, "Rss:", 4))
                sum += atol(line + 4);
        fclose(file);
    }
    return sum;
}

static void pin(int core)
{
    cpu_set_t set;
    if (core < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        die("sched_setaffinity");
}

static void watch(int epoll, int op, int fd, uint32_t events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    epoll_ctl(epoll, op, fd, &event);
}

static int mode_is(const char *mode) { return !strcmp(opt.mode, mode); }
static int messages(void) { return !strcmp(opt.cmd, "message"); }
static int fetches(void) { return !strcmp(opt.cmd, "fetch"); }
static int kafka(void) { return fetches() || !strcmp(opt.cmd, "produce"); }
static int tube_gets(void) { return !strcmp(opt.cmd, "tube-get"); }
static int tube(void) { return tube_gets() || !strcmp(opt.cmd, "tube-send"); }

/* -- bytes, under TLS or not -------------------------------------------------------------- */

#ifdef TLS
static SSL_CTX *tls;
static SSL_SESSION *session;       /* the latest ticket's */
static long tickets;

/* What recv and send would return and set where the two below return nothing. */
static ssize_t tls_failed(const SSL *ssl)
{
    int why = SSL_get_error(ssl, 0);
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
    ERR_clear_error();
    return -1;
}

static ssize_t give(const conn_t *c, const void *from, size_t len)
{
    size_t n;
    if (!c->ssl)
        return send(c->fd, from, len, MSG_NOSIGNAL);
    return SSL_write_ex(c->ssl, from, len, &n) ? (ssize_t)n : tls_failed(c->ssl);
}

static ssize_t take(const conn_t *c, void *to, size_t len)
{
    size_t n;
    if (!c->ssl)
        return recv(c->fd, to, len, 0);
    return SSL_read_ex(c->ssl, to, len, &n) ? (ssize_t)n : tls_failed(c->ssl);
}

/* OpenSSL gives a session up once a connection that resumed it has got another ticket. */
static int keep_session(SSL *ssl, SSL_SESSION *given)
{
    (void)ssl;
    tickets++;
    if (!opt.resume)
        return 0;
    SSL_SESSION_free(session);
    session = given;
    return 1;
}

/* One cipher and (unless told otherwise) one group, so that no proxy is asked for dearer ones than another. */
static void begin_tls(void)
{
    if (!(tls = SSL_CTX_new(TLS_client_method())))
        fail("no TLS");
    SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
    if (!SSL_CTX_set_ciphersuites(tls, "TLS_AES_128_GCM_SHA256") ||
        !SSL_CTX_set1_groups_list(tls, opt.groups))
        fail("TLS lacks AES-128-GCM or one of --groups");
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(tls, keep_session);
}

static SSL *secured(int fd)
{
    SSL *ssl = SSL_new(tls);
    if (!ssl || !SSL_set_fd(ssl, fd))
        fail("no TLS connection");
    if (session)
        SSL_set_session(ssl, session);
    SSL_set_connect_state(ssl);
    return ssl;
}

/* Blocking. */
static void shake(conn_t *c)
{
    c->ssl = secured(c->fd);
    if (SSL_do_handshake(c->ssl) != 1) {
        ERR_print_errors_fp(stderr);
        fail("the handshake failed");
    }
}
#else
static ssize_t give(const conn_t *c, const void *from, size_t len)
{
    return send(c->fd, from, len, MSG_NOSIGNAL);
}

static ssize_t take(const conn_t *c, void *to, size_t len) { return recv(c->fd, to, len, 0); }
static void begin_tls(void) { fail("built without TLS"); }
static void shake(conn_t *c) { (void)c; }
#endif

/* -- frames ------------------------------------------------------------------------------- */

static size_t varint(uint8_t *p, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        p[n++] = (uint8_t)value | 0x80;
    p[n++] = (uint8_t)value;
    return n;
}

static void be32(uint8_t *p, uint32_t value)
{
    p[0] = value >> 24, p[1] = value >> 16, p[2] = value >> 8, p[3] = value;
}

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/* A protobuf message under construction. */
typedef struct {
    uint8_t bytes[MAX_COMMAND];
    size_t len;
} pb_t;

static void put_number(pb_t *m, int field, uint64_t value)
{
    m->len += varint(m->bytes + m->len, (uint64_t)field << 3);
    m->len += varint(m->bytes + m->len, value);
}

static void put_bytes(pb_t *m, int field, const void *bytes, size_t len)
{
    m->len += varint(m->bytes + m->len, ((uint64_t)field << 3) | 2);
    m->len += varint(m->bytes + m->len, len);
    memcpy(m->bytes + m->len, bytes, len);
    m->len += len;
}

static void put_text(pb_t *m, int field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

/* Sizes and command: a whole frame without payload. */
static size_t put_command(uint8_t *out, int type, const pb_t *fields)
{
    pb_t command = {.len = 0};
    put_number(&command, 1, type);
    put_bytes(&command, type, fields->bytes, fields->len);  /* these commands have field == type */
    be32(out, command.len + 4);
    be32(out + 4, command.len);
    memcpy(out + 8, command.bytes, command.len);
    return command.len + 8;
}

enum { CONNECT = 2, CONNECTED = 3, SUBSCRIBE = 4, PRODUCER = 5, SEND = 6, SEND_RECEIPT = 7,
       MESSAGE = 9, SUCCESS = 13, PRODUCER_SUCCESS = 17, PING = 18, PONG = 19 };

static size_t put_send(uint8_t *out, uint64_t producer, uint64_t sequence)
{
    pb_t send = {.len = 0};
    put_number(&send, 1, producer);
    put_number(&send, 2, sequence);
    if (opt.batch > 1)
        put_number(&send, 3, opt.batch);
    return put_command(out, SEND, &send);
}

static size_t put_message(uint8_t *out, uint64_t consumer, uint64_t entry)
{
    pb_t message = {.len = 0}, id = {.len = 0};
    put_number(&id, 1, 123456);
    put_number(&id, 2, entry);
    put_number(&id, 3, 3);
    put_number(&message, 1, consumer);
    put_bytes(&message, 2, id.bytes, id.len);
    put_number(&message, 3, 0);
    return put_command(out, MESSAGE, &message);
}

/* A SEND or MESSAGE of exactly `len` bytes: command, checksum, metadata, payload. */
static void put_frame(uint8_t *out, size_t len, uint64_t id, uint64_t sequence)
{
    pb_t metadata = {.len = 0};
    put_text(&metadata, 1, "standalone-0");
    put_number(&metadata, 2, sequence);
    put_number(&metadata, 3, 1735689600000ull + sequence);
    if (opt.batch > 1)
        put_number(&metadata, 11, opt.batch);

    uint8_t head[MAX_COMMAND];
    size_t at = messages() ? put_message(head, id, sequence) : put_send(head, id, sequence);
    head[at] = 0x0e, head[at + 1] = 0x01;
    be32(head + at + 2, 0x12345678);   /* no proxy checks the checksum */
    be32(head + at + 6, metadata.len);
    at += 10;
    if (at + metadata.len > len)
        fail("--frame is too small");
    memcpy(out, head, at);
    memcpy(out + at, metadata.bytes, metadata.len);
    be32(out, len - 4);
    for (uint8_t *p = out + at + metadata.len; p < out + len; p++)
        *p = (uint8_t)(rand() >> 8);
}

static size_t put_receipt(uint8_t *out)
{
    pb_t receipt = {.len = 0}, id = {.len = 0};
    put_number(&id, 1, 123456);
    put_number(&id, 2, 1999999);
    put_number(&receipt, 1, 1);
    put_number(&receipt, 2, 2000000);
    put_bytes(&receipt, 3, id.bytes, id.len);
    return put_command(out, SEND_RECEIPT, &receipt);
}

/* -- frames of Kafka ---------------------------------------------------------------------- */

#define CORRELATION 7              /* of all requests: answers need no other one */
#define BATCH_HEAD 61
#define TOPIC_ID "loadgen's topic."   /* 16 bytes */

enum { PRODUCE = 0, FETCH = 1, METADATA = 3, API_VERSIONS = 18 };

typedef struct {
    uint8_t bytes[256];
    size_t len;
} bytes_t;

static void add(bytes_t *b, const void *bytes, size_t len)
{
    memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
}

static void add_number(bytes_t *b, int size, uint64_t value)
{
    for (int i = size - 1; i >= 0; i--)
        b->bytes[b->len++] = value >> (8 * i);
}

static void add_compact(bytes_t *b, uint64_t value) { b->len += varint(b->bytes + b->len, value); }

static void add_text(bytes_t *b, const char *text)
{
    add_compact(b, strlen(text) + 1);
    add(b, text, strlen(text));
}

static void add_topic(bytes_t *b, int number)
{
    char name[16] = "load";
    if (number)
        snprintf(name, sizeof name, "load-%d", number);
    if (opt.current && fetches())
        add(b, TOPIC_ID, 16);
    else
        add_text(b, name);
    add_compact(b, opt.partitions + 1);
}

static bytes_t request_head(int api, int version)
{
    bytes_t b = {.len = 4};
    add_number(&b, 2, api);
    add_number(&b, 2, version);
    add_number(&b, 4, CORRELATION);
    add_number(&b, 2, 7);
    add(&b, "loadgen", 7);
    return b;
}

/* One batch, and its length, in at most `share` bytes; returns how many. */
static size_t put_batch(uint8_t *out, size_t share)
{
    uint8_t length[10];
    size_t digits = 1, records;
    for (;; digits++) {
        if (share < digits + BATCH_HEAD)
            fail("--frame is too small");
        records = share - digits;
        if (varint(length, records + 1) == digits)
            break;
        if (varint(length, records + 1) < digits) {  /* no length of so many bytes */
            share--;
            digits = 0;
        }
    }
    memcpy(out, length, digits);
    uint8_t *batch = out + digits;
    memset(batch, 0, BATCH_HEAD);
    be32(batch + 8, records - 12);
    batch[16] = 2;                 /* the format */
    be32(batch + 57, opt.batch);
    for (uint8_t *p = batch + BATCH_HEAD; p < batch + records; p++)
        *p = (uint8_t)(rand() >> 8);
    return digits + records;
}

static size_t put(uint8_t *out, size_t at, const bytes_t *b)
{
    memcpy(out + at, b->bytes, b->len);
    return at + b->len;
}

typedef bytes_t (*partition_t)(int number);

/* A frame of `head`, all topics with all partitions, and `tail`. `records`: bytes of all batches
   and their lengths, which are spread evenly; 0: partitions have none. */
static size_t put_topics(uint8_t *out, const bytes_t *head, partition_t partition,
                         const bytes_t *tail, size_t records)
{
    size_t at = put(out, 0, head), parts = (size_t)opt.topics * opt.partitions;
    bytes_t b = {.len = 0};
    add_compact(&b, opt.topics + 1);
    at = put(out, at, &b);
    for (int topic = 0; topic < opt.topics; topic++) {
        b.len = 0;
        add_topic(&b, topic);
        at = put(out, at, &b);
        for (int number = 0; number < opt.partitions; number++, parts--) {
            b = partition(number);
            at = put(out, at, &b);
            if (records) {
                size_t share = put_batch(out + at, records / parts);
                at += share;
                records -= share;
            }
            out[at++] = 0;         /* no tagged fields */
        }
        out[at++] = 0;
    }
    at = put(out, at, tail);
    be32(out, at - 4);
    return at;
}

/* The same in exactly `len` bytes. */
static void put_exactly(uint8_t *out, size_t len, const bytes_t *head, partition_t partition)
{
    const bytes_t tail = {.bytes = {0}, .len = 1};
    size_t around = put_topics(out, head, partition, &tail, 0);
    if (len <= around || put_topics(out, head, partition, &tail, len - around) != len)
        fail("no frame of Kafka has the size of --frame");
}

static bytes_t sent(int number)
{
    bytes_t b = {.len = 0};
    add_number(&b, 4, number);
    return b;
}

static void put_produce(uint8_t *out, size_t len)
{
    bytes_t b = request_head(PRODUCE, opt.current ? 12 : 9);
    add_number(&b, 1, 0);          /* no tagged fields */
    add_compact(&b, 0);            /* no transaction */
    add_number(&b, 2, mode_is("stream") ? 0 : 1);
    add_number(&b, 4, 30000);
    put_exactly(out, len, &b, sent);
}

static bytes_t taken(int number)
{
    bytes_t b = {.len = 0};
    add_number(&b, 4, number);
    add_number(&b, 2, 0);
    add_number(&b, 8, 2000000);
    add_number(&b, 8, -1);
    add_number(&b, 8, 0);
    add_compact(&b, 1);
    add_compact(&b, 0);            /* no text */
    return b;
}

static size_t put_produced(uint8_t *out)
{
    const bytes_t tail = {.bytes = {0}, .len = 5};  /* no time, no tagged fields */
    bytes_t b = {.len = 4};
    add_number(&b, 4, CORRELATION);
    add_number(&b, 1, 0);
    return put_topics(out, &b, taken, &tail, 0);
}

static bytes_t wanted(int number)
{
    bytes_t b = {.len = 0};
    add_number(&b, 4, number);
    add_number(&b, 4, -1);
    add_number(&b, 8, 1000000);
    add_number(&b, 4, -1);
    add_number(&b, 8, -1);
    add_number(&b, 4, 1 << 20);
    return b;
}

static size_t put_fetch(uint8_t *out)
{
    bytes_t b = request_head(FETCH, opt.current ? 17 : 12);
    bytes_t tail = {.bytes = {1, 1, 0}, .len = 3};  /* none forgotten, no rack, no tagged fields */
    add_number(&b, 1, 0);
    if (!opt.current)
        add_number(&b, 4, -1);     /* no replica */
    add_number(&b, 4, 500);
    add_number(&b, 4, 1);
    add_number(&b, 4, 50 << 20);
    add_number(&b, 1, 0);
    add_number(&b, 4, 0);          /* no session */
    add_number(&b, 4, -1);
    return put_topics(out, &b, wanted, &tail, 0);
}

static bytes_t brought(int number)
{
    bytes_t b = {.len = 0};
    add_number(&b, 4, number);
    add_number(&b, 2, 0);
    add_number(&b, 8, 2000000);
    add_number(&b, 8, 2000000);
    add_number(&b, 8, 0);
    add_compact(&b, 1);
    add_number(&b, 4, -1);
    return b;
}

static void put_fetched(uint8_t *out, size_t len)
{
    bytes_t b = {.len = 4};
    add_number(&b, 4, CORRELATION);
    add_number(&b, 1, 0);
    add_number(&b, 8, 0);          /* no time, no error, half of a session */
    add_number(&b, 2, 0);
    put_exactly(out, len, &b, brought);
}

static size_t put_versions_request(uint8_t *out)
{
    bytes_t b = request_head(API_VERSIONS, 0);
    memcpy(out, b.bytes, b.len);
    be32(out, b.len - 4);
    return b.len;
}

static size_t put_versions(uint8_t *out, uint32_t correlation)
{
    const int known[][3] = {
        {PRODUCE, 3, opt.current ? 12 : 9}, {FETCH, 4, opt.current ? 17 : 12},
        {METADATA, 0, 12}, {API_VERSIONS, 0, 3},
    };
    bytes_t b = {.len = 4};
    add_number(&b, 4, correlation);
    add_number(&b, 2, 0);
    add_number(&b, 4, 4);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            add_number(&b, 2, known[i][j]);
    memcpy(out, b.bytes, b.len);
    be32(out, b.len - 4);
    return b.len;
}

static size_t put_metadata_request(uint8_t *out)
{
    bytes_t b = request_head(METADATA, 12);
    add_number(&b, 1, 0);
    add_compact(&b, 2);            /* one topic, by its name */
    add_number(&b, 8, 0);
    add_number(&b, 8, 0);
    add_text(&b, "load");
    add_number(&b, 4, 0);          /* its tagged fields, two flags, tagged fields */
    memcpy(out, b.bytes, b.len);
    be32(out, b.len - 4);
    return b.len;
}

/* One broker, 0, which leads the one partition of the one topic. */
static size_t put_metadata(uint8_t *out, uint32_t correlation)
{
    char host[INET_ADDRSTRLEN];
    bytes_t b = {.len = 4};
    add_number(&b, 4, correlation);
    add_number(&b, 1, 0);
    add_number(&b, 4, 0);
    add_compact(&b, 2);
    add_number(&b, 4, 0);
    add_text(&b, inet_ntop(AF_INET, &opt.listen.sin_addr, host, sizeof host));
    add_number(&b, 4, ntohs(opt.listen.sin_port));
    add_number(&b, 2, 0);          /* no rack, no tagged fields */
    add_text(&b, "loadgen");
    add_number(&b, 4, 0);          /* the controller */
    add_compact(&b, 2);
    add_number(&b, 2, 0);
    add_text(&b, "load");
    add(&b, TOPIC_ID, 16);
    add_number(&b, 1, 0);
    add_compact(&b, 2);
    add_number(&b, 2, 0);
    add_number(&b, 8, 0);          /* partition, leader */
    add_number(&b, 4, 0);
    for (int i = 0; i < 2; i++) {  /* replicas, and those in sync */
        add_compact(&b, 2);
        add_number(&b, 4, 0);
    }
    add_number(&b, 2, 1 << 8);     /* none offline, no tagged fields */
    add_number(&b, 4, 1u << 31);   /* rights unknown */
    add_number(&b, 2, 0);
    memcpy(out, b.bytes, b.len);
    be32(out, b.len - 4);
    return b.len;
}

/* The server's answer to a request of an opening. */
static size_t put_kafka_answer(uint8_t *out, const uint8_t *request)
{
    uint32_t correlation = read_be32(request + 4);
    if (request[1] == METADATA)
        return put_metadata(out, correlation);
    return put_versions(out, correlation);
}

/* -- frames of TubeMQ --------------------------------------------------------------------- */

/* Proxies may write frames anew. So all have the one form that needs the fewest bytes: fields in
   order, full blocks but for the last. Otherwise nobody knew how many frames have come. */

#define TUBE_TOKEN 0xFF7FF4FE
#define TUBE_HEAD 16               /* bytes before the first block: token, serial, blocks, its length */
#define TUBE_BLOCK 8192            /* as all clients and servers write them */
#define TUBE_VERSION 3             /* of the protocol: Java's */
#define TUBE_FIRST 100             /* bytes of the message that a producer sends first */
#define TUBE_ROOM (MAX_FRAME + MAX_COMMAND)   /* bytes of a message of the protocol */
#define TUBE_PRODUCER "127.0.0.1-1-1000000000-1-2.4.0"
#define TUBE_CONSUMER "load_127.0.0.1-1-1000000000-1-Pull-2.4.0"
#define STAMP 1735689600000ull

enum { REGISTER_PRODUCER = 1, END_PRODUCER = 3, SEND_MESSAGE = 13, REGISTER_PARTITION = 15,
       GET_MESSAGES = 17 };

static uint8_t tube_data[TUBE_ROOM];   /* only while the blocks are built */

/* A frame: its head, and the envelope in blocks, which `data` ends. */
static size_t put_tube(uint8_t *out, uint32_t serial, int reply, int method, const uint8_t *data,
                       size_t len)
{
    pb_t head = {.len = 0}, header = {.len = 0}, body = {.len = 0};
    put_number(&body, 1, method);
    if (reply) {
        put_number(&header, 1, 0);     /* success */
        put_number(&header, 3, TUBE_VERSION);
    } else {
        put_number(&header, 1, method < SEND_MESSAGE ? 1 : method == SEND_MESSAGE ? 3 : 2);
        put_number(&header, 2, TUBE_VERSION);
        put_number(&body, 2, 10000);   /* the client's patience in milliseconds */
    }
    body.len += varint(body.bytes + body.len, (reply ? 2 : 3) << 3 | 2);
    body.len += varint(body.bytes + body.len, len);

    head.len = varint(head.bytes, 2);
    put_number(&head, 1, reply);
    head.len += varint(head.bytes + head.len, header.len);
    memcpy(head.bytes + head.len, header.bytes, header.len);
    head.len += header.len;
    head.len += varint(head.bytes + head.len, body.len + len);
    memcpy(head.bytes + head.len, body.bytes, body.len);
    head.len += body.len;

    size_t whole = head.len + len, at = 12;
    be32(out, TUBE_TOKEN);
    be32(out + 4, serial);
    be32(out + 8, (whole + TUBE_BLOCK - 1) / TUBE_BLOCK);
    for (size_t done = 0; done < whole;) {
        size_t size = whole - done < TUBE_BLOCK ? whole - done : TUBE_BLOCK;
        size_t of_head = done ? 0 : head.len;   /* which fits the first block */
        be32(out + at, size);
        memcpy(out + at + 4, head.bytes, of_head);
        memcpy(out + at + 4 + of_head, data + done + of_head - head.len, size - of_head);
        at += 4 + size;
        done += size;
    }
    return at;
}

static size_t put_small_tube(uint8_t *out, uint32_t serial, int reply, int method, const pb_t *m)
{
    return put_tube(out, serial, reply, method, m->bytes, m->len);
}

/* Random bytes as a field of `to`, where `at` bytes stand; returns how many stand there then. */
static size_t put_payload(uint8_t *to, size_t at, int field, size_t len)
{
    at += varint(to + at, field << 3 | 2);
    at += varint(to + at, len);
    for (size_t i = 0; i < len; i++)
        to[at++] = (uint8_t)(rand() >> 8);
    return at;
}

static size_t append(uint8_t *to, size_t at, const pb_t *m)
{
    memcpy(to + at, m->bytes, m->len);
    return at + m->len;
}

/* What Java's producers send, without the type and the time that applications may give. */
static size_t put_tube_send(uint8_t *out, uint32_t serial, size_t len)
{
    pb_t m = {.len = 0}, token = {.len = 0};
    put_text(&m, 1, TUBE_PRODUCER);
    put_text(&m, 2, "load");
    put_number(&m, 3, 0);
    size_t at = put_payload(tube_data, append(tube_data, 0, &m), 4, len);
    m.len = 0;
    put_number(&m, 5, 0);
    put_number(&m, 6, -1);         /* no checksum: senders have none */
    put_number(&m, 7, 0x7f000001);
    put_number(&token, 1, STAMP);
    put_bytes(&m, 10, token.bytes, token.len);
    return put_tube(out, serial, 0, SEND_MESSAGE, tube_data, append(tube_data, at, &m));
}

static void put_success(pb_t *m, const char *text)
{
    put_number(m, 1, 1);
    put_number(m, 2, 200);
    put_text(m, 3, text);
}

static size_t put_tube_sent(uint8_t *out, uint32_t serial)
{
    pb_t m = {.len = 0};
    put_success(&m, "4600743801051414528");   /* the message's id */
    put_number(&m, 4, 0);
    put_number(&m, 5, 4600743801051414528);
    put_number(&m, 6, STAMP);
    put_number(&m, 7, 2000000);
    return put_small_tube(out, serial, 1, SEND_MESSAGE, &m);
}

static size_t put_tube_get(uint8_t *out, uint32_t serial)
{
    pb_t m = {.len = 0};
    put_text(&m, 1, TUBE_CONSUMER);
    put_number(&m, 2, 0);
    put_text(&m, 3, "load");
    put_text(&m, 4, "load");
    for (int flag = 5; flag <= 7; flag++)
        put_number(&m, flag, 0);
    return put_small_tube(out, serial, 0, GET_MESSAGES, &m);
}

/* --batch messages of --frame bytes each. */
static size_t put_tube_got(uint8_t *out, uint32_t serial, size_t each)
{
    pb_t m = {.len = 0};
    put_success(&m, "OK!");
    size_t at = append(tube_data, 0, &m);
    for (int i = 0; i < opt.batch; i++) {
        uint8_t length[10];
        pb_t head = {.len = 0}, tail = {.len = 0};
        put_number(&head, 1, 4600743801051414528 + i);
        put_number(&head, 2, 0x12345678);   /* no proxy checks it */
        put_number(&tail, 4, 0);
        size_t whole = head.len + 1 + varint(length, each) + each + tail.len;
        if (at + whole + MAX_COMMAND > TUBE_ROOM)
            fail("--batch is too large");
        at += varint(tube_data + at, 4 << 3 | 2);
        at += varint(tube_data + at, whole);
        at = put_payload(tube_data, append(tube_data, at, &head), 3, each);
        at = append(tube_data, at, &tail);
    }
    m.len = 0;
    put_number(&m, 5, 2000000);
    put_number(&m, 7, 0);
    put_number(&m, 8, 1000000);
    put_number(&m, 9, 0);
    put_number(&m, 10, 3000000);
    return put_tube(out, serial, 1, GET_MESSAGES, tube_data, append(tube_data, at, &m));
}

/* Consumers register first. Producers do not, at brokers: theirs is a message. */
static size_t put_tube_opening(uint8_t *out)
{
    if (!tube_gets())
        return put_tube_send(out, 0, TUBE_FIRST);
    pb_t m = {.len = 0};
    put_number(&m, 1, 31);         /* register */
    put_text(&m, 2, TUBE_CONSUMER);
    put_text(&m, 3, "load");
    put_text(&m, 4, "load");
    put_number(&m, 5, 0);
    put_number(&m, 6, 0);
    return put_small_tube(out, 0, 0, REGISTER_PARTITION, &m);
}

/* Requests of one connection have --window serial numbers in turn, because two that wait may not
   have the same; replies have those of their requests. So both blocks end with the last number. */
static void build_tube_blocks(void)
{
    long size = opt.frame;
    uint32_t count = 0;
    for (; block_len < BLOCK || count % opt.window; count++) {
        opt.frame = tube_gets() ? put_tube_get(block + block_len, count % opt.window)
                                : put_tube_send(block + block_len, count % opt.window, size);
        block_len += opt.frame;
    }
    block_frames = count;
    for (count = 0; receipts_len < BLOCK || count % opt.window; count++) {
        receipt_len = tube_gets() ? put_tube_got(receipts + receipts_len, count % opt.window, size)
                                  : put_tube_sent(receipts + receipts_len, count % opt.window);
        receipts_len += receipt_len;
    }
}

static void note_frame_ends(void)
{
    size_t at = 0;
    if (!(frame_ends = malloc(block_frames * sizeof *frame_ends)))
        die("malloc");
    for (long i = 0; i < block_frames; i++)
        frame_ends[i] = at += tube() ? (size_t)opt.frame : 4 + read_be32(block + at);
}

/* The sent bytes: a block of whole frames, and one of whole receipts, both sent repeatedly. */
static void build_blocks(void)
{
    long sizes[MAX_SIZES] = {opt.frame};
    int count = 1;
    if (opt.mix) {
        char *list = strdup(opt.mix);
        count = 0;
        for (char *t = strtok(list, ","); t && count < MAX_SIZES; t = strtok(NULL, ","))
            sizes[count++] = atol(t);
        free(list);
    }
    for (int i = 0; i < count; i++)
        if (sizes[i] < 32 || sizes[i] > MAX_FRAME)
            fail("sizes of frames are out of bounds");
    size_t more = (tube() ? opt.window : 1) * (size_t)(MAX_FRAME + 2 * MAX_COMMAND);
    block = malloc(BLOCK + more);
    receipts = malloc(BLOCK + more);
    if (!block || !receipts)
        die("malloc");
    srand(7);
    if (tube()) {
        build_tube_blocks();
        return;
    }
    if (fetches()) {
        receipt_len = opt.frame;
        opt.frame = put_fetch(block);
        for (block_len = 0; block_len < BLOCK; block_frames++)
            block_len += put_fetch(block + block_len);
        for (receipts_len = 0; receipts_len < BLOCK; receipts_len += receipt_len)
            put_fetched(receipts + receipts_len, receipt_len);
        return;
    }
    /* From 70000 on: sequence ids of three bytes, as most have. */
    for (uint64_t sequence = 70000; block_len < BLOCK; sequence++, block_frames++) {
        size_t size = opt.mix ? sizes[rand() % count] + rand() % 16 : sizes[0];
        if (kafka())
            put_produce(block + block_len, size);
        else
            put_frame(block + block_len, size, 1 + block_frames % opt.producers, sequence);
        block_len += size;
    }
    receipt_len = kafka() ? put_produced(receipts) : put_receipt(receipts);
    for (receipts_len = receipt_len; receipts_len < BLOCK; receipts_len += receipt_len)
        memcpy(receipts + receipts_len, receipts, receipt_len);
}

/* -- the opening of a connection ---------------------------------------------------------- */

static size_t put_connect(uint8_t *out)
{
    pb_t connect = {.len = 0}, flags = {.len = 0};
    put_text(&connect, 1, "loadgen");
    put_number(&connect, 4, 20);
    if (strcmp(opt.hello, "-"))
        put_text(&connect, 6, opt.hello);
    put_number(&flags, 1, 1);
    put_number(&flags, 2, 1);
    put_bytes(&connect, 10, flags.bytes, flags.len);
    return put_command(out, CONNECT, &connect);
}

static size_t put_open(uint8_t *out, int id)
{
    pb_t open = {.len = 0};
    put_text(&open, 1, "persistent://public/default/load");
    if (messages()) {
        put_text(&open, 2, "load");
        put_number(&open, 3, 1);
        put_number(&open, 4, id);
        put_number(&open, 5, id);
        return put_command(out, SUBSCRIBE, &open);
    }
    put_number(&open, 2, id);
    put_number(&open, 3, id);
    return put_command(out, PRODUCER, &open);
}

static uint64_t read_varint(const uint8_t **p, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t byte = *(*p)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            break;
    }
    return value;
}

/* A number within the one sub-message of a command; 0 if it has none. */
static uint64_t number_in(const uint8_t *p, const uint8_t *end, uint64_t wanted)
{
    while (p < end) {
        uint64_t tag = read_varint(&p, end), value = read_varint(&p, end);
        if ((tag & 7) == 0 && tag >> 3 == wanted)
            return value;
        if ((tag & 7) == 2)
            p += value;
    }
    return 0;
}

static uint64_t request_field(const uint8_t *command, size_t len, uint64_t wanted)
{
    const uint8_t *p = command, *end = command + len;
    while (p < end) {
        uint64_t tag = read_varint(&p, end), value = read_varint(&p, end);
        if ((tag & 7) == 2)
            return number_in(p, p + value < end ? p + value : end, wanted);
    }
    return 0;
}

/* The server's answer to one command of an opening. */
static size_t put_answer(uint8_t *out, const uint8_t *command, size_t len)
{
    pb_t answer = {.len = 0};
    switch (len > 1 ? command[1] : 0) {
    case CONNECT:
        put_text(&answer, 1, "loadgen");
        put_number(&answer, 2, 20);
        put_number(&answer, 3, 5 << 20);
        return put_command(out, CONNECTED, &answer);
    case PRODUCER:
        put_number(&answer, 1, request_field(command, len, 3));
        put_text(&answer, 2, "standalone-0");
        return put_command(out, PRODUCER_SUCCESS, &answer);
    case SUBSCRIBE:
        put_number(&answer, 1, request_field(command, len, 5));
        return put_command(out, SUCCESS, &answer);
    case PING:
        return put_command(out, PONG, &answer);
    default:
        return 0;
    }
}

/* The end of the message `p` points to, which stands there behind its length, and where it begins;
   NULL if it does not end before `end`. */
static const uint8_t *delimited(const uint8_t **p, const uint8_t *end)
{
    uint64_t len = read_varint(p, end);
    return len <= (uint64_t)(end - *p) ? *p + len : NULL;
}

/* The server's answer to a request of TubeMQ that is no load: an opening's, or a gateway's, which
   asks the master where brokers are. 0: it has none. */
static size_t put_tube_answer(uint8_t *out, const uint8_t *frame, size_t len, int *method)
{
    const uint8_t *p = frame + TUBE_HEAD, *end = frame + len, *to;
    for (int i = 0; i < 2; i++)    /* the two headers */
        if (!(p = delimited(&p, end)))
            return 0;
    if (!(to = delimited(&p, end)))
        return 0;
    uint32_t serial = read_be32(frame + 4);
    char host[INET_ADDRSTRLEN], broker[64];
    pb_t m = {.len = 0};
    *method = number_in(p, to, 1);
    switch (*method) {
    case REGISTER_PRODUCER:
        inet_ntop(AF_INET, &opt.listen.sin_addr, host, sizeof host);
        snprintf(broker, sizeof broker, "1:%s:%d", host, ntohs(opt.listen.sin_port));
        put_success(&m, "OK!");
        put_number(&m, 4, STAMP);
        put_text(&m, 5, broker);
        break;
    case END_PRODUCER:
        put_success(&m, "OK!");
        break;
    case REGISTER_PARTITION:
        put_success(&m, "OK!");
        put_number(&m, 4, 1000000);
        put_number(&m, 5, 3000000);
        break;
    case SEND_MESSAGE:
        return put_tube_sent(out, serial);
    default:
        return 0;
    }
    return put_small_tube(out, serial, 1, *method, &m);
}

static void read_all(const conn_t *c, uint8_t *to, size_t len)
{
    while (len) {
        ssize_t n = take(c, to, len);
        if (n <= 0)
            fail("closed during the opening");
        to += n;
        len -= n;
    }
}

/* Commands of the client's opening. */
static int opening_steps(void)
{
    return tube() ? 1 : kafka() ? 1 + opt.current : 1 + opt.producers;
}

/* One step of the opening: a command out (step 0: CONNECT), or its answer in. Blocking. */
static void opening_write(const conn_t *c, int step)
{
    uint8_t frame[MAX_COMMAND];
    size_t len = tube()    ? put_tube_opening(frame)
                 : kafka() ? (step ? put_metadata_request : put_versions_request)(frame)
                 : step    ? put_open(frame, step)
                           : put_connect(frame);
    if (give(c, frame, len) != (ssize_t)len)
        die("opening");
}

static void opening_read(const conn_t *c, int step)
{
    uint8_t frame[MAX_COMMAND];
    int wanted = !step ? CONNECTED : messages() ? SUCCESS : PRODUCER_SUCCESS;
    size_t head = tube() ? TUBE_HEAD : 4;
    read_all(c, frame, head);
    uint32_t len = read_be32(frame + head - 4);
    if (len > MAX_COMMAND)
        fail("no frame in the opening");
    read_all(c, frame, len);
    if (!kafka() && !tube() && frame[5] != wanted) {
        fprintf(stderr, "loadgen: the opening was answered by command %d\n", frame[5]);
        exit(2);
    }
}

/* The size of the frame that the server has begun to read, as far as it is known. */
static size_t opening_size(const conn_t *c)
{
    size_t head = tube() ? TUBE_HEAD : 4;   /* its last four bytes are the length of what follows */
    return c->opening_len < head ? head : head + read_be32(c->opening + head - 4);
}

/* Puts the answer to a whole command of an opening, and notes which of the opening's it was. */
static size_t opening_answer(uint8_t *answer, conn_t *c)
{
    if (tube()) {
        int method = 0;
        size_t len = put_tube_answer(answer, c->opening, c->opening_len, &method);
        if (method >= SEND_MESSAGE)
            c->opening_left--;     /* a broker's: others are a gateway's own */
        return len;
    }
    if (kafka() || c->opening[9] != PING)
        c->opening_left--;
    return kafka() ? put_kafka_answer(answer, c->opening + 4)
                   : put_answer(answer, c->opening + 8, c->opening_len - 8);
}

/* Reads an opening's bytes. -1: closed; 0: more to come; 1: only load follows. */
static int opening_serve(conn_t *c)
{
    if (!c->opening) {
        c->opening = malloc(MAX_COMMAND);
        c->opening_left = opening_steps();
    }
    while (c->opening_left) {
        size_t have = c->opening_len, whole = opening_size(c);
        if (whole > MAX_COMMAND)
            return -1;
        ssize_t n = recv(c->fd, c->opening + have, whole - have, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return -1;
        if (n < 0)
            return 0;
        c->opening_len += n;
        if (c->opening_len < 8 || c->opening_len < opening_size(c))
            continue;
        uint8_t answer[MAX_COMMAND];
        size_t len = opening_answer(answer, c);
        if (len && send(c->fd, answer, len, MSG_NOSIGNAL) != (ssize_t)len)
            return -1;
        c->first_id = read_be32(c->opening + 8) + 1;
        c->opening_len = 0;
    }
    free(c->opening);
    c->opening = NULL;
    return 1;
}

/* -- moving bytes ------------------------------------------------------------------------- */

static ssize_t send_block(conn_t *c, size_t at_most)
{
    size_t len = block_len - c->off;
    if (len > CHUNK)
        len = CHUNK;
    if (len > at_most)
        len = at_most;
    ssize_t n = give(c, block + c->off, len);
    if (n > 0)
        c->off = (c->off + n) % block_len;
    return n;
}

/* With --rate: gives a connection, each millisecond, the bytes that have become due since. */
static void refill(int epoll, conn_t *c)
{
    static __thread double began, last;
    static __thread uint64_t given;
    double t = now();
    if (!c || t - last < 1e-3)
        return;
    if (!began)
        began = t;
    last = t;
    uint64_t due = (t - began) * opt.rate * block_len / block_frames;
    c->budget += due - given;
    given = due;
    if (c->budget && !c->wants_out) {
        c->wants_out = 1;
        watch(epoll, EPOLL_CTL_MOD, c->fd, EPOLLIN | EPOLLOUT, c);
    }
}

static ssize_t receive_nothing(const conn_t *c)
{
    static __thread uint8_t unused[1], opened_record[16384];
    if (c->ssl)
        return take(c, opened_record, sizeof opened_record);
    return recv(c->fd, unused, 1 << 20, MSG_TRUNC);  /* TCP: drops the bytes, writes none */
}

/* The whole frames in the first `bytes` that one connection sends: their sizes may differ. */
static uint64_t whole_frames(uint64_t bytes)
{
    long least = 0, most = block_frames;
    while (least < most) {
        long middle = (least + most) / 2;
        if (frame_ends[middle] <= bytes % block_len)
            least = middle + 1;
        else
            most = middle;
    }
    return bytes / block_len * block_frames + least;
}

/* Counts the frames that are whole once these bytes have come. */
static void note_stream(conn_t *c, ssize_t bytes)
{
    uint64_t before = whole_frames(c->received);
    c->received += bytes;
    uint64_t more = whole_frames(c->received) - before;
    atomic_fetch_add_explicit(&stream_frames, more, memory_order_relaxed);
}

static int is_gone(ssize_t received) { return !received || (received < 0 && errno != EAGAIN); }

/* Numbers the receipts that the next `len` bytes belong to. All connections share them, so this
   comes before each send. */
static void number_receipts(const conn_t *c, size_t len)
{
    uint32_t id = c->first_id + c->given / receipt_len;
    for (size_t at = c->off - c->off % receipt_len; at < c->off + len; at += receipt_len)
        be32(receipts + at + 4, id++);
}

static void send_receipts(int epoll, conn_t *c)
{
    while (c->owed) {
        size_t len = receipts_len - c->off;
        if (len > c->owed)
            len = c->owed;
        if (opt.renumbers)
            number_receipts(c, len);
        ssize_t n = send(c->fd, receipts + c->off, len, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN)
                c->owed = 0;
            break;
        }
        c->off = (c->off + n) % receipts_len;
        c->given += n;
        c->owed -= n;
    }
    int wants_out = c->owed > 0;
    if (wants_out != c->wants_out) {
        c->wants_out = wants_out;
        watch(epoll, EPOLL_CTL_MOD, c->fd, EPOLLIN | (wants_out ? EPOLLOUT : 0), c);
    }
}

/* -- the server --------------------------------------------------------------------------- */

static int sends_down(void) { return mode_is("stream") && !strcmp(opt.dir, "down"); }
static conn_t *paced_down;        /* with --rate: the connection that is sent to */

static void begin_load(int epoll, conn_t *c)
{
    atomic_fetch_add(&opened, 1);
    if (sends_down() && opt.rate)
        paced_down = c;
    else if (sends_down()) {
        c->budget = UINT64_MAX;
        c->wants_out = 1;
        watch(epoll, EPOLL_CTL_MOD, c->fd, EPOLLIN | EPOLLOUT, c);
    }
}

static void accept_all(int epoll)
{
    int fd, one = 1;
    while ((fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        conn_t *c = calloc(1, sizeof *c);
        c->fd = fd;
        c->opening_left = opt.hello ? -1 : 0;
        watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, c);
        if (!opt.hello)
            begin_load(epoll, c);
    }
}

/* 0: the connection is over. */
static int serve_in(int epoll, conn_t *c)
{
    if (c->opening_left) {
        int state = opening_serve(c);
        if (state > 0)
            begin_load(epoll, c);
        return state >= 0;
    }
    ssize_t n = receive_nothing(c);
    if (is_gone(n))
        return 0;
    if (n < 0)
        return 1;
    atomic_fetch_add_explicit(&server_bytes, n, memory_order_relaxed);
    if (mode_is("stream")) {
        note_stream(c, n);
    } else {
        c->part += n;
        c->owed += c->part / opt.frame * receipt_len;
        c->part %= opt.frame;
        send_receipts(epoll, c);
    }
    return 1;
}

static void serve_out(int epoll, conn_t *c)
{
    if (!sends_down()) {
        send_receipts(epoll, c);
        return;
    }
    for (int i = 0; i < 4 && c->budget; i++) {
        ssize_t n = send_block(c, c->budget);
        if (n < 0)
            break;
        if (c->budget != UINT64_MAX)
            c->budget -= n;
    }
    if (!c->budget) {
        c->wants_out = 0;
        watch(epoll, EPOLL_CTL_MOD, c->fd, EPOLLIN, c);
    }
}

static void *serve(void *unused)
{
    (void)unused;
    pin(opt.scpu);
    pthread_getcpuclockid(pthread_self(), &server_clock);
    int epoll = epoll_create1(0);
    struct epoll_event events[EVENTS];
    watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
    atomic_store(&server_ready, 1);
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        if (opt.rate)
            refill(epoll, paced_down);
        int n = epoll_wait(epoll, events, EVENTS, opt.rate ? 1 : 100);
        for (int i = 0; i < n; i++) {
            conn_t *c = events[i].data.ptr;
            if (!c) {
                accept_all(epoll);
                continue;
            }
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !serve_in(epoll, c)) {
                if (c == paced_down)
                    paced_down = NULL;
                close(c->fd);
                free(c->opening);
                free(c);
                continue;
            }
            if (events[i].events & EPOLLOUT)
                serve_out(epoll, c);
        }
    }
    return NULL;
}

/* -- the client --------------------------------------------------------------------------- */

static int dial(void)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        die("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&opt.target, sizeof opt.target))
        die("connect");
    return fd;
}

/* Opens all connections, --at-once together; returns when the server has them. */
static conn_t *open_all(void)
{
    conn_t *cs = calloc(opt.conns, sizeof *cs);
    for (int base = 0; base < opt.conns; base += opt.at_once) {
        int end = base + opt.at_once < opt.conns ? base + opt.at_once : opt.conns;
        for (int i = base; i < end; i++) {
            cs[i].id = i;
            cs[i].fd = dial();
        }
        for (int i = base; opt.tls && i < end; i++)
            shake(&cs[i]);
        for (int step = 0; opt.hello && step < opening_steps(); step++) {
            for (int i = base; i < end; i++)
                opening_write(&cs[i], step);
            for (int i = base; i < end; i++)
                opening_read(&cs[i], step);
        }
    }
    double until = now() + 30;
    while (atomic_load(&opened) < (unsigned)opt.conns) {
        if (now() > until)
            fail("not all connections reached the server");
        usleep(1000);
    }
    return cs;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t *round_trips;     /* nanoseconds; only where the window is 1 */
static size_t round_trips_len;
static uint64_t frames_back;      /* receipts */

static void may_send(int epoll, conn_t *c)
{
    if (round_trips)
        c->sent_at = now_ns();
    for (int i = 0; i < (c->ssl ? 64 : 4) && c->budget; i++) {
        ssize_t n = send_block(c, c->budget);
        if (n < 0)
            break;
        if (c->budget != UINT64_MAX)
            c->budget -= n;
    }
    int wants_out = c->budget > 0;
    if (wants_out != c->wants_out) {
        c->wants_out = wants_out;
        watch(epoll, EPOLL_CTL_MOD, c->fd, EPOLLIN | (wants_out ? EPOLLOUT : 0), c);
    }
}

/* Returns 0 if no bytes had come. */
static int client_in_once(int epoll, conn_t *c)
{
    ssize_t n = receive_nothing(c);
    if (is_gone(n)) {
        fprintf(stderr, "loadgen: the proxy closed connection %d\n", c->id);
        exit(2);
    }
    if (n < 0)
        return 0;
    atomic_fetch_add_explicit(&client_bytes, n, memory_order_relaxed);
    if (mode_is("stream"))
        note_stream(c, n);
    if (!mode_is("pingpong"))
        return 1;
    c->part += n;
    uint64_t frames = c->part / receipt_len;
    c->part %= receipt_len;
    if (!frames)
        return 1;
    frames_back += frames;
    if (round_trips && round_trips_len < MAX_ROUND_TRIPS)
        round_trips[round_trips_len++] = (uint32_t)(now_ns() - c->sent_at);
    c->budget += frames * opt.frame;
    if (!c->wants_out)
        may_send(epoll, c);
    return 1;
}

static void client_in(int epoll, conn_t *c)
{
    for (int i = 0; client_in_once(epoll, c) && c->ssl && i < 64; i++)
        ;
}

typedef struct {
    double at, cpu, client, server;
    uint64_t up, down, frames_back;
} mark_t;

static mark_t mark(void)
{
    return (mark_t){
        .at = now(), .cpu = watched_cpu(),
        .client = seconds(CLOCK_THREAD_CPUTIME_ID), .server = seconds(server_clock),
        .up = atomic_load(&server_bytes), .down = atomic_load(&client_bytes),
        .frames_back = frames_back,
    };
}

static void print_round_trips(void)
{
    size_t n = round_trips_len;
    if (!n)
        return;
    qsort(round_trips, n, sizeof *round_trips, by_value);
    printf(",\"round_trips\":%zu,\"p50_us\":%.2f,\"p90_us\":%.2f,\"p99_us\":%.2f", n,
           round_trips[n / 2] / 1e3, round_trips[n * 9 / 10] / 1e3,
           round_trips[n * 99 / 100] / 1e3);
}

static void print_load(mark_t from, mark_t to)
{
    double span = to.at - from.at, average = (double)block_len / block_frames;
    double bytes = (to.up - from.up) + (to.down - from.down);
    int stream = mode_is("stream");
    double frames = stream ? bytes / average : (double)(to.frames_back - from.frames_back);
    double all = stream ? (double)atomic_load(&stream_frames) : (double)to.frames_back;
    printf("{\"mode\":\"%s\",\"frame\":%.1f,\"conns\":%d,\"secs\":%.4f,\"frames\":%.0f,"
           "\"frames_with_warm_up\":%.0f,\"bytes_per_s\":%.0f,\"proxy_cpu_s\":%.5f,"
           "\"proxy_us_per_frame\":%.5f,\"client_util\":%.3f,\"server_util\":%.3f",
           opt.mode, average, opt.conns, span, frames, all, bytes / span, to.cpu - from.cpu,
           frames ? (to.cpu - from.cpu) * 1e6 / frames : 0, (to.client - from.client) / span,
           (to.server - from.server) / span);
    print_round_trips();
    printf("}\n");
}

static void close_hard(conn_t *cs)
{
    struct linger reset = {1, 0};
    for (int i = 0; i < opt.conns; i++) {
        setsockopt(cs[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(cs[i].fd);
    }
}

static void run_load(void)
{
    int epoll = epoll_create1(0), up = !sends_down(), pingpong = mode_is("pingpong");
    struct epoll_event events[EVENTS];
    conn_t *cs = open_all();
    if (pingpong && opt.window == 1)
        round_trips = malloc(MAX_ROUND_TRIPS * sizeof *round_trips);
    for (int i = 0; i < opt.conns; i++) {
        conn_t *c = &cs[i];
        fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
        c->budget = pingpong ? (uint64_t)opt.window * opt.frame : opt.rate ? 0 : UINT64_MAX;
        c->wants_out = up && c->budget;
        watch(epoll, EPOLL_CTL_ADD, c->fd, EPOLLIN | (c->wants_out ? EPOLLOUT : 0), c);
    }
    double measure_at = now() + opt.warm, end = measure_at + opt.secs, t;
    mark_t from = {0};
    while ((t = now()) < end) {
        if (!from.at && t >= measure_at) {
            round_trips_len = 0;
            from = mark();
        }
        if (opt.rate && up)
            refill(epoll, cs);
        int n = epoll_wait(epoll, events, EVENTS, opt.rate ? 1 : 50);
        for (int i = 0; i < n; i++) {
            conn_t *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                client_in(epoll, c);
            if (events[i].events & EPOLLOUT && up && c->wants_out)
                may_send(epoll, c);
        }
    }
    print_load(from, mark());
    close_hard(cs);
}

/* One round trip on each connection, 64 at a time. Blocking. */
static void ping_all(conn_t *cs)
{
    uint8_t answer[MAX_COMMAND];
    for (int base = 0; base < opt.conns; base += 64) {
        int end = base + 64 < opt.conns ? base + 64 : opt.conns;
        for (int i = base; i < end; i++)
            if (give(&cs[i], block, opt.frame) != opt.frame)
                die("send");
        for (int i = base; i < end; i++)
            read_all(&cs[i], answer, receipt_len);
    }
}

/* CPU that the processes still use after their connections are closed, until they are idle. */
static double until_rest(double from)
{
    double last = from;
    for (int i = 0; i < 50; i++) {
        usleep(200000);
        double cpu = watched_cpu();
        if (cpu - last < 0.004)
            return cpu;
        last = cpu;
    }
    return last;
}

static void run_idle(void)
{
    long kb = watched_kb();
    double cpu = watched_cpu(), at = now();
    conn_t *cs = open_all();
    double set_up_cpu = watched_cpu() - cpu, set_up_s = now() - at;
    usleep(300000);
    cpu = watched_cpu();
    ping_all(cs);
    double ping_cpu = watched_cpu() - cpu;
    usleep((useconds_t)(opt.hold * 1e6));
    long held_kb = watched_kb();
    cpu = watched_cpu();
    for (int i = 0; i < opt.conns; i++)
        close(cs[i].fd);
    double close_cpu = until_rest(cpu) - cpu;
    printf("{\"mode\":\"idle\",\"conns\":%d,\"kb_before\":%ld,\"kb_held\":%ld,\"kb_after\":%ld,"
           "\"bytes_per_conn\":%.0f,\"set_ups_per_s\":%.0f,\"proxy_us_per_set_up\":%.2f,"
           "\"proxy_us_per_ping\":%.2f,\"proxy_us_per_close\":%.2f}\n",
           opt.conns, kb, held_kb, watched_kb(), (held_kb - kb) * 1024.0 / opt.conns,
           opt.conns / set_up_s, set_up_cpu * 1e6 / opt.conns, ping_cpu * 1e6 / opt.conns,
           close_cpu * 1e6 / opt.conns);
}

#ifdef TLS
typedef struct {
    int fd;
    long tickets;                  /* seen before this one */
    SSL *ssl;
} shake_t;

static void begin_shake(int epoll, shake_t *s)
{
    int one = 1;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(s->fd, (struct sockaddr *)&opt.target, sizeof opt.target) && errno != EINPROGRESS)
        die("connect");
    s->ssl = secured(s->fd);
    watch(epoll, EPOLL_CTL_ADD, s->fd, EPOLLIN | EPOLLOUT | EPOLLET, s);
}

/* 1: done, its ticket included. A reset before the ticket would take the handshake's end away. */
static int go_on_shaking(shake_t *s)
{
    char byte;
    long before = tickets;
    if (SSL_do_handshake(s->ssl) != 1) {
        if (tls_failed(s->ssl) < 0 && errno == EAGAIN)
            return 0;
        fail("a handshake failed");
    }
    if (session && !SSL_session_reused(s->ssl) && opt.resume > 1)
        fail("a session was not resumed");
    SSL_read(s->ssl, &byte, 1);
    ERR_clear_error();
    return tickets > before;
}

static void run_shake(void)
{
    int epoll = epoll_create1(0);
    struct epoll_event events[EVENTS];
    shake_t *all = calloc(opt.at_once, sizeof *all);
    for (int i = 0; i < opt.at_once; i++)
        begin_shake(epoll, &all[i]);
    double measure_at = now() + opt.warm, end = measure_at + opt.secs, t;
    long done = 0;
    mark_t from = {0};
    while ((t = now()) < end) {
        if (!from.at && t >= measure_at) {
            opt.resume *= 2;       /* from now on all must be resumed */
            done = 0;
            from = mark();
        }
        int n = epoll_wait(epoll, events, EVENTS, 50);
        for (int i = 0; i < n; i++) {
            shake_t *s = events[i].data.ptr;
            if (!go_on_shaking(s))
                continue;
            done++;
            SSL_shutdown(s->ssl);
            SSL_free(s->ssl);
            close(s->fd);
            begin_shake(epoll, s);
        }
    }
    mark_t to = mark();
    printf("{\"mode\":\"shake\",\"secs\":%.4f,\"frames\":%ld,\"proxy_cpu_s\":%.5f,"
           "\"proxy_us_per_frame\":%.3f,\"client_util\":%.3f}\n", to.at - from.at, done,
           to.cpu - from.cpu, done ? (to.cpu - from.cpu) * 1e6 / done : 0,
           (to.client - from.client) / (to.at - from.at));
}
#else
static void run_shake(void) { fail("built without TLS"); }
#endif

/* -- options ------------------------------------------------------------------------------ */

static void read_address(struct sockaddr_in *to, const char *text)
{
    char host[64];
    snprintf(host, sizeof host, "%s", text);
    char *colon = strrchr(host, ':');
    if (!colon)
        fail("an address is HOST:PORT");
    *colon = 0;
    *to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(colon + 1))};
    if (inet_pton(AF_INET, host, &to->sin_addr) != 1)
        fail("an address is HOST:PORT");
}

static void read_pids(const char *text)
{
    char *list = strdup(text);
    for (char *t = strtok(list, ","); t && opt.npids < MAX_PIDS; t = strtok(NULL, ","))
        opt.pids[opt.npids++] = atoi(t);
    free(list);
}

static void read_option(const char *name, const char *value)
{
    struct { const char *name, **to; } texts[] = {
        {"--dir", &opt.dir}, {"--cmd", &opt.cmd}, {"--groups", &opt.groups},
        {"--mix", &opt.mix}, {"--hello", &opt.hello},
    };
    struct { const char *name; int *to; } numbers[] = {
        {"--conns", &opt.conns}, {"--window", &opt.window}, {"--batch", &opt.batch},
        {"--producers", &opt.producers}, {"--topics", &opt.topics},
        {"--partitions", &opt.partitions}, {"--at-once", &opt.at_once}, {"--ccpu", &opt.ccpu},
        {"--scpu", &opt.scpu}, {"--tls", &opt.tls}, {"--resume", &opt.resume},
        {"--renumbers", &opt.renumbers}, {"--current", &opt.current},
    };
    struct { const char *name; double *to; } times[] = {
        {"--secs", &opt.secs}, {"--warm", &opt.warm}, {"--hold", &opt.hold},
        {"--rate", &opt.rate},
    };
#define TAKE(table, read)                                            \
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)        \
        if (!strcmp(name, table[i].name)) {                          \
            *table[i].to = read(value);                              \
            return;                                                  \
        }
    TAKE(texts, )
    TAKE(numbers, atoi)
    TAKE(times, atof)
    if (!strcmp(name, "--listen"))
        read_address(&opt.listen, value);
    else if (!strcmp(name, "--target"))
        read_address(&opt.target, value);
    else if (!strcmp(name, "--frame"))
        opt.frame = atol(value);
    else if (!strcmp(name, "--pids"))
        read_pids(value);
    else
        fail("an unknown option; they stand at the head of loadgen.c");
}

static void listen_here(void)
{
    int one = 1;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&opt.listen, sizeof opt.listen))
        die("bind");
    if (listen(listener, 4096))
        die("listen");
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc % 2)
        fail("MODE and pairs of options; they stand at the head of loadgen.c");
    opt.mode = argv[1];
    read_address(&opt.listen, "127.0.0.1:7000");
    read_address(&opt.target, "127.0.0.1:7000");
    for (int i = 2; i < argc; i += 2)
        read_option(argv[i], argv[i + 1]);
    if (opt.secs > 120 || opt.conns < 1 || opt.conns > 60000 || opt.at_once < 1)
        fail("out of bounds");
    if (opt.rate && (opt.conns > 1 || !mode_is("stream")))
        fail("--rate is for one connection's stream");
    if (tube() && (mode_is("stream") || opt.window < 1))
        fail("TubeMQ answers each request: MODE is pingpong or idle");
    signal(SIGPIPE, SIG_IGN);
    if (opt.tls)
        begin_tls();
    build_blocks();
    note_frame_ends();
    listen_here();
    pthread_t server;
    if (pthread_create(&server, NULL, serve, NULL))
        die("pthread_create");
    while (!atomic_load(&server_ready))
        usleep(500);
    pin(opt.ccpu);
    if (mode_is("stream") || mode_is("pingpong"))
        run_load();
    else if (mode_is("idle"))
        run_idle();
    else if (mode_is("shake"))
        run_shake();
    else
        fail("MODE is stream, pingpong, idle or shake");
    fflush(stdout);
    atomic_store(&stopping, 1);
    pthread_join(server, NULL);
    return 0;
}
