/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The first serial port, 115200 8N1. One CPU prints at a time. */

#include "console.h"

#include "cpu.h"

#define COM1 0x3f8

void console_init(void)
{
    outb(COM1 + 1, 0);
    outb(COM1 + 3, 0x80);
    outb(COM1 + 0, 1);
    outb(COM1 + 1, 0);
    outb(COM1 + 3, 3);
    outb(COM1 + 2, 7);
    outb(COM1 + 4, 3);
}

static void put(char **to, char c)
{
    if (to) {
        *(*to)++ = c;
        return;
    }
    if (c == '\n') {
        put(NULL, '\r');
    }
    while (!(inb(COM1 + 5) & 0x20)) {
        pause();
    }
    outb(COM1, c);
}

/* Until somebody types something; what, does not matter. */
void console_wait(void)
{
    while (!(inb(COM1 + 5) & 1)) {
        pause();
    }
    inb(COM1);
}

static void put_number(char **to, uint64_t v, unsigned base, unsigned width, char pad)
{
    char digits[24];
    unsigned n = 0;

    do {
        digits[n++] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    while (n < width && n < sizeof(digits)) {
        digits[n++] = pad;
    }
    while (n) {
        put(to, digits[--n]);
    }
}

static void format(char **to, const char *f, va_list args)
{
    for (; *f; f++) {
        unsigned width = 0;
        bool wide = false;
        char pad = ' ';
        uint64_t v;

        if (*f != '%') {
            put(to, *f);
            continue;
        }
        f++;
        if (*f == '0') {
            pad = '0';
        }
        while (*f >= '0' && *f <= '9') {
            width = width * 10 + *f++ - '0';
        }
        while (*f == 'l') {
            wide = true;
            f++;
        }
        switch (*f) {
        case 's':
            for (const char *s = va_arg(args, const char *); *s; s++) {
                put(to, *s);
            }
            break;
        case 'c':
            put(to, va_arg(args, int));
            break;
        case 'd': {
            int64_t d = wide ? va_arg(args, long) : va_arg(args, int);

            if (d < 0) {
                put(to, '-');
                d = -d;
            }
            put_number(to, d, 10, width, pad);
            break;
        }
        case 'u':
        case 'x':
            v = wide ? va_arg(args, unsigned long) : va_arg(args, unsigned);
            put_number(to, v, *f == 'u' ? 10 : 16, width, pad);
            break;
        default:
            put(to, *f);
        }
    }
}

void vprint(const char *f, va_list args)
{
    format(NULL, f, args);
}

void print(const char *f, ...)
{
    va_list args;

    va_start(args, f);
    format(NULL, f, args);
    va_end(args);
}

char *format_to(char *to, const char *f, ...)
{
    va_list args;

    va_start(args, f);
    format(&to, f, args);
    va_end(args);
    return to;
}
