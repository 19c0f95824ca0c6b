/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines of the qtest protocol.
 */
#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "qtest-internal.h"
#include "util/err.h"
#include "util/scalar.h"

#define LINE_MAX_BYTES (8u << 20)
#define DATA_MAX_BYTES (2u << 20)
#define WORDS_MAX 4

struct QtestServer {
    QtestVm *q;
    int in_fd, out_fd;
    guint watch;
    GString *in;                /* a line that isn't complete */
    void (*closed)(void *opaque);
    void *opaque;
};

/* ---- output: the test reads what it asked for, so a blocking write is fine ---- */

static void send_all(QtestServer *s, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(s->out_fd, text, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return;             /* the other side is gone; reading will tell */
        }
        text += n;
        len -= n;
    }
}

void qtest_server_tell(QtestServer *s, const char *fmt, ...)
{
    g_autofree char *line = NULL;
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    line = g_strdup_printf("%s\n", text);
    send_all(s, line, strlen(line));
}

/* ---- arguments ---- */

typedef struct Command {
    const char *words[WORDS_MAX];
    unsigned n;
} Command;

static bool number(const Command *c, unsigned i, uint64_t *value)
{
    return i < c->n && scalar_parse_u64(c->words[i], value);
}

/* RAM for the arguments ADDR SIZE; NULL, with an answer sent, when they name none. */
static uint8_t *ram_arg(QtestServer *s, const Command *c, uint64_t *size)
{
    uint64_t addr;
    uint8_t *ram;

    if (!number(c, 1, &addr) || !number(c, 2, size) || *size > DATA_MAX_BYTES) {
        qtest_server_tell(s, "FAIL %s wants ADDR and SIZE (at most %u)", c->words[0],
                          DATA_MAX_BYTES);
        return NULL;
    }
    ram = qtest_ram(s->q, addr, MAX(*size, 1));
    if (ram == NULL) {
        qtest_server_tell(s, "FAIL that is not RAM");
    }
    return ram;
}

/* ---- commands ---- */

static unsigned size_of(char suffix)
{
    const char *sizes = "bwlq";
    const char *p = suffix != '\0' ? strchr(sizes, suffix) : NULL;

    return p != NULL ? 1u << (p - sizes) : 0;
}

/* in?, out?, read?, write? with a size's letter. */
static bool cmd_access(QtestServer *s, const Command *c)
{
    static const struct {
        const char *prefix;
        VmSpace space;
        bool write;
        unsigned max;
    } kinds[] = {
        { "in", VM_PIO, false, 4 }, { "out", VM_PIO, true, 4 },
        { "read", VM_MMIO, false, 8 }, { "write", VM_MMIO, true, 8 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        size_t len = strlen(kinds[i].prefix);
        uint64_t addr, value;
        unsigned size;

        if (strncmp(c->words[0], kinds[i].prefix, len) != 0 || strlen(c->words[0]) != len + 1) {
            continue;
        }
        size = size_of(c->words[0][len]);
        if (size == 0 || size > kinds[i].max) {
            continue;
        }
        if (!number(c, 1, &addr) || (kinds[i].space == VM_PIO && addr > 0xffff) ||
            (kinds[i].write && !number(c, 2, &value))) {
            qtest_server_tell(s, "FAIL %s: bad arguments", c->words[0]);
        } else if (kinds[i].write) {
            value &= size == 8 ? UINT64_MAX : (1ull << (size * 8)) - 1;
            qtest_guest_write(s->q, kinds[i].space, addr, value, size);
            qtest_server_tell(s, "OK");
        } else {
            value = qtest_guest_read(s->q, kinds[i].space, addr, size);
            value &= size == 8 ? UINT64_MAX : (1ull << (size * 8)) - 1;
            qtest_server_tell(s, "OK 0x%0*" G_GINT64_MODIFIER "x",
                              kinds[i].space == VM_PIO ? 4 : 16, value);
        }
        return true;
    }
    return false;
}

static void cmd_read(QtestServer *s, const Command *c)
{
    uint64_t size;
    const uint8_t *ram = ram_arg(s, c, &size);
    g_autoptr(GString) text = g_string_new("OK 0x");

    if (ram == NULL) {
        return;
    }
    for (uint64_t i = 0; i < size; i++) {
        g_string_append_printf(text, "%02x", ram[i]);
    }
    qtest_server_tell(s, "%s", text->str);
}

/* Missing digits are zeroes. */
static void cmd_write(QtestServer *s, const Command *c)
{
    uint64_t size;
    uint8_t *ram = ram_arg(s, c, &size);
    const char *p = c->n > 3 ? c->words[3] : "";

    if (ram == NULL) {
        return;
    }
    if (strncmp(p, "0x", 2) != 0) {
        qtest_server_tell(s, "FAIL write wants DATA that begins with 0x");
        return;
    }
    p += 2;
    for (uint64_t i = 0; i < size; i++) {
        unsigned byte = 0;

        for (unsigned digit = 0; digit < 2; digit++) {
            byte = byte << 4 | (g_ascii_isxdigit(*p) ? (unsigned)g_ascii_xdigit_value(*p++) : 0);
        }
        ram[i] = byte;
    }
    qtest_server_tell(s, "OK");
}

static void cmd_b64read(QtestServer *s, const Command *c)
{
    uint64_t size;
    const uint8_t *ram = ram_arg(s, c, &size);

    if (ram != NULL) {
        g_autofree char *text = g_base64_encode(ram, size);

        qtest_server_tell(s, "OK %s", text);
    }
}

static void cmd_b64write(QtestServer *s, const Command *c)
{
    uint64_t size;
    uint8_t *ram = ram_arg(s, c, &size);

    if (ram != NULL) {
        g_autofree guchar *data = NULL;
        gsize len;

        data = g_base64_decode(c->n > 3 ? c->words[3] : "", &len);
        if (len != size) {
            qtest_server_tell(s, "FAIL b64write: %zu bytes where %" G_GUINT64_FORMAT
                              " were announced", len, size);
            return;
        }
        memcpy(ram, data, len);
        qtest_server_tell(s, "OK");
    }
}

static void cmd_memset(QtestServer *s, const Command *c)
{
    uint64_t size, value = 0;
    uint8_t *ram = ram_arg(s, c, &size);

    if (ram == NULL) {
        return;
    }
    if (!number(c, 3, &value)) {
        qtest_server_tell(s, "FAIL memset wants ADDR, SIZE and VALUE");
        return;
    }
    memset(ram, value, size);
    qtest_server_tell(s, "OK");
}

static void cmd_intercept(QtestServer *s, const Command *c)
{
    if (c->n < 2 || strcmp(c->words[1], "ioapic") != 0) {
        qtest_server_tell(s, "FAIL only ioapic can be listened to");
        return;
    }
    s->q->intercept = true;
    qtest_server_tell(s, "OK");
}

static void cmd_endianness(QtestServer *s, const Command *c)
{
    qtest_server_tell(s, "OK little");
}

static void command(QtestServer *s, const Command *c)
{
    static const struct {
        const char *name;
        void (*run)(QtestServer *s, const Command *c);
    } commands[] = {
        { "read", cmd_read }, { "write", cmd_write },
        { "b64read", cmd_b64read }, { "b64write", cmd_b64write },
        { "memset", cmd_memset }, { "irq_intercept_in", cmd_intercept },
        { "endianness", cmd_endianness },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(commands[i].name, c->words[0]) == 0) {
            commands[i].run(s, c);
            return;
        }
    }
    if (!cmd_access(s, c)) {
        qtest_server_tell(s, "FAIL unknown command '%.64s'", c->words[0]);
    }
}

