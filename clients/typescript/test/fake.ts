/** A server that answers as it is told to, over a real socket, and remembers what it was asked. */

import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Asked {
  path: string;
  key: string | undefined;
  authorization: string | undefined;
  user: string;
  body: Record<string, unknown>;
}

/** Answers a request; the number counts the requests of that path, from 1. */
export type Answering = (asked: Asked, number: number, response: ServerResponse) => void;

export interface Fake {
  url: string;
  asked: Asked[];
  [Symbol.asyncDispose](): Promise<void>;
}

export async function fake(answering: Answering): Promise<Fake> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const now = await read(request);
    asked.push(now);
    answering(now, asked.filter(({ path }) => path === now.path).length, response);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const close = () => {
    server.closeAllConnections();
    return new Promise<void>((closed) => server.close(() => closed()));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, [Symbol.asyncDispose]: close };
}

/** Answers as casebank would. */
export const works: Answering = (asked, _number, response) => {
  if (asked.path === "/v1/retrieve") json(response, 200, { memory_context: "what helped", retrieval_id: "r-1" });
  else json(response, 202, { case_id: "c-1" });
};

export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
}

async function read(request: IncomingMessage): Promise<Asked> {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  const { authorization, "idempotency-key": key } = request.headers;
  const user = Buffer.from(String(request.headers["x-casebank-user"] ?? ""), "latin1").toString();
  return { path: request.url ?? "", key: key as string | undefined, authorization, user, body: JSON.parse(text || "{}") };
}
