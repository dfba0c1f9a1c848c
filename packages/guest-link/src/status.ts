import { create } from "@bufbuild/protobuf";
import { type Status, StatusSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { AnsweredError } from "./link-errors.ts";

/** The answer that a handler's failure travels as. One that is no answer is a defect, and says so. */
export function statusOf(error: unknown): Status {
  if (error instanceof AnsweredError) {
    const { reason, message, metadata } = error;
    return create(StatusSchema, { reason, message, metadata: { ...metadata } });
  }
  const message = `A defect in the guest agent: ${error instanceof Error ? error.message : String(error)}`;
  return create(StatusSchema, { reason: "INTERNAL_ERROR", message });
}

/** The error that a status stands for; undefined for success. */
export function errorOf(status: Status | undefined): AnsweredError | undefined {
  if (status === undefined || status.reason === "") return undefined;
  return new AnsweredError(status.reason, status.message, status.metadata);
}
