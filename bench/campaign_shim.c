/* Lets the n-th operation of a kind below a folder fail, as CAMPAIGN_FAULT says: OPERATION N ERRNO ONWARD FOLDER. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char operation[16], root[4096];
static int nth = 0, error = 0, onward = 0;
static atomic_int seen = 0;

__attribute__((constructor)) void campaign_arm(void) {
    const char *said = getenv("CAMPAIGN_FAULT");
    nth = 0;
    seen = 0;
    if (said && sscanf(said, "%15s %d %d %d %4095s", operation, &nth, &error, &onward, root) != 5) nth = 0;
}

static int fails(const char *what, const char *path) {
    if (!nth || strcmp(what, operation) || !path || strncmp(path, root, strlen(root))) return 0;
    int now = ++seen;
    if (now == nth || (onward && now > nth)) { errno = error; return 1; }
    return 0;
}

static int fails_fd(const char *what, int fd) {
    if (!nth || strcmp(what, operation)) return 0;
    char link[64], path[4096];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = before;
    if (n < 0) return 0;
    path[n] = 0;
    return fails(what, path);
}

static const char *absolute(const char *path, char *room) {
    if (path[0] == '/') return path;
    if (!getcwd(room, 2048)) return path;
    strcat(room, "/");
    strncat(room, path, 2000);
    return room;
}

#define NEXT(type, name, ...) \
    static type (*next)(__VA_ARGS__) = NULL; if (!next) next = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *b, size_t n) {
    NEXT(ssize_t, "write", int, const void *, size_t); return fails_fd("write", fd) ? -1 : next(fd, b, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) {
    NEXT(ssize_t, "pwrite", int, const void *, size_t, off_t);
    return fails_fd("write", fd) ? -1 : next(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off_t o) {
    NEXT(ssize_t, "pwrite64", int, const void *, size_t, off_t);
    return fails_fd("write", fd) ? -1 : next(fd, b, n, o); }
ssize_t writev(int fd, const struct iovec *v, int n) {
    NEXT(ssize_t, "writev", int, const struct iovec *, int); return fails_fd("write", fd) ? -1 : next(fd, v, n); }
int fsync(int fd) { NEXT(int, "fsync", int); return fails_fd("fsync", fd) ? -1 : next(fd); }
int fdatasync(int fd) { NEXT(int, "fdatasync", int); return fails_fd("fsync", fd) ? -1 : next(fd); }
int ftruncate(int fd, off_t n) { NEXT(int, "ftruncate", int, off_t); return fails_fd("write", fd) ? -1 : next(fd, n); }
int rename(const char *a, const char *b) {
    char room[4096]; NEXT(int, "rename", const char *, const char *);
    return fails("rename", absolute(b, room)) ? -1 : next(a, b); }
int link(const char *a, const char *b) {
    char room[4096]; NEXT(int, "link", const char *, const char *);
    return fails("link", absolute(b, room)) ? -1 : next(a, b); }
int mkdir(const char *a, mode_t m) {
    char room[4096]; NEXT(int, "mkdir", const char *, mode_t);
    return fails("mkdir", absolute(a, room)) ? -1 : next(a, m); }

#define OPEN(name) \
int name(const char *path, int flags, ...) { \
    char room[4096]; va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    NEXT(int, #name, const char *, int, ...); \
    return (flags & O_CREAT) && fails("open", absolute(path, room)) ? -1 : next(path, flags, mode); }
OPEN(open)
OPEN(open64)
