import { AsyncLocalStorage } from "node:async_hooks";

export const verbs = [
  "open",
  "take_over",
  "resume",
  "suspend",
  "destroy",
  "delete",
  "object_suspend",
  "object_delete",
  "execute",
  "program",
  "read",
  "close",
] as const;
export type Verb = (typeof verbs)[number];

export const stopVerbs: readonly Verb[] = ["suspend", "destroy", "object_suspend"];
export const deleteVerbs: readonly Verb[] = ["delete", "object_delete"];
export const startVerbs: readonly Verb[] = ["open", "take_over", "resume"];

/** One call of one caller, and what became of it. */
export interface CallRecord {
  readonly id: number;
  readonly caller: number;
  readonly replica: number;
  readonly verb: Verb;
  /** What the caller presents; undefined: none. For a take-over, what it was given. */
  epoch: number | undefined;
  readonly ignoresFence: boolean;
  readonly leavesOnFailure: boolean;
  readonly stateBefore: string;
  readonly fromRevision: number;
  /** When it was made and when answered, among all that happened. */
  readonly fromOrder: number;
  toRevision: number | undefined;
  /** Of a command. */
  executionId: string | undefined;
  answer: Answer | undefined;
  /** Its replica was killed, or its caller went away: nobody heard an answer. */
  isAbandoned: boolean;
  order: number | undefined;
  /** Kinds of faults that its requests met. */
  readonly met: Set<string>;
}

export type Answer =
  | {
      readonly t: "ok";
      readonly state: string | undefined;
      readonly epoch: number | undefined;
      readonly pod: string | undefined;
    }
  | { readonly t: "error"; readonly reason: string; readonly error: Error };

const current = new AsyncLocalStorage<CallRecord>();

/** Whose work this is, however many awaits later. */
export const currentCall = (): CallRecord | undefined => current.getStore();

export const inCall = <T>(call: CallRecord, work: () => T): T => current.run(call, work);
