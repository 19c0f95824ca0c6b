/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tables of fixed layout can't say: PCI's windows and interrupt
 * routing, the devices that don't announce themselves, how to switch off.
 * Addresses agree with layout.h.
 */
DefinitionBlock ("", "DSDT", 2, "QEMU  ", "PC", 1)
{
    /* SLP_TYP 0 switches off (pm.c) */
    Name (\_S5, Package () { 0, 0, 0, 0 })

    Scope (\_SB)
    {
        Device (PCI0)
        {
            Name (_HID, EisaId ("PNP0A03"))
            Name (_UID, 0)
            Name (_BBN, 0)
            Name (_CRS, ResourceTemplate ()
            {
                WordBusNumber (ResourceProducer, MinFixed, MaxFixed, PosDecode,
                               0, 0, 0xFF, 0, 0x100)
                IO (Decode16, 0x0CF8, 0x0CF8, 1, 8)
                WordIO (ResourceProducer, MinFixed, MaxFixed, PosDecode, EntireRange,
                        0, 0x0000, 0x0CF7, 0, 0x0CF8)
                WordIO (ResourceProducer, MinFixed, MaxFixed, PosDecode, EntireRange,
                        0, 0x0D00, 0xFFFF, 0, 0xF300)
                DWordMemory (ResourceProducer, PosDecode, MinFixed, MaxFixed, NonCacheable,
                             ReadWrite, 0, 0xC0000000, 0xFEBFFFFF, 0, 0x3EC00000)
                QWordMemory (ResourceProducer, PosDecode, MinFixed, MaxFixed, Cacheable,
                             ReadWrite, 0, 0x4000000000, 0x7FFFFFFFFF, 0, 0x4000000000)
            })

            /* the line of a slot's INTA..INTD is (slot + pin) & 3; 0 and 2 are interrupt 10 */
            Method (_PRT, 0, Serialized)
            {
                Local0 = Package (128) {}
                Local1 = 0
                While (Local1 < 128)
                {
                    Local2 = Local1 >> 2
                    Local3 = Local1 & 3
                    Local4 = Package (4) { 0, 0, 0, 0 }
                    Local4 [0] = (Local2 << 16) | 0xFFFF
                    Local4 [1] = Local3
                    Local4 [3] = 10 + ((Local2 + Local3) & 1)
                    Local0 [Local1] = Local4
                    Local1++
                }
                Return (Local0)
            }

            Device (COM1)
            {
                Name (_HID, EisaId ("PNP0501"))
                Name (_UID, 1)
                Name (_CRS, ResourceTemplate ()
                {
                    IO (Decode16, 0x03F8, 0x03F8, 1, 8)
                    IRQNoFlags () { 4 }
                })
            }

            Device (RTC)
            {
                Name (_HID, EisaId ("PNP0B00"))
                Name (_CRS, ResourceTemplate ()
                {
                    IO (Decode16, 0x0070, 0x0070, 1, 2)
                    IRQNoFlags () { 8 }
                })
            }

            /* ports of ACPI's own registers, so that no BAR goes there */
            Device (PMRS)
            {
                Name (_HID, EisaId ("PNP0C02"))
                Name (_CRS, ResourceTemplate ()
                {
                    IO (Decode16, 0x0600, 0x0600, 1, 12)
                })
            }
        }
    }
}
