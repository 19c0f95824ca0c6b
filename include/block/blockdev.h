/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block nodes as users ask for them: -blockdev and -drive.
 * Main thread, all of it.
 */
#ifndef BLOCK_BLOCKDEV_H
#define BLOCK_BLOCKDEV_H

#include <glib.h>
#include <stdbool.h>

#include "qapi/block-types.h"

/*
 * The argument of -blockdev, key=value,... or JSON. On failure nothing was
 * added and *errp says why in one line.
 */
bool blockdev_add_arg(const char *arg, GError **errp);
/* The same of what was read already. */
bool blockdev_add(const BlockdevOptions *opts, GError **errp);

typedef enum DriveIf {
    DRIVE_IF_NONE,                      /* waits for a -device with drive=ID */
    DRIVE_IF_VIRTIO,                    /* the machine adds the device */
} DriveIf;

/* One -drive. Strings and the drive stay until blockdev_close_all(). */
typedef struct Drive {
    char *id;                           /* for drive= */
    DriveIf interface;
    int index;                          /* among those of its interface, unique */
    bool read_only;
    bool write_cache;                   /* cache=: the device's default */
    BlockdevOnError rerror, werror;     /* auto: not given */
    struct BlockNode *node;
} Drive;

/* The argument of -drive. Without if= the interface is @default_if. */
bool drive_add_arg(const char *arg, DriveIf default_if, GError **errp);
/* The next one after @drive, or the first for NULL, in the order of index within an
 * interface; NULL: no more. */
const Drive *drive_next(const Drive *drive);
/* By ID; NULL: there is none. */
const Drive *drive_find(const char *id);

/* When the devices are gone: close all nodes and forget all drives. */
void blockdev_close_all(void);

#endif
