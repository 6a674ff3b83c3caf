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
    const said = [status, problem["title"], problem["detail"], faultOf(problem["errors"])];
    super(said.filter((part) => part !== undefined).join(": "));
  }
}

/** What is wrong with the first of the fields that casebank names. */
function faultOf(errors: unknown): string | undefined {
  const [first] = Array.isArray(errors) ? (errors as { field?: unknown; message?: unknown }[]) : [];
  return first && `${first.field}: ${first.message}`;
}
