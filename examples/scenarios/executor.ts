/**
 * An executor that does not look the same thing up twice: it asks memory before each call, tells each step after it, and
 * puts the summary into its system prompt. Node 22 runs it as it is; CASEBANK_URL and CASEBANK_TOKEN say where casebank is.
 */

import { createHash, randomUUID } from "node:crypto";

const { CASEBANK_URL: url = "", CASEBANK_TOKEN: token = "" } = process.env;
const STORE = "export interface VectorStore {\n  search(query: number[]): Promise<Match[]>;\n}\n\nexport class MemoryStore implements VectorStore {}\n";

/** The tools of the executor; each call that is made for real counts. */
const tools: Record<string, () => unknown> = {
  "fs:search VectorStore interface": () => ["src/store.ts:1:export interface VectorStore {", "src/index.ts:3:import type { VectorStore }"].join("\n"),
  "fs:read src/store.ts": () => STORE,
  "mind:rag-query Which store is the default?": () => ({ answer: "MemoryStore is the default." }),
  "fs:list src/": () => "index.ts\nstore.ts\n",
};
const ARGUMENT: Record<string, string> = { "fs:search": "query", "fs:read": "path", "fs:list": "path", "mind:rag-query": "query" };

/** Execution memory of one run, over HTTP. */
class ExecutionMemory {
  readonly runId = randomUUID();
  readonly agent: string;
  readonly task: string;
  #step = 0;

  constructor(agent: string, task: string) {
    this.agent = agent;
    this.task = task;
  }

  /** Keeps a finding in words of our own. */
  addFinding(tool: string, query: string, fact: string): Promise<unknown> {
    return this.#ask("POST", "findings", { agent: this.agent, task: this.task, findings: [{ tool, query, fact }] });
  }

  /** Tells a finished step; casebank extracts its findings. */
  extractFindings(tool: string, query: string, output: unknown): Promise<unknown> {
    const step = { number: ++this.#step, tool, input: { [ARGUMENT[tool]]: query }, output };
    return this.#ask("POST", "steps", { agent: this.agent, task: this.task, steps: [step] });
  }

  /** Returns what an earlier step, or an earlier run, found out by this call. */
  isKnown(tool: string, query: string, hash?: string): Promise<{ known: boolean; why: string; content: string | null }> {
    return this.#ask("POST", "known", { tool, query, agent: this.agent, hash: hash ?? null });
  }

  /** Returns the text for the system prompt. */
  async getSummary(): Promise<string> {
    return (await this.#ask("GET", "summary")).text;
  }

  async #ask(method: string, path: string, body?: object): Promise<any> {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const answer = await fetch(`${url}/v1/runs/${this.runId}/${path}`, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  }
}

/** Runs the calls of a plan, but for those whose answer is known; returns the calls that were made. */
async function execute(memory: ExecutionMemory, plan: [tool: string, query: string][]): Promise<string[]> {
  const made: string[] = [];
  for (const [tool, query] of plan) {
    if ((await memory.isKnown(tool, query)).known) continue;
    made.push(`${tool} ${query}`);
    await memory.extractFindings(tool, query, tools[`${tool} ${query}`]());
  }
  return made;
}

function promise(sentence: string, holds: boolean): void {
  if (!holds) throw new Error(`broken: ${sentence}`);
  console.log(`  holds: ${sentence}`);
}

const agent = `scenario-executor-${randomUUID().slice(0, 8)}`;
console.log("A run of seven steps that searches twice and reads twice.");
const first = new ExecutionMemory(agent, "Add a store for Postgres");
const plan: [string, string][] = [
  ["fs:search", "VectorStore interface"],
  ["fs:read", "src/store.ts"],
  ["mind:rag-query", "Which store is the default?"],
  ["fs:search", "interface VectorStore"],
  ["fs:list", "src/"],
  ["fs:read", "src/store.ts"],
  ["mind:rag-query", "Please tell me which store is the default"],
];
const made = await execute(first, plan);
promise(`the second search, reading and question are spared (${made.length} of ${plan.length} calls made)`, made.length === 4);
promise("what was read before is at hand", (await first.isKnown("fs:read", "src/store.ts")).content === STORE);
await first.addFinding("review", "naming", "Stores are called by their place: PostgresStore.");

console.log("The summary for the system prompt.");
const summary = await first.getSummary();
console.log(summary.replace(/^/gm, "    "));
promise("it has the record's heading", summary.startsWith("# Execution Memory\n"));
promise("it groups files, searches and the rest", /Files Already Read:[^]*Previous Search Results:[^]*Other Findings:/.test(summary));
promise("a file's line names what it exports", /- src\/store\.ts: File contains: .*VectorStore.*MemoryStore/.test(summary));
promise("a finding by hand is there", summary.includes("Stores are called by their place: PostgresStore."));

console.log("A later run, before its first step.");
const second = new ExecutionMemory(agent, "Add a store for Redis");
const hash = createHash("sha256").update(STORE).digest("hex");
promise("a file of the same hash is known from the earlier run", (await second.isKnown("fs:read", "src/store.ts", hash)).known);
promise("a file that has changed is not", !(await second.isKnown("fs:read", "src/store.ts", "0".repeat(64))).known);
