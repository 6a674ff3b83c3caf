/** The client against a real service, which whoever runs the tests has started. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Casebank } from "../src/index.js";

const { CASEBANK_URL: url = "", CASEBANK_TOKEN: token = "" } = process.env;
const AGENT = "db-operator";

test("every call does what it says against a service", { skip: url === "" && "CASEBANK_URL names none" }, async () => {
  const reports: Error[] = [];
  const casebank = new Casebank(url, token, { onError: (error) => reports.push(error) });
  await casebank.run(AGENT, "rename a column", (run) => {
    run.tool("sql", { query: "ALTER TABLE a" }, "ALTER TABLE");
    run.success();
  });
  const failedCall = { agent: AGENT, tool: "sql", input: { query: "ALTER TABLE b" }, output: "Error: no such table" };
  assert.equal((await casebank.advice(failedCall)).why_empty, "unknown_failure");
  const failed = casebank.run(AGENT, "drop a column", () => {
    throw new Error("no such column");
  });
  await assert.rejects(failed, /no such column/);

  const receipt = await casebank.retain(AGENT, "add a column", "success", { plan: ["add it"] }, "a-key");
  const again = await casebank.retain(AGENT, "add a column", "success", { plan: ["add it"] }, "a-key");
  assert.equal(again.case_id, receipt.case_id);
  assert.equal((await casebank.feedback({ case_id: receipt.case_id, thumb: "up" })).reward, 1);

  await casebank.addTurns(AGENT, "chat-1", [{ role: "user", content: "rename it" }]);
  assert.equal((await casebank.readSession("chat-1")).turns.length, 1);
  await casebank.deleteSession("chat-1");
  await casebank.close();
  assert.deepEqual(reports, []);
});
