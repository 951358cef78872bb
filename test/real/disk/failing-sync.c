/* Makes fsync and fdatasync fail with EIO while the file exists that FAILING_SYNC names. Loaded with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int failing(void) {
  const char *flag = getenv("FAILING_SYNC");
  return flag != NULL && access(flag, F_OK) == 0;
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
