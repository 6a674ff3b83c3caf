/** Execution memory: an agent does not look the same thing up twice in a run. */

import { randomUUID } from "node:crypto";

import { CasebankRefused } from "./errors.js";
import type { Known, KnownMore, Memories } from "./memories.js";
import { asJson } from "./run.js";
import type { components } from "./schema.js";

type Finding = components["schemas"]["WrittenFinding"];
type Step = components["schemas"]["Step"];

/** Findings of one run; every call throws as the client's own do. */
export class ExecutionMemory {
  #step: number;

  /**
   * @param task of the whole run.
   * @param runId id of the run, for `run_id` of the retain that ends it; another run is another object.
   * @param lastStep number of the last step that the run has already, where another object told it.
   */
  constructor(
    private readonly memory: Memories,
    readonly agent: string,
    readonly task: string,
    readonly runId: string = randomUUID(),
    lastStep = 0,
  ) {
    this.#step = lastStep;
  }

  /** Keeps a finding in your own words. */
  async addFinding(finding: Finding): Promise<void> {
    await this.memory.addFindings(this.runId, { agent: this.agent, task: this.task, findings: [finding] });
  }

  /**
   * Tells a finished step, whose findings casebank extracts; steps are numbered in the order of the calls.
   *
   * @returns text of advice, if the step failed and earlier runs got past such a failure.
   */
  async extractFindings(tool: string, input: unknown, output: unknown, status?: "ok" | "error"): Promise<string | undefined> {
    const trace = { number: ++this.#step, tool, input: asJson(input), output: asJson(output) };
    const step: Step = status === undefined ? trace : { ...trace, status };
    const added = await this.memory.addSteps(this.runId, { agent: this.agent, task: this.task, steps: [step] });
    return added.advice?.text || undefined;
  }

  /** Returns whether an earlier step, or an earlier run, answers this call, with its `finding` and `content`. */
  isKnown(tool: string, query: unknown, more: KnownMore = {}): Promise<Known> {
    return this.memory.known(this.runId, tool, query, { agent: this.agent, ...more });
  }

  /** Returns the findings as text for the system prompt; empty before the first step or finding. */
  async getSummary(tokenBudget?: number): Promise<string> {
    return (await this.memory.summary(this.runId, tokenBudget).catch(noneYet))?.text ?? "";
  }

  /** Deletes the findings, and not the steps. */
  async clear(): Promise<void> {
    await this.memory.clearSummary(this.runId).catch(noneYet);
  }
}

/** Returns nothing for a run that did not begin yet, and throws any other error. */
function noneYet(error: unknown): undefined {
  if (!(error instanceof CasebankRefused && error.status === 404)) throw error;
}
