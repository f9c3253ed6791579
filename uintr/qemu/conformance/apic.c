/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "apic.h"

#define MSR_APIC_BASE   0x1b
#define BASE_X2APIC     BIT(10)
#define BASE_ENABLE     BIT(11)

bool x2apic;

static volatile uint32_t *xapic_register(unsigned reg)
{
    uint64_t base = rdmsr(MSR_APIC_BASE) & 0xfffff000;

    return (volatile uint32_t *)(base + reg * 16);
}

void apic_enable(bool want_x2apic)
{
    uint64_t base = rdmsr(MSR_APIC_BASE);

    if (want_x2apic) {
        wrmsr(MSR_APIC_BASE, base | BASE_ENABLE | BASE_X2APIC);
    }
    x2apic = rdmsr(MSR_APIC_BASE) & BASE_X2APIC;
    apic_write(APIC_SVR, 0x100 | SPURIOUS);
    apic_write(APIC_TPR, 0);
}

uint32_t apic_read(unsigned reg)
{
    return x2apic ? rdmsr(0x800 + reg) : *xapic_register(reg);
}

void apic_write(unsigned reg, uint32_t v)
{
    if (x2apic) {
        wrmsr(0x800 + reg, v);
    } else {
        *xapic_register(reg) = v;
    }
}

uint32_t apic_id(void)
{
    return x2apic ? apic_read(APIC_ID) : apic_read(APIC_ID) >> 24;
}

void apic_send(uint32_t dest, uint32_t icr_low)
{
    if (x2apic) {
        asm volatile("mfence; lfence");
        wrmsr(0x800 + APIC_ICR, (uint64_t)dest << 32 | icr_low);
    } else {
        apic_write(APIC_ICR_HIGH, dest << 24);
        apic_write(APIC_ICR, icr_low);
        while (apic_read(APIC_ICR) & BIT(12)) {
            pause();
        }
    }
}

uint64_t apic_icr(void)
{
    if (x2apic) {
        return rdmsr(0x800 + APIC_ICR);
    }
    return (uint64_t)apic_read(APIC_ICR_HIGH) << 32 | apic_read(APIC_ICR);
}

bool apic_requested(uint8_t vector)
{
    return apic_read(APIC_IRR + vector / 32) & BIT(vector % 32);
}

bool apic_in_service(uint8_t vector)
{
    return apic_read(APIC_ISR + vector / 32) & BIT(vector % 32);
}

uint32_t ndst(uint32_t id)
{
    return x2apic ? id : id << 8;
}
