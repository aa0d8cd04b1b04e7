// Live figures from two readings of /metrics.

const LINE = /^([a-z_]+)\{(.*)\} (\S+)$/;
const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = { n: "\n" };

/** Mapping from a model's name to its samples, each [metric, labels, value]. */
export function samplesByModel(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = LINE.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of match[2].matchAll(LABEL)) {
      labels[name] = value.replace(/\\(.)/g, (_, character) => ESCAPES[character] ?? character);
    }
    const model = labels.model_name;
    if (model === undefined) continue;
    if (!found.has(model)) found.set(model, []);
    found.get(model).push([match[1], labels, Number(match[3])]);
  }
  return found;
}

function total(samples, metric) {
  return (samples ?? []).filter(([name]) => name === metric).reduce((all, [, , value]) => all + value, 0);
}

function buckets(samples, metric) {
  const found = new Map();
  for (const [name, labels, value] of samples ?? []) if (name === `${metric}_bucket`) found.set(Number(labels.le.replace("+Inf", "Infinity")), value);
  return found;
}

/** The value below which a share of the observations between two readings lies; null for none. */
export function quantile(share, metric, before, now) {
  const old = buckets(before, metric);
  const counts = [...buckets(now, metric)].sort(([a], [b]) => a - b).map(([end, count]) => [end, count - (old.get(end) ?? 0)]);
  const all = counts.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  let start = 0;
  let below = 0;
  for (const [end, count] of counts) {
    if (count >= share * all) return end === Infinity ? start : start + ((end - start) * (share * all - below)) / (count - below);
    [start, below] = [end, count];
  }
  return start;
}

/** What happened between two readings that are some seconds apart. */
export function figures(before, now, seconds) {
  const change = (metric) => total(now, metric) - total(before, metric);
  const mean = (metric) => (change(`${metric}_count`) > 0 ? change(`${metric}_sum`) / change(`${metric}_count`) : null);
  return {
    rate: change("delegraph_requests_total") / seconds,
    half: quantile(0.5, "delegraph_request_seconds", before, now),
    most: quantile(0.99, "delegraph_request_seconds", before, now),
    queue: mean("delegraph_queue_seconds"),
    rows: mean("delegraph_batch_rows"),
    pending: total(now, "delegraph_requests_in_progress"),
    all: total(now, "delegraph_requests_total"),
    incidents: total(now, "delegraph_delegate_incidents_total"),
  };
}
