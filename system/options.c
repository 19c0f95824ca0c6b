/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line: the table, and options of one value. -machine, -m, -smp and
 * -name are in options-machine.c.
 */
#include <stdio.h>
#include <string.h>

#include "config-host.h"
#include "options-internal.h"
#include "trace/control.h"
#include "util/err.h"
#include "util/log.h"
#include "util/trace-opt.h"

const CmdlineOption option_table[] = {
    { "h", OPT_HELP, NULL, "print this text" },
    { "help", OPT_HELP, NULL, "the same" },
    { "version", OPT_VERSION, NULL, "print the version" },
    { "machine", OPT_MACHINE, "[type=]NAME[,accel=ACCEL]", "the machine (help: list them)" },
    { "M", OPT_MACHINE, "[type=]NAME[,accel=ACCEL]", "the same" },
    { "accel", OPT_ACCEL, "[accel=]NAME", "what runs guest code (help: list them)" },
    { "enable-kvm", OPT_ENABLE_KVM, NULL, "the same as -accel kvm" },
    { "cpu", OPT_CPU, "MODEL[,+FEATURE|,-FEATURE]...", "the CPU (help: list models, features)" },
    { "smp", OPT_SMP, "[cpus=]N[,maxcpus=N][,sockets=N][,cores=N][,threads=N]",
      "number of CPUs and where they stand; 1 by default" },
    { "m", OPT_M, "[size=]MEGS", "guest memory; suffixes M, G, ...; 128M by default" },
    { "name", OPT_NAME, "[guest=]NAME[,process=NAME][,debug-threads=on|off]",
      "name of the guest, of the process\ndebug-threads: name vCPU threads" },
    { "nodefaults", OPT_NODEFAULTS, NULL, "no default devices" },
    { "no-user-config", OPT_NO_USER_CONFIG, NULL, "read no configuration files (none are read)" },
    { "no-reboot", OPT_NO_REBOOT, NULL, "a reset of the guest ends the process" },
    { "nographic", OPT_NOGRAPHIC, NULL, "no display; the serial port on stdio, with Ctrl-A h" },
    { "display", OPT_DISPLAY, "none", "no display" },
    { "serial", OPT_SERIAL, "stdio|mon:stdio|file:PATH|null|none", "where COM1 goes" },
    { "monitor", OPT_MONITOR, "none", "no monitor" },
    { "kernel", OPT_KERNEL, "FILE", "kernel: a bzImage, or ELF with a PVH note" },
    { "initrd", OPT_INITRD, "FILE", "initial RAM disk" },
    { "append", OPT_APPEND, "TEXT", "command line of the kernel" },
    { "object", OPT_OBJECT, "TYPE[,id=ID][,PROPERTY=VALUE]...",
      "create an object (help, TYPE,help: list)" },
    { "blockdev", OPT_BLOCKDEV, "[driver=]DRIVER[,node-name=NAME][,OPTION=VALUE]...",
      "add a block node" },
    { "drive", OPT_DRIVE, "[file=FILE][,if=TYPE][,id=ID][,OPTION=VALUE]...",
      "add a disk" },
    { "device", OPT_DEVICE, "TYPE[,id=ID][,PROPERTY=VALUE]...",
      "add a device (help, TYPE,help: list)" },
    { "D", OPT_D, "FILE", "write the log to FILE instead of stderr" },
    { "d", OPT_LOG_ITEMS, "ITEM[,ITEM]...", "what to log (help: list items)" },
    { "msg", OPT_MSG, "timestamp=on|off", "time stamps in the log" },
    { "trace", OPT_TRACE, "[[enable=]PATTERN][,events=FILE][,file=FILE]",
      "switch trace events on (help: list them)" },
#ifdef CONFIG_QTEST
    { "qtest", OPT_QTEST, "unix:PATH|stdio", "where a test drives -accel qtest" },
#endif
    { "pidfile", OPT_PIDFILE, "FILE", "write the process id to FILE" },
    { 0 },
};

/* ---- help ---- */

static void print_and_free(GString *text)
{
    fputs(text->str, stdout);
    g_string_free(text, true);
}

static void print_usage(const char *program)
{
    GString *out = g_string_new(NULL);

    g_string_append_printf(out, "usage: %s -kernel FILE [option]...\n\n", program);
    cmdline_help(option_table, out);
    print_and_free(out);
}

