/** The client: single calls, and runs that retrieve before and retain after. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import createClient, { type Client } from "openapi-fetch";

import { CasebankRefused, CasebankUnreachable } from "./errors.js";
import { taskWithin } from "./fitting.js";
import { Memories } from "./memories.js";
import { type FailedCall, type FinishedRun, type Outcome, type RetainMore, type Retrieved, Run, outcomeOf } from "./run.js";
import type { components, paths } from "./schema.js";
import { type Answer, PATIENCE, type Patience, ask } from "./wire.js";

type Schemas = components["schemas"];
export type RetrieveMore = Omit<Schemas["RetrieveIn"], "agent" | "query">;
export type Advice = Schemas["AdviceOut"];
export type Retained = Schemas["RetainOut"];
export type FeedbackGiven = Schemas["FeedbackIn"];
export type Feedback = Schemas["FeedbackOut"];
export type Turn = Schemas["TurnsTold"]["turns"][number];
export type TurnsAdded = Schemas["TurnsAppendedOut"];
export type Session = Schemas["WholeSessionOut"];

/** Runs that wait to be retained; one more is given up, and reported. */
const MOST_WAITING = 1_000;
/** For how long `close` waits for what is not sent yet. */
const FLUSH_MS = 5_000;
/** Default of the milliseconds that a run waits for what memory has, in all. */
const RETRIEVE_MS = 3_000;
/** Default of the milliseconds that a failed call waits for advice. */
const ADVICE_MS = 300;
/** What a bearer token may be (RFC 6750, section 2.1). */
const TOKEN = /^[A-Za-z0-9._~+/=-]+$/;
/** Names that arrive as they are in a header: fetch strips the spaces around them, which leaves another user's name. */
const USER = /^(?! )[^\p{Cc}\p{Cs}]+(?<! )$/u;

/** Clients whose runs wait for casebank: the end of the program sends each run once more, or reports it. */
const paused = new Set<Casebank>();
process.on("beforeExit", () => paused.forEach((casebank) => void casebank.close()));

/** Puts U+FFFD for half a character, as where a text was cut within an emoji: it is no Unicode, and would be refused. */
function wellFormed(_name: string, value: unknown): unknown {
  return typeof value === "string" ? value.replace(/\p{Surrogate}/gu, "\ufffd") : value;
}

