/*
 * Object model: what users create, configure, look at and tune by name.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A type is a const ObjType with a const table of properties. main() gives
 * the list of all types to object_tree_new(); from these tables come
 * -object, -device, their help, and the monitors' view. An instance is a
 * struct whose first member is its parent type's instance, and at the very
 * beginning an Object:
 *
 *     typedef struct IOThread { Object obj; int64_t poll_max_ns; ... } IOThread;
 *
 * Life: object_new() (zeroed, init, defaults) -> object_set*() ->
 * object_realize() (may fail) -> in use, LIVE properties may change ->
 * object_unrealize() -> last object_unref() (finalize).
 *
 * Thread: the main thread, under the BQL. Only object_ref() and
 * object_unref() are safe elsewhere, and the last unref must be in the main
 * thread. Nothing on the request path looks anything up here.
 */
#ifndef UTIL_OBJECT_H
#define UTIL_OBJECT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/enum.h"
#include "util/json.h"

typedef struct Object Object;
typedef struct ObjectTree ObjectTree;
typedef struct ObjType ObjType;
typedef struct ObjProp ObjProp;
typedef struct PropType PropType;

/* A parsed value on its way to an object. Which member: see the PropType. */
typedef struct PropValue {
    union {
        bool b;
        uint64_t u;
        int64_t i;
        int e;
        char *s;                /* NULL: not set */
        Object *link;           /* NULL: not set; no reference held */
        JsonValue *json;
    };
} PropValue;

enum {
    PROP_LIVE = 1 << 0,         /* may be set while the object is realized */
    PROP_READ_ONLY = 1 << 1,    /* never set by users; has .get */
    PROP_MANDATORY = 1 << 2,    /* realize fails unless it was set */
    PROP_HIDDEN = 1 << 3,       /* not in help texts */
};

struct ObjProp {
    const char *name;           /* as typed; NULL ends a table */
    const PropType *type;
    size_t offset;              /* PROP_FIELD() */
    size_t field_size;          /* 0: no field, .get (and .set) instead */
    unsigned flags;
    int64_t min;                /* numbers; both 0: all that fit the type */
    uint64_t max;
    const char *def;            /* default as a user would type it, or NULL */
    const char *help;
    const EnumTable *names;     /* prop_enum */
    const char *link_type;      /* prop_link: the target's type */

    /*
     * May refuse a value before anything changes. @value is only lent.
     * NULL: the type's own checks and the range suffice.
     */
    bool (*check)(Object *obj, const ObjProp *prop, const PropValue *value,
                  GError **errp);
    /* The field of a realized object was changed: put it into effect. */
    void (*changed)(Object *obj, const ObjProp *prop);
    /* Without a field. get fills @value with what obj keeps (s, json: a
     * copy for the caller to release); set may fail and then changes nothing. */
    bool (*set)(Object *obj, const ObjProp *prop, const PropValue *value,
                GError **errp);
    void (*get)(Object *obj, const ObjProp *prop, PropValue *value);
};

#define PROP_FIELD(type_, member_) \
    .offset = offsetof(type_, member_), \
    .field_size = sizeof(((type_ *)0)->member_)

/*
 * How a kind of value is parsed, printed and kept. Floors above may add
 * their own (a PCI address, say).
 */
struct PropType {
    const char *name;           /* in help and qom-list */
    size_t field_size;
    int64_t min;                /* natural range, for numbers */
    uint64_t max;
    /* Text of key=value options. */
    bool (*from_text)(Object *obj, const ObjProp *prop, const char *text,
                      PropValue *value, GError **errp);
    /* Typed JSON; or, when @texts is true, arrays and objects whose leaves
     * are the strings of key=value options. */
    bool (*from_json)(Object *obj, const ObjProp *prop, JsonValue *json,
                      bool texts, PropValue *value, GError **errp);
    JsonValue *(*to_json)(const ObjProp *prop, const PropValue *value);
    void (*load)(const void *field, PropValue *value);  /* borrows */
    void (*store)(Object *obj, void *field, PropValue *value); /* moves in */
    void (*release)(PropValue *value);                  /* NULL: nothing */
};

