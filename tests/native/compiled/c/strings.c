/* Claims the custom operator Shout, which makes upper case of strings. Like TFLite's own helpers it
   reallocates the data of its dynamic output. The option `how`: "damaged" writes a wrong offset. */
#include <ctype.h>

#include "tflite.h"

static int damaged;

static int prepare_kernel(Context *context, Node *node) {
  Tensor *in = &context->tensors[node->inputs->data[0]];
  Tensor *out = &context->tensors[node->outputs->data[0]];
  live_kernels = node->user_data != NULL;
  return context->ResizeTensor(context, out, copy_int_array(in->dims));
}

static int invoke_kernel(Context *context, Node *node) {
  Tensor *in = &context->tensors[node->inputs->data[0]];
  Tensor *out = &context->tensors[node->outputs->data[0]];
  int32_t *header;
  invokes++;
  out->data = realloc(out->data, in->bytes);
  out->bytes = in->bytes;
  memcpy(out->data, in->data, in->bytes);
  header = out->data;
  for (int i = header[1]; i < header[header[0] + 1]; i++) {
    char *letter = (char *)out->data + i;
    *letter = toupper(*letter);
  }
  if (damaged) header[1] = 1 << 20;
  return OK;
}

static int prepare(Context *context, Delegate *delegate) {
  Registration registration = {NULL, NULL, prepare_kernel, invoke_kernel};
  IntArray *plan, *found;
  if (context->GetExecutionPlan(context, &plan) != OK) return ERROR;
  found = copy_int_array(plan);
  found->size = 0;
  for (int i = 0; i < plan->size; i++) {
    Node *node;
    Registration *theirs;
    context->GetNodeAndRegistration(context, plan->data[i], &node, &theirs);
    if (theirs->builtin_code == 32 && !strcmp(theirs->custom_name, "Shout"))
      found->data[found->size++] = plan->data[i];
  }
  registration.custom_name = "Strings";
  int status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, found, delegate);
  free(found);
  return status;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t size, Report report) {
  Delegate *delegate = calloc(1, sizeof *delegate);
  delegate->Prepare = prepare;
  delegate->flags = 1;
  damaged = size > 0;
  return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) { free(delegate); }
