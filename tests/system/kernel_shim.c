/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * For LD_PRELOAD into the actor: what the kernel does, as a test says in the file that
 * REDLATCH_KERNEL names, which it may change at any time:
 *   0  int64  the time in ns that CLOCK_BOOTTIME is ahead: a jump is a suspend, which the sleeps of
 *             CLOCK_MONOTONIC do not count
 *   8  int32  the errno with which CLOCK_BOOTTIME is refused, or 0
 *  12  int32  the errno with which epoll_ctl() refuses all but to remove a descriptor, or 0
 *  16  int32  the errno with which timerfd_create() is refused, or 0
 * A thread moves the timers of CLOCK_BOOTTIME when it jumps, as the kernel does at a resume.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

enum { MAX_TIMERS = 64 };

struct kernel {
  _Atomic int64_t ahead_ns;
  _Atomic int32_t clock_errno, epoll_errno, timer_errno;
};

static struct kernel none;
static struct kernel *kernel = &none;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
  int fd;
  int flags;
  struct itimerspec at;
} timers[MAX_TIMERS];
static int timer_count;

#define REAL(function)        \
  __typeof__(&function) real; \
  *(void **)&real = dlsym(RTLD_NEXT, #function)

static struct timespec moved(struct timespec time, int64_t by_ns) {
  const int64_t ns = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec + by_ns;
  struct timespec result = {0, 1}; /* long ago, and not zero, which would disarm */
  if (ns > 0) {
    result.tv_sec = ns / 1000000000;
    result.tv_nsec = ns % 1000000000;
  }
  return result;
}

static int set_timer(int index, struct itimerspec *old) {
  REAL(timerfd_settime);
  struct itimerspec at = timers[index].at;
  const int is_armed = at.it_value.tv_sec != 0 || at.it_value.tv_nsec != 0;
  if (is_armed && (timers[index].flags & TFD_TIMER_ABSTIME)) {
    at.it_value = moved(at.it_value, -atomic_load(&kernel->ahead_ns));
  }
  return real(timers[index].fd, timers[index].flags, &at, old);
}

static void *move_timers(void *unused) {
  int64_t ahead_ns = atomic_load(&kernel->ahead_ns);
  (void)unused;
  for (;;) {
    const struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
    if (atomic_load(&kernel->ahead_ns) == ahead_ns) continue;
    ahead_ns = atomic_load(&kernel->ahead_ns);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < timer_count; i++) {
      if (timers[i].fd >= 0) set_timer(i, NULL);
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("REDLATCH_KERNEL");
  const int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
  void *page = mmap(NULL, sizeof *kernel, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  pthread_t thread;
  if (page == MAP_FAILED) _exit(70);
  close(fd);
  kernel = page;
  if (pthread_create(&thread, NULL, move_timers, NULL) != 0) _exit(70);
  pthread_detach(thread);
}

SHOWN int clock_gettime(clockid_t id, struct timespec *time) {
  REAL(clock_gettime);
  if (id != CLOCK_BOOTTIME) return real(id, time);
  if (atomic_load(&kernel->clock_errno) != 0) {
    errno = atomic_load(&kernel->clock_errno);
    return -1;
  }
  const int result = real(id, time);
  if (result == 0) *time = moved(*time, atomic_load(&kernel->ahead_ns));
  return result;
}

SHOWN int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
  REAL(epoll_ctl);
  if (operation != EPOLL_CTL_DEL && atomic_load(&kernel->epoll_errno) != 0) {
    errno = atomic_load(&kernel->epoll_errno);
    return -1;
  }
  return real(epoll, operation, fd, event);
}

SHOWN int timerfd_create(int clock, int flags) {
  REAL(timerfd_create);
  if (atomic_load(&kernel->timer_errno) != 0) {
    errno = atomic_load(&kernel->timer_errno);
    return -1;
  }
  const int fd = real(clock, flags);
  if (fd < 0 || clock != CLOCK_BOOTTIME) return fd;
  pthread_mutex_lock(&mutex);
  if (timer_count == MAX_TIMERS) _exit(70);
  timers[timer_count++].fd = fd;
  pthread_mutex_unlock(&mutex);
  return fd;
}

SHOWN int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old) {
  REAL(timerfd_settime);
  int result = -1, is_known = 0;
  pthread_mutex_lock(&mutex);
  for (int i = timer_count - 1; i >= 0 && !is_known; i--) {
    if (timers[i].fd != fd) continue;
    is_known = 1;
    timers[i].flags = flags;
    timers[i].at = *at;
    result = set_timer(i, old);
  }
  pthread_mutex_unlock(&mutex);
  return is_known ? result : real(fd, flags, at, old);
}
