/* The part of TFLite's C interface that these delegates use, written down from its documentation. */
#ifndef DELEGRAPH_TESTS_TFLITE_H_
#define DELEGRAPH_TESTS_TFLITE_H_
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, ERROR = 1, DELEGATE_ERROR = 2 };
enum { FLOAT32 = 1, ADD = 0, DYNAMIC = 4, ARENA_RW = 2 };

typedef struct { int size; int data[]; } IntArray;
typedef struct { int size; float data[]; } FloatArray;
typedef struct { FloatArray *scale; IntArray *zero_point; int32_t quantized_dimension; } Affine;

typedef struct {
  int type;
  void *data;
  IntArray *dims;
  struct { float scale; int32_t zero_point; } params;
  int allocation_type;
  size_t bytes;
  const void *allocation;
  const char *name;
  void *delegate;
  int buffer_handle;
  bool data_is_stale, is_variable;
  struct { int type; void *params; } quantization;
  void *sparsity;
  const IntArray *dims_signature;
} Tensor;

typedef struct {
  IntArray *inputs, *outputs, *intermediates, *temporaries;
  void *user_data, *builtin_data;
  const void *custom_initial_data;
  int custom_initial_data_size;
  void *delegate;
  bool might_have_side_effect;
} Node;

typedef struct Context Context;
typedef struct Delegate Delegate;

typedef struct {
  void *(*init)(Context *, const char *, size_t);
  void (*free)(Context *, void *);
  int (*prepare)(Context *, Node *);
  int (*invoke)(Context *, Node *);
  const char *(*profiling_string)(const Context *, const Node *);
  int32_t builtin_code;
  const char *custom_name;
  int version;
  void *registration_external, *async_kernel;
  uint64_t inplace_operator;
} Registration;

typedef struct { Delegate *delegate; IntArray *nodes_to_replace, *input_tensors, *output_tensors; } Params;

struct Context {
  size_t tensors_size;
  int (*GetExecutionPlan)(Context *, IntArray **);
  Tensor *tensors;
  void *impl;
  int (*ResizeTensor)(Context *, Tensor *, IntArray *);
  void (*ReportError)(Context *, const char *, ...);
  int (*AddTensors)(Context *, int, int *);
  int (*GetNodeAndRegistration)(Context *, int, Node **, Registration **);
  int (*ReplaceNodeSubsetsWithDelegateKernels)(Context *, Registration, const IntArray *, Delegate *);
  int recommended_num_threads;
  void *(*GetExternalContext)(Context *, int);
  void (*SetExternalContext)(Context *, int, void *);
  bool allow_fp32_relax_to_fp16;
  void *profiler;
  void *(*AllocatePersistentBuffer)(Context *, size_t);
  int (*AllocateBufferForEval)(Context *, size_t, void **);
  int (*RequestScratchBufferInArena)(Context *, size_t, int *);
  void *(*GetScratchBuffer)(Context *, int);
  int (*ResizeTensorExplicit)(Context *, Tensor *, int, const int *);
  int (*PreviewDelegatePartitioning)(Context *, const IntArray *, Params **, int *);
  Tensor *(*GetTensor)(const Context *, int);
  void *(*GetEvalTensor)(const Context *, int);
  int (*GetModelMetadata)(const Context *, const char *, const char **, size_t *);
  int (*AcquireSubgraphContext)(Context *, int, Context **);
  int (*ReleaseSubgraphContext)(Context *, int);
};

struct Delegate {
  void *data;
  int (*Prepare)(Context *, Delegate *);
  int (*CopyFromBufferHandle)(Context *, Delegate *, int, Tensor *);
  int (*CopyToBufferHandle)(Context *, Delegate *, int, Tensor *);
  void (*FreeBufferHandle)(Context *, Delegate *, int *);
  int64_t flags;
  void *opaque_delegate_builder;
};

typedef void (*Report)(const char *);

static inline IntArray *new_int_array(int size) {
  IntArray *array = malloc(sizeof(int) * (size + 1));
  array->size = size;
  return array;
}

static inline IntArray *copy_int_array(const IntArray *from) {
  IntArray *array = new_int_array(from->size);
  memcpy(array->data, from->data, sizeof(int) * from->size);
  return array;
}

static inline int count(const Tensor *tensor) {
  int n = 1;
  for (int i = 0; i < tensor->dims->size; i++) n *= tensor->dims->data[i];
  return n;
}

/* Counts of what is alive, for tests that look for leaks and double frees. */
static int live_delegates, live_kernels, invokes;
int num_live_delegates(void) { return live_delegates; }
int num_live_kernels(void) { return live_kernels; }
int num_invokes(void) { return invokes; }

/* Returns the nodes of the plan that are float ADDs, at most `most` of them; the caller frees it. */
static inline IntArray *float_adds(Context *context, int most) {
  IntArray *plan, *found;
  if (context->GetExecutionPlan(context, &plan) != OK) return NULL;
  plan = copy_int_array(plan);
  found = new_int_array(plan->size);
  found->size = 0;
  for (int i = 0; i < plan->size && found->size < most; i++) {
    Node *node;
    Registration *registration;
    if (context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) != OK) continue;
    if (registration->builtin_code == ADD && context->tensors[node->inputs->data[0]].type == FLOAT32)
      found->data[found->size++] = plan->data[i];
  }
  free(plan);
  return found;
}

/* The ADDs of one partition, with their tensors in operand order. */
typedef struct { int size; int (*tensors)[4]; void *more; } Adds; /* lhs, rhs, output, activation */

static inline Adds *adds_of(Context *context, const Params *params) {
  Adds *adds = calloc(1, sizeof *adds);
  adds->size = params->nodes_to_replace->size;
  adds->tensors = malloc(sizeof(int[4]) * adds->size);
  live_kernels++;
  for (int i = 0; i < adds->size; i++) {
    Node *node;
    Registration *registration;
    context->GetNodeAndRegistration(context, params->nodes_to_replace->data[i], &node, &registration);
    adds->tensors[i][0] = node->inputs->data[0];
    adds->tensors[i][1] = node->inputs->data[1];
    adds->tensors[i][2] = node->outputs->data[0];
    adds->tensors[i][3] = node->builtin_data ? *(int *)node->builtin_data : 0;
  }
  return adds;
}

static inline void *init_adds(Context *context, const char *buffer, size_t length) {
  return adds_of(context, (const Params *)buffer);
}

static inline void free_adds(Context *context, void *data) {
  Adds *adds = data;
  live_kernels--;
  free(adds->tensors);
  free(adds->more);
  free(adds);
}

static inline void add(const float *x, int nx, const float *y, int ny, float *z, int n, int relu) {
  for (int i = 0; i < n; i++) {
    float sum = x[nx == 1 ? 0 : i] + y[ny == 1 ? 0 : i];
    z[i] = relu == 1 && sum < 0 ? 0 : sum;
  }
}
#endif
