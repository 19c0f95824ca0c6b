/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Image formats by what stands at their beginning. We open none of them yet by
 * guess; it is known so that a guest's own bytes are never mistaken for one and
 * an image of another format isn't taken for raw.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blockdev-int.h"

typedef struct Magic {
    const char *format;
    uint16_t offset;
    uint16_t bytes;
    const char *magic;
} Magic;

/* From each format's own specification. */
static const Magic magics[] = {
    { "qcow2", 0, 4, "QFI\xfb" },       /* and version 1, qcow */
    { "qed", 0, 4, "QED\0" },
    { "vmdk", 0, 4, "KDMV" },
    { "vmdk", 0, 4, "COWD" },
    { "vmdk", 0, 21, "# Disk DescriptorFile" },
    { "vdi", 64, 4, "\x7f\x10\xda\xbe" },
    { "vhdx", 0, 8, "vhdxfile" },
    { "vpc", 0, 8, "conectix" },
    { "parallels", 0, 16, "WithoutFreeSpace" },
    { "parallels", 0, 16, "WithouFreSpacExt" },
    { "bochs", 0, 22, "Bochs Virtual HD Image" },
    { "luks", 0, 6, "LUKS\xba\xbe" },
};

const char *probe_format(const uint8_t *buf, size_t bytes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(magics); i++) {
        const Magic *m = &magics[i];

        if ((size_t)m->offset + m->bytes <= bytes &&
            memcmp(buf + m->offset, m->magic, m->bytes) == 0) {
            return m->format;
        }
    }
    return "raw";
}

const char *probe_file(const char *path)
{
    uint8_t buf[PROBE_BYTES];
    struct stat st;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0) {
        if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))) {
            do {
                n = pread(fd, buf, sizeof(buf), 0);
            } while (n < 0 && errno == EINTR);
        }
        close(fd);
    }
    return n > 0 ? probe_format(buf, n) : "raw";
}
