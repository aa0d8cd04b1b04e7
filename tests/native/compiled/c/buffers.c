/* Claims one float ADD and keeps its result in a buffer of its own until somebody asks. */
#include "tflite.h"

static float buffers[8][64];
static int copies_from, copies_to, frees, next = 0;
int num_copies_from(void) { return copies_from; }
int num_copies_to(void) { return copies_to; }
int num_frees(void) { return frees; }

static int copy_from(Context *context, Delegate *delegate, int handle, Tensor *tensor) {
  copies_from++;
  if (handle < 0 || handle >= 8) return ERROR;
  if (buffers[handle][0] < -1000) {
    context->ReportError(context, "buffer %d is lost", handle);
    return ERROR;
  }
  memcpy(tensor->data, buffers[handle], sizeof(float) * count(tensor));
  return OK;
}

static int copy_to(Context *context, Delegate *delegate, int handle, Tensor *tensor) {
  copies_to++;
  memcpy(buffers[handle], tensor->data, sizeof(float) * count(tensor));
  return OK;
}

static void free_buffer(Context *context, Delegate *delegate, int *handle) {
  frees++;
  *handle = -1;
}

static int prepare_kernel(Context *context, Node *node) {
  Tensor *out = &context->tensors[node->outputs->data[0]];
  if (out->buffer_handle == -1) out->buffer_handle = next++ % 8;
  out->delegate = node->delegate;
  return OK;
}

static int invoke_kernel(Context *context, Node *node) {
  Adds *adds = node->user_data;
  int *t = adds->tensors[0];
  Tensor *all = context->tensors, *out = &all[t[2]];
  invokes++;
  add(all[t[0]].data, count(&all[t[0]]), all[t[1]].data, count(&all[t[1]]),
      buffers[out->buffer_handle], count(out), t[3]);
  out->data_is_stale = true;
  return OK;
}

static int prepare(Context *context, Delegate *delegate) {
  Registration registration = {init_adds, free_adds, prepare_kernel, invoke_kernel};
  IntArray *found = float_adds(context, 1);
  registration.custom_name = "Buffers";
  int status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, found, delegate);
  free(found);
  return status;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t size, Report report) {
  Delegate *delegate = calloc(1, sizeof *delegate);
  *delegate = (Delegate){NULL, prepare, copy_from, copy_to, free_buffer};
  if (size) delegate->CopyFromBufferHandle = NULL; /* any option */
  live_delegates++;
  return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) {
  live_delegates--;
  free(delegate);
}
