/// Plait's C API. C99; may be included from C++. This header is the specification; docs/api.md shows how its parts work together.
///
/// Conventions
/// - Every function that can fail returns a plait_status and leaves a message for the calling thread, read by plait_last_error().
///   No exception and no abort leaves a function, whatever it is given; a NULL where none is allowed, a handle of another kind or
///   one that was destroyed, and a wrong `size` are PLAIT_INVALID_ARGUMENT.
/// - Out-parameters come last and are written only on PLAIT_OK. Times are microseconds, sizes bytes.
/// - Options are structs whose first member is their size; start from their _INIT macro. A NULL options pointer means the macro's
///   values. Structs that a function fills are started in the same way. A caller built with an older header may pass the smaller
///   struct of that header; a larger one is accepted if what this version does not know is zero.
/// - Handles are owned by the caller until it destroys them, in any order: what one handle needs of another, it keeps alive. A
///   `const char*` in a struct that was filled is borrowed and lives as long as the handle that it was asked of.
/// - plait_lanes, plait_model and plait_plan do not change once made: any number of threads may use one at the same time. A
///   plait_session serves one call at a time: a second, concurrent one gets PLAIT_BUSY, except where a function says otherwise.
/// - After fork() every call on a handle of the parent gets PLAIT_WRONG_PROCESS in the child, where destroying it is safe and
///   frees nothing.
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

/* ---- Versions, outcomes, messages ---------------------------------------------------------------------------------------------- */

#define PLAIT_VERSION_MAJOR 0
#define PLAIT_VERSION_MINOR 1
#define PLAIT_VERSION_PATCH 0
/// Grows when a program has to be compiled again; equals the shared library's SOVERSION.
#define PLAIT_ABI_VERSION 0

/// "MAJOR.MINOR.PATCH" of the library that runs. A static string. Thread-safe.
PLAIT_API const char* plait_version(void);
/// PLAIT_ABI_VERSION of the library that runs; a program whose own PLAIT_ABI_VERSION differs must not go on. Thread-safe.
PLAIT_API uint32_t plait_abi_version(void);
/// What this build has, parted by spaces, of "xnnpack", "opencl", "onnx". A static string. Thread-safe.
PLAIT_API const char* plait_features(void);

/// The outcome of a call. Values never change their meaning between versions; new ones are added at the end.
typedef enum plait_status {
  PLAIT_OK = 0,
  PLAIT_INVALID_ARGUMENT = 1,  ///< The caller passed something that the function's documentation rules out.
  PLAIT_NOT_FOUND = 2,         ///< A file, tensor, operator, lane or zoo name does not exist.
  PLAIT_UNSUPPORTED = 3,       ///< Valid, but this build, backend or device cannot do it.
  PLAIT_OUT_OF_MEMORY = 4,
  PLAIT_IO_ERROR = 5,          ///< The operating system refused to read or write.
  PLAIT_CORRUPT = 6,           ///< A file or plan is malformed, truncated or was made for something else.
  PLAIT_BUSY = 7,              ///< The session or one of its lanes is running another inference.
  PLAIT_CANCELLED = 8,
  PLAIT_TIMEOUT = 9,
  PLAIT_DEVICE_LOST = 10,      ///< A lane failed while running.
  PLAIT_WRONG_PROCESS = 11,    ///< The object was created before a fork().
  PLAIT_INTERNAL = 12          ///< A fault of Plait itself.
} plait_status;

/// The name of `status` in lower case, e.g. "invalid_argument"; "unknown" for a value this version does not know. Never NULL; a
/// static string. Thread-safe.
PLAIT_API const char* plait_status_name(plait_status status);

/// Why the last call of this thread that failed did so, in one line that says what to do; "" if none has failed. Calls that
/// succeed leave it as it is. Never NULL; valid until the thread's next call that fails. Messages over 2 KiB are cut.
PLAIT_API const char* plait_last_error(void);

/// Frees a text that a function gave to the caller; NULL is allowed.
PLAIT_API void plait_string_free(char* text);

typedef enum plait_log_level { PLAIT_LOG_INFO = 0, PLAIT_LOG_WARNING = 1, PLAIT_LOG_ERROR = 2 } plait_log_level;
/// Called with one line at a time, on any thread, by one thread at a time. `message` is borrowed for the call. Must not call
/// Plait.
typedef void (*plait_log_callback)(void* user, plait_log_level level, const char* message);
/// Sends the log of the whole process to `callback` (with `user`, which must live until the next call of this function); NULL:
/// back to standard error for warnings and errors. No call of the former callback runs any more when this returns.
PLAIT_API plait_status plait_set_log_callback(plait_log_callback callback, void* user);

