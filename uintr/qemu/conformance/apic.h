/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The local APIC of the CPU that calls, in either mode. */

#ifndef APIC_H
#define APIC_H

#include "cpu.h"

enum {
    APIC_ID = 0x02, APIC_TPR = 0x08, APIC_EOI = 0x0b, APIC_SVR = 0x0f,
    APIC_ISR = 0x10, APIC_IRR = 0x20, APIC_ESR = 0x28,
    APIC_ICR = 0x30, APIC_ICR_HIGH = 0x31, APIC_LVT_TIMER = 0x32,
    APIC_TIMER_COUNT = 0x38, APIC_TIMER_DIVIDE = 0x3e,
};

#define ICR_INIT        0x4500
#define ICR_STARTUP     0x4600
#define SPURIOUS        0xff

extern bool x2apic;

void apic_enable(bool want_x2apic);
uint32_t apic_read(unsigned reg);
void apic_write(unsigned reg, uint32_t v);
uint32_t apic_id(void);
void apic_send(uint32_t dest, uint32_t icr_low);
uint64_t apic_icr(void);
bool apic_requested(uint8_t vector);
bool apic_in_service(uint8_t vector);

/* UPID.NDST for an APIC ID, in the current mode */
uint32_t ndst(uint32_t id);

#endif
