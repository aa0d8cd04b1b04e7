/* Claims float ADDs, each in a partition of its own or all together. Options:
   max_nodes   how many at most
   together    1: one call of Replace for all of them
   factor      multiplies every sum, to tell this delegate's results from others'
   flags       of the delegate */
#include "tflite.h"

typedef struct { Delegate delegate; int max_nodes, together; float factor; } Mine;

static int prepare_kernel(Context *context, Node *node) {
  return node->user_data && ((Adds *)node->user_data)->size ? OK : ERROR;
}

static int invoke_kernel(Context *context, Node *node) {
  Adds *adds = node->user_data;
  Mine *mine = node->delegate;
  float *inner[64] = {0}; /* results that only later nodes of the partition read */
  invokes++;
  for (int i = 0; i < adds->size; i++) {
    int *t = adds->tensors[i], n[2];
    float *x[2];
    for (int j = 0; j < 2; j++) {
      Tensor *tensor = &context->tensors[t[j]];
      x[j] = tensor->data;
      n[j] = count(tensor);
      for (int k = 0; k < i; k++)
        if (adds->tensors[k][2] == t[j] && inner[k]) x[j] = inner[k];
    }
    Tensor *out = &context->tensors[t[2]];
    int size = n[0] > n[1] ? n[0] : n[1];
    float *z = out->data;
    if (!z) z = inner[i] = malloc(sizeof(float) * size);
    add(x[0], n[0], x[1], n[1], z, size, t[3]);
    for (int k = 0; k < size; k++) z[k] *= mine->factor;
  }
  for (int i = 0; i < adds->size; i++) free(inner[i]);
  return OK;
}

static int prepare(Context *context, Delegate *delegate) {
  Mine *mine = (Mine *)delegate;
  Registration registration = {init_adds, free_adds, prepare_kernel, invoke_kernel};
  IntArray *found = float_adds(context, mine->max_nodes), *one = new_int_array(1);
  int status = OK;
  if (!found) return ERROR;
  registration.builtin_code = 51;
  registration.custom_name = "Adds";
  registration.version = 1;
  if (mine->together)
    status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, found, delegate);
  for (int i = 0; i < found->size && !mine->together && status == OK; i++) {
    one->data[0] = found->data[i];
    status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, one, delegate);
  }
  free(found);
  free(one);
  return status;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t size, Report report) {
  Mine *mine = calloc(1, sizeof *mine);
  mine->delegate.data = mine;
  mine->delegate.Prepare = prepare;
  mine->max_nodes = 1 << 30;
  mine->factor = 1;
  for (size_t i = 0; i < size; i++) {
    if (!strcmp(keys[i], "max_nodes")) mine->max_nodes = atoi(values[i]);
    else if (!strcmp(keys[i], "together")) mine->together = atoi(values[i]);
    else if (!strcmp(keys[i], "factor")) mine->factor = atof(values[i]);
    else if (!strcmp(keys[i], "flags")) mine->delegate.flags = atoi(values[i]);
    else {
      char text[100];
      snprintf(text, sizeof text, "adds: no option %s", keys[i]);
      report(text);
      free(mine);
      return NULL;
    }
  }
  live_delegates++;
  return &mine->delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) {
  live_delegates--;
  free(delegate);
}
