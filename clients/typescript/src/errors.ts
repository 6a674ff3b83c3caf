/** What can go wrong between a backend and casebank. */

/** Nobody answered in time, or casebank said to come back later, as often as it was asked. */
export class CasebankUnreachable extends Error {
  override readonly name = "CasebankUnreachable";
}

/** casebank will not do this however often it is asked. */
export class CasebankRefused extends Error {
  override readonly name = "CasebankRefused";

  /**
   * @param status of HTTP.
   * @param problem the problem document of RFC 9457; empty where the answer was none.
   */
  constructor(
    readonly status: number,
    readonly problem: Readonly<Record<string, unknown>>,
  ) {
    super([status, problem["title"], problem["detail"]].filter((part) => part !== undefined).join(": "));
  }
}
