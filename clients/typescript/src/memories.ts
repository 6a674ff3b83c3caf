/**
 * The calls for what is kept (facts, knowledge, cases, recall over them) and for the findings of a run under way.
 *
 * `add`, `search`, `getAll` and `delete` are the four of other memories: they keep, find, list and delete facts.
 */

import type { Client } from "openapi-fetch";

import { CasebankRefused } from "./errors.js";
import type { components, paths } from "./schema.js";
import type { Answer } from "./wire.js";

type Schemas = components["schemas"];
type Filters<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Query } } } ? NonNullable<Query> : never;
export type Fact = Schemas["FactOut"];
export type Facts = Schemas["FactsOut"];
export type FactMore = Omit<Schemas["FactWritten"], "text">;
export type Knowledge = Schemas["KnowledgeOut"];
export type KnowledgePage = Schemas["KnowledgePageOut"];
export type KnowledgeWritten = Schemas["KnowledgeWritten"];
export type Case = Schemas["CaseOut"];
export type WholeCase = Schemas["WholeCaseOut"];
export type Cases = Schemas["CasesOut"];
export type Recalled = Schemas["RecallOut"];
export type MemoryFound = Recalled["memories"][number];
export type RecallMore = Omit<paths["/v1/recall"]["post"]["requestBody"]["content"]["application/json"], "agent" | "query">;
export type Steps = Schemas["StepsTaken"];
export type StepsAdded = Schemas["AppendedOut"];
export type Findings = Schemas["FindingsWritten"];
export type FindingsAdded = Schemas["WrittenOut"];
export type KnownMore = Omit<Schemas["KnownIn"], "tool" | "query">;
export type Known = Schemas["KnownOut"];
export type Summary = Schemas["SummaryOut"];

/** Agent of the memory where none is named; the service's own default for the Model Context Protocol. */
const ASSISTANT = "assistant";
/** Most rows of one page of the service. */
const PAGE = 200;

/** Throws where a field of other memories names a user: without types, `search` would answer for the token's. */
function refuseUser(more: object): void {
  for (const name of ["userId", "user_id"]) {
    if (name in more) throw new TypeError(`no field ${name}: the user is the one of the token; use a client for each user`);
  }
}

export abstract class Memories {
  /** Sends a request until it is answered; see `Casebank` for what it throws. */
  protected abstract asked<T>(send: (http: Client<paths>, signal: AbortSignal) => Promise<Answer<T>>): Promise<T>;

  /** Sends a DELETE until it is answered; what a repeated one does not find, the attempt before it deleted. */
  protected async deleted(send: (http: Client<paths>, signal: AbortSignal) => Promise<Answer<unknown>>): Promise<void> {
    let attempts = 0;
    const counted = (http: Client<paths>, signal: AbortSignal) => {
      attempts++;
      return send(http, signal);
    };
    await this.asked(counted).catch((error: unknown) => {
      if (!(attempts > 1 && error instanceof CasebankRefused && error.status === 404)) throw error;
    });
  }

  /**
   * Keeps a text of at most 2,000 characters as a fact about the user, in these words, and returns it.
   *
   * No model rewrites it; secrets are taken out. A fact that was told before is counted, and not kept twice. Messages of
   * a conversation belong into `addTurns`, from which casebank reads facts itself; a `TypeError` says so.
   *
   * @param more agent (default: `assistant`), kind (default: `fact`), and further fields of `POST /v1/facts`.
   */
  async add(text: string, more: Partial<FactMore> = {}): Promise<Fact> {
    if (typeof text !== "string") {
      throw new TypeError("a fact is a text; messages go into addTurns(agent, sessionId, messages), which reads facts itself");
    }
    refuseUser(more);
    const body: Schemas["FactWritten"] = { agent: ASSISTANT, kind: "fact", ...more, text };
    return this.asked((http, signal) => http.POST("/v1/facts", { body, signal }));
  }

  /** Returns the facts that match the query, the best first; `source.fact_id` is the id for `delete`. */
  async search(query: string, { agent = ASSISTANT, limit = 10, ...other } = {}): Promise<MemoryFound[]> {
    refuseUser(other);
    return (await this.recall(agent, query, { kinds: ["fact"], top_k: limit })).memories;
  }

  /** Returns every fact of the agent that holds now, the newest first. */
  async getAll({ agent = ASSISTANT, ...other } = {}): Promise<Fact[]> {
    refuseUser(other);
    const every: Fact[] = [];
    let cursor: string | null | undefined;
    do {
      const page: Facts = await this.facts({ agent, limit: PAGE, ...(cursor ? { cursor } : {}) });
      every.push(...page.facts);
      cursor = page.next_cursor;
    } while (cursor);
    return every;
  }

