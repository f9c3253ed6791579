/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Just enough ACPI to count CPUs. Tables above 4 GiB are not reached. */

#include "acpi.h"

#include <stdbool.h>
#include <stddef.h>

struct header {
    char signature[4];
    uint32_t length;
    uint8_t rest[28];
} __attribute__((packed));

static bool same(const void *a, const char *b, unsigned n)
{
    const char *p = a;

    while (n-- && *p == *b) {
        p++, b++;
    }
    return n == (unsigned)-1;
}

static uint64_t load(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    while (bytes--) {
        v = v << 8 | p[bytes];
    }
    return v;
}

static const uint8_t *scan(uint64_t from, uint64_t to)
{
    for (; from < to; from += 16) {
        if (same((const void *)from, "RSD PTR ", 8)) {
            return (const uint8_t *)from;
        }
    }
    return NULL;
}

static const uint8_t *find_madt(const uint8_t *rsdp)
{
    bool wide = rsdp[15] >= 2 && load(rsdp + 24, 8);
    unsigned size = wide ? 8 : 4;
    const struct header *root = (void *)(wide ? load(rsdp + 24, 8) : load(rsdp + 16, 4));
    const uint8_t *entry = (const uint8_t *)root + sizeof(*root);
    const uint8_t *end = (const uint8_t *)root + root->length;

    for (; entry + size <= end; entry += size) {
        const struct header *table = (void *)load(entry, size);

        if (same(table->signature, "APIC", 4)) {
            return (const uint8_t *)table;
        }
    }
    return NULL;
}

unsigned acpi_cpus(uint64_t rsdp, uint32_t *ids, unsigned max)
{
    /* The segment of the extended BIOS data area is at 40EH. */
    volatile uint16_t *ebda_segment = (uint16_t *)0x40e;
    const uint8_t *root = (const uint8_t *)rsdp;
    const uint8_t *madt, *p, *end;
    unsigned n = 0;

    if (!root) {
        uint64_t ebda = (uint64_t)*ebda_segment << 4;

        root = scan(ebda, ebda + 1024);
    }
    if (!root) {
        root = scan(0xe0000, 0x100000);
    }
    madt = root ? find_madt(root) : NULL;
    if (!madt) {
        return 0;
    }

    end = madt + load(madt + 4, 4);
    for (p = madt + 44; p < end && n < max; p += p[1]) {
        if (p[0] == 0 && (load(p + 4, 4) & 1)) {
            ids[n++] = p[3];
        } else if (p[0] == 9 && (load(p + 8, 4) & 1)) {
            ids[n++] = load(p + 4, 4);
        }
    }
    return n;
}
