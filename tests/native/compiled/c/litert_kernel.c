/* A custom operator for LiteRT: y = factor * x, once for each output, x and y of FLOAT32.
   The first byte of a node's options is the factor. 99 makes Run fail, 98 GetOutputLayouts. */

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t rank : 7;
  uint32_t has_strides : 1;
  int32_t dimensions[8];
  uint32_t strides[8];
} Layout;

typedef struct {
  int element_type;
  Layout layout;
} RankedTensorType;

int LiteRtLockTensorBuffer(void* buffer, void** address, int mode);
int LiteRtUnlockTensorBuffer(void* buffer);
int LiteRtGetTensorBufferTensorType(void* buffer, RankedTensorType* type);

typedef struct {
  int factor;
  int alive;
  int runs;
} State;

int ScaleInit(void* user_data, const void* options, size_t size) {
  State* state = user_data;
  state->factor = size ? *(const unsigned char*)options : 1;
  state->alive++;
  return 0;
}

int ScaleLayouts(void* user_data, size_t n, const Layout* inputs, size_t m, Layout* outputs) {
  State* state = user_data;
  if (state->factor == 98) return 5;
  for (size_t i = 0; i < m; i++) outputs[i] = inputs[0];
  return 0;
}

int ScaleRun(void* user_data, size_t n, void* const* inputs, size_t m, void** outputs) {
  State* state = user_data;
  RankedTensorType type;
  float *x, *y;
  state->runs++;
  if (state->factor == 99) return 7;
  if (LiteRtGetTensorBufferTensorType(inputs[0], &type) || type.element_type != 1) return 8;
  size_t count = 1;
  for (unsigned i = 0; i < type.layout.rank; i++) count *= type.layout.dimensions[i];
  for (size_t i = 0; i < m; i++) {
    if (LiteRtLockTensorBuffer(inputs[0], (void**)&x, 0)) return 9;
    if (LiteRtLockTensorBuffer(outputs[i], (void**)&y, 1)) return 9;
    for (size_t k = 0; k < count; k++) y[k] = state->factor * x[k];
    LiteRtUnlockTensorBuffer(outputs[i]);
    LiteRtUnlockTensorBuffer(inputs[0]);
  }
  return 0;
}

int ScaleDestroy(void* user_data) {
  ((State*)user_data)->alive--;
  return 0;
}
