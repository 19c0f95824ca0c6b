/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -drive: the older way to ask for a node and perhaps a device at once.
 *
 * What it says is written out as the -blockdev that means the same; what
 * remains then goes to that as it is and is refused there if nobody knows it.
 */
#include <string.h>
#include <sys/stat.h>

#include "block/block-int.h"
#include "blockdev-int.h"
#include "util/err.h"
#include "util/keyval.h"
#include "util/scalar.h"

static GQueue drives = G_QUEUE_INIT;    /* of Drive, by interface and index */

/* What -drive's own keys said. */
typedef struct DriveOptions {
    Drive *drive;
    char *file;                         /* a path or PROTOCOL:..., NULL: none */
    char *format;                       /* NULL: guess */
    char *aio, *cache, *discard;
    bool direct, no_flush, read_only;
} DriveOptions;

/* ---- text ------------------------------------------------------------------------------- */

/* Where the item at @text ends: at a single comma or the end. */
static size_t item_length(const char *text)
{
    size_t n = 0;

    while (text[n] != '\0' && (text[n] != ',' || text[n + 1] == ',')) {
        n += text[n] == ',' ? 2 : 1;
    }
    return n;
}

static char *item_value(const char *text, size_t n)
{
    g_autofree char *raw = g_strndup(text, n);
    g_auto(GStrv) parts = g_strsplit(raw, ",,", -1);

    return g_strjoinv(",", parts);
}

static bool item_is(const char *item, size_t n, const char *key, char **value)
{
    size_t len = strlen(key);

    if (n < len || strncmp(item, key, len) != 0) {
        return false;
    }
    g_free(*value);
    *value = item_value(item + len, n - len);
    return true;
}

/*
 * file= and cache= may stand beside file.X= and cache.X=, which no tree of keys
 * can hold: they are taken out of the text. What is left is the caller's.
 */
static char *take_texts(const char *arg, DriveOptions *o)
{
    GString *rest = g_string_new(NULL);

    for (const char *p = arg; *p; ) {
        size_t n = item_length(p);
        bool lone_path = p == arg && !memchr(p, '=', n) && n > 0;

        if (lone_path) {
            o->file = item_value(p, n);
        } else if (!item_is(p, n, "file=", &o->file) && !item_is(p, n, "cache=", &o->cache)) {
            g_string_append_printf(rest, "%s%.*s", rest->len > 0 ? "," : "", (int)n, p);
        }
        p += n;
        p += *p == ',';
    }
    return g_string_free(rest, FALSE);
}

/* ---- registry -------------------------------------------------------------------------- */

const Drive *drive_next(const Drive *drive)
{
    GList *l = drive ? g_queue_find(&drives, drive)->next : drives.head;

    return l ? l->data : NULL;
}

const Drive *drive_find(const char *id)
{
    for (GList *l = drives.head; l; l = l->next) {
        Drive *drive = l->data;

        if (strcmp(drive->id, id) == 0) {
            return drive;
        }
    }
    return NULL;
}

static void drive_free(Drive *drive)
{
    g_free(drive->id);
    g_free(drive);
}

void drive_forget_all(void)
{
    Drive *drive;

    while ((drive = g_queue_pop_head(&drives)) != NULL) {
        drive_free(drive);
    }
}

static int drive_compare(const void *a, const void *b, void *opaque)
{
    const Drive *x = a, *y = b;

    return x->interface != y->interface ? (int)x->interface - (int)y->interface
                                        : x->index - y->index;
}

static bool index_is_taken(DriveIf interface, int index)
{
    for (GList *l = drives.head; l; l = l->next) {
        const Drive *drive = l->data;

        if (drive->interface == interface && drive->index == index) {
            return true;
        }
    }
    return false;
}

/* ---- single options ---------------------------------------------------------------------- */

/* A value from a list of what is known. */
static int find_choice(const char *key, const char *value, const char *const *choices,
                       GError **errp)
{
    g_autofree char *all = NULL;

    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], value) == 0) {
            return i;
        }
    }
    all = g_strjoinv(", ", (char **)choices);
    err_set(errp, "Parameter '%s' does not accept value '%s', only %s", key, value, all);
    return -1;
}

/* The index of one value of a list, @absent without it, -1 with a message. */
static int take_choice(Keyval *kv, const char *key, const char *const *choices, int absent,
                       GError **errp)
{
    g_autofree char *value = keyval_take(kv, key);

    return value ? find_choice(key, value, choices, errp) : absent;
}