/// Where the library takes large memory from: weights, packed weights, tensors, workspaces. Both functions are called on any
/// thread, several at a time, and must not call Plait; an exception that they throw is caught.
typedef struct plait_allocator {
  size_t size;
  /// `bytes` (more than 0) at a multiple of `alignment` (a power of two, at most 4096), which the library owns until it releases
  /// them; NULL: there are none, and what needed them fails with PLAIT_OUT_OF_MEMORY.
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  /// Gives back `data` of `bytes` as allocated. Never called with NULL.
  void (*release)(void* user, void* data, size_t bytes);
  void* user;
} plait_allocator;
#define PLAIT_ALLOCATOR_INIT {sizeof(plait_allocator), NULL, NULL, NULL}
/// From now on large memory of the whole process comes from `allocator` (copied); NULL: from the system again. Memory goes back
/// to the allocator that it came from, so one that was replaced must work until all handles made before are destroyed. Small
/// objects, and what drivers and XNNPACK allocate for themselves, are not included. Any thread, any time.
/// Errors: PLAIT_INVALID_ARGUMENT (one of the functions is NULL).
PLAIT_API plait_status plait_set_allocator(const plait_allocator* allocator);

/// Called now and then during long work, on the calling thread: what is being done, the share that is done (0 to 1), seconds left
/// (negative: unknown). Anything but 0 ends the work soon, with PLAIT_CANCELLED.
typedef int32_t (*plait_progress_callback)(void* user, const char* what, double done, double seconds_left);

/* ---- Lanes: what this machine computes with ------------------------------------------------------------------------------------ */

/// The lanes of this machine, opened: CPU clusters and the GPU. Opening is cheap, but keep one for the process: lanes of two
/// handles know nothing of each other.
typedef struct plait_lanes plait_lanes;

typedef enum plait_gpu_use {
  PLAIT_GPU_OFF = 0,
  PLAIT_GPU_IF_PRESENT = 1,
  PLAIT_GPU_REQUIRED = 2  ///< No GPU is an error, PLAIT_NOT_FOUND or what the driver gave.
} plait_gpu_use;

typedef struct plait_lanes_options {
  size_t size;
  const char* clusters;    ///< Cores of each CPU lane as Linux CPU lists parted by '/', e.g. "0-3/4-6/7"; NULL: as the system shows them, strongest first.
  const char* opencl_cpu;  ///< Take a CPU OpenCL device as gpu0 and confine it to these cores, e.g. "1" (for tests); NULL: real GPUs only.
  int32_t gpu;             ///< A plait_gpu_use.
  int32_t strict;          ///< Not 0: the GPU sees only what plans hand over (for tests).
  const char* cache_dir;   ///< Folder for measurements, plans and GPU programs, made if need be; must be private to the user. NULL: nothing is kept.
  void* opencl_context;    ///< A cl_context of the application's for gpu0 to work in; NULL: gpu0 has its own. See plait_lanes_open().
  void* opencl_device;     ///< With a context: which of its devices, a cl_device_id; NULL: it has one only.
  void* opencl_queue;      ///< With a context: a cl_command_queue of it, in order; NULL: each session has its own.
} plait_lanes_options;
#define PLAIT_LANES_OPTIONS_INIT {sizeof(plait_lanes_options), NULL, NULL, PLAIT_GPU_IF_PRESENT, 0, NULL, NULL, NULL, NULL}