/* Fields: bool; the integers; size: uint64_t. */
extern const PropType prop_bool, prop_u8, prop_u16, prop_u32, prop_u64;
extern const PropType prop_i32, prop_i64, prop_size, prop_size32;
extern const PropType prop_str;             /* char *, owned */
extern const PropType prop_enum;            /* int; .names */
extern const PropType prop_on_off_auto;     /* int, an OnOffAuto */
extern const PropType prop_link;            /* Object *, referenced; .link_type */
extern const PropType prop_json;            /* JsonValue *, owned; array or object */

/* For .check: zero or a power of two. */
bool prop_check_power_of_two(Object *obj, const ObjProp *prop,
                             const PropValue *value, GError **errp);

enum {
    OBJ_ABSTRACT = 1 << 0,      /* only a base of others */
    OBJ_USER_CREATABLE = 1 << 1,    /* by -object */
    OBJ_DEVICE = 1 << 2,        /* by -device */
    OBJ_HOTPLUG = 1 << 3,       /* a device that comes and goes at run time */
};

struct ObjType {
    const char *name;           /* as typed, underscores, dots and all */
    const char *alias;          /* another name for it, or NULL */
    const ObjType *parent;      /* NULL: directly an Object */
    const char *desc;           /* one line for help, or NULL */
    const char *category;       /* devices: heading in -device help */
    const char *bus;            /* devices: bus name in -device help */
    size_t size;                /* bytes of an instance */
    unsigned flags;             /* not inherited */
    const ObjProp *props;       /* or NULL. One named like a base's hides it */
    const void *class_data;     /* for those who know the type; see object_class_data() */

    /* Hooks, each optional. "Down" is from base to leaf, "up" the reverse. */
    void (*init)(Object *obj);                      /* down, before defaults */
    bool (*check)(Object *obj, GError **errp);      /* down: cross-checks, no effects */
    bool (*realize)(Object *obj, GError **errp);    /* down */
    /*
     * Up, after every realize: a base does here what needs its leaf ready
     * (BARs laid out, device put on its bus).
     */
    bool (*complete)(Object *obj, GError **errp);
    /* Up. Undoes realize and complete; complete may not have run. A realize
     * that failed cleans up after itself. */
    void (*unrealize)(Object *obj);
    void (*finalize)(Object *obj);                  /* up; fields are freed after it */
    bool (*can_delete)(Object *obj, GError **errp); /* object-del; NULL: yes */
};

struct Object {
    const ObjType *type;
    ObjectTree *tree;
    char *id;                   /* NULL: none */
    Object *parent;             /* where it hangs in the tree, or NULL */
    char *name;                 /* under the parent */
    GPtrArray *children;        /* Object *, referenced; NULL: none */
    GPtrArray *given;           /* const ObjProp *, those set explicitly */
    int refs;                   /* atomic */
    int links;                  /* prop_link fields that point here */
    bool realized;
};

/* ---- the tree ---------------------------------------------------------- */

/*
 * @types is borrowed for the tree's lifetime. Every table is checked, and a
 * mistake in one aborts. The containers /objects, /machine,
 * /machine/peripheral, /machine/peripheral-anon and /machine/unattached
 * exist from the start.
 */
ObjectTree *object_tree_new(const ObjType *const *types, size_t count);
/* Detaches everything, last attached first; there must be no links left. */
void object_tree_free(ObjectTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ObjectTree, object_tree_free)

/* By name or alias, or NULL. */
const ObjType *object_type_find(ObjectTree *tree, const char *name);
/* Calls @fn for every type, sorted by name; @flags: only those with all of them. */
void object_type_foreach(ObjectTree *tree, unsigned flags,
                         void (*fn)(const ObjType *type, void *opaque),
                         void *opaque);
