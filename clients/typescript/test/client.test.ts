/** The client does the loop, asks again where that helps, and never breaks the agent. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect, promisify } from "node:util";

import { Casebank, CasebankRefused, CasebankUnreachable, ExecutionMemory, type Settings } from "../src/index.js";
import { type Fake, fake, json, works } from "./fake.js";

const AGENT = "db-operator";
const TASK = "rename a column";
const QUICK = { attempts: 3, firstWaitMs: 1, mostWaitMs: 5, tryAgainMs: 5 };
/** For a test that takes longer only where what it waits for never happens. */
const NEVER = { timeout: 60_000 };

/** A client that fails the test with what it reports, unless the test takes the reports. */
function memory(server: Fake, reports: string[] = [], patience: Settings["patience"] = QUICK): Casebank {
  return new Casebank(server.url, "token", { patience, onError: (error, what) => reports.push(`${what}: ${error.message}`) });
}

function retained(server: Fake) {
  return server.asked.filter(({ path }) => path === "/v1/retain");
}

/** Returns once it holds; rejects where the test has no time left. */
async function until({ signal }: TestContext, holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5, undefined, { signal });
}

test("messages and a user that are given as to other memories throw an error that names what to call", async () => {
  await using server = await fake(works);
  const casebank = memory(server);
  const [messages, user]: any[] = [[{ role: "user", content: "I live in Lisbon" }], { userId: "ben" }];
  await assert.rejects(casebank.add(messages), /TypeError: .*addTurns/);
  for (const call of [casebank.add("I live in Lisbon", user), casebank.search("home", user), casebank.getAll(user)]) {
    await assert.rejects(call, /TypeError: no field userId: the user is the one of the token/);
  }
  assert.deepEqual(server.asked, []);
});

test("a run retrieves before, and is retained after with what it did", async () => {
  await using server = await fake(works);
  const casebank = memory(server);
  const answer = await casebank.run(
    AGENT,
    TASK,
    async (run) => {
      assert.equal(run.context, "what helped");
      run.tool("sql", { query: "ALTER TABLE a" }, "no such table", "error");
      run.plan("look", "rename");
      run.used(["c-7"]);
      run.success(0.8);
      return 42;
    },
    { retrieve: { k: 2 }, retain: { tags: ["first"] } },
  );
  await casebank.close();
  assert.equal(answer, 42);
  assert.deepEqual(server.asked[0]?.body, { k: 2, agent: AGENT, query: TASK });
  assert.deepEqual(retained(server)[0]?.body, {
    retrieval_id: "r-1",
    tags: ["first"],
    plan: ["look", "rename"],
    used_case_ids: ["c-7"],
    reward: 0.8,
    agent: AGENT,
    task: TASK,
    outcome: "success",
    tool_traces: [{ tool: "sql", input: { query: "ALTER TABLE a" }, output: "no such table", status: "error" }],
  });
});

for (const [name, error, outcome] of [
  ["an error", new TypeError("no"), "failure"],
  ["a cancellation", new DOMException("stop", "AbortError"), "aborted"],
] as const) {
  test(`${name} ends a run as ${outcome}, and goes on`, async () => {
    await using server = await fake(works);
    const casebank = memory(server);
    const run = casebank.run(AGENT, TASK, () => {
      throw error;
    });
    await assert.rejects(run, (thrown) => thrown === error);
    await casebank.close();
    assert.equal(retained(server)[0]?.body["outcome"], outcome);
  });
}

test("a run that says nothing is unknown, and what was said before an error counts", async () => {
  await using server = await fake(works);
  const casebank = memory(server);
  await casebank.run(AGENT, TASK, () => undefined);
  const said = casebank.run(AGENT, TASK, (run) => {
    run.success();
    throw new Error("afterwards");
  });
  await assert.rejects(said, /afterwards/);
  await casebank.close();
  assert.deepEqual(retained(server).map(({ body }) => body["outcome"]), ["unknown", "success"]);
});

