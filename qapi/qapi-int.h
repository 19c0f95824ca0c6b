/*
 * What the interpreters of type tables share.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QAPI_QAPI_INT_H
#define QAPI_QAPI_INT_H

#include "qapi/qapi.h"

/* Does a struct or list hold a pointer to it, that NULL means absent? */
bool qapi_is_pointed_to(const QapiType *type);

/* The type of a union's branch that its tag selects; NULL: no members. */
const QapiType *qapi_branch(const QapiType *type, const void *object);

/* The branch that an alternate is. */
const QapiMember *qapi_alternative(const QapiType *type, const void *alternate);

/* Is the member of this object there? */
bool qapi_is_present(const QapiMember *member, const void *object);

#endif
