// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A handler that returns keeps the registers that its thread uses, in a frame that is no longer than they need. hardware.c's uintr_entry runs
 * here on any x86-64 CPU, as a handler that ends by UIRET by signals. Prints TAP, and what each use of registers takes.
 */
#define _GNU_SOURCE
#include "../hardware.c"
#include <signal.h>

#define STACK	65536

enum use { SSE, X87, AVX, AVX512, USES };

static const struct {
	const char *name;
	/* Of the frame, more than for SSE alone. */
	size_t more;
} uses[] = {
	[SSE] = { "SSE", 0 }, [X87] = { "SSE and x87", 0 }, [AVX] = { "AVX", 832 - 576 }, [AVX512] = { "AVX-512", 2688 - 576 },
};

static _Alignas(64) uint8_t marks[32 * 64], found[32 * 64], area[4096];
static uint64_t masks[8], masks_found[8];
static volatile uint64_t handled;
static char *stack;
static size_t depth;
static int has_avx, has_avx512;

#define EACH16(DO)	DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define UPPER16(DO)	DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26) DO(27) DO(28) DO(29) DO(30) DO(31)
#define MASKS(DO)	DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define VECTORS_USED	"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* All bits of all registers that there are, and other modes of both units. */
static void changes_everything(unsigned int vector, void *nothing)
{
	static const uint32_t mode = 0x7f80;
	static const uint16_t control = 0x027f;

	(void)vector, (void)nothing;
	depth = stack + STACK - (char *)__builtin_frame_address(0);
#define ONES(n)	"pcmpeqd %%xmm" #n ", %%xmm" #n "\n\t"
	__asm__ volatile(EACH16(ONES) "fldcw %0\n\tfld1\n\tfldpi\n\tfstp %%st(1)\n\tldmxcsr %1" : : "m"(control), "m"(mode) : VECTORS_USED);
#define AVX_ONES(n)	"vpcmpeqd %%ymm" #n ", %%ymm" #n ", %%ymm" #n "\n\t"
	if (has_avx)
		__asm__ volatile(EACH16(AVX_ONES) : : : VECTORS_USED);
#define AVX512_ONES(n)	"vpternlogd $255, %%zmm" #n ", %%zmm" #n ", %%zmm" #n "\n\t"
#define MASK_ONES(n)	"kxnorw %%k" #n ", %%k" #n ", %%k" #n "\n\t"
	if (has_avx512)
		__asm__ volatile(EACH16(AVX512_ONES) UPPER16(AVX512_ONES) MASKS(MASK_ONES) : : : VECTORS_USED);
	handled++;
}

/* As they are at the start of a program: no processor has to find out that what is zero is not in use. */
static void clears_registers(void)
{
	static _Alignas(64) uint8_t initial[4096];

	/* MXCSR, which XRSTOR takes from here whatever the header says. */
	__asm__ volatile("stmxcsr 24(%0)\n\txrstor64 (%0)" : : "r"(initial), "a"(uintr_xsave_states), "d"(0) : "memory", VECTORS_USED);
}

/* Marks in the registers of @use, XSAVEC's own idea of them in @area, and what is found behind two handlers. */
#define PUT(n)		"movdqu " #n "*64(%[marks]), %%xmm" #n "\n\t"
#define GET(n)		"movdqu %%xmm" #n ", " #n "*64(%[found])\n\t"
#define AVX_PUT(n)	"vmovdqu " #n "*64(%[marks]), %%ymm" #n "\n\t"
#define AVX_GET(n)	"vmovdqu %%ymm" #n ", " #n "*64(%[found])\n\t"
#define AVX512_PUT(n)	"vmovdqu64 " #n "*64(%[marks]), %%zmm" #n "\n\t"
#define AVX512_GET(n)	"vmovdqu64 %%zmm" #n ", " #n "*64(%[found])\n\t"
#define MASK_PUT(n)	"kmovw " #n "*8(%[masks]), %%k" #n "\n\t"
#define MASK_GET(n)	"kmovw %%k" #n ", " #n "*8(%[masks_found])\n\t"
#define WAITS \
	"movl %[states], %%eax\n\txorl %%edx, %%edx\n\txsavec64 (%[area])\n\t" \
	"1:	cmpq %[until], %[handled]\n\tjb 1b\n\t"