/** Returns the text whose characters are the bytes of this one, for a header: fetch takes no others. */
function inUtf8(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** Returns whether the same request may work later: casebank was not reached, or something broke on its side. */
function mayWorkLater(error: unknown): boolean {
  return error instanceof CasebankUnreachable || (error instanceof CasebankRefused && error.status >= 500);
}

/** What a run could not do. */
export type What = "retrieve" | "advice" | "retain";

export interface Settings {
  /** Whose memory it is, where the token is a service's. */
  user?: string;
  /** Narrows the limits to one conversation. */
  session?: string;
  /** How long and how often to ask. */
  patience?: Partial<Patience>;
  /**
   * Told where a run acts without memory or advice, or is not retained; by default a line on stderr. `run` is what was not
   * retained: keep it, and send it again with `retain` and the key once the reason is gone. The key keeps it once, also
   * where only the answer was lost.
   */
  onError?: (error: Error, what: What, run?: FinishedRun, idempotencyKey?: string) => void;
}

/**
 * Memory of one user.
 *
 * Every call throws `CasebankUnreachable` where casebank does not answer within the patience, and `CasebankRefused`
 * where it will not do what was asked. A `run` throws neither.
 */
export class Casebank extends Memories {
  readonly #http: Client<paths>;
  readonly #patience: Patience;
  readonly #onError: NonNullable<Settings["onError"]>;
  readonly #closing = new AbortController();
  readonly #closed = new AbortController();
  readonly #waiting: { run: FinishedRun; key: string }[] = [];
  #sent: Promise<void> = Promise.resolve();

  /**
   * @param baseUrl where the service is.
   * @param token of the user, or of a service that acts for users.
   * @throws {TypeError} where no header carries the name of the user.
   */
  constructor(baseUrl: string, token: string, settings: Settings = {}) {
    super();
    const { user, session } = settings;
    if (user !== undefined && !USER.test(user)) {
      throw new TypeError("user must be a name without spaces around it and without control characters");
    }
    // what can be no token is not sent: an error about the header would have it in its words
    const headers: Record<string, string> = { Authorization: TOKEN.test(token.trim()) ? `Bearer ${token.trim()}` : "Bearer" };
    if (user !== undefined) headers["X-Casebank-User"] = inUtf8(user);
    if (session !== undefined) headers["X-Casebank-Session"] = inUtf8(session);
    const bodySerializer = (body: unknown) => JSON.stringify(body, wellFormed);
    this.#http = createClient<paths>({ baseUrl, headers, redirect: "manual", bodySerializer });
    this.#patience = { ...PATIENCE, ...settings.patience };
    this.#onError = settings.onError ?? ((error, what) => console.warn(`casebank: ${what}: ${error.message}`));
  }

  /** Returns what may help with the query; `more` are further fields of `POST /v1/retrieve`. */
  retrieve(agent: string, query: string, more: RetrieveMore = {}): Promise<Retrieved> {
    return this.#retrieve(this.#patience, agent, query, more);
  }

  /**
   * Returns what put a failed call right in earlier runs, or why it says nothing.
   *
   * @param withinMs milliseconds for one attempt; without it the client's patience holds.
   */
  advice(failed: FailedCall, withinMs?: number): Promise<Advice> {
    const patience = withinMs === undefined ? this.#patience : { ...PATIENCE, timeoutMs: withinMs, totalMs: withinMs, attempts: 1 };
    return ask(patience, this.#closed.signal, (signal) => this.#http.POST("/v1/advice", { body: failed, signal }));
  }

  /**
   * Keeps a finished run and returns once it is on disk. Sent again, it is sent under the same key, and kept once.
   *
   * @param more further fields of `POST /v1/retain`.
   */
  retain(
    agent: string,
    task: string,
    outcome: Outcome = "unknown",
    more: RetainMore = {},
    idempotencyKey: string = randomUUID(),
  ): Promise<Retained> {
    return this.#retain({ ...more, agent, task, outcome }, idempotencyKey);
  }

  /** Rewards a run, by its `case_id` or by its `retrieval_id`, and returns what that reached. */
  feedback(given: FeedbackGiven): Promise<Feedback> {
    return this.asked((http, signal) => http.POST("/v1/feedback", { body: given, signal }));
  }

  /** Adds messages of chat completions to a session, once; the first ones begin it. */
  addTurns(agent: string, sessionId: string, turns: Turn[]): Promise<TurnsAdded> {
    const params = { path: { session_id: sessionId }, header: { "idempotency-key": randomUUID() } };
    const body = { agent, turns };
    return this.asked((http, signal) => http.POST("/v1/sessions/{session_id}/turns", { params, body, signal }));
  }

  /** Returns a session's newest turns that fit the budget, and by rule what was said before them. */
  readSession(sessionId: string, tokenBudget = 2_000): Promise<Session> {
    const params = { path: { session_id: sessionId }, query: { token_budget: tokenBudget } };
    return this.asked((http, signal) => http.GET("/v1/sessions/{session_id}", { params, signal }));
  }

  /** Deletes a session for good. */
  async deleteSession(sessionId: string): Promise<void> {
    const params = { path: { session_id: sessionId } };
    await this.deleted((http, signal) => http.DELETE("/v1/sessions/{session_id}", { params, signal }));
  }

  /**
   * Retrieves, lets the agent act, and retains the run in the background; returns what `act` returns.
   *
   * An error is a failure, and goes on; an outage of casebank costs the agent its memory and nothing else.
   *
   * @param task in words; also what is searched for. Of more than 20,000 characters the middle is left out.
   * @param more further fields of the retrieve, such as `k`, and of the retain, such as `tags`; the milliseconds that the
   *   retrieve may take in all, and that a failed call may wait for advice, 0: none is asked for.
   */
  async run<T>(
    agent: string,
    task: string,
    act: (run: Run) => T | Promise<T>,
    more: { retrieve?: RetrieveMore; retain?: RetainMore; retrieveMs?: number; adviceMs?: number } = {},
  ): Promise<T> {
    const asked = taskWithin(task);
    const slate = await this.#slate(agent, asked, more.retrieve, more.retrieveMs);
    const withinMs = more.adviceMs ?? ADVICE_MS;
    const advise = withinMs > 0 ? (failed: FailedCall) => this.#adviceText(failed, withinMs) : undefined;
    const run = new Run(agent, asked, slate, more.retain ?? {}, advise);
    let ended: Outcome = "unknown";
    try {
      return await act(run);
    } catch (error) {
      ended = outcomeOf(error);
      throw error;
    } finally {
      this.#keep(run, ended);
    }
  }

  /** Sends what waits once more, as far as that is done in time, and gives up the rest; afterwards nothing is sent. */
  async close(withinMs = FLUSH_MS): Promise<void> {
    this.#closing.abort();
    const enough = new AbortController();
    const timer = sleep(withinMs, undefined, { signal: enough.signal }).catch(() => undefined);
    await Promise.race([this.#sent, timer]);
    enough.abort();
    this.#closed.abort();
    await this.#sent;
  }

  async #slate(agent: string, task: string, more?: RetrieveMore, withinMs = RETRIEVE_MS): Promise<Retrieved | undefined> {
    try {
      const patience = { ...this.#patience, totalMs: Math.min(withinMs, this.#patience.totalMs) };
      const slate = await this.#retrieve(patience, agent, task, more);
      if (typeof slate?.memory_context === "string") return slate;
      throw new CasebankUnreachable("casebank did not answer: the answer is not one of casebank");
    } catch (error) {
      void this.#report(error, "retrieve");
      return undefined;
    }
  }

  async #adviceText(failed: FailedCall, withinMs: number): Promise<string | undefined> {
    try {
      return (await this.advice(failed, withinMs)).text || undefined;
    } catch (error) {
      void this.#report(error, "advice");
      return undefined;
    }
  }

  /** Takes a run to be retained, after those before it; never throws. */
  #keep(ended: Run, otherwise: Outcome): void {
    try {
      const run = ended.finished(otherwise);
      const key = randomUUID();
      if (this.#waiting.length >= MOST_WAITING) {
        void this.#report(new Error("too many runs wait to be retained; one is given up"), "retain", run, key);
        return;
      }
      this.#waiting.push({ run, key });
      this.#sent = this.#sent.then(() => this.#sendWaiting());
    } catch (error) {
      void this.#report(error, "retain");
    }
  }

  /** Sends the runs that wait; one that casebank does not answer goes behind the others, and is sent again after a pause. */
  async #sendWaiting(): Promise<void> {
    for (let first; (first = this.#waiting[0]) !== undefined; ) {
      const last = this.#closing.signal.aborted;
      const { run, key } = first;
      const failed = await this.#retain(run, key).then(() => undefined, (error: unknown) => ({ error }));
      this.#waiting.shift();
      if (failed === undefined) continue;
      if (last || !mayWorkLater(failed.error)) {
        void this.#report(failed.error, "retain", run, key);
        continue;
      }
      this.#waiting.push(first);
      await this.#pause();
    }
  }

  /** Waits for the next attempt, or for `close`; the end of the program does not wait for this. */
  async #pause(): Promise<void> {
    paused.add(this);
    const how = { ref: false, signal: this.#closing.signal };
    await sleep(this.#patience.tryAgainMs, undefined, how).catch(() => undefined);
    paused.delete(this);
  }

  #retrieve(patience: Patience, agent: string, query: string, more?: RetrieveMore): Promise<Retrieved> {
    const body = { ...more, agent, query };
    return ask(patience, this.#closed.signal, (signal) => this.#http.POST("/v1/retrieve", { body, signal }));
  }

  #retain(body: FinishedRun, idempotencyKey: string): Promise<Retained> {
    const params = { header: { "idempotency-key": idempotencyKey } };
    return this.asked((http, signal) => http.POST("/v1/retain", { params, body, signal }));
  }

  protected override asked<T>(send: (http: Client<paths>, signal: AbortSignal) => Promise<Answer<T>>): Promise<T> {
    return ask(this.#patience, this.#closed.signal, (signal) => send(this.#http, signal));
  }

  /** Tells the hook, whose own error is not the agent's; never throws, and never rejects. */
  async #report(error: unknown, what: What, run?: FinishedRun, key?: string): Promise<void> {
    try {
      await this.#onError(error instanceof Error ? error : new Error(String(error)), what, run, key);
    } catch {
      // nothing is left to tell
    }
  }
}
