// SPDX-License-Identifier: MIT OR Apache-2.0
// What kernels.ptx is, in CUDA C++. That file was written by hand beside this one, so that no build needs a compiler of CUDA; the driver
// compiles it for whatever GPU there is.

// Works for `ns` nanoseconds, stamps its begin and its end, and says `value` in a word that the CPU may look at, if there is one.
extern "C" __global__ void work(unsigned long long ns, volatile unsigned long long *stamps, volatile unsigned *flag, unsigned value) {
    unsigned long long begin = globaltimer(), now = begin;
    while (now - begin < ns) now = globaltimer();
    stamps[0] = begin;
    stamps[1] = now;
    if (!flag) return;
    __threadfence_system();
    *flag = value;
}

// Answers `count` words from `first` on. With each goes the time at which the word had come, and the time at which it was asked for last when
// it was not there yet, or 0. It leaves when it is told 0xffffffff, and `limit` nanoseconds after it began; it then says 0xffffffff itself.
extern "C" __global__ void answer(volatile unsigned *to, volatile unsigned *from, volatile unsigned long long *stamps, unsigned first,
                                  unsigned count, unsigned long long limit) {
    unsigned long long begin = globaltimer();
    for (unsigned want = first; count; want++, count--) {
        for (unsigned long long missed = 0;;) {
            unsigned long long asked = globaltimer();
            unsigned word = *to;
            if (word == want) {
                stamps[0] = globaltimer();
                stamps[1] = missed;
                break;
            }
            missed = asked;
            if (word == 0xffffffff || asked - begin > limit) { *from = 0xffffffff; return; }
        }
        __threadfence_system();
        *from = want;
    }
}
