/** Bounds of the service on a run: what is longer would be refused, and is shortened, which its text then says. */

import { textOf } from "./failed.js";
import type { FinishedRun } from "./run.js";

const LONGEST_TASK = 20_000;
const NO_TASK = "(no task)";
const MOST_STEPS = 200;
const LONGEST_STEP = 2_000;
const LONGEST_NAME = 200;
const NO_NAME = "(no name)";
/** Most bytes of a body; the service's own default. */
const MOST_BYTES = 4 * 1024 * 1024;
/** Length of an input or output that is not shortened any more. */
const SHORT = 200;
/** Characters for the words that say how much was left out. */
const FOR_THE_NOTE = 50;

/** Returns the task as it may be sent; words in its place where it says nothing. */
export function taskWithin(task: string): string {
  return typeof task === "string" && task.trim() !== "" ? shortened(task, LONGEST_TASK) : NO_TASK;
}

/** Returns the name of a tool as it may be sent; models call tools by any name. */
export function nameWithin(name: string): string {
  return String(name).slice(0, LONGEST_NAME) || NO_NAME;
}

/** Returns the steps of a plan as they may be sent. */
export function planWithin(steps: string[]): string[] {
  const said = steps.map(String).filter((step) => step !== "");
  return said.slice(0, MOST_STEPS).map((step) => shortened(step, LONGEST_STEP));
}

/** Returns the run, with its longest inputs and outputs shortened until the body has no more bytes than the service takes. */
export function runWithin(run: FinishedRun): FinishedRun {
  let fits = run;
  for (let most = MOST_BYTES; most >= SHORT && Buffer.byteLength(JSON.stringify(fits)) > MOST_BYTES; most /= 2) {
    const within = (value: unknown) => (textOf(value).length <= most ? value : shortened(textOf(value), most));
    const traces = (run.tool_traces ?? []).map((trace) => ({ ...trace, input: within(trace.input), output: within(trace.output) }));
    fits = { ...run, tool_traces: traces };
  }
  return fits;
}

/** Returns the text, or its beginning and its end, which say how an output failed, with the number of characters between. */
function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const each = Math.floor((most - FOR_THE_NOTE) / 2);
  return `${text.slice(0, each)}\n… ${text.length - 2 * each} characters left out …\n${text.slice(-each)}`;
}
