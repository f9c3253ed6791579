/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exceptions and interrupts of all CPUs. */

#include "harness.h"
#include "main.h"

struct gate {
    uint64_t low, high;
};

static struct gate idt[256] __attribute__((aligned(16)));

static struct gate gate(uint64_t to, unsigned dpl)
{
    return (struct gate) {
        .low = (to & 0xffff) | (uint64_t)KERNEL_CS << 16 | (uint64_t)(0x8e | dpl << 5) << 40 |
               (to >> 16 & 0xffff) << 48,
        .high = to >> 32,
    };
}

void trap_init(struct cpu *cpu)
{
    struct {
        uint16_t limit;
        uint64_t base;
    } __attribute__((packed)) pointer;
    uint64_t tss = (uint64_t)cpu->tss;
    unsigned i;

    for (i = 0; i < 256; i++) {
        idt[i] = gate((uint64_t)trap_stubs + i * 16, i == DONE ? 3 : 0);
    }

    cpu->gdt[1] = 0x00af9b000000ffff;                       /* KERNEL_CS */
    cpu->gdt[2] = 0x00cf93000000ffff;                       /* KERNEL_DS */
    cpu->gdt[USER_CS32 / 8] = 0x00cffb000000ffff;
    cpu->gdt[USER_DS / 8] = 0x00cff3000000ffff;
    cpu->gdt[USER_CS / 8] = 0x00affb000000ffff;
    cpu->gdt[TSS_SELECTOR / 8] = (sizeof(cpu->tss) - 1) | (tss & 0xffffff) << 16 |
                                 0x89ULL << 40 | (tss >> 24 & 0xff) << 56;
    cpu->gdt[TSS_SELECTOR / 8 + 1] = tss >> 32;
    cpu->tss[25] = sizeof(cpu->tss) << 16;                  /* no I/O bitmap */

    pointer.limit = sizeof(cpu->gdt) - 1;
    pointer.base = (uint64_t)cpu->gdt;
    asm volatile("lgdt %0" : : "m"(pointer));
    asm volatile("ltr %w0" : : "r"(TSS_SELECTOR));
    pointer.limit = sizeof(idt) - 1;
    pointer.base = (uint64_t)idt;
    asm volatile("lidt %0" : : "m"(pointer));
}

void trap(struct frame *f)
{
    struct cpu *cpu = this_cpu();

    if (f->vector >= 0x20 && f->vector != DONE) {
        cpu->irqs[f->vector]++;
        cpu->irq_log[cpu->n_irq_log++ % sizeof(cpu->irq_log)] = f->vector;
        if (f->vector != SPURIOUS) {
            apic_write(APIC_EOI, 0);
        }
        return;
    }
    if (f->vector == PF) {
        asm volatile("mov %%cr2, %0" : "=r"(cpu->cr2));
    }
    if (cpu->hook && cpu->hook(f)) {
        return;
    }
    if ((f->cs & 3) == 0 && cpu->catch_rip) {
        cpu->caught = *f;
        f->rip = cpu->catch_rip;
        return;
    }
    if ((f->cs & 3) == 3 && cpu->user_kernel_rsp) {
        cpu->caught = *f;
        leave_user(cpu->user_kernel_rsp);
    }

    print("# CPU %u: unexpected exception %lu, error %lx, at %lx (CPL %lu), RSP %lx, CR2 %lx\n",
          cpu->index, f->vector, f->error, f->rip, f->cs & 3, f->rsp, cpu->cr2);
    cpu->lost = true;
    cpu->catch_rip = cpu->user_kernel_rsp = 0;
    __builtin_longjmp(cpu->on_unexpected, 1);
}
