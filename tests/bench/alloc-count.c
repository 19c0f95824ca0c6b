/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into a VMM (LD_PRELOAD), counts per thread what it takes from the heap and from the
 * kernel: malloc, calloc, realloc, memalign and its kin, and mmap. The counters live in the file
 * that ALLOC_COUNT_FILE names, which whoever started the VMM maps and reads while it runs; the
 * reader is tests/bench/benchlib/allocs.py and knows this layout.
 *
 * The wrapped functions are glibc's own under their second names, so that nothing has to be looked
 * up (looking up allocates).
 */
#undef _FILE_OFFSET_BITS            /* it renames mmap, which is wrapped here by its own name */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_THREADS 512         /* those that come later share the last slot */

/* One thread's. Written by that thread alone, but for the shared last slot. */
typedef struct Slot {
    _Atomic uint64_t tid;
    _Atomic uint64_t heap;      /* calls that may allocate */
    _Atomic uint64_t maps;      /* mmap */
    uint64_t pad[5];            /* a cache line each */
} Slot;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static Slot *slots;             /* NULL until the file is mapped: nothing is counted */
static _Atomic uint32_t used;
/* initial-exec: the first access in a thread must not allocate */
static __thread Slot *mine __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("ALLOC_COUNT_FILE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p;

    if (fd < 0) {
        return;
    }
    if (ftruncate(fd, sizeof(Slot) * MAX_THREADS) == 0) {
        p = (void *)syscall(SYS_mmap, NULL, sizeof(Slot) * MAX_THREADS, PROT_READ | PROT_WRITE,
                            MAP_SHARED, fd, 0);
        if (p != MAP_FAILED) {
            slots = p;
        }
    }
    close(fd);
}

static Slot *slot(void)
{
    if (mine == NULL && slots != NULL) {
        uint32_t i = atomic_fetch_add(&used, 1);

        mine = &slots[i < MAX_THREADS ? i : MAX_THREADS - 1];
        atomic_store(&mine->tid, (uint64_t)syscall(SYS_gettid));
    }
    return mine;
}

static void count_heap(void)
{
    Slot *s = slot();

    if (s != NULL) {
        atomic_fetch_add_explicit(&s->heap, 1, memory_order_relaxed);
    }
}

void *malloc(size_t size)
{
    count_heap();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count_heap();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    count_heap();
    return __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}

void *memalign(size_t align, size_t size)
{
    count_heap();
    return __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    void *p;

    if (align % sizeof(void *) != 0 || (align & (align - 1)) != 0 || align == 0) {
        return EINVAL;
    }
    p = memalign(align, size);
    if (p == NULL) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    Slot *s = slot();

    if (s != NULL) {
        atomic_fetch_add_explicit(&s->maps, 1, memory_order_relaxed);
    }
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t offset)
{
    return mmap(addr, len, prot, flags, fd, offset);
}
