/** When to ask again, and when to give up. */

import { setTimeout as sleep } from "node:timers/promises";

import { CasebankRefused, CasebankUnreachable } from "./errors.js";

/** Statuses that say nothing against the request itself. */
const COME_BACK = new Set([408, 429, 502, 503, 504]);

/** How long the client waits and how often it asks. */
export interface Patience {
  /** For one answer. */
  timeoutMs: number;
  /** In all, the first one included. */
  attempts: number;
  /** Longest time for all of them; a wait that would pass it is not begun. */
  totalMs: number;
  /** Before the second one, with as much again by chance; doubles with each further one. */
  firstWaitMs: number;
  /** Longest wait, a longer `Retry-After` included. */
  mostWaitMs: number;
  /** After a run's retain that no attempt got an answer for, before the runs that wait are sent again. */
  tryAgainMs: number;
}

export const PATIENCE: Readonly<Patience> = {
  timeoutMs: 10_000,
  attempts: 4,
  totalMs: 30_000,
  firstWaitMs: 100,
  mostWaitMs: 5_000,
  tryAgainMs: 15_000,
};

/** What openapi-fetch makes of an answer. */
export interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The lack of an answer that says anything about the request. */
interface Nothing {
  why: string;
  retryAfterMs?: number;
}

/**
 * Asks until there is an answer, and returns its content.
 *
 * @param send sends the request, which must be the same each time, until the signal breaks it off.
 * @param closed breaks off what is under way.
 * @throws {CasebankUnreachable} where no attempt is left.
 * @throws {CasebankRefused} where asking again would not help.
 */
export async function ask<T>(
  patience: Patience,
  closed: AbortSignal,
  send: (signal: AbortSignal) => Promise<Answer<T>>,
): Promise<T> {
  const end = performance.now() + patience.totalMs;
  for (let attempt = 1; ; attempt++) {
    const timeoutMs = Math.min(patience.timeoutMs, end - performance.now());
    const found = await within(timeoutMs, closed, send);
    if ("response" in found) return found.data as T;
    const waitMs = waitAfter(attempt, found, patience);
    const last = attempt >= patience.attempts || performance.now() + waitMs >= end || closed.aborted;
    if (last) throw new CasebankUnreachable(`casebank did not answer: ${found.why}`);
    await sleep(waitMs, undefined, { signal: closed }).catch(() => undefined);
  }
}

async function within<T>(
  timeoutMs: number,
  closed: AbortSignal,
  send: (signal: AbortSignal) => Promise<Answer<T>>,
): Promise<Answer<T> | Nothing> {
  if (closed.aborted) return { why: "the client is closed" };
  const breaking = new AbortController();
  const timer = setTimeout(() => breaking.abort(new Error(`no answer in ${Math.round(timeoutMs)} ms`)), timeoutMs);
  const close = () => breaking.abort(new Error("the client is closed"));
  closed.addEventListener("abort", close, { once: true });
  try {
    return read(await send(breaking.signal));
  } catch (error) {
    if (error instanceof CasebankRefused) throw error;
    return { why: breaking.signal.aborted ? String(breaking.signal.reason) : reasonOf(error) };
  } finally {
    clearTimeout(timer);
    closed.removeEventListener("abort", close);
  }
}

function read<T>(answer: Answer<T>): Answer<T> | Nothing {
  const { response, error } = answer;
  if (response.ok) return answer;
  if (!COME_BACK.has(response.status)) {
    throw new CasebankRefused(response.status, problemOf(error, response));
  }
  const seconds = response.headers.get("retry-after") ?? "";
  const why = `${response.status} ${response.statusText}`;
  return /^\d+$/.test(seconds) ? { why, retryAfterMs: Number(seconds) * 1_000 } : { why };
}

function problemOf(error: unknown, response: Response): Record<string, unknown> {
  const isProblem = typeof error === "object" && error !== null && !Array.isArray(error);
  return isProblem ? { ...error } : { title: response.statusText };
}

/** fetch says "fetch failed", and why in its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

function waitAfter(attempt: number, nothing: Nothing, patience: Patience): number {
  const grown = patience.firstWaitMs * 2 ** (attempt - 1) + Math.random() * patience.firstWaitMs;
  return Math.min(nothing.retryAfterMs ?? grown, patience.mostWaitMs);
}
