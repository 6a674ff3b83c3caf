/** One run of an agent: what memory has for it, what it does, and how it ends. */

import { inspect } from "node:util";

import { mayHaveFailed, question } from "./failed.js";
import { nameWithin, planWithin, runWithin } from "./fitting.js";
import type { components } from "./schema.js";

type Schemas = components["schemas"];
export type FinishedRun = Schemas["FinishedRun"];
export type Outcome = NonNullable<FinishedRun["outcome"]>;
export type Retrieved = Schemas["RetrieveOut"];
export type ToolTrace = NonNullable<FinishedRun["tool_traces"]>[number];
export type FailedCall = Schemas["AdviceIn"];

/** Further fields of the retain, such as `tags` or `session_id`. */
export type RetainMore = Omit<FinishedRun, "agent" | "task" | "outcome">;

export class Run {
  readonly #traces: ToolTrace[] = [];
  readonly #said: RetainMore = {};
  #outcome: Outcome | undefined;

  /**
   * @param retrieved what memory answered; undefined where it could not be asked.
   * @param advise returns the text of advice for a failed call; never rejects. Without it no advice is asked for.
   */
  constructor(
    readonly agent: string,
    readonly task: string,
    readonly retrieved: Retrieved | undefined,
    private readonly more: RetainMore,
    private readonly advise?: (failed: FailedCall) => Promise<string | undefined>,
  ) {}

  /** What memory says, for the prompt; empty where it has nothing to say, or could not be asked. */
  get context(): string {
    return this.retrieved?.memory_context ?? "";
  }

  /** Id of the retrieve. */
  get retrievalId(): string | undefined {
    return this.retrieved?.retrieval_id;
  }

  /**
   * Notes a tool call, at once, with what went in and what came out; what JSON cannot say is noted as its text.
   *
   * Awaited, it returns, if the call failed, what put such a failure right in earlier runs, for the model to read before
   * its next call; undefined where memory has nothing for it or cannot be asked in time. It never rejects.
   *
   * @param status "error": the call failed, whatever its output says; undefined: the output is judged.
   */
  tool(name: string, input?: unknown, output?: unknown, status?: "ok" | "error"): PromiseLike<string | undefined> {
    const trace = { tool: nameWithin(name), input: asJson(input), output: asJson(output) };
    this.#traces.push(status === undefined ? trace : { ...trace, status });
    const failed = status === "error" || (status === undefined && mayHaveFailed(trace.output));
    const advise = failed ? this.advise : undefined;
    if (advise === undefined) return { then: (told, refused) => Promise.resolve(undefined).then(told, refused) };
    const { run_id = null, session_id = null } = this.more;
    const known = { agent: this.agent, task: this.task, retrieval_id: this.retrievalId ?? null };
    const asked = { ...known, run_id, session_id, ...question(this.#traces) };
    return { then: (told, refused) => advise(asked).then(told, refused) }; // asked for by whoever awaits it
  }

  /** Notes the plan, a step each; without one it is read off the tool calls. */
  plan(...steps: string[]): void {
    this.#said.plan = planWithin(steps);
  }

  /** Says which of the cases and procedures the agent went by; where nothing is said, all may have helped. */
  used(caseIds?: string[], procedureIds?: string[]): void {
    if (caseIds !== undefined) this.#said.used_case_ids = caseIds;
    if (procedureIds !== undefined) this.#said.used_procedure_ids = procedureIds;
  }

  /** Says that the task was done; with a reward, how well, 0 to 1. */
  success(reward?: number): void {
    this.end("success", reward);
  }

  /** Says that the task was not done. */
  failure(reward?: number): void {
    this.end("failure", reward);
  }

  /** Says how the run ended; the last word counts. */
  end(outcome: Outcome, reward?: number): void {
    this.#outcome = outcome;
    delete this.#said.reward;
    if (reward !== undefined) this.#said.reward = reward;
  }

  /**
   * Returns the run as it is retained, short enough for the service, in JSON of its own.
   *
   * @param otherwise how it ended where it did not say.
   * @throws whatever the fields of the retain throw when they are read.
   */
  finished(otherwise: Outcome): FinishedRun {
    const { agent, task, retrievalId } = this;
    const retrieval = retrievalId === undefined ? {} : { retrieval_id: retrievalId };
    const outcome = this.#outcome ?? otherwise;
    const said = Object.entries({ ...this.more, ...this.#said }).filter(([, value]) => value !== undefined);
    const more = Object.fromEntries(said.map(([name, value]) => [name, asJson(value)]));
    return runWithin({ ...retrieval, ...more, agent, task, outcome, tool_traces: [...this.#traces] });
  }
}

/** Returns how a run ended that an error left: broken off from outside, or by its own error. */
export function outcomeOf(error: unknown): Outcome {
  return error instanceof Error && error.name === "AbortError" ? "aborted" : "failure";
}

/** Returns the value as JSON, with the text of what JSON cannot say. */
export function asJson(value: unknown): unknown {
  try {
    return value === undefined ? null : JSON.parse(JSON.stringify(value, asText));
  } catch {
    return inspected(value); // a value that holds itself, or that will not be read
  }
}

function inspected(value: unknown): string {
  try {
    return inspect(value);
  } catch {
    return `<${typeof value}>`; // its own error
  }
}

function asText(_key: string, value: unknown): unknown {
  const sayable = typeof value === "number" ? Number.isFinite(value) : !["bigint", "function", "symbol"].includes(typeof value);
  return sayable && !(value instanceof Error) ? value : String(value);
}
