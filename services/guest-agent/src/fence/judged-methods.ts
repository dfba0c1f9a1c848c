import type { Admission } from "@holdfast/guest-link";
import type { Fence } from "./fence.ts";

/**
 * Which calls the holder epoch decides about. `judged`: at admission, and by the handler again before each effect. `read-only`:
 * never. `by-request`: the request says whether it changes anything, so the handler judges. Complete: a method that is not named here is not served.
 */
export const judgements: Readonly<Record<string, "judged" | "read-only" | "by-request">> = {
  "holdfast.guest.v1.AgentService/Health": "read-only",
  "holdfast.guest.v1.AgentService/Probe": "read-only",
  // The epoch that it raises to is in the request; the one that it is called under means nothing.
  "holdfast.guest.v1.AgentService/Fence": "by-request",
  "holdfast.guest.v1.DiskService/Quiesce": "judged",
  "holdfast.guest.v1.DiskService/ReleaseQuiesce": "judged",
  "holdfast.guest.v1.DiskService/Flush": "judged",
  "holdfast.guest.v1.ExecutionService/StartExecution": "judged",
  // As the command's client it holds the program back, and its end may end the command.
  "holdfast.guest.v1.ExecutionService/FollowExecution": "by-request",
  "holdfast.guest.v1.ExecutionService/CancelExecution": "judged",
  "holdfast.guest.v1.ExecutionService/SignalExecution": "judged",
  "holdfast.guest.v1.ExecutionService/WriteStdin": "judged",
  "holdfast.guest.v1.ExecutionService/GetExecution": "read-only",
  "holdfast.guest.v1.ExecutionService/ListExecutions": "read-only",
  "holdfast.guest.v1.FileService/Stat": "read-only",
  "holdfast.guest.v1.FileService/Read": "read-only",
  "holdfast.guest.v1.FileService/List": "read-only",
  "holdfast.guest.v1.FileService/Walk": "read-only",
  "holdfast.guest.v1.FileService/Watch": "read-only",
  "holdfast.guest.v1.FileService/Write": "judged",
  "holdfast.guest.v1.FileService/MakeDirectory": "judged",
  "holdfast.guest.v1.FileService/Move": "judged",
  "holdfast.guest.v1.FileService/Remove": "judged",
  "holdfast.guest.v1.PortService/Connect": "judged",
  "holdfast.guest.v1.SessionService/OpenSession": "judged",
  // EXCLUSIVE displaces and writes; OBSERVE only reads.
  "holdfast.guest.v1.SessionService/AttachSession": "by-request",
  "holdfast.guest.v1.SessionService/WriteSession": "judged",
  "holdfast.guest.v1.SessionService/ResizeSession": "judged",
  "holdfast.guest.v1.SessionService/SignalSession": "judged",
  "holdfast.guest.v1.SessionService/KillSession": "judged",
  "holdfast.guest.v1.SessionService/DetachSession": "judged",
  "holdfast.guest.v1.SessionService/ReadSession": "read-only",
  "holdfast.guest.v1.SessionService/ListSessions": "read-only",
};

/** Judges what the table says is to be judged. */
export function admissionBy(fence: Fence): Admission {
  return (method, epoch) => {
    const judgement = judgements[method];
    // A method without a row would change things unjudged.
    if (judgement === undefined) throw new Error(`${method} is not in the table of judged methods`);
    if (judgement === "judged") fence.admit(epoch);
  };
}