bool object_type_is_a(const ObjType *type, const char *ancestor);
/* The nearest class_data from @type towards its base, or NULL. */
const void *object_class_data(const ObjType *type);

/* A property of @type or its bases, or NULL. */
const ObjProp *object_type_prop(const ObjType *type, const char *name);
/* All properties, leaf's first, without the hidden (overridden) ones. */
void object_type_prop_foreach(const ObjType *type,
                              void (*fn)(const ObjProp *prop, void *opaque),
                              void *opaque);
/* "uint16", "OnOffAuto", "link<iothread>". */
char *object_prop_type_name(const ObjProp *prop);
/* The default as JSON; NULL when there is none. The caller owns it. */
JsonValue *object_prop_default(const ObjProp *prop);

/* The container at an absolute path, made if missing. Borrowed. */
Object *object_container(ObjectTree *tree, const char *path);

/*
 * Hang @obj under @parent; takes a reference. Fails when the name is taken.
 * @name may end in "[*]": the star becomes the first free number.
 */
bool object_attach(Object *parent, const char *name, Object *obj, GError **errp);
/* Take it out again and drop that reference. */
void object_detach(Object *obj);

/* Below @parent by @name, or NULL. Borrowed. */
Object *object_child(Object *parent, const char *name);
/* /objects/@id, or NULL. Borrowed. */
Object *object_find_user(ObjectTree *tree, const char *id);
/* /machine/peripheral/@id, or NULL. Borrowed. */
Object *object_find_device(ObjectTree *tree, const char *id);
/* An absolute path or the last part of one that is unique. Borrowed. */
Object *object_resolve(ObjectTree *tree, const char *path, GError **errp);
/* The absolute path of an attached object, NULL otherwise. */
char *object_path(const Object *obj);

/* ---- objects ----------------------------------------------------------- */

/*
 * A new object with its defaults, attached nowhere. The caller owns the
 * reference. @id may be NULL. Fails for an abstract type and a malformed id.
 */
Object *object_new(ObjectTree *tree, const ObjType *type, const char *id,
                   GError **errp);
Object *object_ref(Object *obj);
void object_unref(Object *obj);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Object, object_unref)

/* Set one property from text as typed, or from a typed JSON value. */
bool object_set_text(Object *obj, const char *name, const char *text,
                     GError **errp);
bool object_set_json(Object *obj, const char *name, JsonValue *value,
                     GError **errp);
/*
 * Set all of @options, a JSON object. @texts: its leaves are strings, from
 * key=value. Stops at the first that fails; the object is then good for
 * nothing but object_unref().
 */
bool object_set_all(Object *obj, JsonValue *options, bool texts, GError **errp);
/* The value as JSON (NULL without an error: null). The caller owns it. */
JsonValue *object_get(Object *obj, const char *name, GError **errp);
/* Was it set explicitly, since object_new()? */
bool object_given(const Object *obj, const char *name);

bool object_realize(Object *obj, GError **errp);
void object_unrealize(Object *obj);

/* ---- -object ------------------------------------------------------------ */

/*
 * Create, set, realize and attach to /objects, from an object with
 * "qom-type", "id" and properties. The result is borrowed.
 */
Object *object_add(ObjectTree *tree, JsonValue *options, bool texts,
                   GError **errp);
/* Fails when it is linked to or its type objects. */
bool object_del(ObjectTree *tree, const char *id, GError **errp);

/*
 * The type that -device (@flags OBJ_DEVICE) or -object (OBJ_USER_CREATABLE)
 * may create, or NULL with a message of the kind users know.
 */
const ObjType *object_type_for_user(ObjectTree *tree, const char *name,
                                    unsigned flags, GError **errp);

/* Print as "-object help" and "-device help" do, into @out. */
void object_help_list(ObjectTree *tree, unsigned flags, GString *out);
/* Print as "TYPE,help" does. */
void object_help_type(const ObjType *type, GString *out);

#endif
