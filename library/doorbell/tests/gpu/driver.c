// SPDX-License-Identifier: MIT OR Apache-2.0
// A driver made for tests: the functions of libcuda that Doorbell uses, over threads of this process. It is no GPU and says so by its name.
//
// A stream is a thread that does what is put into it, one thing after another. A script, of words NAME=NUMBER, says what goes wrong; it is
// that of the thread that takes a context (test_driver_script), else of the environment (DOORBELL_TEST_DRIVER):
//   late_us      a host function is called so late          never        kernels do not end
//   fail         kernels end with this error                lost_us      the device is lost so long after its context was made
//   kill         a kernel kills the process
//   after        never, fail and kill are of the kernels behind so many of a context's alone
//   above_us     and of those alone that are to work for longer
//   offset_ns    the device's clock is so far ahead         drift_ppm    and so much faster        step_ns  and goes in such steps
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, INVALID = 1, NO_DEVICE = 100, NO_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600, LAUNCH_FAILED = 719 };
enum kind { KERNEL, RECORD, WAIT, HOST, WAIT_VALUE, WRITE_VALUE };
struct context { long late_us, never, fail, lost_us, kill, after, above_us, offset_ns, drift_ppm, step_ns; int64_t made, flags; long begun; volatile int failed; };
struct record { volatile int done; };
struct event { struct context *context; int sleeps; struct record *now; };
struct op { struct op *next; enum kind kind; const char *kernel; uint64_t a[6]; struct event *event; long number; void (*call)(void *); void *argument; };
struct stream { struct context *context; pthread_mutex_t lock; pthread_cond_t more; struct op *first, *last; int over, busy; struct op *captured, **end; };

static __thread struct context *current;
static __thread char script[200];
static int64_t default_flags;

static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static uint64_t timer(struct context *c) {
    int64_t t = now(); t += c->offset_ns + (int64_t)((double)(t - c->made) * c->drift_ppm / 1e6);
    return t - t % (c->step_ns ? c->step_ns : 1);
}
static long word(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *at = text; at && *at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : 0) if (!strncmp(at, name, n) && at[n] == '=') return atol(at + n + 1);
    return 0;
}
void test_driver_script(const char *text) { snprintf(script, sizeof script, "%s", text); }

static int wrong(struct context *c) {
    if (c->lost_us && now() - c->made > c->lost_us * 1000 && !c->failed) c->failed = LAUNCH_FAILED;
    return c->failed;
}
// Between two looks of a thread that waits: it leaves its CPU to whoever it waits for.
static void rest(void) { sched_yield(); }
static void sleep_until(int64_t end) { struct timespec t = { end / 1000000000L, end % 1000000000L }; while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0)) ; }