/// Opens lanes: cpu0, cpu1, ..., gpu0. At least one CPU lane, or an error. A CPU OpenCL device can only be confined before
/// anything else in the process uses OpenCL.
///
/// An application that computes with OpenCL itself may hand in its context: gpu0 is then that device, a CPU device included,
/// memory and programs are made in that context, and no platform is asked for. Objects come from the system's OpenCL loader,
/// and are retained until the lanes and all that was made with them are destroyed; that they are valid cannot be checked. With a
/// queue the commands of all sessions go there: they run after what the application has enqueued before and ahead of what it
/// enqueues after, and during an inference its commands may wait for that inference's end. Sessions with timings, and
/// measurements, make a queue of their own if this one lacks CL_QUEUE_PROFILING_ENABLE. `opencl_cpu` says which cores the device
/// occupies, for planning; nothing is confined. What cannot be used is an error even with PLAIT_GPU_IF_PRESENT.
/// Errors: PLAIT_INVALID_ARGUMENT (lists of cores that cannot be read; a device or queue of another context, a queue out of
/// order, several devices and none named, a context with PLAIT_GPU_OFF), PLAIT_UNSUPPORTED (a device older than OpenCL 1.2, or without compiler), PLAIT_NOT_FOUND (no such core, no such device),
/// PLAIT_IO_ERROR (cache_dir cannot be made).
PLAIT_API plait_status plait_lanes_open(const plait_lanes_options* options, plait_lanes** lanes);
/// Plans and sessions made with the lanes stay usable. NULL is allowed and does nothing.
PLAIT_API plait_status plait_lanes_destroy(plait_lanes* lanes);

typedef struct plait_lane_info {
  size_t size;
  const char* name;         ///< "cpu0", "gpu0"
  const char* description;  ///< What runs there, for people.
  const int32_t* cpus;      ///< Cores that it occupies, `cpu_count` of them; borrowed like a string.
  size_t cpu_count;
  int32_t is_gpu;
  int32_t is_coherent;      ///< 0: parts of this lane and of the others must not share a cache line.
} plait_lane_info;
#define PLAIT_LANE_INFO_INIT {sizeof(plait_lane_info), NULL, NULL, NULL, 0, 0, 0}

PLAIT_API plait_status plait_lanes_count(const plait_lanes* lanes, size_t* count);
/// PLAIT_NOT_FOUND: `lane` is not below the count.
PLAIT_API plait_status plait_lanes_get(const plait_lanes* lanes, size_t lane, plait_lane_info* info);
/// What was not opened and why, one a line; "" if nothing. Owned by the caller: plait_string_free().
PLAIT_API plait_status plait_lanes_refused(const plait_lanes* lanes, char** text);

/* ---- Models: the graph, immutable ---------------------------------------------------------------------------------------------- */

/// A network: operators over tensors of fixed shape. Knows no lanes.
typedef struct plait_model plait_model;

typedef struct plait_shape {
  const char* input;
  const int64_t* dims;
  size_t rank;
} plait_shape;
typedef struct plait_model_options {
  size_t size;
  const plait_shape* shapes;  ///< Sizes for inputs whose file leaves dimensions open; a dimension that the file fixes has to agree.
  size_t shape_count;
} plait_model_options;
#define PLAIT_MODEL_OPTIONS_INIT {sizeof(plait_model_options), NULL, 0}

/// Reads an ONNX file or Plait's graph JSON (docs/formats.md), decided by content. Files are not trusted: malformed ones are
/// refused, and no more memory is taken than a constant times their size.
/// Errors: PLAIT_NOT_FOUND, PLAIT_IO_ERROR, PLAIT_CORRUPT (damaged, or not a model), PLAIT_UNSUPPORTED (other formats; operators
/// that this version lacks, all named), PLAIT_INVALID_ARGUMENT (impossible attributes; shapes that are not fixed),
/// PLAIT_OUT_OF_MEMORY.
PLAIT_API plait_status plait_model_load_file(const char* path, const plait_model_options* options, plait_model** model);
/// The same from memory, which may be freed afterwards. Graph JSON whose weights are in a second file is PLAIT_UNSUPPORTED.
PLAIT_API plait_status plait_model_load_memory(const void* data, size_t bytes, const plait_model_options* options, plait_model** model);
/// The same from `length` bytes at `offset` of an open file (an asset inside an Android package, say); a negative length: to the
/// end. `fd` stays the caller's, and its position is not moved. PLAIT_IO_ERROR: not a regular file, or the range lies outside it.
PLAIT_API plait_status plait_model_load_fd(int fd, int64_t offset, int64_t length, const plait_model_options* options, plait_model** model);
/// A built-in network with seeded weights, e.g. "resnet50": for tests and measurements. PLAIT_NOT_FOUND names what there is.
PLAIT_API plait_status plait_model_load_zoo(const char* name, plait_model** model);
/// Name of the i-th built-in network, smallest first; NULL beyond the last. A static string. Thread-safe.
PLAIT_API const char* plait_zoo_name(size_t i);
/// NULL is allowed and does nothing. Plans and sessions stay usable.
PLAIT_API plait_status plait_model_destroy(plait_model* model);

