/* A disk that can be watched and that can fail, preloaded into a process.
 *
 * Every change of a file in the folder $DISK_FOLDER is appended to the file $DISK_LOG, in order:
 * a header, the path, and the bytes. disk_fail(n, error, forever) makes the n-th later change fail,
 * or all from there on; a failing write first writes half of its bytes, as a full or dying disk does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN = 1, WRITE, TRUNCATE, SYNC, UNLINK };
struct header { int kind, path; long offset, length; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *names[4096];
static int log_fd = -1;
static long countdown, failing, stays;

static const char *folder(void) {
  const char *path = getenv("DISK_FOLDER");
  return path ? path : "/nowhere";
}

static void note(int kind, const char *path, long offset, const void *data, long length) {
  struct header head = {kind, (int)strlen(path), offset, length};
  if (log_fd < 0) {
    const char *log = getenv("DISK_LOG");
    if (!log) return;
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  }
  syscall(SYS_write, log_fd, &head, sizeof head);
  syscall(SYS_write, log_fd, path, head.path);
  if (data) syscall(SYS_write, log_fd, data, length);
}

void disk_fail(long n, int error, int forever) { countdown = n, failing = error, stays = forever; }
long disk_left(void) { return countdown; }

static int fails(void) {
  if (countdown <= 0 || --countdown) return 0;
  if (stays) countdown = 1;
  return 1;
}
static const char *watched(int fd) { return fd >= 0 && fd < 4096 ? names[fd] : NULL; }

static int opened(int fd, const char *path, int flags) {
  char full[4096];
  if (fd < 0 || fd >= 4096 || !realpath(path, full) || strncmp(full, folder(), strlen(folder())))
    return fd;
  pthread_mutex_lock(&lock);
  names[fd] = strdup(full);
  if (flags & O_CREAT) note(OPEN, full, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  return fd;
}

static int open_any(int at, const char *path, int flags, mode_t mode) {
  return opened((int)syscall(SYS_openat, at, path, flags, mode), path, flags);
}

#define OPENS(name)                                              \
  int name(const char *path, int flags, ...) {                   \
    va_list rest;                                                \
    va_start(rest, flags);                                       \
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;    \
    va_end(rest);                                                \
    int fd = (int)open_any(AT_FDCWD, path, flags, mode);         \
    return fd;                                                   \
  }
OPENS(open)
OPENS(open64)

int close(int fd) {
  pthread_mutex_lock(&lock);
  if (watched(fd)) free(names[fd]), names[fd] = NULL;
  pthread_mutex_unlock(&lock);
  return (int)syscall(SYS_close, fd);
}

static ssize_t put(int fd, const void *data, size_t length, off_t offset) {
  const char *path = watched(fd);
  ssize_t done;
  if (!path) return syscall(SYS_pwrite64, fd, data, length, offset);
  pthread_mutex_lock(&lock);
  int broken = fails();
  done = syscall(SYS_pwrite64, fd, data, broken ? length / 2 : length, offset);
  if (done > 0) note(WRITE, path, offset, data, done);
  pthread_mutex_unlock(&lock);
  if (broken) return errno = (int)failing, -1;
  return done;
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return put(fd, data, length, offset); }
ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) { return put(fd, data, length, offset); }

ssize_t write(int fd, const void *data, size_t length) {
  const char *path = watched(fd);
  if (!path) return syscall(SYS_write, fd, data, length);
  pthread_mutex_lock(&lock);
  struct stat now;
  fstat(fd, &now);
  ssize_t done = syscall(SYS_write, fd, data, length);
  if (done > 0) note(WRITE, path, now.st_size, data, done);
  pthread_mutex_unlock(&lock);
  return done;
}

static int cut(int fd, off_t size) {
  const char *path = watched(fd);
  if (!path) return (int)syscall(SYS_ftruncate, fd, size);
  pthread_mutex_lock(&lock);
  int broken = fails(), done = broken ? -1 : (int)syscall(SYS_ftruncate, fd, size);
  if (!broken) note(TRUNCATE, path, size, NULL, 0);
  pthread_mutex_unlock(&lock);
  if (broken) errno = (int)failing;
  return done;
}
int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off_t size) { return cut(fd, size); }

static int settle(int fd) {
  const char *path = watched(fd);
  if (!path) return 0;
  pthread_mutex_lock(&lock);
  int broken = fails();
  if (!broken) note(SYNC, path, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  if (broken) return errno = (int)failing, -1;
  return 0;
}
int fsync(int fd) { return settle(fd); }
int fdatasync(int fd) { return settle(fd); }

int unlink(const char *path) {
  char full[4096];
  int ours = realpath(path, full) && !strncmp(full, folder(), strlen(folder()));
  int done = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  pthread_mutex_lock(&lock);
  if (ours && !done) note(UNLINK, full, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  return done;
}
