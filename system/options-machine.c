/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -machine, -accel, -m, -smp, -name, -msg.
 */
#include <string.h>

#include "options-internal.h"
#include "trace/log-sink.h"
#include "util/err.h"
#include "util/scalar.h"

#define CPUS_MAX 255                    /* what 8-bit APIC IDs and the MADT can name */

/* ---- pieces ---- */

/* An on/off member of @kv, taken out of it. Absent: @value stays. */
static bool take_bool(Keyval *kv, const char *option, const char *key, bool *value, GError **errp)
{
    g_autofree char *text = keyval_take(kv, key);

    if (text != NULL && !scalar_parse_bool(text, value)) {
        err_set(errp, "%s: '%s=%s' is neither on nor off", option, key, text);
        return false;
    }
    return true;
}

/* A positive number, taken out of @kv. Absent: 0. */
static bool take_count(Keyval *kv, const char *option, const char *key, unsigned *value,
                       GError **errp)
{
    g_autofree char *text = keyval_take(kv, key);
    uint64_t n;

    *value = 0;
    if (text == NULL) {
        return true;
    }
    if (!scalar_parse_u64(text, &n) || n < 1 || n > 65535) {
        err_set(errp, "%s: '%s=%s' is not a number from 1 on", option, key, text);
        return false;
    }
    *value = n;
    return true;
}

static bool take_nothing_else(const Keyval *kv, const char *option, const char *const *known,
                              GError **errp)
{
    if (kv->help) {
        err_set(errp, "%s: 'help' among its parameters; -help describes the option", option);
        return false;
    }
    if (!keyval_check_empty(kv, known, errp)) {
        err_prepend(errp, "%s: ", option);
        return false;
    }
    return true;
}

/* ---- -machine, -accel ---- */

static bool accel_set(Options *o, const char *name, GError **errp)
{
    o->accel = accel_find(name, errp);
    return o->accel != NULL;
}

static bool machine_item(Options *o, const char *arg, GError **errp)
{
    static const char *const known[] = { "type", "accel", NULL };
    g_auto(Keyval) kv = { 0 };
    g_autofree char *type = NULL;
    g_autofree char *accel = NULL;

    if (!keyval_parse(&kv, arg, "type", 0, errp)) {
        err_prepend(errp, "-machine: ");
        return false;
    }
    type = keyval_take(&kv, "type");
    accel = keyval_take(&kv, "accel");
    if (type != NULL) {
        o->machine = machine_type_find(type, errp);
        if (o->machine == NULL) {
            return false;
        }
    }
    return (accel == NULL || accel_set(o, accel, errp)) &&
           take_nothing_else(&kv, "-machine", known, errp);
}

static bool accel_item(Options *o, const char *arg, GError **errp)
{
    static const char *const known[] = { "accel", NULL };
    g_auto(Keyval) kv = { 0 };
    g_autofree char *name = NULL;

    if (!keyval_parse(&kv, arg, "accel", 0, errp)) {
        err_prepend(errp, "-accel: ");
        return false;
    }
    name = keyval_take(&kv, "accel");
    if (name == NULL) {
        err_set(errp, "-accel: which one?");
        return false;
    }
    return accel_set(o, name, errp) && take_nothing_else(&kv, "-accel", known, errp);
}

bool options_parse_machine(Options *o, GError **errp)
{
    const CmdlineItem *item;

    o->machine = machine_type_default();
    for (size_t at = 0; (item = cmdline_find(o->cl, OPT_MACHINE, &at)) != NULL; ) {
        if (!machine_item(o, item->arg, errp)) {
            return false;
        }
    }
    for (size_t at = 0; (item = cmdline_find(o->cl, OPT_ACCEL, &at)) != NULL; ) {
        if (!accel_item(o, item->arg, errp)) {
            return false;
        }
    }
    if (cmdline_last(o->cl, OPT_ENABLE_KVM) != NULL && o->accel == NULL) {
        return accel_set(o, "kvm", errp);
    }
    return o->accel != NULL || accel_set(o, "kvm", errp);
}

/* ---- -m ---- */

bool options_parse_memory(Options *o, const char *arg, GError **errp)
{
    static const char *const known[] = { "size", NULL };
    const MachineType *t = o->machine;
    g_auto(Keyval) kv = { 0 };
    g_autofree char *size = NULL;

    o->ram_size = t->ram_default;
    if (arg == NULL) {
        return true;
    }
    if (!keyval_parse(&kv, arg, "size", 0, errp)) {
        err_prepend(errp, "-m: ");
        return false;
    }
    size = keyval_take(&kv, "size");
    if (size != NULL && !scalar_parse_size(size, 'M', &o->ram_size)) {
        err_set(errp, "-m: '%s' is not a size", size);
        return false;
    }
    o->ram_size = o->ram_size + 4095 >= o->ram_size ? (o->ram_size + 4095) & ~4095ull :
                  UINT64_MAX;
    if (o->ram_size < t->ram_min || o->ram_size > t->ram_max) {
        err_set(errp, "-m: '%s': machine %s can have %" G_GUINT64_FORMAT " MiB to %"
                G_GUINT64_FORMAT " GiB of memory", size != NULL ? size : arg, t->name,
                t->ram_min >> 20, t->ram_max >> 30);
        return false;
    }
    return take_nothing_else(&kv, "-m", known, errp);
}

