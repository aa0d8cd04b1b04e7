// Programs that call a model. Names come from model files, so each is quoted for its language.

const SIZES = { BOOL: 1, INT8: 1, UINT8: 1, INT16: 2, UINT16: 2, FP16: 2, INT32: 4, UINT32: 4, FP32: 4, INT64: 8, UINT64: 8, FP64: 8 };
const DTYPES = { BOOL: "bool_", FP16: "float16", FP32: "float32", FP64: "float64", BYTES: "object_" };
const SHORT = 64; // values that are written out

const shapeOf = (tensor) => tensor.shape.map((size) => (size < 0 ? 1 : size));
const countOf = (tensor) => shapeOf(tensor).reduce((all, size) => all * size, 1);
const dtypeOf = (tensor) => `np.${DTYPES[tensor.datatype] ?? tensor.datatype.toLowerCase()}`;
const valueOf = (tensor) => ({ BYTES: "text", BOOL: false })[tensor.datatype] ?? 0;
const isBinary = (tensor) => tensor.datatype !== "BYTES" && (tensor.datatype === "FP16" || countOf(tensor) > SHORT);

const hex = (number, digits) => number.toString(16).padStart(digits, "0");

/** JSON of ASCII characters. */
export function asciiJson(value) {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, (unit) => `\\u${hex(unit.charCodeAt(0), 4)}`);
}

/** A literal of Python. */
export function pythonText(text) {
  return JSON.stringify(text).replace(/[^\x20-\x7e]/gu, (character) => `\\U${hex(character.codePointAt(0), 8)}`);
}

/** A word of a POSIX shell. */
export function shellWord(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function pathOf(model) {
  const version = model.isChosen ? `/versions/${model.version}` : "";
  return `/v2/models/${encodeURIComponent(model.name)}${version}/infer`;
}

/** A command of curl. */
export function curl(model, origin, needsToken) {
  const url = shellWord(origin + pathOf(model));
  const more = needsToken ? ' -H "Authorization: Bearer $TOKEN"' : "";
  const inputs = model.inputs.map((tensor) => {
    const entry = { name: tensor.name, datatype: tensor.datatype, shape: shapeOf(tensor) };
    if (isBinary(tensor)) return { ...entry, parameters: { binary_data_size: countOf(tensor) * SIZES[tensor.datatype] } };
    return { ...entry, data: Array(countOf(tensor)).fill(valueOf(tensor)) };
  });
  const text = asciiJson({ inputs });
  const bytes = model.inputs.filter(isBinary).reduce((all, tensor) => all + countOf(tensor) * SIZES[tensor.datatype], 0);
  if (!model.inputs.some(isBinary)) return `curl ${url}${more} -d ${shellWord(text)}`;
  return `{ printf %s ${shellWord(text)}; head -c ${bytes} /dev/zero; } |
curl ${url}${more} \\
  -H 'Content-Type: application/octet-stream' \\
  -H 'Inference-Header-Content-Length: ${text.length}' --data-binary @-`;
}

function filled(tensor) {
  const shape = JSON.stringify(shapeOf(tensor));
  if (tensor.datatype === "BYTES") return `np.full(${shape}, b"text", object)`;
  return `np.zeros(${shape}, ${dtypeOf(tensor)})`;
}

/** A program of Python with Triton's client; *way* is `http` or `grpc`. */
export function python(model, way, address, isSecure, needsToken) {
  const lines = [`# pip install "tritonclient[${way}]"`];
  if (needsToken) lines.push("import os", "");
  lines.push("import numpy as np", `from tritonclient import ${way}`, "");
  const ssl = isSecure ? ", ssl=True" : "";
  lines.push(`client = ${way}.InferenceServerClient(${pythonText(address)}${ssl})`, "inputs = []");
  for (const tensor of model.inputs) {
    const name = pythonText(tensor.name);
    lines.push(
      `x = ${filled(tensor)}`,
      `inputs.append(${way}.InferInput(${name}, list(x.shape), "${tensor.datatype}"))`,
      "inputs[-1].set_data_from_numpy(x)",
    );
  }
  const version = model.isChosen ? `, model_version="${model.version}"` : "";
  if (needsToken) lines.push('headers = {"authorization": f"Bearer {os.environ[\'TOKEN\']}"}');
  const headers = needsToken ? ", headers=headers" : "";
  lines.push(`answer = client.infer(${pythonText(model.name)}, inputs${version}${headers})`);
  for (const tensor of model.outputs) lines.push(`print(answer.as_numpy(${pythonText(tensor.name)}))`);
  return lines.join("\n");
}