typedef enum plait_dtype {
  PLAIT_F32 = 0,
  PLAIT_F16 = 1,
  PLAIT_I8 = 2,
  PLAIT_U8 = 3,
  PLAIT_I32 = 4,
  PLAIT_I64 = 5,
  PLAIT_BOOL = 6
} plait_dtype;
#define PLAIT_MAX_RANK 8
typedef struct plait_tensor_info {
  size_t size;
  const char* name;
  plait_dtype dtype;
  int32_t rank;
  int64_t dims[PLAIT_MAX_RANK];  ///< Outermost first, in the model's own layout (ONNX images: NCHW); 0 beyond the rank.
  uint64_t bytes;                ///< Dense, row-major.
} plait_tensor_info;
#define PLAIT_TENSOR_INFO_INIT {sizeof(plait_tensor_info), NULL, PLAIT_F32, 0, {0, 0, 0, 0, 0, 0, 0, 0}, 0}

typedef struct plait_model_info {
  size_t size;
  const char* name;
  uint64_t hash;         ///< Of structure and weights; equal hashes, equal results.
  uint64_t parameters;
  uint64_t macs;         ///< Multiply-accumulates of one inference.
  uint32_t input_count;
  uint32_t output_count;
  uint32_t operator_count;
  uint32_t reserved;
} plait_model_info;
#define PLAIT_MODEL_INFO_INIT {sizeof(plait_model_info), NULL, 0, 0, 0, 0, 0, 0, 0}

PLAIT_API plait_status plait_model_get_info(const plait_model* model, plait_model_info* info);
/// The i-th input or output. Sessions number them alike. PLAIT_NOT_FOUND: there are fewer.
PLAIT_API plait_status plait_model_get_input(const plait_model* model, size_t i, plait_tensor_info* info);
PLAIT_API plait_status plait_model_get_output(const plait_model* model, size_t i, plait_tensor_info* info);
/// The number of an input or output by name. PLAIT_NOT_FOUND names those there are.
PLAIT_API plait_status plait_model_find_input(const plait_model* model, const char* name, size_t* i);
PLAIT_API plait_status plait_model_find_output(const plait_model* model, const char* name, size_t* i);

/* ---- Plans: which lane computes what, and when --------------------------------------------------------------------------------- */

/// How one model runs on certain lanes: cuts, lanes, orders, memory. Never changes results beyond rounding.
typedef struct plait_plan plait_plan;

typedef enum plait_effort { PLAIT_EFFORT_FAST = 0, PLAIT_EFFORT_DEFAULT = 1, PLAIT_EFFORT_HIGH = 2 } plait_effort;

/// What the application knows better than the search. Names are those of plait_plan_explain(): operators of the prepared graph,
/// in which small ones are fused into their neighbours. Several annotations of one operator all hold.
typedef struct plait_annotation {
  const char* operators;  ///< Name, or a pattern with '*' and '?'. One that fits no operator is PLAIT_NOT_FOUND.
  const char* pin;        ///< Lanes parted by commas: no other lane runs any part. NULL: any lane may.
  const char* forbid;     ///< Lanes parted by commas that run no part. NULL: none is forbidden.
  int32_t whole;          ///< Not 0: never cut into parts.
  int32_t reserved;       ///< 0.
} plait_annotation;

/// What a strategy sees, and what it writes: plait/strategy.h.
typedef struct plait_problem plait_problem;
typedef struct plait_schedule plait_schedule;
/// Fills `schedule` with parts for every operator of `problem`; both are valid during the call only, on the calling thread.
/// Anything but 0: PLAIT_CANCELLED.
typedef int32_t (*plait_strategy_callback)(void* user, const plait_problem* problem, plait_schedule* schedule);