test("a retain is repeated under the same key, and another run has another", async () => {
  await using server = await fake((asked, number, response) => {
    if (asked.path !== "/v1/retain" || number > 2) works(asked, number, response);
    else if (number === 1) response.socket?.destroy();
    else json(response, 503, {});
  });
  const reports: string[] = [];
  const casebank = memory(server, reports);
  for (const each of ["one", "two"]) await casebank.run(AGENT, each, (run) => run.success());
  await casebank.close();
  const [first, ...others] = retained(server).map(({ key }) => key);
  assert.match(first ?? "", /^[0-9a-f-]{36}$/);
  assert.deepEqual(others.slice(0, 2), [first, first]);
  assert.equal(others.length, 3);
  assert.notEqual(others[2], first);
  assert.deepEqual(reports, []);
});

test("runs that end while casebank is away are retained once it is back, under the same keys", NEVER, async (t) => {
  const away = [500, 503, 429, 0];
  await using server = await fake((asked, number, response) => {
    const status = asked.path === "/v1/retain" ? away[number % away.length] : undefined;
    if (status === undefined || number > 20) works(asked, number, response);
    else if (status === 0) response.socket?.destroy();
    else json(response, status, {});
  });
  const reports: string[] = [];
  const casebank = memory(server, reports);
  for (const each of ["one", "two"]) await casebank.run(AGENT, each, (run) => run.success());
  await until(t, () => retained(server).length === 22);
  await casebank.close();
  const keys = (task: string) => new Set(retained(server).filter(({ body }) => body["task"] === task).map(({ key }) => key));
  assert.deepEqual([keys("one").size, keys("two").size, new Set(retained(server).map(({ key }) => key)).size], [1, 1, 2]);
  assert.deepEqual([retained(server).length, reports], [22, []]);
});

test("a run that is refused is reported with what it was and not sent again, and the next one is sent", async () => {
  await using server = await fake((asked, number, response) => {
    if (asked.path === "/v1/retain" && number === 1) json(response, 422, { title: "Unprocessable" });
    else works(asked, number, response);
  });
  const reports: unknown[] = [];
  const onError: Settings["onError"] = (error, what, run) => reports.push([error.message, what, run?.task]);
  const casebank = new Casebank(server.url, "token", { patience: QUICK, onError });
  for (const each of ["one", "two"]) await casebank.run(AGENT, each, () => undefined);
  await casebank.close();
  assert.deepEqual(retained(server).map(({ body }) => body["task"]), ["one", "two"]);
  assert.deepEqual(reports, [["422: Unprocessable", "retain", "one"]]);
});

test("a thousand runs wait for casebank, and closing sends each once more and reports it once", NEVER, async (t) => {
  let away = true;
  await using server = await fake((asked, number, response) => {
    if (asked.path !== "/v1/retain") works(asked, number, response);
    else if (away) json(response, 503, {});
    else json(response, asked.body["task"] === "0" ? 503 : 202, {});
  });
  const reports: string[] = [];
  const casebank = memory(server, reports, { ...QUICK, attempts: 1, tryAgainMs: 3_600_000 });
  for (let each = 0; each < 1_001; each++) await casebank.run(AGENT, String(each), () => undefined);
  assert.deepEqual(reports, ["retain: too many runs wait to be retained; one is given up"]);
  await until(t, () => retained(server).length === 1);
  away = false;
  await casebank.close(50_000);
  const tasks = retained(server).map(({ body }) => Number(body["task"]));
  assert.deepEqual(tasks.sort((one, other) => one - other), [0, ...Array(1_000).keys()]);
  assert.deepEqual(reports.slice(1), ["retain: casebank did not answer: 503 Service Unavailable"]);
});