static bool is_help(const char *arg)
{
    return strcmp(arg, "help") == 0 || strcmp(arg, "?") == 0;
}

/* "-device help", "-device TYPE,help" and the same of -object. */
static OptionsResult help_objects(const Options *o, ObjectTree *tree, OptionCode code,
                                  unsigned flags, const char *key, GError **errp)
{
    const CmdlineItem *item;

    for (size_t at = 0; (item = cmdline_find(o->cl, code, &at)) != NULL; ) {
        g_auto(Keyval) kv = { 0 };
        const ObjType *type;
        GString *out;

        if (is_help(item->arg)) {
            out = g_string_new(NULL);
            object_help_list(tree, flags, out);
            print_and_free(out);
            return OPTIONS_HELP;
        }
        /* what is malformed is reported when the option is obeyed */
        if (!keyval_parse(&kv, item->arg, key, KEYVAL_JSON, NULL) || !kv.help ||
            keyval_get(&kv, key) == NULL) {
            continue;
        }
        type = object_type_for_user(tree, keyval_get(&kv, key), flags, errp);
        if (type == NULL) {
            return OPTIONS_BAD;
        }
        out = g_string_new(NULL);
        object_help_type(type, out);
        print_and_free(out);
        return OPTIONS_HELP;
    }
    return OPTIONS_OK;
}

/* "-machine help", "-machine pc,help". */
static OptionsResult help_machine(const Options *o)
{
    const CmdlineItem *item;

    for (size_t at = 0; (item = cmdline_find(o->cl, OPT_MACHINE, &at)) != NULL; ) {
        g_auto(Keyval) kv = { 0 };

        if (is_help(item->arg)) {
            machine_type_help();
            return OPTIONS_HELP;
        }
        if (keyval_parse(&kv, item->arg, "type", 0, NULL) && kv.help) {
            printf("%s options:\n  accel=<str>            - what runs guest code\n",
                   keyval_get(&kv, "type") != NULL ? keyval_get(&kv, "type") :
                   machine_type_default()->name);
            return OPTIONS_HELP;
        }
    }
    return OPTIONS_OK;
}

static OptionsResult help_simple(const Options *o)
{
    const CmdlineItem *item = cmdline_last(o->cl, OPT_ACCEL);

    if (item != NULL && is_help(item->arg)) {
        accel_help();
        return OPTIONS_HELP;
    }
    item = cmdline_last(o->cl, OPT_CPU);
    if (item != NULL && is_help(item->arg)) {
        GString *out = g_string_new(NULL);

        cpu_model_help(out);
        print_and_free(out);
        return OPTIONS_HELP;
    }
    item = cmdline_last(o->cl, OPT_LOG_ITEMS);
    if (item != NULL && is_help(item->arg)) {
        log_print_help(stdout);
        return OPTIONS_HELP;
    }
    item = cmdline_last(o->cl, OPT_TRACE);
    if (item != NULL && trace_opt_is_help(item->arg)) {
        trace_list_events(stdout);
        return OPTIONS_HELP;
    }
    return OPTIONS_OK;
}

static OptionsResult help(const Options *o, ObjectTree *tree, const char *program, GError **errp)
{
    OptionsResult r;

    if (cmdline_last(o->cl, OPT_HELP) != NULL) {
        print_usage(program);
        return OPTIONS_HELP;
    }
    if (cmdline_last(o->cl, OPT_VERSION) != NULL) {
        printf("QEMU emulator version %s\n", QEMU_VERSION);
        return OPTIONS_HELP;
    }
    r = help_machine(o);
    if (r == OPTIONS_OK) {
        r = help_simple(o);
    }
    if (r == OPTIONS_OK) {
        r = help_objects(o, tree, OPT_OBJECT, OBJ_USER_CREATABLE, "qom-type", errp);
    }
    if (r == OPTIONS_OK) {
        r = help_objects(o, tree, OPT_DEVICE, OBJ_DEVICE, "driver", errp);
    }
    return r;
}

/* ---- one value each ---- */

static const char *last_arg(const Options *o, OptionCode code)
{
    const CmdlineItem *item = cmdline_last(o->cl, code);

    return item != NULL ? item->arg : NULL;
}

static bool has(const Options *o, OptionCode code)
{
    return cmdline_last(o->cl, code) != NULL;
}