static bool take_bool(Keyval *kv, const char *key, bool *value, GError **errp)
{
    g_autofree char *text = keyval_take(kv, key);

    if (text && !scalar_parse_bool(text, value)) {
        scalar_err_bool(errp, key, text);
        return false;
    }
    return true;
}

/* Options that are fine as long as they ask for nothing. */
static bool take_off(Keyval *kv, const char *key, const char *why, GError **errp)
{
    bool on = false;

    if (!take_bool(kv, key, &on, errp)) {
        return false;
    }
    if (on) {
        err_set(errp, "%s=on is not supported: %s", key, why);
        return false;
    }
    return true;
}

static bool cache_mode(DriveOptions *o, GError **errp)
{
    static const char *const names[] = {
        "none", "writeback", "writethrough", "directsync", "unsafe", "off", NULL,
    };
    static const struct {
        bool direct, no_flush, write_cache;
    } modes[] = {
        { true, false, true }, { false, false, true }, { false, false, false },
        { true, false, false }, { false, true, true }, { true, false, true },
    };
    int mode = find_choice("cache", o->cache ? o->cache : "writeback", names, errp);

    if (mode < 0) {
        return false;
    }
    o->direct = modes[mode].direct;
    o->no_flush = modes[mode].no_flush;
    o->drive->write_cache = modes[mode].write_cache;
    return true;
}

/* cache=MODE, then cache.direct and its like on top of it. */
static bool take_cache(Keyval *kv, DriveOptions *o, GError **errp)
{
    static const char *const known[] = { "direct", "no-flush", "writeback", NULL };
    JsonValue *parts = NULL;
    Keyval sub = { .texts = true };
    bool ok;

    if (!cache_mode(o, errp)) {
        return false;
    }
    if (!json_object_object_get_ex(kv->options, "cache", &parts)) {
        return true;
    }
    sub.options = parts;
    ok = take_bool(&sub, "direct", &o->direct, errp) &&
         take_bool(&sub, "no-flush", &o->no_flush, errp) &&
         take_bool(&sub, "writeback", &o->drive->write_cache, errp) &&
         keyval_check_empty(&sub, known, errp);
    json_object_object_del(kv->options, "cache");
    return ok;
}

static bool take_interface(Keyval *kv, DriveIf default_if, Drive *drive, GError **errp)
{
    static const char *const names[] = { "none", "virtio", NULL };
    int choice = take_choice(kv, "if", names, default_if, errp);

    drive->interface = choice;
    return choice >= 0;
}

static bool take_index(Keyval *kv, DriveOptions *o, GError **errp)
{
    g_autofree char *text = keyval_take(kv, "index");
    Drive *drive = o->drive;
    uint64_t index;

    if (!text) {
        while (index_is_taken(drive->interface, drive->index)) {
            drive->index++;
        }
        return true;
    }
    if (!scalar_parse_u64(text, &index) || index > 255) {
        scalar_err_number(errp, "index", 0, 255, text);
        return false;
    }
    drive->index = index;
    if (index_is_taken(drive->interface, index)) {
        err_set(errp, "There is a drive with index=%d already", drive->index);
        return false;
    }
    return true;
}

static bool take_id(Keyval *kv, Drive *drive, GError **errp)
{
    drive->id = keyval_take(kv, "id");
    if (!drive->id) {
        drive->id = g_strdup_printf("%s%d",
                                    drive->interface == DRIVE_IF_VIRTIO ? "virtio" : "none",
                                    drive->index);
    }
    if (!scalar_is_identifier(drive->id)) {
        err_set(errp, "Parameter 'id' expects an identifier (a letter, then letters, digits, '-', "
                "'.' and '_'), not '%s'", drive->id);
        return false;
    }
    if (drive_find(drive->id)) {
        err_set(errp, "Duplicate ID '%s' for drive", drive->id);
        return false;
    }
    if (node_find(drive->id)) {
        err_set(errp, "Device name '%s' conflicts with an existing node name", drive->id);
        return false;
    }
    return true;
}

