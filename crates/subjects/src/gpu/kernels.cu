// SPDX-License-Identifier: MIT OR Apache-2.0
// What kernels.ptx is, in CUDA C++. That file was written by hand beside this one, so that no build needs a compiler of CUDA; the driver
// compiles it for whatever GPU there is.

// Works for `ns` nanoseconds, stamps its begin and its end, and says `value` in a word that the CPU may look at.
extern "C" __global__ void work(unsigned long long ns, volatile unsigned long long *stamps, volatile unsigned *flag, unsigned value) {
    unsigned long long begin = globaltimer(), now = begin;
    while (now - begin < ns) now = globaltimer();
    stamps[0] = begin;
    stamps[1] = now;
    __threadfence_system();
    *flag = value;
}

// Answers `count` words from `first` on, each with the time at which it was seen. It leaves when it is told 0xffffffff, and `limit`
// nanoseconds after it began; it then says 0xffffffff itself.
extern "C" __global__ void answer(volatile unsigned *to, volatile unsigned *from, volatile unsigned long long *stamp, unsigned first,
                                  unsigned count, unsigned long long limit) {
    unsigned long long begin = globaltimer(), now;
    for (unsigned want = first; count; want++, count--) {
        for (;;) {
            unsigned word = *to;
            now = globaltimer();
            if (word == want) break;
            if (word == 0xffffffff || now - begin > limit) { *from = 0xffffffff; return; }
        }
        *stamp = now;
        __threadfence_system();
        *from = want;
    }
}