typedef struct plait_plan_options {
  size_t size;
  int32_t effort;                       ///< A plait_effort.
  int32_t tune;                         ///< Not 0: run candidates beside the best single lane (some seconds) and keep what is fastest. 0: trust predictions.
  int32_t use_cache;                    ///< Not 0: take the plan from the lanes' cache_dir if it is there.
  uint64_t seed;                        ///< The same seed, costs and model give the same plan.
  double calibration_seconds_per_lane;  ///< Bound on measuring operators that the lanes' cache_dir does not know; 0: measure nothing.
  const plait_annotation* annotations;
  size_t annotation_count;
  const char* strategy_name;            ///< NULL or "search"; "lane:NAME": everything there; "random:SEED": legal, for tests. With `strategy`: what reports call it.
  plait_strategy_callback strategy;     ///< NULL: by name. Its schedule is checked; the first rule that it violates is named with operator and lane.
  void* strategy_user;
  plait_progress_callback progress;
  void* progress_user;
} plait_plan_options;
#define PLAIT_PLAN_OPTIONS_INIT {sizeof(plait_plan_options), PLAIT_EFFORT_DEFAULT, 1, 1, 1, 30.0, NULL, 0, NULL, NULL, NULL, NULL, NULL}

/// Plans `model` for `lanes`: measures what is not known (calibration_seconds_per_lane), searches or asks the strategy, verifies,
/// and, with `tune`, runs candidates. With the default strategy the plan is never predicted slower than the best single lane,
/// nor, with `tune`, measured slower beyond noise. Nothing else should run on the lanes meanwhile. Strategies other than "search"
/// are neither tuned nor cached; "lane:" and "random:" do not measure.
/// Errors: PLAIT_UNSUPPORTED (an operator that no allowed lane can run, named), PLAIT_NOT_FOUND (annotation or strategy name that
/// fits nothing), PLAIT_INVALID_ARGUMENT (illegal schedule of a strategy), PLAIT_CANCELLED, PLAIT_BUSY (a session is running on
/// the lanes), PLAIT_OUT_OF_MEMORY.
PLAIT_API plait_status plait_plan_make(const plait_model* model, const plait_lanes* lanes, const plait_plan_options* options, plait_plan** plan);
/// Reads a plan that plait_plan_save() wrote, for the same model structure (weights may differ) and lanes of the same names and
/// kinds. Files are not trusted: the plan is verified anew. Errors: PLAIT_NOT_FOUND, PLAIT_IO_ERROR, PLAIT_CORRUPT (damaged,
/// edited, or made for something else).
PLAIT_API plait_status plait_plan_load(const plait_model* model, const plait_lanes* lanes, const char* path, plait_plan** plan);
/// Writes the plan in one step: afterwards `path` holds all of it or what it held before. PLAIT_IO_ERROR.
PLAIT_API plait_status plait_plan_save(const plait_plan* plan, const char* path);
/// NULL is allowed and does nothing. Sessions stay usable.
PLAIT_API plait_status plait_plan_destroy(plait_plan* plan);

typedef struct plait_plan_info {
  size_t size;
  const char* strategy;    ///< Who made it: "lane:cpu0", ..., or what the search ended with.
  double predicted_us;     ///< 0: nothing was known of the operators' costs.
  double lower_bound_us;   ///< No plan can be predicted faster; 0: none computed.
  double planning_us;      ///< The search alone.
  double measured_us;      ///< Median while tuning; 0: not measured.
  double best_single_us;   ///< Of the best single lane beside it; 0: not measured.
  uint64_t memory_bytes;   ///< Of all activations, inputs and outputs of a session.
  uint32_t part_count;
  uint32_t handoff_count;  ///< Waits of one lane for another.
  uint32_t segment_count;  ///< Submissions to a GPU.
  uint32_t from_cache;     ///< 1: taken from the cache.
} plait_plan_info;
#define PLAIT_PLAN_INFO_INIT {sizeof(plait_plan_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

PLAIT_API plait_status plait_plan_get_info(const plait_plan* plan, plait_plan_info* info);
/// The plan in words: predicted latency and bound, utilisation, critical path, handoffs that matter, each lane's steps. Owned by
/// the caller: plait_string_free().
PLAIT_API plait_status plait_plan_explain(const plait_plan* plan, char** text);
/// The same as a JSON object (docs/formats.md).
PLAIT_API plait_status plait_plan_explain_json(const plait_plan* plan, char** json);

/* ---- Calibration: measuring a machine ahead of planning ------------------------------------------------------------------------ */

typedef struct plait_calibrate_options {
  size_t size;
  double seconds_per_lane;  ///< Bound on measuring; less is used where medians are good enough earlier. Greater than 0.
  plait_progress_callback progress;
  void* progress_user;
} plait_calibrate_options;
#define PLAIT_CALIBRATE_OPTIONS_INIT {sizeof(plait_calibrate_options), 30.0, NULL, NULL}