test("a program ends while a run waits, which is sent once more at its end", NEVER, async () => {
  await using server = await fake((asked, number, response) => {
    if (asked.path === "/v1/retain" && number === 1) json(response, 503, {});
    else works(asked, number, response);
  });
  const program = `
    import { Casebank } from ${JSON.stringify(new URL("../src/index.js", import.meta.url))};
    const patience = { attempts: 1, tryAgainMs: 3_600_000 };
    await new Casebank("${server.url}", "token", { patience }).run("${AGENT}", "${TASK}", (run) => run.success());`;
  const { stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  const [first, second, ...others] = retained(server);
  assert.deepEqual([first?.key, others, stderr], [second?.key, [], ""]);
});

test("a server that never answers is given up, by each call and by a run", async () => {
  await using server = await fake(() => undefined);
  const reports: string[] = [];
  const casebank = memory(server, reports, { ...QUICK, timeoutMs: 30, attempts: 2 });
  await assert.rejects(casebank.retrieve(AGENT, TASK), CasebankUnreachable);
  assert.equal(server.asked.length, 2);
  assert.equal(await casebank.run(AGENT, TASK, (run) => run.context), "");
  await casebank.close();
  assert.deepEqual(
    reports.map((report) => report.split(":")[0]),
    ["retrieve", "retain"],
  );
});

test("a run waits for a hung casebank three seconds or as long as it may, and a single call as long as the client", async () => {
  await using server = await fake(() => undefined);
  const reports: string[] = [];
  const casebank = memory(server, reports, { ...QUICK, timeoutMs: 4_000, attempts: 1 });
  const single = casebank.retrieve(AGENT, TASK).then(String, String);
  await casebank.run(AGENT, TASK, () => undefined);
  await casebank.run(AGENT, TASK, () => undefined, { retrieveMs: 20 });
  const waitedMs = [...reports, await single].map((report) => Number(/no answer in (\d+) ms/.exec(report)?.[1]));
  await casebank.close(0);
  const [first = NaN, second = NaN, whole = NaN] = waitedMs;
  assert.ok(first <= 3_000 && first > second && second <= 20 && whole === 4_000, String(waitedMs));
});

test("an agent acts without memory where nobody listens, whatever its hook does", async () => {
  const { url } = await (async () => {
    await using gone = await fake(works);
    return gone;
  })();
  const onError = () => {
    throw new Error("the hook's own");
  };
  const casebank = new Casebank(url, "token", { patience: { attempts: 1 }, onError });
  assert.equal(await casebank.run(AGENT, TASK, (run) => `acted${run.context}`), "acted");
  await casebank.close();
});

test("an answer of something that is not casebank is no answer", async () => {
  await using server = await fake((_asked, _number, response) => response.end("<html>"));
  const casebank = memory(server);
  await assert.rejects(casebank.retrieve(AGENT, TASK), CasebankUnreachable);
  assert.equal(await casebank.run(AGENT, TASK, (run) => run.context), "");
  await casebank.close();
});

test("an agent acts without memory where something else answers in JSON", async () => {
  for (const answer of [{ sign: "in" }, [], null, "casebank"]) {
    await using server = await fake((_asked, _number, response) => json(response, 200, answer));
    const reports: string[] = [];
    const casebank = memory(server, reports);
    assert.deepEqual(await casebank.run(AGENT, TASK, (run) => [run.context, run.retrieved?.cases.length]), ["", undefined]);
    await casebank.close();
    assert.deepEqual(reports, ["retrieve: casebank did not answer: the answer is not one of casebank"]);
  }
});

test("a run's end never breaks the agent, whatever the fields of the retain are", async () => {
  await using server = await fake(works);
  const reports: string[] = [];
  const casebank = memory(server, reports);
  const itself: Record<string, any> = {};
  itself["itself"] = itself;
  const broken = {
    get tags(): string[] {
      throw new Error("no tags");
    },
  };
  for (const retain of [broken, { prompt_snapshot: itself }, { prompt_snapshot: { large: 12n } as any, tags: undefined as any }]) {
    assert.equal(await casebank.run(AGENT, TASK, () => 42, { retain }), 42);
  }
  const failing = casebank.run(AGENT, TASK, () => Promise.reject(new Error("the agent's")), { retain: broken });
  await assert.rejects(failing, /the agent's/);
  await casebank.close();
  const [first, second, ...others] = retained(server).map(({ body }) => body);
  assert.match(String(first?.["prompt_snapshot"]), /Circular/);
  assert.deepEqual([second?.["prompt_snapshot"], "tags" in (second ?? {}), others], [{ large: "12" }, false, []]);
  assert.deepEqual(reports, ["retain: no tags", "retain: no tags"]);
});

test("a hook that rejects does not end the program", NEVER, async () => {
  const program = `
    import { Casebank } from ${JSON.stringify(new URL("../src/index.js", import.meta.url))};
    const onError = () => Promise.reject(new Error("the hook's own"));
    const casebank = new Casebank("http://127.0.0.1:9", "token", { patience: { attempts: 1 }, onError });
    console.log(await casebank.run("${AGENT}", "${TASK}", () => "acted"));
    await casebank.close();`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  assert.deepEqual([stdout, stderr], ["acted\n", ""]);
});

test("a run is sent as it was when it ended", async (t) => {
  await using server = await fake((asked, number, response) => {
    if (asked.path === "/v1/retain" && number === 1) json(response, 503, {});
    else works(asked, number, response);
  });
  const casebank = memory(server);
  const tags = ["first"];
  await casebank.run(AGENT, TASK, () => undefined, { retain: { tags } });
  tags.push("of the next run");
  await until(t, () => retained(server).length === 2);
  await casebank.close();
  assert.deepEqual(retained(server).map(({ body }) => body["tags"]), [["first"], ["first"]]);
});

test("a refusal is told with its problem, and not asked again", async () => {
  const problem = { title: "Unprocessable", detail: "k is negative" };
  await using server = await fake((_asked, _number, response) => json(response, 422, problem));
  const refused = await memory(server).retrieve(AGENT, TASK, { k: -1 }).catch((error: unknown) => error);
  assert.ok(refused instanceof CasebankRefused);
  assert.deepEqual([refused.status, refused.problem, refused.message], [422, problem, "422: Unprocessable: k is negative"]);
  const field = { ...problem, errors: [{ field: "body.k", message: "at least 1" }] };
  assert.equal(new CasebankRefused(422, field).message, "422: Unprocessable: k is negative: body.k: at least 1");
  assert.equal(server.asked.length, 1);
});

test("the space around a token is none of it, and what can be no token is not sent", async () => {
  await using server = await fake(works);
  for (const token of [" abc.def\n", "two\nlines", ""]) await new Casebank(server.url, token).retrieve(AGENT, TASK);
  assert.deepEqual(server.asked.map(({ authorization }) => authorization), ["Bearer abc.def", "Bearer", "Bearer"]);
});

test("Retry-After is waited for, and one beyond the patience is not begun", async () => {
  await using server = await fake((_asked, _number, response) => json(response, 429, {}, { "Retry-After": "3600" }));
  const casebank = memory(server, [], { mostWaitMs: 3_600_000, totalMs: 5_000 });
  await assert.rejects(casebank.retrieve(AGENT, TASK), /429/);
  assert.equal(server.asked.length, 1);
});

const RULE = "Error: store credit only";

test("a failed call is answered with advice, which is asked for where it is awaited", async () => {
  await using server = await fake((asked, number, response) => {
    if (asked.path === "/v1/advice") json(response, 200, { text: number === 1 ? "use store_credit" : "" });
    else works(asked, number, response);
  });
  const casebank = memory(server);
  await casebank.run(AGENT, TASK, async (run) => {
    assert.equal(await run.tool("refund", { method: "original" }, RULE), "use store_credit");
    assert.equal(await run.tool("look", {}, "3 rows, 0 errors"), undefined);
    assert.equal(await run.tool("look", {}, RULE, "ok"), undefined);
    run.tool("other", {}, "Error: not awaited");
    assert.equal(await run.tool("refund", { method: "voucher" }, RULE, "error"), undefined);
  });
  await casebank.run(AGENT, TASK, async (run) => assert.equal(await run.tool("refund", {}, RULE), undefined), { adviceMs: 0 });
  await casebank.close();
  const [first, again, ...others] = server.asked.filter(({ path }) => path === "/v1/advice").map(({ body }) => body);
  const call = { tool: "refund", input: { method: "original" }, output: RULE };
  assert.equal(again?.["status"], "error");
  const known = { agent: AGENT, task: TASK, retrieval_id: "r-1", run_id: null, session_id: null };
  assert.deepEqual(first, { ...known, ...call, status: "ok", tried: [] });
  assert.deepEqual((again?.["tried"] as { tool: string }[]).map(({ tool }) => tool), ["look", "look", "other", "refund"]);
  assert.equal((again?.["input"] as { method: string }).method, "original");
  assert.deepEqual(others, []);
  const traces = retained(server)[0]?.body["tool_traces"] as { status?: string }[];
  assert.deepEqual(traces.map(({ status }) => status), [undefined, undefined, "ok", undefined, "error"]);
});

test("a failed call waits for advice no longer than it may, and the reason is reported", async () => {
  await using server = await fake((asked, number, response) => {
    if (asked.path !== "/v1/advice") works(asked, number, response);
    else if (number % 2 === 0) json(response, 503, {});
  });
  const reports: string[] = [];
  const casebank = memory(server, reports);
  await casebank.run(
    AGENT,
    TASK,
    async (run) => {
      const began = performance.now();
      for (let each = 0; each < 100; each++) assert.equal(await run.tool("refund", { each }, RULE), undefined);
      assert.ok(performance.now() - began < 50 * 20 + 2_000);
    },
    { adviceMs: 20 },
  );
  await casebank.close();
  assert.deepEqual([reports.length, reports.every((report) => report.startsWith("advice: "))], [100, true]);
});

test("what JSON cannot say is noted as text", async () => {
  await using server = await fake(works);
  const casebank = memory(server);
  await casebank.run(AGENT, TASK, (run) => {
    const itself: Record<string, unknown> = {};
    itself["itself"] = itself;
    run.tool("odd", { large: 12n, none: NaN, error: new Error("no") }, itself);
    const unreadable = () => {
      throw new Error("not to be read");
    };
    run.tool("odder", {}, { toJSON: unreadable, [inspect.custom]: unreadable });
  });
  await casebank.close();
  const [trace, odder] = retained(server)[0]?.body["tool_traces"] as { input: unknown; output: unknown }[];
  assert.deepEqual(trace?.input, { large: "12", none: "NaN", error: "Error: no" });
  assert.match(String(trace?.output), /Circular/);
  assert.equal(odder?.output, "<object>");
});

test("closing gives up what is not sent in time, and says so", async () => {
  await using server = await fake((asked, number, response) => {
    if (asked.path === "/v1/retrieve") works(asked, number, response);
  });
  const reports: string[] = [];
  const casebank = memory(server, reports);
  for (const each of ["one", "two"]) await casebank.run(AGENT, each, () => undefined);
  await casebank.close(20);
  assert.equal(reports.length, 2);
});

test("a run whose answer was lost is sent again by its hook under the same key", async () => {
  await using server = await fake((asked, number, response) => {
    if (asked.path === "/v1/retain" && number <= 2) response.socket?.destroy();
    else works(asked, number, response);
  });
  const later = memory(server);
  const sent: Promise<unknown>[] = [];
  const onError: Settings["onError"] = (_error, _what, run, key) => {
    if (run !== undefined) sent.push(later.retain(run.agent, run.task, run.outcome, run, key));
  };
  const casebank = new Casebank(server.url, "token", { patience: { ...QUICK, attempts: 1, tryAgainMs: 3_600_000 }, onError });
  await casebank.run(AGENT, TASK, (run) => run.success());
  await casebank.close();
  await Promise.all(sent);
  const [first, ...others] = retained(server);
  assert.deepEqual(others.map(({ key, body }) => [key, body]), Array(2).fill([first?.key, first?.body]));
});

test("a step that is sent again has the same number, and the next one the next", async () => {
  await using server = await fake((_asked, number, response) => json(response, number === 1 ? 503 : 200, {}));
  const execution = new ExecutionMemory(memory(server), AGENT, TASK);
  await execution.extractFindings("fs:read", { path: "a.ts" }, 12n);
  await execution.extractFindings("fs:read", { path: "b.ts" }, "no such file", "error");
  const steps = server.asked.map(({ body }) => (body["steps"] as object[])[0]);
  const first = { number: 1, tool: "fs:read", input: { path: "a.ts" }, output: "12" };
  assert.deepEqual(steps, [first, first, { ...first, number: 2, input: { path: "b.ts" }, output: "no such file", status: "error" }]);
  assert.ok(server.asked.every(({ path }) => path === `/v1/runs/${execution.runId}/steps`));
});

test("a task, a plan and names that the service refuses are sent as it takes them", async () => {
  await using server = await fake(works);
  const casebank = memory(server);
  const tasks = [" \n", "", `find ${"a".repeat(30_000)} end`];
  for (const each of tasks) {
    await casebank.run(AGENT, each, async (run) => {
      await run.tool("", {}, RULE);
      run.tool("t".repeat(300));
      run.plan("look", "", `first ${"a".repeat(3_000)}`, ...Array(300).fill("again"));
    });
  }
  await casebank.close();
  const sent = server.asked.map(({ body }) => String(body["query"] ?? body["task"]));
  assert.deepEqual(sent.slice(0, 6), Array(6).fill("(no task)"));
  for (const long of sent.slice(6)) {
    assert.ok(long.length <= 20_000 && /^find a+\n… 1\d{4} characters left out …\na+ end$/.test(long), long.slice(-100));
  }
  assert.equal(sent.length, 9);
  const { plan, tool_traces } = retained(server)[2]?.body as { plan: string[]; tool_traces: { tool: string }[] };
  assert.deepEqual(tool_traces.map(({ tool }) => tool), ["(no name)", "t".repeat(200)]);
  assert.match(plan[1] ?? "", /^first a+\n… \d+ characters left out …\na+$/);
  assert.deepEqual([plan[0], plan.length, plan.every((step) => step.length <= 2_000)], ["look", 200, true]);
});

test("the longest inputs and outputs are shortened until a run fits, and say so", async () => {
  await using server = await fake(works);
  const casebank = memory(server);
  const rows = Array.from({ length: 150_000 }, (_each, number) => ({ number, sign: "é" }));
  await casebank.run(AGENT, TASK, (run) => {
    run.tool("read", { path: "a.log" }, `begins ${"é".repeat(6 * 1024 * 1024)} ends`);
    run.tool("write", { path: "b.log", content: "b".repeat(5 * 1024 * 1024) }, "done");
    run.tool("select", {}, rows);
    run.tool("look", { of: ["a"] }, { small: true });
  });
  await casebank.close();
  const body = retained(server)[0]?.body ?? {};
  const [read, write, select, look] = body["tool_traces"] as { input: unknown; output: unknown }[];
  const bytes = Buffer.byteLength(JSON.stringify(body));
  assert.ok(bytes <= 4 * 1024 * 1024 && bytes > 1024 * 1024, `${bytes} bytes`);
  assert.deepEqual(read?.input, { path: "a.log" });
  assert.ok(/^begins é+\n… \d+ characters left out …\né+ ends$/.test(String(read?.output)));
  assert.ok(/^{"path":"b.log","content":"b+\n… \d+ characters left out …\nb+"}$/.test(String(write?.input)));
  assert.ok(/^\[{"number":0.*\n… \d+ characters left out …\n.*"é"}\]$/.test(String(select?.output)));
  assert.deepEqual(look, { tool: "look", input: { of: ["a"] }, output: { small: true } });
});

test("half a character, as where a text was cut within an emoji, is sent as a sign in its place", async () => {
  await using server = await fake(works);
  const casebank = memory(server);
  await casebank.run(AGENT, "rename \ud83d", (run) => {
    run.tool("ls", {}, "a 😀, \\ud83d and \ude00");
    run.success();
  });
  await casebank.close();
  assert.equal(server.asked[0]?.body["query"], "rename \ufffd");
  assert.deepEqual(retained(server)[0]?.body["tool_traces"], [{ tool: "ls", input: {}, output: "a 😀, \\ud83d and \ufffd" }]);
});

test("what was deleted before an answer was lost counts as deleted", async () => {
  let deleted = false;
  await using server = await fake((_asked, _number, response) => {
    json(response, deleted ? 404 : 502, {}); // by a proxy, which lost the answer
    deleted = true;
  });
  const casebank = memory(server);
  await casebank.delete("f-1");
  await assert.rejects(casebank.delete("f-1"), /404/);
  deleted = false;
  await casebank.deleteSession("monday");
});

test("a service acts for a user of any name", async () => {
  await using server = await fake(works);
  const casebank = new Casebank(server.url, "token", { user: "Zoë Łuk", patience: QUICK });
  await casebank.retrieve(AGENT, TASK);
  assert.equal(server.asked[0]?.user, "Zoë Łuk");
});

test("a name that would arrive as another user's is refused at once", () => {
  for (const user of [" alice", "alice ", "\talice", "alice\n", "al\ud83dice", ""]) {
    assert.throws(() => new Casebank("http://127.0.0.1:9", "token", { user }), TypeError);
  }
});
