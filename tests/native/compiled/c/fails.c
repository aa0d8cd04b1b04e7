/* Claims float ADDs and fails where the option `at` says: create, silently, claim, init, prepare,
   invoke, or nowhere; `after` invokes that go well first. Reports with all kinds of arguments. */
#include "tflite.h"

static char at[20];
static int after;

static int fails(Context *context, const char *phase) {
  if (strcmp(at, phase)) return OK;
  context->ReportError(context, "%s failed: %d of %lld, %.3f, %s %s %d %d %.1f %c%%", phase, 3,
                       (long long)1 << 40, 2.5, "five", "six", 7, -8, 0.9e1, 'x');
  return DELEGATE_ERROR;
}

static void *init(Context *context, const char *buffer, size_t length) {
  return fails(context, "init") == OK ? init_adds(context, buffer, length) : NULL;
}

static int prepare_kernel(Context *context, Node *node) {
  if (!node->user_data) return ERROR;
  return fails(context, "prepare");
}

static int invoke_kernel(Context *context, Node *node) {
  Adds *adds = node->user_data;
  int *t = adds->tensors[0];
  Tensor *all = context->tensors;
  float *out = all[t[2]].data;
  if (invokes++ >= after && fails(context, "invoke") != OK) {
    out[0] = -999;
    return ERROR;
  }
  add(all[t[0]].data, count(&all[t[0]]), all[t[1]].data, count(&all[t[1]]), out, count(&all[t[2]]), t[3]);
  return OK;
}

static int prepare(Context *context, Delegate *delegate) {
  Registration registration = {init, free_adds, prepare_kernel, invoke_kernel};
  IntArray *found = float_adds(context, 1);
  int status;
  registration.custom_name = "Fails";
  status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, found, delegate);
  free(found);
  return status == OK ? fails(context, "claim") : status;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t size, Report report) {
  Delegate *delegate;
  after = invokes = 0;
  for (size_t i = 0; i < size; i++)
    if (!strcmp(keys[i], "after")) after = atoi(values[i]);
    else strncpy(at, values[i], sizeof at - 1);
  if (!strcmp(at, "create")) report("no such "), report("accelerator");
  if (!strcmp(at, "create") || !strcmp(at, "silently")) return NULL;
  live_delegates++;
  delegate = calloc(1, sizeof *delegate);
  delegate->Prepare = prepare;
  return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) {
  live_delegates--;
  free(delegate);
}