/* ---- -smp ---- */

/*
 * What isn't given is computed: cores are preferred to sockets, those to
 * threads.
 */
static void topology_complete(Options *o, unsigned total)
{
    if (o->threads == 0) {
        o->threads = 1;
    }
    if (total == 0) {
        total = MAX(o->sockets, 1) * MAX(o->cores, 1) * o->threads;
    }
    if (o->cores == 0) {
        o->sockets = MAX(o->sockets, 1);
        o->cores = MAX(total / (o->sockets * o->threads), 1);
    } else if (o->sockets == 0) {
        o->sockets = MAX(total / (o->cores * o->threads), 1);
    }
    o->cpus = total;
}

static bool topology_check(const Options *o, unsigned maxcpus, GError **errp)
{
    uint64_t product = (uint64_t)o->sockets * o->cores * o->threads;
    VmConfig cfg = { .cpus = o->cpus, .sockets = o->sockets, .cores = o->cores,
                     .threads = o->threads };

    if (product != o->cpus) {
        err_set(errp, "-smp: sockets (%u) * cores (%u) * threads (%u) is not cpus (%u)",
                o->sockets, o->cores, o->threads, o->cpus);
        return false;
    }
    if (o->cpus > CPUS_MAX || cpu_apic_id(&cfg, o->cpus - 1) >= CPUS_MAX) {
        err_set(errp, "-smp: %u CPUs in this arrangement; APIC IDs below %u are possible",
                o->cpus, CPUS_MAX);
        return false;
    }
    if (maxcpus != 0 && maxcpus != o->cpus) {
        err_set(errp, "-smp: maxcpus=%u: CPUs can't be added later, so it must be cpus (%u)",
                maxcpus, o->cpus);
        return false;
    }
    return true;
}

bool options_parse_smp(Options *o, const char *arg, GError **errp)
{
    static const char *const known[] = {
        "cpus", "maxcpus", "sockets", "cores", "threads", "dies", "clusters", NULL
    };
    g_auto(Keyval) kv = { 0 };
    unsigned cpus, maxcpus, dies, clusters;

    if (!keyval_parse(&kv, arg != NULL ? arg : "1", "cpus", 0, errp)) {
        err_prepend(errp, "-smp: ");
        return false;
    }
    if (!take_count(&kv, "-smp", "cpus", &cpus, errp) ||
        !take_count(&kv, "-smp", "maxcpus", &maxcpus, errp) ||
        !take_count(&kv, "-smp", "sockets", &o->sockets, errp) ||
        !take_count(&kv, "-smp", "cores", &o->cores, errp) ||
        !take_count(&kv, "-smp", "threads", &o->threads, errp) ||
        !take_count(&kv, "-smp", "dies", &dies, errp) ||
        !take_count(&kv, "-smp", "clusters", &clusters, errp) ||
        !take_nothing_else(&kv, "-smp", known, errp)) {
        return false;
    }
    if (dies > 1 || clusters > 1) {
        err_set(errp, "-smp: %s=%u: only 1 is possible", dies > 1 ? "dies" : "clusters",
                dies > 1 ? dies : clusters);
        return false;
    }
    if ((uint64_t)MAX(o->sockets, 1) * MAX(o->cores, 1) * MAX(o->threads, 1) > 65535) {
        err_set(errp, "-smp: too many CPUs");
        return false;
    }
    topology_complete(o, cpus != 0 ? cpus : maxcpus);
    return topology_check(o, maxcpus, errp);
}

/* ---- -name, -msg ---- */

bool options_parse_name(Options *o, const char *arg, GError **errp)
{
    static const char *const known[] = { "guest", "process", "debug-threads", NULL };
    g_auto(Keyval) kv = { 0 };

    if (arg == NULL) {
        return true;
    }
    if (!keyval_parse(&kv, arg, "guest", KEYVAL_SHORT_BOOL, errp)) {
        err_prepend(errp, "-name: ");
        return false;
    }
    o->guest_name = keyval_take(&kv, "guest");
    o->process_name = keyval_take(&kv, "process");
    return take_bool(&kv, "-name", "debug-threads", &o->debug_threads, errp) &&
           take_nothing_else(&kv, "-name", known, errp);
}

bool options_parse_msg(Keyval *kv, GError **errp)
{
    static const char *const known[] = { "timestamp", NULL };
    bool on = true;

    if (!take_bool(kv, "-msg", "timestamp", &on, errp) ||
        !take_nothing_else(kv, "-msg", known, errp)) {
        return false;
    }
    log_sink_set_timestamps(on);
    return true;
}
