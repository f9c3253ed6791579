// SPDX-License-Identifier: MIT OR Apache-2.0
// Marks in the registers of a thread, kept there for a while: whoever interrupts it is to leave them
// as they are. AMX and APX have more registers.
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Of the vector registers, what this CPU and this kernel have.
enum registers_width { XMM, YMM, ZMM };

struct registers {
	uint64_t vectors[32][8];
	uint64_t masks[8];	// k0 to k7
	uint64_t mmx[8];	// the mantissas of x87's too
	uint64_t general[15];	// all but RSP, by which the rest is found
	uint64_t flags;		// CF and DF
	uint32_t mxcsr;
	uint16_t control;	// of x87
};

_Static_assert(offsetof(struct registers, masks) == 2048 && offsetof(struct registers, mmx) == 2112 &&
	offsetof(struct registers, general) == 2176 && offsetof(struct registers, flags) == 2296 &&
	offsetof(struct registers, mxcsr) == 2304 && offsetof(struct registers, control) == 2308, "as below");

#define EACH8(DO)	DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define EACH16(DO)	EACH8(DO) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define EACH32(DO)	EACH16(DO) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) \
	DO(24) DO(25) DO(26) DO(27) DO(28) DO(29) DO(30) DO(31)
// RDI, which leads to them, is the last.
#define EACH_GENERAL(DO)	DO(0, rax) DO(1, rbx) DO(2, rcx) DO(3, rdx) DO(4, rsi) DO(5, rbp) \
	DO(6, r8) DO(7, r9) DO(8, r10) DO(9, r11) DO(10, r12) DO(11, r13) DO(12, r14) DO(13, r15)

#define PUT(n, name)	"	movq 2176+" #n "*8(%rdi), %" #name "\n"
#define GET(n, name)	"	movq %" #name ", 2176+" #n "*8(%rdi)\n"
#define MMX_PUT(n)	"	movq 2112+" #n "*8(%rdi), %mm" #n "\n"
#define MMX_GET(n)	"	movq %mm" #n ", 2112+" #n "*8(%rdi)\n"
#define MASK_PUT(n)	"	kmovq 2048+" #n "*8(%rdi), %k" #n "\n"
#define MASK_GET(n)	"	kmovq %k" #n ", 2048+" #n "*8(%rdi)\n"
#define XMM_PUT(n)	"	movdqu " #n "*64(%rdi), %xmm" #n "\n"
#define XMM_GET(n)	"	movdqu %xmm" #n ", " #n "*64(%rdi)\n"
#define YMM_PUT(n)	"	vmovdqu " #n "*64(%rdi), %ymm" #n "\n"
#define YMM_GET(n)	"	vmovdqu %ymm" #n ", " #n "*64(%rdi)\n"
#define ZMM_PUT(n)	"	vmovdqu64 " #n "*64(%rdi), %zmm" #n "\n"
#define ZMM_GET(n)	"	vmovdqu64 %zmm" #n ", " #n "*64(%rdi)\n"

// Loads @marks, counts @rounds down, and stores what is in the registers then.
void registers_carry(const struct registers *marks, struct registers *found, uint64_t rounds,
	enum registers_width width);
__asm__(
	".text\n"
	"registers_carry:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	pushq %rsi\n	pushq %rdx\n	pushq %rcx\n"
	"	subq $8, %rsp\n	stmxcsr (%rsp)\n	fnstcw 4(%rsp)\n"
	"	cmpb $1, %cl\n	jb 2f\n	je 1f\n"
	EACH32(ZMM_PUT) EACH8(MASK_PUT) "	jmp 3f\n"
	"1:\n" EACH16(YMM_PUT) "	jmp 3f\n"
	"2:\n" EACH16(XMM_PUT)
	"3:	ldmxcsr 2304(%rdi)\n	fldcw 2308(%rdi)\n"
	EACH8(MMX_PUT)
	"	pushq 2296(%rdi)\n	popfq\n"
	EACH_GENERAL(PUT) PUT(14, rdi)
	// DEC leaves CF.
	"4:	decq 16(%rsp)\n	jnz 4b\n"
	"	pushq %rdi\n	movq 32(%rsp), %rdi\n	popq 2176+14*8(%rdi)\n"
	EACH_GENERAL(GET)
	"	pushfq\n	popq 2296(%rdi)\n	cld\n"
	"	stmxcsr 2304(%rdi)\n	fnstcw 2308(%rdi)\n"
	EACH8(MMX_GET) "	emms\n"
	"	cmpb $1, 8(%rsp)\n	jb 2f\n	je 1f\n"
	EACH32(ZMM_GET) EACH8(MASK_GET) "	vzeroupper\n	jmp 3f\n"
	"1:\n" EACH16(YMM_GET) "	vzeroupper\n	jmp 3f\n"
	"2:\n" EACH16(XMM_GET)
	"3:	ldmxcsr (%rsp)\n	fldcw 4(%rsp)\n	addq $32, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	ret\n");

static inline enum registers_width registers_width(void)
{
	return __builtin_cpu_supports("avx512bw") ? ZMM : __builtin_cpu_supports("avx") ? YMM : XMM;
}

static inline const char *registers_names(void)
{
	static const char *const names[] = { "16 XMM", "16 YMM", "32 ZMM and 8 mask" };

	return names[registers_width()];
}

// Whether any register changed in @rounds of a loop: each has marks of its own, made of @mark.
static inline int registers_changed(uint64_t mark, uint64_t rounds)
{
	enum registers_width width = registers_width();
	const uint64_t flags = 0x401;
	struct registers marks = {
		.flags = mark >> 7 & flags,
		// How they round and, of SSE, which exceptions there were; nothing that would cause one.
		.mxcsr = 0x1f80 | (mark >> 20 & 0xe03f),
		.control = 0x027f | (mark >> 40 & 0x0d00),
	}, found = { 0 };

	for (unsigned int i = 0; i < (width == ZMM ? 32 : 16); i++)
		for (unsigned int word = 0; word < 2u << width; word++)
			marks.vectors[i][word] = mark * (16 * i + 2 * word + 1);
	for (unsigned int i = 0; i < 8; i++) {
		marks.masks[i] = width == ZMM ? mark * (1001 + 2 * i) : 0;
		marks.mmx[i] = mark * (2001 + 2 * i);
	}
	for (unsigned int i = 0; i < 15; i++)
		marks.general[i] = mark * (3001 + 2 * i);
	registers_carry(&marks, &found, rounds, width);
	found.flags &= flags;
	return memcmp(&marks, &found, offsetof(struct registers, control) + sizeof(marks.control)) != 0;
}

#endif
