/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"

#include <fcntl.h>
#include <unistd.h>

#include "trace/control.h"
#include "util/bql.h"
#include "util/err.h"
#include "vm.h"

/* A descriptor that we open must not become the standard output of messages or of COM1. */
static void standard_fds_fill(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GError) err = NULL;
    Options options = { 0 };
    SystemVm vm = { 0 };
    ObjectTree *tree;
    OptionsResult parsed;
    int status = 1;

    standard_fds_fill();
    report_set_progname(argv[0]);
    tree = system_object_tree();
    parsed = options_parse(&options, tree, argc, argv, &err);
    if (parsed == OPTIONS_HELP) {
        status = 0;
    }
    if (parsed != OPTIONS_OK || !trace_start(&err) || !signals_init(&err)) {
        object_tree_free(tree);
        goto out;
    }
    bql_lock();
    if (vm_start(&vm, &options, tree, &err)) {
        status = vm_run(&vm);
    }
    vm_stop(&vm);
    bql_unlock();
    trace_stop();
out:
    if (err != NULL) {
        report_error_gerror(err);
    }
    options_clear(&options);
    return status;
}