static bool take_on_error(Keyval *kv, Drive *drive, GError **errp)
{
    static const char *const write_names[] = { "report", "ignore", "enospc", "stop", NULL };
    static const BlockdevOnError write_values[] = {
        BLOCKDEV_ON_ERROR_REPORT, BLOCKDEV_ON_ERROR_IGNORE, BLOCKDEV_ON_ERROR_ENOSPC,
        BLOCKDEV_ON_ERROR_STOP, BLOCKDEV_ON_ERROR_AUTO,
    };
    static const char *const read_names[] = { "report", "ignore", "stop", NULL };
    static const BlockdevOnError read_values[] = {
        BLOCKDEV_ON_ERROR_REPORT, BLOCKDEV_ON_ERROR_IGNORE, BLOCKDEV_ON_ERROR_STOP,
        BLOCKDEV_ON_ERROR_AUTO,
    };
    int w = take_choice(kv, "werror", write_names, 4, errp);
    int r = w < 0 ? -1 : take_choice(kv, "rerror", read_names, 3, errp);

    if (r < 0) {
        return false;
    }
    drive->werror = write_values[w];
    drive->rerror = read_values[r];
    return true;
}

static bool take_discard(Keyval *kv, DriveOptions *o, GError **errp)
{
    static const char *const names[] = { "ignore", "off", "unmap", "on", NULL };
    int choice = take_choice(kv, "discard", names, 0, errp);

    o->discard = g_strdup(choice >= 2 ? "unmap" : "ignore");
    return choice >= 0;
}

static bool take_media(Keyval *kv, GError **errp)
{
    g_autofree char *media = keyval_take(kv, "media");

    if (media && strcmp(media, "disk") != 0) {
        err_set(errp, "media=%s is not supported, only disk", media);
        return false;
    }
    return true;
}

static bool take_format(Keyval *kv, DriveOptions *o, GError **errp)
{
    char *driver = keyval_take(kv, "driver");

    o->format = keyval_take(kv, "format");
    if (driver && o->format) {
        err_set(errp, "driver=%s and format=%s mean the same, give one of them", driver,
                o->format);
        g_free(driver);
        return false;
    }
    if (driver) {
        o->format = driver;
    }
    return true;
}

static bool take_read_only(Keyval *kv, DriveOptions *o, GError **errp)
{
    return take_bool(kv, "readonly", &o->read_only, errp) &&
           take_bool(kv, "read-only", &o->read_only, errp);
}

static bool take_all(Keyval *kv, DriveIf default_if, DriveOptions *o, GError **errp)
{
    o->aio = keyval_take(kv, "aio");
    return take_interface(kv, default_if, o->drive, errp) && take_index(kv, o, errp) &&
           take_id(kv, o->drive, errp) && take_media(kv, errp) && take_format(kv, o, errp) &&
           take_cache(kv, o, errp) && take_read_only(kv, o, errp) &&
           take_discard(kv, o, errp) && take_on_error(kv, o->drive, errp) &&
           take_off(kv, "snapshot", "there are no temporary overlays", errp) &&
           take_off(kv, "copy-on-read", "there are no backing files", errp);
}

/* ---- the -blockdev that means the same --------------------------------------------------- */

static void set_text(JsonValue *object, const char *key, const char *value)
{
    json_object_object_add(object, key, json_object_new_string(value));
}

static void set_bool(JsonValue *object, const char *key, bool value)
{
    set_text(object, key, value ? "on" : "off");
}

/* "PROTOCOL:REST" where no '/' comes before the colon; anything else is a path. */
static char *protocol_of(const char *file)
{
    const char *colon = strchr(file, ':'), *slash = strchr(file, '/');

    return colon && (!slash || colon < slash) ? g_strndup(file, colon - file) : NULL;
}