/* Options that may only ask for what is so anyway. */
static bool check_only(const Options *o, OptionCode code, const char *name, const char *allowed,
                       GError **errp)
{
    const CmdlineItem *item;

    for (size_t at = 0; (item = cmdline_find(o->cl, code, &at)) != NULL; ) {
        if (strcmp(item->arg, allowed) != 0) {
            err_set(errp, "-%s %s: only '%s' is possible", name, item->arg, allowed);
            return false;
        }
    }
    return true;
}

static bool check_words(const Options *o, GError **errp)
{
    for (size_t i = 0; i < o->cl->count; i++) {
        if (o->cl->items[i].option == NULL) {
            err_set(errp, "'%s' is not an option; disks are given with -drive or -blockdev",
                    o->cl->items[i].arg);
            return false;
        }
    }
    return true;
}

static bool parse_serial(Options *o, GError **errp)
{
    const CmdlineItem *item;
    unsigned n = 0;

    for (size_t at = 0; (item = cmdline_find(o->cl, OPT_SERIAL, &at)) != NULL; n++) {
        o->serial = item->arg;
    }
    if (n > 1) {
        err_set(errp, "-serial was given %u times; there is one serial port", n);
        return false;
    }
    return true;
}

static bool parse_log(const Options *o, GError **errp)
{
    const CmdlineItem *item;
    const char *d = last_arg(o, OPT_D);
    const char *msg = last_arg(o, OPT_MSG);

    if (msg != NULL) {
        g_auto(Keyval) kv = { 0 };

        if (!keyval_parse(&kv, msg, "timestamp", KEYVAL_SHORT_BOOL, errp) ||
            !options_parse_msg(&kv, errp)) {
            return false;
        }
    }
    for (size_t at = 0; (item = cmdline_find(o->cl, OPT_LOG_ITEMS, &at)) != NULL; ) {
        if (!log_parse_items(item->arg, errp)) {
            err_prepend(errp, "-d: ");
            return false;
        }
    }
    for (size_t at = 0; (item = cmdline_find(o->cl, OPT_TRACE, &at)) != NULL; ) {
        if (!trace_opt_parse(item->arg, errp)) {
            err_prepend(errp, "-trace: ");
            return false;
        }
    }
    return d == NULL || log_open(d, errp);
}

static bool parse_boot(Options *o, GError **errp)
{
    o->kernel = last_arg(o, OPT_KERNEL);
    o->initrd = last_arg(o, OPT_INITRD);
    o->append = last_arg(o, OPT_APPEND);
    if (o->kernel == NULL && (o->initrd != NULL || o->append != NULL)) {
        err_set(errp, "%s needs -kernel", o->initrd != NULL ? "-initrd" : "-append");
        return false;
    }
    return true;
}

static bool parse_all(Options *o, GError **errp)
{
    o->nographic = has(o, OPT_NOGRAPHIC);
    o->nodefaults = has(o, OPT_NODEFAULTS);
    o->no_reboot = has(o, OPT_NO_REBOOT);
    o->pidfile = last_arg(o, OPT_PIDFILE);
    o->qtest = last_arg(o, OPT_QTEST);
    return check_words(o, errp) &&
           check_only(o, OPT_DISPLAY, "display", "none", errp) &&
           check_only(o, OPT_MONITOR, "monitor", "none", errp) &&
           options_parse_machine(o, errp) &&
           options_parse_memory(o, last_arg(o, OPT_M), errp) &&
           options_parse_smp(o, last_arg(o, OPT_SMP), errp) &&
           options_parse_name(o, last_arg(o, OPT_NAME), errp) &&
           (o->cpu_model = cpu_model_parse(last_arg(o, OPT_CPU), errp)) != NULL &&
           parse_serial(o, errp) && parse_boot(o, errp) && parse_log(o, errp);
}

OptionsResult options_parse(Options *o, ObjectTree *tree, int argc, char **argv, GError **errp)
{
    OptionsResult r;

    o->cl = cmdline_parse(option_table, argc, argv, errp);
    if (o->cl == NULL) {
        return OPTIONS_BAD;
    }
    r = help(o, tree, argv[0], errp);
    if (r != OPTIONS_OK) {
        return r;
    }
    return parse_all(o, errp) ? OPTIONS_OK : OPTIONS_BAD;
}

void options_clear(Options *o)
{
    g_clear_pointer(&o->cl, cmdline_free);
    g_clear_pointer(&o->cpu_model, cpu_model_free);
    g_clear_pointer(&o->guest_name, g_free);
    g_clear_pointer(&o->process_name, g_free);
}
