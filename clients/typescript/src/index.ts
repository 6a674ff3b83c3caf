/** Client of casebank: retrieve before the agent acts, and retain after. */

export {
  type Advice,
  Casebank,
  type Feedback,
  type FeedbackGiven,
  type Retained,
  type RetrieveMore,
  type Session,
  type Settings,
  type Turn,
  type TurnsAdded,
  type What,
} from "./casebank.js";
export { CasebankRefused, CasebankUnreachable } from "./errors.js";
export { ExecutionMemory } from "./execution.js";
export {
  type Case,
  type Cases,
  type Fact,
  type FactMore,
  type Facts,
  type Findings,
  type FindingsAdded,
  type Knowledge,
  type KnowledgePage,
  type KnowledgeWritten,
  type Known,
  type KnownMore,
  type MemoryFound,
  type Recalled,
  type RecallMore,
  type Steps,
  type StepsAdded,
  type Summary,
  type WholeCase,
} from "./memories.js";
export { type FailedCall, type FinishedRun, type Outcome, type RetainMore, type Retrieved, Run } from "./run.js";
export { PATIENCE, type Patience } from "./wire.js";
