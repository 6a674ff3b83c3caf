/**
 * A failed call as a run asks advice for it: the guess that it failed, and what was tried since.
 *
 * The guess only saves requests: casebank decides by the output.
 */

import type { ToolTrace } from "./run.js";

const MOST_TRIED = 50;
const LOOK_CHARS = 2_000;
const END_CHARS = 500;

const NO_ERROR = /"\w*(?:err|exception|fail)\w*"\s*:\s*(?:null|false|0|""|\[\s*\]|\{\s*\})|\b(?:no|0) errors?\b/gi;
const ERROR = new RegExp(
  [
    "err(?:or|eur)|exception|fail|traceback|fatal|panic|abort|denied|refused|reject|forbidden|unauthori|invalid|illegal",
    "unable|unsupported|unavailable|cannot|can't|could ?n[o']t|not (?:found|exist|allowed|valid)|n[o']t exist|no such",
    "unknown|unexpected|required|violat|already exist|timed? ?out|too many|fehl|ungültig|fall[oó]|错误|失败|未找到|エラー|오류",
    String.raw`exit\w*[\s_]*(?:with )?(?:code|status)?["\s:=]+-?[1-9]|\b(?:rc|returncode|return_code)\W{1,4}-?[1-9]`,
    String.raw`"(?:success|succeeded|ok)"\s*:\s*false|(?:http|status|code)\w*\W{1,4}[45]\d\d\b|^\W*[45]\d\d\b`,
  ].join("|"),
  "i",
);

/** Returns whether the beginning or the end of an output looks like an error. */
export function mayHaveFailed(output: unknown): boolean {
  const text = textOf(output);
  const ends = `${text.slice(0, LOOK_CHARS)}\n${text.slice(LOOK_CHARS).slice(-END_CHARS)}`;
  return ERROR.test(ends.replace(NO_ERROR, ""));
}

/**
 * Returns the fields of a request for advice at the last of these calls, which failed.
 *
 * Where the run met the same failure before, the request is about the first of these calls, and every later one was
 * tried since.
 */
export function question(traces: readonly ToolTrace[]) {
  const last = traces[traces.length - 1]!;
  const failure = failureOf(last);
  const first = traces.findIndex((trace) => failureOf(trace) === failure);
  const tried = traces.slice(first + 1).slice(-MOST_TRIED);
  const { tool, input, output } = traces[first]!;
  // The guess that the call failed is left to the service.
  const call = { tool, input, output: short(output), status: last.status ?? ("ok" as const) };
  return { ...call, tried: tried.map((trace) => ({ tool: trace.tool, input: trace.input })) };
}

/** Returns what two calls that failed alike have in common: the tool, and the error without its numbers. */
function failureOf({ tool, output }: ToolTrace): string {
  return `${tool}\n${textOf(output).slice(0, 300).replace(/\d+/g, "")}`;
}

/** Returns the output, or the beginning and the end of its text. */
function short(output: unknown): unknown {
  const text = textOf(output);
  return text.length <= 4 * LOOK_CHARS ? output : `${text.slice(0, 3 * LOOK_CHARS)}\n…\n${text.slice(-LOOK_CHARS)}`;
}

/** Returns the text of an output; that of its JSON, where it is none. */
export function textOf(output: unknown): string {
  return typeof output === "string" ? output : (JSON.stringify(output) ?? "");
}
