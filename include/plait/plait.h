/// Plait's C API. C99; may be included from C++.
///
/// Conventions: every function that can fail returns a plait_status and leaves a message for the calling thread, read by
/// plait_last_error(). Out-parameters come last and are written only on PLAIT_OK. Times are microseconds, sizes bytes.
#ifndef PLAIT_PLAIT_H_
#define PLAIT_PLAIT_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define PLAIT_API
#else
#define PLAIT_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The outcome of a call. Values never change their meaning between versions; new ones are added at the end.
typedef enum plait_status {
  PLAIT_OK = 0,
  PLAIT_INVALID_ARGUMENT = 1,  ///< The caller passed something that the function's documentation rules out.
  PLAIT_NOT_FOUND = 2,         ///< A file, tensor, lane or zoo name does not exist.
  PLAIT_UNSUPPORTED = 3,       ///< Valid, but this build, backend or device cannot do it.
  PLAIT_OUT_OF_MEMORY = 4,
  PLAIT_IO_ERROR = 5,          ///< The operating system refused to read or write.
  PLAIT_CORRUPT = 6,           ///< A file or plan is malformed, truncated or was made for something else.
  PLAIT_BUSY = 7,              ///< The session is running another inference.
  PLAIT_CANCELLED = 8,
  PLAIT_TIMEOUT = 9,
  PLAIT_DEVICE_LOST = 10,      ///< A lane failed while running.
  PLAIT_WRONG_PROCESS = 11,    ///< The object was created before a fork().
  PLAIT_INTERNAL = 12          ///< A fault of Plait itself.
} plait_status;

/// The name of `status` in lower case, e.g. "invalid_argument"; "unknown" for a value this version does not know.
/// Never NULL; a static string. Thread-safe.
PLAIT_API const char* plait_status_name(plait_status status);

#ifdef __cplusplus
}
#endif
#endif  // PLAIT_PLAIT_H_
