/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdarg.h>

void console_init(void);
void console_wait(void);

/* %s %c %d %u %x %% and the length modifier l; 0 and a width for numbers */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void vprint(const char *format, va_list args);

/* The same into memory; returns the end. */
char *format_to(char *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
