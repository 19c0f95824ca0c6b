/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Machine: what every board has, whatever its devices. A board's state begins
 * with it. Created by system/, freed when the process ends.
 *
 * Thread: BQL unless said otherwise.
 */
#ifndef HW_CORE_MACHINE_H
#define HW_CORE_MACHINE_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "hw/core/io-bus.h"
#include "hw/core/vm-ops.h"
#include "util/aio.h"
#include "util/object.h"

typedef struct Machine Machine;
typedef struct PciBus PciBus;

typedef enum RunState {
    RUN_STATE_PRELAUNCH,        /* made, never started */
    RUN_STATE_RUNNING,
    RUN_STATE_PAUSED,           /* by the user */
    RUN_STATE_IO_ERROR,         /* a disk with rerror/werror=stop */
    RUN_STATE_INTERNAL_ERROR,   /* a vCPU could not go on */
    RUN_STATE_SHUTDOWN,         /* powered off */
} RunState;

/*
 * Told after the vCPUs were stopped (@running false) and before they start
 * again. Main thread. A device stops or resumes its queues here.
 */
typedef struct RunStateListener RunStateListener;
struct RunStateListener {
    void (*changed)(void *opaque, bool running, RunState state);
    void *opaque;
};

/* Back to power-on state at a system reset, in the order of registration. */
typedef struct ResetHook {
    void (*reset)(void *opaque);
    void *opaque;
} ResetHook;

typedef enum ShutdownCause {
    SHUTDOWN_HOST_SIGNAL,
    SHUTDOWN_HOST_UI,           /* Ctrl-A x */
    SHUTDOWN_GUEST_SHUTDOWN,    /* ACPI power-off and the like */
    SHUTDOWN_GUEST_RESET,       /* a reset under -no-reboot */
} ShutdownCause;

/* What the main loop has been asked to do. */
typedef struct MachineRequest {
    bool shutdown, reset, stop;
    ShutdownCause cause;
    int status;                 /* of the process, after a shutdown */
    RunState stop_state;
} MachineRequest;

/* What the command line says about the machine itself. Borrowed during create(). */
typedef struct MachineConfig {
    uint64_t ram_size;          /* multiple of 4096 */
    VmConfig vm;                /* exits, machine: the board's */
    const VmOps *accel;
    const char *kernel, *initrd, *append;   /* NULL: not given */
    struct Chardev *serial;     /* NULL: none. Outlives the machine */
    AioContext *ctx;
} MachineConfig;

/* A kind of machine, as -machine knows it. */
typedef struct MachineType {
    const char *name;
    const char *alias;          /* NULL: none */
    const char *desc;
    uint64_t ram_default, ram_min, ram_max;
    /* Without vCPUs and kernel, ready for devices. */
    Machine *(*create)(const MachineConfig *config, ObjectTree *tree, GError **errp);
    /* With all devices there: the rest. */
    bool (*complete)(Machine *m, GError **errp);
    /* While paused: power-on state, kernel loaded, vCPUs at its entry. */
    bool (*reset)(Machine *m, GError **errp);
    void (*free)(Machine *m);
} MachineType;

#define MACHINE_RAM_MAX 4       /* pieces of RAM */

struct Machine {
    const MachineType *type;
    Vm *vm;                     /* the accelerator's */
    AioContext *ctx;            /* the main loop's */
    IoBus *pio;
    IoBus *mmio;
    PciBus *pci;                /* NULL: the board has none */
    VmRam ram[MACHINE_RAM_MAX]; /* all of it, by ascending address; fixed once made */
    unsigned n_ram;
    uint64_t ram_size;          /* their sum */
    int ram_fd;                 /* the memfd behind all RAM */
    void *ram_base;             /* where its offset 0 is mapped */
    RunState state;
    GPtrArray *listeners;       /* of RunStateListener, the owners' */
    GPtrArray *devices;         /* of Device, the realized ones */
    GPtrArray *reset_hooks;     /* of ResetHook, the owners' */

    pthread_mutex_t request_lock;
    MachineRequest request;     /* under it */
    int request_fd;             /* an eventfd: look at machine_take_request() */
};

/*
 * For boards. Sets up what the board's own code doesn't, the accelerator's
 * virtual machine included.
 */
bool machine_init(Machine *m, const MachineType *type, const MachineConfig *config,
                  GError **errp);
/* One memfd of @config->ram_size bytes, mapped at m->ram_base. */
bool machine_ram_alloc(Machine *m, const MachineConfig *config, GError **errp);
/* The next piece of RAM: @size bytes from @offset of the memfd on, at @gpa. */
bool machine_ram_map(Machine *m, uint64_t gpa, uint64_t offset, uint64_t size, GError **errp);
/* Realized devices must be gone. */
void machine_cleanup(Machine *m);

void machine_add_listener(Machine *m, RunStateListener *l);
void machine_remove_listener(Machine *m, RunStateListener *l);
/* Tells the listeners when it begins or ceases to run. */
void machine_set_state(Machine *m, RunState state);
static inline bool machine_running(const Machine *m)
{
    return m->state == RUN_STATE_RUNNING;
}

/*
 * Host address of @size bytes of RAM at @gpa, NULL unless all of them are RAM
 * in one piece. Any thread.
 */
void *machine_ram_ptr(const Machine *m, uint64_t gpa, uint64_t size);

void machine_add_reset(Machine *m, ResetHook *hook);
void machine_remove_reset(Machine *m, ResetHook *hook);
void machine_run_reset_hooks(Machine *m);

/* ---- requests, obeyed by the main loop soon; any thread ---- */

/* The process ends with @status; the first request counts. */
void machine_request_shutdown(Machine *m, ShutdownCause cause, int status);
void machine_request_reset(Machine *m);
/* Stop with @state, e.g. RUN_STATE_IO_ERROR; the first request counts. */
void machine_request_stop(Machine *m, RunState state);

/* Main loop: what was asked since the last call. */
MachineRequest machine_take_request(Machine *m);

#endif