static bool path_is_device(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

/* file= as options of the protocol node. */
static bool fill_protocol(JsonValue *protocol, const DriveOptions *o, GError **errp)
{
    g_autofree char *name = protocol_of(o->file);
    const char *path = o->file;

    if (name && g_str_has_prefix(name, "null-") && driver_find(name)) {
        set_text(protocol, "driver", name);
        if (strcmp(o->file + strlen(name), "://") != 0) {
            err_set(errp, "'%s' takes nothing after '%s://'", o->file, name);
            return false;
        }
        return true;
    }
    if (name && strcmp(name, "file") != 0 && strcmp(name, "host_device") != 0) {
        err_set(errp, "Unknown protocol '%s' in file=%s (a path with a colon is written ./%s)",
                name, o->file, o->file);
        return false;
    }
    if (name) {
        path += strlen(name) + 1;
    }
    if (!json_object_object_get_ex(protocol, "driver", NULL)) {
        set_text(protocol, "driver", name ? name : path_is_device(path) ? "host_device" : "file");
    }
    set_text(protocol, "filename", path);
    return true;
}

/* What both the format and a protocol on its own may have. */
static void fill_base(JsonValue *node, const DriveOptions *o)
{
    JsonValue *cache = json_object_new_object();

    set_bool(cache, "direct", o->direct);
    set_bool(cache, "no-flush", o->no_flush);
    json_object_object_add(node, "cache", cache);
    set_bool(node, "read-only", o->read_only);
    if (!json_object_object_get_ex(node, "auto-read-only", NULL)) {
        set_bool(node, "auto-read-only", true);
    }
    set_text(node, "discard", o->discard);
}

static const BlockDriver *format_driver(const DriveOptions *o, const char **guessed,
                                        JsonValue *protocol, GError **errp)
{
    const char *format = o->format;
    const char *path = json_object_get_string(json_object_object_get(protocol, "filename"));
    const BlockDriver *drv;

    *guessed = NULL;
    if (!format) {
        format = path ? probe_file(path) : "raw";
        *guessed = path ? path : NULL;
    }
    drv = driver_find(format);
    if (!drv && *guessed) {
        err_set(errp, "'%s' is a %s image, a format that is not supported here (format=raw takes "
                "its bytes as they are)", path, format);
    } else if (!drv) {
        err_set(errp, "Unknown driver '%s'", format);
    }
    return drv;
}

/* From the keys that are left in @kv and what was taken; @guessed as above. */
static BlockdevOptions *as_blockdev(Keyval *kv, const DriveOptions *o, bool *guessed,
                                    GError **errp)
{
    JsonValue *node = kv->options, *protocol = NULL;
    const char *guessed_path = NULL;
    const BlockDriver *drv;

    if (!json_object_object_get_ex(node, "file", &protocol)) {
        protocol = json_object_new_object();
        json_object_object_add(node, "file", protocol);
    }
    if (!json_object_is_type(protocol, json_type_object)) {
        err_set(errp, "Parameter 'file' is given in two ways");
        return NULL;
    }
    if (o->file && !fill_protocol(protocol, o, errp)) {
        return NULL;
    }
    drv = format_driver(o, &guessed_path, protocol, errp);
    if (!drv) {
        return NULL;
    }
    *guessed = guessed_path != NULL;
    if (drv->is_protocol) {
        /* format= names the protocol: there is only one node. */
        json_object_object_foreach(protocol, key, value) {
            json_object_object_add(node, key, json_object_get(value));
        }
        protocol = node;
    } else if (json_object_object_length(protocol) == 0) {
        err_set(errp, "Parameter 'file' is missing");
        return NULL;
    }
    if (o->aio) {
        set_text(protocol, "aio", o->aio);
    }
    if (protocol == node) {
        json_object_object_del(node, "file");
    }
    set_text(node, "driver", drv->name);
    fill_base(node, o);
    return BlockdevOptions_from_json(node, true, errp);
}

static void warn_guessed(const DriveOptions *o)
{
    report_warning("no format= was given for '%s', and its content looks raw; writes to its first "
                   "sector that would look like another format are refused unless format=raw is "
                   "given", o->file ? o->file : o->drive->id);
}

static bool drive_open(Keyval *kv, DriveIf default_if, DriveOptions *o, GError **errp)
{
    g_autoptr(BlockdevOptions) opts = NULL;
    bool guessed = false;
    BlockNode *node;

    if (!take_all(kv, default_if, o, errp)) {
        return false;
    }
    opts = as_blockdev(kv, o, &guessed, errp);
    node = opts ? blockdev_open(opts, errp) : NULL;
    if (!node) {
        return false;
    }
    if (guessed && !node->flags.read_only) {
        raw_set_guessed(node);
        warn_guessed(o);
    }
    o->drive->node = node;
    o->drive->read_only = node->flags.read_only;
    return true;
}

bool drive_add_arg(const char *arg, DriveIf default_if, GError **errp)
{
    g_auto(Keyval) kv = { 0 };
    DriveOptions o = { .drive = g_new0(Drive, 1) };
    g_autofree char *rest = take_texts(arg, &o);
    bool ok;

    ok = keyval_parse(&kv, rest, NULL, KEYVAL_SHORT_BOOL, errp) &&
         drive_open(&kv, default_if, &o, errp);
    if (ok) {
        g_queue_insert_sorted(&drives, o.drive, drive_compare, NULL);
    } else {
        drive_free(o.drive);
    }
    g_free(o.file);
    g_free(o.format);
    g_free(o.aio);
    g_free(o.cache);
    g_free(o.discard);
    return ok;
}
