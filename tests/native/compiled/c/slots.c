/* Calls every function of the context, from Prepare and from its kernel, and writes down what it
   got; a null pointer is written down as such. The option `input` lets the first ADD read another
   tensor than the model says. */
#include <stdarg.h>

#include "tflite.h"

static char text[20000];
static size_t used;
static int input = -1;
static Context *last;

const char *said(void) { return text; }
int plan_status_now(void) {
  IntArray *plan;
  return last->GetExecutionPlan(last, &plan);
}

static void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (used < sizeof text - 500) used += vsnprintf(text + used, 400, format, arguments);
  va_end(arguments);
}

static void say_ints(const IntArray *array) {
  for (int i = 0; i < array->size; i++) say(" %d", array->data[i]);
}

static void call_graph_functions(Context *context) {
  IntArray *plan;
  Node *node;
  Registration *registration;
  say("GetExecutionPlan %d\n", context->GetExecutionPlan(context, &plan));
  say("GetNodeAndRegistration 0: %d\n", context->GetNodeAndRegistration(context, 0, &node, &registration));
  say("GetNodeAndRegistration 99: %d\n", context->GetNodeAndRegistration(context, 99, &node, &registration) != OK);
  Params *params;
  int count = -1;
  IntArray *ends = new_int_array(2);
  context->GetExecutionPlan(context, &plan);
  ends->data[0] = plan->data[0];
  ends->data[1] = plan->data[plan->size - 1];
  say("PreviewDelegatePartitioning %d", context->PreviewDelegatePartitioning(context, ends, &params, &count));
  for (int i = 0; i < count; i++) {
    say(" | nodes"), say_ints(params[i].nodes_to_replace);
    say(" inputs"), say_ints(params[i].input_tensors);
    say(" outputs"), say_ints(params[i].output_tensors);
  }
  say("\n");
  free(ends);
  const char *content = NULL;
  size_t size = 0;
  int status = context->GetModelMetadata(context, "about", &content, &size);
  say("GetModelMetadata %d %.*s\n", status, (int)size, content);
  say("GetModelMetadata of none %d\n", context->GetModelMetadata(context, "nothing", &content, &size) != OK);
  Context *other = NULL;
  say("AcquireSubgraphContext 1: %d", context->AcquireSubgraphContext(context, 1, &other));
  say(" other %d", other && other != context);
  if (other) {
    say(" tensors %zu type %d", other->tensors_size, other->tensors[0].type);
    status = other->GetExecutionPlan(other, &plan);
    say(" plan %d", status == OK ? plan->size : -1);
  }
  say(" released %d\n", context->ReleaseSubgraphContext(context, 1));
  say("AcquireSubgraphContext 99: %d\n", context->AcquireSubgraphContext(context, 99, &other) != OK);
}

static void call_other_functions(Context *context) {
  int marker;
  say("threads %d fp16 %d profiler %d\n", context->recommended_num_threads,
      context->allow_fp32_relax_to_fp16, context->profiler != NULL);
  say("GetExternalContext %d", context->GetExternalContext(context, 3) != NULL);
  context->SetExternalContext(context, 3, &marker);
  say(" then %d\n", context->GetExternalContext(context, 3) == &marker);
  context->SetExternalContext(context, 3, NULL);
  if (!context->GetTensor) say("GetTensor null\n");
  else say("GetTensor %d, 999: %d\n", context->GetTensor(context, 1) == &context->tensors[1],
           context->GetTensor(context, 999) != NULL);
  if (!context->AllocatePersistentBuffer) say("AllocatePersistentBuffer null\n");
  else {
    char *memory = context->AllocatePersistentBuffer(context, 100);
    memset(memory, 1, 100);
    say("AllocatePersistentBuffer %d\n", memory != NULL);
  }
  void *buffer = NULL;
  int index = -1;
  if (!context->AllocateBufferForEval) say("AllocateBufferForEval null\n");
  else say("AllocateBufferForEval %d\n", context->AllocateBufferForEval(context, 8, &buffer));
  if (!context->RequestScratchBufferInArena) say("RequestScratchBufferInArena null\n");
  else say("RequestScratchBufferInArena %d\n", context->RequestScratchBufferInArena(context, 8, &index));
  if (!context->GetScratchBuffer) say("GetScratchBuffer null\n");
  else say("GetScratchBuffer %d\n", context->GetScratchBuffer(context, 0) != NULL);
  if (!context->GetEvalTensor) say("GetEvalTensor null\n");
  else say("GetEvalTensor %d\n", context->GetEvalTensor(context, 0) != NULL);
}

static void call_tensor_functions(Context *context) {
  int first = -1, dims[2] = {3, 5};
  size_t before = context->tensors_size;
  Tensor *array = context->tensors;
  say("AddTensors %d", context->AddTensors(context, 2, &first));
  say(" first %d size %d\n", first == (int)before, context->tensors_size == before + 2);
  (void)array;
  Tensor *added = &context->tensors[first];
  added->type = FLOAT32;
  added->allocation_type = ARENA_RW;
  IntArray *size = new_int_array(2);
  size->data[0] = 2, size->data[1] = 4;
  say("ResizeTensor %d", context->ResizeTensor(context, added, size));
  say(" dims %d %d bytes %zu\n", added->dims->data[0], added->dims->data[1], added->bytes);
  if (!context->ResizeTensorExplicit) say("ResizeTensorExplicit null\n");
  else {
    say("ResizeTensorExplicit %d", context->ResizeTensorExplicit(context, added, 2, dims));
    say(" dims %d %d bytes %zu\n", added->dims->data[0], added->dims->data[1], added->bytes);
  }
}

static void *init(Context *context, const char *buffer, size_t length) {
  say("init inputs");
  say_ints(((const Params *)buffer)->input_tensors);
  say(" outputs");
  say_ints(((const Params *)buffer)->output_tensors);
  say("\n");
  return init_adds(context, buffer, length);
}

static int prepare_kernel(Context *context, Node *node) {
  say("kernel: ");
  call_tensor_functions(context);
  return OK;
}

static int invoke_kernel(Context *context, Node *node) {
  int *t = ((Adds *)node->user_data)->tensors[0];
  Tensor *all = context->tensors;
  add(all[t[0]].data, count(&all[t[0]]), all[t[1]].data, count(&all[t[1]]), all[t[2]].data,
      count(&all[t[2]]), t[3]);
  return OK;
}

static int prepare(Context *context, Delegate *delegate) {
  Registration registration = {init, free_adds, prepare_kernel, invoke_kernel};
  if (context->tensors_size < 4) return OK; /* the other subgraph */
  registration.custom_name = "Slots";
  last = context;
  call_graph_functions(context);
  call_other_functions(context);
  call_tensor_functions(context);
  IntArray *found = float_adds(context, 1);
  if (input >= 0) {
    Node *node;
    Registration *ignored;
    context->GetNodeAndRegistration(context, found->data[0], &node, &ignored);
    node->inputs->data[1] = input;
  }
  int status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, found, delegate);
  say("Replace %d\n", status);
  context->ReportError(context, "nothing is wrong");
  free(found);
  return OK;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t size, Report report) {
  Delegate *delegate = calloc(1, sizeof *delegate);
  delegate->Prepare = prepare;
  used = 0;
  input = size ? atoi(values[0]) : -1;
  return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) { free(delegate); }
