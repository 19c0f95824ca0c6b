/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "params.h"
#include "console.h"
#include "cpu.h"

#define MAX_CMDLINE 4096
#define MAX_WORD    128

typedef enum ParamType {
    PARAM_WORD,                     /* one of @choices, or anything when there are none */
    PARAM_NUMBER,                   /* suffixes k, M, G; 0x for hexadecimal */
    PARAM_SECONDS,                  /* decimals allowed, kept in milliseconds */
    PARAM_BOOL,
    PARAM_DEVICES,                  /* 0,2,3 or all or none */
} ParamType;

typedef struct ParamDesc {
    const char *name;
    ParamType type;
    uint16_t offset;
    const char *choices;
    uint64_t min, max;
} ParamDesc;

#define FIELD(f) offsetof(Params, f)
#define WORD(n, f, choices) { n, PARAM_WORD, FIELD(f), choices, 0, 0 }
#define NUMBER(n, f, min, max) { n, PARAM_NUMBER, FIELD(f), NULL, min, max }
#define SECONDS(n, f, max) { n, PARAM_SECONDS, FIELD(f), NULL, 0, max }
#define BOOL(n, f) { n, PARAM_BOOL, FIELD(f), NULL, 0, 1 }
#define DEVICES(n, f) { n, PARAM_DEVICES, FIELD(f), NULL, 0, 0 }

static const ParamDesc table[] = {
    WORD("op", op, NULL),
    WORD("case", hostile_case, NULL),
    WORD("complete", complete, "poll intr"),
    WORD("wait", wait, "hlt spin"),
    WORD("irqchip", irqchip, "pic ioapic"),
    WORD("clock", clock, "auto kvmclock cpuid pit"),
    WORD("exit", exit, "auto debug kbd cf9 triple"),
    WORD("expect", expect, "ok ioerr"),
    DEVICES("dev", dev),
    DEVICES("idle", idle),
    NUMBER("bs", bs, 512, 16 << 20),
    NUMBER("qd", qd, 1, 1024),
    NUMBER("queues", queues, 1, 64),
    NUMBER("qsize", qsize, 0, 32768),
    NUMBER("segs", segs, 1, 256),
    SECONDS("seconds", seconds_ms, 86400000),
    SECONDS("warmup", warmup_ms, 60000),
    NUMBER("count", count, 0, UINT64_MAX),
    NUMBER("span", span, 0, UINT64_MAX),
    NUMBER("start", start, 0, UINT64_MAX),
    NUMBER("rwmix", rwmix, 0, 100),
    NUMBER("flushmix", flushmix, 0, 1000000),
    NUMBER("maxblocks", maxblocks, 1, 64),
    NUMBER("maxsegs", maxsegs, 1, 64),
    NUMBER("seed", seed, 0, UINT64_MAX),
    NUMBER("acked", acked, 0, UINT64_MAX),
    NUMBER("flush_every", flush_every, 0, 1u << 30),
    SECONDS("progress", progress_ms, 60000),
    SECONDS("timeout", timeout_ms, 600000),
    NUMBER("deny", deny, 0, UINT64_MAX),
    NUMBER("code", code, 0, 255),
    NUMBER("vectors", vectors, 0, 2048),
    BOOL("event_idx", event_idx),
    BOOL("indirect", indirect),
    BOOL("rand", rand),
    BOOL("odd", odd),
    BOOL("pause", pause),
    BOOL("ask", ask),
    BOOL("hello", hello),
};

static const Params defaults = {
    .op = "info", .hostile_case = "all", .complete = "poll", .wait = "hlt", .irqchip = "pic",
    .clock = "auto", .exit = "auto", .expect = "ok",
    .dev = { 1 }, .bs = 4096, .qd = 1, .queues = 1, .segs = 1, .seconds_ms = 1000,
    .warmup_ms = 200, .rwmix = 50, .flushmix = 100, .maxblocks = 8, .maxsegs = 8, .seed = 1,
    .progress_ms = 100, .timeout_ms = 10000, .vectors = 2048,
    .event_idx = true, .indirect = true, .rand = true, .pause = true,
};

/* Words live here for as long as the run whose parameters point to them. */
static char words[MAX_CMDLINE];
static unsigned words_len;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Plain or 0x number with an optional suffix; false when malformed or too large. */
static bool parse_number(const char *s, uint64_t *out)
{
    unsigned base = s[0] == '0' && (s[1] | 0x20) == 'x' ? 16 : 10;
    const char *digits = base == 16 ? s + 2 : s;
    uint64_t v = 0;
    unsigned shift = 0;

    for (s = digits; *s != '\0'; s++) {
        unsigned d = *s >= '0' && *s <= '9' ? *s - '0' : (*s | 0x20) - 'a' + 10;

        if (d >= base || (*s < '0')) {
            break;
        }
        if (v > (UINT64_MAX - d) / base) {
            return false;
        }
        v = v * base + d;
    }
    if (s == digits) {
        return false;
    }
    if (*s != '\0') {
        shift = *s == 'k' ? 10 : *s == 'M' ? 20 : *s == 'G' ? 30 : 0;
        if (shift == 0 || s[1] != '\0' || v > UINT64_MAX >> shift) {
            return false;
        }
    }
    *out = v << shift;
    return true;
}

