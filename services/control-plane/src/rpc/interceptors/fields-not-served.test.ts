import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { ExecuteInteractiveRequestSchema, ExecuteRequestSchema } from "@holdfast/api/holdfast/v1/execution_pb";
import { SuspendWorkspaceRequestSchema } from "@holdfast/api/holdfast/v1/workspace_pb";
import { HoldfastError } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import { assertFieldsServed, fieldsNotServed } from "./fields-not-served.ts";

const protos = join(dirname(import.meta.dirname), "../../../../proto/holdfast/v1");

/** `Message.field` of every field whose comment says "Not served yet", read from the protos themselves. */
function declaredNotServed(file: string): string[] {
  const found: string[] = [];
  let message = "";
  let unserved = false;
  let inOneof = false;
  for (const line of readFileSync(join(protos, `${file}.proto`), "utf8").split("\n")) {
    message = /^message (\w+)/.exec(line)?.[1] ?? message;
    const comment = /^\s*\/\/(.*)/.exec(line);
    if (comment) {
      unserved ||= comment[1]?.includes("Not served yet") ?? false;
      continue;
    }
    if (/^\s*oneof /.test(line)) {
      inOneof = unserved;
      unserved = false;
      continue;
    }
    if (/^\s*}/.test(line)) inOneof = false;
    const field = /^\s+(?:optional |repeated )?[\w.<>, ]+ (\w+) = \d+/.exec(line)?.[1];
    if (field && (unserved || inOneof)) found.push(`${message}.${field}`);
    if (line.trim() !== "") unserved = false;
  }
  return found;
}

describe("fields that are not served", () => {
  it("are exactly those that the protos declare so", () => {
    const declared = readdirSync(protos)
      .filter((name) => name.endsWith(".proto"))
      .map((name) => name.slice(0, -".proto".length))
      .flatMap(declaredNotServed);
    const listed = [...fieldsNotServed].flatMap(([message, names]) => names.map((name) => `${message.name}.${name}`));
    expect(listed.sort()).toEqual(declared.sort());
  });

  it("are refused by presence, whatever they say", () => {
    const table = new Map([[ExecuteRequestSchema, ["max_output", "epoch"]]]);
    const request = create(ExecuteInteractiveRequestSchema, {
      request: { case: "start", value: { maxOutput: 1n, epoch: 0n } },
    });
    expect(() => assertFieldsServed(ExecuteInteractiveRequestSchema, request, table)).toThrow(
      expect.objectContaining({
        reason: "FIELD_NOT_SERVED",
        metadata: { fields: "start.max_output,start.epoch" },
      }),
    );
  });

  it("let everything else pass", () => {
    const request = create(SuspendWorkspaceRequestSchema, { workspaceId: "w", flush: { enabled: false } });
    expect(() => assertFieldsServed(SuspendWorkspaceRequestSchema, request)).not.toThrow(HoldfastError);
  });
});
