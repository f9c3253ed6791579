// SPDX-License-Identifier: MIT OR Apache-2.0
// What `doorbell gpu` is held against: the same calls of the CUDA runtime with nothing around them. Launch to return, microseconds:
//   nvcc -O2 -o gpu-bare gpu-bare.cu && ./gpu-bare
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

static void check(cudaError_t error, const char *call)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
		_exit(1);
	}
}
#define CHECK(call) check(call, #call)

static double now_us(clockid_t clock)
{
	timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

__global__ void work(unsigned long long ns, volatile unsigned long long *stamps)
{
	unsigned long long begin, now;
	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	while (now - begin < ns);
	stamps[0] = begin;
	stamps[1] = now;
}

static unsigned long long *stamps;
static cudaStream_t stream;
static cudaEvent_t event;
static int file;

static void rings(void *)
{
	eventfd_write(file, 1);
}

static void measure(const char *way, unsigned long long ns, void (*wait)())
{
	unsigned rounds = ns ? 250000000 / ns : 10000;
	std::vector<double> times;
	double cpu = 0, wall = 0;
	for (unsigned round = 0; round < rounds + 10; round++) {
		if (round == 10) {
			cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);
			wall = now_us(CLOCK_MONOTONIC);
		}
		double begin = now_us(CLOCK_MONOTONIC);
		work<<<1, 1, 0, stream>>>(ns, stamps);
		wait();
		if (round >= 10)
			times.push_back(now_us(CLOCK_MONOTONIC) - begin);
	}
	cpu = (now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (now_us(CLOCK_MONOTONIC) - wall);
	std::sort(times.begin(), times.end());
	printf("%-18s %8llu ns  p50 %9.2f  p99 %9.2f  cores %.2f\n", way, ns, times[times.size() / 2],
	       times[times.size() * 99 / 100], cpu);
}

int main()
{
	const unsigned long long lengths[] = { 0, 100000, 1000000 };
	const struct { const char *way; unsigned flags; unsigned event; void (*wait)(); } ways[] = {
		{ "gpu-stream-spin", cudaDeviceScheduleSpin, 0, [] { cudaStreamSynchronize(stream); } },
		{ "gpu-stream-yield", cudaDeviceScheduleYield, 0, [] { cudaStreamSynchronize(stream); } },
		{ "gpu-stream-block", cudaDeviceScheduleBlockingSync, 0, [] { cudaStreamSynchronize(stream); } },
		{ "gpu-event-spin", cudaDeviceScheduleSpin, 0,
		  [] { cudaEventRecord(event, stream); cudaEventSynchronize(event); } },
		{ "gpu-event-block", cudaDeviceScheduleBlockingSync, cudaEventBlockingSync,
		  [] { cudaEventRecord(event, stream); cudaEventSynchronize(event); } },
		{ "gpu-query", cudaDeviceScheduleAuto, 0,
		  [] { cudaEventRecord(event, stream); while (cudaEventQuery(event) == cudaErrorNotReady); } },
		{ "gpu-host-eventfd", cudaDeviceScheduleAuto, 0,
		  [] { eventfd_t count; cudaLaunchHostFunc(stream, rings, 0); eventfd_read(file, &count); } },
	};
	file = eventfd(0, EFD_CLOEXEC);
	for (auto &way : ways) {
		CHECK(cudaDeviceReset());
		CHECK(cudaSetDeviceFlags(way.flags));
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | way.event));
		CHECK(cudaHostAlloc(&stamps, 4096, cudaHostAllocMapped));
		for (unsigned long long ns : lengths)
			measure(way.way, ns, way.wait);
	}
}
