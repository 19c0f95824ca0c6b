/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio over PCI, modern (VIRTIO 1.2 §4.1): the registers, the doorbells and
 * the interrupts of any virtio device. A device type has type_virtio_pci as
 * its parent and a VirtioPciClass as its class_data.
 *
 * Registers answer in vCPU threads under the BQL and only take notes. What
 * has to start, pause or drain queues is done in the main thread, soon
 * after; a driver sees it through device_status, which reads 0 only when a
 * reset is complete (§2.4.2).
 *
 * Thread: BQL, unless a comment says otherwise.
 */
#ifndef HW_VIRTIO_VIRTIO_PCI_H
#define HW_VIRTIO_VIRTIO_PCI_H

#include "hw/pci/pci.h"
#include "virtio/virtqueue.h"

#define VIRTIO_PCI_QUEUES_MAX 1024
#define VIRTIO_PCI_CONFIG_MAX 256       /* bytes of device-specific configuration */

typedef struct VirtioPci VirtioPci;

typedef struct VirtioPciClass {
    PciDeviceOps pci;                   /* first: PciDevice's class_data */

    unsigned config_size;               /* bytes, at most VIRTIO_PCI_CONFIG_MAX */
    /* Device-specific feature bits that are offered. */
    uint64_t (*features)(VirtioPci *v);
    void (*get_config)(VirtioPci *v, void *buf);
    void (*set_config_byte)(VirtioPci *v, unsigned off, uint8_t value);

    /* Main thread, queues as they are. */
    void (*driver_ok)(VirtioPci *v);    /* features are settled, before queue_start */
    void (*reset)(VirtioPci *v);        /* after every queue was stopped */
    /* Main thread; each waits until it is done. */
    bool (*queue_start)(VirtioPci *v, unsigned i, GuestMemory *mem, const VirtQueueConfig *cfg,
                        int kick_fd, GError **errp);
    void (*queue_pause)(VirtioPci *v, unsigned i);
    void (*queue_resume)(VirtioPci *v, unsigned i);
    void (*queue_stop)(VirtioPci *v, unsigned i);
    /* Where queue @i is served. */
    AioContext *(*queue_context)(VirtioPci *v, unsigned i);
} VirtioPciClass;

typedef enum VirtioPciQueueState {
    VIRTIO_PCI_QUEUE_STOPPED,
    VIRTIO_PCI_QUEUE_RUNNING,
    VIRTIO_PCI_QUEUE_PAUSED,
} VirtioPciQueueState;

typedef struct VirtioPciQueue {
    VirtioPci *v;
    /* The driver's settings. */
    uint16_t size;
    uint16_t vector;
    bool enabled;
    uint64_t desc, avail, used;

    VirtioPciQueueState state;          /* main thread */
    int kick_fd;                        /* eventfd; open while the device is realized */
    bool ioeventfd;                     /* guest writes reach kick_fd by themselves */
    unsigned used_vector;               /* of call_fd */
    /* The queue's home thread, while it runs. */
    int call_fd;                        /* of the MSI-X vector; -1: none */
    bool intx;                          /* raise the pin instead */
} VirtioPciQueue;

struct VirtioPci {
    PciDevice pci;

    /* Properties. */
    bool use_ioeventfd;
    bool event_idx;
    bool indirect_desc;
    int disable_legacy;                 /* an OnOffAuto, never off */
    bool disable_modern, packed, iommu_platform, ats;   /* never on */
    uint32_t vectors;                   /* VIRTIO_PCI_VECTORS_AUTO: queues + 1 */

    /* Set by the device type before type_virtio_pci's complete hook. */
    unsigned num_queues;
    uint16_t queue_size;

    const VirtioPciClass *cls;
    VirtioPciQueue *queues;

    /* The driver's view. */
    uint8_t status;
    uint32_t device_feature_select, driver_feature_select;
    uint64_t features;                  /* accepted */
    uint16_t queue_select;
    uint16_t config_vector;
    unsigned config_used_vector;        /* of config_fd */
    int config_fd;                      /* eventfd of that vector; -1: none */
    uint8_t config_generation;
    uint8_t isr;                        /* atomic */

    AioBh *control_bh;                  /* main thread: obey the driver */
    AioBh *intx_bh;                     /* main thread: set the pin to isr */
    bool in_control;                    /* main thread: the driver is being obeyed */
    bool control_again;                 /* and has asked for more meanwhile */
    bool reset_pending;                 /* the driver wrote 0 and waits */
    bool driver_ok_done;
    bool vm_running;
    const char *broken_why;             /* atomic; static text from a queue, or: */
    char *set_up_error;                 /* why a queue couldn't start; until the reset */
    unsigned broken_queue;
    int64_t broken_logged_ns;           /* when the log last said so, 0: never */
    unsigned broken_silent;             /* how often it didn't since */
    bool broken_claimed;                /* atomic */
    uint8_t cfg_cap;                    /* offset of the PCI configuration access capability */
    RunStateListener listener;
};

#define VIRTIO_PCI_VECTORS_AUTO UINT32_MAX

/* Abstract. */
extern const ObjType type_virtio_pci;

/* The hooks for a leaf's PciDeviceOps. */
void virtio_pci_cfg_read(PciDevice *dev, unsigned off, unsigned size);
void virtio_pci_cfg_written(PciDevice *dev, unsigned off, unsigned size);
void virtio_pci_mode_changed(PciDevice *dev);
void virtio_pci_reset(PciDevice *dev);

/* Stop every queue for good; a leaf's unrealize does this before it lets go of
 * what its queues use. Main thread. */
void virtio_pci_shut(VirtioPci *v);

/* The queue has something for the driver. Thread: the queue's home. */
void virtio_pci_queue_interrupt(VirtioPci *v, unsigned i);
/* The driver corrupted queue @i; @why is a static text. Thread: the queue's home. */
void virtio_pci_queue_broken(VirtioPci *v, unsigned i, const char *why);
/* The configuration space changed. Main thread. */
void virtio_pci_config_changed(VirtioPci *v);
/* Feature bits accepted by the driver. */
static inline uint64_t virtio_pci_features(const VirtioPci *v)
{
    return v->features;
}

#endif
