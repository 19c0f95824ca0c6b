/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between options.c and options-machine.c. */
#ifndef SYSTEM_OPTIONS_INTERNAL_H
#define SYSTEM_OPTIONS_INTERNAL_H

#include "options.h"

/* -machine, -accel, -enable-kvm */
bool options_parse_machine(Options *o, GError **errp);
/* @arg: the option's, NULL when it wasn't given. After options_parse_machine(). */
bool options_parse_memory(Options *o, const char *arg, GError **errp);
bool options_parse_smp(Options *o, const char *arg, GError **errp);
bool options_parse_name(Options *o, const char *arg, GError **errp);
bool options_parse_msg(Keyval *kv, GError **errp);

#endif