static bool parse_seconds(const char *s, uint64_t *out_ms)
{
    uint64_t ms = 0, scale = 1000;
    bool fraction = false, any = false;

    for (; *s != '\0'; s++) {
        if (*s == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (*s < '0' || *s > '9' || ms > 1ull << 40) {
            return false;
        }
        any = true;
        if (fraction) {
            scale /= 10;
            ms += (*s - '0') * scale;
        } else {
            ms = ms * 10 + (*s - '0') * 1000;
        }
    }
    *out_ms = ms;
    return any;
}

static bool parse_devices(const char *s, DevSet *set)
{
    unsigned v = 0;
    bool any = false;

    set->bits = 0;
    if (str_eq(s, "all")) {
        set->bits = UINT64_MAX;
        return true;
    }
    if (str_eq(s, "none")) {
        return true;
    }
    for (;; s++) {
        if (*s >= '0' && *s <= '9') {
            v = v * 10 + (*s - '0');
            any = true;
            if (v >= MAX_DEVICES) {
                return false;
            }
            continue;
        }
        if (!any || (*s != ',' && *s != '\0')) {
            return false;
        }
        set->bits |= 1ull << v;
        if (*s == '\0') {
            return true;
        }
        v = 0;
        any = false;
    }
}

static bool word_in(const char *word, const char *list)
{
    size_t len = strlen(word);

    while (list != NULL && *list != '\0') {
        size_t n = 0;

        while (list[n] != ' ' && list[n] != '\0') {
            n++;
        }
        if (n == len && memcmp(list, word, n) == 0) {
            return true;
        }
        list += n + (list[n] == ' ');
    }
    return false;
}

static bool assign(Params *p, const ParamDesc *d, const char *value)
{
    void *field = (char *)p + d->offset;
    uint64_t v;

    switch (d->type) {
    case PARAM_WORD:
        *(const char **)field = value;
        return d->choices == NULL || word_in(value, d->choices);
    case PARAM_DEVICES:
        return parse_devices(value, field);
    case PARAM_NUMBER:
    case PARAM_SECONDS:
        if (!(d->type == PARAM_NUMBER ? parse_number(value, &v) : parse_seconds(value, &v))) {
            return false;
        }
        *(uint64_t *)field = v;
        return v >= d->min && v <= d->max;
    case PARAM_BOOL:
        *(bool *)field = value[0] == '1';
        return (value[0] == '0' || value[0] == '1') && value[1] == '\0';
    }
    return false;
}

/* One key=value word of @len bytes. */
static void parse_word(Params *p, const char *s, unsigned len)
{
    char *word = words + words_len, *value = word;

    if (len >= MAX_WORD || words_len + len + 1 > sizeof(words)) {
        fail("the command line is too long", NULL);
    }
    memcpy(word, s, len);
    word[len] = '\0';
    words_len += len + 1;
    while (*value != '=' && *value != '\0') {
        value++;
    }
    if (*value == '\0') {
        fail("not a key=value word", word);
    }
    *value++ = '\0';
    for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
        if (str_eq(word, table[i].name)) {
            if (!assign(p, &table[i], value)) {
                value[-1] = '=';
                fail("bad value", word);
            }
            return;
        }
    }
    fail("unknown parameter", word);
}

static void parse_words(Params *p, const char *s, const char *end)
{
    while (s < end) {
        const char *word = s;

        while (s < end && !is_space(*s)) {
            s++;
        }
        if (s > word) {
            parse_word(p, word, s - word);
        }
        s += s < end;
    }
}

/* The text inside run="..."; false if there is none. */
static bool find_runs(const char *cmdline, const char **begin, const char **end)
{
    for (const char *s = cmdline; *s != '\0'; s++) {
        if ((s == cmdline || is_space(s[-1])) && memcmp(s, "run=\"", MIN(5, strlen(s))) == 0 &&
            strlen(s) > 5) {
            *begin = s + 5;
            for (s += 5; *s != '"'; s++) {
                if (*s == '\0') {
                    fail("run=\" has no closing quote", NULL);
                }
            }
            *end = s;
            return true;
        }
    }
    return false;
}

bool params_run(const char *cmdline, unsigned i, Params *p)
{
    const char *begin, *end, *rest = cmdline + strlen(cmdline);
    unsigned n = 0;

    *p = defaults;
    words_len = 0;
    if (!find_runs(cmdline, &begin, &end)) {
        parse_words(p, cmdline, rest);
        return i == 0;
    }
    parse_words(p, cmdline, begin - 5);
    parse_words(p, end + 1, rest);
    for (const char *s = begin; s < end; s++) {
        const char *run = s;

        while (s < end && *s != ';') {
            s++;
        }
        if (n++ == i) {
            parse_words(p, run, s);
            return true;
        }
    }
    return false;
}

void params_line(const char *cmdline, const char *line, Params *p)
{
    const char *begin, *end, *rest = cmdline + strlen(cmdline);

    *p = defaults;
    words_len = 0;
    if (find_runs(cmdline, &begin, &end)) {
        fail("run=\" and ask=1 exclude each other", NULL);
    }
    parse_words(p, cmdline, rest);
    parse_words(p, line, line + strlen(line));
}