typedef struct plait_calibration {
  size_t size;
  uint32_t measured;  ///< Operators and cuts measured now.
  uint32_t known;     ///< Those that were known already.
  double seconds;
} plait_calibration;
#define PLAIT_CALIBRATION_INIT {sizeof(plait_calibration), 0, 0, 0}

/// Measures on every lane what is not yet known of the operators of `model`, and handoffs between lanes; kept in the lanes'
/// cache_dir for every later plan. Nothing else should run on the lanes. `report` may be NULL. Errors: PLAIT_INVALID_ARGUMENT
/// (the lanes have no cache_dir), PLAIT_IO_ERROR, PLAIT_CANCELLED, PLAIT_BUSY, PLAIT_UNSUPPORTED.
PLAIT_API plait_status plait_calibrate(const plait_model* model, const plait_lanes* lanes, const plait_calibrate_options* options, plait_calibration* report);

/* ---- Sessions: a plan with memory, ready to run -------------------------------------------------------------------------------- */

typedef struct plait_session plait_session;

typedef struct plait_session_options {
  size_t size;
  double timeout_us;    ///< An inference that takes longer ends with PLAIT_TIMEOUT, and the session is unusable; 0: none.
  double idle_spin_us;  ///< How long lanes spin for the next inference before they sleep; never on the caller's core.
  int32_t timings;      ///< Not 0: keep when each step of the last inference ran, for plait_session_trace(). Costs two clock reads a step.
  int32_t reserved;     ///< 0.
} plait_session_options;
#define PLAIT_SESSION_OPTIONS_INIT {sizeof(plait_session_options), 10e6, 50.0, 0, 0}

/// Prepares every step of `plan`: threads, memory, packed weights, GPU programs. Sessions over the same lanes share threads and
/// packed weights; one of them runs at a time.
/// Errors: PLAIT_OUT_OF_MEMORY, PLAIT_UNSUPPORTED, PLAIT_DEVICE_LOST.
PLAIT_API plait_status plait_session_create(const plait_plan* plan, const plait_session_options* options, plait_session** session);
/// Waits for the call that is in progress, if any (plait_session_cancel() shortens that), and for a callback of run_async; then
/// no memory of the caller is touched any more. A call that is made after this one began is PLAIT_INVALID_ARGUMENT. From the
/// session's own callback: returns at once, the session ends when the callback does. NULL is allowed.
PLAIT_API plait_status plait_session_destroy(plait_session* session);

/// Copies a whole input in or a whole output out; `bytes` must be exactly plait_tensor_info::bytes.
/// Errors: PLAIT_NOT_FOUND (no such tensor), PLAIT_INVALID_ARGUMENT (wrong size), PLAIT_BUSY. Outputs hold what the last
/// successful run computed; zeros before the first.
PLAIT_API plait_status plait_session_set_input(plait_session* session, size_t i, const void* data, size_t bytes);
PLAIT_API plait_status plait_session_set_input_by_name(plait_session* session, const char* name, const void* data, size_t bytes);
PLAIT_API plait_status plait_session_get_output(plait_session* session, size_t i, void* data, size_t bytes);
PLAIT_API plait_status plait_session_get_output_by_name(plait_session* session, const char* name, void* data, size_t bytes);

/// The memory itself that inference reads an input from or leaves an output in: write and read it in place, between runs, and
/// nothing is copied. 64-byte aligned unless it is the caller's own. Borrowed until the session is destroyed or
/// plait_session_bind_buffers() is called. PLAIT_NOT_FOUND, PLAIT_BUSY.
PLAIT_API plait_status plait_session_input_data(plait_session* session, size_t i, void** data, size_t* bytes);
PLAIT_API plait_status plait_session_output_data(plait_session* session, size_t i, const void** data, size_t* bytes);