#define OPERANDS(...) \
	: [handled] "+m"(handled) \
	: [marks] "r"(marks), [found] "r"(found), [area] "r"(area), [states] "r"(uintr_xsave_states), [until] "r"(handled + 2), \
	  [masks] "r"(masks), [masks_found] "r"(masks_found) \
	: "rax", "rdx", "cc", "memory", VECTORS_USED, ## __VA_ARGS__

static void works(enum use use)
{
	long double pi = 0;

	clears_registers();
	switch (use) {
	case SSE:
		__asm__ volatile(EACH16(PUT) WAITS EACH16(GET) OPERANDS());
		break;
	case X87:
		__asm__ volatile("fldpi\n\t" EACH16(PUT) WAITS EACH16(GET) OPERANDS("st"));
		__asm__ volatile("fstpt %0" : "=m"(pi) : : "st");
		if (pi < 3.14159L || pi > 3.1416L)
			found[0] ^= 1;
		break;
	case AVX:
		__asm__ volatile(EACH16(AVX_PUT) WAITS EACH16(AVX_GET) OPERANDS());
		break;
	default:
		__asm__ volatile(EACH16(AVX512_PUT) UPPER16(AVX512_PUT) MASKS(MASK_PUT) WAITS
			EACH16(AVX512_GET) UPPER16(AVX512_GET) MASKS(MASK_GET) OPERANDS());
	}
	clears_registers();
}

static int keeps(enum use use)
{
	size_t width = use == AVX512 ? 64 : use == AVX ? 32 : 16, count = use == AVX512 ? 32 : 16;

	for (size_t i = 0; i < count; i++)
		if (memcmp(marks + 64 * i, found + 64 * i, width))
			return 0;
	return use != AVX512 || !memcmp(masks, masks_found, sizeof(masks));
}

static int wrong(enum use use, size_t least)
{
	uint32_t mode, mode_set = 0x1fc0, mode_found;
	size_t written = 0;
	int good;

	memset(area, 0xa5, sizeof(area));
	memset(area + 512, 0, 64);
	memset(found, 0, sizeof(found));
	__asm__("stmxcsr %0" : "=m"(mode));
	__asm__ volatile("ldmxcsr %0" : : "m"(mode_set));
	works(use);
	__asm__ volatile("stmxcsr %0" : "=m"(mode_found));
	__asm__ volatile("ldmxcsr %0" : : "m"(mode));
	for (size_t i = 0; i < sizeof(area); i++)
		written += i - 512 < 64 ? i - 512 < 16 : area[i] != 0xa5;
	good = keeps(use) && (mode_found & ~0x3f) == mode_set && (!uintr_xsave_tells || depth - least == uses[use].more);
	printf("# %s: %zu bytes of stack more, XSAVEC writes %zu\n", uses[use].name, depth - least, written);
	printf("%s %d - a thread that uses %s finds it as it was\n", good ? "ok" : "not ok", use + 1, uses[use].name);
	return !good;
}

int main(void)
{
	struct receiver receiver = { .handler = { .function = changes_everything } };
	int result = 0;
	size_t least;

	looks_at_registers();
	has_avx = uintr_xsave_states >> 2 & 1;
	has_avx512 = (uintr_xsave_states & 0xe0) == 0xe0;
	for (size_t i = 0; i < sizeof(marks); i++)
		marks[i] = i % 251 + 1;
	/* None of the bytes of @area. */
	for (size_t i = 0; i < sizeof(marks); i++)
		marks[i] -= marks[i] == 0xa5;
	for (int i = 1; i < 8; i++)
		masks[i] = 0x1234 + i;
	stack = aligned_alloc(64, STACK);
	own = &receiver;
	if (!stack || uintr_start(UINTR_SIGNALS) < 0 || uintr_register_handler(uintr_entry, 0) || uintr_alt_stack(stack, STACK, 0) ||
	    uintr_timer(5, UINTR_TIMER_LEAST, 1000000)) {
		perror("entry");
		return 2;
	}
	uintr_unmask();
	works(SSE);
	least = depth;
	for (enum use use = SSE; use < USES; use++) {
		if ((use == AVX && !has_avx) || (use == AVX512 && !has_avx512))
			printf("ok %d - %s # SKIP no such registers\n", use + 1, uses[use].name);
		else
			result |= wrong(use, least);
	}
	printf("1..%d\n", USES);
	return result;
}
