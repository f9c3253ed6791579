/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef ACPI_H
#define ACPI_H

#include <stdint.h>

/*
 * The APIC IDs of the usable CPUs according to the MADT, at most max of
 * them; 0 if no table was found. rsdp: where the root pointer is, or 0 to
 * look for it where a BIOS puts it.
 */
unsigned acpi_cpus(uint64_t rsdp, uint32_t *ids, unsigned max);

#endif