  /** Deletes a fact for good; one that it had replaced holds again. */
  async delete(factId: string): Promise<void> {
    const params = { path: { fact_id: factId } };
    await this.deleted((http, signal) => http.DELETE("/v1/facts/{fact_id}", { params, signal }));
  }

  /** Returns the turns, facts and knowledge that match the query; `more` are further fields of `POST /v1/recall`. */
  recall(agent: string, query: string, more: RecallMore = {}): Promise<Recalled> {
    const body = { ...more, agent, query };
    return this.asked((http, signal) => http.POST("/v1/recall", { body, signal }));
  }

  /** Returns a page of facts, the newest first; the filters are those of `GET /v1/facts`. */
  facts(query: Filters<"/v1/facts"> = {}): Promise<Facts> {
    return this.asked((http, signal) => http.GET("/v1/facts", { params: { query }, signal }));
  }

  /** Returns a page of the user's knowledge, the newest first; the filters are those of `GET /v1/knowledge`. */
  knowledge(query: Filters<"/v1/knowledge"> = {}): Promise<KnowledgePage> {
    return this.asked((http, signal) => http.GET("/v1/knowledge", { params: { query }, signal }));
  }

  /** Keeps an entry about a domain and returns it; one of the same category, type and title is replaced. */
  addKnowledge(body: KnowledgeWritten): Promise<Knowledge> {
    return this.asked((http, signal) => http.POST("/v1/knowledge", { body, signal }));
  }

  /** Deletes an entry of knowledge for good. */
  async deleteKnowledge(knowledgeId: string): Promise<void> {
    const params = { path: { knowledge_id: knowledgeId } };
    await this.deleted((http, signal) => http.DELETE("/v1/knowledge/{knowledge_id}", { params, signal }));
  }

  /** Returns a page of cases, the newest first; the filters are those of `GET /v1/cases`. */
  cases(query: Filters<"/v1/cases"> = {}): Promise<Cases> {
    return this.asked((http, signal) => http.GET("/v1/cases", { params: { query }, signal }));
  }

  /** Returns a case with its tool traces, turns and learned procedure. */
  case(caseId: string): Promise<WholeCase> {
    const params = { path: { case_id: caseId } };
    return this.asked((http, signal) => http.GET("/v1/cases/{case_id}", { params, signal }));
  }

  /** Deletes a case for good, with the repeats that were merged into it. */
  async deleteCase(caseId: string): Promise<void> {
    const params = { path: { case_id: caseId } };
    await this.deleted((http, signal) => http.DELETE("/v1/cases/{case_id}", { params, signal }));
  }

  /**
   * Adds steps to a run under way, on disk before this returns; the first ones for an id begin the run.
   *
   * @param runId a UUID of your own choice; a retain with `run_id` ends the run.
   */
  addSteps(runId: string, body: Steps): Promise<StepsAdded> {
    const params = { path: { run_id: runId } };
    return this.asked((http, signal) => http.POST("/v1/runs/{run_id}/steps", { params, body, signal }));
  }

  /** Adds findings in your own words to a run under way, beside those of its steps; sent again, they replace themselves. */
  addFindings(runId: string, body: Findings): Promise<FindingsAdded> {
    const params = { path: { run_id: runId } };
    return this.asked((http, signal) => http.POST("/v1/runs/{run_id}/findings", { params, body, signal }));
  }

  /** Returns the finding that makes a call needless, if there is one; `more` are further fields of the request. */
  known(runId: string, tool: string, query: unknown, more: KnownMore = {}): Promise<Known> {
    const params = { path: { run_id: runId } };
    const body = { ...more, tool, query };
    return this.asked((http, signal) => http.POST("/v1/runs/{run_id}/known", { params, body, signal }));
  }

  /** Returns the findings of a run that may still hold, as text for the system prompt. */
  summary(runId: string, tokenBudget = 1_000): Promise<Summary> {
    const params = { path: { run_id: runId }, query: { token_budget: tokenBudget } };
    return this.asked((http, signal) => http.GET("/v1/runs/{run_id}/summary", { params, signal }));
  }

  /** Deletes the findings of a run, and not its steps. */
  async clearSummary(runId: string): Promise<void> {
    const params = { path: { run_id: runId } };
    await this.asked((http, signal) => http.DELETE("/v1/runs/{run_id}/summary", { params, signal }));
  }
}
