/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images that grow while they are in use. Main thread. */
#ifndef BLOCK_GROWTH_H
#define BLOCK_GROWTH_H

/* How many more users (or fewer, below 0) want to know. */
void growth_watch(int users);

#endif