/* ---- input ---- */

/* @text is cut up. */
static void obey_line(QtestServer *s, char *text)
{
    Command c = { 0 };
    char *save = NULL;

    for (char *w = strtok_r(text, " \r\t", &save); w != NULL && c.n < WORDS_MAX;
         w = strtok_r(NULL, " \r\t", &save)) {
        c.words[c.n++] = w;
    }
    if (c.n > 0) {
        command(s, &c);
    }
}

static void obey_lines(QtestServer *s)
{
    char *start = s->in->str;
    char *newline;

    while ((newline = strchr(start, '\n')) != NULL) {
        *newline = '\0';
        obey_line(s, start);
        start = newline + 1;
    }
    g_string_erase(s->in, 0, start - s->in->str);
}

static gboolean input_cb(gint fd, GIOCondition cond, gpointer opaque)
{
    QtestServer *s = opaque;
    char buf[65536];
    ssize_t n = read(fd, buf, sizeof(buf));

    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return G_SOURCE_CONTINUE;
    }
    if (n <= 0 || memchr(buf, '\0', n) != NULL || s->in->len + n > LINE_MAX_BYTES) {
        s->watch = 0;
        s->closed(s->opaque);
        return G_SOURCE_REMOVE;
    }
    g_string_append_len(s->in, buf, n);
    obey_lines(s);
    return G_SOURCE_CONTINUE;
}

/* ---- life ---- */

static int connect_to(const char *path, GError **errp)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd;

    if (strlen(path) >= sizeof(addr.sun_path)) {
        err_set(errp, "-qtest: the path of a socket has at most %zu bytes",
                sizeof(addr.sun_path) - 1);
        return -1;
    }
    strcpy(addr.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        err_set_errno(errp, errno, "-qtest: cannot connect to '%s'", path);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

bool qtest_serve(Vm *vm, const char *spec, void (*closed)(void *opaque), void *opaque,
                 GError **errp)
{
    QtestVm *q = (QtestVm *)vm;
    int in_fd = STDIN_FILENO;
    int out_fd = STDOUT_FILENO;

    if (vm->ops != &qtest_vm_ops) {
        err_set(errp, "-qtest needs -accel qtest");
        return false;
    }
    if (g_str_has_prefix(spec, "unix:")) {
        in_fd = out_fd = connect_to(spec + 5, errp);
        if (in_fd < 0) {
            return false;
        }
    } else if (strcmp(spec, "stdio") != 0) {
        err_set(errp, "-qtest '%s' is neither unix:PATH nor stdio", spec);
        return false;
    }
    q->server = g_new0(QtestServer, 1);
    *q->server = (QtestServer) {
        .q = q, .in_fd = in_fd, .out_fd = out_fd, .in = g_string_new(NULL),
        .closed = closed, .opaque = opaque,
    };
    q->server->watch = g_unix_fd_add(in_fd, G_IO_IN | G_IO_HUP | G_IO_ERR, input_cb, q->server);
    return true;
}

void qtest_server_free(QtestServer *s)
{
    if (s == NULL) {
        return;
    }
    if (s->watch != 0) {
        g_source_remove(s->watch);
    }
    if (s->in_fd != STDIN_FILENO) {
        close(s->in_fd);
    }
    g_string_free(s->in, true);
    g_free(s);
}
