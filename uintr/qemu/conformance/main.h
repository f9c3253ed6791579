/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef MAIN_H
#define MAIN_H

#include "cpu.h"

void trap_init(struct cpu *cpu);

/* Modes of the program besides the items: see README.md */
void accounting(unsigned long sends);
void hammer(unsigned long rounds);
void lockstep(unsigned long steps, unsigned long seed, unsigned cpus);

#endif
