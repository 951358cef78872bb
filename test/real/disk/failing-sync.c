/*
 * Makes fsync and fdatasync fail with EIO while the file exists that FAILING_SYNC names, and notes each write to a -wal file in the file that
 * WAL_WRITES names, as its offset and length. Loaded with LD_PRELOAD.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file gets a character for each sync that fails. */
static int failing(void) {
  const char *flag = getenv("FAILING_SYNC");
  if (flag == NULL || access(flag, F_OK) != 0) return 0;
  FILE *failures = fopen(flag, "a");
  if (failures != NULL) {
    fputc('.', failures);
    fclose(failures);
  }
  return 1;
}

static void note(int file, size_t length, off64_t offset) {
  const char *notes = getenv("WAL_WRITES");
  char link[64], path[4096];
  if (notes == NULL) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 4) return;
  path[size] = 0;
  if (strcmp(path + size - 4, "-wal") != 0) return;
  FILE *list = fopen(notes, "a");
  if (list == NULL) return;
  fprintf(list, "%lld %zu\n", (long long)offset, length);
  fclose(list);
}

int fsync(int file) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  if (!failing()) return real(file);
  errno = EIO;
  return -1;
}

int fdatasync(int file) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  if (!failing()) return real(file);
  errno = EIO;
  return -1;
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (real == NULL) real = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  note(file, length, offset);
  return real(file, bytes, length, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
  return pwrite64(file, bytes, length, offset);
}
