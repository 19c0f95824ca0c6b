/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory: what the loader told us, a bump allocator above the guest's own image, and mappings of
 * device memory above 4 GiB. Addresses are physical and virtual at once.
 */
#ifndef GUEST_MEM_H
#define GUEST_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Find free RAM. Returns the loader's command line ("" if it gave none); valid until the next
 * run. */
const char *mem_init(void);

/* Zeroed memory, @align a power of two. Ends the guest with a message when there is no more. */
void *mem_alloc(size_t size, size_t align);

/* Everything allocated since mem_mark() is free again. */
uint64_t mem_mark(void);
void mem_release(uint64_t mark);

/* End of the RAM region that the guest lives in, for tests that need an address outside RAM. */
uint64_t mem_end(void);

/* Make [@addr, @addr + @len) accessible. */
void map_phys(uint64_t addr, uint64_t len);

#endif