/// The caller's memory for one tensor. `data` NULL: the session's own.
typedef struct plait_buffer {
  void* data;    ///< A multiple of 64.
  size_t bytes;  ///< At least the tensor's bytes rounded up to 64, plus PLAIT_BUFFER_SLACK: kernels read (never write) a little beyond the end.
} plait_buffer;
#define PLAIT_BUFFER_ALIGNMENT 64
#define PLAIT_BUFFER_SLACK 64
/// From now on inputs are read from, and outputs written to, the caller's buffers, given by number (those beyond a count: the
/// session's own). They must live, and be left alone during runs, until the next call of this function or the end of the session,
/// and must not overlap. CPU lanes use them in place; where a GPU lane touches the tensor, it is copied at the begin or end of
/// each run (plait_session_stats::copied_bytes). Steps are prepared anew: do this once, not for every inference. On failure all
/// is as before. Errors: PLAIT_INVALID_ARGUMENT (too many, too small, misaligned, overlapping), PLAIT_BUSY, PLAIT_OUT_OF_MEMORY.
PLAIT_API plait_status plait_session_bind_buffers(plait_session* session, const plait_buffer* inputs, size_t input_count, const plait_buffer* outputs,
                                                  size_t output_count);

/// One inference: equivalent to computing the model's operators one after the other, up to rounding; the same plan, device and
/// build give the same bits every time. Inputs are unchanged afterwards. Returns when all outputs are there.
/// Errors: PLAIT_BUSY (this session or another one on the same lanes is running), PLAIT_CANCELLED, PLAIT_TIMEOUT and
/// PLAIT_DEVICE_LOST (the session is unusable afterwards: make another, with a plan for the lanes that are left). After an error
/// the outputs hold anything.
PLAIT_API plait_status plait_session_run(plait_session* session);
/// Called once when the inference has ended, on a thread of the session: `status` as plait_session_run() returns it, `message`
/// (borrowed for the call) as plait_last_error(). The callback may use the session as usual, start the next inference, and
/// destroy the session; others get PLAIT_BUSY until it returns.
typedef void (*plait_run_callback)(void* user, plait_session* session, plait_status status, const char* message);
/// Starts an inference and returns. PLAIT_OK: `callback` will be called. Otherwise it will not: PLAIT_BUSY, PLAIT_OUT_OF_MEMORY
/// (no thread can be made).
PLAIT_API plait_status plait_session_run_async(plait_session* session, plait_run_callback callback, void* user);
/// Waits until no inference of run_async is in progress and its callback has returned. Any thread, any time, except from that
/// callback (PLAIT_INVALID_ARGUMENT).
PLAIT_API plait_status plait_session_wait(plait_session* session);
/// Ends the inference in progress with PLAIT_CANCELLED, soon; without one does nothing. An inference that run_async has begun
/// ends so even if it had not started to compute or had just finished. Any thread, any time; the session stays usable.
PLAIT_API plait_status plait_session_cancel(plait_session* session);

typedef struct plait_session_stats {
  size_t size;
  uint64_t runs;          ///< That succeeded.
  uint64_t failed;        ///< That ended otherwise, PLAIT_BUSY aside.
  double last_us;         ///< From the call to its return, of successful runs; 0 before the first.
  double min_us;
  double max_us;
  double mean_us;
  double predicted_us;    ///< By the plan.
  uint64_t memory_bytes;  ///< Of activations, inputs and outputs.
  uint64_t copied_bytes;  ///< Copied in each run between buffers of the caller and memory that a GPU lane sees.
} plait_session_stats;
#define PLAIT_SESSION_STATS_INIT {sizeof(plait_session_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0}

typedef struct plait_lane_stats {
  size_t size;
  const char* name;
  uint32_t compute_steps;    ///< Parts of one inference on this lane.
  uint32_t reference_steps;  ///< Those of them that run on the slow reference kernels for want of better ones.
  int32_t is_pinned;         ///< 0: the system refused to confine the lane to its cores (or it is no CPU lane).
  uint32_t reserved;
} plait_lane_stats;
#define PLAIT_LANE_STATS_INIT {sizeof(plait_lane_stats), NULL, 0, 0, 0, 0}

/// Both: any thread, any time.
PLAIT_API plait_status plait_session_get_stats(const plait_session* session, plait_session_stats* stats);
PLAIT_API plait_status plait_session_get_lane_stats(const plait_session* session, size_t lane, plait_lane_stats* stats);
/// Writes the last inference as a trace that ui.perfetto.dev opens. Needs plait_session_options::timings and a successful run
/// (PLAIT_INVALID_ARGUMENT). PLAIT_IO_ERROR, PLAIT_BUSY.
PLAIT_API plait_status plait_session_trace(plait_session* session, const char* path);

#ifdef __cplusplus
}
#endif
#endif  // PLAIT_PLAIT_H_
