/* Claims float ADDs and sizes tensors itself. The option `how` says which and when:
   prepare     its output, to the larger of the operands' shapes, while preparing
   double      its output, to twice the first dimension, with the sums twice
   temporary   works in a tensor it adds, and copies from there
   dynamic     its output, while invoking: as many sums as the first operand's first value says
   realloc     the same, and moves the memory it then got
   illegal     its static output while invoking */
#include "tflite.h"

static char how[20];
static int is(const char *what) { return !strcmp(how, what); }

static int add_temporary(Context *context, Node *node, const Tensor *like) {
  IntArray *dims = copy_int_array(like->dims); /* like may move with the array of tensors */
  if (node->temporaries->size == 0) {
    int index;
    if (context->AddTensors(context, 1, &index) != OK) return ERROR;
    free(node->temporaries);
    node->temporaries = new_int_array(1);
    node->temporaries->data[0] = index;
  }
  Tensor *temporary = &context->tensors[node->temporaries->data[0]];
  temporary->type = FLOAT32;
  temporary->allocation_type = ARENA_RW;
  return context->ResizeTensor(context, temporary, dims);
}

static int prepare_kernel(Context *context, Node *node) {
  Adds *adds = node->user_data;
  int *t = adds->tensors[0];
  Tensor *all = context->tensors, *out = &all[t[2]];
  Tensor *larger = count(&all[t[0]]) < count(&all[t[1]]) ? &all[t[1]] : &all[t[0]];
  IntArray *dims = copy_int_array(larger->dims);
  if (is("dynamic") || is("realloc")) {
    out->allocation_type = DYNAMIC;
    out->data = NULL;
    free(dims);
    return OK;
  }
  if (is("double")) dims->data[0] *= 2;
  if (context->ResizeTensor(context, out, dims) != OK) return ERROR;
  return is("temporary") ? add_temporary(context, node, larger) : OK;
}

static int invoke_kernel(Context *context, Node *node) {
  Adds *adds = node->user_data;
  int *t = adds->tensors[0];
  Tensor *all = context->tensors, *x = &all[t[0]], *y = &all[t[1]], *out = &all[t[2]];
  invokes++;
  if (is("dynamic") || is("realloc") || is("illegal")) {
    IntArray *dims = new_int_array(1);
    dims->data[0] = is("illegal") ? 77 : ((float *)x->data)[0];
    if (context->ResizeTensor(context, out, dims) != OK) return ERROR;
  }
  if (is("realloc")) out->data = realloc(out->data, 1 << 20);
  if (is("temporary")) {
    Tensor *temporary = &all[node->temporaries->data[0]];
    if (temporary->bytes != out->bytes) return ERROR;
    add(x->data, count(x), y->data, count(y), temporary->data, count(out), t[3]);
    memcpy(out->data, temporary->data, out->bytes);
    return OK;
  }
  int n = is("double") ? count(out) / 2 : count(out);
  add(x->data, count(x), y->data, count(y), out->data, n, t[3]);
  if (is("double")) memcpy((float *)out->data + n, out->data, sizeof(float) * n);
  return OK;
}

static int prepare(Context *context, Delegate *delegate) {
  Registration registration = {init_adds, free_adds, prepare_kernel, invoke_kernel};
  IntArray *found = float_adds(context, 1);
  registration.custom_name = "Resizes";
  int status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, found, delegate);
  free(found);
  return status;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t size, Report report) {
  Delegate *delegate = calloc(1, sizeof *delegate);
  delegate->Prepare = prepare;
  for (size_t i = 0; i < size; i++)
    if (!strcmp(keys[i], "flags")) delegate->flags = atoi(values[i]);
    else strncpy(how, values[i], sizeof how - 1);
  live_delegates++;
  return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) {
  live_delegates--;
  free(delegate);
}
