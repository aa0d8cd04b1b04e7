/* Claims nothing, and writes down all that a delegate sees of a graph. The option `sizes` says how
   many bytes of builtin_data to show, by builtin code: "0:8 3:28". */
#include <malloc.h>
#include <stdarg.h>

#include "tflite.h"

static char *text;
static size_t used, room;
static int sizes[512];

const char *description(void) { return text ? text : ""; }
size_t bytes_in_use(void) { return mallinfo2().uordblks; }
static void *volatile leaked;
void leak(int size) {
  if (size) leaked = malloc(size);
}

static void say(const char *format, ...) {
  va_list arguments;
  if (room - used < 4096) text = realloc(text, room = 2 * room + 8192);
  va_start(arguments, format);
  used += vsnprintf(text + used, 4000, format, arguments);
  va_end(arguments);
}

static void say_ints(const char *name, const IntArray *array) {
  say(" %s", name);
  if (array) say("[");
  for (int i = 0; array && i < array->size; i++) say("%d ", array->data[i]);
  if (array) say("]");
}

static unsigned checksum(const void *data, size_t size) {
  unsigned sum = 5381;
  for (size_t i = 0; i < size; i++) sum = sum * 33 + ((const unsigned char *)data)[i];
  return sum;
}

typedef struct { int format, dense_size; IntArray *segments, *indices; } Dimension;
typedef struct { IntArray *order, *blocks; Dimension *dimensions; int size; } Sparsity;

static void say_tensor(int index, const Tensor *tensor) {
  say("tensor %d %s type %d", index, tensor->name ? tensor->name : "-", tensor->type);
  say_ints("dims", tensor->dims);
  if (tensor->dims_signature && tensor->dims_signature->size)
    say_ints("signature", tensor->dims_signature);
  say(" scale %.9g zero %d", tensor->params.scale, tensor->params.zero_point);
  say(" allocation %d variable %d", tensor->allocation_type, tensor->is_variable);
  say(" handle %d stale %d", tensor->buffer_handle, tensor->data_is_stale);
  if (tensor->quantization.type == 1) {
    Affine *affine = tensor->quantization.params;
    say(" affine %d %08x", affine->scale->size, checksum(affine->scale->data, 4 * affine->scale->size));
    say(" %d %08x", affine->zero_point->size,
        checksum(affine->zero_point->data, 4 * affine->zero_point->size));
    say(" axis %d", affine->quantized_dimension);
  }
  if (tensor->sparsity) {
    Sparsity *sparsity = tensor->sparsity;
    say_ints("order", sparsity->order);
    say_ints("blocks", sparsity->blocks);
    for (int i = 0; i < sparsity->size; i++) {
      Dimension *d = &sparsity->dimensions[i];
      say(" %d %d", d->format, d->format ? 0 : d->dense_size);
      if (d->format) say(" %08x", checksum(d->segments->data, 4 * d->segments->size));
      if (d->format) say(" %08x", checksum(d->indices->data, 4 * d->indices->size));
    }
  }
  if (tensor->allocation_type == 1)
    say(" bytes %zu data %08x", tensor->bytes, checksum(tensor->data, tensor->bytes));
  say("\n");
}

static void say_node(Context *context, int index) {
  Node *node;
  Registration *registration;
  if (context->GetNodeAndRegistration(context, index, &node, &registration) != OK) return;
  int code = registration->builtin_code;
  say("node %d code %d %s version %d", index, code,
      registration->custom_name ? registration->custom_name : "-", registration->version);
  say_ints("inputs", node->inputs);
  say_ints("outputs", node->outputs);
  say_ints("intermediates", node->intermediates);
  say(" custom %d %08x", node->custom_initial_data_size,
      checksum(node->custom_initial_data, node->custom_initial_data_size));
  if (!node->builtin_data) say(" null");
  for (int i = 0; node->builtin_data && i < sizes[code]; i++)
    say("%s%02x", i % 4 ? "" : " ", ((unsigned char *)node->builtin_data)[i]);
  say("\n");
}

static int prepare(Context *context, Delegate *delegate) {
  IntArray *plan;
  if (context->GetExecutionPlan(context, &plan) != OK) return ERROR;
  plan = copy_int_array(plan);
  say_ints("plan", plan);
  say(" %zu tensors\n", context->tensors_size);
  for (int i = 0; i < plan->size; i++) say_node(context, plan->data[i]);
  for (size_t i = 0; i < context->tensors_size; i++) say_tensor(i, &context->tensors[i]);
  free(plan);
  return OK;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t size, Report report) {
  Delegate *delegate = calloc(1, sizeof *delegate);
  used = room = 0;
  free(text);
  text = NULL;
  for (size_t i = 0; i < size; i++)
    for (char *at = strtok(values[i], " "); at; at = strtok(NULL, " ")) {
      int code, bytes;
      if (sscanf(at, "%d:%d", &code, &bytes) == 2) sizes[code] = bytes;
    }
  delegate->Prepare = prepare;
  delegate->flags = 1; /* so that no kernel is prepared first */
  return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) { free(delegate); }
