// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// For LD_PRELOAD into a server: sets its wall clock. The first 8 bytes of the file that
// REDLATCH_CLOCK names are the time in microseconds since 1970, written by another process.
// Monotonic clocks stay real, so that the event loop runs while the wall clock does not move.
//
// Valkey 9.1 reads the wall clock once in a millisecond, and adds the ticks of the processor's
// clock since then, unless /proc/cpuinfo does not show that this clock is a constant one.
//
// The server's allocator may read the time before anything is set up: until then the shim makes
// system calls only.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

extern char **environ;

static _Atomic(const _Atomic int64_t *) clock_us;

static const char *file_name(void) {
  static const char name[] = "REDLATCH_CLOCK=";
  for (char **entry = environ; entry && *entry; entry++) {
    if (strncmp(*entry, name, sizeof name - 1) == 0) return *entry + sizeof name - 1;
  }
  return NULL;
}

// Without the file the server ends: on real time every comparison would be worthless.
static int64_t now_us(void) {
  const _Atomic int64_t *mapped = atomic_load(&clock_us);
  if (!mapped) {
    const char *name = file_name();
    const int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *mapped, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) _exit(70);
    close(fd);
    mapped = page;
    atomic_store(&clock_us, mapped);
  }
  return atomic_load(mapped);
}

// The event loop reads the monotonic time often; the C library does that without a system call.
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find_real_clock(void) {
  *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

SHOWN int clock_gettime(clockid_t id, struct timespec *time) {
  if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) {
    if (real_clock_gettime) return real_clock_gettime(id, time);
    return (int)syscall(SYS_clock_gettime, id, time);
  }
  const int64_t us = now_us();
  time->tv_sec = us / 1000000;
  time->tv_nsec = us % 1000000 * 1000;
  return 0;
}

SHOWN int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  const int64_t us = now_us();
  time->tv_sec = us / 1000000;
  time->tv_usec = us % 1000000;
  return 0;
}

SHOWN time_t time(time_t *out) {
  const time_t seconds = now_us() / 1000000;
  if (out) *out = seconds;
  return seconds;
}

static FILE *open_file(const char *function, const char *name, const char *mode) {
  if (strcmp(name, "/proc/cpuinfo") == 0) {
    errno = ENOENT;
    return NULL;
  }
  FILE *(*real)(const char *, const char *) = NULL;
  *(void **)&real = dlsym(RTLD_NEXT, function);
  return real(name, mode);
}

SHOWN FILE *fopen(const char *restrict name, const char *restrict mode) {
  return open_file("fopen", name, mode);
}

SHOWN FILE *fopen64(const char *restrict name, const char *restrict mode) {
  return open_file("fopen64", name, mode);
}
