/* Faults below SQLite: loaded with LD_PRELOAD, armed with fault_arm().

   Every write, sync and truncation of files whose path begins with a prefix is counted. The one
   with a given number fails (EIO, ENOSPC, a short write), or the power goes off there: of what was
   written since the last sync of each file, a random part is lost, some of it in the middle of a
   page, and the process ends at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { NONE, EIO_ONCE, EIO_FROM_HERE, FULL, SHORT, POWER };

struct written { char path[512]; off_t at; size_t size, had; unsigned char *old; };

static char prefix[512];
static long number, seen;
static int kind;
static unsigned seed;
static struct written unsynced[65536];
static int count;

void fault_arm(const char *path, long at, int what, unsigned random) {
    strncpy(prefix, path, sizeof prefix - 1);
    number = at, kind = what, seed = random, seen = 0, count = 0;
}

long fault_seen(void) { return seen; }

static int concerns(int fd, char *path) {
    char name[64];
    if (!prefix[0]) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, 511);
    if (length <= 0) return 0;
    path[length] = 0;
    return strncmp(path, prefix, strlen(prefix)) == 0 && !strstr(path, "-shm");
}

static void power_off(void) {
    while (count--) {
        struct written *w = &unsynced[count];
        if (rand_r(&seed) % 2) continue;
        size_t from = rand_r(&seed) % 3 ? 0 : (rand_r(&seed) % (w->size / 512 + 1)) * 512;
        int fd = syscall(SYS_openat, AT_FDCWD, w->path, O_RDWR);
        if (fd < 0 || from >= w->size) continue;
        memset(w->old + w->had, 0, w->size - w->had);
        syscall(SYS_pwrite64, fd, w->old + from, w->size - from, w->at + (off_t)from);
        syscall(SYS_close, fd);
    }
    syscall(SYS_exit_group, 99);
}

/* Whether this operation fails; sets errno. */
static int fails(void) {
    seen++;
    if (kind == NONE || seen < number || (seen > number && kind != EIO_FROM_HERE && kind != FULL))
        return 0;
    if (kind == POWER) power_off();
    errno = kind == FULL ? ENOSPC : EIO;
    return 1;
}

static ssize_t keep_and_write(int fd, const char *path, const void *data, size_t size, off_t at) {
    if (kind == POWER && count < 65536) {
        struct written *w = &unsynced[count++];
        strcpy(w->path, path);
        w->at = at, w->size = size, w->old = malloc(size + 1);
        ssize_t had = syscall(SYS_pread64, fd, w->old, size, at);
        w->had = had > 0 ? (size_t)had : 0;
    }
    return syscall(SYS_pwrite64, fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    char path[512];
    if (!concerns(fd, path)) return syscall(SYS_pwrite64, fd, data, size, at);
    if (fails()) {
        if (kind == SHORT && size > 1) return syscall(SYS_pwrite64, fd, data, size / 2, at);
        return -1;
    }
    return keep_and_write(fd, path, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return pwrite64(fd, data, size, at);
}

static int sync_of(int fd, int call) {
    char path[512];
    if (!concerns(fd, path)) return syscall(call, fd);
    if (fails()) return -1;
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(unsynced[i].path, path)) unsynced[kept++] = unsynced[i];
        else free(unsynced[i].old);
    }
    count = kept;
    return syscall(call, fd);
}

int fdatasync(int fd) { return sync_of(fd, SYS_fdatasync); }
int fsync(int fd) { return sync_of(fd, SYS_fsync); }

int ftruncate64(int fd, off_t size) {
    char path[512];
    if (concerns(fd, path) && fails()) return -1;
    return syscall(SYS_ftruncate, fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