static void kernel(struct context *c, struct op *op) {
    int work = !strcmp(op->kernel, "work");
    if (__sync_add_and_fetch(&c->begun, 1) > c->after && (!c->above_us || (work && (long)op->a[0] > c->above_us * 1000))) {
        if (c->kill) raise(SIGKILL);
        if (c->fail) { c->failed = c->fail; return; }
        // By this name of its thread a test sees that it has come to that.
        if (c->never) pthread_setname_np(pthread_self(), "never ends");
        while (c->never && !wrong(c)) usleep(1000);
    }
    if (work) {
        volatile uint64_t *stamps = (void *)op->a[1]; uint64_t start = timer(c), t = start;
        if (op->a[0] > 200000) sleep_until(now() + op->a[0] - 100000);
        while ((t = timer(c)) - start < op->a[0]) rest();
        stamps[0] = start; stamps[1] = t; __sync_synchronize(); if (op->a[2]) *(volatile uint32_t *)op->a[2] = op->a[3];
    } else {
        volatile uint32_t *to = (void *)op->a[0], *from = (void *)op->a[1]; volatile uint64_t *stamps = (void *)op->a[2]; uint64_t start = timer(c);
        for (uint32_t want = op->a[3], left = op->a[4]; left; want++, left--) {
            uint64_t missed = 0, asked;
            while (asked = timer(c), *to != want) {
                if (*to == UINT32_MAX || asked - start > op->a[5] || wrong(c)) { *from = UINT32_MAX; return; }
                missed = asked; rest();
            }
            stamps[0] = timer(c); stamps[1] = missed; __sync_synchronize(); *from = want;
        }
    }
}
static void *run(void *argument) {
    struct stream *s = argument; struct context *c = s->context;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        s->busy = 0; pthread_cond_broadcast(&s->more);
        while (!s->first && !s->over) pthread_cond_wait(&s->more, &s->lock);
        struct op *op = s->first;
        if (!op) { pthread_mutex_unlock(&s->lock); return 0; }
        if (!(s->first = op->next)) s->last = 0;
        s->busy = 1; pthread_mutex_unlock(&s->lock);
        switch (op->kind) {
        case KERNEL: if (!wrong(c)) kernel(c, op); break;
        case WAIT: { struct record *w = (void *)op->a[0]; while (w && !w->done && !wrong(c)) usleep(20); break; }
        case HOST: if (c->late_us) usleep(c->late_us); if (!wrong(c)) op->call(op->argument); break;
        case WAIT_VALUE: while (*(volatile uint32_t *)op->a[0] != op->a[1] && !wrong(c)) rest(); break;
        case WRITE_VALUE: __sync_synchronize(); *(volatile uint32_t *)op->a[0] = op->a[1]; break;
        case RECORD: if (!wrong(c)) ((struct record *)op->a[0])->done = 1; break;
        }
        free(op);
    }
}
static int put(struct stream *s, struct op op) {
    if (wrong(s->context)) return s->context->failed;
    struct op *copy = malloc(sizeof op); *copy = op; copy->next = 0;
    if (s->end) { *s->end = copy; s->end = &copy->next; return OK; }
    pthread_mutex_lock(&s->lock);
    if (s->last) s->last->next = copy; else s->first = copy;
    s->last = copy; pthread_cond_broadcast(&s->more); pthread_mutex_unlock(&s->lock);
    return OK;
}
static int blocks(struct context *c) { return c->flags & 4; }

