/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The system functions that newlib requires for printf(), open() and malloc(): files through semihosting, and a heap in
 * the RAM that the firmware does not use. If the firmware does not call them, the linker drops them.
 *
 * They are USED, since link-time optimisation otherwise drops them before the linker finds their calls in newlib.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mlf_board.h"
#include "semihosting.h"

#define USED __attribute__((used))

USED int _close(int file);
USED int _fstat(int file, struct stat *status);
USED int _getpid(void);
USED int _isatty(int file);
USED int _kill(int process, int signal);
USED int _open(const char *path, int flags, int mode);
USED int _read(int file, char *buffer, int size);
USED int _write(int file, const char *data, int size);
USED off_t _lseek(int file, off_t offset, int origin);
USED void *_sbrk(ptrdiff_t increment);
USED void _exit(int status);
USED __attribute__((weak)) void _fini(void);

/* File descriptors 0 to 2 are the console; the others are semihosting handles with an offset. */
#define CONSOLE_FILES 3

/* The handle of a file descriptor, or -1; the console is opened when it is first used. */
static int32_t handle_of(int file)
{
    static int32_t console[CONSOLE_FILES]; /* handle + 1; 0: not open yet */
    static const enum semihosting_mode modes[CONSOLE_FILES] = {SEMIHOSTING_RB, SEMIHOSTING_WB, SEMIHOSTING_AB};
    if (file < 0 || file >= CONSOLE_FILES) {
        return file - CONSOLE_FILES;
    }
    if (console[file] == 0) {
        console[file] = semihosting_open(":tt", modes[file]) + 1;
    }
    return console[file] - 1;
}

static int failed(int reason)
{
    errno = reason;
    return -1;
}

int _open(const char *path, int flags, int mode)
{
    (void)mode;
    enum semihosting_mode wanted = SEMIHOSTING_RB;
    if (flags & O_APPEND) {
        wanted = SEMIHOSTING_AB;
    } else if (flags & O_TRUNC) {
        wanted = SEMIHOSTING_WB;
    } else if (flags & (O_WRONLY | O_RDWR)) {
        wanted = SEMIHOSTING_RB_PLUS;
    }
    const int32_t handle = semihosting_open(path, wanted);
    return handle < 0 ? failed(ENOENT) : (int)handle + CONSOLE_FILES;
}

int _close(int file)
{
    return semihosting_close(handle_of(file)) == 0 ? 0 : failed(EBADF);
}

int _read(int file, char *buffer, int size)
{
    const int32_t left = semihosting_read(handle_of(file), buffer, (size_t)size);
    return left < 0 ? failed(EIO) : size - (int)left;
}

int _write(int file, const char *data, int size)
{
    const int32_t left = semihosting_write(handle_of(file), data, (size_t)size);
    return left < 0 || left == size ? failed(EIO) : size - (int)left;
}

/* Semihosting does not report the position, so SEEK_CUR is not supported. */
off_t _lseek(int file, off_t offset, int origin)
{
    if (file < CONSOLE_FILES || origin == SEEK_CUR) {
        return failed(ESPIPE);
    }
    const off_t position = origin == SEEK_END ? semihosting_length(handle_of(file)) + offset : offset;
    return semihosting_seek(handle_of(file), (uint32_t)position) == 0 ? position : failed(EINVAL);
}

int _isatty(int file)
{
    return file >= 0 && file < CONSOLE_FILES;
}

int _fstat(int file, struct stat *status)
{
    status->st_mode = _isatty(file) ? S_IFCHR : S_IFREG; /* a character device is buffered line by line */
    return 0;
}

void *_sbrk(ptrdiff_t increment)
{
    extern char __heap_start[], __heap_end[];
    static ptrdiff_t used;
    if (increment > __heap_end - __heap_start - used) {
        failed(ENOMEM);
        return (void *)-1;
    }
    used += increment;
    return __heap_start + used - increment;
}

int _getpid(void)
{
    return 1;
}

int _kill(int process, int signal)
{
    (void)process;
    (void)signal;
    return failed(EINVAL);
}

void _exit(int status)
{
    semihosting_exit(status);
}

/* exit() of newlib's large C library calls it; GCC's start-up files have one, but boards link none of them. */
void _fini(void)
{
}

#if defined(__PICOLIBC__)

/* picolibc calls these functions by the names of POSIX, and takes the standard streams from the firmware. */
USED int close(int file);
USED int open(const char *path, int flags, ...);

int open(const char *path, int flags, ...)
{
    return _open(path, flags, 0);
}

int close(int file)
{
    return _close(file);
}

USED ssize_t read(int file, void *buffer, size_t size)
{
    return _read(file, buffer, (int)size);
}

USED ssize_t write(int file, const void *data, size_t size)
{
    return _write(file, data, (int)size);
}

USED off_t lseek(int file, off_t offset, int origin)
{
    return _lseek(file, offset, origin);
}

USED int isatty(int file)
{
    return _isatty(file);
}

USED int fstat(int file, struct stat *status)
{
    return _fstat(file, status);
}

USED pid_t getpid(void)
{
    return _getpid();
}

USED int kill(pid_t process, int signal)
{
    return _kill((int)process, signal);
}

static int put_character(char character, FILE *stream)
{
    return _write(stream == stderr ? STDERR_FILENO : STDOUT_FILENO, &character, 1) == 1 ? (unsigned char)character : EOF;
}

static int get_character(FILE *stream)
{
    unsigned char character;
    (void)stream;
    return _read(STDIN_FILENO, (char *)&character, 1) == 1 ? character : EOF;
}

static FILE input = FDEV_SETUP_STREAM(NULL, get_character, NULL, _FDEV_SETUP_READ);
static FILE output = FDEV_SETUP_STREAM(put_character, NULL, NULL, _FDEV_SETUP_WRITE);
static FILE errors = FDEV_SETUP_STREAM(put_character, NULL, NULL, _FDEV_SETUP_WRITE);
USED FILE *const stdin = &input;
USED FILE *const stdout = &output;
USED FILE *const stderr = &errors;

#endif