int cuInit(unsigned f) { return f ? INVALID : word(getenv("DOORBELL_TEST_DRIVER"), "no_device") ? NO_DEVICE : OK; }
int cuDriverGetVersion(int *v) { *v = 12000; return OK; }
int cuDeviceGetCount(int *n) { *n = 1; return OK; }
int cuDeviceGet(int *d, int n) { *d = n; return n ? INVALID : OK; }
int cuDeviceGetName(char *name, int n, int d) { (void)d; snprintf(name, n, "no GPU: the driver made for tests"); return OK; }
int cuDeviceGetPCIBusId(char *id, int n, int d) { (void)d; snprintf(id, n, "none"); return OK; }
int cuDevicePrimaryCtxSetFlags_v2(int d, unsigned f) { (void)d; default_flags = f; return OK; }
int cuDevicePrimaryCtxRetain(void **c, int d) {
    (void)d; struct context *n = calloc(1, sizeof *n); const char *text = *script ? script : getenv("DOORBELL_TEST_DRIVER");
    long *p = &n->late_us; const char *names[] = { "late_us", "never", "fail", "lost_us", "kill", "after", "above_us", "offset_ns", "drift_ppm", "step_ns" };
    for (int i = 0; i < 10; i++) p[i] = word(text, names[i]);
    n->made = now(); n->flags = default_flags; *c = n; return OK;
}
int cuDevicePrimaryCtxRelease_v2(int d) { (void)d; return OK; }
int cuCtxSetCurrent(void *c) { current = c; return OK; }
int cuCtxGetCurrent(void **c) { *c = current; return OK; }
int cuModuleLoadData(void **m, const void *image) { *m = (void *)1; return strstr(image, ".entry work") ? OK : INVALID; }
int cuModuleGetFunction(void **f, void *m, const char *name) { (void)m; *f = strdup(name); return strcmp(name, "work") && strcmp(name, "answer") ? NOT_FOUND : OK; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, struct stream *s, void **p, void **extra) {
    (void)shared; if (gx * gy * gz * bx * by * bz != 1 || extra) return INVALID;
    struct op op = { .kind = KERNEL, .kernel = f }; int work = !strcmp(f, "work");
    for (int i = 0; i < (work ? 4 : 6); i++) op.a[i] = (work && i == 3) || (!work && (i == 3 || i == 4)) ? *(uint32_t *)p[i] : *(uint64_t *)p[i];
    return put(s, op);
}
int test_driver_calls;
int cuLaunchHostFunc(struct stream *s, void (*call)(void *), void *argument) { if (!current) return NO_CONTEXT; __sync_fetch_and_add(&test_driver_calls, 1); return put(s, (struct op){ .kind = HOST, .call = call, .argument = argument }); }
int cuStreamCreate(struct stream **out, unsigned f) {
    (void)f; if (!current) return NO_CONTEXT;
    if (wrong(current)) return current->failed;
    struct stream *s = calloc(1, sizeof *s); s->context = current; pthread_mutex_init(&s->lock, 0); pthread_cond_init(&s->more, 0);
    pthread_t t; pthread_create(&t, 0, run, s); pthread_detach(t); *out = s; return OK;
}
// What is in it is still done; the memory is a test's to lose.
int cuStreamDestroy_v2(struct stream *s) { pthread_mutex_lock(&s->lock); s->over = 1; pthread_cond_broadcast(&s->more); pthread_mutex_unlock(&s->lock); return OK; }
int cuStreamSynchronize(struct stream *s) {
    for (;;) {
        pthread_mutex_lock(&s->lock); int idle = !s->first && !s->busy; pthread_mutex_unlock(&s->lock);
        if (wrong(s->context)) return s->context->failed;
        if (idle) return OK;
        if (blocks(s->context)) usleep(20); else rest();
    }
}
int cuStreamWaitEvent(struct stream *s, struct event *e, unsigned f) { (void)f; if (!current) return NO_CONTEXT; return put(s, (struct op){ .kind = WAIT, .event = e, .a = { (uint64_t)e->now } }); }
int cuStreamWaitValue32_v2(struct stream *s, uint64_t at, uint32_t v, unsigned f) { return f != 1 ? INVALID : put(s, (struct op){ .kind = WAIT_VALUE, .a = { at, v } }); }
int cuStreamWriteValue32_v2(struct stream *s, uint64_t at, uint32_t v, unsigned f) { return f ? INVALID : put(s, (struct op){ .kind = WRITE_VALUE, .a = { at, v } }); }
int cuStreamBeginCapture_v2(struct stream *s, unsigned mode) { (void)mode; s->captured = 0; s->end = &s->captured; return OK; }
// As the driver does, where a thread captures: asking about an event breaks it unless the asker said that it does not mind.
static __thread unsigned capture_mode; int test_driver_captures;
int cuThreadExchangeStreamCaptureMode(unsigned *mode) { unsigned old = capture_mode; capture_mode = *mode; *mode = old; return OK; }
int cuStreamEndCapture(struct stream *s, void **graph) { *graph = s->captured; s->end = 0; return *graph ? OK : INVALID; }
int cuGraphInstantiateWithFlags(void **x, void *graph, unsigned long long f) { (void)f; *x = graph; return OK; }
int cuGraphLaunch(struct op *graph, struct stream *s) { int code = OK; for (; graph && !code; graph = graph->next) code = put(s, *graph); return code; }
int cuEventCreate(struct event **e, unsigned f) { if (!current) return NO_CONTEXT; *e = calloc(1, sizeof **e); (*e)->context = current; (*e)->sleeps = f & 1; return OK; }
int cuEventDestroy_v2(struct event *e) { (void)e; return OK; }
int cuEventRecord(struct event *e, struct stream *s) { e->now = calloc(1, sizeof *e->now); return put(s, (struct op){ .kind = RECORD, .event = e, .a = { (uint64_t)e->now } }); }
int cuEventQuery(struct event *e) { if (test_driver_captures && capture_mode != 2) return 900; return wrong(e->context) ? e->context->failed : !e->now || e->now->done ? OK : NOT_READY; }
int cuEventSynchronize(struct event *e) { int code; while ((code = cuEventQuery(e)) == NOT_READY) if (blocks(e->context) || e->sleeps) usleep(20); else rest(); return code; }
int cuMemHostAlloc(void **m, size_t n, unsigned f) { (void)f; *m = aligned_alloc(4096, (n + 4095) / 4096 * 4096); memset(*m, 0, n); return OK; }
int cuMemFreeHost(void *m) { free(m); return OK; }
int cuMemHostGetDevicePointer_v2(uint64_t *at, void *m, unsigned f) { (void)f; *at = (uint64_t)m; return OK; }
int cuGetErrorName(int code, const char **name) { *name = code == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : code == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : 0; return *name ? OK : INVALID; }
